"""Whatever plain values a file holds, they come out as they went in, and sums equal exact decimal sums."""

from __future__ import annotations

import csv
import io
import tempfile
from decimal import Decimal, localcontext
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.evidence.opening import opened

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
AMOUNTS = st.builds(
    lambda units, scale: Decimal(units).scaleb(-scale), st.integers(-(10**15), 10**15), st.integers(0, 10)
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)


def written(rows: list[tuple[str, ...]], line_end: str) -> str:
    """The rows as a CSV file with all quotes that it needs."""
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=line_end).writerows(rows)
    return file.getvalue()


@FEW
@given(st.lists(st.tuples(AMOUNTS, TEXTS), min_size=1, max_size=40), st.sampled_from(["\n", "\r\n"]))
@example([(Decimal("-0.01"), 'a"\nb'), (Decimal(2**53 + 1), "")], "\r\n")
def test_sums_equal_exact_decimal_sums_and_texts_come_back(rows: list[tuple[Decimal, str]], line_end: str) -> None:
    data = written([("amount", "note"), *((format(amount, "f"), note) for amount, note in rows)], line_end)
    schema = {"columns": {"amount": {"type": "number"}, "note": {"type": "text"}}}
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), data, schema) as dataset:
        found = dataset.query("SELECT amount, note FROM data", max_rows=100).rows
        total = Decimal(dataset.single_value("SELECT sum(amount) FROM data").text)
    with localcontext(prec=60):
        assert total == sum(amount for amount, _ in rows)
    assert [(Decimal(str(amount)), note or "") for amount, note in found] == rows


@FEW
@given(st.lists(AMOUNTS, min_size=1, max_size=40), st.sampled_from([",", ".", " ", "'"]), st.booleans())
def test_a_declared_format_loses_no_digit_and_no_sign(amounts: list[Decimal], mark: str, parentheses: bool) -> None:
    decimal = "," if mark != "," else "."
    form = {"thousands": mark, "decimal": decimal, "parentheses": parentheses, "currency": "€"}

    def shown(amount: Decimal) -> str:
        whole, _, rest = f"{abs(amount):,f}".partition(".")
        text = "€ " + whole.replace(",", mark) + (decimal + rest if rest else "")
        return text if amount >= 0 else (f"({text})" if parentheses else "-" + text)

    data = written([("a", "b"), *((shown(amount), "x") for amount in amounts)], "\n")
    schema = {"columns": {"a": {"type": "number", "number": form}}}
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), data, schema) as dataset:
        found = dataset.query("SELECT a FROM data", max_rows=100).rows
    assert [Decimal(str(value)) for (value,) in found] == amounts
