"""The chat model for refunds without a provider: it looks for a payment that repeats another one, and for nothing else.

It stands apart as a model, not as a second drafter, so that checkpoints, tools, limits and checks are the same ones in
offline use. Where no payment repeats another one it says so, and refunds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from pydantic import TypeAdapter

from countersign.agents.rule_model import RuleModel
from countersign.domain.refund import Order, OrderFacts, Payment

WORDING: Mapping[Literal["en", "zh"], Mapping[str, str]] = {
    "en": {
        "why": "{{payment}} repeats {{duplicate_of}}: the amount is the same, it came from the same account, and both"
        " were captured for order {{order}}, which asks for the amount once. No part of either went back so far, so"
        " {{amount}} of {{payment}}, the later of both, is to go back to the account that it came from.",
        "nothing": "No captured payment of order {{order}} repeats another from the same account beyond what the"
        " order asks for. A refund for any other reason is for people to judge.",
        "message": "Hello,\n\nthank you for telling us. Your payment for order {{order}} was taken again by mistake."
        " {{amount}} went back to the account that you paid from. If you have a question about it, please name the"
        " reference {{reference}}.",
    },
    "zh": {
        "why": "{{payment}} 重复了 {{duplicate_of}}：金额相同，账户相同，而订单 {{order}} 只应支付其中之一。"
        "两者均未退回任何款项，因此应将其中较晚的 {{payment}} 的 {{amount}} 退回原账户。",
        "nothing": "订单 {{order}} 没有来自同一账户、超出应付总额的重复款项。其他原因的退款应由人工判断。",
        "message": "您好，\n\n感谢您告诉我们。订单 {{order}} 的款项被重复扣取，{{amount}} 已退回您付款时所用的账户。"
        "如有疑问，请提供参考编号：{{reference}}。",
    },
}
"""No figure stands in any of it, and no id."""


class OfflineRefundDrafter(RuleModel):
    """Proposes to refund the first payment that repeats an earlier one."""

    called = "offline-refund-drafter/1"

    def next_calls(self, messages: Sequence[BaseMessage]) -> list[ToolCall]:
        """Read order and payments at once, then deliver."""
        assignment = json.loads(next(str(each.content) for each in messages if isinstance(each, HumanMessage)))
        answers = {each.tool_call_id: str(each.content) for each in messages if isinstance(each, ToolMessage)}
        wanted = [name for name in ("get_order", "get_payments") if name not in answers]
        if wanted:
            return [ToolCall(name=name, args={}, id=name) for name in wanted]
        attempt = sum(isinstance(message, AIMessage) for message in messages)
        draft = _draft(assignment, _facts(answers["get_order"], answers["get_payments"]))
        return [ToolCall(name="RefundDraft", args=draft, id=f"draft-{attempt}")]


def _facts(order: str, payments: str) -> OrderFacts:
    """What the tools said; `refundable` follows from the rest."""
    listed = [{name: each[name] for name in each if name != "refundable"} for each in json.loads(payments)]
    known = TypeAdapter(tuple[Payment, ...]).validate_json(json.dumps(listed))
    return OrderFacts(order=Order.model_validate_json(order), payments=known)


def _draft(assignment: Mapping[str, Any], facts: OrderFacts) -> dict[str, Any]:
    words = WORDING["zh" if assignment["request"]["language"] == "zh" else "en"]
    told = words["message"] if str(assignment["message"]).startswith("one ") else ""
    for later in facts.payments:
        if earlier := facts.repeats(later):
            return {
                "payment": later.id, "duplicate_of": earlier.id, "account": later.account,
                "amount": {"currency": later.currency, "minor": later.amount},
                "justification": words["why"], "message": told,
            }  # fmt: skip
    return {
        "payment": "", "duplicate_of": "", "account": "",
        "amount": {"currency": facts.order.currency, "minor": 0},
        "justification": words["nothing"], "message": "",
    }  # fmt: skip
