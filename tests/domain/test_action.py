"""The action's hash and idempotency key: they stand for the whole action, and for nothing but the action."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from countersign.domain.action import Action, idempotency_key
from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import InputRefused
from countersign.domain.money import Amount
from tests.domain.samples import an_action

OTHER_HASH = sha256_hex(b"something else")
CHANGED: dict[str, Any] = {
    "tenant": "acme2",
    "operation": "report-2",
    "tool": "publish_reports",
    "tool_version": "2",
    "args": {"channel": "public", "name": "report-1.md", "title": "Sales "},
    "channel": "press",
    "target": "public:report-2.md",
    "side_effect": "internal_publication",
    "scope": "all_documents",
    "environment": "production",
    "content_hash": OTHER_HASH,
    "evidence_hash": OTHER_HASH,
    "policy_version": "report/2",
    "amount": Amount(currency="EUR", minor=1),
    "schema_version": "3",
}
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ARGS = st.dictionaries(TEXT, PLAIN, max_size=4)


def reordered(value: Any) -> Any:
    """The same content with every object's keys in the opposite order."""
    if isinstance(value, dict):
        return {key: reordered(item) for key, item in reversed(value.items())}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@pytest.mark.guarantee("G14")
def test_every_field_of_the_action_is_in_the_table_below() -> None:
    assert set(CHANGED) == set(Action.model_fields)


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize("field", CHANGED)
def test_one_changed_field_changes_hash_and_key(field: str) -> None:
    original, changed = an_action(), an_action(**{field: CHANGED[field]})

    assert changed.hash() != original.hash()
    assert changed.idempotency_key() != original.idempotency_key()


@pytest.mark.guarantee("G14")
@given(ARGS, ARGS)
def test_two_actions_have_one_hash_only_if_their_arguments_are_the_same(first: Any, second: Any) -> None:
    same_content = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)

    assert (an_action(args=first).hash() == an_action(args=second).hash()) == same_content


@pytest.mark.guarantee("G14")
@given(TEXT, st.data())
def test_one_changed_character_changes_the_hash(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    inserted = data.draw(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    changed = text[:place] + inserted + text[place:]

    assert an_action(target=text).hash() != an_action(target=changed).hash()


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        (1, True),
        (0, False),
        (None, ""),
        ("é", "e\u0301"),
        ("1,000", "1000"),
        (["a", "b"], ["b", "a"]),
        ({"a": None}, {}),
        ("a", ["a"]),
    ],
)
def test_look_alikes_are_other_actions(one: Any, other: Any) -> None:
    assert an_action(args={"x": one}).hash() != an_action(args={"x": other}).hash()


@given(ARGS)
def test_the_order_of_keys_is_no_part_of_the_action(args: dict[str, Any]) -> None:
    fields = json.loads(an_action(args=args).model_dump_json())

    assert Action.model_validate(reordered(fields)).hash() == an_action(args=args).hash()


def test_a_hash_survives_the_way_through_json() -> None:
    action = an_action()

    assert Action.model_validate_json(action.model_dump_json()).hash() == action.hash()


@pytest.mark.parametrize("value", [1.5, 2**53, float("nan"), [{"deep": -0.0}]])
def test_a_number_that_readers_could_see_differently_has_no_hash(value: Any) -> None:
    with pytest.raises(InputRefused):
        an_action(args={"amount": value}).hash()


@pytest.mark.parametrize("args", [{"x": "\0"}, {"\ud800": 1}, {"x": ["\udfff"]}, {"x": object()}])
def test_arguments_that_a_database_would_refuse_are_refused_at_once(args: Any) -> None:
    with pytest.raises((InputRefused, ValidationError)):
        an_action(args=args)


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant": "Acme"},
        {"operation": "a:b"},
        {"content_hash": "sha256:abc"},
        {"evidence_hash": OTHER_HASH.upper()},
        {"evidence_hash": OTHER_HASH + "\n"},
        {"args": "none"},
        {"tool": None},
        {"note": "an unknown field"},
    ],
)
def test_a_malformed_action_does_not_exist(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        an_action(**changes)


@pytest.mark.guarantee("G31")
def test_the_key_is_made_of_tenant_operation_and_hash_alone() -> None:
    """No run id, no attempt, no time: a reset, a retry and a rebuilt action send the same key."""
    rebuilt = Action.model_validate_json(an_action().model_dump_json())

    assert rebuilt.idempotency_key() == an_action().idempotency_key()
    assert idempotency_key("acme", "report-1", an_action().hash()) == an_action().idempotency_key()


@pytest.mark.guarantee("G31")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b:c", "h"), ("a:b", "c", "h")),
        (("a", "bc", "h"), ("ab", "c", "h")),
        (("a", "b", "ch"), ("a", "bc", "h")),
        (("a", "b", "h"), ("b", "a", "h")),
        (('a","operation":"b', "c", "h"), ("a", 'b","operation":"c', "h")),
    ],
)
def test_parts_of_a_key_cannot_be_shifted_into_each_other(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert idempotency_key(*one) != idempotency_key(*other)


@pytest.mark.guarantee("G31")
@given(st.tuples(TEXT, TEXT, TEXT), st.tuples(TEXT, TEXT, TEXT))
def test_two_keys_are_equal_only_for_equal_parts(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert (idempotency_key(*one) == idempotency_key(*other)) == (one == other)


def test_a_key_is_plain_hex_for_every_outside_system() -> None:
    assert len(an_action().idempotency_key()) == 64
    assert set(an_action().idempotency_key()) <= set("0123456789abcdef")


@pytest.mark.guarantee("G40")
def test_an_argument_cannot_pass_for_a_fact_of_the_action() -> None:
    """Arguments hold text of a model (a title); a policy looks at the action's own fields only."""
    action = an_action(args={"side_effect": "internal_publication", "environment": "test", "channel": "internal"})

    assert action.facts() == {
        "tool": "publish_report",
        "tool_version": "1",
        "channel": "public",
        "target": "public:report-1.md",
        "side_effect": "external_publication",
        "scope": "one_document",
        "environment": "dev",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "report-2"},
        {"target": "public:report-2.md"},
        {"channel": "press"},
        {"args": {"channel": "public", "name": "report-2.md", "title": "Sales"}},
        {"scope": "all_documents"},
        {"tool_version": "2"},
        {"policy_version": "report/2"},
    ],
)
def test_a_rejected_action_is_known_again_under_another_name(changes: dict[str, Any]) -> None:
    assert an_action(**changes).likeness() == an_action().likeness()
    assert an_action(**changes).hash() != an_action().hash()


@pytest.mark.parametrize(
    "field", ["tenant", "tool", "side_effect", "environment", "content_hash", "evidence_hash", "amount"]
)
def test_what_would_do_something_else_is_not_like_a_rejected_action(field: str) -> None:
    assert an_action(**{field: CHANGED[field]}).likeness() != an_action().likeness()


@pytest.mark.guarantee("G08")
def test_amounts_differ_by_every_cent_and_by_currency() -> None:
    amounts = [None, *(Amount(currency=currency, minor=minor) for currency in ("EUR", "USD") for minor in (0, 1, 100))]

    assert len({an_action(amount=amount).hash() for amount in amounts}) == len(amounts)
