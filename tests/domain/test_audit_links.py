"""The audit chain: whatever is done to the records afterwards, the first bad one is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.audit import GENESIS, AuditRecord, ChainBroken, Checkpoint, link, verify_chain
from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import InputRefused
from countersign.domain.values import Sha256

Records = list[AuditRecord]
OTHER = sha256_hex(b"another record")


def fields(sequence: int, **changes: Any) -> dict[str, Any]:
    return {
        "tenant": "acme",
        "sequence": sequence,
        "recorded_at": "2026-11-30T12:00:00Z",
        "origin": "local",
        "type": "decision.accepted",
        "operation": "report-1",
        "subject": "bob",
        "detail": {"ruling": "accepted", "number": sequence},
        **changes,
    }


def a_chain(length: int, **changes: Any) -> Records:
    records: Records = []
    for sequence in range(1, length + 1):
        records.append(link(fields(sequence, **changes), records[-1].hash if records else GENESIS))
    return records


def checkpoint(records: Records) -> Checkpoint:
    head = records[-1].hash if records else GENESIS
    return Checkpoint(installation="local", tenant="acme", count=len(records), head=head)


def verified(records: Records, against: Checkpoint | None = None) -> tuple[int, Sha256]:
    return verify_chain(iter(records), tenant="acme", origin="local", checkpoint=against)


def first_bad(records: Records, against: Checkpoint | None = None) -> int:
    with pytest.raises(ChainBroken) as broken:
        verified(records, against)
    assert str(broken.value.sequence) in broken.value.message
    return broken.value.sequence


@pytest.mark.guarantee("G44")
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_an_untouched_chain_verifies_to_its_count_and_head(length: int) -> None:
    records = a_chain(length)

    assert verified(records) == (length, records[-1].hash if records else GENESIS)
    assert verified(records, checkpoint(records)) == verified(records)


def test_a_chain_may_have_grown_since_its_checkpoint() -> None:
    records = a_chain(7)

    assert verified(records, checkpoint(records[:3])) == (7, records[-1].hash)
    assert verified(records, checkpoint([])) == (7, records[-1].hash)


CHANGED: dict[str, Any] = {
    "tenant": "other",
    "sequence": 9,
    "recorded_at": "2026-11-30T12:00:01Z",
    "origin": "elsewhere",
    "type": "decision.refused",
    "operation": "report-2",
    "subject": "carl",
    "detail": {"ruling": "accepted", "number": 5},
    "previous": OTHER,
    "hash": OTHER,
}


def test_every_field_of_a_record_is_in_the_table_above() -> None:
    assert set(CHANGED) == set(AuditRecord.model_fields)


@pytest.mark.guarantee("G42")
@pytest.mark.parametrize("field", CHANGED)
@pytest.mark.parametrize("position", [0, 3, 6])
def test_a_changed_field_is_found_at_its_record(field: str, position: int) -> None:
    records = a_chain(7)
    records[position] = records[position].model_copy(update={field: CHANGED[field]})

    assert first_bad(records) == position + 1


@pytest.mark.guarantee("G42")
@pytest.mark.parametrize("detail", [{"amount": 1.5}, {"amount": 2**60}, {"text": "\ud800"}])
def test_a_record_changed_into_what_has_no_hash_is_named_too(detail: dict[str, Any]) -> None:
    records = a_chain(3)
    records[1] = records[1].model_copy(update={"detail": detail})

    assert first_bad(records) == 2


@pytest.mark.guarantee("G42")
def test_a_change_with_a_new_hash_is_found_at_the_next_record() -> None:
    records = a_chain(7)
    records[3] = link(fields(4, subject="mallory"), records[2].hash)

    assert first_bad(records) == 5


def delete(records: Records, at: int) -> Records:
    return records[:at] + records[at + 1 :]


def repeat(records: Records, at: int) -> Records:
    return records[: at + 1] + records[at:]


def insert(records: Records, at: int) -> Records:
    return [*records[:at], link(fields(at + 1, subject="mallory"), records[at].previous), *records[at:]]


def swap(records: Records, at: int) -> Records:
    return [*records[:at], records[at + 1], records[at], *records[at + 2 :]]


@pytest.mark.guarantee("G42")
@pytest.mark.parametrize(
    ("damage", "bad"), [(delete, 0), (repeat, 1), (insert, 1), (swap, 0)], ids=["delete", "repeat", "insert", "swap"]
)
@pytest.mark.parametrize("at", [0, 2, 5])
def test_the_first_bad_record_is_named(damage: Callable[[Records, int], Records], bad: int, at: int) -> None:
    assert first_bad(damage(a_chain(7), at)) == at + 1 + bad


@pytest.mark.guarantee("G42")
@given(st.permutations(range(6)))
def test_no_other_order_verifies(order: list[int]) -> None:
    records = a_chain(6)
    first = next((place for place, original in enumerate(order) if place != original), None)

    if first is None:
        assert verified([records[place] for place in order])[0] == 6
    else:
        assert first_bad([records[place] for place in order]) == first + 1


@pytest.mark.guarantee("G43")
@pytest.mark.parametrize("left", range(7))
def test_a_cut_tail_is_found_against_the_checkpoint(left: int) -> None:
    records = a_chain(7)

    assert first_bad(records[:left], checkpoint(records)) == left + 1


@pytest.mark.guarantee("G43")
def test_a_chain_written_anew_is_found_against_the_checkpoint() -> None:
    """Every link of it holds: only what is kept outside can tell."""
    forged = a_chain(7, subject="mallory")

    assert verified(forged)[0] == 7
    assert first_bad(forged, checkpoint(a_chain(7))) == 7
    assert first_bad(forged, checkpoint(a_chain(4))) == 4


@pytest.mark.guarantee("G42")
@pytest.mark.parametrize("sequence", [1, 3, 9])
def test_numbers_that_do_not_follow_each_other_are_found_though_every_link_holds(sequence: int) -> None:
    records = a_chain(1)

    assert first_bad([*records, link(fields(sequence), records[0].hash)]) == 2


@pytest.mark.guarantee("G44")
@pytest.mark.guarantee("G09")
@pytest.mark.parametrize("of", [{"tenant": "other"}, {"origin": "elsewhere"}])
def test_a_whole_chain_of_another_tenant_or_installation_is_refused(of: dict[str, str]) -> None:
    assert first_bad(a_chain(3, **of)) == 1


@pytest.mark.guarantee("G42")
@given(st.integers(0, 5), st.sampled_from(["recorded_at", "type", "operation", "subject"]), st.text(max_size=8))
def test_no_text_can_be_put_in_place_of_another(position: int, field: str, text: str) -> None:
    records = a_chain(6)
    changed = records[position].model_copy(update={field: text})
    if changed != records[position]:
        records[position] = changed
        assert first_bad(records) == position + 1


def test_no_record_is_made_of_what_has_no_canonical_form() -> None:
    with pytest.raises(InputRefused):
        link(fields(1, detail={"amount": 0.1}), GENESIS)
