"""Money at execution: what else was asked for meanwhile, and what each approver may approve by now (G08).

No tool moves money yet, so grants are verified without one; that an amount is refused where the tool has none is tested
as well.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from countersign.domain.directory import Limit
from countersign.domain.errors import Drifted, NotAuthorised
from countersign.domain.money import amount
from countersign.domain.policy import Spent
from countersign.domain.proposal import Approval
from tests.gateway.attempt import Attempt
from tests.gateway.rules import A_DAY, by_amount
from tests.gateway.tampering import changed_json
from tests.gateway.world import World


def paid(world: World, operation: str, money: str, *persons: str, **more: Any) -> Approval:
    """A granted payment."""
    return world.granted(operation, by=by_amount(), by_persons=persons or ("bob",), amount=amount(money), **more)


def as_if_first(world: World, second: Approval, first: Approval) -> None:
    """Let a proposal tell what it would if nothing had been spent before it."""
    for name in ("spent", "assessment"):
        told = first.proposal.model_dump(mode="json")[name]
        where = f"operation = '{second.proposal.operation}'"
        world.tamper("approvals", "proposal", changed_json(name, to=told), where)


def drift(world: World, approval: Approval) -> Drifted:
    """How the grant has drifted; fails if it has not."""
    with pytest.raises(Drifted) as raised:
        world.verified(approval)
    return raised.value


@pytest.mark.guarantee("G08")
def test_two_small_amounts_at_once_do_not_pass_a_limit_that_one_large_one_would_not(world: World) -> None:
    """Both were proposed before either could see the other, as two runs do at the same moment."""
    first = world.propose("pay-1", by=by_amount(), amount=amount("60.00 EUR"))
    second = world.propose("pay-2", by=by_amount(), amount=amount("60.00 EUR"))
    as_if_first(world, second, first)
    world.decide(first, "bob")
    world.decide(second, "ben")
    assert world.verified(world.approval(first)).document
    found = drift(world, world.approval(second))
    assert found.reason == "amounts"
    assert (found.expected, found.found) == (
        "rules small: 1 of role reviewer", "rules large: 2 of role reviewer",
    )  # fmt: skip


@pytest.mark.guarantee("G08")
def test_an_assessment_made_from_less_than_was_spent_is_caught_by_asking_again(world: World) -> None:
    """A rogue worker tells of nothing spent before, and proposes the second small amount as if it were the first."""
    first = paid(world, "pay-1", "100.00 EUR")
    second = world.propose("pay-2", by=by_amount(), amount=amount("60.00 EUR"))
    as_if_first(world, second, first)
    world.decide(second, "ben")
    assert drift(world, world.approval(second)).reason == "amounts"


@pytest.mark.guarantee("G08")
@pytest.mark.parametrize("spent", [[], [Spent(window=A_DAY.model_copy(update={"within": "1h"}), minor=0)]])
def test_an_assessment_without_what_was_spent_is_no_assessment(world: World, spent: list[Spent]) -> None:
    approval = paid(world, "pay-1", "60.00 EUR")
    told = [one.model_dump(mode="json") for one in spent]
    world.tamper("approvals", "proposal", changed_json("spent", to=told))
    with pytest.raises(NotAuthorised) as refused:
        world.verified(world.approval(approval))
    assert refused.value.reason == "assessment"


LIMITS_NOW: list[tuple[str, tuple[Limit, ...], str]] = [
    ("none any more", (), "bob: no limit in EUR"),
    ("of another currency", (Limit(each=amount("1000.00 USD")),), "bob: no limit in EUR"),
    ("lower than this", (Limit(each=amount("59.99 EUR")),), "bob: 60.00 EUR is more than the 59.99 EUR"),
    (
        "lower in sum", (Limit(each=amount("60.00 EUR"), total=amount("99.99 EUR"), within="24h"),),
        "bob: with what was approved before it is more than 99.99 EUR",
    ),
]  # fmt: skip


@pytest.mark.guarantee("G06")
@pytest.mark.guarantee("G08")
@pytest.mark.parametrize(("limits", "found"), [case[1:] for case in LIMITS_NOW], ids=[case[0] for case in LIMITS_NOW])
def test_a_limit_that_was_lowered_after_the_vote(world: World, limits: tuple[Limit, ...], found: str) -> None:
    paid(world, "pay-1", "40.00 EUR")
    approval = paid(world, "pay-2", "60.00 EUR")
    assert world.verified(approval)
    world.move("bob", limits=limits)
    drifted = drift(world, approval)
    assert (drifted.reason, drifted.found.startswith(found)) == ("roles", True), drifted.found


@pytest.mark.guarantee("G08")
def test_what_was_approved_longer_ago_than_the_limits_time_does_not_count(world: World) -> None:
    limit = Limit(each=amount("60.00 EUR"), total=amount("99.99 EUR"), within="24h")
    paid(world, "pay-1", "40.00 EUR")
    world.now += timedelta(hours=24, seconds=1)
    approval = world.propose("pay-2", by=by_amount(), amount=amount("60.00 EUR"))
    world.move("bob", limits=(limit,))
    world.decide(approval, "bob")
    world.decide(approval, "ben")
    assert world.verified(world.approval(approval))


def test_an_amount_on_a_tool_that_moves_no_money_is_refused(world: World, attempt: Attempt) -> None:
    """It could lead the policy to a rule that does not fit what is really done."""
    attempt.is_forged(paid(world, "pay-1", "60.00 EUR"), "words_do_not_fit")
