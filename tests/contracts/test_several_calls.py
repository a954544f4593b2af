"""Several calls at once, and answers that come twice, late or to nobody.

`countersign/agents/asking.py` answers by the id of an interrupt, and only interrupts that are pending.
"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.contracts.scripted import Trial, by_call, call

APPROVE, REJECT = {"type": "approve"}, {"type": "reject"}
SALARY, BONUS = call("call-1", column="salary"), call("call-2", column="bonus")
READ_SALARY, READ_BONUS = ("read", {"column": "salary", "rows": 1}), ("read", {"column": "bonus", "rows": 1})


async def two_waiting() -> tuple[Trial, str, str]:
    trial = Trial([SALARY, BONUS])
    waiting = by_call(await trial.start())
    return trial, waiting["call-1"], waiting["call-2"]


def told(trial: Trial) -> dict[str, str]:
    return {message.tool_call_id: message.status for message in trial.results()}


async def test_answers_reach_their_calls_by_id_in_whatever_order_they_are_given() -> None:
    trial, salary, bonus = await two_waiting()
    assert await trial.answer({bonus: APPROVE, salary: REJECT}) == []

    assert trial.ran == [READ_BONUS]
    assert told(trial) == {"call-1": "error", "call-2": "success"}


async def test_results_stand_in_the_order_of_the_calls() -> None:
    trial, salary, bonus = await two_waiting()
    await trial.answer({bonus: APPROVE})
    await trial.answer({salary: APPROVE})

    assert [message.tool_call_id for message in trial.results()] == ["call-1", "call-2"]


async def test_one_answer_leaves_the_other_call_waiting_and_the_model_unasked() -> None:
    trial, salary, bonus = await two_waiting()
    (waiting,) = await trial.answer({salary: APPROVE})

    assert (waiting.id, waiting.value["tool_call_id"]) == (bonus, "call-2")
    assert (trial.ran, len(trial.model.seen)) == ([READ_SALARY], 1)


async def test_a_call_that_is_finished_keeps_its_result_while_its_sibling_waits() -> None:
    trial, salary, bonus = await two_waiting()
    await trial.answer({salary: APPROVE})
    await trial.answer({bonus: APPROVE})

    assert trial.ran == [READ_SALARY, READ_BONUS]
    assert told(trial) == {"call-1": "success", "call-2": "success"}


async def test_a_finished_unguarded_sibling_is_not_run_again_by_the_answer() -> None:
    trial = Trial([SALARY, call("call-2", "ask_user", question="Which year?")])
    (waiting,) = await trial.start()
    await trial.answer({waiting.id: APPROVE})

    assert [name for name, _ in trial.ran] == ["ask_user", "read"]


@pytest.mark.parametrize("second", [APPROVE, REJECT])
async def test_a_call_that_is_finished_is_not_answered_again(second: dict[str, str]) -> None:
    trial, salary, bonus = await two_waiting()
    await trial.answer({salary: APPROVE})
    (waiting,) = await trial.answer({salary: second})

    assert (waiting.id, trial.ran) == (bonus, [READ_SALARY])


async def test_an_answer_to_a_finished_call_beside_a_good_one_changes_nothing_of_it() -> None:
    trial, salary, bonus = await two_waiting()
    await trial.answer({salary: APPROVE})
    await trial.answer({salary: REJECT, bonus: APPROVE})

    assert told(trial) == {"call-1": "success", "call-2": "success"}


async def test_answering_again_what_is_all_finished_changes_nothing() -> None:
    trial, salary, bonus = await two_waiting()
    answers = {salary: APPROVE, bonus: APPROVE}
    await trial.answer(answers)
    before = (list(trial.ran), trial.results(), len(trial.model.seen))

    assert await trial.answer(answers) == []
    assert (trial.ran, trial.results(), len(trial.model.seen)) == before


async def test_going_on_with_what_is_all_finished_changes_nothing() -> None:
    trial, salary, bonus = await two_waiting()
    await trial.answer({salary: APPROVE, bonus: APPROVE})

    assert await trial._go(None) == []
    assert len(trial.model.seen) == 2


async def test_an_answer_to_nobody_is_passed_over_in_silence_and_a_good_one_beside_it_counts() -> None:
    """So nothing tells a stale answer from a good one here: our ledger refuses it whole (`problem_with_answers`)."""
    trial, salary, bonus = await two_waiting()
    waiting = await trial.answer({salary: APPROVE, "0123456789abcdef" * 2: APPROVE})

    assert [each.id for each in waiting] == [bonus]
    assert trial.ran == [READ_SALARY]


async def test_an_answer_to_nobody_alone_changes_nothing() -> None:
    trial, salary, bonus = await two_waiting()
    waiting = await trial.answer({"0123456789abcdef" * 2: APPROVE})

    assert ({each.id for each in waiting}, trial.ran) == ({salary, bonus}, [])


async def test_an_answer_by_call_id_instead_of_interrupt_id_is_refused_where_several_wait() -> None:
    trial, *_ = await two_waiting()
    with pytest.raises(RuntimeError, match="interrupt id"):
        await trial.answer({"call-1": APPROVE, "call-2": APPROVE})

    assert trial.ran == []


async def test_an_answer_with_nothing_in_it_changes_nothing() -> None:
    trial, salary, bonus = await two_waiting()
    waiting = await trial.answer({})

    assert ({each.id for each in waiting}, trial.ran) == ({salary, bonus}, [])


async def test_a_resume_with_none_is_an_error_and_runs_nothing() -> None:
    """Of whatever kind, a slip of the framework's own: our adapter goes on by None, never by such a command."""
    trial, *_ = await two_waiting()
    with pytest.raises(Exception, match="resume"):
        await trial.answer(None)

    assert (trial.ran, len(trial.waits_for())) == ([], 2)


async def test_an_answer_without_an_id_is_refused_where_several_wait() -> None:
    trial, *_ = await two_waiting()
    with pytest.raises(RuntimeError, match="interrupt id"):
        await trial.answer(APPROVE)

    assert trial.ran == []


async def test_an_answer_without_an_id_reaches_the_only_call_that_waits() -> None:
    """Which is by position: our adapter never does so."""
    trial = Trial()
    await trial.start()
    await trial.answer(APPROVE)

    assert trial.ran == [READ_SALARY]


async def test_another_worker_goes_on_from_the_stored_thread_without_asking_the_model_again() -> None:
    trial, salary, bonus = await two_waiting()
    trial.agent = trial.build()
    await trial.answer({salary: APPROVE, bonus: REJECT})

    assert (trial.ran, len(trial.model.seen)) == ([READ_SALARY], 2)


async def test_a_call_that_fails_does_not_undo_its_finished_sibling() -> None:
    trial = Trial([SALARY, call("call-2", "fail", column="bonus")], interrupt_on={"read": True, "fail": True})
    waiting = by_call(await trial.start())
    await trial.answer({waiting["call-1"]: APPROVE})
    with pytest.raises(OSError, match="disk"):
        await trial.answer({waiting["call-2"]: APPROVE})
    trial.broken = False
    await trial._go(None)

    assert [name for name, _ in trial.ran] == ["read", "fail", "fail"]
    assert told(trial) == {"call-1": "success", "call-2": "success"}


async def test_a_call_that_fails_does_not_hide_the_one_that_waits() -> None:
    """The error comes out and the pause stays: our tools return what went wrong instead, so that both are told."""
    trial = Trial([SALARY, call("call-2", "fail", column="bonus")])
    with pytest.raises(OSError, match="disk"):
        await trial.start()

    assert list(by_call(trial.waits_for())) == ["call-1"]


async def test_beside_an_answer_of_another_form_a_good_one_may_have_run_although_it_still_waits() -> None:
    """The framework says so itself; our adapter checks all answers before it hands any of them over."""
    trial, salary, bonus = await two_waiting()
    with pytest.raises(ValidationError):
        await trial.answer({salary: APPROVE, bonus: {"type": "accept"}})

    assert READ_BONUS not in trial.ran
    assert bonus in {each.id for each in trial.waits_for()}


@pytest.mark.parametrize("count", [1, 3])
async def test_batched_refuses_another_number_of_decisions(count: int) -> None:
    trial = Trial([SALARY, BONUS], mode="batched")
    await trial.start()
    with pytest.raises(ValueError, match=rf"Number of human decisions \({count}\) does not match .* \(2\)"):
        await trial.answer({"decisions": [APPROVE] * count})

    assert trial.ran == []


async def test_batched_pairs_by_position() -> None:
    trial = Trial([SALARY, BONUS], mode="batched")
    await trial.start()
    await trial.answer({"decisions": [REJECT, APPROVE]})

    assert trial.ran == [READ_BONUS]
    assert told(trial) == {"call-1": "error", "call-2": "success"}
