"""Edits, broken glass, unsigned and outdated votes: what each makes of an approval; on both engines."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from countersign.domain.audit import AuditRecord
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.edit import Edit
from countersign.domain.errors import Conflict, NotFound
from countersign.domain.policy import Answer, Assessment, Editing
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal
from countersign.ledger import SqlLedger
from tests.ledger.builders import (
    DEADLINE,
    NOW,
    OPERATION,
    OTHER_HASH,
    ROOM,
    TENANT,
    TERMS,
    VIEW,
    action,
    audit_types,
    claim,
    decide,
    granted,
    need,
    operation,
    person,
    proposal,
    statement,
)
from tests.ledger.founding import apply, standing

LATER = NOW + timedelta(minutes=2)
EDITED = action(args={"channel": "internal"})


def opened(ledger: SqlLedger, proposed: Proposal | None = None) -> Proposal:
    """A pending proposal of a registered operation."""
    ledger.operations.register(operation())
    return ledger.approvals.open(proposed or proposal(), "run-1", VIEW, NOW, ROOM).proposal


def made_of(approvals: int = 1) -> Edit:
    """What the policy in force says about EDITED."""
    return Edit(EDITED, Assessment(answer=Answer.PEOPLE, rules=("all",), needs=(need(approvals),)))


def edit(ledger: SqlLedger, proposed: Proposal, by: str = "bob", **more: Any) -> Outcome:
    """Edit the proposed action into EDITED."""
    said = statement(proposed, by, decision="edit", edited_action=EDITED.hash(), id=f"edit-of-{by}-123456")
    return decide(ledger, said, message_id=f"edit-{by}", edit=made_of(), **more)


def next_version(**changes: Any) -> Proposal:
    """The proposal of EDITED, edited by bob from approval-1."""
    fields = {"acting": {"args": {"channel": "internal"}}, "edited_from": "approval-1", "authors": ("bob",)}
    return proposal("approval-2", version=2, **{**fields, **changes})


def last(ledger: SqlLedger) -> AuditRecord:
    return list(ledger.audit.records(TENANT))[-1]


@pytest.mark.guarantee("G14")
def test_an_edit_ends_the_approval_and_is_kept_with_the_action_it_names(ledger: SqlLedger) -> None:
    proposed = opened(ledger, proposal(approvals=2))
    decide(ledger, statement(proposed, "carl"), message_id="m-0")
    assert edit(ledger, proposed) == Outcome(ruling=Ruling.ACCEPTED, status=ApprovalStatus.EDITED)
    approval = ledger.approvals.get(TENANT, "approval-1")
    assert approval.status == ApprovalStatus.EDITED
    assert [(vote.person, vote.decision, vote.edited_action) for vote in approval.votes] == [
        ("carl", "approve", ""), ("bob", "edit", EDITED.hash())
    ]  # fmt: skip
    accepted, ended = list(ledger.audit.records(TENANT))[-2:]
    assert (accepted.type, ended.type) == ("decision.accepted", "approval.edited")
    assert accepted.detail["edited_action"] == ended.detail["edited_action"] == EDITED.hash()
    late = decide(ledger, statement(proposed, "dora"), message_id="m-9")
    assert late.ruling == Ruling.ALREADY_SETTLED


@pytest.mark.guarantee("G02")
@pytest.mark.guarantee("G16")
def test_an_edit_that_counts_is_carried_over_and_no_other_vote_is(ledger: SqlLedger) -> None:
    proposed = opened(ledger, proposal(approvals=2))
    decide(ledger, statement(proposed, "carl"), message_id="m-0")
    edit(ledger, proposed)
    new = ledger.approvals.open(next_version(approvals=2), "run-1", VIEW, LATER, ROOM)
    assert new == ledger.approvals.get(TENANT, "approval-2") == ledger.approvals.current(TENANT, OPERATION)
    assert new.status == ApprovalStatus.PENDING
    assert [(vote.person, vote.decision) for vote in new.votes] == [("bob", "edit")]
    assert new.votes[0] == ledger.approvals.get(TENANT, "approval-1").votes[-1]
    own = statement(new.proposal, "bob", id="approval-of-bob-0001")
    assert decide(ledger, own, message_id="m-1").ruling == Ruling.AUTHOR_MAY_NOT_APPROVE
    other = statement(new.proposal, "carl", id="approval-of-carl-001")
    assert decide(ledger, other, message_id="m-2").status == ApprovalStatus.GRANTED
    carried = [record for record in ledger.audit.records(TENANT) if record.type == "decision.carried_over"]
    assert [(record.subject, record.detail["edited_from"]) for record in carried] == [("bob", "approval-1")]


@pytest.mark.guarantee("G02")
def test_an_edit_that_is_all_that_is_needed_grants_at_once(ledger: SqlLedger) -> None:
    edit(ledger, opened(ledger))
    new = ledger.approvals.open(next_version(), "run-1", VIEW, LATER, ROOM)
    assert new.status == ApprovalStatus.GRANTED
    assert ledger.approvals.open(next_version(), "run-1", VIEW, LATER, ROOM) == new
    assert audit_types(ledger)[-3:] == ["approval.opened", "decision.carried_over", "approval.granted"]
    assert last(ledger).subject == "bob"
    assert claim(ledger, new, LATER).action_hash == EDITED.hash()


@pytest.mark.guarantee("G02")
@pytest.mark.parametrize("counts", ["never", "where_one_suffices"])
def test_an_edit_that_does_not_count_leaves_its_editor_out(ledger: SqlLedger, counts: str) -> None:
    terms = TERMS.model_copy(
        update={"editing": Editing.model_validate({"fields": ("channel",), "raises_risk": (), "counts": counts})}
    )
    edit(ledger, opened(ledger, proposal(terms=terms)))
    new = ledger.approvals.open(next_version(approvals=2, terms=terms), "run-1", VIEW, LATER, ROOM)
    assert (new.status, new.votes) == (ApprovalStatus.PENDING, ())


@pytest.mark.guarantee("G06")
def test_an_editor_who_was_demoted_meanwhile_grants_nothing(ledger: SqlLedger) -> None:
    edit(ledger, opened(ledger))
    apply(ledger, standing(person("bob", "intern")))
    new = ledger.approvals.open(next_version(), "run-1", VIEW, LATER, ROOM)
    assert (new.status, len(new.votes)) == (ApprovalStatus.PENDING, 1)


@pytest.mark.guarantee("G23")
def test_another_run_takes_over_no_edit(ledger: SqlLedger) -> None:
    edit(ledger, opened(ledger))
    new = ledger.approvals.open(next_version(), "run-2", VIEW, LATER, ROOM)
    assert (new.status, new.votes) == (ApprovalStatus.PENDING, ())


@pytest.mark.guarantee("G14")
@pytest.mark.guarantee("G16")
@pytest.mark.parametrize(
    "other",
    [next_version(content=b"another text"), next_version(acting={"args": {"channel": "public", "silent": True}})],
)
def test_an_action_that_is_not_what_the_editor_signed_takes_no_vote(ledger: SqlLedger, other: Proposal) -> None:
    """As after a change of the policy between edit and proposal: people are asked, the editor said nothing to it."""
    edit(ledger, opened(ledger))
    new = ledger.approvals.open(other, "run-1", VIEW, LATER, ROOM)
    assert (new.status, new.votes) == (ApprovalStatus.PENDING, ())
    assert "decision.carried_over" not in audit_types(ledger)


@pytest.mark.guarantee("G16")
@pytest.mark.parametrize(
    "forged",
    [
        next_version(edited_from="approval-0"),
        next_version(operation="report-8"),
    ],
)
def test_an_action_that_nobody_edited_is_not_opened_as_edited(ledger: SqlLedger, forged: Proposal) -> None:
    edit(ledger, opened(ledger))
    ledger.operations.register(operation("report-8"))
    before = audit_types(ledger)
    with pytest.raises(Conflict, match="nobody edited approval"):
        ledger.approvals.open(forged, "run-1", VIEW, LATER, ROOM)
    assert audit_types(ledger) == before
    with pytest.raises(NotFound):
        ledger.approvals.get(TENANT, "approval-2")


@pytest.mark.guarantee("G16")
def test_a_vote_that_is_no_edit_is_never_carried_over(ledger: SqlLedger) -> None:
    opened(ledger)
    with pytest.raises(Conflict, match="nobody edited"):
        ledger.approvals.open(next_version(), "run-1", VIEW, LATER, ROOM)


def test_an_edited_action_that_the_policy_grants_by_rule_takes_no_vote(ledger: SqlLedger) -> None:
    edit(ledger, opened(ledger))
    new = ledger.approvals.open(next_version(by_rule=True), "run-1", VIEW, LATER, ROOM)
    assert (new.status, new.votes) == (ApprovalStatus.GRANTED, ())
    assert audit_types(ledger)[-1] == "approval.granted_by_rule"


@pytest.mark.guarantee("G11")
def test_broken_glass_takes_two_persons_and_has_records_of_its_own(ledger: SqlLedger) -> None:
    proposed = opened(ledger, proposal(approvals=3))
    outcomes = [
        decide(
            ledger,
            statement(proposed, name, decision="break_glass", comment_hash=OTHER_HASH),
            message_id=f"m-{name}",
        ).status
        for name in ("bob", "carl")
    ]
    assert outcomes == [ApprovalStatus.PENDING, ApprovalStatus.GRANTED]
    assert audit_types(ledger)[-3:] == ["break_glass.accepted", "break_glass.accepted", "break_glass.granted"]
    assert "approval.granted" not in audit_types(ledger)


@pytest.mark.guarantee("G11")
@pytest.mark.guarantee("G47")
def test_glass_that_the_policy_leaves_alone_is_not_broken(ledger: SqlLedger) -> None:
    proposed = opened(ledger, proposal(terms=TERMS.model_copy(update={"break_glass": None})))
    said = statement(proposed, "bob", decision="break_glass", comment_hash=OTHER_HASH)
    assert decide(ledger, said).ruling == Ruling.DECISION_NOT_ALLOWED
    assert (last(ledger).type, last(ledger).detail["decision"]) == ("decision.refused", "break_glass")


@pytest.mark.guarantee("G04")
def test_a_vote_says_what_it_rests_on_and_an_unsigned_one_never_counts_towards_two_persons(ledger: SqlLedger) -> None:
    proposed = opened(ledger, proposal(approvals=2))
    said = statement(proposed, "bob")
    assert decide(ledger, said, assurance="namespace-only").ruling == Ruling.SIGNATURE_NEEDED
    assert last(ledger).detail["assurance"] == "namespace-only"
    assert decide(ledger, statement(proposed, "carl"), message_id="m-2").ruling == Ruling.ACCEPTED
    assert last(ledger).detail["assurance"] == "signed"
    assert [vote.assurance for vote in ledger.approvals.get(TENANT, "approval-1").votes] == ["signed"]


def test_where_one_suffices_an_unsigned_vote_counts_and_is_marked(ledger: SqlLedger) -> None:
    proposed = opened(ledger)
    assert decide(ledger, statement(proposed, "bob"), assurance="namespace-only").status == ApprovalStatus.GRANTED
    assert [vote.assurance for vote in ledger.approvals.get(TENANT, "approval-1").votes] == ["namespace-only"]


@pytest.mark.guarantee("G06")
@pytest.mark.guarantee("G47")
@pytest.mark.parametrize(
    "change", [standing(person("bob", "intern")), standing(person("bob", active=False))], ids=["demoted", "inactive"]
)
def test_whoever_lost_the_role_between_signature_and_vote_does_not_count(ledger: SqlLedger, change: Any) -> None:
    proposed = opened(ledger)
    as_verified = ledger.directory.persons(TENANT)["bob"]
    apply(ledger, change)
    assert decide(ledger, statement(proposed, "bob"), signer=as_verified).ruling == Ruling.ROLE_MISSING
    assert ledger.approvals.get(TENANT, "approval-1").votes == ()
    assert last(ledger).type == "decision.refused"


@pytest.mark.guarantee("G06")
def test_whoever_the_directory_does_not_know_does_not_count(ledger: SqlLedger) -> None:
    proposed = opened(ledger)
    stranger = person("eve", "reviewer")
    assert decide(ledger, statement(proposed, "eve"), signer=stranger).ruling == Ruling.ROLE_MISSING


@pytest.mark.guarantee("G06")
def test_an_earlier_voter_who_lost_the_role_is_no_second_person(ledger: SqlLedger) -> None:
    proposed = opened(ledger, proposal(approvals=2))
    decide(ledger, statement(proposed, "bob"), message_id="m-1")
    apply(ledger, standing(person("bob", "intern")))
    assert decide(ledger, statement(proposed, "carl"), message_id="m-2").status == ApprovalStatus.PENDING
    assert decide(ledger, statement(proposed, "dora"), message_id="m-3").status == ApprovalStatus.GRANTED


def void(ledger: SqlLedger) -> ApprovalStatus:
    return ledger.approvals.void(TENANT, "approval-1", "the policy changed", "report/1", "report/2", LATER)


@pytest.mark.guarantee("G06")
def test_a_voided_grant_says_what_was_expected_and_found_and_stays_void(ledger: SqlLedger) -> None:
    approval = granted(ledger)
    assert ledger.approvals.void_reason(TENANT, "approval-1") == ""
    assert void(ledger) == void(ledger) == ApprovalStatus.VOIDED
    assert ledger.approvals.void_reason(TENANT, "approval-1") == "the policy changed: expected report/1, found report/2"
    assert audit_types(ledger).count("approval.voided") == 1
    assert last(ledger).detail["expected"] == "report/1"
    assert last(ledger).detail["found"] == "report/2"
    with pytest.raises(Conflict, match="voided, not granted"):
        claim(ledger, approval)
    late = statement(approval.proposal, "carl")
    assert decide(ledger, late, message_id="m-2").ruling == Ruling.ALREADY_SETTLED


@pytest.mark.parametrize("stands", [ApprovalStatus.PENDING, ApprovalStatus.EXPIRED])
def test_only_a_grant_is_voided(ledger: SqlLedger, stands: ApprovalStatus) -> None:
    opened(ledger)
    if stands == ApprovalStatus.EXPIRED:
        ledger.approvals.settle(TENANT, "approval-1", stands, DEADLINE)
    assert void(ledger) == stands
    assert "approval.voided" not in audit_types(ledger)


@pytest.mark.guarantee("G32")
def test_a_grant_under_which_something_may_have_gone_out_is_not_voided(ledger: SqlLedger) -> None:
    claimed = claim(ledger, granted(ledger))
    assert void(ledger) == ApprovalStatus.GRANTED
    ledger.executions.not_sent(claimed, "refused", LATER)
    assert void(ledger) == ApprovalStatus.VOIDED


def test_all_approvals_of_an_operation_are_told_oldest_first(ledger: SqlLedger) -> None:
    first: Approval = granted(ledger)
    void(ledger)
    second = ledger.approvals.open(proposal("approval-2", version=2), "run-1", VIEW, LATER, ROOM)
    told = ledger.approvals.of_operation(TENANT, OPERATION)
    assert [one.proposal for one in told] == [first.proposal, second.proposal]
    assert [one.status for one in told] == [ApprovalStatus.VOIDED, ApprovalStatus.PENDING]
    assert [[vote.person for vote in one.votes] for one in told] == [["bob"], []]


def test_every_target_that_anything_was_proposed_for_is_known_by_name_once(ledger: SqlLedger) -> None:
    for number, target in enumerate(("public:b", "public:a", "public:b")):
        acting = {"target": target}
        granted(ledger, proposal(f"approval-{number}", operation=f"op-{number}", acting=acting))
    assert ledger.approvals.targets(TENANT) == ["public:a", "public:b"]
