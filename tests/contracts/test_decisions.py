"""What each of the four decisions does, at the level of the messages that the model gets.

`countersign/agents/asking.py` hands answers over as these decisions. What the tool bodies of guarded calls do once more
by themselves (look up whether a person allowed exactly these arguments) is in `tests/agents`.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from pydantic import ValidationError

from tests.contracts.scripted import THREAD, Mode, Trial, by_call, call

MODES: tuple[Mode, ...] = ("per_call", "batched")
EDIT = {"type": "edit", "edited_action": {"name": "read", "args": {"column": "bonus", "rows": 3}}}
REJECT = {"type": "reject"}
both_modes = pytest.mark.parametrize("mode", MODES)


@both_modes
async def test_approve_runs_the_original_call_and_answers_its_id(mode: Mode) -> None:
    trial = Trial(mode=mode)
    message = await trial.started_and_answered({"type": "approve"})

    assert trial.ran == [("read", {"column": "salary", "rows": 1})]
    assert (message.tool_call_id, message.status, message.content) == ("call-1", "success", "1 of salary")


@both_modes
async def test_edit_runs_the_changed_call_alone_under_the_id_of_the_original(mode: Mode) -> None:
    trial = Trial(mode=mode)
    message = await trial.started_and_answered(EDIT)

    assert trial.ran == [("read", {"column": "bonus", "rows": 3})]
    assert (message.tool_call_id, message.status) == ("call-1", "success")


async def test_the_model_is_told_of_an_edit_before_the_result_and_not_to_try_the_original_again() -> None:
    message = await Trial().started_and_answered(EDIT)

    notice, result = str(message.content).split("\n\nTool response:\n")
    assert "a human reviewer replaced this tool call" in notice
    assert "Do not re-issue your original call" in notice
    assert 'Executed instead: read with arguments {"column": "bonus", "rows": 3}.' in notice
    assert result == "3 of bonus"


async def test_without_an_edit_notice_the_result_stands_alone() -> None:
    message = await Trial(more={"edit_notice": None}).started_and_answered(EDIT)

    assert message.content == "3 of bonus"


async def test_after_an_edit_the_models_own_message_still_has_the_original_call() -> None:
    """What ran is in the tool's result and in the ledger's answers, never in the model's message."""
    trial = Trial()
    await trial.started_and_answered(EDIT)

    message = trial.agent.get_state(THREAD).values["messages"][1]
    assert isinstance(message, AIMessage)
    assert message.tool_calls == [call("call-1")]


@both_modes
async def test_reject_runs_nothing_and_is_an_error_with_the_persons_reason(mode: Mode) -> None:
    """The reason is framed, not alone: our adapter's own sentence stands inside this frame."""
    trial = Trial(mode=mode)
    message = await trial.started_and_answered({"type": "reject", "message": "salaries are private"})

    assert trial.ran == []
    assert (message.tool_call_id, message.status) == ("call-1", "error")
    assert message.content == "User rejected the tool call for `read` with reason: salaries are private"


@both_modes
@pytest.mark.parametrize("words", [{}, {"message": ""}])
async def test_reject_without_a_reason_says_not_executed_and_do_not_retry(mode: Mode, words: dict[str, str]) -> None:
    message = await Trial(mode=mode).started_and_answered({**REJECT, **words})

    assert message.content == (
        "User rejected the tool call for `read` with id call-1. The tool was not executed."
        " Do not retry this tool call unless the user explicitly requests it."
    )


@both_modes
async def test_respond_runs_nothing_and_is_a_success_with_the_persons_words_alone(mode: Mode) -> None:
    """Which is why `respond` is allowed for `ask_user` only: of a guarded read it would look like its result."""
    trial = Trial(mode=mode)
    message = await trial.started_and_answered({"type": "respond", "message": "Take the first half."})

    assert trial.ran == []
    assert (message.tool_call_id, message.status) == ("call-1", "success")
    assert message.content == "Take the first half."


@pytest.mark.parametrize("decision", [{"type": "reject"}, {"type": "respond", "message": "Yes."}])
async def test_a_message_in_a_tools_place_is_marked_as_a_persons_decision(decision: dict[str, str]) -> None:
    message = await Trial().started_and_answered(decision)

    assert message.additional_kwargs["lc_source"] == "hitl_interrupt_decision"
    assert message.additional_kwargs["lc_data"] == {"decision": decision["type"]}


@pytest.mark.parametrize(
    "refused",
    [
        {"type": "respond", "message": "The column is empty."},
        {"type": "edit", "edited_action": {"name": "fail", "args": {"column": "salary"}}},
        {"type": "edit", "edited_action": {"name": "read", "args": {"column": "bonus", "rows": "many"}}},
        {"type": "edit", "edited_action": {"name": "read", "args": {}}},
        {"type": "edit"},
        {"type": "accept"},
        {},
        "approve",
        None,
        True,
    ],
    ids=[
        "not allowed",
        "another tool",
        "wrong type",
        "missing",
        "no action",
        "unknown",
        "empty",
        "text",
        "null",
        "yes",
    ],
)
async def test_an_answer_of_another_form_is_refused_and_the_call_waits_on(refused: Any) -> None:
    trial = Trial(interrupt_on={"read": {"allowed_decisions": ["approve", "edit", "reject"]}})
    (waiting,) = await trial.start()
    with pytest.raises(ValidationError):
        await trial.answer({waiting.id: refused})

    assert (trial.ran, [each.id for each in trial.waits_for()]) == ([], [waiting.id])
    assert await trial.answer({waiting.id: REJECT}) == []


async def test_an_edit_may_hold_arguments_that_the_tool_does_not_declare_and_they_are_dropped() -> None:
    """So the schema alone is no check of rights: `DraftedCase.edit_problem` looks at the whole of the arguments."""
    trial = Trial()
    await trial.started_and_answered(
        {"type": "edit", "edited_action": {"name": "read", "args": {"column": "bonus", "as_role": "admin"}}}
    )

    assert trial.ran == [("read", {"column": "bonus", "rows": 1})]


async def test_a_batched_edit_may_switch_to_another_tool() -> None:
    """Another reason for per_call, whose schema pins the tool."""
    trial = Trial(mode="batched")
    await trial.started_and_answered(
        {"type": "edit", "edited_action": {"name": "ask_user", "args": {"question": "Which?"}}}
    )

    assert trial.ran == [("ask_user", {"question": "Which?"})]


async def test_a_batched_decision_that_is_not_allowed_fails_the_resume() -> None:
    trial = Trial(mode="batched", interrupt_on={"read": {"allowed_decisions": ["approve"]}})
    await trial.start()
    with pytest.raises(ValueError, match="not allowed"):
        await trial.answer({"decisions": [REJECT]})

    assert trial.ran == []


async def test_a_call_that_the_model_makes_again_later_is_asked_again() -> None:
    trial = Trial(then=[AIMessage("", tool_calls=[call("call-2")]), AIMessage("done")])
    (first,) = await trial.start()
    (second,) = await trial.answer({first.id: {"type": "approve"}})

    assert by_call([second]) == {"call-2": second.id}
    assert second.id != first.id
    assert len(trial.ran) == 1
