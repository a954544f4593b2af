"""Benchmarks: ratios within one run, one line each, `figure NAME VALUE AIM`. No timed test depends on them."""

from __future__ import annotations


def figure(name: str, value: float, aim: float) -> None:
    """Print one figure."""
    print(f"figure {name} {value:.2f} {aim}", flush=True)
