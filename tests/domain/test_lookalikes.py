"""Look-alikes: what a reader takes for another name is found, and honest text in any language is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.lookalikes import looks_like, mixed_scripts, skeleton

pytestmark = pytest.mark.guarantee("G14")

TARGET = "public:report-10.md"


@pytest.mark.parametrize(
    "other",
    [
        "public:report-lO.md",
        "public:report-I0.md",
        "public:repοrt-10.md",  # Greek omicron
        "public:rероrt-10.md",  # Cyrillic er, ie, o
        "рublіс:report-10.md",
        "public:report‐10.md",  # another hyphen
        "public：report-10.md",  # full width
        "public:report-10․md",  # one dot leader
        "pub\u200blic:report-10.md",
        "public:report-10.md\u202c",
        "𝗽𝘂𝗯𝗹𝗶𝗰:report-10.md",
        "PUBLIC:report-10.md".replace("I", "і"),
    ],
)
def test_another_target_that_looks_the_same_is_found(other: str) -> None:
    assert looks_like(other, [TARGET, "internal:report-10.md"]) == (TARGET,)


@pytest.mark.parametrize(
    ("one", "other"),
    [("rn", "m"), ("l", "1"), ("I", "l"), ("0", "O"), ("o", "0"), ("annex-ll", "annex-11"), ("forrn", "form"),
     ("bob", "b0b"), ("carl", "сarl"), ("ada", "аda"), ("cornpany", "company")],
)  # fmt: skip
def test_near_names_look_alike_both_ways(one: str, other: str) -> None:
    assert looks_like(one, [other]) == (other,)
    assert looks_like(other, [one]) == (one,)


@pytest.mark.parametrize("other", [TARGET, "public:report-11.md", "internal:report-10.md", "public:report-100.md", ""])
def test_the_same_name_and_plainly_other_names_are_not_flagged(other: str) -> None:
    assert looks_like(other, [TARGET]) == ()


@given(st.text(max_size=30))
def test_no_text_is_taken_for_itself_and_any_text_has_one_skeleton(text: str) -> None:
    assert looks_like(text, [text]) == ()
    assert skeleton(text) == skeleton(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Pay раypal now", ("раypal",)),
        ("ΑBC and АBC", ("ΑBC", "АBC")),
        ("sаles sаles", ("sаles",)),
        ("Sales 売上 Отчёт за год", ()),
        ("销售Sales报告, フォームのGPT案", ()),
        ("naïve Œuvre Straße İstanbul", ()),
        ("12 μm, 4 kΩ, 1ª", ()),
        ("report_2026-раyroll", ("раyroll",)),
        ("", ()),
    ],
)
def test_only_words_of_scripts_that_do_not_belong_together_are_named(text: str, words: tuple[str, ...]) -> None:
    assert mixed_scripts(text) == words
