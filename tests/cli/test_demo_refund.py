"""The refund demo: one command that shows money go back once, whatever happens to the answer, and be taken back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from examples.payments.store import Store
from tests.cli.office import starter
from tests.cli.test_demo import left_running

REFUNDS = ("charged-twice", "machine-paid-twice")


@pytest.mark.long  # .ci/run plays the same demo
@pytest.mark.guarantee("G36", "G38")
@pytest.mark.timeout(200)
def test_each_refund_happens_once_is_told_when_it_is_confirmed_and_can_be_taken_back(tmp_path: Path) -> None:
    home = {
        "COUNTERSIGN_HOME": str(tmp_path),
        "DATABASE_URL": "",
        "OPENAI_API_KEY": "",
        "TEMPORAL_ADDRESS": "nowhere:1",
    }

    shown = starter(
        home, "demo-refund", answer="s\ny\ny\ny\n"
    )  # fay looks again and refunds; fay and finn take it back

    assert shown.returncode == 0, shown.stdout + shown.stderr
    (folder,) = (tmp_path / "demo-refund").iterdir()
    service = Store(folder / "payments.db")
    by_rule, lost = service.effects("refunds")
    assert service.calls("refunds") == [by_rule, lost], "something was sent twice"
    assert len(service.effects("reversals")) == 1
    assert shown.stdout.count("You are fay. ") == 3
    for line in (
        r"  \S+  effect\.unknown +gateway +reason=no_answer: .*",
        rf"Found as re-000002 under key {lost}\.",
        r"  5 operations and 5 actions compared, disagreements: 0, not compared: 0",
        r"  machine-paid-twice told from the ledger alone: \d+ records, 0 things do not fit",
        r"  \d+ records of acme verified, head sha256:\S+",
        r"  refunds +2\n  taken back +1\n  messages +2",
        r"  o-1001, p-2 +249\.00 EUR of 249\.00 EUR refunded\n  o-1002, p-4 +0\.00 EUR of 4800\.00 EUR refunded",
    ):
        assert re.search(rf"^{line}$", shown.stdout, re.MULTILINE), line
    assert left_running(home) == []
    told_too_early = [name for name in REFUNDS if not told_after_it_was_confirmed(home | at(folder), name)]
    assert told_too_early == []


def at(folder: Path) -> dict[str, str]:
    return {"COUNTERSIGN_HOME": str(folder), "COUNTERSIGN_INSTALLATION": "demo"}


def told_after_it_was_confirmed(home: dict[str, str], refund: str) -> bool:
    records = json.loads(starter(home, "audit", "show", "--tenant", "acme", "--json").stdout)
    at = {(one["operation"], one["type"]): one["sequence"] for one in records}
    return bool(at[refund, "effect.executed"] < at[f"{refund}.message", "effect.intended"])
