"""A notice as it leaves the house: its stable id, and one sentence with the command to use next. Pure.

Never a link that decides, never a title, a comment or a document's text: mail and chat are read by others too (G46).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from countersign.domain.address import Audience
from countersign.domain.notice import Notice, NoticeKind

_UNSAFE = re.compile(r"[^A-Za-z0-9 ._:-]")
_LONGEST = 100
_STARTER = "starter.py"
_REVIEW = f"{_STARTER} show {{operation}} --tenant {{tenant}} --review"
_SHOW = f"{_STARTER} show {{operation}} --tenant {{tenant}}"
_TIMELINE = f"{_STARTER} timeline {{operation}} --tenant {{tenant}}"
_OUTBOX = f"{_STARTER} outbox --tenant {{tenant}}"
_FREEZES = f"{_STARTER} freezes --tenant {{tenant}}"
_AUDIT = f"{_STARTER} audit show --tenant {{tenant}}"

_WORDS: Mapping[NoticeKind, tuple[str, str]] = {
    NoticeKind.APPROVAL_OPENED: ("{what} waits for a decision{until}.", _REVIEW),
    NoticeKind.APPROVAL_REMINDER: ("{what} still waits for a decision{until}.", _REVIEW),
    NoticeKind.APPROVAL_ESCALATED: ("{what} is undecided and now asks further people{until}.", _REVIEW),
    NoticeKind.APPROVAL_FROZEN: ("{what} was undecided at its deadline and is held; nothing was executed.", _SHOW),
    NoticeKind.QUESTION_ASKED: ("The agent of {what} waits for an answer{code}{until}.", _SHOW),
    NoticeKind.QUESTION_REMINDER: ("The agent of {what} still waits for an answer{code}{until}.", _SHOW),
    NoticeKind.QUESTION_ESCALATED: (
        "The agent of {what} waits for an answer and now asks further people{code}{until}.",
        _SHOW,
    ),
    NoticeKind.QUESTION_EXPIRED: ("Nobody answered the agent of {what} in time{code}.", _SHOW),
    NoticeKind.ESCALATION_RAISED: ("{what} cannot go on by itself{code}; a person has to take it over{until}.", _SHOW),
    NoticeKind.ESCALATION_UNANSWERED: ("{what} was escalated and nobody answered in time{code}.", _SHOW),
    NoticeKind.CONTROL_CHANGED: ("Control of {what} changed{code}{until}.", _SHOW),
    NoticeKind.RUN_ENDED: ("{what} ended{code}.", _TIMELINE),
    NoticeKind.FROZEN: ("Effects of {what} are frozen{code}: they wait until two persons have lifted it.", _FREEZES),
    NoticeKind.UNFROZEN: (
        "A freeze of {what} was lifted{code}: its effects go on unless another one holds them.",
        _FREEZES,
    ),
    NoticeKind.DELIVERY_FAILED: ("A notice of {what} could not be delivered{code}.", _OUTBOX),
}
"""Each kind's sentence and command."""
_OF_QUESTIONS = (
    NoticeKind.QUESTION_ASKED, NoticeKind.QUESTION_REMINDER, NoticeKind.QUESTION_ESCALATED, NoticeKind.QUESTION_EXPIRED,
)  # fmt: skip
_OF_TENANT = (_FREEZES, _OUTBOX)
"""Commands that need no operation."""


@dataclass(frozen=True)
class Message:
    """One notice for one address."""

    id: str
    """`TENANT:NUMBER:TARGET`, the same at every attempt: whoever has seen it drops the repeat."""
    notice: Notice
    audience: Audience

    @property
    def sentence(self) -> str:
        """What happened."""
        return _sentence(self.notice)

    @property
    def command(self) -> str:
        """What to run next to read more."""
        command = _WORDS[self.notice.kind][1]
        known = self.notice.operation or command in _OF_TENANT
        return (command if known else _AUDIT).format_map(_names(self.notice))


def message_id(tenant: str, number: int, target: str) -> str:
    """`:` is in no part, so it splits in one way only."""
    return f"{tenant}:{number}:{target}"


def _sentence(notice: Notice) -> str:
    names = _names(notice)
    operation, tenant = names["operation"], names["tenant"]
    what = f"operation {operation} of tenant {tenant}" if operation else f"tenant {tenant}"
    told = _WORDS[notice.kind][0].format(
        what=what,
        code=f" ({_in_words(notice)})" if notice.code else "",
        until=f" until {_clock(notice.deadline)}" if notice.deadline else "",
    )
    return told[0].upper() + told[1:]


def _in_words(notice: Notice) -> str:
    """The code, as the ledger writes it for the notice's kind: what it names, and more about that behind a `:`."""
    name, more = (plain(part) for part in notice.code.split(":", 1)) if ":" in notice.code else (plain(notice.code), "")
    if notice.kind in (NoticeKind.FROZEN, NoticeKind.UNFROZEN):
        return f"freeze {name}, {'every effect' if more in ('', 'all') else f'tool {more}'}"
    if notice.kind in _OF_QUESTIONS:
        return f"question {name}"
    if notice.kind == NoticeKind.DELIVERY_FAILED:
        return f"notice {name}{f' to {more}' if more else ''}"
    return ": ".join(filter(None, [name, more]))


def _names(notice: Notice) -> dict[str, str]:
    return {"operation": plain(notice.operation), "tenant": plain(notice.tenant)}


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def plain(text: str) -> str:
    """`text` with nothing in it that a mail header, a chat service or a terminal could act on."""
    return _UNSAFE.sub("?", text[:_LONGEST])
