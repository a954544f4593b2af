"""A clean draft about a small table, and its evidence; each test changes one thing in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from countersign.cases.report.checks import check_draft
from countersign.cases.report.claims import Reading
from countersign.domain.draft import Violation
from countersign.domain.errors import QueryRefused
from countersign.domain.report import Claim, ColumnSchema, DatasetRef, DatasetSchema, Draft, ReportRequest
from countersign.domain.values import Sha256


@dataclass(frozen=True)
class Cell:
    """One recomputed value."""

    text: str
    kind: str = "number"
    unit: str | None = None


EVIDENCE = {
    "SELECT sum(amount) FROM data": Cell("-1234.50", unit="USD"),
    "SELECT count(*) FROM data": Cell("42"),
    "SELECT growth FROM data": Cell("-4.2", unit="%"),
    "SELECT max(day) FROM data": Cell("2026-06-30", "date"),
    "SELECT region FROM data": Cell("Region 7 <b>*", "text"),
}
SHA256 = Sha256("sha256:" + "ab" * 32)
TOTAL, ROWS, GROWTH, LAST_DAY, REGION = EVIDENCE


def evidence(query: str) -> Cell:
    """Answers the known queries and refuses every other one, as the evidence does."""
    if query not in EVIDENCE:
        raise QueryRefused(f"the query {query!r} yields no single value")
    return EVIDENCE[query]


READING = Reading(evidence, lambda query: ())
"""How this evidence is read; nothing of it is sensitive."""


def claim(claim_id: str, query: str, value: str, unit: str, shown: str) -> Claim:
    return Claim(id=claim_id, query=query, value=value, unit=unit, shown=shown)


CLAIMS = (
    claim("total", TOTAL, "-1234.50", "USD", "-1,234.50 USD"),
    claim("rows", ROWS, "42", "", "42"),
    claim("growth", GROWTH, "-4.2", "%", "-4.2 %"),
    claim("last", LAST_DAY, "2026-06-30", "", "30 June 2026"),
    claim("region", REGION, "Region 7 <b>*", "", "Region 7 <b>*"),
)
BODY = """## What the table says

Revenue was **{{total}}** in {{rows}} orders, a change of {{growth}}.

1. The last day is {{last}}.
2. The weakest region is {{region}}.
"""


def draft(**changes: Any) -> Draft:
    """The clean draft with some fields changed."""
    fields: dict[str, Any] = {
        "title": "Sales 2026",
        "body": BODY,
        "claims": CLAIMS,
        "source": "The file sales-2026.csv as it was pinned.",
        "period": "January to June 2026",
        "unit": "USD; shares in %",
        "limitations": ("Refunds are not in the table.",),
    }
    return Draft(**(fields | changes))


def request(**changes: Any) -> ReportRequest:
    """The request that the clean draft answers."""
    columns = {"amount": ColumnSchema(type="number", currency="USD"), "mass": ColumnSchema(type="number", unit="tCO2e")}
    dataset = DatasetRef(sha256=SHA256, name="sales-2026.csv", schema=DatasetSchema(columns=columns))
    fields: dict[str, Any] = {
        "question": "How did sales go?",
        "title": "Sales 2026",
        "period": "2026-01-01 to 2026-06-30",
        "channel": "internal",
        "dataset": dataset,
    }
    return ReportRequest(**(fields | changes))


def with_claim(changed_id: str, **changes: str) -> Draft:
    """The clean draft with one claim changed."""
    claims = tuple(each.model_copy(update=changes) if each.id == changed_id else each for each in CLAIMS)
    return draft(claims=claims)


def findings(checked: Draft, asked: ReportRequest | None = None) -> tuple[Violation, ...]:
    return check_draft(checked, asked or request(), READING)


def codes(checked: Draft, asked: ReportRequest | None = None) -> list[tuple[str, str]]:
    """Code and place of every finding."""
    return [(found.code, found.place) for found in findings(checked, asked)]
