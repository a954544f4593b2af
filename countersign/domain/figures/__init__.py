"""Figures in text: finding every number that a reader would see, and judging how a figure is shown.

A package of its own because it is pure text reading, the same for every case, and the place where "looks like a
number" is decided. Whatever looks like a number and cannot be read is reported as unreadable, never passed over.
"""
