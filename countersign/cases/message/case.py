"""The message case: a customer is told of a refund, in words that were approved with it, once it is confirmed.

Apart from the refund itself, since it is an action of its own, which can fail without the refund having failed.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from countersign.cases.case import Submission
from countersign.cases.followed import Followed, asked_behind
from countersign.domain.action import Action
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.channel import ChannelConfig, channel_of
from countersign.domain.compensation import (
    MESSAGE,
    MESSAGE_SCOPE,
    SEND_MESSAGE,
    TOOL_VERSION,
    MessageRequest,
    SendMessage,
    receipt_hash,
)
from countersign.domain.document_names import checked_document_name
from countersign.domain.errors import Conflict
from countersign.domain.operation import Operation
from countersign.domain.refund import REFUND, RefundPayment, customer_message
from countersign.ports import Ledger

_ANOTHER = "a message is not edited: its words were approved with what it tells of; reject it"


class MessageCase:
    """Telling of a confirmed refund; fulfils `cases.case.Case`."""

    name = MESSAGE
    drafted = False
    gathers = False

    def __init__(self, ledger: Ledger, channels: Mapping[str, ChannelConfig], environment: str) -> None:
        self._ledger = ledger
        self._channels = channels
        self._environment = environment

    def submission(
        self,
        operation: Operation,
        draft_version: int,  # noqa: ARG002 - as in Case
        policy_version: str,
        args: Mapping[str, JsonValue] | None = None,
    ) -> Submission:
        """The message of the refund that it follows, made from that one's action and receipt.

        Raises:
            Conflict: the refund is not confirmed, or what it follows is none; nobody is told of what did not happen.
            ConfigurationRefused: the tenant has no such channel.
        """
        request, followed = asked_behind(self._ledger, operation, MessageRequest)
        channel = channel_of(request.channel, operation.tenant, self._channels)
        text = self._text(followed)
        action = self._action(operation, followed, channel, request.channel, text, policy_version)
        return Submission(
            action=action, document=text, reason=f"{request.follows} is confirmed as {followed.receipt.reference}",
            summary=f"tell the customer: {followed.proposal.summary}",
            evidence=(f"receipt of {request.follows} {action.evidence_hash}",), reversibility=channel.reversibility,
            checks=f"its words were approved with {request.follows}; what it states is what the receipt confirms",
            verdict=f"that of {request.follows}: {followed.proposal.verdict}", cost="none", live=None,
            problem="" if args is None or dict(args) == action.args else _ANOTHER,
        )  # fmt: skip

    def _text(self, followed: Followed) -> bytes:
        """The words that were approved with the refund, about what was confirmed of it."""
        proposal = followed.proposal
        if proposal.case != REFUND:
            raise Conflict(f"operation {proposal.operation} is no refund; nobody is told of it by a message")
        done = RefundPayment.model_validate_json(canonical_bytes(proposal.action.args))
        if not done.message:
            raise Conflict(f"operation {proposal.operation} was approved without a message; nobody is told of it")
        template = self._ledger.documents.get(proposal.tenant, done.message)
        return customer_message(template, done, followed.receipt)

    def _action(
        self, operation: Operation, followed: Followed, channel: ChannelConfig, name: str, text: bytes,
        policy_version: str,
    ) -> Action:  # fmt: skip
        args = SendMessage(
            channel=name, follows=operation.follows, reference=followed.receipt.reference,
            name=message_name(operation.operation),
        )  # fmt: skip
        return Action(
            tenant=operation.tenant, operation=operation.operation, tool=SEND_MESSAGE, tool_version=TOOL_VERSION,
            args=args.model_dump(mode="json"), channel=args.channel, target=args.target,
            side_effect=channel.side_effect, scope=MESSAGE_SCOPE, environment=self._environment,
            content_hash=sha256_hex(text), evidence_hash=receipt_hash(followed.receipt), policy_version=policy_version,
        )  # fmt: skip


def message_name(operation: str) -> str:
    """The message's own name in its channel; InputRefused for an operation id that makes no legal one."""
    return checked_document_name(f"{operation}.txt")
