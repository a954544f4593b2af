"""One ask: a pending proposal until people decide or its time is up.

A timer's end is one more event beside a decision, and the ledger's one transaction per event says which came first.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import Deciding, Proposed, RunOrder, SettleOrder
    from countersign.domain.proposal import ApprovalStatus
    from countersign.domain.run import ProposalView

from workflows import options


class ApprovalWindow:
    """The proposal that waits, and how it stands."""

    def __init__(self, run: RunOrder, proposed: Proposed) -> None:
        self._run = run
        self._proposed = proposed
        self.deadline: datetime = proposed.deadline
        self.status: ApprovalStatus = proposed.status

    @property
    def approval_id(self) -> str:
        """The ledger's id of the approval."""
        return self._proposed.approval_id

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that are asked."""
        return self._proposed.roles

    async def closes(self) -> None:
        """Wait until people have decided or the deadline has come; an edit that counts is decided from the start."""
        if self.status != ApprovalStatus.PENDING:
            return
        # Not wait_condition's own timeout: it rests on asyncio.wait_for, which Python 3.12 rewrote, and a run that
        # waits under one version could then not be replayed under another.
        timer = asyncio.create_task(workflow.sleep(self.deadline - workflow.now(), summary="approval deadline"))
        try:
            await workflow.wait_condition(lambda: self.status != ApprovalStatus.PENDING or timer.done())
        finally:
            timer.cancel()

    async def expire(self) -> None:
        """Close it at its deadline, unless people were faster."""
        if self.status == ApprovalStatus.PENDING:
            self.status = await self._settle(ApprovalStatus.EXPIRED)

    def heard(self, status: ApprovalStatus) -> None:
        """Take note of how it stood after a batch of messages; a settled one never changes by that (G10)."""
        if self.status == ApprovalStatus.PENDING:
            self.status = status

    async def cancel(self) -> None:
        """Close it without a decider; the ledger lets no grant outlive a cancelled run."""
        self.status = await self._settle(ApprovalStatus.CANCELLED)

    def view(self) -> ProposalView:
        """The answer to the query `proposal`."""
        return ProposalView(
            approval_id=self.approval_id,
            approval_version=self._proposed.approval_version,
            action_hash=self._proposed.action_hash,
            view=self._proposed.view,
            roles=self.roles,
            status=self.status,
            deadline=self.deadline,
            execute_by=self._proposed.execute_by,
        )

    async def _settle(self, status: ApprovalStatus) -> ApprovalStatus:
        order = SettleOrder(
            tenant=self._run.tenant,
            operation=self._run.operation,
            approval_id=self.approval_id,
            status=status,
            now=workflow.now(),
        )
        return await workflow.execute_local_activity_method(Deciding.settle, order, **options.LEDGER_STEP)
