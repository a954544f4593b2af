"""Freezes and control at the gateway's claim: nothing begins that is held, or that somebody else is in control of."""

from __future__ import annotations

from datetime import timedelta

import pytest

from countersign.domain.administration import TOOLS, UnfreezeChange
from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import (
    ControlChanged,
    CountersignError,
    Drifted,
    Frozen,
    InputRefused,
    NotAuthorised,
    NotFound,
    StatementRefused,
)
from countersign.domain.execution import ExecutionStatus
from countersign.domain.freeze import Freeze
from countersign.domain.notice import NoticeKind
from countersign.domain.proposal import ApprovalStatus
from countersign.ledger import SqlLedger
from tests.ledger.builders import (
    DEADLINE,
    NOW,
    OPERATION,
    ROOM,
    TENANT,
    VIEW,
    audit_types,
    claim,
    command,
    decide,
    draft,
    granted,
    notices,
    operation,
    person,
    proposal,
    receipt,
    send,
    statement,
)
from tests.ledger.founding import apply, change_action, order, standing

LATER = NOW + timedelta(minutes=10)
WHY = "a figure on the front page is wrong"


def freeze(ledger: SqlLedger, tool: str = "", id: str = "a-signed-order-1") -> Freeze:
    return ledger.freezes.freeze(TENANT, order(tool=tool, id=id), NOW)


def test_a_freeze_is_kept_with_its_order_recorded_and_told(ledger: SqlLedger) -> None:
    made = freeze(ledger)
    assert made == Freeze(tenant=TENANT, number=1, reason=WHY, person="otto", since=NOW)
    assert freeze(ledger) == made
    second = freeze(ledger, "publish_report", "another-order-16")
    assert ledger.freezes.of_tenant(TENANT) == [made, second]
    records = [record for record in ledger.audit.records(TENANT) if record.type == "effects.frozen"]
    assert [(record.subject, record.detail["number"]) for record in records] == [("otto", 1), ("otto", 2)]
    assert records[0].detail["order_hash"] == sha256_hex(order().encode())
    told = [(one.kind, one.roles, one.code) for one in notices(ledger)]
    assert told == [
        (NoticeKind.FROZEN, ("operator", "admin"), "1:all"),
        (NoticeKind.FROZEN, ("operator", "admin"), "2:publish_report"),
    ]


def test_a_tenant_that_nobody_knows_is_not_frozen(ledger: SqlLedger) -> None:
    with pytest.raises(NotFound, match="globex"):
        ledger.freezes.freeze("globex", order(tenant="globex"), NOW)
    assert ledger.freezes.of_tenant("globex") == []


@pytest.mark.guarantee("G18")
@pytest.mark.parametrize(
    ("token", "error", "words"),
    [
        ("a.signed.order", StatementRefused, "no compact JWS"),
        (order(installation="elsewhere"), StatementRefused, "not for this installation"),
        (order(tenant="globex"), StatementRefused, "belongs to no person of this tenant"),
        (order(key_id="otto-9"), StatementRefused, "belongs to no person of this tenant"),
        (order("otto", key_id="lena-1", person="lena"), StatementRefused, "signature"),
        (order("lena"), NotAuthorised, "person lena may not freeze: the role operator or admin is needed"),
        (order("rita"), NotAuthorised, "person rita may not freeze: the role operator or admin is needed"),
        (order(tool="change_policy"), InputRefused, "changes of authority are never frozen"),
    ],
)
def test_what_is_no_order_of_whoever_may_freeze_holds_nothing(
    ledger: SqlLedger, token: str, error: type[CountersignError], words: str
) -> None:
    before = audit_types(ledger)
    with pytest.raises(error, match=words):
        ledger.freezes.freeze(TENANT, token, NOW)
    assert ledger.freezes.of_tenant(TENANT) == []
    assert audit_types(ledger) == before


def test_whoever_asks_for_changes_of_authority_may_freeze_and_whoever_was_demoted_may_not(ledger: SqlLedger) -> None:
    assert ledger.freezes.freeze(TENANT, order("ada"), NOW).person == "ada"
    apply(ledger, standing(person("otto", "reviewer")))
    with pytest.raises(NotAuthorised, match="otto may not freeze"):
        ledger.freezes.freeze(TENANT, order("otto"), NOW)


@pytest.mark.guarantee("G45")
@pytest.mark.parametrize("tool", ["", "publish_report"])
def test_what_is_frozen_is_not_claimed_and_each_hold_is_recorded_once(ledger: SqlLedger, tool: str) -> None:
    approval = granted(ledger)
    freeze(ledger, tool)
    for _ in range(3):
        with pytest.raises(Frozen, match="freeze 1 of otto"):
            claim(ledger, approval)
    assert ledger.executions.get(TENANT, OPERATION) is None
    freeze(ledger, id="another-order-16")
    apply(ledger, UnfreezeChange(freeze=1))
    with pytest.raises(Frozen, match="freeze 2 of otto"):
        claim(ledger, approval)
    held = [record for record in ledger.audit.records(TENANT, OPERATION) if record.type == "effect.held"]
    assert [record.detail["freeze"] for record in held] == [1, 2]
    assert {record.detail["approval_id"] for record in held} == {"approval-1"}
    assert ledger.approvals.get(TENANT, "approval-1").status == ApprovalStatus.GRANTED


def test_another_tool_than_the_frozen_one_goes_on(ledger: SqlLedger) -> None:
    freeze(ledger, "refund_payment")
    assert claim(ledger, granted(ledger)).status == ExecutionStatus.INTENDED


@pytest.mark.parametrize("tool", sorted(TOOLS.values()))
def test_changes_of_authority_go_on_since_nobody_could_lift_it_otherwise(ledger: SqlLedger, tool: str) -> None:
    freeze(ledger)
    approval = granted(ledger, proposal(acting={"tool": tool}))
    assert claim(ledger, approval).status == ExecutionStatus.INTENDED


@pytest.mark.guarantee("G36")
@pytest.mark.parametrize("ending", ["intended", "unknown", "executed"])
def test_what_may_be_on_its_way_is_looked_up_though_frozen_and_taken_over(ledger: SqlLedger, ending: str) -> None:
    approval = granted(ledger)
    execution = claim(ledger, approval)
    if ending == "unknown":
        ledger.executions.unknown(execution, "timeout", NOW)
    if ending == "executed":
        ledger.executions.finish(execution, receipt(execution), NOW)
    freeze(ledger)
    send(ledger, command("take_over", "lena"))
    again = claim(ledger, approval, LATER)
    assert again.status.value == ending
    assert "effect.held" not in audit_types(ledger)


@pytest.mark.guarantee("G29")
@pytest.mark.guarantee("G30")
def test_what_was_not_sent_is_not_sent_once_it_is_frozen_or_taken_over(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    ledger.executions.not_sent(claim(ledger, approval), "connection refused", NOW)
    freeze(ledger)
    with pytest.raises(Frozen):
        claim(ledger, approval)
    apply(ledger, UnfreezeChange(freeze=1))
    assert claim(ledger, approval).attempt == 2


@pytest.mark.guarantee("G29")
@pytest.mark.guarantee("G30")
def test_an_effect_of_another_version_of_control_is_not_begun(ledger: SqlLedger) -> None:
    """Also where the grant itself has escaped its end: the ledger is asked again at the very claim."""
    approval = granted(ledger)
    execution = claim(ledger, approval)
    send(ledger, command("take_over", "lena"))
    assert ledger.approvals.get(TENANT, "approval-1").status == ApprovalStatus.GRANTED
    ledger.executions.not_sent(execution, "connection refused", NOW)
    with pytest.raises(ControlChanged, match="lena, version 2"):
        claim(ledger, approval)


def test_a_freeze_is_lifted_by_a_governed_change_and_by_nothing_else(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    freeze(ledger)
    action = apply(ledger, UnfreezeChange(freeze=1), "change-9", now=LATER)
    (lifted,) = ledger.freezes.of_tenant(TENANT)
    assert (lifted.in_force, lifted.lifted_at, lifted.lifted_by) == (False, LATER, "change-9")
    record = [*ledger.audit.records(TENANT)][-1]
    assert (record.type, record.detail["basis"], record.detail["number"]) == ("effects.unfrozen", "change-9", 1)
    assert notices(ledger)[-1].kind == NoticeKind.UNFROZEN
    assert ledger.directory.applied(TENANT, action.idempotency_key())
    ledger.directory.apply(TENANT, UnfreezeChange(freeze=1), action, LATER)
    assert audit_types(ledger).count("effects.unfrozen") == 1
    assert freeze(ledger) == lifted, "the old order does not freeze again"
    assert claim(ledger, approval).status == ExecutionStatus.INTENDED


def test_what_is_not_in_force_is_not_lifted(ledger: SqlLedger) -> None:
    with pytest.raises(InputRefused, match="freeze 7 is not in force"):
        apply(ledger, UnfreezeChange(freeze=7))
    freeze(ledger)
    change = UnfreezeChange(freeze=1)
    late = change_action(ledger, change, "change-2", TENANT)
    apply(ledger, change, "change-1")
    with pytest.raises(Drifted):
        ledger.directory.apply(TENANT, change, late, NOW)
    assert audit_types(ledger).count("effects.unfrozen") == 1


@pytest.mark.guarantee("G29")
@pytest.mark.guarantee("G30")
def test_what_the_agent_still_brings_after_a_takeover_is_discarded(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    ledger.drafts.save(TENANT, OPERATION, 1, draft(), "offline", 1, NOW)
    send(ledger, command("take_over", "lena"))
    before = audit_types(ledger)
    late = [
        lambda: ledger.drafts.save(TENANT, OPERATION, 1, draft(), "offline", 1, LATER),
        lambda: ledger.drafts.save(TENANT, OPERATION, 2, draft(), "offline", 1, LATER),
        lambda: ledger.drafts.save_checks(TENANT, OPERATION, 1, [], 1, LATER),
        lambda: ledger.approvals.open(proposal(), "run-1", VIEW, LATER, ROOM),
    ]
    for bring in late:
        with pytest.raises(ControlChanged, match="with lena, version 2; what was begun under version 1 is discarded"):
            bring()
    assert audit_types(ledger) == before
    ledger.drafts.save_checks(TENANT, OPERATION, 1, [], 2, LATER)


def test_an_opening_that_is_repeated_after_a_takeover_tells_that_it_was_superseded(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    ledger.approvals.open(proposal(), "run-1", VIEW, NOW, ROOM)
    send(ledger, command("take_over", "lena"))
    assert ledger.approvals.open(proposal(), "run-1", VIEW, LATER, ROOM).status == ApprovalStatus.SUPERSEDED


def test_what_a_person_in_control_proposes_is_opened_decided_and_claimed_like_anything_else(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    send(ledger, command("take_over", "lena"))
    theirs = proposal(control_version=2, proposed_by="lena", authors=("lena",))
    ledger.approvals.open(theirs, "run-1", VIEW, NOW, ROOM)
    opened = [record for record in ledger.audit.records(TENANT) if record.type == "approval.opened"]
    assert [record.subject for record in opened] == ["lena"]
    decide(ledger, statement(theirs, "bob", expires_at=DEADLINE))
    assert claim(ledger, ledger.approvals.get(TENANT, "approval-1")).status == ExecutionStatus.INTENDED
