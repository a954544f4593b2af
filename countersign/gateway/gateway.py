"""The gateway's flow: verify the grant, claim the sole right to send, look up or send, record what became of it.

The order of the ledger's records is what makes it safe to be killed anywhere: the intent is recorded before the first
byte leaves, so whoever comes next knows that something may have happened and looks it up under the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from pydantic import ValidationError

from countersign.domain.errors import Conflict, InputRefused, NotAuthorised, NotFound, Unavailable
from countersign.domain.execution import EffectResult, Execution, ExecutionStatus, Receipt
from countersign.domain.policy import Policy
from countersign.domain.proposal import Approval
from countersign.gateway.channels import Channel, NotSent, OutcomeUnknown, Refused
from countersign.gateway.grant import Grants, check_binding
from countersign.gateway.tools import Publication, publication_of
from countersign.ports import Clock, Ledger

Outcome = TypeVar("Outcome")
Step = Literal["claimed", "sent", "recorded"]
CLAIM_MARGIN = timedelta(seconds=5)
"""What a claim is held for beyond a look-up and a send at their limits: the time for recording the outcome."""


_OPEN = (ExecutionStatus.INTENDED, ExecutionStatus.UNKNOWN)


def _no_watch(step: Step) -> None:
    """Nobody watches."""


class Gateway:
    """Fulfils `ports.Effects`. Outcomes are results; only Unavailable is raised, where a part of our own is away."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        channels: Iterable[Channel],
        policies: Iterable[Policy],
        verify_evidence: Callable[[str, str], None],
        installation: str,
        environment: str,
        clock: Clock,
        on_step: Callable[[Step], None] = _no_watch,
    ) -> None:
        """
        Args:
            ledger, policies, verify_evidence, installation, environment: see `Grants`.
            channels: the ways out, each with a name of its own.
            clock: wall time.
            on_step: told after each step that has happened, so that an operator's probe or a test can act between them.
        """
        self._ledger = ledger
        self._channels: Mapping[str, Channel] = {channel.name: channel for channel in channels}
        self._grants = Grants(ledger, policies, verify_evidence, installation=installation, environment=environment)
        self._clock = clock
        self._on_step = on_step

    def execute(self, tenant: str, approval_id: str) -> EffectResult:
        """Make the approved effect happen once; called again, however often, it answers with what is known.

        NOT_SENT: call again later. UNKNOWN: call `reconcile` later; another attempt that holds the claim is answered so
        too, since it may be sending right now. No status: refused, for good.
        """
        return self._answer(tenant, approval_id, self._execute)

    def reconcile(self, tenant: str, approval_id: str) -> EffectResult:
        """Look up what became of an unknown outcome and record it; sends nothing, whatever it finds.

        It needs no grant: a grant that has expired since does not change what lies outside.
        """
        return self._answer(tenant, approval_id, self._reconcile)

    def _answer(self, tenant: str, approval_id: str, do: Callable[[Approval], EffectResult]) -> EffectResult:
        operation = ""
        try:
            approval = self._approval(tenant, approval_id)
            operation = approval.proposal.operation
            check_binding(approval.proposal)
            return do(approval)
        except NotAuthorised as refusal:
            return self._refused(tenant, operation, approval_id, refusal)

    def _execute(self, approval: Approval) -> EffectResult:
        stored = self._stored(approval)
        if stored is not None and stored.status == ExecutionStatus.EXECUTED:
            return _result(stored)
        return self._claim_and_act(approval, self._grants.verify(approval, self._clock()))

    def _reconcile(self, approval: Approval) -> EffectResult:
        stored = self._stored(approval)
        if stored is None:
            return EffectResult(status=ExecutionStatus.NOT_SENT, reason="never_sent: nothing was ever sent")
        return self._claim_and_act(approval, None) if stored.status in _OPEN else _result(stored)

    def _approval(self, tenant: str, approval_id: str) -> Approval:
        try:
            approval = self._ledger.approvals.get(tenant, approval_id)
        except NotFound as missing:
            raise NotAuthorised("approval_not_found", missing.message) from None
        except (InputRefused, ValidationError):
            raise NotAuthorised("approval_unreadable", "the approval is not in the form it was stored in") from None
        if (approval.proposal.tenant, approval.proposal.approval_id) != (tenant, approval_id):
            raise NotAuthorised("approval_changed", "the stored proposal belongs to another approval")
        return approval

    def _refused(self, tenant: str, operation: str, approval_id: str, refusal: NotAuthorised) -> EffectResult:
        """Record a refusal; it does not settle what an earlier attempt may have sent, so that stays unknown."""
        reason = f"{refusal.reason}: {refusal.message}"
        self._ledger.executions.refused(tenant, operation, approval_id, reason, self._clock())
        earlier = self._ledger.executions.get(tenant, operation) if operation else None
        is_open = earlier is not None and earlier.approval_id == approval_id and earlier.status in _OPEN
        return EffectResult(status=ExecutionStatus.UNKNOWN if is_open else None, reason=reason)

    def _stored(self, approval: Approval) -> Execution | None:
        """This very action's execution, if there is one."""
        execution = self._ledger.executions.get(approval.proposal.tenant, approval.proposal.operation)
        return execution if execution and execution.key == approval.proposal.action.idempotency_key() else None

    def _claim(self, approval: Approval, publication: Publication) -> tuple[Execution, bool]:
        """The execution, and whether the right to act on it is ours."""
        now = self._clock()
        until = now + 2 * publication.channel.time_limit + CLAIM_MARGIN
        try:
            execution = self._ledger.executions.claim(approval, publication.key, now, until)
        except Conflict as conflict:
            raise NotAuthorised("claim_refused", conflict.message) from None
        except Unavailable:
            # Either somebody else holds the claim, or has just settled it, which are answers, or the ledger is away.
            held = self._stored(approval)
            if held is None or (held.status == ExecutionStatus.INTENDED and held.claimed_until <= now):
                raise
            return held, False
        if execution.status == ExecutionStatus.EXECUTED:
            return execution, False
        self._on_step("claimed")
        return execution, True

    def _claim_and_act(self, approval: Approval, document: bytes | None) -> EffectResult:
        publication = publication_of(approval.proposal.action, self._channels)
        execution, is_ours = self._claim(approval, publication)
        return self._act(approval, publication, execution, document) if is_ours else _result(execution)

    def _act(
        self, approval: Approval, publication: Publication, execution: Execution, document: bytes | None
    ) -> EffectResult:
        """Look up what an earlier attempt may have done, else send `document` if there is one; record the outcome."""
        executions = self._ledger.executions
        try:
            receipt = self._earlier(approval, publication, execution)
            if receipt is None:
                receipt = self._send(approval, publication, document)
        except (NotSent, Refused) as failure:
            result = self._recorded(executions.not_sent, execution, failure.line())
            is_final = isinstance(failure, Refused) and result.status == ExecutionStatus.NOT_SENT
            return EffectResult(status=None, reason=failure.line()) if is_final else result
        except OutcomeUnknown as failure:
            return self._recorded(executions.unknown, execution, failure.line())
        return self._recorded(executions.finish, execution, receipt)

    def _earlier(self, approval: Approval, publication: Publication, execution: Execution) -> Receipt | None:
        """What an earlier attempt has left outside; None where surely nothing is there (G36)."""
        is_first = execution.status == ExecutionStatus.INTENDED and execution.attempt == 1
        if is_first or execution.status == ExecutionStatus.NOT_SENT:
            return None
        receipt = publication.channel.look_up(publication.key)
        if receipt is not None:
            return _checked(receipt, approval, publication)
        kept = publication.channel.keys_kept
        if kept is not None and self._clock() - _earliest_send(approval) >= kept:
            raise OutcomeUnknown(
                "key_forgotten", f"the outside keeps keys for {kept} only, so a person must look there"
            )
        return None

    def _send(self, approval: Approval, publication: Publication, document: bytes | None) -> Receipt:
        if document is None:
            raise NotSent("not_there", "the outside surely holds nothing under the key; it may be sent again")
        content_hash = approval.proposal.action.content_hash
        receipt = publication.channel.send(publication.key, publication.name, document, content_hash)
        self._on_step("sent")
        return _checked(receipt, approval, publication)

    def _recorded(
        self, record: Callable[[Execution, Outcome, datetime], Execution], execution: Execution, outcome: Outcome
    ) -> EffectResult:
        """Record an outcome; where a later attempt has taken over, answer with how things stand now."""
        try:
            recorded = record(execution, outcome, self._clock())
        except Conflict:
            standing = self._ledger.executions.get(execution.tenant, execution.operation)
            return _result(standing or execution)
        self._on_step("recorded")
        return _result(recorded)


def _checked(receipt: Receipt, approval: Approval, publication: Publication) -> Receipt:
    wanted = (publication.key, approval.proposal.action.content_hash)
    if (receipt.key, receipt.content_hash) != wanted:
        other = f"the outside holds another document under this key ({receipt.content_hash}); a person must look"
        raise OutcomeUnknown("outside_conflict", other)
    return receipt


def _earliest_send(approval: Approval) -> datetime:
    return max((vote.decided_at for vote in approval.votes), default=approval.proposal.proposed_at)


def _result(execution: Execution) -> EffectResult:
    if execution.status != ExecutionStatus.INTENDED:
        return EffectResult(status=execution.status, reason=execution.reason, receipt=execution.receipt)
    until = execution.claimed_until.isoformat()
    return EffectResult(
        status=ExecutionStatus.UNKNOWN, reason=f"in_progress: another attempt holds the right to send until {until}"
    )
