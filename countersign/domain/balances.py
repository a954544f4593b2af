"""What a payment service says was refunded of each payment, beside what the ledger's receipts come to (G36).

Apart from the comparison by keys: a refund that somebody made or took back under a key that is not ours, or that the
service lists no more, shows in what the order's payments say and nowhere else. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from countersign.domain.execution import Execution, ExecutionStatus
from countersign.domain.money import Amount
from countersign.domain.refund import OrderFacts, RefundPayment
from countersign.domain.values import Sha256, Value


class Refunded(Value):
    """A refund of the ledger's that happened, or may have."""

    operation: str
    args: RefundPayment
    execution: Execution
    evidence: Sha256
    """Hash of the reading of the order that it rests on."""
    taken_back: tuple[Execution, ...] = ()
    """Executions by which it was, or may have been, taken back."""

    @property
    def place(self) -> tuple[str, str]:
        """The channel and the order."""
        return self.args.channel, self.args.order

    @property
    def least(self) -> int:
        """What it has surely moved for good, in minor units."""
        kept = happened(self.execution) and not any(may_have_happened(one) for one in self.taken_back)
        return self.args.amount if kept else 0

    @property
    def most(self) -> int:
        """What it can have moved for good."""
        return 0 if any(happened(one) for one in self.taken_back) else self.args.amount


class Balance(Value):
    """One payment."""

    operation: str
    """Whose refund it is compared for."""
    channel: str
    order: str
    payment: str
    told: Amount
    """What was refunded of it by the service's word."""
    least: Amount
    most: Amount
    """Between these it is by the ledger: they differ while it is not known of something whether it happened."""

    @property
    def agrees(self) -> bool:
        """Whether both say the same."""
        return self.least.minor <= self.told.minor <= self.most.minor

    def sentence(self) -> str:
        """Who says what."""
        ours = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
        return (
            f"{self.channel} says that {self.told} of payment {self.payment} (order {self.order}) was refunded, and by"
            f" the ledger's receipts it is {ours}"
        )


def happened(execution: Execution) -> bool:
    """Whether the ledger has it executed."""
    return execution.status == ExecutionStatus.EXECUTED


def may_have_happened(execution: Execution) -> bool:
    """Whether it was executed, or something of it can have landed or still land."""
    return execution.status != ExecutionStatus.NOT_SENT or execution.may_land_until is not None


def balances(refunds: Sequence[Refunded], before: OrderFacts, live: OrderFacts) -> Iterator[Balance]:
    """Every payment of one order.

    Args:
        refunds: all of the ledger's refunds of the order, the one that happened first at the beginning.
        before: the order as that first one found it: whatever was refunded by then is none of ours.
        live: as it is now.
    """
    for id in dict.fromkeys(payment.id for payment in (*before.payments, *live.payments)):
        was, now = before.payment(id), live.payment(id)
        currency = (now or was or live.payments[0]).currency
        base, told = (one.refunded if one is not None else 0 for one in (was, now))
        its = [one for one in refunds if one.args.payment == id]
        named = [one.operation for one in its] or [refunds[0].operation]
        yield Balance(
            operation=named[0], channel=refunds[0].args.channel, order=live.order.id, payment=id,
            told=Amount(currency=currency, minor=told),
            least=Amount(currency=currency, minor=base + sum(one.least for one in its)),
            most=Amount(currency=currency, minor=base + sum(one.most for one in its)),
        )  # fmt: skip


def by_order(refunds: Iterable[Refunded]) -> dict[tuple[str, str], list[Refunded]]:
    """The refunds of each order that at least one happened for, what happened first at the beginning."""
    found: dict[tuple[str, str], list[Refunded]] = {}
    for one in sorted(refunds, key=lambda one: (not happened(one.execution), one.execution.claimed_until)):
        found.setdefault(one.place, []).append(one)
    return {place: several for place, several in found.items() if happened(several[0].execution)}
