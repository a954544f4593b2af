"""The deterministic check of a draft: what must hold before anyone grades, proposes or publishes it.

Apart from its parts (claims, numbers, markup) so that the order of findings and the statements that every report must
make (source, period, unit) are in one place. Pure: the evidence is asked through the function that is passed in.
"""

from __future__ import annotations

from collections.abc import Iterator

from countersign.cases.report.claims import WHOLE_ROWS, Reading, check_claims
from countersign.cases.report.fields import Field, Filled, claims_by_id, fields_of, fill
from countersign.cases.report.markup import check_markup, check_scripts, hidden_in_claims
from countersign.cases.report.numbers import check_claim_units, check_numbers, written_out
from countersign.cases.report.suspicion import Texts, check_data, check_suspicion
from countersign.domain.draft import Violation
from countersign.domain.figures.units import currencies_named, is_currency, same_unit
from countersign.domain.report import CLAIM_REFERENCE, Draft, ReportRequest


def check_draft(
    draft: Draft, request: ReportRequest, reading: Reading, texts: Texts | None = None
) -> tuple[Violation, ...]:
    """Every finding about a draft; none means that it may be graded.

    The order is fixed: what must stop a run, in the draft and in the data (`texts`, where an agent read it), then
    claims, references, then each field of the report from title to limitations, then the statements
    of source, period and unit. `reading` runs a claim's query on the pinned evidence; its refusals become findings,
    `Unavailable` is passed on because it says nothing about the draft.
    """
    claims = [*check_claims(draft, reading), *check_claim_units(draft, request), *hidden_in_claims(draft)]
    orders = () if texts is None else check_data(texts, reading.sensitive(WHOLE_ROWS))
    return (*check_suspicion(draft, request), *orders, *claims, *_check_words(draft, request))


def check_texts(draft: Draft, request: ReportRequest) -> tuple[Violation, ...]:
    """Every finding about a draft but those about its claims: all that an edit of its words can bring in."""
    return (*check_suspicion(draft, request), *_check_words(draft, request))


def _check_words(draft: Draft, request: ReportRequest) -> tuple[Violation, ...]:
    claims = claims_by_id(draft)
    fields = tuple(fields_of(draft))
    violations: list[Violation] = []
    violations += _check_references(draft, fields)
    for field in fields:
        violations += check_markup(field)
        violations += check_numbers(fill(field, claims), request)
        violations += check_scripts(fill(field, claims), request)
    filled = {field.name: fill(field, claims) for field in fields}
    violations += _check_statements(draft, request, filled)
    return tuple(violations)


def _check_references(draft: Draft, fields: tuple[Field, ...]) -> Iterator[Violation]:
    known = {claim.id for claim in draft.claims}
    used: set[str] = set()
    for field in fields:
        for match in CLAIM_REFERENCE.finditer(field.text):
            used.add(match[1])
            if match[1] not in known:
                expected = f"one of {', '.join(sorted(known))}"
                place = field.place(match.start())
                yield Violation(code="unknown_claim", place=place, expected=expected, found=match.group())
    for claim_id in dict.fromkeys(claim.id for claim in draft.claims):
        if claim_id not in used:
            expected = f"a reference {{{{{claim_id}}}}} in the text"
            yield Violation(code="unused_claim", place=f"claims.{claim_id}", expected=expected, found="none")


def _check_statements(draft: Draft, request: ReportRequest, filled: dict[str, Filled]) -> Iterator[Violation]:
    name = request.dataset.name
    if not any(written_out(name, draft.source)):
        yield Violation(code="missing_source", place="source", expected=f"the file name {name}", found=draft.source)
    for place, text in ((name, each.text) for name, each in filled.items()):
        if place != "source" and not _says_something(text):
            code = f"missing_{place.split('.')[0].removesuffix('s')}"
            yield Violation(code=code, place=place, expected="words, not blanks", found=repr(text))
    yield from _check_unit(draft, filled["unit"].text)


def _says_something(text: str) -> bool:
    return any(letter.isalnum() or letter in "%‰$€£¥￥％" for letter in text)


def _check_unit(draft: Draft, stated: str) -> Iterator[Violation]:
    """The unit names every currency of the claims, and none that no claim has."""
    counted = tuple(dict.fromkeys(claim.unit for claim in draft.claims if is_currency(claim.unit)))
    named = currencies_named(stated)
    for unit in counted:
        if not any(same_unit(unit, each) for each in named):
            yield Violation(code="missing_unit", place="unit", expected=unit, found=stated)
    for unit in named:
        if not any(same_unit(unit, each) for each in counted):
            expected = ", ".join(counted) or "no currency, since no claim has one"
            yield Violation(code="unit_mismatch", place="unit", expected=expected, found=unit)
