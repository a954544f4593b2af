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
FLOOD = 5
"""More messages than this at once are ruled on outside the workflow task: the server fails a task during which more
than 100 signals come, and a local activity would hold it open."""


class Mailbox:
    """Messages that wait for a ruling, and the rulings that senders of updates wait for."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._received = 0
        self._asked: set[str] = set()
        self._answers: dict[str, Outcome] = {}

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
        self._waiting.append(
            Message(
                id=message_id,
                name=_printable(name),
                transport=transport,
                body=body,
                problem=problem,
                received_at=workflow.now(),
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

    @property
    def flooded(self) -> bool:
        """Whether more messages wait than a workflow task should be held open for."""
        return len(self._waiting) > FLOOD

    def batch(self) -> tuple[Message, ...]:
        """The oldest messages, up to one step's worth, which stay until they are `done`."""
        return tuple(islice(self._waiting, BATCH))

    def done(self, batch: Sequence[Message], outcomes: Sequence[Outcome]) -> None:
        """Take the ruled messages out and hand the outcomes to those who wait for them."""
        for message, outcome in zip(batch, outcomes, strict=True):
            self._waiting.popleft()
            if message.id in self._asked:
                self._asked.discard(message.id)
                self._answers[message.id] = outcome


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
