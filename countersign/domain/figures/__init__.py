"""Figures in text: finding every number that a reader would see, and judging how a figure is shown.

A package of its own because it is pure text reading, the same for every case, and the place where "looks like a
number" is decided. Whatever looks like a number and cannot be read is reported as unreadable, never passed over.
"""

from countersign.domain.figures.finding import find_numbers
from countersign.domain.figures.found import FoundNumber
from countersign.domain.figures.shown import Disagreement, ShownFigure, agrees, read_shown, show

__all__ = ["Disagreement", "FoundNumber", "ShownFigure", "agrees", "find_numbers", "read_shown", "show"]
