"""A case in which an agent drafts has all that a run of it needs, before any run finds out what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from countersign import bootstrap
from countersign.cases.case import Case, DraftedCase, is_drafted, read_draft
from countersign.cases.refund.case import RefundCase
from countersign.cases.report.case import ReportCase
from countersign.cli.standing import ended_as
from countersign.cli.starting.intents import INTENTS
from countersign.cli.starting.request_file import FORMS
from countersign.domain.errors import InputRefused
from countersign.domain.operation import Operation
from countersign.domain.report import Draft
from countersign.domain.state import State
from countersign.gateway.tools import READERS
from countersign.settings import Settings
from tests.ledger.builders import draft, operation

FULFILLED: tuple[type[DraftedCase[Any, Any]], ...] = (ReportCase, RefundCase)
"""Read by the type checker: each has every part of the protocol, which nothing asks of it at its making."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, _env_file=None)


@pytest.fixture
def cases(settings: Settings) -> Iterator[dict[str, Case]]:
    ledger = bootstrap.open_ledger(settings)
    yield bootstrap.cases(settings, ledger)
    ledger.close()


@pytest.fixture
def drafted(cases: dict[str, Case]) -> dict[str, DraftedCase[Any, Any]]:
    return {name: case for name, case in cases.items() if is_drafted(case)}


def test_each_has_a_rubric_and_an_agent_that_delivers_its_form(
    settings: Settings, drafted: dict[str, DraftedCase[Any, Any]]
) -> None:
    agents = bootstrap._drafters(settings, bootstrap._models(settings))

    assert drafted.keys() == bootstrap.load_rubrics(settings).keys() == agents.keys()
    delivered = {name: agent._kind.form for name, agent in agents.items()}  # type: ignore[attr-defined]  # not the port
    assert delivered == {name: case.form for name, case in drafted.items()}


def test_what_is_read_line_by_line_is_a_text_of_the_form(drafted: dict[str, DraftedCase[Any, Any]]) -> None:
    for case in drafted.values():
        schema = case.form.model_json_schema()["properties"]
        assert {schema[name]["type"] for name in case.prose} == {"string"}


def test_a_stored_draft_that_has_not_its_cases_form_is_refused_in_one_line_without_its_words() -> None:
    assert read_draft(Draft, draft()).model_dump(mode="json") == draft()
    with pytest.raises(InputRefused, match="form of one: title: ") as refused:
        read_draft(Draft, {**draft(), "title": ["secret words"]})
    assert "secret" not in refused.value.message
    assert "\n" not in refused.value.message


def test_each_can_be_asked_for(drafted: dict[str, DraftedCase[Any, Any]]) -> None:
    assert FORMS.keys() == INTENTS.keys() == drafted.keys()
    assert {name: get_args(form.model_fields["case"].annotation) for name, form in FORMS.items()} == {
        name: (name,) for name in drafted
    }


def test_the_gateway_can_read_what_a_case_rests_on(cases: dict[str, Case]) -> None:
    assert READERS.keys() == {name for name, case in cases.items() if case.gathers}


def test_an_end_by_its_checks_is_told_in_its_words(drafted: dict[str, DraftedCase[Any, Any]]) -> None:
    for name, case in drafted.items():
        told = {code: ended_as(failed(name, f"{code}: found")) for code in (*case.stops, "checks_failed")}
        assert told == {**case.stops, "checks_failed": "failed: it could not go on"}
    assert ended_as(failed("administration", "nothing_to_refund")) == "failed: it could not go on"


def failed(case: str, reason: str) -> Operation:
    return operation().model_copy(update={"case": case, "state": State.FAILED, "reason": reason})
