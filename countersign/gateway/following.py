"""The tools of operations that follow another one: taking its effect back, and telling of it; both rest on its receipt.

Both are for the one operation that the action's own was registered to follow: under another's name nobody takes back,
or tells of, what was not asked about (G38).
"""

from __future__ import annotations

from countersign.domain import compensation, refund
from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.compensation import (
    COMPENSATION,
    CompensationRequest,
    MessageRequest,
    ReverseEffect,
    SendMessage,
    receipt_hash,
    reversal_document,
)
from countersign.domain.errors import Drifted, NotAuthorised
from countersign.domain.execution import ExecutionStatus, Receipt
from countersign.domain.proposal import Proposal
from countersign.domain.refund import RefundPayment, customer_message
from countersign.gateway.channels import Channel, NotSent
from countersign.gateway.refusals import Ended, forged
from countersign.gateway.tool import Call, Reach, Words, asked, check_asked, check_word, read


class Reverse:
    """Has an effect taken back by the channel that made it; fulfils `tool.Tool`."""

    version = compensation.TOOL_VERSION

    def channel(self, action: Action, reach: Reach) -> Channel:
        """See `Tool.channel`."""
        return reach.channel(action.tenant, read(ReverseEffect, action).channel, "reversals")

    def call(self, action: Action, reach: Reach) -> Call:
        """See `Tool.call`."""
        args = read(ReverseEffect, action)
        # The approved bytes are what goes out, so they must name the very effect that the words are about.
        check_word(action, "content_hash", sha256_hex(reversal_document(args)))
        words = Words(channel=args.channel, target=args.target, scope=compensation.REVERSE_SCOPE, amount=args.amount)
        return Call(self.channel(action, reach), "", action.idempotency_key(), words)

    def check_evidence(self, proposal: Proposal, reach: Reach) -> None:
        """See `Tool.check_evidence`."""
        action = proposal.action
        args = read(ReverseEffect, action)
        done, receipt = _followed(action, args.follows, reach)
        request = asked(CompensationRequest, action, reach)
        check_asked("follows", args.follows, request.follows)
        check_asked("evidence", action.evidence_hash, request.receipt_hash)
        its = (receipt.channel, receipt.key, receipt.reference, done.amount)
        if its != (args.channel, args.key, args.reference, args.amount):
            raise NotAuthorised("receipt_does_not_fit", f"the receipt of {args.follows} is of another effect")


class Tell:
    """Tells a customer of a confirmed effect; fulfils `tool.Tool`."""

    version = compensation.TOOL_VERSION

    def channel(self, action: Action, reach: Reach) -> Channel:
        """See `Tool.channel`."""
        return reach.channel(action.tenant, read(SendMessage, action).channel, "documents")

    def call(self, action: Action, reach: Reach) -> Call:
        """See `Tool.call`."""
        args = read(SendMessage, action)
        words = Words(channel=args.channel, target=args.target, scope=compensation.MESSAGE_SCOPE, amount=None)
        return Call(self.channel(action, reach), args.name, action.idempotency_key(), words)

    def check_evidence(self, proposal: Proposal, reach: Reach) -> None:
        """See `Tool.check_evidence`; what is not confirmed, nobody is told of, nor what does not stand.

        Raises:
            ChannelFailure: the outside does not confirm it now, or it may be about to be taken back.
        """
        action = proposal.action
        args = read(SendMessage, action)
        done, receipt = _followed(action, args.follows, reach)
        request = asked(MessageRequest, action, reach)
        check_asked("follows", args.follows, request.follows)
        check_asked("channel", args.channel, request.channel)
        if receipt.reference != args.reference:
            raise NotAuthorised("receipt_does_not_fit", f"the receipt of {args.follows} has another reference")
        check_word(action, "content_hash", sha256_hex(_told(done, receipt, reach)))
        _check_stands(action.tenant, args.follows, reach)
        _check_confirmed(done, receipt, reach)


def _told(done: Action, receipt: Receipt, reach: Reach) -> bytes:
    """The one text that a customer may be told: it was approved with the refund, and states what is confirmed (G40)."""
    if done.tool != refund.TOOL:
        raise NotAuthorised("words_do_not_fit", f"operation {done.operation} is no refund; nobody is told of it")
    args = read(RefundPayment, done)
    with forged("words_do_not_fit", f"operation {done.operation} was approved without such a message"):
        template = reach.ledger.documents.get(done.tenant, args.message)
    return customer_message(template, args, receipt)


def _check_stands(tenant: str, follows: str, reach: Reach) -> None:
    """Refuse to tell of what was taken back; what may yet be taken back is told of later, or not at all."""
    for one in reach.ledger.operations.followers(tenant, follows):
        if one.case != COMPENSATION:
            continue
        execution = reach.ledger.executions.get(tenant, one.operation)
        if execution is not None and execution.status == ExecutionStatus.EXECUTED:
            raise Ended("taken_back", f"operation {one.operation} took back what {follows} did; nobody is told of it")
        if not one.state.terminal:
            raise NotSent("being_taken_back", f"operation {one.operation} is to take back what {follows} did")


def _check_confirmed(done: Action, receipt: Receipt, reach: Reach) -> None:
    """Have the outside itself confirm the effect now: a receipt in the ledger can be what people say of it."""
    found = reach.channel(done.tenant, done.channel, "refunds").look_up(receipt.key)
    if found is None:
        raise NotSent("not_confirmed", f"channel {done.channel} holds no {receipt.reference[:80]!r} now")
    if receipt_hash(found) != receipt_hash(receipt):
        other = f"channel {done.channel} holds {found.reference[:80]!r} and not {receipt.reference[:80]!r}"
        raise Ended("receipt_does_not_fit", f"{other}; nobody is told of it")


def _followed(action: Action, follows: str, reach: Reach) -> tuple[Action, Receipt]:
    """What was done that the action rests on, with its receipt."""
    if reach.ledger.operations.get(action.tenant, action.operation).follows != follows:
        raise NotAuthorised("follows", f"operation {action.operation} was not registered to follow {follows}")
    execution = reach.ledger.executions.get(action.tenant, follows)
    receipt = execution.receipt if execution and execution.status == ExecutionStatus.EXECUTED else None
    found = receipt_hash(receipt) if receipt is not None else "none"
    if execution is None or receipt is None or found != action.evidence_hash:
        changed = f"the receipt of {follows} is not the one that this was about"
        raise Drifted("receipt", changed, expected=action.evidence_hash, found=found)
    done = reach.ledger.approvals.get(action.tenant, execution.approval_id).proposal.action
    if not done.idempotency_key() == execution.key == receipt.key:
        raise NotAuthorised("receipt_does_not_fit", f"the receipt of {follows} is of another action than its own")
    return done, receipt
