"""The policies that courses are played under, in words of their own, and how they are written in a policy file."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

REVIEWERS = ("bob", "carl")
LEADS = ("lea", "leo")
OPERATOR = "lea"
REQUESTER = "rita"
PEOPLE = (REQUESTER, *REVIEWERS, *LEADS, "ada")

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


class Terms(NamedTuple):
    """What a policy says of time and people; a reviewer decides first, and leads from each tier on."""

    approvals: int
    open_for: timedelta
    """From the proposal to the deadline, with what the tiers add."""
    decide_within: timedelta
    reminders: tuple[timedelta, ...]
    tiers: tuple[timedelta, ...]
    held: bool
    """Whether an undecided run is held for people at the deadline, instead of ending."""
    lease: timedelta | None
    called_within: timedelta | None
    """How long those have who are called to a run that is held; nothing: nobody is called, and it waits."""
    extends: timedelta | None = None
    """What the last tier gives from its beginning on."""

    def ticks(self) -> list[tuple[timedelta, str]]:
        """Reminders and tiers in their order, from the proposal on."""
        return sorted([(at, "remind") for at in self.reminders] + [(at, "tier") for at in self.tiers])


TERMS = {
    "days": Terms(
        approvals=1, open_for=72 * HOUR, decide_within=72 * HOUR, reminders=(24 * HOUR,), tiers=(48 * HOUR,),
        held=False, lease=8 * HOUR, called_within=72 * HOUR,
    ),
    "duty": Terms(
        approvals=2, open_for=20 * MINUTE, decide_within=15 * MINUTE, reminders=(2 * MINUTE, 10 * MINUTE),
        tiers=(5 * MINUTE,), extends=15 * MINUTE, held=True, lease=10 * MINUTE, called_within=30 * MINUTE,
    ),
    "alone": Terms(
        approvals=1, open_for=6 * HOUR, decide_within=6 * HOUR, reminders=(), tiers=(1 * HOUR, 3 * HOUR),
        held=True, lease=None, called_within=None,
    ),
}  # fmt: skip


def written(terms: Terms) -> dict[str, Any]:
    """What a policy file says for it: `need` for the rule about people, and the policy's own fields."""
    tiers = [{"after": _text(at), "role": "lead", "decisions": ["approve", "reject"]} for at in terms.tiers]
    if terms.extends is not None:
        tiers[-1]["extends"] = _text(terms.extends)
    ladder = {
        "remind": [_text(at) for at in terms.reminders],
        "tiers": tiers,
        "then": "freeze" if terms.held else "expire",
    }
    need = {"approvals": terms.approvals, "decide_within": _text(terms.decide_within), "ladder": ladder}
    takeover = {"role": "lead"} if terms.lease is None else {"role": "lead", "lease": _text(terms.lease)}
    route = {"role": "lead", "severity": "high"}
    within = terms.called_within
    escalations = {} if within is None else {"APPROVAL_TIMEOUT": {**route, "within": _text(within)}}
    return {"need": need, "takeover": takeover, "escalations": escalations}


def _text(time: timedelta) -> str:
    return f"{time // MINUTE}m"
