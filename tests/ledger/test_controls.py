"""Who is in control: taken over, handed on, given back and lost, and every run that a person ends; on both engines."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from countersign.domain.audit import AuditRecord
from countersign.domain.canonical import sha256_hex
from countersign.domain.command import COMMANDS, CommandKind, Ending
from countersign.domain.control import Control, first_control
from countersign.domain.decision import Ruling
from countersign.domain.errors import Conflict, NotFound
from countersign.domain.escalation import Reason, Route, Severity
from countersign.domain.need import Ladder
from countersign.domain.notice import NoticeKind
from countersign.domain.policy import Answer, Assessment, Terms
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from countersign.ports import Amendment, Standing
from tests.ledger.builders import (
    DEADLINE,
    NOW,
    OPERATION,
    OTHER_HASH,
    ROOM,
    TENANT,
    TERMS,
    VIEW,
    audit_types,
    claim,
    command,
    decide,
    draft,
    granted,
    need,
    notices,
    operation,
    person,
    proposal,
    receipt,
    send,
    statement,
)
from tests.ledger.founding import apply, standing

LATER = NOW + timedelta(minutes=1)
LEASE = timedelta(hours=8)
OURS = draft("Sales, as we read them, were {{c1}}.")
ROUTE = Route(role="expert", severity=Severity.HIGH)


@pytest.fixture(autouse=True)
def registered(ledger: SqlLedger) -> None:
    """The operation that everything here is about."""
    ledger.operations.register(operation())
    ledger.operations.move(TENANT, OPERATION, State.RUNNING, "", NOW)


def pending(ledger: SqlLedger, **changes: Any) -> Approval:
    return ledger.approvals.open(proposal(**changes), "run-1", VIEW, NOW, ROOM)


def status(ledger: SqlLedger) -> ApprovalStatus:
    return ledger.approvals.get(TENANT, "approval-1").status


def taken(ledger: SqlLedger, by: str = "lena") -> Control:
    """Control as it is once somebody has taken the run over."""
    return send(ledger, command("take_over", by)).standing.control


def records(ledger: SqlLedger, kind: str) -> list[AuditRecord]:
    return [record for record in ledger.audit.records(TENANT) if record.type == kind]


def test_a_run_that_nobody_took_over_is_the_agents_since_it_was_registered(ledger: SqlLedger) -> None:
    assert ledger.controls.standing(TENANT, OPERATION) == Standing(
        control=first_control(NOW), ending=None, draft_version=0
    )
    assert ledger.controls.history(TENANT, OPERATION) == [first_control(NOW)]
    for ask in (ledger.controls.standing, ledger.controls.history):
        with pytest.raises(NotFound, match="nowhere"):
            ask(TENANT, "nowhere")


@pytest.mark.guarantee("G29")
def test_a_takeover_puts_a_person_in_control_voids_what_waits_and_tells_whom_it_concerns(ledger: SqlLedger) -> None:
    proposed = pending(ledger, approvals=2).proposal
    decide(ledger, statement(proposed, "bob"), message_id="m-0")
    commanded = send(ledger, command("take_over", "lena", comment_hash=OTHER_HASH))
    mine = Control(by="person", person="lena", version=2, since=LATER, lease_until=LATER + LEASE)
    assert (commanded.outcome.ruling, commanded.standing.control) == (Ruling.ACCEPTED, mine)
    assert ledger.controls.history(TENANT, OPERATION) == [first_control(NOW), mine]
    assert audit_types(ledger)[-3:] == ["command.accepted", "control.changed", "approval.superseded"]
    accepted, changed, superseded = [*ledger.audit.records(TENANT)][-3:]
    assert {accepted.subject, changed.subject, superseded.subject} == {"lena"}
    assert (accepted.detail["command"], accepted.detail["comment_hash"]) == ("take_over", OTHER_HASH)
    by = {"by": "take_over-by-lena-0000"}
    assert changed.detail == {"from": "agent", "to": "lena", "version": 2, "previous_version": 1, **by}
    told = notices(ledger)[-1]
    assert (told.kind, told.persons, told.code) == (NoticeKind.CONTROL_CHANGED, ("rita", "lena"), "take_over")
    late = decide(ledger, statement(proposed, "carl"), message_id="m-9")
    assert (late.ruling, late.status) == (Ruling.ALREADY_SETTLED, ApprovalStatus.SUPERSEDED)
    assert records(ledger, "decision.refused")[-1].detail["ruling"] == "already_settled"


@pytest.mark.guarantee("G24")
@pytest.mark.parametrize("kind", ["take_over", "cancel"])
def test_what_people_had_no_time_left_for_has_expired_whoever_comes_then(ledger: SqlLedger, kind: CommandKind) -> None:
    """A worker that was away comes to both at once; the run is held at its deadline, so it does not end by that."""
    held = need(1).model_copy(update={"ladder": Ladder(then="freeze")})
    pending(ledger, assessment=Assessment(answer=Answer.PEOPLE, rules=("rule-1",), needs=(held,)))
    assert send(ledger, command(kind, "lena"), now=DEADLINE).outcome.ruling == Ruling.ACCEPTED
    assert status(ledger) == ApprovalStatus.EXPIRED
    assert [record.subject for record in records(ledger, "approval.expired")] == ["clock"]


@pytest.mark.guarantee("G28")
def test_who_comes_second_learns_who_was_first(ledger: SqlLedger) -> None:
    taken(ledger)
    stale = send(ledger, command("take_over", "lars"))
    assert stale.outcome.ruling == Ruling.STALE_CONTROL
    assert "lena" in stale.outcome.sentence()
    held = send(ledger, command("take_over", "lars", id="another-try-of-lars", control_version=2))
    assert held.outcome.ruling == Ruling.HELD
    assert "lena" in held.outcome.sentence()
    assert stale.standing.control == held.standing.control == ledger.controls.standing(TENANT, OPERATION).control
    assert [record.detail["ruling"] for record in records(ledger, "command.refused")] == ["stale_control", "held"]


def test_what_would_come_of_a_command_is_what_comes_of_it_and_asking_changes_nothing(ledger: SqlLedger) -> None:
    apply(ledger, standing(person("ivan", "intern")))
    tried = [command("take_over", "ivan"), command("take_over", "lena"), command("take_over", "lars")]
    for said in tried:
        before = audit_types(ledger)
        would = ledger.controls.would(said, person(said.person), LATER)
        assert (audit_types(ledger), ledger.controls.would(said, person(said.person), LATER)) == (before, would)
        assert send(ledger, said).outcome == would
    # The content is not there yet when somebody asks.
    amended = command("amend", "lena", control_version=2, content=OTHER_HASH)
    assert ledger.controls.would(amended, person("lena"), LATER).ruling == Ruling.ACCEPTED
    # A lease that is over, and a no that the run has not come to yet, count here as they count there.
    assert ledger.controls.would(amended, person("lena"), LATER + LEASE).ruling == Ruling.NOT_IN_CONTROL
    pending(ledger, control_version=2)
    assert ledger.controls.would(amended, person("lena"), LATER + LEASE).ruling == Ruling.ENDED
    with pytest.raises(NotFound, match="nowhere"):
        ledger.controls.would(command("take_over", "lena", operation="nowhere"), person("lena"), LATER)


@pytest.mark.guarantee("G47")
def test_whoever_lacks_the_role_by_now_changes_nothing_and_is_recorded(ledger: SqlLedger) -> None:
    as_verified = ledger.directory.persons(TENANT)["lena"]
    apply(ledger, standing(person("lena", "intern")))
    refused = send(ledger, command("take_over", "lena"), signer=as_verified)
    assert refused.outcome.ruling == Ruling.ROLE_MISSING
    assert refused.standing.control.version == 1
    stranger = send(ledger, command("take_over", "eve"), signer=person("eve", "lead"))
    assert stranger.outcome.ruling == Ruling.ROLE_MISSING
    assert [record.subject for record in records(ledger, "command.refused")] == ["lena", "eve"]


def test_whom_an_open_escalation_was_brought_to_may_take_over_and_answers_it(ledger: SqlLedger) -> None:
    apply(ledger, standing(person("ivan", "expert")))
    assert send(ledger, command("take_over", "ivan", id="before-the-escalation")).outcome.ruling == Ruling.ROLE_MISSING
    ledger.escalations.open(
        TENANT, OPERATION, Reason.LOW_CONFIDENCE, ROUTE, "rubric_failed", 3, "failed", OTHER_HASH, NOW
    )
    ledger.operations.move(TENANT, OPERATION, State.ESCALATED, "rubric_failed", NOW)
    assert taken(ledger, "ivan").person == "ivan"
    (escalation,) = ledger.escalations.of_operation(TENANT, OPERATION)
    assert (escalation.outcome, escalation.answered_by) == ("taken_over", "ivan")
    assert [record.subject for record in records(ledger, "escalation.answered")] == ["ivan"]
    assert ledger.escalations.waiting(TENANT) == []


@pytest.mark.guarantee("G17")
def test_the_same_message_again_does_nothing_and_another_with_the_same_statement_is_a_replay(ledger: SqlLedger) -> None:
    first = send(ledger, command("take_over", "lena"), message_id="m-1")
    before = audit_types(ledger)
    assert send(ledger, command("take_over", "lena"), message_id="m-1") == first
    assert audit_types(ledger) == before
    again = send(ledger, command("take_over", "lena"), message_id="m-2")
    assert (again.outcome.ruling, again.outcome.detail, again.outcome.counts) == (Ruling.REPLAY, "", True)
    assert again.standing == first.standing
    assert audit_types(ledger) == [*before, "command.repeated"]
    refused = send(ledger, command("take_over", "lars"), message_id="m-3")
    assert refused.outcome.ruling == Ruling.STALE_CONTROL
    once_more = send(ledger, command("take_over", "lars"), message_id="m-4")
    assert "does not count" in once_more.outcome.sentence()


@pytest.mark.guarantee("G17")
def test_an_id_that_a_decision_used_is_good_for_no_command_and_the_other_way_round(ledger: SqlLedger) -> None:
    proposed = pending(ledger, approvals=2).proposal
    decide(ledger, statement(proposed, "bob", id="one-id-for-all-16"))
    conflict = send(ledger, command("take_over", "lena", id="one-id-for-all-16"))
    assert conflict.outcome.ruling == Ruling.ID_CONFLICT
    assert conflict.standing.control.version == 1
    send(ledger, command("take_over", "lena", id="another-one-id-16"))
    other = decide(ledger, statement(proposed, "carl", id="another-one-id-16"), message_id="m-2")
    assert other.ruling == Ruling.ID_CONFLICT


def test_an_amended_draft_is_the_next_version_beside_the_agents_and_its_author_is_the_person(
    ledger: SqlLedger,
) -> None:
    ledger.drafts.save(TENANT, OPERATION, 1, draft(), "offline", 1, NOW)
    taken(ledger)
    pending(ledger, control_version=2)
    said = command("amend", "lena", control_version=2, draft_version=1, content=OTHER_HASH)
    at = LATER + timedelta(minutes=30)
    commanded = send(ledger, said, amendment=Amendment(draft=OURS), now=at)
    assert (commanded.outcome.ruling, commanded.standing.draft_version) == (Ruling.ACCEPTED, 2)
    assert ledger.drafts.get(TENANT, OPERATION, 1) == draft()
    written = ledger.drafts.written(TENANT, OPERATION, 2)
    assert written is not None
    assert (written.draft, written.author, written.model) == (OURS, "lena", "")
    assert (ledger.controls.standing(TENANT, OPERATION).draft_version, ledger.drafts.authors(TENANT, OPERATION)) == (
        2,
        ("lena",),
    )
    assert status(ledger) == ApprovalStatus.SUPERSEDED
    assert commanded.standing.control.lease_until == at + LEASE
    assert audit_types(ledger)[-3:] == ["command.accepted", "draft.written", "approval.superseded"]


@pytest.mark.parametrize(
    ("ruling", "changes", "amendment"),
    [
        (Ruling.NOT_THIS_VERSION, {"draft_version": 0}, Amendment(draft=OURS)),
        (Ruling.STALE_CONTROL, {"control_version": 1}, Amendment(draft=OURS)),
        (Ruling.NOT_IN_CONTROL, {"person": "lars"}, Amendment(draft=OURS)),
        (Ruling.CONTENT_REFUSED, {}, Amendment(problem="body: it has no claims")),
        (Ruling.CONTENT_REFUSED, {}, Amendment()),
    ],
)
@pytest.mark.guarantee("G29")
def test_what_is_not_the_holders_or_not_of_the_latest_version_amends_nothing(
    ledger: SqlLedger, ruling: Ruling, changes: dict[str, Any], amendment: Amendment
) -> None:
    ledger.drafts.save(TENANT, OPERATION, 1, draft(), "offline", 1, NOW)
    taken(ledger)
    fields = {"control_version": 2, "draft_version": 1, "content": OTHER_HASH, "person": "lena", **changes}
    said = command("amend", **{"by": fields.pop("person"), **fields})
    assert send(ledger, said, amendment=amendment).outcome.ruling == ruling
    assert ledger.controls.standing(TENANT, OPERATION).draft_version == 1
    assert ledger.drafts.authors(TENANT, OPERATION) == ()


def test_somebody_who_is_called_as_the_agent_is_is_an_author_all_the_same(ledger: SqlLedger) -> None:
    apply(ledger, standing(person("agent", "lead")))
    ledger.drafts.save(TENANT, OPERATION, 1, draft(), "offline", 1, NOW)
    send(ledger, command("take_over", "agent"), signer=person("agent", "lead"))
    said = command("amend", "agent", control_version=2, draft_version=1, content=OTHER_HASH)
    send(ledger, said, amendment=Amendment(draft=OURS))
    assert ledger.drafts.authors(TENANT, OPERATION) == ("agent",)


@pytest.mark.parametrize("kind", ["grade", "propose"])
def test_every_command_of_the_holder_begins_their_lease_anew(ledger: SqlLedger, kind: CommandKind) -> None:
    ledger.drafts.save(TENANT, OPERATION, 1, draft(), "offline", 1, NOW)
    before = taken(ledger)
    at = LATER + timedelta(hours=7)
    after = send(ledger, command(kind, "lena", control_version=2, draft_version=1), now=at).standing.control
    assert after == before.model_copy(update={"lease_until": at + LEASE})
    assert ledger.controls.history(TENANT, OPERATION)[-1] == after


@pytest.mark.guarantee("G29")
def test_control_is_handed_over_and_the_old_holder_does_nothing_any_more(ledger: SqlLedger) -> None:
    taken(ledger)
    handed = send(ledger, command("hand_over", "lena", control_version=2, to="lars"))
    assert (handed.standing.control.person, handed.standing.control.version) == ("lars", 3)
    told = notices(ledger)[-1]
    assert (told.persons, told.code) == (("rita", "lena", "lars"), "hand_over")
    for version, ruling in ((2, Ruling.STALE_CONTROL), (3, Ruling.NOT_IN_CONTROL)):
        old = send(ledger, command("release", "lena", id=f"release-of-version-{version}", control_version=version))
        assert old.outcome.ruling == ruling
        assert "lars" in old.outcome.sentence()
    assert ledger.controls.standing(TENANT, OPERATION).control.person == "lars"


@pytest.mark.parametrize("to", ["nobody", "bob", "lena"])
def test_control_is_handed_to_nobody_who_could_not_take_it(ledger: SqlLedger, to: str) -> None:
    taken(ledger)
    refused = send(ledger, command("hand_over", "lena", control_version=2, to=to))
    assert refused.outcome.ruling == Ruling.RECEIVER_REFUSED
    assert refused.standing.control.person == "lena"


def test_a_released_run_is_the_agents_again_under_a_version_of_its_own(ledger: SqlLedger) -> None:
    taken(ledger)
    pending(ledger, control_version=2)
    released = send(ledger, command("release", "lena", control_version=2), now=LATER + timedelta(minutes=1))
    assert released.standing.control == Control(by="agent", version=3, since=LATER + timedelta(minutes=1))
    assert status(ledger) == ApprovalStatus.SUPERSEDED
    assert [one.version for one in ledger.controls.history(TENANT, OPERATION)] == [1, 2, 3]


@pytest.mark.guarantee("G29")
def test_a_lease_that_is_over_goes_to_nobody_and_never_to_the_agent(ledger: SqlLedger) -> None:
    mine = taken(ledger)
    over = LATER + LEASE
    pending(ledger, control_version=2, deadline=over + timedelta(hours=1))
    assert ledger.controls.lapse(TENANT, OPERATION, 2, over - timedelta(microseconds=1)) == mine
    assert ledger.controls.lapse(TENANT, OPERATION, 1, over) == mine
    lapsed = ledger.controls.lapse(TENANT, OPERATION, 2, over)
    assert lapsed == Control(by="nobody", version=3, since=over)
    assert ledger.controls.lapse(TENANT, OPERATION, 2, over) == lapsed
    assert [record.subject for record in records(ledger, "control.lapsed")] == ["clock"]
    assert status(ledger) == ApprovalStatus.SUPERSEDED
    assert (notices(ledger)[-1].persons, notices(ledger)[-1].code) == (("rita", "lena"), "lease_over")
    assert send(ledger, command("release", "lena", control_version=3), now=over).outcome.ruling == Ruling.NOT_IN_CONTROL
    next_one = send(ledger, command("take_over", "lars", control_version=3), now=over)
    assert next_one.standing.control.person == "lars"


def test_whoever_holds_without_an_end_keeps_control(ledger: SqlLedger) -> None:
    agents = first_control(NOW)
    assert ledger.controls.lapse(TENANT, OPERATION, 1, LATER + timedelta(days=900)) == agents
    assert "control.lapsed" not in audit_types(ledger)


ENDS: list[tuple[CommandKind, str, Ending, ApprovalStatus]] = [
    ("withdraw", "rita", Ending(state=State.WITHDRAWN, reason="withdrawn"), ApprovalStatus.WITHDRAWN),
    ("supersede", "rita", Ending(state=State.CANCELLED, reason="superseded"), ApprovalStatus.SUPERSEDED),
    ("cancel", "otto", Ending(state=State.CANCELLED, reason="cancelled_by_operator"), ApprovalStatus.CANCELLED),
]


@pytest.mark.guarantee("G10")
@pytest.mark.parametrize(("kind", "by", "ending", "ended_as"), ENDS)
@pytest.mark.parametrize("stands", [ApprovalStatus.PENDING, ApprovalStatus.GRANTED])
def test_a_run_that_a_person_ended_has_an_end_of_its_own_and_nothing_of_it_goes_on(
    ledger: SqlLedger, kind: CommandKind, by: str, ending: Ending, ended_as: ApprovalStatus, stands: ApprovalStatus
) -> None:
    ledger.operations.register(operation("report-8"))
    approval = pending(ledger) if stands == ApprovalStatus.PENDING else granted(ledger)
    ledger.escalations.open(
        TENANT, OPERATION, Reason.LOW_CONFIDENCE, ROUTE, "rubric_failed", 3, "failed", OTHER_HASH, NOW
    )
    said = command(kind, by, successor="report-8" if kind == "supersede" else "")
    assert send(ledger, said).standing.ending == ending
    assert ledger.controls.standing(TENANT, OPERATION).ending == ending
    assert status(ledger) == ended_as
    (ended,) = records(ledger, "run.ended_by_person")
    assert (ended.subject, ended.detail["state"], ended.detail["reason"]) == (by, ending.state.value, ending.reason)
    settled = records(ledger, f"approval.{ended_as.value}")
    assert [record.subject for record in settled] == [by]
    assert ledger.escalations.of_operation(TENANT, OPERATION)[0].outcome == "ended"
    late = decide(ledger, statement(approval.proposal, "carl"), message_id="m-9")
    assert (late.ruling, late.status) == (Ruling.ALREADY_SETTLED, ended_as)
    with pytest.raises(Conflict, match=f"ended as {ending.state.value}"):
        pending(ledger, approval_id="approval-2", version=2)
    with pytest.raises(Conflict, match="ended as"):
        claim(ledger, approval)
    assert ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.CANCELLED, LATER) == ended_as


@pytest.mark.parametrize("kind", COMMANDS)
def test_once_somebody_has_ended_it_every_further_command_comes_too_late(ledger: SqlLedger, kind: CommandKind) -> None:
    send(ledger, command("cancel", "otto", id="the-first-cancel-0"))
    late = send(ledger, command(kind, "lena", successor="report-8" if kind == "supersede" else ""))
    assert late.outcome.ruling == Ruling.ENDED
    assert "CANCELLED" in late.outcome.sentence()
    assert audit_types(ledger)[-1] == "command.refused"


@pytest.mark.guarantee("G32")
@pytest.mark.parametrize("ending", ["intended", "unknown", "executed"])
def test_what_may_be_on_its_way_is_neither_ended_nor_changed_and_keeps_its_grant(
    ledger: SqlLedger, ending: str
) -> None:
    execution = claim(ledger, granted(ledger))
    if ending == "unknown":
        ledger.executions.unknown(execution, "timeout", NOW)
    if ending == "executed":
        ledger.executions.finish(execution, receipt(execution), NOW)
    before = status(ledger)
    assert send(ledger, command("cancel", "otto")).outcome.ruling == Ruling.TOO_LATE
    assert send(ledger, command("withdraw", "rita")).outcome.ruling == Ruling.TOO_LATE
    taken(ledger)
    assert send(ledger, command("release", "lena", control_version=2)).outcome.ruling == Ruling.TOO_LATE
    assert status(ledger) == before


def test_what_was_surely_not_sent_can_be_ended(ledger: SqlLedger) -> None:
    ledger.executions.not_sent(claim(ledger, granted(ledger)), "refused", NOW)
    assert send(ledger, command("cancel", "otto")).outcome.ruling == Ruling.ACCEPTED
    assert status(ledger) == ApprovalStatus.CANCELLED


def test_the_terms_that_a_pending_proposal_has_pinned_decide_whether_it_is_withdrawn(ledger: SqlLedger) -> None:
    pending(ledger, terms=TERMS.model_copy(update={"requester_may_withdraw": False}))
    refused = send(ledger, command("withdraw", "rita"))
    assert refused.outcome.ruling == Ruling.DECISION_NOT_ALLOWED
    ledger.approvals.settle(TENANT, "approval-1", ApprovalStatus.CANCELLED, NOW)
    assert Terms().requester_may_withdraw
    assert send(ledger, command("withdraw", "rita", id="withdrawn-once-more")).outcome.ruling == Ruling.ACCEPTED


def test_only_the_requester_withdraws_and_only_an_operator_cancels(ledger: SqlLedger) -> None:
    assert send(ledger, command("withdraw", "bob")).outcome.ruling == Ruling.ONLY_REQUESTER_WITHDRAWS
    assert send(ledger, command("cancel", "rita")).outcome.ruling == Ruling.ROLE_MISSING
    assert ledger.controls.standing(TENANT, OPERATION).ending is None


@pytest.mark.guarantee("G09")
@pytest.mark.parametrize(
    ("successor", "words"),
    [
        ("nowhere", "not registered"),
        (OPERATION, "its own place"),
        ("of-another-case", "same case and requester"),
        ("of-another-person", "same case and requester"),
        ("ended", "has ended"),
        ("ended-by-person", "has ended"),
    ],
)
def test_only_another_running_operation_of_the_same_person_takes_its_place(
    ledger: SqlLedger, successor: str, words: str
) -> None:
    ledger.operations.register(operation("of-another-case", case="refund"))
    ledger.operations.register(operation("of-another-person", requester="ivan"))
    for name in ("ended", "ended-by-person"):
        ledger.operations.register(operation(name))
    ledger.operations.move(TENANT, "ended", State.FAILED, "checks_failed", NOW)
    send(ledger, command("cancel", "otto", operation="ended-by-person"))
    refused = send(ledger, command("supersede", "rita", successor=successor))
    assert refused.outcome.ruling == Ruling.SUCCESSOR_REFUSED
    assert words in refused.outcome.sentence()
    assert refused.standing.ending is None


def test_the_record_of_a_command_names_all_that_it_said(ledger: SqlLedger) -> None:
    taken(ledger)
    said = command("hand_over", "lena", control_version=2, to="lars")
    send(ledger, said)
    detail = records(ledger, "command.accepted")[-1].detail
    assert detail == {
        "message_id": f"m-{said.id}", "transport": "signal", "statement_id": said.id, "command": "hand_over",
        "statement_hash": sha256_hex(said.model_dump_json().encode()), "control_version": 2, "comment_hash": "",
        "to": "lars", "ruling": "accepted", "reason": detail["reason"],
    }  # fmt: skip
