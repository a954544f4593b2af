"""How a run stands for whoever looks at it or wants to command it, read from the ledger in one place.

Apart from the commands and from what is shown, since both need it. Whether a command is good is the ledger's to say.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from countersign.cases.case import Case, DraftedCase, ShownDraft, drafted_case, read_draft
from countersign.cli.session import Session
from countersign.domain.control import Control
from countersign.domain.draft import DraftObject
from countersign.domain.escalation import Escalation
from countersign.domain.execution import MAY_BE_THERE, Execution, ExecutionStatus
from countersign.domain.operation import Operation
from countersign.domain.policy import Policy
from countersign.domain.proposal import Approval, ApprovalStatus
from countersign.domain.question import Asked, Question, QuestionStatus
from countersign.domain.state import State
from countersign.ports.control import Standing


class RunNow(NamedTuple):
    """A run as the ledger has it at one moment."""

    operation: Operation
    standing: Standing
    approval: Approval | None
    """The latest."""
    execution: Execution | None
    """The latest."""
    escalation: Escalation | None
    """The one that is open."""
    policy: Policy | None
    """The one of its case that is in force."""
    asked: Asked | None
    """The agent's newest question."""

    @property
    def control(self) -> Control:
        """Who is in control."""
        return self.standing.control

    @property
    def state(self) -> State:
        """Where it stands; what people ended has ended, also before the run has come to it."""
        ending = self.standing.ending
        return ending.state if ending is not None and not self.operation.state.terminal else self.operation.state

    @property
    def pending(self) -> Approval | None:
        """The approval that waits for people."""
        waits = self.approval is not None and self.approval.status == ApprovalStatus.PENDING
        return self.approval if waits else None

    @property
    def question(self) -> Question | None:
        """The agent's question that waits for people."""
        waits = self.asked is not None and self.asked.status == QuestionStatus.PENDING
        return self.asked.question if self.asked is not None and waits else None

    @property
    def unknown(self) -> Execution | None:
        """The execution of which nobody knows whether it took effect."""
        return self.execution if self.execution is not None and self.execution.status in MAY_BE_THERE else None

    @property
    def on_its_way(self) -> bool:
        """Whether something may have been sent, or was."""
        return self.execution is not None and self.execution.status != ExecutionStatus.NOT_SENT


def run_now(session: Session, tenant: str, operation: str) -> RunNow:
    """The run of an operation; NotFound for one that is not there."""
    ledger = session.ledger
    stored = ledger.operations.get(tenant, operation)
    open_ones = [one for one in ledger.escalations.of_operation(tenant, operation) if one.outcome == "open"]
    return RunNow(
        operation=stored,
        standing=ledger.controls.standing(tenant, operation),
        approval=ledger.approvals.current(tenant, operation),
        execution=ledger.executions.get(tenant, operation),
        escalation=open_ones[-1] if open_ones else None,
        policy=ledger.directory.policies(tenant).get(stored.case),
        asked=ledger.questions.current(tenant, operation),
    )


def is_drafted(session: Session, run: RunNow) -> bool:
    """Whether there are drafts in its case, with checks and a grade before the proposal."""
    return _cases(session)[run.operation.case].drafted


def case_of_drafts(session: Session, run: RunNow) -> DraftedCase[Any, Any]:
    """Its case, by which its drafts are read; InputRefused where nothing is drafted in it."""
    return drafted_case(_cases(session), run.operation)


def shown_draft(session: Session, run: RunNow, draft: DraftObject) -> ShownDraft:
    """One of its drafts in brief."""
    case = case_of_drafts(session, run)
    return case.shown(read_draft(case.form, draft))


def _cases(session: Session) -> dict[str, Case]:
    from countersign.bootstrap import cases

    return cases(session.settings, session.ledger)
