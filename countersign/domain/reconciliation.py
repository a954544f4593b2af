"""Where ledger, Temporal and the outside system disagree about a tenant's operations: what was seen goes in.

Apart from the looking, since what counts as a disagreement must not depend on what was asked first. Pure. A part that
did not answer is a gap, never an agreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from enum import StrEnum

from countersign.domain.balances import Balance
from countersign.domain.execution import Execution, ExecutionStatus, Receipt
from countersign.domain.operation import Operation
from countersign.domain.state import State
from countersign.domain.values import Value

RUNNING, COMPLETED = "RUNNING", "COMPLETED"
"""What Temporal calls a run that is open, and one that came to its own end."""
SERVER = "Temporal"
"""What a gap calls the Temporal server."""


class DisagreementKind(StrEnum):
    """What kind of disagreement it is; the stable code that programs use."""

    EFFECT_GONE = "effect_gone"  # the ledger has it executed, the outside has nothing
    EFFECT_DIFFERS = "effect_differs"  # both have it, and not the same
    EFFECT_UNRECORDED = "effect_unrecorded"  # the outside has it, the ledger does not have it executed
    EFFECT_UNKNOWN = "effect_unknown"  # the outside has it under a key that no action of the ledger's has
    REFUNDED_DIFFERS = "refunded_differs"  # by its payments another sum was refunded than by the ledger's receipts
    OUTCOME_OPEN = "outcome_open"  # the ledger does not know, and the outside has nothing
    EXECUTED_NOT_ENDED = "executed_not_ended"  # executed, and no run to say so
    EXECUTED_ENDED_OTHERWISE = "executed_ended_otherwise"  # executed, and ended as if it were not
    SUCCEEDED_NOT_EXECUTED = "succeeded_not_executed"  # succeeded, and nothing executed
    RUN_MISSING = "run_missing"  # the ledger says it goes on, Temporal has no run
    RUN_CLOSED = "run_closed"  # the ledger says it goes on, its run is closed
    RUN_GOES_ON = "run_goes_on"  # the ledger says it has ended, its run is open
    RUN_UNKNOWN = "run_unknown"  # a run of the tenant's that the ledger has no operation for
    STATES_DIFFER = "states_differ"  # both go on, or have ended, in different states
    FOLLOWER_NOT_STARTED = "follower_not_started"  # what it follows has succeeded, and it has no run


class Look(Value):
    """What an outside system said of a key."""

    receipt: Receipt | None = None
    """None: it holds nothing, unless `untold`."""
    untold: str = ""
    """Why it did not say; empty where it did."""
    doubt: str = ""
    """Why that it holds nothing may not be believed; empty where it may."""


class Effect(Value):
    """One action that was ever proposed: what the ledger knows of it, and what the outside said."""

    operation: str
    channel: str
    """Where it was looked up."""
    key: str
    execution: Execution | None
    look: Look
    keys_kept: timedelta | None = None
    """How long the outside remembers a key; None: for ever."""

    @property
    def executed(self) -> bool:
        """Whether the ledger has it executed."""
        return self.execution is not None and self.execution.status == ExecutionStatus.EXECUTED

    def forgotten(self, now: datetime) -> str:
        """Why the outside may have dropped the key since: then that it holds nothing says nothing (G35); else empty."""
        if self.execution is None or self.execution.status == ExecutionStatus.NOT_SENT:
            return ""
        if self.keys_kept is not None and now - self.execution.claimed_until >= self.keys_kept:
            return f"it keeps keys for {self.keys_kept} only, and these effects are older"
        return self.look.doubt


class SeenRun(Value):
    """A run as Temporal has it: the open one of its operation, or the latest."""

    operation: str
    run_id: str
    status: str
    """RUNNING, COMPLETED, CANCELED, TERMINATED, FAILED, TIMED_OUT."""
    state: str
    """The state that it shows to operators; empty where it shows none."""
    foreign: bool = False
    """Whether it was started for something else than the operation whose name it has."""

    @property
    def is_open(self) -> bool:
        """Whether it goes on."""
        return self.status == RUNNING

    def __str__(self) -> str:
        shown = f", {self.state}" if self.state else ""
        return f"{self.status}{shown}"


class Gap(Value):
    """Something that could not be compared."""

    part: str
    """A channel's name, or SERVER."""
    why: str
    count: int = 1
    """Of how many effects this holds."""


class Survey(Value):
    """All that was seen of a tenant's operations."""

    operations: tuple[Operation, ...]
    effects: tuple[Effect, ...] = ()
    strays: tuple[Receipt, ...] = ()
    """What lies outside under keys that no action has."""
    balances: tuple[Balance, ...] = ()
    """What was refunded of payments, by both."""
    runs: tuple[SeenRun, ...] | None = ()
    """None: Temporal did not answer."""
    gaps: tuple[Gap, ...] = ()
    """What could not be looked at."""
    others: tuple[Operation, ...] = ()
    """Further operations that the ledger has; only what these follow is asked of them."""


class Disagreement(Value):
    """One disagreement."""

    kind: DisagreementKind
    operation: str
    """Empty where it belongs to none that the ledger knows."""
    says: str
    """Who says what, in a sentence."""
    key: str = ""
    """The idempotency key that it is about; empty where it is about a run."""


def disagreements(survey: Survey, now: datetime) -> tuple[Disagreement, ...]:
    """Every disagreement, effects first."""
    return (*_of_effects(survey, now), *_of_money(survey), *_of_ends(survey), *_of_runs(survey))


def lasting(first: Collection[Disagreement], second: Collection[Disagreement]) -> tuple[Disagreement, ...]:
    """What was found both times: a run that goes on moves between two looks, and nobody has to do anything."""
    before = {_mark(one) for one in first}
    return tuple(one for one in second if _mark(one) in before)


def _mark(one: Disagreement) -> tuple[str, ...]:
    """What makes two disagreements the same; what differs in another way by now is something that moves."""
    moves = one.kind in (DisagreementKind.STATES_DIFFER, DisagreementKind.REFUNDED_DIFFERS)
    return one.kind, one.operation, one.key, one.says if moves else ""


def gaps(survey: Survey, now: datetime) -> tuple[Gap, ...]:
    """Everything that was not compared, the same reason of the same part once."""
    untold = Counter((one.channel, why) for one in survey.effects if (why := _not_told(one, now)))
    of_effects = tuple(Gap(part=part, why=why, count=count) for (part, why), count in sorted(untold.items()))
    return (*survey.gaps, *of_effects)


def _not_told(effect: Effect, now: datetime) -> str:
    if effect.look.untold:
        return effect.look.untold
    return effect.forgotten(now) if effect.look.receipt is None else ""


def _of_effects(survey: Survey, now: datetime) -> Iterator[Disagreement]:
    for effect in survey.effects:
        if effect.look.receipt is not None:
            yield from _compared(effect, effect.look.receipt, now)
        elif not _not_told(effect, now):
            yield from _nothing_there(effect, now)
    for stray in survey.strays:
        says = f"{stray.channel} holds {stray.reference} under a key that no action of the ledger has"
        yield Disagreement(kind=DisagreementKind.EFFECT_UNKNOWN, operation="", says=says, key=stray.key)


def _compared(effect: Effect, found: Receipt, now: datetime) -> Iterator[Disagreement]:
    stored = effect.execution.receipt if effect.execution is not None else None
    if not effect.executed or stored is None:
        if not _under_way(effect.execution, now):
            says = f"{effect.channel} holds {found.reference}, and the ledger says: {_word(effect.execution)}"
            yield _about(effect, DisagreementKind.EFFECT_UNRECORDED, says)
    elif (stored.content_hash, stored.reference) != (found.content_hash, found.reference):
        ours, theirs = (f"{one.reference} with content {one.content_hash}" for one in (stored, found))
        yield _about(
            effect,
            DisagreementKind.EFFECT_DIFFERS,
            f"the ledger's receipt says {ours}, {effect.channel} holds {theirs}",
        )


def _nothing_there(effect: Effect, now: datetime) -> Iterator[Disagreement]:
    stored = effect.execution
    if stored is None or stored.status == ExecutionStatus.NOT_SENT or _under_way(stored, now):
        return
    if stored.receipt is not None:
        says = f"the ledger has it executed as {stored.receipt.reference}, and {effect.channel} holds nothing"
        yield _about(effect, DisagreementKind.EFFECT_GONE, says)
    else:
        says = f"the ledger says: {_word(stored)}, and {effect.channel} holds nothing"
        yield _about(effect, DisagreementKind.OUTCOME_OPEN, says)


def _about(effect: Effect, kind: DisagreementKind, says: str) -> Disagreement:
    return Disagreement(kind=kind, operation=effect.operation, says=says, key=effect.key)


def _under_way(execution: Execution | None, now: datetime) -> bool:
    """Whether somebody may be sending it, or writing it down, at this moment."""
    return execution is not None and execution.status == ExecutionStatus.INTENDED and now < execution.claimed_until


def _word(execution: Execution | None) -> str:
    if execution is None:
        return "never sent"
    words = {
        ExecutionStatus.INTENDED: "begun, and not known how it ended",
        ExecutionStatus.UNKNOWN: "outcome unknown",
        ExecutionStatus.NOT_SENT: "not sent",
        ExecutionStatus.EXECUTED: "executed, without a receipt",
    }
    return words[execution.status]


def _of_money(survey: Survey) -> Iterator[Disagreement]:
    for one in survey.balances:
        if not one.agrees:
            says = one.sentence()
            yield Disagreement(kind=DisagreementKind.REFUNDED_DIFFERS, operation=one.operation, says=says)


def _of_ends(survey: Survey) -> Iterator[Disagreement]:
    """Where the ledger's own parts tell different ends of an operation."""
    executed = {one.operation for one in survey.effects if one.executed}
    open_runs = {one.operation for one in survey.runs or () if one.is_open}
    for one in survey.operations:
        name, state = one.operation, one.state
        if name in executed and not state.terminal and survey.runs is not None and name not in open_runs:
            says = f"its effect is executed, the ledger says {state.value}, and no run is open to end it"
            yield Disagreement(kind=DisagreementKind.EXECUTED_NOT_ENDED, operation=name, says=says)
        elif name in executed and state.terminal and state != State.SUCCEEDED:
            says = f"its effect is executed, and the operation has ended as {state.value}"
            yield Disagreement(kind=DisagreementKind.EXECUTED_ENDED_OTHERWISE, operation=name, says=says)
        elif name not in executed and state == State.SUCCEEDED:
            says = "the operation has succeeded, and the ledger has no executed effect of it"
            yield Disagreement(kind=DisagreementKind.SUCCEEDED_NOT_EXECUTED, operation=name, says=says)


def _of_runs(survey: Survey) -> Iterator[Disagreement]:
    if survey.runs is None:
        return
    runs = {run.operation: run for run in survey.runs}
    known = {one.operation: one for one in (*survey.operations, *survey.others)}
    executed = {one.operation for one in survey.effects if one.executed}
    for one in survey.operations:
        run = runs.get(one.operation)
        if run is not None and run.foreign:
            says = f"run {run.run_id} ({run}) holds its name, and was started for something else"
            yield Disagreement(kind=DisagreementKind.RUN_UNKNOWN, operation=one.operation, says=says)
        elif run is None:
            if one.operation not in executed:
                yield from _without_run(one, known)
        elif one.operation not in executed or one.state.terminal or run.is_open:
            yield from _told_apart(one, run)
    for run in survey.runs:
        if run.operation not in known:
            says = f"Temporal has run {run.run_id} ({run}), and the ledger has no such operation"
            yield Disagreement(kind=DisagreementKind.RUN_UNKNOWN, operation=run.operation, says=says)


def _without_run(one: Operation, known: dict[str, Operation]) -> Iterator[Disagreement]:
    """That an ended one has no run any more is as it should be: Temporal keeps them for a while only."""
    if one.state.terminal:
        return
    followed = known.get(one.follows)
    if followed is None or one.state != State.CREATED:
        says = f"the ledger says {one.state.value}, and Temporal has no run of it"
        yield Disagreement(kind=DisagreementKind.RUN_MISSING, operation=one.operation, says=says)
    elif followed.state.terminal:
        says = f"it follows {followed.operation}, which is {followed.state.value}, and was not started"
        yield Disagreement(kind=DisagreementKind.FOLLOWER_NOT_STARTED, operation=one.operation, says=says)


def _told_apart(one: Operation, run: SeenRun) -> Iterator[Disagreement]:
    name, state = one.operation, one.state
    if run.is_open and state.terminal:
        says = f"the ledger says {state.value}, and run {run.run_id} goes on ({run})"
        yield Disagreement(kind=DisagreementKind.RUN_GOES_ON, operation=name, says=says)
    elif not run.is_open and not state.terminal:
        says = f"the ledger says {state.value}, and run {run.run_id} is closed ({run})"
        yield Disagreement(kind=DisagreementKind.RUN_CLOSED, operation=name, says=says)
    elif run.state not in ("", state) and (run.is_open or _denied(state, run)):
        says = f"the ledger says {state.value}, and run {run.run_id} says {run}"
        yield Disagreement(kind=DisagreementKind.STATES_DIFFER, operation=name, says=says)


def _denied(state: State, run: SeenRun) -> bool:
    """Whether a closed run tells another end than the ledger, of success or not.

    Of two ends without an effect the ledger's counts, and what was cut short tells none: a run that was reset after the
    end gives up by itself, or is terminated.
    """
    return run.state == State.SUCCEEDED or (state == State.SUCCEEDED and run.status == COMPLETED)
