"""The audit against Temporal's history: each message that a run took in has its record, and the reverse (G47). Pure.

Apart from the reading of histories, so that what counts as a disagreement is said and tested without a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from countersign.domain.audit import AuditRecord
from countersign.domain.operation import Operation
from countersign.domain.values import Value
from workflows.names import WORKFLOW_TYPE

_UNFINISHED = frozenset({"RUNNING", "TERMINATED", "FAILED", "TIMED_OUT"})
"""How a run stands that has not come to its own end: what came last has no ruling yet, or never will."""
_HANDED_ON = "CONTINUED_AS_NEW"
BY_RUNS = ("signal", "update")
"""How a message comes to a run."""


class Came(Value):
    """One message as a run's history has it."""

    transport: str
    statement_hash: str
    """Hash of the statement in it; empty where there is none to be found."""
    before: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Runs from which a reset copied it: it can have been ruled on, and recorded, in any of them."""


class KeptRun(Value):
    """One run that the server still has."""

    operation: str
    run_id: str
    type: str
    status: str
    """RUNNING, COMPLETED, CONTINUED_AS_NEW, TERMINATED, ..."""
    carried: int = 0
    """How many messages came to the runs that it carries on."""
    came: Annotated[tuple[Came, ...], Field(strict=False)] = ()
    """In the order in which they were taken in."""


class Checked(Value):
    """What came of comparing a tenant's audit with the histories of its runs."""

    runs: int
    """How many histories were read."""
    messages: int
    """Messages in them that have their record, and say the same."""
    waiting: int
    """The last ones of runs that have not come to their end: not ruled on, so not recorded."""
    gone_runs: int
    gone_messages: int
    """Recorded messages of runs that the server no longer has: not checked."""
    by_no_run: int
    """Recorded messages that the command line took in for an expired proposal: no history has them."""
    problems: tuple[str, ...]
    """One sentence for each message without a record, record without a message, and pair that differs."""


class _Compared(NamedTuple):
    """One run's part of it."""

    fitting: Sequence[AuditRecord]
    waiting: int
    problems: Sequence[str]


def check(runs: Sequence[KeptRun], records: Iterable[AuditRecord]) -> Checked:
    """Compare what came to runs with what was recorded.

    Args:
        runs: all of a tenant's operations that the server has.
        records: the tenant's audit.
    """
    named = [one for one in records if "message_id" in one.detail]
    recorded: dict[str, list[AuditRecord]] = {}
    for one in named:
        if one.detail["transport"] in BY_RUNS:
            recorded.setdefault(str(one.detail["message_id"]), []).append(one)
    unfinished = {run.operation for run in runs if run.status in _UNFINISHED}
    compared = [_compared(run, recorded, unfinished) for run in runs]
    fitting = {one.sequence for part in compared for one in part.fitting}
    left = [one for found in recorded.values() for one in found if one.sequence not in fitting]
    kept = {run.run_id for run in runs}
    gone = [one for one in left if _run_of(one) not in kept]
    return Checked(
        runs=len(runs),
        messages=sum(len(part.fitting) for part in compared),
        waiting=sum(part.waiting for part in compared),
        gone_runs=len({_run_of(one) for one in gone}),
        gone_messages=len(gone),
        by_no_run=len(named) - sum(map(len, recorded.values())),
        problems=(
            *(problem for part in compared for problem in part.problems),
            *(_extra(one) for one in sorted(left, key=lambda one: one.sequence) if _run_of(one) in kept),
        ),
    )


def untold_or_gone(operations: Iterable[Operation], records: Iterable[AuditRecord]) -> Iterator[str]:
    """What keeps histories from being found: operations that were registered and are not there, and the reverse."""
    registered = {one.operation: one.sequence for one in records if one.type == "operation.registered"}
    there = {one.operation for one in operations}
    for name in sorted(registered.keys() - there):
        yield f"operation {name}: audit record {registered[name]} says that it was registered, and it is not there"
    for name in sorted(there - registered.keys()):
        yield f"operation {name}: it is there, and no audit record says that it was registered"


def _compared(run: KeptRun, recorded: Mapping[str, Sequence[AuditRecord]], unfinished: set[str]) -> _Compared:
    if run.type != WORKFLOW_TYPE:
        return _Compared((), 0, [f"operation {run.operation}: run {run.run_id} is of type {run.type!r}, none of ours"])
    fitting: list[AuditRecord] = []
    problems: list[str] = []
    missing: list[str] = []
    for number, one in zip(_numbers(run, recorded), run.came, strict=True):
        found = [record for by in (run.run_id, *one.before) for record in recorded.get(f"{by}:{number}", ())]
        fits = [record for record in found if _says(record, one)]
        if fits:
            fitting.append(fits[0])
            # What came before one that was ruled on had its turn.
            problems += missing
            missing = []
        else:
            missing.append(_missing(run, number, one, found))
    if run.operation in unfinished and run.status in (*_UNFINISHED, _HANDED_ON):
        return _Compared(fitting, len(missing), problems)
    return _Compared(fitting, 0, problems + missing)


def _numbers(run: KeptRun, recorded: Mapping[str, object]) -> Iterator[int]:
    """The number that each message has in its id.

    A run that carries others on counts on from theirs as soon as the ledger has said that it may, which is after the
    first messages can have come.
    """
    early = 0
    if run.carried:
        while early < len(run.came) and f"{run.run_id}:{early + 1}" in recorded and early < run.carried:
            early += 1
    for place in range(1, len(run.came) + 1):
        yield place if place <= early else run.carried + place


def _says(record: AuditRecord, came: Came) -> bool:
    """Whether a record is about this message; one that was refused unread names no statement."""
    statement = record.detail.get("statement_hash", came.statement_hash)
    return (record.detail["transport"], statement) == (came.transport, came.statement_hash)


def _missing(run: KeptRun, number: int, came: Came, found: Sequence[AuditRecord]) -> str:
    message = f"operation {run.operation}: message {run.run_id}:{number} came as {came.transport}"
    stated = f" with statement {came.statement_hash}" if came.statement_hash else ""
    if not found:
        return f"{message}{stated}, and has no audit record"
    one = found[0]
    said = f"as {one.detail['transport']} with statement {one.detail.get('statement_hash', 'none')}"
    return f"{message}{stated}, and audit record {one.sequence} has it {said}"


def _extra(record: AuditRecord) -> str:
    return (
        f"operation {record.operation}: audit record {record.sequence} ({record.type}) is about message"
        f" {record.detail['message_id']}, which the run's history does not have so"
    )


def _run_of(record: AuditRecord) -> str:
    return str(record.detail["message_id"]).rpartition(":")[0]
