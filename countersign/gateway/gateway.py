"""The gateway's flow: verify the grant, claim the sole right to send, look up or send, record what became of it.

The order of the ledger's records is what makes it safe to be killed anywhere: the intent is recorded before the first
byte leaves, so whoever comes next knows that something may have happened and looks it up under the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal, TypeVar

from pydantic import JsonValue, ValidationError

from countersign.domain.errors import (
    Conflict,
    ControlChanged,
    Drifted,
    Frozen,
    InputRefused,
    NotAuthorised,
    NotFound,
    Unavailable,
)
from countersign.domain.execution import EffectResult, Execution, ExecutionStatus, Receipt
from countersign.domain.freeze import holding
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal
from countersign.gateway.channels import Channel, NotSent, OutcomeUnknown, Refused
from countersign.gateway.grant import Grant, Grants, check_binding
from countersign.gateway.refusals import Ended, is_alarming
from countersign.gateway.tools import Call, Tools, changes_authority, check_words
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
        channels: Mapping[str, Iterable[Channel]],
        verify_evidence: Callable[[str, str], None],
        installation: str,
        environment: str,
        unsigned: bool,
        clock: Clock,
        on_step: Callable[[Step], None] = _no_watch,
    ) -> None:
        """
        Args:
            ledger, installation, environment, unsigned: see `Grants`.
            channels: by tenant, its ways out, each with a name of its own; no other tenant can use them (G09).
            verify_evidence: see `Reach`.
            clock: wall time.
            on_step: told after each step that has happened, so that an operator's probe or a test can act between them.
        """
        self._ledger = ledger
        self._tools = Tools(channels, ledger.directory, verify_evidence, clock)
        self._grants = Grants(
            ledger, self._tools, installation=installation, environment=environment, unsigned=unsigned
        )
        self._clock = clock
        self._on_step = on_step

    def execute(self, tenant: str, approval_id: str) -> EffectResult:
        """Make the approved effect happen once; called again, however often, it answers with what is known.

        NOT_SENT: call again later, which is the answer while effects are frozen too. UNKNOWN: call `reconcile` later;
        another attempt that holds the claim is answered so too, since it may be sending right now. No status: refused,
        for good, or voided, and then people can be asked anew.
        """
        return self._answer(tenant, approval_id, self._execute)

    def reconcile(self, tenant: str, approval_id: str) -> EffectResult:
        """Look up what became of an unknown outcome and record it; sends nothing, whatever it finds.

        It needs no grant: a grant that has expired since does not change what lies outside.
        """
        return self._answer(tenant, approval_id, self._reconcile)

    def _answer(self, tenant: str, approval_id: str, do: Callable[[Approval], EffectResult]) -> EffectResult:
        approval = None
        try:
            approval = self._approval(tenant, approval_id)
            check_binding(approval.proposal)
            return do(approval)
        except Frozen as held:
            # The ledger has recorded it with the claim that it refused; the run waits, and tries again.
            return EffectResult(status=ExecutionStatus.NOT_SENT, reason=f"frozen: {held.message}")
        except NotAuthorised as refusal:
            self._record(tenant, approval_id, approval, refusal)
            return _refused(refusal) if approval is None else self._standing(approval, refusal)

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

    def _record(self, tenant: str, approval_id: str, approval: Approval | None, refusal: NotAuthorised) -> None:
        """Write a refusal down, and raise the alarm where no honest course leads to it."""
        operation = approval.proposal.operation if approval is not None else ""
        self._ledger.executions.refused(
            tenant, operation, approval_id, _line(refusal), self._clock(), alarm=is_alarming(refusal)
        )

    def _standing(self, approval: Approval, refusal: NotAuthorised) -> EffectResult:
        """What a refusal leaves: it does not settle what an earlier attempt may have sent, so that stays unknown."""
        proposal = approval.proposal
        status = self._void(proposal, refusal) if isinstance(refusal, Drifted) else approval.status
        earlier = self._ledger.executions.get(proposal.tenant, proposal.operation)
        if earlier is not None and earlier.approval_id == proposal.approval_id:
            if earlier.status in _OPEN:
                return EffectResult(status=ExecutionStatus.UNKNOWN, reason=_line(refusal))
            if isinstance(refusal, Drifted) and earlier.status == ExecutionStatus.EXECUTED:
                # Another attempt was through before this one found that something had changed.
                return _result(earlier)
        return _refused(refusal, voided=status == ApprovalStatus.VOIDED and not is_alarming(refusal))

    def _void(self, proposal: Proposal, drift: Drifted) -> ApprovalStatus:
        """Void the grant; the ledger does so only while nothing can have been sent under it."""
        return self._ledger.approvals.void(
            proposal.tenant, proposal.approval_id, drift.reason, drift.expected, drift.found, self._clock()
        )

    def _stored(self, approval: Approval) -> Execution | None:
        """This very action's execution, if there is one."""
        execution = self._ledger.executions.get(approval.proposal.tenant, approval.proposal.operation)
        return execution if execution and execution.key == approval.proposal.action.idempotency_key() else None

    def _claim(self, approval: Approval, call: Call) -> tuple[Execution, bool]:
        """The execution, and whether the right to act on it is ours."""
        now = self._clock()
        until = now + 2 * call.channel.time_limit + CLAIM_MARGIN
        try:
            execution = self._ledger.executions.claim(approval, call.key, now, until)
        except ControlChanged as changed:
            raise Ended("control_changed", changed.message) from None
        except Conflict as conflict:
            raise Ended("claim_refused", conflict.message) from None
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

    def _claim_and_act(self, approval: Approval, grant: Grant | None) -> EffectResult:
        call = self._tools.call(approval.proposal.action)
        if grant is not None:
            check_words(approval.proposal, call)
        execution, is_ours = self._claim(approval, call)
        if not is_ours:
            return _result(execution)
        if grant is not None and grant.by_breaking_glass:
            self._record_broken_glass(execution)
        return self._act(approval, call, execution, grant.document if grant is not None else None)

    def _record_broken_glass(self, execution: Execution) -> None:
        """Before anything is sent, so that no emergency can lack its record (G11, G45)."""
        detail: dict[str, JsonValue] = {
            "approval_id": execution.approval_id, "action_hash": execution.action_hash, "key": execution.key,
            "attempt": execution.attempt, "break_glass": True,
        }  # fmt: skip
        now, names = self._clock(), (execution.operation, "gateway")
        self._ledger.audit.append(execution.tenant, "break_glass.executing", *names, detail, now)

    def _act(self, approval: Approval, call: Call, execution: Execution, document: bytes | None) -> EffectResult:
        """Look up what an earlier attempt may have done, else send `document` if there is one; record the outcome."""
        executions = self._ledger.executions
        try:
            receipt = self._earlier(approval, call, execution)
            if receipt is None:
                if document is not None and not _surely_not_sent(execution):
                    self._check_repeat(approval.proposal)
                receipt = self._send(approval, call, document)
        except (NotSent, Refused) as failure:
            result = self._recorded(executions.not_sent, execution, failure.line())
            is_final = isinstance(failure, Refused) and result.status == ExecutionStatus.NOT_SENT
            return EffectResult(status=None, reason=failure.line()) if is_final else result
        except OutcomeUnknown as failure:
            return self._recorded(executions.unknown, execution, failure.line())
        except Drifted as drift:
            self._recorded(executions.not_sent, execution, _line(drift))
            raise
        return self._recorded(executions.finish, execution, receipt)

    def _earlier(self, approval: Approval, call: Call, execution: Execution) -> Receipt | None:
        """What an earlier attempt has left outside; None where surely nothing is there (G36)."""
        if _surely_not_sent(execution):
            return None
        receipt = call.channel.look_up(call.key)
        if receipt is not None:
            return _checked(receipt, approval, call)
        kept = call.channel.keys_kept
        if kept is not None and self._clock() - _earliest_send(approval) >= kept:
            raise OutcomeUnknown(
                "key_forgotten", f"the outside keeps keys for {kept} only, so a person must look there"
            )
        return None

    def _check_repeat(self, proposal: Proposal) -> None:
        """Refuse to send again what was found not to be there, where a first sending would not be let through now.

        What may be on its way is claimed whatever holds effects by then, so that it is looked up.
        """
        action = proposal.action
        freezes = self._ledger.freezes.of_tenant(proposal.tenant)
        freeze = holding(freezes, action.tool, changes_authority=changes_authority(action))
        if freeze is not None:
            raise NotSent("frozen", f"freeze {freeze.number} holds it; it is not there, and not sent again meanwhile")
        version = self._ledger.controls.standing(proposal.tenant, proposal.operation).control.version
        if version != proposal.control_version:
            raise NotSent("control_changed", f"control has version {version} by now; it is not there, nor sent again")

    def _send(self, approval: Approval, call: Call, document: bytes | None) -> Receipt:
        if document is None:
            raise NotSent("not_there", "the outside surely holds nothing under the key; it may be sent again")
        content_hash = approval.proposal.action.content_hash
        receipt = call.channel.send(call.key, call.name, document, content_hash)
        self._on_step("sent")
        return _checked(receipt, approval, call)

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


def _surely_not_sent(execution: Execution) -> bool:
    """Whether no attempt before this one can have sent anything."""
    is_first = execution.status == ExecutionStatus.INTENDED and execution.attempt == 1
    return is_first or execution.status == ExecutionStatus.NOT_SENT


def _checked(receipt: Receipt, approval: Approval, call: Call) -> Receipt:
    wanted = (call.key, approval.proposal.action.content_hash)
    if (receipt.key, receipt.content_hash) != wanted:
        other = f"the outside holds another document under this key ({receipt.content_hash}); a person must look"
        raise OutcomeUnknown("outside_conflict", other)
    return receipt


def _earliest_send(approval: Approval) -> datetime:
    return max((vote.decided_at for vote in approval.votes), default=approval.proposal.proposed_at)


def _line(refusal: NotAuthorised) -> str:
    return f"{refusal.reason}: {refusal.message}"


def _refused(refusal: NotAuthorised, *, voided: bool = False) -> EffectResult:
    return EffectResult(status=None, voided=voided, reason=_line(refusal))


def _result(execution: Execution) -> EffectResult:
    if execution.status != ExecutionStatus.INTENDED:
        return EffectResult(status=execution.status, reason=execution.reason, receipt=execution.receipt)
    until = execution.claimed_until.isoformat()
    return EffectResult(
        status=ExecutionStatus.UNKNOWN, reason=f"in_progress: another attempt holds the right to send until {until}"
    )
