"""What a pause tells us: `countersign/agents/asking.py` makes a `PendingCall` of exactly these fields.

An upgrade that breaks a sentence here changes what a person is shown, or which call their answer reaches.
"""

from __future__ import annotations

import pytest

from tests.contracts.scripted import Trial, by_call, call, schema_of

TWO = (call("call-1", column="salary"), call("call-2", column="bonus"))


async def test_each_call_that_waits_is_one_interrupt_with_these_fields_and_no_others() -> None:
    (waiting,) = await Trial().start()

    assert waiting.value == {
        "type": "tool_approval",
        "tool_call_id": "call-1",
        "name": "read",
        "args": {"column": "salary"},
        "description": "Tool execution requires approval\n\nTool: read\nArgs: {'column': 'salary'}",
    }


async def test_its_arguments_are_as_the_model_sent_them_without_the_tools_defaults() -> None:
    (waiting,) = await Trial([call("call-1", column="salary", made_up=[1, {"deep": None}])]).start()

    assert waiting.value["args"] == {"column": "salary", "made_up": [1, {"deep": None}]}


async def test_the_allowed_decisions_stand_in_the_response_schema_only() -> None:
    """Our adapter takes them from the case's own configuration, and reads no schema."""
    trial = Trial(interrupt_on={"read": {"allowed_decisions": ["approve", "reject"]}})
    (waiting,) = await trial.start()

    assert "allowed_decisions" not in waiting.value
    assert set(schema_of(waiting)["discriminator"]["mapping"]) == {"approve", "reject"}


async def test_the_response_schema_of_an_edit_pins_the_tool_and_shows_its_arguments() -> None:
    (waiting,) = await Trial().start()
    definitions = schema_of(waiting)["$defs"]

    assert definitions["EditedAction"]["properties"]["name"]["const"] == "read"
    assert set(definitions["read"]["properties"]) == {"column", "rows"}


async def test_several_calls_wait_in_the_order_in_which_the_model_made_them() -> None:
    waiting = await Trial(TWO).start()

    assert [each.value["tool_call_id"] for each in waiting] == ["call-1", "call-2"]


async def test_two_calls_with_the_same_arguments_have_an_interrupt_each() -> None:
    assert len(set(by_call(await Trial([call("call-1"), call("call-2")]).start()).values())) == 2


async def test_two_calls_with_the_same_id_have_an_interrupt_each_too() -> None:
    """The framework does not mind; people answer by call id, so our adapter refuses such a turn of the model."""
    waiting = await Trial([call("call-1", column="salary"), call("call-1", column="bonus")]).start()

    assert len({each.id for each in waiting}) == 2


async def test_a_pause_reads_the_same_from_the_stored_thread() -> None:
    trial = Trial(TWO)
    waiting = await trial.start()

    assert [(each.id, each.value) for each in trial.waits_for()] == [(each.id, each.value) for each in waiting]


async def test_going_on_without_an_answer_waits_for_the_same_under_the_same_ids() -> None:
    trial = Trial(TWO)
    before = by_call(await trial.start())

    assert by_call(await trial._go(None)) == before
    assert (trial.ran, len(trial.model.seen)) == ([], 1)


async def test_nothing_runs_and_no_model_is_asked_while_a_call_waits() -> None:
    trial = Trial()
    await trial.start()

    assert (trial.ran, trial.results(), len(trial.model.seen)) == ([], [], 1)


async def test_a_call_that_is_not_guarded_runs_at_once_beside_one_that_waits() -> None:
    trial = Trial([call("call-1"), call("call-2", "ask_user", question="Which year?")])
    waiting = await trial.start()

    assert list(by_call(waiting)) == ["call-1"]
    assert trial.ran == [("ask_user", {"question": "Which year?"})]


async def test_a_call_without_an_id_is_brought_before_nobody() -> None:
    trial = Trial([call(None)])
    with pytest.raises(ValueError, match="has no ID"):
        await trial.start()

    assert trial.ran == []


async def test_batched_is_one_interrupt_for_all_calls_and_names_no_call_id() -> None:
    """Why we use per_call: here an answer finds its call by position alone."""
    (waiting,) = await Trial(TWO, mode="batched").start()

    assert set(waiting.value) == {"action_requests", "review_configs"}
    assert [set(each) for each in waiting.value["action_requests"]] == [{"name", "args", "description"}] * 2
    assert (
        waiting.value["review_configs"]
        == [{"action_name": "read", "allowed_decisions": ["approve", "edit", "reject", "respond"]}] * 2
    )
