"""The words that Countersign itself writes into a published report, in each language.

Apart from rendering because the checks need them too: a draft may not pose as one of these sections.
"""

from __future__ import annotations

from typing import Literal

SECTIONS: dict[Literal["en", "zh"], dict[str, str]] = {
    "en": {
        "source": "Source",
        "period": "Period",
        "unit": "Unit",
        "limitations": "Limitations",
        "figures": "Figures",
        "columns": "Figure|Shown|Exact value|Unit|Query",
    },
    "zh": {
        "source": "来源",
        "period": "期间",
        "unit": "单位",
        "limitations": "局限",
        "figures": "数字",
        "columns": "编号|显示|精确值|单位|查询",
    },
}
RESERVED_HEADINGS = frozenset(
    words[name].casefold()
    for words in SECTIONS.values()
    for name in ("source", "period", "unit", "limitations", "figures")
)
"""Headings that only Countersign writes."""
