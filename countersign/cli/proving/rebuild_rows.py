"""The ledger's tables beside what its audit has them hold, both ways: what is missing, what is too much, what differs.

Apart from the records' own story, which tells what stands behind each: here a row counts that no record names, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from countersign.domain.action import Action
from countersign.domain.audit import AuditRecord
from countersign.domain.canonical import digest, sha256_hex
from countersign.domain.errors import InputRefused
from countersign.domain.expected_rows import HASH, Expected, Key, Row, expected_rows

_NAMES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "operations": (("operation",), "the registration of {}"),
    "drafts": (("version",), "draft v{}"),
    "draft_checks": (("version", "number"), "what the checks found in v{}, the {}. time"),
    "draft_grades": (("version", "number"), "the grade of v{}, the {}. time"),
    "facts": (("number",), "facts {}"),
    "approvals": (("approval_id",), "proposal {}"),
    "votes": (("approval_id", "person"), "on {} the vote of {}"),
    "ticks": (("approval_id", "number"), "of {} reminder or line {}"),
    "holds": (("number", "approval_id"), "that freeze {} held {}"),
    "executions": (("key",), "the execution of key {}"),
    "settlements": (("key", "number"), "of key {} statement {}"),
    "controls": (("version",), "control version {}"),
    "endings": (("operation",), "that people ended {}"),
    "escalations": (("number",), "escalation {}"),
    "questions": (("number",), "question {}"),
    "question_ticks": (("question", "number"), "of question {} reminder or line {}"),
    "budget_raises": (("number",), "what was added to the budget, the {}. time"),
    "lines": (("line",), "the line of run {}"),
    "messages": (("message_id", "statement_hash"), "message {} {}"),
    "freezes": (("number",), "freeze {}"),
    "restores": (("number",), "the loss accepted in record {}"),
}
"""By table: the columns that tell its rows apart within an operation, and what a row is called."""
_OPENED_UP = ("vote", "receipt", "settlement", "control", "ending", "escalation", "freeze", "outcome", "answered")
"""Columns with small values of which each field is told apart."""
_BOUND_ELSEWHERE = frozenset({
    "operation", "proposal", "draft", "violations", "grade", "approval_id", "escalation.tenant", "escalation.operation",
    "freeze.tenant", "control.by", "control.person",
})  # fmt: skip
"""What needs no record of its own: names of the row itself, and whole texts that the story compares by their hashes."""


class Comparison(NamedTuple):
    """What came of it."""

    wrong: tuple[str, ...]
    unbound: tuple[str, ...]
    """What rows say and no record binds, a line for each table."""


def compared(
    rows: Mapping[str, Sequence[Mapping[str, Any]]], records: Iterable[AuditRecord], operation: str
) -> Comparison:
    """Compare the tables' rows of an operation with what the tenant's records have them hold."""
    expected = expected_rows(records, operation)
    wrong: list[str] = []
    unbound: list[str] = []
    for table, (columns, name) in _NAMES.items():
        found = {tuple(row[column] for column in columns): row for row in rows.get(table, ())}
        wrong += _differences(name, found, expected.get(table, {}))
        free = _unbound(found, expected.get(table, {}))
        unbound += [f"{table}: {', '.join(free)}"] if free else []
    return Comparison(tuple(wrong), tuple(unbound))


def _differences(name: str, found: Mapping[Key, Mapping[str, Any]], told: Mapping[Key, Expected]) -> Iterator[str]:
    for key, one in told.items():
        if key not in found:
            yield f"{name.format(*key)} is not in the ledger, and record {one.sequence} tells of it"
    for key, row in found.items():
        if key not in told:
            yield f"{name.format(*key)} is in the ledger, and no audit record tells of it"
            continue
        wanted = {**told[key].row, **(_by_its_action(row) if "likeness" in row else {})}
        for column, value in wanted.items():
            there = _value(row, column)
            if not _same(there, value):
                # What is wrong by a whole row is told by its name, so that nothing is said of it twice.
                what = column.removesuffix(HASH)
                yield f"{name.format(*key)}: {what} is {there!r}, and by record {told[key].sequence} it is {value!r}"


def _by_its_action(row: Mapping[str, Any]) -> Row:
    """What earlier proposals are found and summed up by: each as the proposal's own action has it."""
    try:
        action = Action.model_validate(row["proposal"]["action"])
    except (ValidationError, TypeError, KeyError):
        return {"proposal": "a proposal"}
    amount = action.amount
    return {
        "likeness": action.likeness(), "tool": action.tool, "target": action.target,
        "currency": amount.currency if amount else None, "minor": amount.minor if amount else None,
    }  # fmt: skip


def _value(row: Mapping[str, Any], path: str) -> Any:
    """What a row says; nothing where it has no such field, and a hash where one is asked for."""
    if path == "control.holder":
        return _value(row, "control.person") or _value(row, "control.by")
    value: Any = row
    for name in path.removesuffix(HASH).split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if path == f"answered.answers{HASH}":
        value = {"answers": value}  # the document that a person signed
    return _hashed(value) if path.endswith(HASH) else value


def _hashed(value: Any) -> str:
    try:
        return digest(value) if isinstance(value, Mapping) else sha256_hex(str(value).encode())
    except InputRefused:
        return "what has no canonical form"


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (_moment(one) is not None and _moment(one) == _moment(other))


def _moment(value: Any) -> datetime | None:
    """The instant that a text names: columns and whole values write the same one in two ways."""
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _unbound(found: Mapping[Key, Mapping[str, Any]], told: Mapping[Key, Expected]) -> list[str]:
    free: defaultdict[str, bool] = defaultdict(bool)
    for key, row in found.items():
        if key in told:
            bound = {name.removesuffix(HASH) for name in told[key].row} | _BOUND_ELSEWHERE
            bound |= set(_by_its_action(row)) if "likeness" in row else set()
            for name, value in _fields(row):
                free[name] |= name not in bound and value not in (None, "", 0)
    columns = {column for columns, _ in _NAMES.values() for column in columns}
    return sorted(name for name, is_free in free.items() if is_free and name not in columns)


def _fields(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for column, value in row.items():
        if column in _OPENED_UP and isinstance(value, Mapping):
            yield from ((f"{column}.{name}", inner) for name, inner in value.items())
        else:
            yield column, value
