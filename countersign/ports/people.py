"""What the ledger keeps of people: who they are, what they may do, and what they decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from countersign.domain.action import Action
from countersign.domain.administration import Authority, Change, DirectoryChange
from countersign.domain.decision import Outcome, Statement
from countersign.domain.directory import Person
from countersign.domain.edit import Edit
from countersign.domain.policy import Policy, Spent, Window
from countersign.domain.proposal import Approval, ApprovalStatus, Assurance, Proposal, Rejection
from countersign.domain.values import Instant, Sha256, Value


class Received(Value):
    """A verified statement as it came to a run."""

    message_id: str
    """The run's own id of the message."""
    transport: str
    statement: Statement
    token: str
    """The compact JWS, or the canonical JSON of a decision that nobody signed."""
    assurance: Assurance
    at: Instant
    """When the run took it in."""


class Approvals(Protocol):
    """Proposals and the decisions about them."""

    def open(self, proposal: Proposal, run_id: str, view: Sha256, now: datetime, room: int) -> Approval:
        """Store a pending (or by rule granted) proposal once per run and approval version (audit `approval.opened` or
        `approval.granted_by_rule`, with the hash of the reviewer's view); a repeat returns the stored one.

        People who are asked are told (a notice). Conflict where control has another version than the proposal's, and
        where another action of the operation may have taken effect (G32). TooManyPending (domain.errors) where so many
        approvals and questions of other operations of the tenant wait already as there is `room` for (G41); one that
        waits for nobody needs none.

        One that was edited from an approval carries the editor's vote over where the edit counts as an approval
        (domain.edit.edit_counts), and is then GRANTED at once if nothing is unmet.
        """
        ...

    def get(self, tenant: str, approval_id: str) -> Approval:
        """That approval with its votes, or NotFound."""
        ...

    def line(self, tenant: str, approval_id: str) -> str:
        """The line of runs (ports.Operations.hand_on) that asks about it, or NotFound."""
        ...

    def current(self, tenant: str, operation: str) -> Approval | None:
        """The operation's latest approval."""
        ...

    def pending(self, tenant: str) -> Sequence[Approval]:
        """All that wait for people, the nearest deadline first."""
        ...

    def of_operation(self, tenant: str, operation: str) -> Sequence[Approval]:
        """All approvals that the operation ever had, oldest first."""
        ...

    def targets(self, tenant: str) -> Sequence[str]:
        """Every target that anything was ever proposed for in the tenant, each once, by name."""
        ...

    def decide(self, received: Received, signer: Person, edit: Edit | None = None) -> Outcome:
        """Rule (domain.decision.rule_on) on a verified statement and record the outcome, all in one transaction.

        A statement id that was seen before is a replay (audit `decision.repeated`), or a conflict if its body differs;
        a repeat of the same message id returns the recorded outcome. Exactly one of many concurrent callers settles an
        approval.
        """
        ...

    def record_refusal(
        self, tenant: str, operation: str, message_id: str, transport: str, outcome: Outcome, now: datetime
    ) -> Outcome:
        """Record a message that never became a verified statement (audit `decision.refused`); once per message id."""
        ...

    def settle(self, tenant: str, approval_id: str, status: ApprovalStatus, now: datetime) -> ApprovalStatus:
        """Move a pending approval to EXPIRED or CANCELLED, or a grant under which nothing was sent to CANCELLED.

        No decider is named. Returns how it stands now, which is what a vote that came first has made of it.
        """
        ...

    def mark(self, tenant: str, approval_id: str, tick: int, now: datetime) -> ApprovalStatus:
        """Record that a tick (domain.need.ticks, counted from 0) of a pending approval came (audit
        `approval.reminded` or `approval.escalated`, a notice), each once (G27); returns how the approval stands.

        InputRefused before its time, and for a tick that there is not. Nothing is recorded once it is settled.
        """
        ...

    def void(
        self, tenant: str, approval_id: str, reason: str, expected: str, found: str, now: datetime
    ) -> ApprovalStatus:
        """Void a grant under which nothing was sent (audit `approval.voided` with what was expected and found).

        Returns how it stands now.
        """
        ...

    def void_reason(self, tenant: str, approval_id: str) -> str:
        """Why that approval was voided, as a sentence; empty if it was not."""
        ...

    def spent(
        self, action: Action, windows: Sequence[Window], before: Approval | None, now: datetime
    ) -> tuple[Spent, ...]:
        """What other operations' actions of the same tenant, tool and currency come to in each window (G08).

        Counted: what is pending or granted, and what was executed within the window. `before`: only approvals opened
        earlier than the one of this id; of two that were opened at once, at least one then sees the other.
        """
        ...

    def approved_by(self, person: Person, action: Action, now: datetime) -> int:
        """Minor units in the action's currency that the person approved within their limit's window, other operations'
        actions only; 0 where the action has no amount or the person's limit no window."""
        ...

    def rejection_like(self, action: Action, since: datetime) -> Rejection | None:
        """The tenant's latest rejection of an action of the same likeness at or after `since`."""
        ...


class Adopted(Value):
    """A policy in force."""

    policy: Policy
    since: Instant
    basis: str
    """By what right it came in force: `first_set_up`, or the operation."""


class Directory(Protocol):
    """Persons and keys of tenants, and the policies in force there.

    Changed in two ways only: directly while the first set-up of a tenant is open (every record then says
    `basis: first_set_up`), and afterwards by `apply`, which the gateway calls with an executed action (G13).
    """

    def person(self, tenant: str, person: str) -> Person | None:
        """The person, or nothing; tenants never see each other's."""
        ...

    def persons(self, tenant: str) -> dict[str, Person]:
        """All of a tenant by id."""
        ...

    def policies(self, tenant: str) -> dict[str, Policy]:
        """The policies in force by name."""
        ...

    def adopted(self, tenant: str) -> Mapping[str, Adopted]:
        """The same, with since when and by what right."""
        ...

    def authority(self, tenant: str) -> Authority:
        """Persons, and policies and freezes in force, as they are at one moment."""
        ...

    def tenants(self) -> Sequence[str]:
        """Every tenant with persons, operations, audit records or a checkpoint."""
        ...

    def set_up_open(self, tenant: str) -> bool:
        """Whether the tenant's first set-up is still open; also for a tenant that nobody knows."""
        ...

    def set_up(self, tenant: str, change: DirectoryChange, subject: str, now: datetime) -> None:
        """Make a change directly (audit `directory.person_changed`, `.key_added`, `.key_revoked`).

        NotAuthorised once the set-up is closed; InputRefused for a change with problems other than a lock-out.
        """
        ...

    def adopt(self, tenant: str, policies: Sequence[Policy], subject: str, now: datetime) -> None:
        """Put policies in force while the first set-up is open, in place of those of their names (audit
        `policy.adopted`); NotAuthorised once it is closed."""
        ...

    def close_set_up(self, tenant: str, subject: str, now: datetime) -> bool:
        """End the first set-up (audit `set_up.closed`); from then on only governed actions change anything. False, and
        nothing done, where it is closed already.

        InputRefused where the tenant could then never change its own directory (domain.administration.lockout).
        """
        ...

    def apply(self, tenant: str, change: Change, action: Action, now: datetime) -> None:
        """Make a governed change once (audit as in `set_up`, or `policy.adopted`, or `effects.unfrozen` and a notice,
        each with `basis: OPERATION`), keyed on the action's idempotency key.

        Drifted where what it is about is no longer what the action's evidence hash says; InputRefused for problems.
        """
        ...

    def applied(self, tenant: str, key: str) -> bool:
        """Whether the change of that idempotency key was made."""
        ...
