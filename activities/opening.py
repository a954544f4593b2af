"""Opening a run and writing down where it stands."""

from __future__ import annotations

from temporalio import activity

from activities.failures import refusals
from activities.interfaces import Opening, OpenOrder, RunPlan, StateRecord
from activities.requests import stored_request
from countersign.domain.errors import Conflict
from countersign.domain.execution import ExecutionStatus
from countersign.domain.identity import workflow_id
from countersign.domain.state import State
from countersign.ports import Ledger
from countersign.signing.statements import verify_request


class OpeningSteps(Opening):
    """Checks what is registered before anything is done for it: a workflow can be started by anyone."""

    def __init__(self, ledger: Ledger, installation: str, plan: RunPlan) -> None:
        self._ledger = ledger
        self._installation = installation
        self._plan = plan

    @activity.defn
    def open_run(self, order: OpenOrder) -> RunPlan:
        """See Opening."""
        run = order.run
        with refusals(self._ledger, run.tenant, run.operation, "open_run"):
            _check_name(run.tenant, run.operation)
            stored = self._ledger.operations.get(run.tenant, run.operation)
            persons = self._ledger.directory.persons(run.tenant)
            statement, signer = verify_request(
                stored.statement, persons, installation=self._installation, now=order.now
            )
            request = stored_request(self._ledger, run.tenant, run.operation)
            if not signer.may_request:
                raise Conflict(
                    f"operation {run.operation}: {signer.id} may not start operations; the role requester is needed"
                )
            signed = (statement.tenant, statement.operation, statement.request_hash, signer.id, request.case)
            registered = (run.tenant, run.operation, stored.request_hash, stored.requester, stored.case)
            if signed != registered or (run.request_hash, run.case) != (stored.request_hash, stored.case):
                raise Conflict(f"operation {run.operation}: the run was not started for the request that was signed")
            self._ledger.operations.move(run.tenant, run.operation, State.RUNNING, "", order.now)
        return self._plan

    @activity.defn
    def record_state(self, record: StateRecord) -> None:
        """See Opening."""
        with refusals(self._ledger, record.tenant, record.operation, "record_state"):
            _check_name(record.tenant, record.operation)
            if record.state == State.SUCCEEDED:
                self._check_executed(record)
            self._ledger.operations.move(record.tenant, record.operation, record.state, record.reason, record.now)

    def _check_executed(self, record: StateRecord) -> None:
        """That it was executed is a claim of whoever polls the gateway's queue; the receipt is the fact (G22)."""
        execution = self._ledger.executions.get(record.tenant, record.operation)
        if execution is None or execution.status != ExecutionStatus.EXECUTED:
            raise Conflict(f"operation {record.operation}: the run says executed, and the ledger has no receipt of it")


def _check_name(tenant: str, operation: str) -> None:
    """Temporal keeps names single, so one operation has one run; anyone can start another under a name of their own."""
    name = activity.info().workflow_id
    if name != workflow_id(tenant, operation):
        raise Conflict(f"operation {operation}: a run named {str(name)[:140]!r} is not the one that may carry it out")
