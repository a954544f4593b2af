"""Decisions that nobody signed, for local trials: read as strictly as statements, and worth less everywhere.

Apart from statements because they prove nothing but access to the namespace: only the `dev` profile takes them,
each is kept as `namespace-only`, and none counts towards two persons.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from countersign.domain.canonical import canonical_bytes
from countersign.domain.decision import Statement
from countersign.domain.directory import Person
from countersign.domain.errors import InputRefused, StatementRefused
from countersign.domain.strict_json import parse
from countersign.domain.values import first_problem

UNSIGNED = "unsigned"
"""The field of a `decide` message that holds such a decision: `{"unsigned": {...}}`."""
MAX_BYTES = 8_000
GOOD_FOR = timedelta(hours=1)
_NEEDED = frozenset({"person", "decision", "approval_id", "approval_version", "action_hash", "id"})
_OPTIONAL = frozenset({"comment_hash", "edited_action"})


def unsigned_fields(statement: Statement) -> dict[str, Any]:
    """The object of a message that states this decision without a signature."""
    fields = statement.model_dump(mode="json", include=set(_NEEDED | _OPTIONAL))
    return {name: value for name, value in fields.items() if name in _NEEDED or value}


def unsigned_text(fields: Any) -> str:
    """The canonical JSON of a message's object, as it is kept and read; StatementRefused where it has none."""
    try:
        return canonical_bytes(fields).decode()
    except InputRefused as refused:
        raise StatementRefused("malformed", f"the unsigned decision is not acceptable: {refused.message}") from None


def read_unsigned(
    text: str, tenant: str, operation: str, persons: Mapping[str, Person], *, installation: str, now: datetime
) -> tuple[Statement, Person]:
    """The decision that `text` states and the person whom it names.

    Args:
        text: the object as `unsigned_text` writes it, so that one decision has one spelling.
        tenant: whose run took it in; it names no tenant itself, so it is good in no other.
        operation: the run's operation.
        persons: the directory of that tenant by person id.
        installation: this installation.
        now: when it is read; nothing in it says when it was made.

    Raises:
        StatementRefused: `malformed`, `claims` or `unknown_person`, whichever check fails first.
    """
    statement = _statement(_fields(text), tenant, operation, installation, now)
    person = persons.get(statement.person)
    if person is None or person.tenant != tenant:
        raise StatementRefused("unknown_person", "the unsigned decision names no person of this tenant")
    return statement, person


def _fields(text: str) -> dict[str, Any]:
    try:
        data = text.encode("utf-8")
        fields = parse(data, where=UNSIGNED, max_bytes=MAX_BYTES)
        canonical = canonical_bytes(fields)
    except (InputRefused, ValueError) as error:
        raise StatementRefused("malformed", f"the unsigned decision is not acceptable: {error}") from None
    if not isinstance(fields, dict) or canonical != data:
        raise StatementRefused("malformed", "the unsigned decision must be one JSON object in canonical form")
    odd = (set(fields) ^ _NEEDED) - _OPTIONAL
    if odd:
        named = ", ".join(sorted(repr(name[:40]) for name in odd)[:10])
        raise StatementRefused("claims", f"the unsigned decision lacks or adds fields: {named}")
    return fields


def _statement(fields: dict[str, Any], tenant: str, operation: str, installation: str, now: datetime) -> Statement:
    try:
        return Statement(
            installation=installation, key_id="", tenant=tenant, operation=operation,
            issued_at=now, expires_at=now + GOOD_FOR, **fields,
        )  # fmt: skip
    except ValidationError as error:
        wrong = f"the unsigned decision's fields are wrong: {first_problem(error)}"
        raise StatementRefused("claims", wrong) from None
