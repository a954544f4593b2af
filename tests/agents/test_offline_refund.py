"""Refunds without a provider: the drafter finds what repeats, or says that nothing does; the grader finds each flaw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from pydantic import JsonValue

from countersign.agents.checkpoints import checkpoints_at
from countersign.agents.drafting import DeepAgentDrafter
from countersign.agents.grading import RubricGrader
from countersign.agents.models import ModelSettings, draft_model, grade_model
from countersign.agents.offline_refund import WORDING
from countersign.agents.refund import REFUND_AGENT
from countersign.cases.case import read_draft
from countersign.cases.refund.checks import check_refund
from countersign.cases.refund.rendering import graded_text
from countersign.domain.figures.finding import find_numbers
from countersign.domain.refund import OrderFacts, RefundDraft, RefundRequest
from countersign.domain.rubric import Grade, Rubric, Verdict, gate
from countersign.ports import RefundMaterial, Written
from countersign.strict_yaml import load
from tests.agents.tables import unheard
from tests.refund.sample import draft, facts, payment, request
from tests.support.thread_keys import THREAD_KEYS

SHIPPED = load(Path(__file__).resolve().parents[2] / "policies" / "refund-rubric.yaml", Rubric)
ORDERS: dict[str, tuple[OrderFacts, str]] = {
    "paid again": (facts(), "p-2"),
    "paid again and again": (facts(payment(), payment(id="p-2"), payment(id="p-3")), "p-2"),
    "one of three is back": (facts(payment(), payment(id="p-2", refunded=12_000), payment(id="p-3")), "p-3"),
    "a failed try between": (facts(payment(), payment(id="p-2", status="failed"), payment(id="p-3")), "p-3"),
    "in whole yen": (
        facts(payment(currency="JPY"), payment(id="p-2", currency="JPY"), currency="JPY"), "p-2",
    ),
}  # fmt: skip
NOTHING: dict[str, OrderFacts] = {
    "paid once": facts(payment()),
    "never paid": facts(payment(status="failed"), payment(id="p-2", status="pending")),
    "in two instalments": facts(total=24_000),
    "by two accounts": facts(payment(), payment(id="p-2", account="acc-1")),
    "back already": facts(payment(), payment(id="p-2", refunded=12_000)),
    "disputed": facts(payment(), payment(id="p-2", status="disputed")),
}


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> DeepAgentDrafter[RefundMaterial]:
    path = tmp_path_factory.mktemp("offline") / "checkpoints.sqlite"
    model = draft_model(ModelSettings(), REFUND_AGENT.offline)
    return DeepAgentDrafter(model, checkpoints_at(f"sqlite:///{path}", THREAD_KEYS), REFUND_AGENT)


@pytest.fixture(scope="module")
def grader() -> RubricGrader:
    return RubricGrader(grade_model(ModelSettings(), REFUND_AGENT.rules))


async def drafted(agent: DeepAgentDrafter[RefundMaterial], asked: RefundRequest, known: OrderFacts) -> RefundDraft:
    thread = f"{asked.model_dump_json()}{known.model_dump_json()}"
    written = await agent.draft(thread, 1, RefundMaterial(asked, known), None, (), {}, True, unheard)
    assert isinstance(written, Written)
    assert written.model == "offline-refund-drafter/1"
    return read_draft(RefundDraft, written.draft)


def task(asked: RefundRequest) -> dict[str, JsonValue]:
    return {
        "task": "Find out.",
        "request": asked.model_dump(mode="json", include={"order", "complaint", "language"}),
        "message": "one to the customer" if asked.message_channel else "none: nobody is to be told",
    }


async def graded(grader: RubricGrader, text: str, asked: RefundRequest) -> Grade:
    return gate(SHIPPED, await grader.grade(text, SHIPPED, task(asked), unheard))


@pytest.mark.parametrize("channel", ["mail", ""])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("order", ORDERS)
async def test_what_repeats_is_found_and_passes_the_checks_and_the_offline_grader(
    agent: DeepAgentDrafter[RefundMaterial], grader: RubricGrader, order: str, language: str, channel: str
) -> None:
    (known, due), asked = ORDERS[order], request(language=language, message_channel=channel)

    found = await drafted(agent, asked, known)

    assert (found.payment, found.duplicate_of, found.amount.minor) == (due, "p-1", 12_000)
    assert [each.sentence() for each in check_refund(found, asked, known, by_agent=True)] == []
    grade = await graded(grader, graded_text(found, asked, known), asked)
    assert (grade.verdict, grade.feedback) == (Verdict.SATISFIED, ())


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("order", NOTHING)
async def test_where_nothing_repeats_it_says_so_and_refunds_nothing(
    agent: DeepAgentDrafter[RefundMaterial], order: str, language: str
) -> None:
    asked = request(language=language)

    found = await drafted(agent, asked, NOTHING[order])

    assert found.payment == ""
    first, *_ = check_refund(found, asked, NOTHING[order], by_agent=True)
    assert first.code == "nothing_to_refund"


FLAWS: dict[str, tuple[str, Callable[[str], str]]] = {
    "another payment": ("names-payment", lambda text: text.replace("> p-2 repeats", "> p-3 repeats")),
    "not what it repeats": ("names-payment", lambda text: text.replace("repeats p-1:", "repeats another:")),
    "not among the facts": ("rests-on-facts", lambda text: text.replace("- payment p-1:", "- payment p-9:")),
    "hearsay": ("rests-on-facts", lambda text: text.replace("> p-2", "> because the customer says so, p-2")),
    "no reason": ("answers-complaint", lambda text: text.replace(": the same amount, from the same account, for order "
                                                                 "o-1001.", ".")),
    "no message": ("plain-message", lambda text: text[: text.index("## message")] + text[text.index("## facts") :]),
    "not the order": ("plain-message", lambda text: text.replace("for order o-1001 went", "for your order went")),
    "another language": ("plain-message", lambda text: text.replace("> Your card", "> 您好 Your card")),
    "an endless message": ("plain-message", lambda text: text.replace("> Your card", "> " + "Dear you. " * 300)),
}  # fmt: skip


@pytest.mark.parametrize("flaw", FLAWS)
async def test_a_flaw_is_found_by_its_criterion_and_by_no_other(grader: RubricGrader, flaw: str) -> None:
    criterion, spoil = FLAWS[flaw]
    sound = graded_text(draft(), request(), facts())
    spoilt = spoil(sound)
    assert spoilt != sound
    assert (await graded(grader, sound, request())).verdict == Verdict.SATISFIED

    grade = await graded(grader, spoilt, request())

    assert grade.verdict == Verdict.NEEDS_REVISION
    assert {result.id for result in grade.answer.criteria if not result.passed} == {criterion}


def test_the_shipped_rubric_can_be_graded_offline() -> None:
    assert {criterion.id for criterion in SHIPPED.criteria} == set(REFUND_AGENT.rules)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_sentence_holds_a_number_of_its_own(language: Literal["en", "zh"]) -> None:
    assert {key: find_numbers(text) for key, text in WORDING[language].items() if find_numbers(text)} == {}
