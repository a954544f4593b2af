"""Compensation and messages: operations that follow another one, and rest on its receipt (G38).

Apart from the cases, since the gateway reads the same forms and not them. A compensation is no rollback: it is a new
action with its own hash, approvals and key, and can fail like any other.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from countersign.domain.canonical import canonical_bytes, digest
from countersign.domain.channel import ChannelName
from countersign.domain.execution import Receipt
from countersign.domain.identity import OperationId
from countersign.domain.money import Amount
from countersign.domain.values import Sha256, Value, Why

COMPENSATION, MESSAGE = "compensation", "message"
"""Names of the two cases."""
REVERSE, SEND_MESSAGE, TOOL_VERSION = "reverse_effect", "send_message", "1"
"""Names and version of their tools."""
REVERSE_SCOPE, MESSAGE_SCOPE = "one_effect", "one_message"

_Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Reference = Annotated[str, Field(max_length=500)]


class CompensationRequest(Value):
    """Take back what an operation did, as far as the outside can."""

    case: Literal["compensation"] = "compensation"
    follows: OperationId
    receipt_hash: Sha256
    """Hash (`receipt_hash`) of the receipt of the execution that is to be taken back."""
    reason: Why


class MessageRequest(Value):
    """Tell a customer of what an operation did, once it is confirmed; its words are the operation's own draft."""

    case: Literal["message"] = "message"
    follows: OperationId
    channel: ChannelName


class ReverseEffect(Value):
    """The arguments of `reverse_effect`."""

    channel: ChannelName
    follows: OperationId
    key: _Key
    """The idempotency key of what is taken back."""
    reference: _Reference
    """What the outside calls it."""
    amount: Amount | None = None
    """How much money it moved, where it moved any: as much moves back, and limits count it (the action's `amount`)."""

    @property
    def target(self) -> str:
        """What it is about."""
        return f"{self.channel}:{self.reference}"


class ReversalDocument(Value):
    """What goes out to have an effect taken back: which one, by the key that it was sent under and by its own name."""

    key: _Key
    reference: _Reference


class SendMessage(Value):
    """The arguments of `send_message`."""

    channel: ChannelName
    follows: OperationId
    reference: _Reference
    """What the outside calls the effect that the message is about."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$")]
    """The message's own name in the channel."""

    @property
    def target(self) -> str:
        """Where it goes."""
        return f"{self.channel}:{self.name}"


def reversal_of(side_effect: str) -> str:
    """What taking back a side effect is called in a policy's words: `refund` -> `refund_reversal`."""
    return f"{side_effect}_reversal"


def reversal_document(args: ReverseEffect) -> bytes:
    """The bytes of a reversal's `ReversalDocument`.

    Whoever executes it compares the approved bytes with these, so that no other effect can stand in them (G14).
    """
    return canonical_bytes(ReversalDocument(key=args.key, reference=args.reference).model_dump(mode="json"))


def receipt_hash(receipt: Receipt) -> Sha256:
    """Hash of what an operation that follows rests on: what the outside confirmed, without our words about it."""
    return digest(receipt.model_dump(mode="json", exclude={"detail"}))
