"""One question of the agent's, until people answer or its time is up."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import QuestionAsked, Questioning, QuestionMarked, QuestionOrder, RunOrder
    from countersign.domain.question import QuestionStatus
    from countersign.domain.run import QuestionView

from workflows import options
from workflows.window import Window


class QuestionWindow(Window):
    """The question, and how it stands."""

    def __init__(self, run: RunOrder, asked: QuestionAsked, ticked: int = 0) -> None:
        """
        Args:
            run: whose agent asks.
            asked: the question as it stands.
            ticked: how many of its ticks have been dealt with.
        """
        super().__init__(asked, ticked)
        self._run = run
        self._asked = asked
        self.status: QuestionStatus = asked.status

    @property
    def number(self) -> int:
        """Which of the operation's questions it is."""
        return self._asked.number

    @property
    def pending(self) -> bool:
        """Whether people can still answer."""
        return self.status == QuestionStatus.PENDING

    async def expire(self) -> None:
        """Close it at its deadline, unless people were faster."""
        order = self._order(None)
        self._note(
            await workflow.execute_local_activity_method(Questioning.expire_question, order, **options.LEDGER_STEP)
        )

    def heard(self, status: QuestionStatus) -> None:
        """Take note of how it stood after a batch of messages; a closed one never changes by that."""
        if self.pending:
            self.status = status

    def carried(self) -> QuestionAsked:
        """The question as it stands, for a run that goes on with it."""
        return self._asked.model_copy(update={"status": self.status, "roles": self.roles})

    def view(self) -> QuestionView:
        """The answer to the query `question`."""
        return QuestionView(
            number=self.number,
            question=self._asked.question,
            calls=self._asked.calls,
            roles=self.roles,
            status=self.status,
            deadline=self.deadline,
        )

    async def _mark(self) -> bool:
        order = self._order(self.ticked)
        marked = await workflow.execute_local_activity_method(Questioning.mark_question, order, **options.LEDGER_STEP)
        self._note(marked)
        return marked.escalated

    def _note(self, marked: QuestionMarked) -> None:
        self.status, self.roles = marked.status, marked.roles

    def _order(self, tick: int | None) -> QuestionOrder:
        return QuestionOrder(
            tenant=self._run.tenant,
            operation=self._run.operation,
            number=self.number,
            tick=tick,
            now=workflow.now(),
        )
