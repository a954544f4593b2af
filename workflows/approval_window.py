"""One ask: a pending proposal, until people decide or its time is up."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import Deciding, MarkOrder, Proposed, RunOrder, SettleOrder
    from countersign.domain.proposal import ApprovalStatus
    from countersign.domain.run import ProposalView

from workflows import options
from workflows.window import Window


class ApprovalWindow(Window):
    """The proposal that waits, and how it stands."""

    def __init__(self, run: RunOrder, proposed: Proposed, ticked: int = 0) -> None:
        """
        Args:
            run: whose it is.
            proposed: the proposal as it stands.
            ticked: how many of its ticks have been dealt with.
        """
        super().__init__(proposed, ticked)
        self._run = run
        self._proposed = proposed
        self.status: ApprovalStatus = proposed.status

    @property
    def approval_id(self) -> str:
        """The ledger's id of the approval."""
        return self._proposed.approval_id

    @property
    def pending(self) -> bool:
        """Whether people can still decide."""
        return self.status == ApprovalStatus.PENDING

    async def expire(self) -> None:
        """Close it at its deadline, unless people were faster."""
        self.status = await self._settle(ApprovalStatus.EXPIRED)

    def heard(self, status: ApprovalStatus) -> None:
        """Take note of how it stood after a batch of messages; a settled one never changes by that (G10)."""
        if self.pending:
            self.status = status

    async def cancel(self) -> None:
        """Close it without a decider; the ledger lets no grant outlive a cancelled run."""
        self.status = await self._settle(ApprovalStatus.CANCELLED)

    def carried(self) -> Proposed:
        """The proposal as it stands, for a run that goes on with it."""
        return self._proposed.model_copy(update={"status": self.status, "roles": self.roles})

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

    async def _mark(self) -> bool:
        order = MarkOrder(
            tenant=self._run.tenant,
            operation=self._run.operation,
            approval_id=self.approval_id,
            tick=self.ticked,
            now=workflow.now(),
        )
        marked = await workflow.execute_local_activity_method(Deciding.mark, order, **options.LEDGER_STEP)
        self.status, self.roles = marked.status, marked.roles
        return marked.escalated

    async def _settle(self, status: ApprovalStatus) -> ApprovalStatus:
        order = SettleOrder(
            tenant=self._run.tenant,
            operation=self._run.operation,
            approval_id=self.approval_id,
            status=status,
            now=workflow.now(),
        )
        return await workflow.execute_local_activity_method(Deciding.settle, order, **options.LEDGER_STEP)
