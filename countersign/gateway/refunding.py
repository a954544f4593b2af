"""The tool that refunds a payment; it rests on one reading of the order, which the gateway itself has gathered."""

from __future__ import annotations

from functools import partial
from typing import cast

from pydantic import ValidationError

from countersign.domain import refund
from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import NotAuthorised
from countersign.domain.proposal import Proposal
from countersign.domain.refund import OrderFacts, RefundPayment, RefundRequest
from countersign.gateway.payments_channel import PaymentService, RefundChannel
from countersign.gateway.refusals import drifted
from countersign.gateway.tool import Call, Reach, Reader, Words, asked, check_asked, check_word, read


class Refund:
    """Fulfils `tool.Tool`. That the order is still what it was is looked at by its channel, right before it sends:
    after a look-up, since a refund that was made already has changed the order itself."""

    version = refund.TOOL_VERSION

    def channel(self, action: Action, reach: Reach) -> RefundChannel:
        """See `Tool.channel`."""
        payments = payment_service(reach, action.tenant, read(RefundPayment, action).channel)
        return RefundChannel(payments, partial(_pinned, action, reach))

    def call(self, action: Action, reach: Reach) -> Call:
        """See `Tool.call`."""
        args = read(RefundPayment, action)
        # The approved bytes are what the service is sent, so they must state the very refund that the words are about.
        check_word(action, "content_hash", sha256_hex(args.document()))
        words = Words(channel=args.channel, target=args.target, scope=refund.SCOPE, amount=args.money)
        return Call(self.channel(action, reach), "", action.idempotency_key(), words)

    def check_evidence(self, proposal: Proposal, reach: Reach) -> None:
        """See `Tool.check_evidence`; NotAuthorised where the facts do not allow the refund that rests on them, or were
        not gathered for it."""
        action = proposal.action
        args, request = read(RefundPayment, action), asked(RefundRequest, action, reach)
        check_asked("order", args.order, request.order)
        check_asked("channel", args.channel, request.channel)
        if not reach.ledger.operations.has_gathered(action.tenant, action.operation, action.evidence_hash):
            raise NotAuthorised("facts_not_gathered", f"those facts were not gathered for operation {action.operation}")
        payment = _pinned(action, reach).payment(args.payment)
        if payment is None or payment.order != args.order:
            raise NotAuthorised("facts_do_not_fit", f"the facts know no payment {args.payment} of order {args.order}")
        if (payment.account, payment.currency) != (args.account, args.currency) or args.amount > payment.refundable:
            raise NotAuthorised(
                "facts_do_not_fit", f"by the facts {args.money} of payment {payment.id} cannot go to {args.account}"
            )


def payment_service(reach: Reach, tenant: str, name: str) -> PaymentService:
    """The tenant's payments channel of that name; Ended without one, or where it is one of another kind."""
    # Whatever takes refunds tells of their orders, too.
    return cast("PaymentService", reach.channel(tenant, name, "refunds"))


def _order(tenant: str, request: RefundRequest, reach: Reach) -> OrderFacts:
    return payment_service(reach, tenant, request.channel).facts(request.order)


READS_ORDER = Reader(RefundRequest, _order)
"""The order that a refund is about, with its payments."""


def _pinned(action: Action, reach: Reach) -> OrderFacts:
    with drifted("evidence", "the facts are no longer what was approved", expected=action.evidence_hash):
        kept = reach.ledger.documents.get(action.tenant, action.evidence_hash)
    try:
        return OrderFacts.model_validate_json(kept)
    except ValidationError:
        raise NotAuthorised("facts_unreadable", "what is kept under the evidence's hash is no order") from None
