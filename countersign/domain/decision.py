"""Decisions: what a person signs, and the ruling on it. Pure, so that every refusal is a line of a table in a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from countersign.domain import edit as edits
from countersign.domain.action import Action
from countersign.domain.directory import Person
from countersign.domain.durations import duration
from countersign.domain.edit import Edit
from countersign.domain.identity import OperationId, PersonId, TenantId
from countersign.domain.need import Approver, Ladder, Need, asks_two_persons, unmet
from countersign.domain.proposal import YES, Approval, ApprovalStatus, Assurance, Proposal, StatementKind, Vote
from countersign.domain.values import Instant, Sha256, Value

DECIDE = "decide"
"""The signal's and the update's name under which a run takes decisions; one JSON object each."""


class Statement(Value):
    """The signed form of a decision; each field is bound by the signature, so it is good nowhere else (G16, G20)."""

    installation: str
    person: PersonId
    key_id: str
    """Empty for a decision that nobody signed; see Assurance."""
    tenant: TenantId
    operation: OperationId
    approval_id: str
    approval_version: Annotated[int, Field(ge=1, le=1_000_000)]
    action_hash: Sha256
    decision: StatementKind
    edited_action: Sha256 | Literal[""] = ""
    """Hash of the action as edited; the action lies in the ledger's documents under it. Empty for all but `edit`."""
    comment_hash: Sha256 | Literal[""] = ""
    issued_at: Instant
    expires_at: Instant
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{16,64}$")]
    """Unique per decision; a second use is a replay (G17)."""


class Ruling(StrEnum):
    """What became of a message; the words that people and records read."""

    ACCEPTED = "accepted"
    REPLAY = "replay"
    ID_CONFLICT = "id_conflict"
    MALFORMED = "malformed"
    UNKNOWN_MESSAGE = "unknown_message"
    BAD_STATEMENT = "bad_statement"
    NOT_THIS_APPROVAL = "not_this_approval"
    NOT_THIS_VERSION = "not_this_version"
    NOT_THIS_ACTION = "not_this_action"
    NOTHING_PENDING = "nothing_pending"
    LATE = "late"
    ALREADY_SETTLED = "already_settled"
    RESPOND_IS_FOR_QUESTIONS = "respond_is_for_questions"
    DECISION_NOT_ALLOWED = "decision_not_allowed"
    REQUESTER_MAY_NOT_DECIDE = "requester_may_not_decide"
    ONLY_REQUESTER_WITHDRAWS = "only_requester_withdraws"
    AUTHOR_MAY_NOT_APPROVE = "author_may_not_approve"
    ROLE_MISSING = "role_missing"
    SIGNATURE_NEEDED = "signature_needed"
    REASON_MISSING = "reason_missing"
    EXPIRES_TOO_SOON = "expires_too_soon"
    LIMIT_EXCEEDED = "limit_exceeded"
    EDIT_REFUSED = "edit_refused"
    ALREADY_VOTED = "already_voted"
    ENDED = "ended"
    TOO_LATE = "too_late"
    STALE_CONTROL = "stale_control"
    HELD = "held"
    NOT_IN_CONTROL = "not_in_control"
    RECEIVER_REFUSED = "receiver_refused"
    SUCCESSOR_REFUSED = "successor_refused"
    CONTENT_REFUSED = "content_refused"
    NOTHING_UNKNOWN = "nothing_unknown"
    BEING_LOOKED_UP = "being_looked_up"
    NOT_INDEPENDENT = "not_independent"
    NOTHING_ASKED = "nothing_asked"
    STALE_QUESTION = "stale_question"
    BUDGET_NOT_EXCEEDED = "budget_not_exceeded"


MEANING: dict[Ruling, str] = {
    Ruling.ACCEPTED: "it counts",
    Ruling.REPLAY: "this very statement was recorded before; it counts once",
    Ruling.ID_CONFLICT: "another statement used the same id; sign a new one",
    Ruling.MALFORMED: "the message does not have its form; nothing was changed",
    Ruling.UNKNOWN_MESSAGE: "the run knows no message of that name; nothing was changed",
    Ruling.BAD_STATEMENT: "the signed statement is not acceptable; nothing was changed",
    Ruling.NOT_THIS_APPROVAL: "the statement is for another approval or operation; look at what is open and sign again",
    Ruling.NOT_THIS_VERSION: "the statement is for another version of the proposal; look at it and sign again",
    Ruling.NOT_THIS_ACTION: "the statement is for another action than the one proposed; look at it and sign again",
    Ruling.NOTHING_PENDING: "nothing waits for a decision in this run",
    Ruling.LATE: "expired, not executed: the deadline had passed",
    Ruling.ALREADY_SETTLED: "already settled; a settled approval never changes",
    Ruling.RESPOND_IS_FOR_QUESTIONS: "respond answers a question; an outward action is approved, edited or rejected",
    Ruling.DECISION_NOT_ALLOWED: "the policy does not allow this kind of decision here",
    Ruling.REQUESTER_MAY_NOT_DECIDE: "whoever asked for the action cannot decide about it",
    Ruling.ONLY_REQUESTER_WITHDRAWS: "only whoever asked for the action can withdraw it; to refuse it, reject it",
    Ruling.AUTHOR_MAY_NOT_APPROVE: "whoever wrote, edited or proposed the action cannot approve it; others must",
    Ruling.ROLE_MISSING: "a role that this approval needs is missing",
    Ruling.SIGNATURE_NEEDED: "two persons are needed here, and only signed decisions count towards that",
    Ruling.REASON_MISSING: "breaking the glass needs a reason; give it as the comment",
    Ruling.EXPIRES_TOO_SOON: "the statement would be void before the deadline; sign one that is good until then",
    Ruling.LIMIT_EXCEEDED: "the amount is beyond what this person may approve",
    Ruling.EDIT_REFUSED: "the action may not be edited so",
    Ruling.ALREADY_VOTED: "this person has decided about the proposal before; one person counts once",
    Ruling.ENDED: "the run has ended; nothing was changed",
    Ruling.TOO_LATE: "its effect may be on its way, or is there; nothing was changed",
    Ruling.STALE_CONTROL: "control has changed hands since; look at the run and sign again",
    Ruling.HELD: "somebody else is in control",
    Ruling.NOT_IN_CONTROL: "only the person in control may do this",
    Ruling.RECEIVER_REFUSED: "that person cannot be handed control",
    Ruling.SUCCESSOR_REFUSED: "that operation cannot take this one's place",
    Ruling.CONTENT_REFUSED: "what was signed does not fit; nothing was changed",
    Ruling.NOTHING_UNKNOWN: "no effect of that key has an unknown outcome; nothing was changed",
    Ruling.BEING_LOOKED_UP: "the gateway is asking the outside system at this moment; send it again in a minute",
    Ruling.NOTHING_ASKED: "the agent waits for no answer; nothing was changed",
    Ruling.STALE_QUESTION: "the agent asks something else by now; look at it and sign again",
    Ruling.BUDGET_NOT_EXCEEDED: "the run does not wait for a larger budget; nothing was changed",
    Ruling.NOT_INDEPENDENT: "whoever asked for the action or made it cannot settle what became of it; others must",
}

ENDS_AS: Mapping[StatementKind, ApprovalStatus] = {
    "reject": ApprovalStatus.REJECTED, "edit": ApprovalStatus.EDITED,
}  # fmt: skip
"""The decisions that settle an approval by themselves, and how; any yes may need others."""


class Outcome(Value):
    """The answer to one message."""

    ruling: Ruling
    detail: str = ""
    """More about a refusal: which check failed."""
    status: ApprovalStatus | None = None
    """How the approval stands after the message, where there is one."""

    @property
    def counts(self) -> bool:
        """Whether the statement counts, by this message or by an earlier one that brought the very same."""
        return self.ruling == Ruling.ACCEPTED or (self.ruling == Ruling.REPLAY and not self.detail)

    @property
    def refuses(self) -> bool:
        """Whether a statement was refused here. The same one once more is not: a client sends it again by itself where
        nobody answered, and what became of it stands beside its first message."""
        return self.ruling not in (Ruling.ACCEPTED, Ruling.REPLAY)

    def record_type(self, kind: str) -> str:
        """What the audit calls it: `decision.accepted`, `.refused` or `.repeated`."""
        ways = {Ruling.ACCEPTED: "accepted", Ruling.REPLAY: "repeated"}
        return f"{kind}.{ways.get(self.ruling, 'refused')}"

    def sentence(self) -> str:
        """One line for the sender."""
        return f"{self.ruling.value}: {self.detail or MEANING[self.ruling]}"


class Background(NamedTuple):
    """What a ruling needs to know beside the statement and the approval."""

    persons: Mapping[str, Person]
    """The tenant's directory by person id, for the earlier voters."""
    now: datetime
    """When the server recorded it, or the run took it in; at the deadline itself it is late (G26)."""
    assurance: Assurance = "signed"
    used: int = 0
    """Minor units that the signer has approved within their limit's window, this operation left out."""
    edit: Edit | None = None
    """What the statement would make of the action, where it is an edit."""


def rule_on(statement: Statement, signer: Person, approval: Approval, background: Background) -> Outcome:
    """Rule on a statement that was verified and not seen before.

    Args:
        statement: what was signed.
        signer: the person the statement belongs to, as the directory has them now.
        approval: the current approval of the statement's operation.
        background: what else is known.
    """
    refused = (
        _wrong_object(statement, approval)
        or _wrong_time(approval, background.now)
        or _wrong_person(statement.decision, signer, approval, background.now)
        or _wrong_content(statement, signer, approval, background)
    )
    if refused is not None:
        return Outcome(ruling=refused[0], detail=refused[1], status=approval.status)
    return Outcome(ruling=Ruling.ACCEPTED, status=_status_after(statement, signer, approval, background))


def may(decision: StatementKind, person: Person, approval: Approval, now: datetime, used: int = 0) -> Outcome:
    """Whether `person` could take `decision` about a pending approval now, and if not, why; for whoever looks at it."""
    # What an edit comes to is not known before it is made; see may_edit.
    action = approval.proposal.action
    limited = None if decision == "edit" else over_limit(decision, person, action, used)
    return _ruled(_wrong_person(decision, person, approval, now) or limited)


def may_edit(edit: Edit, person: Person, approval: Approval, now: datetime, used: int = 0) -> Outcome:
    """Whether `person` could make just this edit of a pending approval now, and if not, why; before they sign it."""
    return _ruled(
        _wrong_person("edit", person, approval, now) or _refused_edit(edit, person, approval.proposal, now, used)
    )


def approving(votes: Iterable[Vote], needs: tuple[Need, ...]) -> tuple[Vote, ...]:
    """The votes that count as approvals of these needs; unsigned ones never towards two persons."""
    two_persons = asks_two_persons(needs)
    return tuple(
        vote for vote in votes
        if vote.decision in ("approve", "edit") and (vote.assurance == "signed" or not two_persons)
    )  # fmt: skip


def approvers(votes: Iterable[Vote], proposal: Proposal, persons: Mapping[str, Person]) -> dict[str, Approver]:
    """Who cast these votes, as the directory has them now, and how long people had waited for `proposal` by then.

    The vote of an edit is older than the proposal that it made, so there it counts for nobody but the first line.
    """
    return {
        vote.person: Approver(persons[vote.person], proposal.waited(vote.decided_at))
        for vote in votes if vote.person in persons
    }  # fmt: skip


_Refusal = tuple[Ruling, str]


def _ruled(refused: _Refusal | None) -> Outcome:
    return Outcome(ruling=refused[0], detail=refused[1]) if refused else Outcome(ruling=Ruling.ACCEPTED)


def _status_after(statement: Statement, signer: Person, approval: Approval, background: Background) -> ApprovalStatus:
    if statement.decision in ENDS_AS:
        return ENDS_AS[statement.decision]
    proposal = approval.proposal
    needs, counted = _asked(statement, approval)
    this_one = Approver(signer, proposal.waited(background.now))
    agreed = {**approvers(counted, proposal, background.persons), signer.id: this_one}
    return ApprovalStatus.PENDING if unmet(needs, agreed) else ApprovalStatus.GRANTED


def _asked(statement: Statement, approval: Approval) -> tuple[tuple[Need, ...], tuple[Vote, ...]]:
    """The needs that this vote goes towards, and the votes for them before."""
    proposal = approval.proposal
    if statement.decision == "break_glass":
        breaking = tuple(vote for vote in approval.votes if vote.decision == "break_glass")
        return break_glass_needs(proposal), breaking
    return proposal.assessment.needs, approving(approval.votes, proposal.assessment.needs)


def break_glass_needs(proposal: Proposal) -> tuple[Need, ...]:
    """What breaking the glass needs in place of the rules' needs; nothing where the policy leaves it off."""
    glass = proposal.terms.break_glass
    if glass is None or not proposal.assessment.needs:
        return ()
    # Whom time alone would bring in cannot break it: no ladder leads past the rules.
    of_its_own = {"decisions": ("approve",), "distinct": False, "ladder": Ladder()}
    first = proposal.assessment.needs[0]
    return (first.model_copy(update={"role": glass.role, "approvals": glass.approvals, **of_its_own}),)


def _wrong_object(statement: Statement, approval: Approval) -> _Refusal | None:
    proposal = approval.proposal
    if (statement.tenant, statement.operation, statement.approval_id) != (
        proposal.tenant,
        proposal.operation,
        proposal.approval_id,
    ):
        return Ruling.NOT_THIS_APPROVAL, ""
    if statement.approval_version != proposal.approval_version:
        return Ruling.NOT_THIS_VERSION, ""
    return (Ruling.NOT_THIS_ACTION, "") if statement.action_hash != proposal.action_hash else None


def _wrong_time(approval: Approval, now: datetime) -> _Refusal | None:
    if approval.status == ApprovalStatus.EXPIRED:
        return Ruling.LATE, ""
    if approval.status != ApprovalStatus.PENDING:
        return Ruling.ALREADY_SETTLED, ""
    return (Ruling.LATE, "") if now >= approval.proposal.deadline else None


def _wrong_person(decision: StatementKind, signer: Person, approval: Approval, now: datetime) -> _Refusal | None:
    """Why this person cannot take this kind of decision here now, whatever it says."""
    proposal = approval.proposal
    if decision == "respond":
        return Ruling.RESPOND_IS_FOR_QUESTIONS, ""
    if signer.id == proposal.requester:
        return Ruling.REQUESTER_MAY_NOT_DECIDE, ""
    glass = break_glass_needs(proposal) if decision == "break_glass" else ()
    # With the glass off it is nobody's, which is told as "not allowed" rather than as a role to be had.
    roles = [need.role for need in glass] or proposal.asked(now)
    if not any(signer.may(role) for role in roles):
        return Ruling.ROLE_MISSING, _asked_later(signer, proposal, now)
    if not glass and decision not in proposal.allowed(signer, now):
        return Ruling.DECISION_NOT_ALLOWED, ""
    if signer.id in proposal.authors and decision in ("approve", "break_glass"):
        return Ruling.AUTHOR_MAY_NOT_APPROVE, ""
    return (Ruling.ALREADY_VOTED, "") if any(vote.person == signer.id for vote in approval.votes) else None


def _asked_later(signer: Person, proposal: Proposal, now: datetime) -> str:
    """From when on this person is asked too, in a sentence; empty where they never are."""
    tiers = [tier for need in proposal.assessment.needs for tier in need.ladder.tiers if signer.may(tier.role)]
    begins = min((proposal.proposed_at + duration(tier.after) for tier in tiers), default=now)
    if not now < begins < proposal.deadline:
        return ""
    return f"you are asked from {begins.isoformat()} on, if nobody has decided by then"


def _wrong_content(statement: Statement, signer: Person, approval: Approval, background: Background) -> _Refusal | None:
    proposal = approval.proposal
    if bool(statement.edited_action) != (statement.decision == "edit"):
        return Ruling.EDIT_REFUSED, "an edit names the edited action, and nothing else does"
    if statement.decision == "edit":
        return _wrong_edit(statement, signer, proposal, background)
    if statement.decision == "break_glass" and not statement.comment_hash:
        return Ruling.REASON_MISSING, ""
    needs, _ = _asked(statement, approval)
    is_yes = statement.decision in ("approve", "break_glass")
    if is_yes and _void_too_soon(statement, proposal, background):
        return Ruling.EXPIRES_TOO_SOON, ""
    if is_yes and background.assurance != "signed" and asks_two_persons(needs):
        return Ruling.SIGNATURE_NEEDED, ""
    return over_limit(statement.decision, signer, proposal.action, background.used)


def _void_too_soon(statement: Statement, proposal: Proposal, background: Background) -> bool:
    """Whether a yes could settle the approval and then be void before it is executed: a no that nobody gave."""
    return background.assurance == "signed" and statement.expires_at < proposal.deadline


def _wrong_edit(statement: Statement, signer: Person, proposal: Proposal, background: Background) -> _Refusal | None:
    edit = background.edit
    if edit is None:
        return Ruling.EDIT_REFUSED, "the edited action is not in the ledger; make the edit anew"
    if edit.action.hash() != statement.edited_action:
        return Ruling.EDIT_REFUSED, "what you signed is not what your changes come to now; make the edit anew"
    if _void_too_soon(statement, proposal, background):
        return Ruling.EXPIRES_TOO_SOON, ""
    return _refused_edit(edit, signer, proposal, background.now, background.used)


def _refused_edit(edit: Edit, signer: Person, proposal: Proposal, now: datetime, used: int) -> _Refusal | None:
    """Why this person cannot change the proposal so now, whatever was signed."""
    problem = edits.refusal(proposal, edit)
    if problem:
        return Ruling.EDIT_REFUSED, problem
    needs = edit.assessment.needs
    asked = {role for need in needs for role in need.roles(proposal.waited(now))}
    if edits.risks_raised(proposal, edit.action, edit.assessment) and not any(signer.may(role) for role in asked):
        by_rule = "would be granted by rule, without people, and the policy counts this change as a risk"
        beyond = "it raises the risk beyond what your roles may decide about"
        return Ruling.EDIT_REFUSED, beyond if needs else f"the edited action {by_rule}"
    return over_limit("edit", signer, edit.action, used)


def over_limit(decision: StatementKind, signer: Person, action: Action, used: int) -> _Refusal | None:
    """Whether a yes to this much money is beyond the signer's own limit; without one, any money is (G08)."""
    if action.amount is None or decision not in YES:
        return None
    limit = signer.limit(action.amount.currency)
    if limit is None:
        return (
            Ruling.LIMIT_EXCEEDED,
            f"no limit in {action.amount.currency} is set for this person, who may approve none",
        )
    if action.amount.minor > limit.each.minor:
        return Ruling.LIMIT_EXCEEDED, f"{action.amount} is more than the {limit.each} that may be approved at once"
    if limit.total is not None and used + action.amount.minor > limit.total.minor:
        return Ruling.LIMIT_EXCEEDED, f"with what was approved before it is more than {limit.total} in {limit.within}"
    return None
