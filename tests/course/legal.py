"""Where a run may go from each state, read off design.md's table by hand, and the ways that it names as impossible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tests.course.model import ENDS

_BY_PEOPLE = {"HUMAN_TAKEOVER", "RUNNING", "WITHDRAWN", "CANCELLED"}
LEGAL: dict[str, set[str]] = {
    "RUNNING": {"WAITING_APPROVAL", "ESCALATED", "FAILED", *_BY_PEOPLE},
    "WAITING_APPROVAL": {"EXECUTING", "REJECTED", "EXPIRED", "ESCALATED", *_BY_PEOPLE},
    "ESCALATED": {"ESCALATED", "EXECUTING", "REJECTED", "EXPIRED", "FAILED", *_BY_PEOPLE},
    "HUMAN_TAKEOVER": {"WAITING_APPROVAL", "ESCALATED", *_BY_PEOPLE},
    "EXECUTING": {"SUCCEEDED", "WAITING_RETRY", "OUTCOME_UNKNOWN", "FAILED", *_BY_PEOPLE},
    **{end: set() for end in ENDS},
}
"""Where policies ask people for every action, as those of the courses do."""
ILLEGAL = {
    "the agent's draft is executed unasked": ("RUNNING", "EXECUTING"),
    "a person's draft is executed unasked": ("HUMAN_TAKEOVER", "EXECUTING"),
    "it succeeds without the gateway": ("WAITING_APPROVAL", "SUCCEEDED"),
    "an escalation ends in success": ("ESCALATED", "SUCCEEDED"),
    "what has expired is executed": ("EXPIRED", "EXECUTING"),
    "what was rejected is executed": ("REJECTED", "EXECUTING"),
    "what was withdrawn is executed": ("WITHDRAWN", "EXECUTING"),
    "what was cancelled is executed": ("CANCELLED", "EXECUTING"),
    "what has failed is executed": ("FAILED", "EXECUTING"),
    "it is executed again": ("SUCCEEDED", "EXECUTING"),
    "what has expired waits again": ("EXPIRED", "WAITING_APPROVAL"),
    "what was rejected is drafted again": ("REJECTED", "RUNNING"),
    "a takeover expires for the others' silence": ("HUMAN_TAKEOVER", "EXPIRED"),
    "a draft expires": ("RUNNING", "EXPIRED"),
    "a draft is rejected": ("RUNNING", "REJECTED"),
    "what is on its way expires": ("EXECUTING", "EXPIRED"),
    "what is on its way is rejected": ("EXECUTING", "REJECTED"),
}


def wrong_steps(trail: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The changes of state in a trail that are not legal, with a release that nobody made."""
    return [
        (before, after)
        for (before, _), (after, reason) in pairwise(trail)
        if after not in LEGAL[before]
        or (before == "HUMAN_TAKEOVER" and after == "RUNNING" and reason != "released")
        or (before == "ESCALATED" and after == "RUNNING" and reason not in ("released", "edited"))
    ]
