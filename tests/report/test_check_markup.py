"""What a reader could not see, or would see wrongly, is refused: hidden characters, markup, broken references."""

from __future__ import annotations

import pytest

from tests.report.sample import BODY, codes, draft, with_claim

MARKUP = [
    "<b>bold</b>",
    "<!-- note -->",
    "<script>alert()</script>",
    "<{{region}}>",
    "[text](http:x)",
    "![picture](x)",
    "[text][ref]",
    "[ref]: x",
    "[text]{{region}}",
    "https://example.org",
    "javascript:alert()",
    "www.example.org",
    "&#x74;",
    "&shy;",
    "&{{region}};",
    "```\ncode",
    "~~~",
    "- ```",
    "~~{{rows}}~~",
    "# Large",
    "Large\n===",
    "## Source",
    "## Sources",
    "## Limitation",
    "## F\u0456gures",
    "## P\u00e9riod.",
    "**Units**",
    "\\{{region}}",
    "**Limitations:**",
    "Figures\n---",
    "## 局限",
    "{{rows}}. orders",
    "- {{rows}}) orders",
    "{{rows}}{{rows}}",
    "{{rows}}**{{rows}}**",
]
ONE_LINE = ["## More", "> quoted", "- item", "1. item", "---", "===", "    code"]
FINE = [
    "**bold** and *light*",
    "a < b",
    "R&D",
    "A &amp; B",
    "> quoted",
    "`code`",
    "---",
    "- item",
    "Sources differ.",
    "[sic]",
]
HIDDEN = [
    "\u200b",
    "\u202e",
    "\u2066",
    "\u00ad",
    "\ufeff",
    "\x00",
    "\x1b",
    "\r",
    "\u2028",
    "\u3164",
    "\ufe0f",
    "\U000e0041",
]


@pytest.mark.parametrize("text", MARKUP)
def test_markup_is_refused(text: str) -> None:
    assert "markup_not_allowed" in {code for code, _ in codes(draft(body=f"{BODY}\n{text}\n"))}


@pytest.mark.parametrize("text", ONE_LINE)
def test_one_line_fields_begin_no_block(text: str) -> None:
    assert ("markup_not_allowed", "period:1:1") in codes(draft(period=text))


@pytest.mark.parametrize("text", FINE)
def test_plain_commonmark_is_fine(text: str) -> None:
    assert codes(draft(body=f"{BODY}\n{text}\n")) == []


@pytest.mark.parametrize("letter", HIDDEN)
def test_a_hidden_character_is_found_wherever_it_is(letter: str) -> None:
    assert codes(draft(body=f"{BODY}\nab{letter}c")) == [("hidden_character", "body:8:3")]
    assert ("hidden_character", "title:1:1") in codes(draft(title=f"{letter}Sales 2026"))
    assert ("hidden_character", "claims.rows.shown:1:3") in codes(with_claim("rows", shown=f"42{letter}"))


def test_one_line_fields_hold_one_line() -> None:
    assert codes(draft(title="Sales 2026\n\n# More"))[0] == ("hidden_character", "title:1:11")


@pytest.mark.parametrize("text", ["{{Rows}}", "{{ rows }}", "{{rows", "rows}}", "{{}}"])
def test_a_broken_reference_is_found(text: str) -> None:
    assert "malformed_reference" in {code for code, _ in codes(draft(body=f"{BODY}\nsee {text}"))}


@pytest.mark.parametrize(
    ("changes", "code", "place"),
    [
        ({"source": "the sales table"}, "missing_source", "source"),
        ({"source": "old-sales-2026.csv.bak"}, "missing_source", "source"),
        ({"period": "—"}, "missing_period", "period"),
        ({"unit": "…"}, "missing_unit", "unit"),
        ({"unit": "see the figures"}, "missing_unit", "unit"),
        ({"unit": "USD and EUR"}, "unit_mismatch", "unit"),
        ({"limitations": ("...",)}, "missing_limitation", "limitations.0"),
        ({"title": "-"}, "missing_title", "title"),
    ],
)
def test_source_period_unit_and_limits_are_stated(changes: dict[str, object], code: str, place: str) -> None:
    assert (code, place) in codes(draft(**changes))
