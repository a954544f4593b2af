"""The messages of a run: taken raw by one handler that lets no exception out, ruled on in order, each one recorded.

A typed handler can be poisoned from the command line by no argument or two, and a wrong type is dropped in silence
(measured; the SDK's open issue 355). So nothing is parsed here: a handler only keeps what came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Literal

from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import Message
    from countersign.domain.decision import Outcome

MAX_BODY = 16_000
"""Bytes of one message; a signed decision has about 600."""
BATCH = 50
"""Messages ruled on in one step."""
MAX_BATCH = 500_000
"""Characters of their JSON together, at the most; a step's input is refused by the server beyond 2 MB, for ever."""
FLOOD = 5
"""More messages than this at once are ruled on outside the workflow task: the server fails a task during which more
than 100 signals come, and a local activity would hold it open."""


class Mailbox:
    """Messages that wait for a ruling, and the rulings that senders of updates wait for."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._received = 0
        self._signals = 0
        self._asked: set[str] = set()
        self._answers: dict[str, Outcome] = {}

    def take_up(self, received: int, waiting: Sequence[Message]) -> None:
        """Go on with what came to the runs before this one, ahead of what has come to this one.

        Args:
            received: how many messages came to them.
            waiting: those of them that have no ruling yet.
        """
        self._received += received
        self._waiting.extendleft(reversed(waiting))

    @property
    def received(self) -> int:
        """How many messages ever came."""
        return self._received

    @property
    def waiting(self) -> int:
        """How many have no ruling yet."""
        return len(self._waiting)

    def put(self, name: str, args: Sequence[RawValue], transport: Literal["signal", "update"]) -> str:
        """Keep a message and return its id."""
        self._received += 1
        message_id = f"{workflow.info().run_id}:{self._received}"
        body, problem = _body(args)
        is_signal = transport == "signal"
        self._signals += is_signal
        self._waiting.append(
            Message(
                id=message_id,
                name=_printable(name),
                transport=transport,
                body=body,
                problem=problem,
                received_at=workflow.now(),
                signal=self._signals if is_signal else 0,
            )
        )
        return message_id

    async def ask(self, name: str, args: Sequence[RawValue]) -> Outcome:
        """Keep an update and wait for its outcome."""
        message_id = self.put(name, args, "update")
        self._asked.add(message_id)
        await workflow.wait_condition(lambda: message_id in self._answers)
        return self._answers.pop(message_id)

    def waits_since_before(self, moment: datetime) -> bool:
        """Whether a message without a ruling came before `moment`."""
        return bool(self._waiting) and self._waiting[0].received_at < moment

    def signals_since(self, moment: datetime) -> tuple[Message, ...]:
        """The signals that were taken in at `moment` or later, whose true times may be earlier."""
        return tuple(message for message in self._waiting if message.signal and message.received_at >= moment)

    def date_back(self, signals: Sequence[Message], times: Sequence[datetime]) -> None:
        """Give messages the times at which the server recorded them, which are never later than their taking in, and
        put them before an update that was taken in together with them."""
        recorded = {message.id: time for message, time in zip(signals, times, strict=True)}
        dated = (
            message.model_copy(update={"received_at": min(message.received_at, recorded[message.id]), "signal": 0})
            if message.id in recorded
            else message
            for message in self._waiting
        )
        self._waiting = deque(sorted(dated, key=lambda message: message.received_at))

    def carried(self) -> tuple[Message, ...]:
        """What waits, for a run that goes on with it: its own signals are counted anew."""
        return tuple(message.model_copy(update={"signal": 0}) for message in self._waiting)

    @property
    def can_be_carried(self) -> bool:
        """Whether what waits is little enough to be handed on with the run."""
        return sum(map(_size, self._waiting)) <= MAX_BATCH

    @property
    def flooded(self) -> bool:
        """Whether more messages wait than a workflow task should be held open for."""
        return len(self._waiting) > FLOOD

    def batch(self, before: datetime | None = None) -> tuple[Message, ...]:
        """The oldest messages, of those that came before a moment if one is given: up to one step's worth, which stay
        until they are `done`."""
        taken: list[Message] = []
        size = 0
        for message in islice(self._waiting, BATCH):
            size += _size(message)
            if (before is not None and message.received_at >= before) or (taken and size > MAX_BATCH):
                break
            taken.append(message)
        return tuple(taken)

    def done(self, batch: Sequence[Message], outcomes: Sequence[Outcome]) -> None:
        """Take the ruled messages out and hand the outcomes to those who wait for them."""
        ruled = {message.id for message in batch}
        self._waiting = deque(message for message in self._waiting if message.id not in ruled)
        for message, outcome in zip(batch, outcomes, strict=True):
            if message.id in self._asked:
                self._asked.discard(message.id)
                self._answers[message.id] = outcome


def _size(message: Message) -> int:
    """Characters that it takes in JSON, at the most: what is no plain letter is written as up to twelve."""
    body = message.body or ""
    return 500 + len(message.problem) + sum(1 if letter in _PLAIN else 12 for letter in body)


_PLAIN = frozenset(map(chr, range(32, 127))) - {'"', "\\"}


def _body(args: Sequence[RawValue]) -> tuple[str | None, str]:
    if len(args) != 1:
        return None, f"expected one JSON argument, found {len(args)}"
    payload = args[0].payload
    encoding = payload.metadata.get("encoding", b"").decode("ascii", "replace")
    if encoding != "json/plain":
        return None, f"expected encoding json/plain, found {_printable(encoding)!r}"
    if len(payload.data) > MAX_BODY:
        return None, f"expected at most {MAX_BODY} bytes, found {len(payload.data)}"
    try:
        return payload.data.decode("utf-8"), ""
    except UnicodeDecodeError:
        return None, "expected UTF-8"


def _printable(text: str) -> str:
    return text[:60].encode("ascii", "backslashreplace").decode()
