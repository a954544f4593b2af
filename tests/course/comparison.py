"""The run as server and ledger show it, held against the model."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from countersign.domain.proposal import Approval
from countersign.domain.run import RunStatus, Step
from tests.course.legal import wrong_steps
from tests.course.model import Model
from tests.course.stage import TENANT, Stage

PATIENCE = timedelta(seconds=3)
SOON = timedelta(seconds=5)
"""How long the run takes at most to do what is due."""


class Comparison:
    """One run with its model."""

    def __init__(
        self, stage: Stage, run: WorkflowHandle[Any, Any], operation: str, model: Model, published: int
    ) -> None:
        """
        Args:
            stage: where it is played.
            run: the run.
            operation: what it carries out.
            model: what it is held against.
            published: how many reports there were before.
        """
        self._stage, self._run, self._operation, self._model = stage, run, operation, model
        self._published = published
        self.untold = 0
        """Reminders and tiers that came due while the workers were away, before people settled the ask: whether they
        are told of is a matter of what the run comes to first, and nobody has to act upon them any more."""
        self.overtaken = False
        """Whether the agent was drafting when the run was cancelled, which it hears late: a draft may still be kept."""

    async def status(self) -> RunStatus | None:
        """What the run says of itself, if it answers."""
        try:
            status: RunStatus = await self._run.query("status", result_type=RunStatus, rpc_timeout=PATIENCE)
        except RPCError:
            return None
        return status

    async def differences(self, *, loosely: bool) -> dict[str, tuple[Any, Any]]:
        """What the run says, and the model, where they differ. After an outage the way there may be a shorter one."""
        model, ledger = self._model, self._stage.ledger
        quick = (ledger.operations.get(TENANT, self._operation).state.value, model.state)
        if quick[0] != quick[1]:
            return {"state in the ledger": quick}
        status = await self.status()
        if status is None:
            return {"an answer": ("none", "one")}
        if status.messages != model.messages or status.waiting:
            return {"messages, without a ruling": ((status.messages, status.waiting), (model.messages, 0))}
        timeline = await self._run.query("timeline", result_type=list[Step])
        trail = [(step.state.value, step.reason) for step in timeline]
        asks = self._stage.asks(self._operation)
        ticks = self._stage.ticks(self._operation)
        if loosely and model.ticks < ticks <= model.ticks + self.untold:
            self.untold -= ticks - model.ticks
            model.ticks = ticks
        pairs = {
            "state": (status.state.value, model.state),
            "in control": (status.control, model.in_control),
            "control version": (status.control_version, model.version),
            "refused": (status.refused, model.refused),
            "drafts": (
                len(model.drafts)
                if self.overtaken
                else ledger.controls.standing(TENANT, self._operation).draft_version,
                len(model.drafts),
            ),
            "asks": (
                [(ask.status.value, ask.proposal.draft_version, sorted(ask.proposal.authors)) for ask in asks],
                [(ask.status, ask.draft, sorted(ask.authors)) for ask in model.asks],
            ),
            "reminders and tiers": (ticks, model.ticks),
            "published": (len(self._stage.installation.published()) - self._published, model.published),
            "way": (trail[-1:] if loosely else trail, model.trail[-1:] if loosely else model.trail),
            "illegal": (wrong_steps(trail), []),
        }
        different = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        if not different:
            self._agree_on_times(asks)
            model.trail = trail
        return different

    def _agree_on_times(self, asks: list[Approval]) -> None:
        """Windows begin when the run comes to opening them, which is soon after their cause; the model takes that."""
        model = self._model
        for ask, approval in zip(model.asks, asks, strict=True):
            at = approval.proposal.proposed_at
            assert abs(ask.proposed_at - at) < SOON, f"proposed at {at}, not at {ask.proposed_at}"
            ask.proposed_at = at
            assert approval.proposal.deadline == at + model.terms.open_for
        control = self._stage.ledger.controls.standing(TENANT, self._operation).control
        model.lease_until = self._soon("lease", model.lease_until, control.lease_until)
        raised = self._stage.ledger.escalations.of_operation(TENANT, self._operation)
        called_until = raised[-1].deadline if raised and raised[-1].outcome == "open" else None
        if not model.ended:
            model.called_until = self._soon("escalation deadline", model.called_until, called_until)

    def _soon(self, what: str, model: datetime | None, found: datetime | None) -> datetime | None:
        agree = model is None if found is None else model is not None and abs(model - found) < SOON
        assert agree, f"{what}: {found}, and in the model {model}"
        return found
