"""The refund case: what a finished draft becomes at the payment service, and what a reviewer is shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from pydantic import JsonValue, ValidationError

from countersign.cases.case import ShownDraft, Submission, read_draft
from countersign.cases.refund.checks import STOPS, check_refund
from countersign.cases.refund.rendering import fact_lines, graded_text, message_template, summary, words
from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.channel import ChannelConfig, channel_taking
from countersign.domain.draft import Violation
from countersign.domain.errors import InputRefused
from countersign.domain.money import Amount
from countersign.domain.operation import Operation
from countersign.domain.question import Asked
from countersign.domain.refund import (
    DUPLICATE,
    REFUND,
    REQUESTED,
    SCOPE,
    TOOL,
    TOOL_VERSION,
    OrderFacts,
    RefundDraft,
    RefundPayment,
    RefundRequest,
)
from countersign.domain.rubric import Grade
from countersign.domain.values import Sha256, first_problem
from countersign.ports import Ledger, RefundMaterial

RUBRIC = "refund-rubric"


class Drafted(NamedTuple):
    """What was asked for, what the agent wrote, how that was graded, and the facts as they were gathered last."""

    request: RefundRequest
    draft: RefundDraft
    grade: Grade | None
    facts: OrderFacts
    facts_hash: Sha256


class RefundCase:
    """Refunding a payment that an agent found to be due; fulfils `cases.case.DraftedCase`."""

    name = REFUND
    drafted = True
    gathers = True
    form = RefundDraft
    prose = ("justification", "message")
    rubric: ClassVar[str] = RUBRIC
    stops: ClassVar[Mapping[str, str]] = STOPS

    def __init__(self, ledger: Ledger, channels: Mapping[str, ChannelConfig], environment: str) -> None:
        self._ledger = ledger
        self._channels = channels
        self._environment = environment

    def open(self, operation: Operation, believed: Sequence[Asked]) -> RefundMaterial:  # noqa: ARG002
        """The complaint and the facts as they were gathered last; NotFound before there are any."""
        facts, _ = self._facts(operation)
        return RefundMaterial(self._request(operation), facts)

    def check(self, draft: RefundDraft, material: RefundMaterial, *, by_agent: bool) -> tuple[Violation, ...]:
        """Every finding about money and texts; see `checks.check_refund`."""
        return check_refund(draft, material.request, material.facts, by_agent=by_agent)

    def edit_problem(self, operation: Operation, tool: str, args: Mapping[str, JsonValue]) -> str:  # noqa: ARG002
        """No call of this case's agent can be changed: it only asks."""
        return f"a call of {tool[:60]} takes no other arguments; answer it as it is"

    def graded_text(self, operation: Operation, draft: RefundDraft) -> str:
        """The refund, its texts and the facts that it rests on."""
        facts, _ = self._facts(operation)
        return graded_text(draft, self._request(operation), facts)

    def task(self, operation: Operation) -> Mapping[str, JsonValue]:
        """The complaint, and in which language the customer is told, if at all."""
        request = self._request(operation)
        return {
            "task": "Find out whether a payment of the order is to be refunded, and why. It follows whole, in parts.",
            "request": request.model_dump(mode="json", include={"order", "complaint", "language"}),
            "message": "one to the customer" if request.message_channel else "none: nobody is to be told",
        }

    def shown(self, draft: RefundDraft) -> ShownDraft:
        """What it would refund."""
        return ShownDraft(summary(draft))

    def submission(
        self,
        operation: Operation,
        draft_version: int,
        policy_version: str,
        args: Mapping[str, JsonValue] | None = None,
    ) -> Submission:
        """The refund that a draft comes to, or with the amount that people want; checked on the latest facts."""
        drafted = self._drafted(operation, draft_version)
        proposed = arguments(drafted.draft, drafted.request)
        wanted = proposed if args is None else _read(args)
        changed = [name for name in RefundPayment.model_fields if getattr(wanted, name) != getattr(proposed, name)]
        other = [name for name in changed if name != "amount"]
        amount = Amount(currency=proposed.currency, minor=wanted.amount)
        lowered = drafted._replace(draft=drafted.draft.model_copy(update={"amount": amount}))
        problem = _other(other) if other else _found(lowered)
        return self._submitted(operation, lowered, wanted, policy_version)._replace(problem=problem)

    def _submitted(
        self, operation: Operation, drafted: Drafted, args: RefundPayment, policy_version: str
    ) -> Submission:
        request, draft, grade, facts, facts_hash = drafted
        channel, document = channel_taking("refunds", args.channel, operation.tenant, self._channels), args.document()
        action = Action(
            tenant=operation.tenant, operation=operation.operation, tool=TOOL, tool_version=TOOL_VERSION,
            args=args.model_dump(mode="json"), channel=args.channel, target=args.target,
            side_effect=channel.side_effect, scope=SCOPE, environment=self._environment,
            content_hash=sha256_hex(document), evidence_hash=facts_hash, policy_version=policy_version,
            amount=args.money,
        )  # fmt: skip
        return Submission(
            action=action, document=document, reason=request.complaint, summary=summary(draft),
            evidence=(f"facts {facts_hash}", *fact_lines(facts)), reversibility=channel.reversibility,
            checks="order, payment, account, currency and what is left to refund agree with the facts",
            verdict=grade.verdict.value if grade else "not graded",
            cost=f"{args.money}, which goes back to account {args.account}", live=None,
            grades=tuple(result.model_dump(mode="json") for result in grade.answer.criteria) if grade else (),
            words=words(draft, request), kept=(message_template(draft, request.order),) if args.message else (),
        )  # fmt: skip

    def _request(self, operation: Operation) -> RefundRequest:
        stored = self._ledger.documents.get(operation.tenant, operation.request_hash)
        return RefundRequest.model_validate_json(stored)

    def _facts(self, operation: Operation) -> tuple[OrderFacts, Sha256]:
        latest = self._ledger.operations.facts(operation.tenant, operation.operation)
        return OrderFacts.model_validate_json(self._ledger.documents.get(operation.tenant, latest)), latest

    def _drafted(self, operation: Operation, version: int) -> Drafted:
        drafts, name = self._ledger.drafts, (operation.tenant, operation.operation, version)
        draft = read_draft(RefundDraft, drafts.get(*name))
        return Drafted(self._request(operation), draft, drafts.grade(*name), *self._facts(operation))


def arguments(draft: RefundDraft, request: RefundRequest) -> RefundPayment:
    """The arguments of `refund_payment` that a draft comes to; InputRefused for one that would refund nothing."""
    template = message_template(draft, request.order)
    try:
        return RefundPayment(
            channel=request.channel, order=request.order, payment=draft.payment, amount=draft.amount.minor,
            currency=draft.amount.currency, account=draft.account,
            reason=DUPLICATE if draft.duplicate_of else REQUESTED,
            message=sha256_hex(template) if template else "",
        )  # fmt: skip
    except ValidationError:
        raise InputRefused(
            "the draft refunds nothing, so there is nothing to propose; amend it, or end the run"
        ) from None


def _read(args: Mapping[str, JsonValue]) -> RefundPayment:
    try:
        return RefundPayment.model_validate(dict(args))
    except ValidationError as error:
        allowed = ", ".join(RefundPayment.model_fields)
        raise InputRefused(f"arguments: {first_problem(error)}; the arguments are: {allowed}") from None


def _other(names: list[str]) -> str:
    return (
        f"{', '.join(names)} cannot be another one than the draft's, whose texts speak of it; amend the draft instead"
    )


def _found(drafted: Drafted) -> str:
    found = check_refund(drafted.draft, drafted.request, drafted.facts, by_agent=False)
    return "; ".join(violation.sentence() for violation in found)
