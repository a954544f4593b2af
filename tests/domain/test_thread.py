"""A stored thread is found by the operation that it was made for, and no two versions share one."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.identity import NAME_PATTERN
from countersign.domain.thread import operation_of_thread, thread_id

NAMES = st.from_regex(NAME_PATTERN, fullmatch=True)
PARTS = st.tuples(NAMES, NAMES, st.uuids().map(UUID.__str__), st.integers(min_value=1), st.integers(min_value=1))


@given(PARTS)
def test_a_thread_tells_of_which_operation_it_is(parts: tuple[str, str, str, int, int]) -> None:
    assert operation_of_thread(thread_id(*parts)) == parts[:2]


@given(PARTS, PARTS)
def test_no_two_versions_share_a_thread(
    one: tuple[str, str, str, int, int], other: tuple[str, str, str, int, int]
) -> None:
    assert (thread_id(*one) == thread_id(*other)) == (one == other)


def test_what_is_no_thread_of_ours_is_of_no_operation() -> None:
    assert operation_of_thread("acme") == ("acme", "")
    assert operation_of_thread("") == ("", "")


def test_threads_keep_the_ids_under_which_they_were_stored() -> None:
    assert thread_id("acme", "op-1", "run", 2, 3) == "acme:op-1:run:2:v3"
