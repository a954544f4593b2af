"""Every number in the text comes from a claim, the request or an enumeration; anything else is found at its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.report import ReportRequest
from tests.report.sample import BODY, codes, draft, findings, request, with_claim

UNSUPPORTED = [
    "There are 43 orders.",
    "There are 42 orders.",  # right, and still typed by hand
    "In two regions.",
    "Twelve regions.",
    "About half of it.",
    "Up 35 %.",
    "Some $35M.",
    "Around 1.25k.",
    "Down -4.2 %.",
    "共１２３个。",
    "约1.2万。",
    "百分之三十五。",
    "两个地区。",
    "In 2025.",
    "A value of $2026.",
    "2026 %.",
    "-2026",
    "## 2 Results",
    "-{{rows}}",
    "minus {{rows}}",
    "{{rows}}k",
    "{{rows}}M",
    "{{rows}} million",
    "{{rows}}万",
    "{{rows}}%",
    "{{rows}} percent",
    "{{rows}} EUR",
    "{{total}}5",
    "5{{rows}}",
    "1.{{rows}}",
    "{{rows}}.5",
    "{{rows}},{{rows}}",
    "{{rows}}/{{rows}}",
    "${{rows}}",
    "-**{{rows}}**",
    "{{rows}}th",
    "x{{rows}}",
    "{{region}}5",
    "3. Third before the others.",
    "1. One\n3. Three",
    "First, this.\nThird, that.",
    "1.5 is no list.",
    "the sales-2027.csv file",
    "负{{rows}}",
]
ALTERED = [
    "It was -\u00a0{{rows}}", "It was -\n{{rows}}", "\\- {{rows}}", "*-* {{rows}}", "\u2212 {{rows}}",
    "⁻{{rows}}", "➖{{rows}}", "It was\n    - {{rows}}", "It was – {{rows}}", "{{rows}}- orders",
    "(minus) {{rows}}", "minus: {{rows}}", "minus  {{rows}}", "**minus** **{{rows}}**", "minus “{{rows}}”",
    "负 {{rows}}", "负的{{rows}}", "减{{rows}}", "第{{rows}}", "{{total}} EUR", "{{total}} euros", "€ {{rows}}",
    "EUR  {{rows}}", "in pence: {{rows}}", "| {{rows}} | EUR |", "{{rows}}美元", "{{total}} M", "{{total}} bn",
    "{{total}}k", "{{total}} mln", "{{total}} m", "{{rows}} Mrd", "{{rows}} kk", "{{rows}} **MM**",
    "{{rows}}\nbn", "{{rows}} (million)", "数{{rows}}", "{{rows}}几", "{{rows}}折", "{{rows}}分之一",
    "{{rows}}多", "{{rows}}余", "{{rows}},OOO", "{{rows}},ООО", "{{rows}}  %", "{{rows}} *%*",
    "{{growth}} percentage points", "{{rows}} x", "≠ {{rows}}",
]  # fmt: skip
UNALTERED = [
    "- {{rows}} orders\n- more", "  - {{rows}} orders", "1. {{rows}} orders", "## In euros\n{{rows}} orders",
    "---\n{{rows}} orders", "In EUR\n\n{{rows}} orders", "{{rows}} orders\n\nEUR", "{{rows}} - {{rows}}",
    "mid-{{rows}}", "{{rows}}-day", "{{rows}} — more", "({{rows}})", "Orders: {{rows}}", "{{rows}} more orders",
    "{{rows}}/month", "around {{rows}}", "no less than {{rows}}", "订单总数{{rows}}", "共{{rows}}行",
    "减少{{rows}}个", "{{total}} {{rows}}",
]  # fmt: skip
SUPPORTED = [
    "In 2026.",
    "In 2026, as in 2026-06-30.",
    "Until 30 June 2026 or June 2026.",
    "到2026年6月30日。",
    "2026年，6月。",
    "({{rows}})",
    "{{rows}}-{{rows}}",
    "{{rows}}, {{rows}}",
    "*{{rows}}*",
    "{{rows}} orders; {{total}}: yes",
    "1. A thing",
    "1. A\n2. B\n3. C",
    "1) A\n2) B",
    "- 1. A\n- 2. B",
    "1. A\n   1. B\n   2. C\n2. D",
    "1. A\n\nText.\n\n1. B",
    "一、A\n二、B",
    "（一）A\n（二）B",
    "第一，A\n第二，B",
    "First, A\nSecond, B",
    "1、A\n2、B",
]


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_an_unsupported_number_is_found(text: str) -> None:
    found = codes(draft(body=f"{BODY}\n{text}\n"))
    assert found
    assert {code for code, _ in found} <= {"unsupported_number", "unreadable_number"}


@pytest.mark.parametrize("text", ALTERED)
def test_a_figure_that_its_surroundings_change_is_found(text: str) -> None:
    assert {code for code, _ in codes(draft(body=f"{BODY}\n{text}\n"))} & {"unsupported_number", "unreadable_number"}


@pytest.mark.parametrize("text", UNALTERED)
def test_ordinary_words_around_a_figure_are_fine(text: str) -> None:
    assert codes(draft(body=f"{BODY}\n{text}\n")) == []


def test_a_name_from_the_data_cannot_change_the_figure_beside_it() -> None:
    named = with_claim("region", shown="minus", value="minus")
    found = codes(named.model_copy(update={"body": f"{BODY}\n{{{{region}}}} {{{{rows}}}}"}))
    assert ("unsupported_number", "body:8:1") in found


def test_the_unit_of_the_claim_may_stand_beside_its_figure() -> None:
    bare = with_claim("total", shown="-1,234.50")
    assert codes(bare.model_copy(update={"body": BODY.replace("{{total}}", "{{total}} USD")})) == []
    assert codes(bare.model_copy(update={"body": BODY.replace("{{total}}", "{{total}} EUR")})) != []


def test_many_figures_are_checked_without_failing() -> None:
    assert "unsupported_number" not in {code for code, _ in codes(draft(body=BODY + "{{rows}} " * 2000))}


@pytest.mark.parametrize("text", ["пятьдесят", "오십", "ὀκτώ", "ᴛᴡᴏ", "いつつ"])
def test_a_word_in_a_script_that_is_not_read_is_found_unless_the_request_has_it(text: str) -> None:
    written = draft(body=f"{BODY}\nof {text} things")
    assert codes(written) == [("foreign_script", "body:8:4")]
    assert codes(written, request(question=f"What of {text}?")) == []
    assert codes(with_claim("region", shown=f"Region {text}", value="Region 7 <b>*"))[0][0] == "shown_mismatch"


@pytest.mark.parametrize("text", SUPPORTED)
def test_a_supported_number_is_none(text: str) -> None:
    assert codes(draft(body=f"{BODY}\n{text}\n")) == []


@pytest.mark.parametrize("text", ["dozens", "1,23", "几个", "①", "Q1", "10:30", "1\u00b2", "IV"])
def test_what_cannot_be_read_is_reported(text: str) -> None:
    assert codes(draft(body=f"{BODY}\nof {text} things")) == [("unreadable_number", "body:8:4")]


def test_the_place_is_line_and_column_of_what_the_agent_wrote() -> None:
    body = "{{total}} {{rows}}\n{{growth}} {{last}} {{region}} and 77, {{rows}}, 88"
    assert codes(draft(body=body)) == [("unsupported_number", "body:2:36"), ("unsupported_number", "body:2:50")]


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("title", "Sales in 3 regions", "title:1:10"),
        ("title", "First, Sales", "title:1:1"),
        ("period", "January to June 2025", "period:1:12"),
        ("period", "January to July 2026", "period:1:12"),
        ("source", "sales-2026.csv, 3 columns", "source:1:17"),
        ("unit", "thousand USD", "unit:1:1"),
        ("limitations", ("fine", "5 rows are blank"), "limitations.1:1:1"),
    ],
)
def test_every_field_is_read(field: str, value: object, place: str) -> None:
    assert codes(draft(**{field: value})) == [("unsupported_number", place)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", "Sales 2026: {{total}}"),
        ("period", "until {{last}}"),
        ("source", "sales-2026.csv, {{rows}} rows"),
        ("unit", "USD, tCO2e"),
        ("limitations", ("{{rows}} rows only",)),
    ],
)
def test_every_field_may_refer_to_claims(field: str, value: object) -> None:
    assert codes(draft(**{field: value})) == []


@pytest.mark.parametrize(
    ("asked", "body"),
    [
        ({"title": "Top 10 regions"}, "the 10 regions, the ten regions"),
        ({"title": "Q1 review 2026"}, "In Q1"),
        ({"period": "2026年上半年"}, "2026 上半年"),
        ({"period": "June 2026"}, "2026-06"),
        ({"title": "Above 35 %", "period": "2026-06-30"}, "above 35 %"),
    ],
)
def test_numbers_of_the_request_are_supported(asked: dict[str, str], body: str) -> None:
    plain = draft(body=f"{BODY}\n{body}", title="Sales", period="As asked, until {{last}}")
    assert codes(plain, request(**asked)) == []
    assert codes(plain, request(title="Sales", period="")) != []


@pytest.mark.parametrize("name", ["42", "sales 5.csv"])
def test_a_file_name_supports_numbers_in_the_source_alone(name: str) -> None:
    dataset = request().dataset.model_copy(update={"name": name})
    asked: ReportRequest = request(dataset=dataset)
    assert codes(draft(source=f"file {name}"), asked) == []
    assert codes(draft(source=f"file {name}", body=f"{BODY}\n{name}"), asked) != []


WORDS = [
    "two",
    "twelve",
    "half",
    "doubled",
    "third",
    "hundred",
    "dozens",
    "二",
    "十二",
    "百分之五",
    "翻倍",
    "1.2万",
    "½",
]
WORDS += ["35 %", "$35M", "①", "٣", "\u200b5", "-7", "1,000", "IV", "几个", "３"]


@given(st.sampled_from(["title", "body", "source", "period", "unit"]), st.integers(0, 10**6), st.sampled_from(WORDS))
def test_a_number_put_between_any_two_words_is_found(field: str, at: int, word: str) -> None:
    text = getattr(draft(), field)
    gaps = [0, *(place for place, letter in enumerate(text) if letter == " "), len(text)]
    place = gaps[at % len(gaps)]
    assert findings(draft(**{field: f"{text[:place]} {word} {text[place:]}"}))


@given(
    st.sampled_from(["title", "body", "source", "period", "unit"]),
    st.integers(0, 10**6),
    st.characters(categories=["Nd", "Nl", "No"]),
)
def test_a_digit_put_anywhere_is_found(field: str, at: int, digit: str) -> None:
    text = getattr(draft(), field)
    place = at % (len(text) + 1)
    assert findings(draft(**{field: text[:place] + digit + text[place:]}))
