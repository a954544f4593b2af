"""One question of the agent's: its reminders and further lines of people, until they answer or its time is up.

As for a proposal (workflows/approval_window.py), the ledger's one transaction per event says which came first.
"""

from __future__ import annotations

from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import QuestionAsked, Questioning, QuestionMarked, QuestionOrder, RunOrder
    from countersign.domain.question import QuestionStatus
    from countersign.domain.run import QuestionView

from workflows import options


class QuestionWindow:
    """The question, and how it stands."""

    def __init__(self, run: RunOrder, asked: QuestionAsked, ticked: int = 0) -> None:
        """
        Args:
            run: whose agent asks.
            asked: the question as it stands.
            ticked: how many of its ticks have been dealt with.
        """
        self._run = run
        self._asked = asked
        self.ticked = ticked
        self.status: QuestionStatus = asked.status
        self.roles: tuple[str, ...] = asked.roles
        """The roles that are asked now."""

    @property
    def number(self) -> int:
        """Which of the operation's questions it is."""
        return self._asked.number

    @property
    def deadline(self) -> datetime:
        """From this instant on it is expired."""
        return self._asked.deadline

    @property
    def freezes(self) -> bool:
        """Whether the run is held, rather than ended, where nobody answers."""
        return self._asked.freezes

    @property
    def pending(self) -> bool:
        """Whether people can still answer."""
        return self.status == QuestionStatus.PENDING

    @property
    def due(self) -> datetime | None:
        """When something is to be done next unless people answer: at a tick, or at the deadline."""
        if not self.pending:
            return None
        ticks = self._asked.ticks
        return ticks[self.ticked] if self.ticked < len(ticks) else self.deadline

    async def pass_due(self) -> bool:
        """Do what is due: remind, ask further people, or expire; whether further people are asked from now on."""
        if self.due == self.deadline:
            await self.expire()
            return False
        order = self._order(self.ticked)
        marked = await workflow.execute_local_activity_method(Questioning.mark_question, order, **options.LEDGER_STEP)
        self.ticked += 1
        self._note(marked)
        return marked.escalated and self.pending

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
