"""What a reader cannot see is written out, and named."""

from __future__ import annotations

import pytest

from countersign.domain.visible import escaped, unseen

pytestmark = pytest.mark.guarantee("G15")

SHOWN = [
    # a text, how it is shown, what of it could not be seen
    ("Sales of Q2\nNorth", "Sales of Q2\nNorth", ()),
    ("销售 é", "销售 é", ()),
    ("a\u202eb", "a\\u{202e}b", ("\\u{202e}",)),
    ("a\u200bb\u200bc", "a\\u{200b}b\\u{200b}c", ("\\u{200b}",)),
    ("\x1b[2J\t", "\\u{001b}[2J\\u{0009}", ("\\u{001b}", "\\u{0009}")),
    ("a\u00a0b\u3000c", "a\\u{00a0}b\\u{3000}c", ("\\u{00a0}", "\\u{3000}")),
    ("a\ufe0fb", "a\\u{fe0f}b", ("\\u{fe0f}",)),
    ("\U000e0041", "\\u{e0041}", ("\\u{e0041}",)),
]


@pytest.mark.parametrize(("text", "shown", "hidden"), SHOWN)
def test_every_character_that_shows_as_nothing_is_written_out(text: str, shown: str, hidden: tuple[str, ...]) -> None:
    assert (escaped(text), unseen(text)) == (shown, hidden)
