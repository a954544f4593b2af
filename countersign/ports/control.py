"""What the ledger keeps of who is in control of a run, of what was brought before people, and of what they are told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Protocol

from pydantic import Field

from countersign.domain.command import Command, Ending
from countersign.domain.control import Control
from countersign.domain.decision import Outcome
from countersign.domain.directory import Person
from countersign.domain.draft import DraftObject
from countersign.domain.escalation import Escalation, Reason, Route
from countersign.domain.freeze import Freeze
from countersign.domain.model_call import Budget
from countersign.domain.notice import Notice
from countersign.domain.question import Answer
from countersign.domain.values import Instant, Sha256, Value


class ReceivedCommand(Value):
    """A verified command as it came to a run."""

    message_id: str
    """The run's own id of the message."""
    transport: str
    command: Command
    token: str
    """The compact JWS."""
    at: Instant
    """When the server recorded it, or the run took it in."""


class Amendment(Value):
    """What the content of a command comes to; nothing of it where the command has no content."""

    draft: DraftObject | None = None
    """amend: the new draft."""
    answers: Annotated[tuple[Answer, ...], Field(strict=False)] = ()
    """answer: what it says of each call."""
    budget: Budget | None = None
    """raise_budget: what it adds."""
    problem: str = ""
    """What is wrong with the content, in a sentence."""


class Standing(Value):
    """How a run stands after a command."""

    control: Control
    ending: Ending | None
    """How people ended it, where they did."""
    draft_version: int
    """The latest draft version, which a command may have made."""


class Controls(Protocol):
    """Who is in control of each run, and the commands that changed it."""

    def standing(self, tenant: str, operation: str) -> Standing:
        """How the operation stands; one that nobody took over is the agent's since it was registered."""
        ...

    def history(self, tenant: str, operation: str) -> Sequence[Control]:
        """Everyone who was in control, oldest first."""
        ...

    def command(self, received: ReceivedCommand, signer: Person, amendment: Amendment) -> Outcome:
        """Rule (domain.command.rule_on_command) on a verified command and do what it says, all in one transaction.

        Ids and repeats as in `Approvals.decide`: a statement id seen before (of a decision too) is a replay (audit
        `command.repeated`) or a conflict, a repeated message id returns the recorded outcome. An accepted one (audit
        `command.accepted`, else `command.refused`) does, by its kind:

        take_over, hand_over, release: control with the next version (audit `control.changed`), the current approval
        SUPERSEDED unless something may be on its way under it, an open escalation answered (`escalation.answered`).
        amend: the next draft version, written by its signer.
        amend, grade, propose: the current approval SUPERSEDED and an open escalation answered in the same way, and the
        lease begins anew.
        answer: the pending question is ANSWERED (audit `question.answered` with the hash of the answers).
        raise_budget: what it adds counts from now on (ModelCalls.raises; audit `budget.raised`), and an open escalation
        for an exceeded budget is answered.
        settle: what it says is kept (Executions.settlements); the gateway counts it, and records what that comes to.
        withdraw, supersede, cancel: the run is ended (audit `run.ended_by_person`), the current approval WITHDRAWN,
        SUPERSEDED or CANCELLED.
        """
        ...

    def would(self, command: Command, signer: Person, now: datetime) -> Outcome:
        """What `command` would say of one never seen before whose content is in order, were it received at `now`.

        Changes and records nothing. NotFound where there is no such operation.
        """
        ...

    def lapse(self, tenant: str, operation: str, version: int, now: datetime) -> Control:
        """Control to nobody where `version` is still in force and its lease is over at `now` (audit `control.lapsed`),
        the current approval SUPERSEDED as in `command`; returns who is in control now."""
        ...


class Escalations(Protocol):
    """What was brought before people because a run could not go on."""

    def open(
        self, tenant: str, operation: str, reason: Reason, route: Route, code: str, attempts: int, last_error: str,
        snapshot: Sha256, now: datetime,
    ) -> Escalation:  # fmt: skip
        """Open one (audit `escalation.raised`, a notice); a repeat while one of the same reason and code is open gives
        that one."""
        ...

    def close_unanswered(self, tenant: str, operation: str, number: int, now: datetime) -> Escalation:
        """The deadline passed (audit `escalation.unanswered`, a notice); one that was answered stays as it is.

        InputRefused before its deadline.
        """
        ...

    def of_operation(self, tenant: str, operation: str) -> Sequence[Escalation]:
        """All of an operation, oldest first."""
        ...

    def waiting(self, tenant: str) -> Sequence[Escalation]:
        """All that are open, the nearest deadline first, those without one last."""
        ...


class Freezes(Protocol):
    """What holds effects at the gateway."""

    def freeze(self, tenant: str, token: str, now: datetime) -> Freeze:
        """Hold every effect of the tenant, or of one tool, as the signed order `token` says (audit `effects.frozen`
        with its hash, a notice); a repeat of the same token returns the stored one.

        Raises:
            NotFound: nobody knows the tenant.
            StatementRefused: it is no order for this installation by a person of the tenant with a good key.
            NotAuthorised: the signer has neither the role `operator` nor the one that asks for changes of authority.
            InputRefused: it is about the tool of a change of authority, which is never held.
        """
        ...

    def of_tenant(self, tenant: str) -> Sequence[Freeze]:
        """All of a tenant, lifted ones too, oldest first."""
        ...


class Delivery(Value):
    """One notice on its way to one address."""

    tenant: str
    number: Annotated[int, Field(ge=1)]
    """The notice's, counted per tenant."""
    target: str
    """The address's name in notifications.yaml."""
    notice: Notice
    attempts: Annotated[int, Field(ge=0)]
    """How often it was tried."""
    status: str
    """`waiting`, `delivered` or `failed`."""
    next_at: Instant
    """When it is due."""
    error: str
    """What went wrong last; empty if nothing."""


class Outbox(Protocol):
    """Notices, written in the transaction of what they tell of, and their deliveries."""

    def unaddressed(self, tenant: str, limit: int) -> Sequence[tuple[int, Notice]]:
        """Notices for which no address was chosen yet, oldest first, with their numbers."""
        ...

    def address(self, tenant: str, number: int, targets: Sequence[str], now: datetime) -> None:
        """Choose the addresses of a notice, once; none is a choice too (audit `notice.unaddressed`)."""
        ...

    def untold(self, tenant: str) -> Sequence[tuple[int, Notice]]:
        """Notices that no address took, newest first, with their numbers."""
        ...

    def take(self, tenant: str, now: datetime, until: datetime, limit: int) -> Sequence[Delivery]:
        """The sole right, until `until`, to try what is due at `now`; each is counted as tried once more by that."""
        ...

    def delivered(self, delivery: Delivery, now: datetime) -> None:
        """It arrived (audit `notice.delivered`)."""
        ...

    def failed(self, delivery: Delivery, error: str, retry_at: datetime | None, now: datetime) -> None:
        """It did not. Without `retry_at` it is given up (audit `notice.failed`), and a notice DELIVERY_FAILED of high
        severity is written for the role `operator`, unless it was one itself."""
        ...

    def deliveries(self, tenant: str) -> Sequence[Delivery]:
        """All of a tenant, newest notice first."""
        ...
