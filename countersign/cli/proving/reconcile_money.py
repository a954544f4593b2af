"""Refunds by their sums: what the payment service says of each order's payments, beside the ledger's receipts.

Apart from the comparison by keys, since here all operations for one order count together, whoever's they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from countersign.domain import compensation, refund
from countersign.domain.action import Action
from countersign.domain.balances import Balance, Refunded, balances, by_order, may_have_happened
from countersign.domain.compensation import ReverseEffect
from countersign.domain.errors import Conflict, NotFound
from countersign.domain.execution import Execution
from countersign.domain.operation import Operation
from countersign.domain.reconciliation import Gap
from countersign.domain.refund import OrderFacts, RefundPayment
from countersign.ports import Ledger

if TYPE_CHECKING:
    from countersign.gateway.reconciling import Outside

_Done = tuple[Action, Execution]


class Money(NamedTuple):
    """What came of it."""

    balances: Sequence[Balance]
    gaps: Sequence[Gap]


def money_of(ledger: Ledger, look: Outside, everything: Sequence[Operation], chosen: AbstractSet[str]) -> Money:
    """The payments of every order that one of the chosen operations has refunded something of."""
    found: list[Balance] = []
    gaps: list[Gap] = []
    for (channel, order), refunds in by_order(_refunds(ledger, everything)).items():
        if not chosen.isdisjoint(one.operation for one in refunds):
            before, live = _before(ledger, refunds[0]), look.order(channel, order)
            if isinstance(before, OrderFacts) and isinstance(live, OrderFacts):
                found += balances(refunds, before, live)
            else:
                why = next(one for one in (before, live) if isinstance(one, str))
                gaps.append(Gap(part=channel, why=f"what was refunded of order {order} is not compared: {why}"))
    return Money(found, gaps)


def _refunds(ledger: Ledger, everything: Sequence[Operation]) -> Iterator[Refunded]:
    done = [one for operation in everything for one in _done(ledger, operation)]
    reversals: defaultdict[str, list[Execution]] = defaultdict(list)
    for action, execution in done:
        if action.tool == compensation.REVERSE:
            reversals[ReverseEffect.model_validate(action.args).key].append(execution)
    for action, execution in done:
        if action.tool == refund.TOOL:
            yield Refunded(
                operation=action.operation, args=RefundPayment.model_validate(action.args), execution=execution,
                evidence=action.evidence_hash, taken_back=tuple(reversals[execution.key]),
            )  # fmt: skip


def _done(ledger: Ledger, operation: Operation) -> Iterator[_Done]:
    """The operation's actions that were executed, or may have been."""
    if operation.case not in (refund.REFUND, compensation.COMPENSATION):
        return
    name = (operation.tenant, operation.operation)
    executions = {one.key: one for one in ledger.executions.of_operation(*name) if may_have_happened(one)}
    if executions:
        actions = [one.proposal.action for one in ledger.approvals.of_operation(*name)]
        by_key = {one.idempotency_key(): one for one in actions}
        yield from ((by_key[key], execution) for key, execution in executions.items() if key in by_key)


def _before(ledger: Ledger, first: Refunded) -> OrderFacts | str:
    """The order as the first refund found it; in words where that cannot be read."""
    try:
        kept = ledger.documents.get(first.execution.tenant, first.evidence)
        return OrderFacts.model_validate_json(kept)
    except (NotFound, Conflict, ValidationError):
        return f"what operation {first.operation} rests on cannot be read in the ledger"
