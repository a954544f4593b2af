"""docs/policies.md says what is: its tables have the fields that files can have, and its examples can be read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from countersign.cli.governing.directory_file import Entry, read_directory
from countersign.domain.action import FactName
from countersign.domain.control import Takeover
from countersign.domain.directory import Limit
from countersign.domain.escalation import Reason, Route
from countersign.domain.model_call import Budget, Budgets
from countersign.domain.need import Ladder, Need, Tier
from countersign.domain.policy import AfterRejection, AmountCondition, BreakGlass, Editing, Policy, Rule, Terms, Window
from countersign.domain.question import Answering
from countersign.domain.settlement import Settling
from countersign.domain.values import Value
from countersign.signing.keys import public_text, read_key_file
from countersign.strict_yaml import load
from tests.cli.office import ROOT

TEXT = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
MODELS: dict[str, type[Value]] = {
    "A policy": Policy, "A rule": Rule, "An amount": AmountCondition, "A window": Window, "A need": Need,
    "Terms": Terms, "Editing": Editing, "After a rejection": AfterRejection, "Breaking the glass": BreakGlass,
    "A ladder": Ladder, "A tier": Tier, "A takeover": Takeover, "Settling": Settling,
    "Answering": Answering, "Budgets": Budgets, "A budget": Budget,
    "A directory": Entry, "A limit": Limit,
}  # fmt: skip


def listed(head: str) -> list[str]:
    """The first column of the table under a heading."""
    part = re.split(rf"^##+ {head}$", TEXT, flags=re.MULTILINE)[1]
    return re.findall(r"^\| `(\w+)` \|", re.split(r"^##", part, flags=re.MULTILINE)[0], re.MULTILINE)


def example(name: str, folder: Path) -> Path:
    """An example of the document, as a file."""
    path = folder / f"{name}.yaml"
    path.write_text(TEXT.partition(f"<!-- example {name} -->\n\n```yaml\n")[2].partition("```")[0])
    return path


@pytest.mark.parametrize("head", MODELS)
def test_each_table_has_the_fields_that_there_are(head: str) -> None:
    assert sorted(listed(head)) == sorted(MODELS[head].model_fields)


def test_an_escalations_tables_have_the_reasons_and_the_fields_that_there_are() -> None:
    assert listed("An escalation") == [*(reason.value for reason in Reason), *Route.model_fields]


def test_the_facts_are_those_that_a_condition_can_look_at() -> None:
    assert listed("Facts") == list(get_args(FactName))


def test_the_example_policy_can_be_read_and_uses_every_field(tmp_path: Path) -> None:
    text = example("policy", tmp_path).read_text()

    assert load(tmp_path / "policy.yaml", Policy).version == 3
    heads = [head for head in MODELS if head not in ("A directory", "A limit")]
    fields = {field for head in heads for field in MODELS[head].model_fields} - {"asked_by"}
    assert [field for field in sorted(fields) if f"{field}:" not in text] == []


def test_the_example_directory_can_be_read(tmp_path: Path) -> None:
    persons = read_directory(example("directory", tmp_path)).tenants["acme"]

    assert [str(limit.each) for limit in persons["bob"].limits] == ["100.00 EUR", "10000 JPY"]
    assert not persons["carl"].active


def test_a_key_can_be_made_without_this_program(tmp_path: Path) -> None:
    lines = TEXT.partition("<!-- own key -->\n\n```sh\n")[2].partition("```")[0]

    printed = subprocess.run(["sh", "-ec", lines], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert printed.strip() == public_text(read_key_file(tmp_path / "own.pem"))
    file = tmp_path / "persons.yaml"
    file.write_text(f"tenants: {{acme: {{rita: {{roles: [requester], keys: [{printed.strip()}]}}}}}}")
    assert read_directory(file).tenants["acme"]["rita"].keys == (printed.strip(),)
