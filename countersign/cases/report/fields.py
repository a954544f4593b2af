"""The fields of a draft with their references filled in, and the way back to what the agent wrote.

Apart from checks and rendering because both must fill a reference in the very same way: what is checked is what a
reader will see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from countersign.domain.report import CLAIM_REFERENCE, Claim, Draft


@dataclass(frozen=True, slots=True)
class Field:
    """One text of a draft as the agent wrote it."""

    name: str
    text: str

    def place(self, offset: int) -> str:
        """`body:3:14`: field, line and column of an offset, both counted from 1."""
        before = self.text[:offset]
        return f"{self.name}:{before.count(chr(10)) + 1}:{offset - (before.rfind(chr(10)) + 1) + 1}"


@dataclass(frozen=True, slots=True)
class Insertion:
    """Where one claim's `shown` stands in a filled text, and where its reference stands in the written one."""

    claim: Claim
    start: int
    end: int
    reference_start: int
    reference_end: int


@dataclass(frozen=True, slots=True)
class Filled:
    """A field with every known reference replaced by its claim's `shown`."""

    field: Field
    text: str
    insertions: tuple[Insertion, ...]

    def place(self, offset: int) -> str:
        """The place in the written field of an offset in the filled text."""
        return self.field.place(self._written(offset))

    def touching(self, start: int, end: int) -> tuple[Insertion, ...]:
        """The insertions that share at least one character with a span of the filled text."""
        return tuple(each for each in self.insertions if each.start < end and start < each.end)

    def _written(self, offset: int) -> int:
        shift = 0
        for each in self.insertions:
            if offset < each.start:
                break
            if offset < each.end:
                return each.reference_start
            shift = each.reference_end - each.end
        return offset + shift


def fields_of(draft: Draft) -> Iterator[Field]:
    """Every text of a draft that a reader sees, in the order of the published report."""
    yield Field("title", draft.title)
    yield Field("body", draft.body)
    yield Field("source", draft.source)
    yield Field("period", draft.period)
    yield Field("unit", draft.unit)
    for at, limitation in enumerate(draft.limitations):
        yield Field(f"limitations.{at}", limitation)


def claims_by_id(draft: Draft) -> dict[str, Claim]:
    """The claims by id; of two with one id the first, and the checks refuse the draft."""
    return {claim.id: claim for claim in reversed(draft.claims)}


def fill(field: Field, claims: Mapping[str, Claim]) -> Filled:
    """The field with each reference to a known claim replaced by its `shown`; others stay as they are written."""
    pieces: list[str] = []
    insertions: list[Insertion] = []
    written = length = 0
    for match in CLAIM_REFERENCE.finditer(field.text):
        claim = claims.get(match[1])
        if claim is None:
            continue
        before = field.text[written : match.start()]
        start = length + len(before)
        length, written = start + len(claim.shown), match.end()
        pieces += [before, claim.shown]
        insertions.append(Insertion(claim, start, length, match.start(), match.end()))
    pieces.append(field.text[written:])
    return Filled(field, "".join(pieces), tuple(insertions))
