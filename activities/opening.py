"""Opening a run and writing down where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from temporalio import activity

from activities.failures import refusals
from activities.interfaces import EarlierEffect, HandOnOrder, Opening, OpenOrder, RunOrder, RunPlan, StateRecord
from activities.runs import Runs
from countersign.cases.assessing import policy_in_force
from countersign.cases.case import Case
from countersign.domain.audit import lost_until
from countersign.domain.command import ENDS_AS
from countersign.domain.errors import Conflict, CountersignError, NotAuthorised, Unavailable
from countersign.domain.execution import LOST_TIME, MAY_BE_THERE, EffectResult, Execution, ExecutionStatus
from countersign.domain.following import receipt_to_follow
from countersign.domain.operation import Operation
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.question import QuestionStatus
from countersign.domain.state import State
from countersign.domain.strict_json import parse
from countersign.ports import Ledger
from countersign.signing.statements import verify_request

_DECIDED = {State.REJECTED: ApprovalStatus.REJECTED, State.EXPIRED: ApprovalStatus.EXPIRED}
"""Ends of a run that are the end of its approval."""
_UNANSWERED = (State.EXPIRED, "unanswered_at_deadline")
"""The end of a run that is the end of its agent's question."""
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
            _check_meant(run, stored)
            case, effect = self._case(stored), self._standing(stored)
            if effect is None:
                self._check_request(stored, case, order.now)
                self._ledger.operations.move(run.tenant, run.operation, State.RUNNING, "", order.now)
            # What people did to the operation outlives a reset, or a run that is started anew.
            standing = self._ledger.controls.standing(run.tenant, run.operation)
        return RunPlan(
            drafted=case.drafted,
            max_rounds=self._max_rounds,
            max_grader_tries=self._max_grader_tries,
            control=standing.control,
            ending=standing.ending,
            gathers=case.gathers,
            followers=self._followers(stored),
            standing=effect,
        )

    def _standing(self, stored: Operation) -> EarlierEffect | None:
        """The operation's effect, where an earlier run has come so far that it is there, or may be.

        Whoever asked for it may have lost their role since, which changes nothing of what lies outside.
        """
        execution = self._ledger.executions.get(stored.tenant, stored.operation)
        has_ended_otherwise = stored.state.terminal and stored.state != State.SUCCEEDED
        if has_ended_otherwise:
            return None
        if execution is None or execution.status == ExecutionStatus.NOT_SENT:
            return self._lost(stored, execution)
        if execution.status == ExecutionStatus.EXECUTED:
            receipt = execution.receipt.model_copy(update={"detail": ""}) if execution.receipt is not None else None
            effect = EffectResult(
                status=execution.status, reason=stored.reason if stored.state.terminal else "", receipt=receipt
            )
        else:
            effect = EffectResult(status=ExecutionStatus.UNKNOWN, reason="begun_by_an_earlier_run")
        return EarlierEffect(approval_id=execution.approval_id, effect=effect)

    def _lost(self, stored: Operation, execution: Execution | None) -> EarlierEffect | None:
        """What may have been sent in a time that the ledger lost; nothing where it was surely not sent since.

        Before anything is read anew: the effect may itself have changed what the operation rests on.
        """
        until = lost_until(self._ledger.audit.restores(stored.tenant), stored.registered_at)
        if until is None or stored.state.terminal or (execution is not None and execution.claimed_until > until):
            return None
        latest = self._ledger.approvals.current(stored.tenant, stored.operation)
        if latest is None:
            return None
        effect = EffectResult(status=ExecutionStatus.UNKNOWN, reason=LOST_TIME)
        return EarlierEffect(approval_id=latest.proposal.approval_id, effect=effect)

    def _check_request(self, stored: Operation, case: Case, now: datetime) -> None:
        """That what was asked for may begin.

        Raises:
            NotAuthorised: the requester may not ask for it.
            Conflict, StatementRefused, Unavailable: nobody has signed for it; or see `_check_followed`.
        """
        persons = self._ledger.directory.persons(stored.tenant)
        statement, signer = verify_request(stored.statement, persons, installation=self._installation, now=now)
        self._check_followed(stored)
        role = policy_in_force(self._ledger, stored.tenant, case.name).asked_by
        if not signer.may(role):
            raise NotAuthorised(
                "role",
                f"operation {stored.operation}: {signer.id} may not start operations of case {case.name}; the role "
                f"{role} is needed",
            )
        signed = (statement.tenant, statement.operation, statement.request_hash, signer.id)
        if signed != (stored.tenant, stored.operation, stored.request_hash, stored.requester):
            raise Conflict(f"operation {stored.operation}: its request was not signed for it by its requester")

    def _case(self, stored: Operation) -> Case:
        """The case that the signed request names, which the registration must name too."""
        named = self._request(stored).get("case")
        case = self._cases.get(stored.case)
        if case is None or named != stored.case:
            known = ", ".join(sorted(self._cases))
            raise Conflict(f"operation {stored.operation}: its request is of no case {stored.case!r}; known: {known}")
        return case

    def _check_followed(self, stored: Operation) -> None:
        """What follows another operation does so by its signed request, and begins once that one's effect is confirmed.

        Raises:
            Conflict: the request names another one than the registration.
            Unavailable: nothing is confirmed yet; it is looked at again.
        """
        if self._request(stored).get("follows", "") != stored.follows:
            raise Conflict(f"operation {stored.operation}: its request does not follow {stored.follows or 'nothing'}")
        if not stored.follows or stored.state.terminal:
            return
        if receipt_to_follow(self._ledger.executions.get(stored.tenant, stored.follows)) is None:
            raise Unavailable(f"operation {stored.operation} waits until the effect of {stored.follows} is confirmed")

    def _followers(self, stored: Operation) -> tuple[RunOrder, ...]:
        """Who follows it and has not ended."""
        known = self._ledger.operations.followers(stored.tenant, stored.operation)
        return tuple(
            RunOrder(tenant=one.tenant, operation=one.operation, case=one.case, request_hash=one.request_hash)
            for one in known
            if not one.state.terminal
        )

    def _request(self, stored: Operation) -> Mapping[str, object]:
        """The signed request; empty where it has not the form of one."""
        request = parse(self._ledger.documents.get(stored.tenant, stored.request_hash), where="request")
        return request if isinstance(request, dict) else {}

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
            if self._is_behind(record):
                return
            if record.state == State.SUCCEEDED:
                self._check_executed(record)
            elif record.state.terminal:
                self._check_nothing_open(record)
                self._check_begun(record)
            if record.state in _DECIDED:
                self._check_decided(record)
            self._check_people(record)
            self._ledger.operations.move(record.tenant, record.operation, record.state, record.reason, record.now)

    def _is_behind(self, record: StateRecord) -> bool:
        """Whether a run that was reset is about to ask for what is done: the gateway tells it so, and it ends (G33)."""
        stored = self._ledger.operations.get(record.tenant, record.operation)
        return record.state == State.EXECUTING and stored.state == State.SUCCEEDED

    def _check_executed(self, record: StateRecord) -> None:
        """That it was executed is a claim of whoever polls the gateway's queue; the receipt is the fact (G22)."""
        execution = self._ledger.executions.get(record.tenant, record.operation)
        if execution is None or execution.status != ExecutionStatus.EXECUTED:
            raise Conflict(f"operation {record.operation}: the run says executed, and the ledger has no receipt of it")

    def _check_nothing_open(self, record: StateRecord) -> None:
        """An operation whose effect may have happened has not ended, whoever says so; its outcome is looked up."""
        execution = self._ledger.executions.get(record.tenant, record.operation)
        if execution is not None and execution.status in MAY_BE_THERE:
            raise Conflict(f"operation {record.operation}: its effect may have happened; it ends when that is known")

    def _check_begun(self, record: StateRecord) -> None:
        """What was never begun has not ended by the word of a run that began nothing: one that was started by hand for
        something else, or too early. Only where it may not be begun at all, its run may say so."""
        stored = self._ledger.operations.get(record.tenant, record.operation)
        may_be_cancelled = record.state == State.CANCELLED and not stored.follows
        if stored.state != State.CREATED or _is_by_people(record) or may_be_cancelled:
            return
        try:
            self._check_request(stored, self._case(stored), record.now)
        except Unavailable:
            pass
        except CountersignError:
            return
        raise Conflict(f"operation {record.operation}: it was never begun, and can be; this run cannot end it")

    def _check_decided(self, record: StateRecord) -> None:
        """The same for what people, or the clock, made of the proposal: nobody's word ends an operation for them."""
        if (record.state, record.reason) == _UNANSWERED:
            self._check_unanswered(record)
            return
        approval = self._ledger.approvals.current(record.tenant, record.operation)
        if approval is None or approval.status != _DECIDED[record.state]:
            state = record.state.value
            raise Conflict(
                f"operation {record.operation}: the run says {state}, and its approval in the ledger does not"
            )

    def _check_unanswered(self, record: StateRecord) -> None:
        asked = self._ledger.questions.current(record.tenant, record.operation)
        if asked is None or asked.status != QuestionStatus.EXPIRED:
            raise Conflict(
                f"operation {record.operation}: the run says nobody answered its agent, and the ledger does not"
            )

    def _check_people(self, record: StateRecord) -> None:
        """That a person holds the run, or ended it, is theirs to say by a signed command, which the ledger has."""
        held = record.state == State.HUMAN_TAKEOVER
        ended = _is_by_people(record)
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


def _check_meant(run: RunOrder, stored: Operation) -> None:
    """Before anything is waited for: a run for something else must not hold the operation's name meanwhile."""
    if (run.request_hash, run.case) != (stored.request_hash, stored.case):
        raise Conflict(f"operation {run.operation}: the run was not started for the request that was signed")


def _is_by_people(record: StateRecord) -> bool:
    return record.state == State.WITHDRAWN or (record.state, record.reason) in _ENDINGS
