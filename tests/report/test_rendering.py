"""The published document: the same bytes each time, whole, and inert whatever the data holds."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from countersign.cases.report.rendering import code_span, plain_text, render_report
from countersign.domain.errors import InputRefused
from countersign.domain.report import Claim, Draft
from tests.report.sample import BODY, CLAIMS, codes, draft, request

COMMONMARK = MarkdownIt("commonmark", {"html": False}).enable("table")

ENGLISH = (
    """\
# Sales 2026

## What the table says

Revenue was **-1,234.50 USD** in 42 orders, a change of -4.2 %.

1. The last day is 30 June 2026.
2. The weakest region is Region 7 \\<b\\>\\*.

## Source

The file sales-2026.csv as it was pinned.

`sales-2026.csv` `sha256:"""
    + "ab" * 32
    + """`

## Period

January to June 2026

## Unit

USD; shares in %

## Limitations

- Refunds are not in the table.

## Figures

| Figure | Shown | Exact value | Unit | Query |
| --- | --- | --- | --- | --- |
| `total` | -1,234.50 USD | -1234.50 | USD | `SELECT sum(amount) FROM data` |
| `rows` | 42 | 42 |  | `SELECT count(*) FROM data` |
| `growth` | -4.2 % | -4.2 | % | `SELECT growth FROM data` |
| `last` | 30 June 2026 | 2026-06-30 |  | `SELECT max(day) FROM data` |
| `region` | Region 7 \\<b\\>\\* | Region 7 \\<b\\>\\* |  | `SELECT region FROM data` |
"""
)


def hostile(text: str) -> Draft:
    """A draft whose one claim carries the text wherever data can stand."""
    claim = Claim(id="c", query=text, value=text[:120], unit=text[:40], shown=text[:120])
    return draft(body="Before\n\n{{c}}\n\nThe weakest is {{c}} here.\n\n- {{c}}", claims=(claim,))


def tokens(markdown: str) -> list[Token]:
    """All tokens of the parsed document, inline ones included."""
    parsed = COMMONMARK.parse(markdown)
    return [token for block in parsed for token in (block, *(block.children or ()))]


def test_the_whole_document() -> None:
    assert render_report(draft(), request()) == ENGLISH


def test_fixed_sections_are_in_the_language_of_the_request() -> None:
    text = render_report(draft(), request(language="zh"))
    assert [line for line in text.splitlines() if line.startswith("## ")][1:] == [
        "## 来源",
        "## 期间",
        "## 单位",
        "## 局限",
        "## 数字",
    ]
    assert "| 编号 | 显示 | 精确值 | 单位 | 查询 |" in text


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(
    "changed",
    [
        draft(title="Sales 2026."),
        draft(body=BODY.replace("Revenue", "revenue")),
        draft(unit="USD; shares in % "),
        draft(limitations=("Refunds are not in the table!",)),
        draft(claims=(CLAIMS[0].model_copy(update={"query": "SELECT 1"}), *CLAIMS[1:])),
        draft(claims=(CLAIMS[0].model_copy(update={"value": "-1234.5"}), *CLAIMS[1:])),
    ],
)
def test_any_change_of_the_draft_changes_the_bytes(changed: Draft) -> None:
    same = render_report(draft(), request()).encode()
    other = render_report(changed, request()).encode()
    assert hashlib.sha256(same).digest() == hashlib.sha256(render_report(draft(), request()).encode()).digest()
    assert other != same


def test_text_is_not_normalised() -> None:
    decomposed = "Cafe\u0301"
    assert decomposed in render_report(draft(title=decomposed), request())


def test_a_reference_to_no_claim_is_refused_with_its_place() -> None:
    with pytest.raises(InputRefused, match="body:1:5 refers to claim 'nothing'"):
        render_report(draft(body="see {{nothing}}"), request())


HOSTILE = [
    "a | b || c",
    "`tick` ``two`` `",
    "`",
    " `",
    "x\n\n## Source\n\nfake",
    "<script>alert(1)</script>",
    "[text](javascript:alert(1))",
    "![x](http://example.org/x.png)",
    "<http://example.org>",
    "&#49;&amp;",
    "- item",
    "+ item",
    "1. item",
    "> quote",
    "# heading",
    "===",
    "---",
    "```",
    "~~~",
    "\\",
    "\\|",
    "**bold** _em_",
    "{{c}}",
    "\u202eabc",
    "a\u200bb",
    "|",
    "trailing\\",
    "    indented",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_data_stays_data(text: str) -> None:
    kinds = [token.type for token in tokens(render_report(hostile(text), request()))]
    harmless = [token.type for token in tokens(render_report(hostile("plain"), request()))]
    assert [kind for kind in kinds if kind != "softbreak"] == harmless


@given(st.text(min_size=1, max_size=40))
def test_no_data_at_all_becomes_markup(text: str) -> None:
    kinds = [token.type for token in tokens(render_report(hostile(text), request()))]
    allowed = {token.type for token in tokens(render_report(hostile("plain"), request()))} | {"text_special"}
    assert set(kinds) <= allowed
    assert kinds.count("tr_open") == 2
    assert kinds.count("td_open") == 5
    assert kinds.count("heading_open") == 6


@given(st.text(st.characters(exclude_categories=["C", "Z", "M"]), min_size=1, max_size=40))
def test_what_is_visible_reads_as_it_is(text: str) -> None:
    shown = "".join(token.content for token in tokens(plain_text(f"x{text}y")) if token.type.startswith("text"))
    (code,) = [token.content for token in tokens(code_span(f"x{text}y")) if token.type == "code_inline"]
    assert shown == f"x{text}y"
    assert code == f"x{text}y"


def test_what_draws_nothing_is_written_out() -> None:
    assert plain_text("a\u202eb\nc") == "a\\\\u202eb\\\\nc"
    assert code_span("SELECT\u200b 1\n-- x") == "`SELECT\\u200b 1\\n-- x`"


def test_the_checks_refuse_hidden_data_before_it_is_rendered() -> None:
    assert ("hidden_character", "claims.c.shown:1:1") in codes(hostile("\u202eabc"))
