"""The gateway's flow: verify the grant, claim the sole right to send, and have the claim acted on.

The order of the ledger's records is what makes it safe to be killed anywhere: the intent is recorded before the first
byte leaves, so whoever comes next knows that something may have happened and looks it up under the same key. Where the
ledger itself was restored from a backup, it is looked up before anything else: what was sent may lie in the lost time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from pydantic import JsonValue, ValidationError

from countersign.domain.errors import (
    Conflict,
    ControlChanged,
    Drifted,
    Frozen,
    InputRefused,
    NotAuthorised,
    NotFound,
    NotYet,
    Unavailable,
)
from countersign.domain.execution import (
    FROZEN,
    MAY_BE_THERE,
    MAY_STILL_LAND,
    EffectResult,
    Execution,
    ExecutionStatus,
)
from countersign.domain.proposal import Approval, ApprovalStatus, Proposal
from countersign.domain.values import Sha256
from countersign.gateway.acting import Acting, Step, result
from countersign.gateway.channels import Channel, ChannelFailure
from countersign.gateway.earlier import Earlier
from countersign.gateway.gathering import Gathering
from countersign.gateway.grant import Grant, Grants, check_binding
from countersign.gateway.looking import Looking
from countersign.gateway.refusals import Ended, is_alarming, line
from countersign.gateway.settling import Settlements
from countersign.gateway.tool import Call
from countersign.gateway.tools import Tools, check_words
from countersign.ports import Clock, Ledger

CLAIM_MARGIN = timedelta(seconds=5)
"""What a claim is held for beyond a look-up and a send at their limits: the time for recording the outcome."""


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
        self._tools = Tools(channels, ledger, verify_evidence, clock)
        self._grants = Grants(
            ledger, self._tools, installation=installation, environment=environment, unsigned=unsigned
        )
        self._gathering = Gathering(ledger, self._tools.reach, installation)
        looking, settlements = Looking(ledger, clock), Settlements(ledger, self._grants.pinned, installation)
        self._acting = Acting(ledger, looking, settlements, clock, on_step)
        self._earlier = Earlier(ledger, self._tools, looking, settlements, clock)
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
        """Look up what became of an unknown outcome, hear what people settled, and record it; sends nothing.

        It needs no grant: a grant that has expired since does not change what lies outside. After a restore the answer
        is voided where there is none, and surely nothing was sent: then people can be asked.
        """
        return self._answer(tenant, approval_id, self._reconcile)

    def gather(self, tenant: str, operation: str) -> Sha256:
        """Read what an operation rests on outside, and keep it as its facts; see `Gathering.gather`."""
        return self._gathering.gather(tenant, operation)

    def _answer(self, tenant: str, approval_id: str, do: Callable[[Approval], EffectResult]) -> EffectResult:
        approval = None
        try:
            approval = self._approval(tenant, approval_id)
            check_binding(approval.proposal)
            return do(approval)
        except Frozen as held:
            # The ledger has recorded it with the claim that it refused; the run waits, and tries again.
            return EffectResult(status=ExecutionStatus.NOT_SENT, reason=f"{FROZEN}: {held.message}")
        except NotAuthorised as refusal:
            self._record(tenant, approval_id, approval, refusal)
            return _refused(refusal) if approval is None else self._standing(approval, refusal)

    def _execute(self, approval: Approval) -> EffectResult:
        stored = self._stored(approval)
        if stored is not None and stored.status == ExecutionStatus.EXECUTED:
            return result(stored)
        found = self._lost(approval, stored)
        if found is not None:
            return found
        try:
            return self._verified(approval)
        except ChannelFailure as unread:
            return self._unread(approval, stored, unread)
        except Drifted:
            landed = self._landed(approval, stored)
            if landed is not None:
                return landed
            raise

    def _verified(self, approval: Approval) -> EffectResult:
        """Act on a grant that holds, once it is sure that nothing of the operation's other actions has taken effect."""
        grant = self._grants.verify(approval, self._clock())
        found = self._earlier.found(approval.proposal)
        if found is not None:
            return found
        try:
            return self._claim_and_act(approval, grant)
        except NotYet as wait:
            return self._held(approval, f"{MAY_STILL_LAND}: {wait.message}")

    def _landed(self, approval: Approval, stored: Execution | None) -> EffectResult | None:
        """What was sent and not found has come to, where it may itself be why the grant no longer holds."""
        if stored is None or stored.may_land_until is None or stored.status != ExecutionStatus.NOT_SENT:
            return None
        return self._there(approval)

    def _there(self, approval: Approval) -> EffectResult | None:
        """What lies outside of a granted action, or may; nothing where surely nothing is there."""
        if approval.status != ApprovalStatus.GRANTED:
            return None
        found = self._claim_and_act(approval, None)
        return None if found.status == ExecutionStatus.NOT_SENT else found

    def _lost(self, approval: Approval, stored: Execution | None) -> EffectResult | None:
        """What an effect has come to of which a restored ledger may know nothing; nothing where surely none is there.

        Before the grant is looked at: such an effect is itself a change of what the grant rests on.
        """
        knows = stored is not None and stored.status in MAY_BE_THERE
        if knows or not self._ledger.audit.restores(approval.proposal.tenant):
            return None
        return self._there(approval)

    def _unread(self, approval: Approval, stored: Execution | None, failure: ChannelFailure) -> EffectResult:
        """What the action rests on cannot be read outside: nothing was sent, and it is tried again."""
        if stored is not None and stored.status in MAY_BE_THERE:
            return EffectResult(status=ExecutionStatus.UNKNOWN, reason=failure.line())
        return self._held(approval, failure.line())

    def _held(self, approval: Approval, reason: str) -> EffectResult:
        """Record that it waits."""
        proposal = approval.proposal
        detail: dict[str, JsonValue] = {
            "approval_id": proposal.approval_id, "action_hash": proposal.action_hash, "reason": reason,
        }  # fmt: skip
        names = (proposal.operation, "gateway")
        self._ledger.audit.append(proposal.tenant, "effect.held", *names, detail, self._clock())
        return EffectResult(status=ExecutionStatus.NOT_SENT, reason=reason)

    def _reconcile(self, approval: Approval) -> EffectResult:
        stored = self._stored(approval)
        if stored is not None and stored.status == ExecutionStatus.EXECUTED:
            return result(stored)
        is_intended = stored is not None and stored.status == ExecutionStatus.INTENDED
        if approval.status != ApprovalStatus.GRANTED and not is_intended:
            lapsed = self._earlier.lapsed(approval.proposal)
            if lapsed is not None:
                return lapsed
        if stored is not None and stored.status in MAY_BE_THERE:
            return self._claim_and_act(approval, None)
        found = self._lost(approval, stored) or self._landed(approval, stored)
        found = found or self._earlier.found(approval.proposal)
        if found is not None:
            return found
        never = EffectResult(status=ExecutionStatus.NOT_SENT, reason="never_sent: nothing was ever sent")
        return never if stored is None else result(stored)

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
            tenant, operation, approval_id, line(refusal), self._clock(), alarm=is_alarming(refusal)
        )

    def _standing(self, approval: Approval, refusal: NotAuthorised) -> EffectResult:
        """What a refusal leaves: it does not settle what an earlier attempt may have sent, so that stays unknown."""
        proposal = approval.proposal
        status = self._void(proposal, refusal) if isinstance(refusal, Drifted) else approval.status
        earlier = self._ledger.executions.get(proposal.tenant, proposal.operation)
        if earlier is not None and earlier.approval_id == proposal.approval_id:
            if earlier.status in MAY_BE_THERE:
                return EffectResult(status=ExecutionStatus.UNKNOWN, reason=line(refusal))
            if isinstance(refusal, Drifted) and earlier.status == ExecutionStatus.EXECUTED:
                # Another attempt was through before this one found that something had changed.
                return result(earlier)
        return _refused(refusal, voided=status == ApprovalStatus.VOIDED and not is_alarming(refusal))

    def _void(self, proposal: Proposal, drift: Drifted) -> ApprovalStatus:
        """Void the grant; the ledger does so only while nothing can have been sent under it."""
        return self._ledger.approvals.void(
            proposal.tenant, proposal.approval_id, drift.reason, drift.expected, drift.found, self._clock()
        )

    def _stored(self, approval: Approval) -> Execution | None:
        """This very action's execution, if there is one."""
        proposal = approval.proposal
        known = self._ledger.executions.of_operation(proposal.tenant, proposal.operation)
        return next((one for one in known if one.key == proposal.action.idempotency_key()), None)

    def _claim(self, approval: Approval, call: Call, *, to_send: bool) -> tuple[Execution, bool]:
        """The execution, and whether the right to act on it is ours."""
        now = self._clock()
        until = now + 2 * call.channel.time_limit + CLAIM_MARGIN
        try:
            execution = self._ledger.executions.claim(approval, call.key, now, until, to_send=to_send)
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
        execution, is_ours = self._claim(approval, call, to_send=grant is not None)
        if not is_ours:
            return result(execution)
        if grant is not None and grant.by_breaking_glass:
            self._record_broken_glass(execution)
        return self._acting.act(approval, call, execution, grant.document if grant is not None else None)

    def _record_broken_glass(self, execution: Execution) -> None:
        """Before anything is sent, so that no emergency can lack its record (G11, G45)."""
        detail: dict[str, JsonValue] = {
            "approval_id": execution.approval_id, "action_hash": execution.action_hash, "key": execution.key,
            "attempt": execution.attempt, "break_glass": True,
        }  # fmt: skip
        now, names = self._clock(), (execution.operation, "gateway")
        self._ledger.audit.append(execution.tenant, "break_glass.executing", *names, detail, now)


def _refused(refusal: NotAuthorised, *, voided: bool = False) -> EffectResult:
    return EffectResult(status=None, voided=voided, reason=line(refusal))
