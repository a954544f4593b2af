"""How an operation stands in words: whom it waits for, whose votes count so far, and what came of it.

Apart from the commands, because `status`, `wait`, `show`, `brief` and `policy explain` say it in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from countersign.cli.governing.frozen import holding_tool
from countersign.cli.rendering import moment
from countersign.cli.session import Session
from countersign.cli.situation import RunNow
from countersign.cli.tool_words import EFFECT_NAMES
from countersign.domain.administration import ADMINISTRATION
from countersign.domain.control import Control
from countersign.domain.decision import approvers, approving, break_glass_needs
from countersign.domain.durations import duration
from countersign.domain.escalation import OUT_OF_BUDGET, Escalation
from countersign.domain.execution import MAY_BE_THERE, Execution
from countersign.domain.identity import PersonId
from countersign.domain.need import Approver, Need, Tick, ticks, unmet
from countersign.domain.operation import Operation
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal
from countersign.domain.question import Answering, Asked, Question, QuestionStatus
from countersign.domain.state import State

_WORKERS = {
    State.CREATED: "an agent worker",
    State.RUNNING: "an agent worker",
    State.EXECUTING: "a gateway worker",
    State.WAITING_RETRY: "a gateway worker, which tries again",
    State.OUTCOME_UNKNOWN: "a gateway worker, which looks it up; nothing is sent anew until that is known or settled",
}
_ENDS = {
    State.REJECTED: "people said no",
    State.EXPIRED: "expired, not executed: nobody decided in time, and nobody said no",
    State.WITHDRAWN: "withdrawn by whoever asked",
    State.FAILED: "failed: it could not go on",
}
_CANCELLATIONS = {
    "superseded": "superseded: another operation of the same requester took its place",
    "newer_proposal": "cancelled: another run of the operation has proposed since",
    "cancelled_by_operator": "cancelled by a person who may end runs",
    "nothing_to_follow": "cancelled: what it was to follow came to no effect",
}
_UNANSWERED = "expired, not executed: nobody answered the agent in time, and nobody said no"
_FAILURES = {
    OUT_OF_BUDGET: "failed: its budget for models is used up, and no policy says who may raise it",
    "too_many_pending": "failed: too much of the tenant waits for people already; ask again once less of it does",
}
"""Of every case, beside what the case itself says."""


def waits_for(session: Session, run: RunNow, now: datetime) -> str:
    """Who moves next; nobody, as an empty text, where a run has ended."""
    state, pending = run.operation.state, run.pending
    if state == State.WAITING_RETRY and run.approval is not None:
        return _unfreezers(session, run.approval.proposal) or _WORKERS[state]
    if state == State.HUMAN_TAKEOVER:
        return _owner(run)
    if run.question is not None and state in (State.WAITING_ANSWER, State.ESCALATED):
        return _asked_by_agent(run.question, run.operation.requester, now)
    if state == State.ESCALATED and run.escalation is not None:
        return _answerer(run.escalation)
    if state in (State.WAITING_APPROVAL, State.ESCALATED) and pending is not None:
        return ", ".join(asked_of(need, pending.proposal, now) for need in missing(session, pending))
    return _WORKERS.get(state, "")


def not_known(execution: Execution | None) -> str:
    """What is not known of an effect, and what that forbids; empty where it is known."""
    if execution is None or execution.status not in MAY_BE_THERE:
        return ""
    return (
        "whether it took effect; ask the outside system for the key, and nothing may be sent anew, under whatever key,"
        " until that is known or settled"
    )


def ended_as(operation: Operation) -> str:
    """What an end means, so that none is taken for another; empty where it has not ended, or was done."""
    from countersign.bootstrap import stops

    code = operation.reason.partition(":")[0]
    if operation.state == State.CANCELLED:
        return _CANCELLATIONS.get(code, "cancelled at the Temporal server")
    if operation.state == State.FAILED:
        return (_FAILURES | dict(stops(operation.case))).get(code, _ENDS[State.FAILED])
    if code == "unanswered_at_deadline":
        return _UNANSWERED
    return _ENDS.get(operation.state, "")


def control_line(control: Control) -> str:
    """`lea since 2026-11-30T09:00:00Z, version 2, until 2026-11-30T10:00:00Z unless used before`."""
    until = control.lease_until
    lease = f", until {moment(until)} unless used before" if until is not None else ""
    return f"{control.holder()} since {moment(control.since)}, version {control.version}{lease}"


def control_now(run: RunNow, *, drafted: bool) -> str:
    """Who is in control of a run as it stands; nobody of one that has ended, and no agent where nothing is drafted."""
    if run.state.terminal:
        return "nobody any more: the run has ended"
    if run.control.by == "agent" and not drafted:
        return f"no agent: {run.operation.requester} asked, and nothing is drafted"
    return control_line(run.control)


def good_until(approval: Approval) -> datetime | None:
    """Until when a grant can be executed (G25), from its deciding vote; nothing where there is no grant now."""
    if approval.status != ApprovalStatus.GRANTED:
        return None
    proposal, votes = approval.proposal, approval.votes
    if not votes:
        return proposal.execute_by
    by_glass = votes[-1].decision == "break_glass"
    needs = break_glass_needs(proposal) if by_glass else proposal.assessment.needs
    decided = max(vote.decided_at for vote in votes)
    return min([proposal.execute_by, *(decided + duration(need.execute_within) for need in needs)])


def time_left(approval: Approval) -> tuple[str, str]:
    """The time that matters as it stands, as a line: for the decision, or for the execution of what was granted."""
    until = good_until(approval)
    if until is not None:
        return "good until", f"{moment(until)}; not executed by then, it has to be asked for again"
    undecided = approval.status in (ApprovalStatus.PENDING, ApprovalStatus.EXPIRED)
    return "deadline", moment(approval.proposal.deadline) if undecided else ""


def asked_of(need: Need, proposal: Proposal, now: datetime) -> str:
    """`1 of role reviewer or lead`: the roles that are asked by now."""
    return f"{need.approvals} of role {' or '.join(need.roles(proposal.waited(now)))}"


def askable(question: Question, requester: PersonId, now: datetime) -> str:
    """Who is asked to answer the agent by now: `role lead, or rita, who asked for the operation`."""
    roles = f"role {' or '.join(question.asked(now))}"
    return f"{roles}, or {requester}, who asked for the operation" if question.requester_may_answer else roles


def answering_text(answering: Answering | None) -> str:
    """Who answers the agent by a policy, how often, and what silence comes to."""
    if answering is None:
        return "nobody: whatever the agent would ask is refused to it"
    own = ", or whoever asked for the operation where it is a plain question" if answering.requester else ""
    ladder = answering.ladder
    steps = [*(f"reminded after {after}" for after in ladder.remind),
             *(f"role {tier.role} too after {tier.after}" for tier in ladder.tiers)]  # fmt: skip
    silence = "the run is held" if ladder.then == "freeze" else "the run ends as expired"
    parts = [f"role {answering.role}{own}", f"at most {answering.at_most} questions of one run", *steps]
    return "; ".join([*parts, f"unanswered after {answering.within} {silence}"])


def no_question(run: RunNow) -> str:
    """Why nothing of the agent's waits for an answer: `the agent's question 1 was answered by lea at ...`."""
    if run.asked is None:
        return f"the agent has asked nothing; its run is {run.state.value}"
    question, status, answered = run.asked
    by = f" by {answered.person} at {moment(answered.at)}" if answered is not None else ""
    return f"the agent's question {question.number} was {status.value}{by}; its run is {run.state.value}"


def next_question_tick(asked: Asked, now: datetime) -> Tick | None:
    """The next reminder or tier of a question that waits for people."""
    if asked.status != QuestionStatus.PENDING:
        return None
    return next((tick for tick in asked.question.ticks() if tick.at > now), None)


def next_tick(approval: Approval | None, now: datetime) -> Tick | None:
    """The next reminder or tier of an approval that waits for people."""
    if approval is None or approval.status != ApprovalStatus.PENDING:
        return None
    proposal = approval.proposal
    due = ticks(proposal.assessment.needs, proposal.proposed_at, proposal.deadline)
    return next((tick for tick in due if tick.at > now), None)


def tick_line(tick: Tick | None) -> str:
    """`2026-11-30T09:05:00Z: further people are asked: lead`; empty for none."""
    if tick is None:
        return ""
    if tick.kind == "remind":
        return f"{moment(tick.at)}: reminded: {', '.join(tick.roles)}"
    further, *told = tick.roles
    others = f"; told: {', '.join(told)}" if told else ""
    return f"{moment(tick.at)}: further people are asked: {further}{others}"


def escalation_lines(escalation: Escalation | None, cause: str) -> list[tuple[str, str]]:
    """For what a run was brought before people, and what is suggested to them, as lines; none where it was not."""
    if escalation is None:
        return []
    return [
        ("escalated", f"{escalation.reason.value} ({escalation.code}), {escalation.severity.value}"),
        ("because", cause),
        ("suggested", escalation.suggested_action),
    ]


def counted(session: Session, approval: Approval) -> Mapping[str, Approver]:
    """Whose approvals count so far, as the directory has them now."""
    proposal = approval.proposal
    persons = session.ledger.directory.persons(proposal.tenant)
    return approvers(approving(approval.votes, proposal.assessment.needs), proposal, persons)


def missing(session: Session, approval: Approval) -> Sequence[Need]:
    """The needs that are not met yet; none where the approval is settled, since nobody is asked any more."""
    needs = approval.proposal.assessment.needs
    if approval.status != ApprovalStatus.PENDING or not needs:
        return ()
    return unmet(needs, counted(session, approval))


def broken_glass(approval: Approval) -> str:
    """How far breaking the glass has come: `1 of 2 of role emergency; amy`; empty where nobody did."""
    voters = [vote.person for vote in approval.votes if vote.decision == "break_glass"]
    wanted = "; ".join(map(str, break_glass_needs(approval.proposal)))
    return f"{len(voters)} of {wanted}; {', '.join(voters)}" if voters else ""


def effect(execution: Execution | None, approval: Approval | None) -> list[tuple[str, str]]:
    """What was done, as a line: what the outside calls it, or which change is in force."""
    if execution is None or execution.receipt is None or approval is None:
        return []
    proposal = approval.proposal
    what = proposal.summary if proposal.case == ADMINISTRATION else execution.receipt.reference
    return [(EFFECT_NAMES.get(proposal.action.tool, "executed"), what)]


def _unfreezers(session: Session, proposal: Proposal) -> str:
    """What has to be lifted where freezes hold it; empty if none does."""
    found = holding_tool(session, proposal.tenant, proposal.action.tool)
    numbers = " and ".join(f"freeze {one.number} ({one.reason})" for one in found)
    return f"{numbers} to be lifted; nothing was sent" if found else ""


def _owner(run: RunNow) -> str:
    if run.control.by == "nobody":
        return "somebody who takes it over: nobody is in control, the lease is over"
    return f"{run.control.holder()}, who is in control"


def _asked_by_agent(question: Question, requester: PersonId, now: datetime) -> str:
    what = f"to answer the agent's question {question.number}"
    return f"{askable(question, requester, now)}, {what}, until {moment(question.deadline)}"


def _answerer(escalation: Escalation) -> str:
    until = f", until {moment(escalation.deadline)}" if escalation.deadline is not None else ""
    ways = "raise its budget, take it over or end it" if escalation.out_of_budget else "take it over or end it"
    return f"role {escalation.role}, to {ways} ({escalation.reason.value}){until}"
