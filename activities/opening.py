"""Opening a run and writing down where it stands."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio import activity

from activities.failures import refusals
from activities.interfaces import HandOnOrder, Opening, OpenOrder, RunPlan, StateRecord
from activities.runs import Runs
from countersign.cases.assessing import policy_in_force
from countersign.cases.case import Case
from countersign.domain.command import ENDS_AS
from countersign.domain.errors import Conflict, NotAuthorised
from countersign.domain.execution import ExecutionStatus
from countersign.domain.operation import Operation
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from countersign.domain.strict_json import parse
from countersign.ports import Ledger
from countersign.signing.statements import verify_request

_DECIDED = {State.REJECTED: ApprovalStatus.REJECTED, State.EXPIRED: ApprovalStatus.EXPIRED}
"""Ends of a run that are the end of its approval."""
_ENDINGS = frozenset((ending.state, ending.reason) for ending in ENDS_AS.values())
"""Ends of a run that are a person's command."""


class OpeningSteps(Opening):
    """Checks what is registered before anything is done for it: a workflow can be started by anyone."""

    def __init__(
        self,
        ledger: Ledger,
        runs: Runs,
        installation: str,
        cases: Mapping[str, Case],
        *,
        max_rounds: int,
        max_grader_tries: int,
    ) -> None:
        """
        Args:
            ledger: where the operation is registered.
            runs: whose step it is, and when.
            installation: the audience that its request must name.
            cases: the kinds of work that there are, by name.
            max_rounds, max_grader_tries: bounds of every run's plan.
        """
        self._ledger = ledger
        self._runs = runs
        self._installation = installation
        self._cases = cases
        self._max_rounds = max_rounds
        self._max_grader_tries = max_grader_tries

    @activity.defn
    def open_run(self, order: OpenOrder) -> RunPlan:
        """See Opening."""
        run = order.run
        with refusals(self._runs, run.tenant, run.operation, "open_run"):
            self._runs.check_run(run.tenant, run.operation)
            self._runs.check_now(order.now)
            stored = self._ledger.operations.get(run.tenant, run.operation)
            persons = self._ledger.directory.persons(run.tenant)
            statement, signer = verify_request(
                stored.statement, persons, installation=self._installation, now=order.now
            )
            case = self._case(stored)
            role = policy_in_force(self._ledger, run.tenant, case.name).asked_by
            if not signer.may(role):
                raise NotAuthorised(
                    "role",
                    f"operation {run.operation}: {signer.id} may not start operations of case {case.name}; the role "
                    f"{role} is needed",
                )
            signed = (statement.tenant, statement.operation, statement.request_hash, signer.id)
            registered = (run.tenant, run.operation, stored.request_hash, stored.requester)
            if signed != registered or (run.request_hash, run.case) != (stored.request_hash, stored.case):
                raise Conflict(f"operation {run.operation}: the run was not started for the request that was signed")
            self._ledger.operations.move(run.tenant, run.operation, State.RUNNING, "", order.now)
            # What people did to the operation outlives a reset, or a run that is started anew.
            standing = self._ledger.controls.standing(run.tenant, run.operation)
        return RunPlan(
            drafted=case.drafted,
            max_rounds=self._max_rounds,
            max_grader_tries=self._max_grader_tries,
            control=standing.control,
            ending=standing.ending,
        )

    def _case(self, stored: Operation) -> Case:
        """The case that the signed request names, which the registration must name too."""
        request = parse(self._ledger.documents.get(stored.tenant, stored.request_hash), where="request")
        named = request.get("case") if isinstance(request, dict) else None
        case = self._cases.get(stored.case)
        if case is None or named != stored.case:
            known = ", ".join(sorted(self._cases))
            raise Conflict(f"operation {stored.operation}: its request is of no case {stored.case!r}; known: {known}")
        return case

    @activity.defn
    def hand_on(self, order: HandOnOrder) -> None:
        """See Opening."""
        with refusals(self._runs, order.tenant, order.operation, "hand_on"):
            self._check_handing(order)
            line = (order.tenant, order.operation, order.line)
            self._ledger.operations.hand_on(*line, self._runs.own_run(), order.now)

    @activity.defn
    def take_on(self, order: HandOnOrder) -> None:
        """See Opening."""
        with refusals(self._runs, order.tenant, order.operation, "take_on"):
            self._check_handing(order)
            line = (order.tenant, order.operation, order.line)
            self._ledger.operations.take_on(*line, self._runs.own_run(), order.now)

    def _check_handing(self, order: HandOnOrder) -> None:
        """Whether the line is the asking run's is the ledger's to say, which the run's own id tells it (G23)."""
        self._runs.check_run(order.tenant, order.operation)
        self._runs.check_now(order.now)

    @activity.defn
    def record_state(self, record: StateRecord) -> None:
        """See Opening."""
        with refusals(self._runs, record.tenant, record.operation, "record_state"):
            self._runs.check_run(record.tenant, record.operation)
            self._runs.check_now(record.now)
            if record.state == State.SUCCEEDED:
                self._check_executed(record)
            elif record.state.terminal:
                self._check_nothing_open(record)
            if record.state in _DECIDED:
                self._check_decided(record)
            self._check_people(record)
            self._ledger.operations.move(record.tenant, record.operation, record.state, record.reason, record.now)

    def _check_executed(self, record: StateRecord) -> None:
        """That it was executed is a claim of whoever polls the gateway's queue; the receipt is the fact (G22)."""
        execution = self._ledger.executions.get(record.tenant, record.operation)
        if execution is None or execution.status != ExecutionStatus.EXECUTED:
            raise Conflict(f"operation {record.operation}: the run says executed, and the ledger has no receipt of it")

    def _check_nothing_open(self, record: StateRecord) -> None:
        """An operation whose effect may have happened has not ended, whoever says so; its outcome is looked up."""
        execution = self._ledger.executions.get(record.tenant, record.operation)
        if execution is not None and execution.status in (ExecutionStatus.INTENDED, ExecutionStatus.UNKNOWN):
            raise Conflict(f"operation {record.operation}: its effect may have happened; it ends when that is known")

    def _check_decided(self, record: StateRecord) -> None:
        """The same for what people, or the clock, made of the proposal: nobody's word ends an operation for them."""
        approval = self._ledger.approvals.current(record.tenant, record.operation)
        if approval is None or approval.status != _DECIDED[record.state]:
            state = record.state.value
            raise Conflict(
                f"operation {record.operation}: the run says {state}, and its approval in the ledger does not"
            )

    def _check_people(self, record: StateRecord) -> None:
        """That a person holds the run, or ended it, is theirs to say by a signed command, which the ledger has."""
        held = record.state == State.HUMAN_TAKEOVER
        ended = record.state == State.WITHDRAWN or (record.state, record.reason) in _ENDINGS
        if not held and not ended:
            return
        standing = self._ledger.controls.standing(record.tenant, record.operation)
        if held and standing.control.by != "person":
            holder = standing.control.holder()
            raise Conflict(f"operation {record.operation}: the run says a person is in control, and it is {holder}")
        by_people = (standing.ending.state, standing.ending.reason) if standing.ending is not None else None
        if ended and by_people != (record.state, record.reason):
            said = f"{record.state.value} {record.reason}"[:80]
            raise Conflict(f"operation {record.operation}: the run says {said}, and nobody ended it so")
