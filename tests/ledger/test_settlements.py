"""What people say of unknown outcomes is kept as they signed it, and is spent with the sending that it was about."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.errors import Conflict
from countersign.domain.execution import Execution, ExecutionStatus
from countersign.domain.need import Need
from countersign.domain.policy import Policy, Rule
from countersign.domain.settlement import Settled, Settling
from countersign.ledger import SqlLedger
from tests.ledger.builders import (
    NOW,
    OPERATION,
    OTHER_HASH,
    ROOM,
    TENANT,
    VIEW,
    audit_types,
    claim,
    command,
    granted,
    proposal,
    receipt,
    send,
)

LATER = NOW + timedelta(minutes=2)
NEED = Need(role="reviewer", approvals=1, decisions=("approve",), decide_within="72h", execute_within="1h")
POLICY = Policy(
    policy="report", version=1, settling=Settling(role="lead"),
    rules=(Rule(id="all", when={"tool": "publish_report"}, need=NEED),),
)  # fmt: skip


@pytest.fixture
def unknown(ledger: SqlLedger) -> Execution:
    """An effect of which nobody knows, whose policy lets leads settle it."""
    ledger.documents.put(TENANT, canonical_bytes(POLICY.model_dump(mode="json")))
    approval = granted(ledger, proposal(acting={"policy_version": POLICY.label()}))
    return ledger.executions.unknown(claim(ledger, approval), "no_answer: lost", NOW)


def says(ledger: SqlLedger, unknown: Execution, by: str = "lena", number: int = 1, **what: Any) -> Outcome:
    said = {"key": unknown.key, "finding": "not_executed", "comment_hash": sha256_hex(b"seen"), **what}
    return send(ledger, command("settle", by, id=f"settle-by-{by}-{number:05}", **said), now=LATER).outcome


def kept(ledger: SqlLedger, unknown: Execution) -> list[tuple[str, str, bool]]:
    found = ledger.executions.settlements(TENANT, unknown.key)
    return [(one.settlement.person, one.settlement.finding, one.spent) for one in found]


@pytest.mark.guarantee("G36", "G47")
def test_a_word_is_kept_as_it_was_signed_and_changes_nothing(ledger: SqlLedger, unknown: Execution) -> None:
    before = ledger.controls.standing(TENANT, OPERATION)
    assert says(ledger, unknown).ruling == Ruling.ACCEPTED
    assert says(ledger, unknown, "lars", finding="executed", reference="r-7").ruling == Ruling.ACCEPTED
    assert kept(ledger, unknown) == [("lena", "not_executed", False), ("lars", "executed", False)]
    assert '"command":"settle"' in ledger.executions.settlements(TENANT, unknown.key)[0].statement
    assert ledger.executions.get(TENANT, OPERATION) == unknown
    assert ledger.controls.standing(TENANT, OPERATION) == before
    (first, _) = [one for one in ledger.audit.records(TENANT) if one.type == "command.accepted"]
    assert (first.detail["key"], first.detail["finding"]) == (unknown.key, "not_executed")


@pytest.mark.guarantee("G02", "G36")
@pytest.mark.parametrize(
    ("by", "what", "ruling"),
    [
        ("bob", {}, Ruling.ROLE_MISSING),
        ("lena", {"key": "0" * 64}, Ruling.NOTHING_UNKNOWN),
        ("lena", {"comment_hash": ""}, Ruling.REASON_MISSING),
        ("lena", {"finding": "executed"}, Ruling.CONTENT_REFUSED),
    ],
)
def test_what_may_not_be_said_is_refused_and_not_kept(
    ledger: SqlLedger, unknown: Execution, by: str, what: dict[str, Any], ruling: Ruling
) -> None:
    assert says(ledger, unknown, by, **what).ruling == ruling
    assert kept(ledger, unknown) == []
    assert audit_types(ledger)[-1] == "command.refused"


@pytest.mark.guarantee("G12", "G36")
def test_a_policy_that_named_nobody_when_it_was_agreed_to_lets_nobody(ledger: SqlLedger) -> None:
    nobody = POLICY.model_copy(update={"settling": None})
    ledger.documents.put(TENANT, canonical_bytes(nobody.model_dump(mode="json")))
    approval = granted(ledger, proposal(acting={"policy_version": nobody.label()}))
    unknown = ledger.executions.unknown(claim(ledger, approval), "no_answer: lost", NOW)
    outcome = says(ledger, unknown)
    assert (outcome.ruling, "lets nobody" in outcome.sentence()) == (Ruling.ROLE_MISSING, True)


@pytest.mark.guarantee("G12", "G36")
@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (None, "is not kept any more"),
        (b"{}", "is no policy"),
        (POLICY.model_dump_json().encode(), "is policy report/1@"),
    ],
)
def test_a_policy_that_is_not_kept_as_it_was_is_not_said_to_let_nobody(
    ledger: SqlLedger, kept: bytes | None, why: str
) -> None:
    label = f"report/7@{OTHER_HASH if kept is None else ledger.documents.put(TENANT, kept)}"
    approval = granted(ledger, proposal(acting={"policy_version": label}))
    unknown = ledger.executions.unknown(claim(ledger, approval), "no_answer: lost", NOW)
    outcome = says(ledger, unknown)
    assert (outcome.ruling, why in outcome.sentence()) == (Ruling.ROLE_MISSING, True), outcome
    assert "restore a backup" in outcome.sentence()


@pytest.mark.guarantee("G36")
def test_while_somebody_holds_the_claim_nobody_settles_it(ledger: SqlLedger, unknown: Execution) -> None:
    approval = ledger.approvals.current(TENANT, OPERATION)
    assert approval is not None
    claim(ledger, approval, LATER, minutes=1)
    assert says(ledger, unknown).ruling == Ruling.BEING_LOOKED_UP


@pytest.mark.guarantee("G36")
def test_what_was_said_is_spent_once_the_effect_was_found_not_to_be_there(
    ledger: SqlLedger, unknown: Execution
) -> None:
    says(ledger, unknown)
    approval = ledger.approvals.current(TENANT, OPERATION)
    assert approval is not None
    claimed = claim(ledger, approval, LATER)
    agreed = Settled(finding="not_executed", reference="", persons=("lena",), at=LATER)
    ledger.executions.not_sent(claimed, "settled: lena", LATER, agreed)
    assert kept(ledger, unknown) == [("lena", "not_executed", True)]
    assert audit_types(ledger)[-2:] == ["effect.settled", "effect.not_sent"]
    assert says(ledger, unknown, number=2).ruling == Ruling.NOTHING_UNKNOWN


@pytest.mark.guarantee("G36", "G45")
def test_what_people_agree_on_is_recorded_with_the_end_that_it_makes(ledger: SqlLedger, unknown: Execution) -> None:
    approval = ledger.approvals.current(TENANT, OPERATION)
    assert approval is not None
    claimed = claim(ledger, approval, LATER)
    agreed = Settled(finding="executed", reference="out/report.md", persons=("lena", "lars"), at=LATER)
    ended = ledger.executions.finish(claimed, receipt(claimed), LATER, agreed)
    assert ended.status == ExecutionStatus.EXECUTED
    assert ledger.executions.finish(claimed, receipt(claimed), LATER, agreed) == ended
    assert audit_types(ledger).count("effect.settled") == 1
    assert audit_types(ledger)[-2:] == ["effect.settled", "effect.executed"]


@pytest.mark.guarantee("G32")
def test_another_action_is_not_put_before_people_while_one_is_unknown(ledger: SqlLedger, unknown: Execution) -> None:
    another = proposal("approval-2", version=2, acting={"content_hash": OTHER_HASH})
    with pytest.raises(Conflict, match="may have taken effect"):
        ledger.approvals.open(another, "run-1", VIEW, LATER, ROOM)
    approval = ledger.approvals.current(TENANT, OPERATION)
    assert approval is not None
    ledger.executions.not_sent(claim(ledger, approval, LATER), "not_there: nothing", LATER)
    ledger.approvals.open(another, "run-1", VIEW, LATER, ROOM)
