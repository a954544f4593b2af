"""A proposal: one version of an action as it is put before people, and how it stands."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from countersign.domain.action import Action, Reversibility
from countersign.domain.directory import Person, Role
from countersign.domain.escalation import Reason
from countersign.domain.identity import PersonId
from countersign.domain.need import DecisionKind, Need
from countersign.domain.policy import Assessment, Spent, Terms
from countersign.domain.values import Instant, Sha256, Value

StatementKind = Literal["approve", "edit", "reject", "respond", "break_glass"]
"""What a signed statement can say; a policy offers `approve`, `edit` and `reject`, its terms the rest."""

YES: frozenset[StatementKind] = frozenset({"approve", "edit", "break_glass"})
"""Those by which a person lets the action happen."""

Assurance = Literal["signed", "namespace-only"]
"""What a decision rests on: a person's key, or, in the `dev` profile alone, access to the Temporal namespace."""


class Rejection(Value):
    """An earlier no to an action like this one."""

    operation: str
    person: PersonId
    at: Instant
    comment_hash: Sha256 | Literal[""]


class Proposal(Value):
    """Everything a reviewer is asked to decide about; frozen once it is made."""

    approval_id: str
    approval_version: Annotated[int, Field(ge=1)]
    case: str
    control_version: Annotated[int, Field(ge=1)] = 1
    """Who was in control when it was proposed; under another version it is executed no more (G29)."""
    proposed_by: Literal["agent"] | PersonId = "agent"
    """Who put it before people; a person who did may not approve it (they are among the authors)."""
    action: Action
    action_hash: Sha256
    requester: PersonId
    """The person who signed the request, whom the agent acts for; may not approve (G02)."""
    authors: Annotated[tuple[PersonId, ...], Field(strict=False)] = ()
    """Whoever made the action beside the agent (see `authors_of`); may not approve it beside an edit itself (G02)."""
    edited_from: str = ""
    """The approval whose action was edited into this one."""
    asked_again: str = ""
    """Why it is asked anew, where a grant became void before it was executed."""
    brought_before_people: Annotated[tuple[Annotated[Reason, Field(strict=False)], ...], Field(strict=False)] = ()
    """Why the run could not go on by itself before this, each reason once: whoever decides is to know of it."""
    reason: str
    """Why the action is proposed: the requester's question."""
    summary: str
    """The draft's title, or what a change comes to."""
    document: Sha256
    """The bytes that would go out, in the ledger."""
    live: Sha256 | Literal[""] = ""
    """The bytes that lie at the target now, as far as the ledger knows; empty: nothing."""
    evidence: Annotated[tuple[str, ...], Field(strict=False)]
    """References to the data it rests on: file name and hash."""
    reversibility: Reversibility
    cost: str
    """What the effect itself costs, in words."""
    draft_version: Annotated[int, Field(ge=0)]
    """0 where the case has no draft."""
    verdict: str
    checks: str
    """What the deterministic checks said, in a sentence."""
    rubric_version: str
    model_version: str
    """The models that drafted and graded."""
    assessment: Assessment
    """What the policy says, with the needs in `floor`."""
    spent: Annotated[tuple[Spent, ...], Field(strict=False)] = ()
    """The earlier amounts that it was assessed with."""
    floor: Annotated[tuple[Need, ...], Field(strict=False)] = ()
    """Needs of an earlier version of this very ask, which a later policy cannot take away (G12)."""
    terms: Terms
    """The policy's, pinned."""
    earlier_rejection: Rejection | None = None
    """People's no to an action like this one, within the policy's time."""
    proposed_at: Instant
    deadline: Instant
    """From this instant on it is expired."""
    execute_by: Instant
    """From this instant on a grant is void, however it came about (G25)."""

    @property
    def tenant(self) -> str:
        """Whose business it is."""
        return self.action.tenant

    @property
    def operation(self) -> str:
        """Which operation it belongs to."""
        return self.action.operation

    @property
    def decisions(self) -> frozenset[DecisionKind]:
        """The decisions that every need allows its first line; `edit` only where the terms say what may be edited."""
        return self._allowed_by_all(frozenset(need.decisions) for need in self.assessment.needs)

    def waited(self, moment: datetime) -> timedelta:
        """How long people have waited for a decision at `moment`, which says who is asked by then."""
        return moment - self.proposed_at

    def asked(self, moment: datetime) -> tuple[Role, ...]:
        """The roles that are asked at `moment`, each once."""
        needs = self.assessment.needs
        return tuple(dict.fromkeys(role for need in needs for role in need.roles(self.waited(moment))))

    def offered(self, moment: datetime) -> frozenset[DecisionKind]:
        """The decisions that anybody may take at `moment`."""
        return self._allowed_by_all(need.offered(self.waited(moment)) for need in self.assessment.needs)

    def allowed(self, person: Person, moment: datetime) -> frozenset[DecisionKind]:
        """The decisions that every need allows this person at `moment`; whether they are asked at all aside."""
        return self._allowed_by_all(need.allowed(person, self.waited(moment)) for need in self.assessment.needs)

    def _allowed_by_all(self, by_need: Iterable[frozenset[DecisionKind]]) -> frozenset[DecisionKind]:
        allowed = tuple(by_need)
        shared: frozenset[DecisionKind] = frozenset.intersection(*allowed) if allowed else frozenset()
        return shared if self.terms.editing is not None else shared - {"edit"}


class ApprovalStatus(StrEnum):
    """How a proposal stands; everything but `pending` and `granted` is final (G10)."""

    PENDING = "pending"
    GRANTED = "granted"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    """The requester took the request back."""
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    """A newer proposal of the operation took its place."""
    EDITED = "edited"
    """A reviewer changed the action; its next version is another proposal."""
    VOIDED = "voided"
    """What it rested on had changed when it was to be executed."""
    CONSUMED = "consumed"
    """Executed; the grant is used up."""


class Vote(Value):
    """One accepted decision."""

    person: PersonId
    decision: StatementKind
    assurance: Assurance = "signed"
    statement_id: str
    statement: str
    """The compact JWS as it came, so that anyone can verify it again."""
    comment_hash: Sha256 | Literal[""] = ""
    edited_action: Sha256 | Literal[""] = ""
    """Hash of the action that an edit makes of the proposal; empty for all other decisions."""
    decided_at: Instant


class Approval(Value):
    """A proposal with its votes."""

    proposal: Proposal
    status: ApprovalStatus
    votes: Annotated[tuple[Vote, ...], Field(strict=False)] = ()


def authors_of(before: Approval | None, proposed_by: str, writers: Iterable[str]) -> tuple[str, ...]:
    """Who made an action beside the agent, each once; they stay its authors when it is asked anew (G02).

    Args:
        before: the version that it follows, where there is one.
        proposed_by: `agent`, or the person who puts it before people.
        writers: the persons who wrote any version of its draft.
    """
    earlier = before.proposal.authors if before is not None else ()
    editors = [vote.person for vote in before.votes if vote.decision == "edit"] if before is not None else []
    proposer = [proposed_by] if proposed_by != "agent" else []
    return tuple(dict.fromkeys((*earlier, *editors, *writers, *proposer)))
