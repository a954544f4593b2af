"""An installation whose gateway refunds at a real payment service, tells customers, and takes back what it did.

It stands apart because programs that tests kill open the same installation again from its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import JsonValue, SecretStr

from countersign.domain import compensation, refund
from countersign.domain.action import Action
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.compensation import (
    CompensationRequest,
    MessageRequest,
    ReverseEffect,
    SendMessage,
    receipt_hash,
    reversal_document,
    reversal_of,
)
from countersign.domain.execution import Receipt
from countersign.domain.money import Amount
from countersign.domain.operation import Operation, RequestStatement
from countersign.domain.policy import Policy, Rule
from countersign.domain.proposal import Approval
from countersign.domain.refund import RefundPayment, RefundRequest
from countersign.domain.values import Sha256, Value
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.gateway import Gateway
from countersign.gateway.http_channel import HttpChannel, Limits
from countersign.gateway.payments_channel import PaymentsChannel
from countersign.signing.statements import sign_request
from tests.gateway.rules import need
from tests.gateway.world import ENVIRONMENT, INSTALLATION, START, World
from tests.support.payments import PAYMENTS_TOKEN

PATIENT = Limits(total=timedelta(seconds=60))
SIDE_EFFECTS = {"payments": "refund", "internal": "internal_publication", "messages": "customer_message"}
"""By channel."""
WHEN: dict[str, str | tuple[str, ...]] = {
    "refund": "refund",
    "message": "customer_message",
    "compensation": tuple(reversal_of(side_effect) for side_effect in SIDE_EFFECTS.values()),
}
POLICIES = {
    name: Policy(policy=name, version=1, rules=(Rule(id="all", when={"side_effect": side_effects}, need=need()),))
    for name, side_effects in WHEN.items()
}
"""One reviewer for everything."""
TEMPLATE = b"Refunded as {{reference}}.\n"
"""How the customer is told."""


class RefundWorld(World):
    """A tenant that refunds by channel `payments`, and tells customers by channel `messages`."""

    base: str
    """Where the payment service listens."""

    def served_at(self, base: str) -> RefundWorld:
        """The same, with its payment service."""
        self.base = base
        return self

    @cached_property
    def payments(self) -> PaymentsChannel:
        """The channel to the service."""
        url, orders = f"{self.base}/refunds", f"{self.base}/orders"
        return PaymentsChannel("payments", url, orders, SecretStr(PAYMENTS_TOKEN), "refund", PATIENT)

    @cached_property
    def messages(self) -> HttpChannel:
        """The channel by which customers are told."""
        token = SecretStr(PAYMENTS_TOKEN)
        return HttpChannel("messages", f"{self.base}/messages", token, "customer_message", PATIENT)

    @cached_property
    def internal(self) -> FileChannel:
        """The channel of reports."""
        return FileChannel("internal", self.folder / "published", "internal_publication")

    def refunding(self) -> Gateway:
        """A gateway with all of the tenant's channels."""
        return self.gateway(self.payments, self.messages, self.internal)

    def refund(self, operation: str = "r-1", **changes: Any) -> Approval:
        """A granted refund of all of payment p-2, resting on facts gathered now; `changes` replace its arguments."""
        self.asked(
            operation, RefundRequest(order=changes.get("order", "o-1001"), complaint="Twice!", channel="payments")
        )
        facts = self.refunding().gather(self.tenant, operation)
        return self.granted_action(self.refund_action(operation, facts, **changes), "refund")

    def refund_action(self, operation: str, facts: Sha256, **changes: Any) -> Action:
        """A refund that rests on these facts."""
        wanted: dict[str, Any] = {"order": "o-1001", "payment": "p-2", "amount": 24900, "account": "acc-ada"}
        wanted["message"] = self.ledger.documents.put(self.tenant, TEMPLATE)
        args = RefundPayment(channel="payments", currency="EUR", reason="duplicate", **{**wanted, **changes})
        return self.action(
            operation, "refund", tool=refund.TOOL, args=args.model_dump(mode="json"), target=args.target,
            side_effect="refund", scope=refund.SCOPE, content_hash=sha256_hex(args.document()), evidence_hash=facts,
            amount=args.money, document=args.document(),
        )  # fmt: skip

    def reversal(
        self, receipt: Receipt, follows: str, operation: str = "r-1-undo", *, in_words: str = "", **changes: Any
    ) -> Approval:
        """A granted compensation of what this receipt confirms; `in_words` is what the action says that it follows."""
        request = CompensationRequest(follows=follows, receipt_hash=receipt_hash(receipt), reason="It was right.")
        self.asked(operation, request, follows=follows)
        fields = {
            "channel": receipt.channel, "follows": in_words or follows, "key": receipt.key,
            "reference": receipt.reference, "amount": self._moved(follows),
        }  # fmt: skip
        args = ReverseEffect(**{**fields, **changes})
        side_effect = reversal_of(SIDE_EFFECTS[receipt.channel])
        action = self.action(
            operation, "compensation", tool=compensation.REVERSE, args=args.model_dump(mode="json"),
            target=args.target, side_effect=side_effect, scope=compensation.REVERSE_SCOPE,
            content_hash=sha256_hex(reversal_document(args)), evidence_hash=receipt_hash(receipt),
            amount=args.amount, channel=args.channel, document=reversal_document(args),
        )  # fmt: skip
        return self.granted_action(action, "compensation")

    def message(
        self, receipt: Receipt, follows: str = "r-1", operation: str = "r-1-message", *, in_words: bytes = b""
    ) -> Approval:
        """A granted message to the customer of what this receipt confirms; `in_words` replaces its text."""
        self.asked(operation, MessageRequest(follows=follows, channel="messages"), follows=follows)
        args = SendMessage(channel="messages", follows=follows, reference=receipt.reference, name=operation)
        text = in_words or TEMPLATE.replace(b"{{reference}}", receipt.reference.encode())
        action = self.action(
            operation, "message", tool=compensation.SEND_MESSAGE, args=args.model_dump(mode="json"),
            target=args.target, side_effect="customer_message", scope=compensation.MESSAGE_SCOPE,
            content_hash=sha256_hex(text), evidence_hash=receipt_hash(receipt), channel="messages", document=text,
        )  # fmt: skip
        return self.granted_action(action, "message")

    def asked(self, operation: str, request: Value, *, follows: str = "", signed_as: Mapping[str, Any] = {}) -> None:
        """Register what Rita has signed for; `signed_as` replaces fields of her statement."""
        document = self.ledger.documents.put(self.tenant, canonical_bytes(request.model_dump(mode="json")))
        fields = {
            "installation": INSTALLATION, "person": "rita", "key_id": "rita-1", "tenant": self.tenant,
            "operation": operation, "request_hash": document, "issued_at": START,
            "id": f"request-of-{operation:0>16}",
        }  # fmt: skip
        statement = sign_request(RequestStatement.model_validate({**fields, **signed_as}), self.keys["rita"])
        case = str(request.model_dump()["case"])
        self.ledger.operations.register(
            Operation(
                tenant=self.tenant, operation=operation, case=case, request_hash=document, requester="rita",
                statement=statement, registered_at=START, follows=follows,
            )
        )  # fmt: skip

    def action(self, operation: str, case: str, *, document: bytes, **fields: Any) -> Action:
        """An action under the case's policy, whose document is kept."""
        self.adopt(POLICIES[case])
        self.ledger.documents.put(self.tenant, document)
        return Action.model_validate({
            "tenant": self.tenant, "operation": operation, "tool_version": "1", "channel": "payments",
            "environment": ENVIRONMENT, "policy_version": self.in_force(case).label(), **fields,
        })  # fmt: skip

    def granted_action(self, action: Action, case: str) -> Approval:
        """An approval of an action that Bob has granted."""
        opened = self._open(action, self.in_force(case))
        self.decide(opened, "bob")
        return self.approval(opened)

    def _moved(self, operation: str) -> Amount | None:
        """How much money an operation's latest proposal is about."""
        proposed = self.ledger.approvals.of_operation(self.tenant, operation)
        return proposed[-1].proposal.action.amount

    def found(self, approval: Approval) -> Mapping[str, JsonValue]:
        """What the audit says of why a grant was voided."""
        records = self.ledger.audit.records(self.tenant, approval.proposal.operation)
        return next(record.detail for record in records if record.type == "approval.voided")


def reopened(folder: Path, base: str) -> RefundWorld:
    """The installation in a folder, in another process."""
    return RefundWorld(folder).served_at(base)
