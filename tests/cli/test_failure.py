"""A run that failed says why, in words, wherever somebody looks: the audit itself keeps only a hash of the sentence."""

from __future__ import annotations

import pytest

from countersign.cli.session import now
from countersign.domain.state import State
from tests.cli.desk import ACME, TENANT, Desk

SENTENCE = "statement of rita: key rita-1 is expired or revoked"


@pytest.fixture
def failed(desk: Desk) -> Desk:
    """A desk with an operation whose opening was refused."""
    desk.register("report-7")
    detail = {"code": "STATEMENT_REFUSED", "sentence": desk.put(SENTENCE)}
    desk.ledger.audit.append(TENANT, "step.failed", "report-7", "open_run", {**detail}, now())
    desk.ledger.operations.move(TENANT, "report-7", State.FAILED, "statement_refused", now())
    return desk


@pytest.mark.parametrize(
    ("command", "code"), [(["status"], 0), (["show"], 0), (["timeline"], 0), (["wait"], 6)], ids=lambda part: str(part)
)
def test_why_a_run_failed_is_told_in_words(failed: Desk, command: list[str], code: int) -> None:
    answer = failed.cli(*command, "report-7", *ACME)

    assert answer.code == code
    assert SENTENCE in answer.out


def test_programs_are_told_too(failed: Desk) -> None:
    for command in ("status", "show", "wait"):
        assert failed.cli(command, "report-7", *ACME, "--json").json()["failure"] == SENTENCE
    records = failed.cli.done("timeline", "report-7", *ACME, "--json").json()
    assert [one["sentence"] for one in records if one["type"] == "step.failed"] == [SENTENCE]
    assert SENTENCE in failed.cli.done("audit", "show", *ACME).out


def test_a_step_that_failed_on_the_way_is_no_failure_of_the_run(desk: Desk) -> None:
    desk.register("report-7")
    desk.ledger.audit.append(TENANT, "step.failed", "report-7", "grade", {"sentence": desk.put("x")}, now())

    assert desk.cli.done("status", "report-7", *ACME, "--json").json()["failure"] == ""
