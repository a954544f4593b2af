"""What must bring a report before people: orders in the draft or in its data, and secrets that would go out.

Apart from the other checks because no further draft can mend these by itself: an agent that was given orders by its
data may have followed them already, and one that wrote a secret down knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice

from countersign.cases.report.fields import Field, Filled, claims_by_id, fields_of, fill
from countersign.domain.draft import Violation
from countersign.domain.report import Claim, Draft, ReportRequest
from countersign.domain.suspicion.orders import excerpt, find_orders
from countersign.domain.suspicion.searches import SEARCHES
from countersign.domain.suspicion.secrets import find_secrets

INJECTION = "prompt_injection_suspected"
SENSITIVE = "sensitive_data"
STOPS: Mapping[str, str] = {
    INJECTION: "ended without a report: a text gives orders to whoever reads it",
    SENSITIVE: "ended without a report: a text holds what looks like a secret",
}
"""Codes of findings that no further draft may mend by itself, since people have to look first; and what an end by each
means."""

Texts = Callable[..., Sequence[tuple[str, str]]]
"""Yields the columns of the data with their names, and with those of their cells that match one of the patterns, or
that are longer than `longest`."""

_NO_ORDERS = "text that gives no orders to a model or reviewer"
LONGEST = 100_000
"""Characters of one cell that are looked at; one that has more is for people to look at, whatever it says."""
_MOST_READ = 50_000_000
"""Characters of all cells that are looked at; where a search brings more, people have to look at the data."""
_MOST = 20
"""Findings in the data that are listed; a person needs the first ones, not a million."""


def check_suspicion(draft: Draft, request: ReportRequest) -> Iterator[Violation]:
    """Every order and every secret in what a draft would publish, claims with their queries included."""
    claims = claims_by_id(draft)
    for field in fields_of(draft):
        yield from _check_orders(fill(field, claims), begins_block=True)
        yield from _check_secrets(fill(field, claims), request)
    for claim in draft.claims:
        for text in _texts_of(claim):
            yield from _check_orders(text)
            yield from _check_secrets(text, request)


def check_data(texts: Texts, sensitive: Collection[str]) -> tuple[Violation, ...]:
    """The first orders in what the agent could read of its data: names of columns, and cells of text columns.

    What is longer than is looked at counts as one. Of the columns named in `sensitive` no cell is quoted: what is found
    here is told to the agent.
    """
    return tuple(islice(_orders_in(texts(*SEARCHES, longest=LONGEST), sensitive), _MOST))


def _orders_in(texts: Sequence[tuple[str, str]], sensitive: Collection[str]) -> Iterator[Violation]:
    read = 0
    for column, text in texts:
        place = f"data.{excerpt(column, 40)}"
        read += len(text)
        if len(text) > LONGEST or read > _MOST_READ:
            much = f"a cell of more than {LONGEST} characters" if len(text) > LONGEST else "very many texts like orders"
            yield Violation(
                code=INJECTION, place=place, expected=_NO_ORDERS, found=f"{much}, which nothing looks through"
            )
            if read > _MOST_READ:
                return
        elif order := next(find_orders(text), None):
            is_quoted = text == column or column not in sensitive
            found = order.excerpt if is_quoted else "an order, not quoted: the column is sensitive"
            yield Violation(code=INJECTION, place=place, expected=_NO_ORDERS, found=found)


def _texts_of(claim: Claim) -> Iterator[Filled]:
    """What of a claim goes out; the bare number of a claim with a unit is a figure, whatever its digits are."""
    for part in ("query", "value", "shown", "unit"):
        if part in ("query", "unit") or not claim.unit:
            yield fill(Field(f"claims.{claim.id}.{part}", getattr(claim, part)), {})


def _check_orders(filled: Filled, *, begins_block: bool = False) -> Iterator[Violation]:
    """A field begins a block in the text that is graded, a part of a claim does not."""
    for order in find_orders(filled.text, begins_block=begins_block):
        yield Violation(code=INJECTION, place=filled.place(order.start), expected=_NO_ORDERS, found=order.excerpt)


def _check_secrets(filled: Filled, request: ReportRequest) -> Iterator[Violation]:
    name = request.dataset.name
    named = range(at := filled.text.find(name), at + len(name)) if name in filled.text else range(0)
    for secret in find_secrets(filled.text):
        figure = any(each.claim.unit for each in filled.touching(secret.start, secret.start + 1))
        if not figure and secret.start not in named:
            found = f"{secret.kind}: {secret.masked}"
            yield Violation(code=SENSITIVE, place=filled.place(secret.start), expected=f"no {secret.kind}", found=found)
