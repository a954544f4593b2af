"""Raw messages read strictly, one form per name; what has not that form is a refusal and never an exception.

Apart from ruling on them, because decisions and commands are read, refused and recorded in the same way.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError

from activities.interfaces import Message, MessageBatch
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.directory import Person
from countersign.domain.errors import InputRefused, StatementRefused
from countersign.domain.strict_json import parse
from countersign.domain.values import Value
from countersign.ports import Ledger

MAX_STATEMENT = 8_000
"""Characters of a signed statement in a message."""
MAX_DETAIL = 300
"""Characters of a refusal's detail that are kept; a sender can make it long."""

Form = TypeVar("Form", bound=Value)


class Unreadable(Exception):
    """A message that is no verified statement about this run; what its sender is told."""

    def __init__(self, ruling: Ruling, detail: str = "") -> None:
        super().__init__(detail)
        self.outcome = Outcome(ruling=ruling, detail=detail)


def read(message: Message, form: type[Form]) -> Form:
    """The one JSON object of a message; Unreadable where it has another form."""
    if message.body is None:
        raise Unreadable(Ruling.MALFORMED, message.problem)
    try:
        return form.model_validate(parse(message.body.encode("utf-8", "surrogatepass"), where=message.name))
    except InputRefused as refusal:
        raise Unreadable(Ruling.MALFORMED, refusal.message) from None
    except ValidationError:
        expected = f'{message.name}: expected {{"statement": "<signed statement>"}} and nothing else'
        raise Unreadable(Ruling.MALFORMED, expected) from None


def check_key_now(signer: Person, key_id: str, now: datetime) -> None:
    """Refuse what a key signed that is good no longer, whenever the message is said to have come.

    Raises:
        StatementRefused: the key is not good now.
    """
    key = signer.key(key_id)
    if key is None or not key.good_at(now):
        raise StatementRefused("key_not_valid", f"key {key_id} is not valid now; it is expired or revoked")


def record_refusal(ledger: Ledger, batch: MessageBatch, message: Message, outcome: Outcome) -> Outcome:
    """Keep a message that never became a verified statement about this run; once per message (G47)."""
    short = outcome.model_copy(update={"detail": outcome.detail[:MAX_DETAIL]})
    return ledger.approvals.record_refusal(
        batch.tenant, batch.operation, message.id, message.transport, short, message.received_at
    )
