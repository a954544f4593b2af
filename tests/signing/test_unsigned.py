"""Decisions that nobody signed: one form, one spelling, one tenant's persons; anything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.canonical import canonical_bytes
from countersign.domain.decision import Statement
from countersign.domain.directory import Person
from countersign.domain.errors import StatementRefused
from countersign.signing.statements import verify_decision
from countersign.signing.unsigned import MAX_BYTES, read_unsigned, unsigned_fields
from tests.domain.samples import NOW, a_person, a_proposal, a_statement
from tests.signing.tokens import directory

pytestmark = pytest.mark.guarantee("G19")

HASH = a_proposal().action_hash
FIELDS: dict[str, Any] = {
    "person": "bob",
    "decision": "approve",
    "approval_id": "apr-1",
    "approval_version": 2,
    "action_hash": HASH,
    "id": "statement-000001",
}


def text_of(**changes: Any) -> str:
    return canonical_bytes({**FIELDS, **changes}).decode()


def read(text: str, persons: dict[str, Person] | None = None) -> tuple[Statement, Person]:
    known = directory() if persons is None else persons
    return read_unsigned(text, "acme", "report-1", known, installation="local", now=NOW)


def refusal(text: str, persons: dict[str, Person] | None = None) -> StatementRefused:
    with pytest.raises(StatementRefused) as refused:
        read(text, persons)
    assert len(refused.value.message.splitlines()) == 1
    assert len(refused.value.message) < 1_000
    return refused.value


def test_it_is_read_as_the_decision_of_the_person_whom_it_names() -> None:
    statement, person = read(text_of())

    assert (person.id, statement.person, statement.key_id) == ("bob", "bob", "")
    assert (statement.tenant, statement.operation, statement.installation) == ("acme", "report-1", "local")
    assert (statement.decision, statement.action_hash, statement.issued_at) == ("approve", HASH, NOW)
    assert statement.expires_at > NOW


@pytest.mark.parametrize(
    "statement",
    [
        a_statement(key_id=""),
        a_statement(key_id="", decision="reject", comment_hash=HASH),
        a_statement(key_id="", decision="edit", edited_action=HASH),
    ],
)
def test_what_the_command_line_sends_is_read_back(statement: Statement) -> None:
    read_back, _ = read(canonical_bytes(unsigned_fields(statement)).decode())

    times = {"issued_at": statement.issued_at, "expires_at": statement.expires_at}
    assert read_back.model_copy(update=times) == statement


ODD: list[Any] = [None, [], {}, True]
WRONG: list[dict[str, Any]] = [
    *({name: value} for name in FIELDS for value in ODD),
    {"person": "Bob"},
    {"person": "bоb"},
    {"decision": "sign"},
    {"approval_version": 0},
    {"approval_version": "2"},
    {"action_hash": HASH.upper()},
    {"id": "short"},
    {"comment_hash": "well done"},
    {"edited_action": "sha256:0"},
    {"key_id": "bob-1"},
    {"tenant": "other"},
    {"operation": "report-2"},
    {"issued_at": "2020-01-01T00:00:00Z"},
    {"expires_at": "2030-01-01T00:00:00Z"},
    {"installation": "local"},
    {"": ""},
]


@pytest.mark.parametrize("changes", WRONG, ids=[f"{n}-{next(iter(one))}" for n, one in enumerate(WRONG)])
def test_a_field_of_the_wrong_form_or_too_many_is_refused(changes: dict[str, Any]) -> None:
    assert refusal(text_of(**changes)).reason == "claims"


@pytest.mark.parametrize("name", FIELDS)
def test_no_field_may_be_missing(name: str) -> None:
    rest = {key: value for key, value in FIELDS.items() if key != name}

    assert refusal(canonical_bytes(rest).decode()).reason == "claims"


@pytest.mark.guarantee("G17")
@pytest.mark.parametrize(
    "text",
    [
        json.dumps(FIELDS),
        text_of() + " ",
        text_of()[:-1] + ',"person":"carl"}',
        "[]",
        "null",
        '"approve"',
        "",
        "{",
        "[" * 5_000,
        '{"person":NaN}',
        "\ud800",
        text_of(comment_hash="x" * MAX_BYTES),
    ],
)
def test_another_spelling_is_malformed(text: str) -> None:
    assert refusal(text).reason == "malformed"


@pytest.mark.guarantee("G09")
def test_whoever_is_no_person_of_this_tenant_has_one_and_the_same_answer() -> None:
    foreign = {"bob": a_person("bob", tenant="other")}

    answers = [refusal(text_of(), foreign), refusal(text_of(), {}), refusal(text_of(person="mallory"))]
    assert {(one.reason, one.message) for one in answers} == {("unknown_person", answers[0].message)}


@pytest.mark.guarantee("G18")
def test_it_never_passes_for_a_signed_statement() -> None:
    with pytest.raises(StatementRefused):
        verify_decision(text_of(), directory(), installation="local", now=NOW)


@given(st.text(st.characters(codec=None), max_size=80))
def test_any_text_is_refused_or_read_and_nothing_else(text: str) -> None:
    assert refusal(text).reason in {"malformed", "claims"}
