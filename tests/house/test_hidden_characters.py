"""What a reader cannot see is the same for everyone: drafted by none, refused by the checks, written out when shown."""

from __future__ import annotations

import json
import unicodedata

import pytest

from countersign.agents.offline_drafter import _claim
from countersign.agents.offline_report import Figure
from countersign.cases.report.fields import Field
from countersign.cases.report.markup import hidden_characters
from countersign.cases.report.rendering import code_span
from countersign.cli.rendering import visible_line
from countersign.domain.visible import is_hidden

RANGES = [(0, 0x3200), (0xD7F0, 0xD800), (0xE000, 0xE010), (0xFE00, 0x10000), (0xE0000, 0xE0200), (0x10FF00, 0x110000)]
FIGURE = Figure(id="name", query="SELECT 1", kind="text", unit="")


@pytest.mark.parametrize(("first", "end"), RANGES)
def test_all_who_handle_text_agree_on_what_is_hidden(first: int, end: int) -> None:
    for letter in map(chr, range(first, end)):
        drafted = _claim(FIGURE, json.dumps({"rows": [[letter]]}), "en") is not None
        refused = bool(list(hidden_characters(Field("title", letter))))
        written_out = letter not in code_span(letter)
        assert (not drafted, refused, written_out) == (is_hidden(letter),) * 3, hex(ord(letter))
        # A person at a terminal is shown blanks other than a space too: they could pose as one.
        is_blank = unicodedata.category(letter) == "Zs" and letter != " "
        assert (visible_line(letter) != letter) == (is_hidden(letter) or is_blank), hex(ord(letter))
