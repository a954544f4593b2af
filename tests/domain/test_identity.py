"""Ids of tenants, operations and persons: one alphabet everywhere, and workflow ids that split in one way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from countersign.domain.errors import InputRefused
from countersign.domain.identity import checked_name, operation_of, workflow_id
from countersign.domain.values import Value
from tests.domain.samples import a_person, an_action

NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,63}", fullmatch=True)
LEGAL = ["a", "0", "acme", "a.b_c-d", "9..", "x" * 64]
ILLEGAL = [
    *("", " ", "A", "Acme", "_a", "-a", ".a", "..", "a b", "a:b", "a/b", "a\\b", "a\n", "\na", "a\0"),
    *("x" * 65, "é", "аcme", "ａcme", "a\u200b", "a\u0301", "٣", "a\ud800", "a,b", "a%2fb"),
]


@pytest.mark.parametrize("name", LEGAL)
def test_a_legal_id_is_returned_as_it_is(name: str) -> None:
    assert checked_name(name) == name
    assert a_person(name).id == name


@pytest.mark.parametrize("name", ILLEGAL)
def test_any_other_id_is_refused_by_functions_and_by_models(name: str) -> None:
    with pytest.raises(InputRefused, match="use 1 to 64 of a-z 0-9"):
        checked_name(name)
    for build in (lambda: a_person(name), lambda: an_action(tenant=name), lambda: an_action(operation=name)):
        with pytest.raises(ValidationError):
            build()


@pytest.mark.parametrize("name", ILLEGAL)
def test_a_refusal_is_one_line(name: str) -> None:
    with pytest.raises(InputRefused) as refused:
        checked_name(name * 50)

    assert len(refused.value.message.splitlines()) == 1
    assert len(refused.value.message) < 800


def test_an_id_that_is_no_text_is_refused_by_models() -> None:
    with pytest.raises(ValidationError):
        an_action(tenant=7)


@given(NAMES, NAMES)
def test_a_workflow_id_leads_back_to_its_operation(tenant: str, operation: str) -> None:
    assert operation_of(workflow_id(tenant, operation)) == (tenant, operation)


@given(st.text(max_size=150))
def test_any_workflow_id_splits_into_legal_ids_or_is_refused(text: str) -> None:
    try:
        tenant, operation = operation_of(text)
    except InputRefused:
        return
    assert workflow_id(tenant, operation) == text


@pytest.mark.parametrize("text", ["", ":", "acme", "acme:", ":r1", "acme:r1:r2", "Acme:r1", "acme/r1", "acme:r1\n"])
def test_a_foreign_workflow_id_is_refused(text: str) -> None:
    with pytest.raises(InputRefused):
        operation_of(text)


@pytest.mark.parametrize(("tenant", "operation"), [("a:b", "c"), ("a", "b:c"), ("", "c"), ("a", "")])
def test_no_workflow_id_is_made_of_illegal_parts(tenant: str, operation: str) -> None:
    with pytest.raises(InputRefused):
        workflow_id(tenant, operation)


def test_values_take_no_unknown_field_and_stay_as_they_are() -> None:
    class Sample(Value):
        number: int

    sample = Sample(number=1)
    with pytest.raises(ValidationError):
        sample.number = 2  # type: ignore[misc]
    for fields in ({"number": "1"}, {"number": True}, {"number": 1.0}, {"number": 1, "more": 2}, {}):
        with pytest.raises(ValidationError):
            Sample.model_validate(fields)
