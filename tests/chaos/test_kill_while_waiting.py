"""Every worker killed while the agent waits for people: others go on with the answer, and nothing is asked twice."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import pytest

from countersign.domain.question import QuestionStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import Turn, running_model_server
from tests.support.processes import Processes
from tests.support.waiting import until_messages, until_state
from tests.workflow.acting import records
from tests.workflow.asking import answer, counted, newest, respond
from tests.workflow.scripted_model import QUERY, ScriptedModel, is_grading, model_environment

WORKER = [sys.executable, "worker.py", "--role", "agent"]
ASK = Turn(calls=(("ask_user", {"question": "Which period?"}), ("ask_user", {"question": "Which region?"})))


class AskingModel(ScriptedModel):
    """Asks two things at once, and queries and drafts when it has heard."""

    def _turn(self, request: dict[str, Any]) -> Turn:
        answered = sum(message["role"] == "assistant" for message in request["messages"])
        if is_grading(request) or answered > 1:
            return super()._turn(request)
        return (ASK, QUERY)[answered]


@pytest.mark.guarantee("G37")
async def test_paused_killed_and_resumed_elsewhere_no_model_call_is_made_again_and_nothing_asked_twice(
    sqlite_installation: Installation, processes: Processes
) -> None:
    installation = sqlite_installation
    with running_model_server(AskingModel()) as server:
        environment = installation.environment() | model_environment(server)
        first = processes.start(WORKER, env=environment)
        run = await installation.start("op-1", channel="internal")
        await until_state(run, State.WAITING_ANSWER)
        assert (server.calls, counted(installation)) == (1, {"draft": 1})
        first.kill()
        calls = newest(installation).question.calls
        given = [respond(call.id, f"Answer to {call.args['question']}") for call in reversed(calls)]
        await run.signal("noise")
        await run.signal("answer", answer(installation, "lea", *given))
        await run.signal("answer", answer(installation, "leo", *given))
        processes.start(WORKER, env=environment)
        async with installation.workers("gateway"):
            result = await run.result()
    assert result.state == State.SUCCEEDED
    status = await until_messages(run, 3)
    assert status.refused == 2
    assert len(records(installation, "question.asked")) == 1
    assert newest(installation).status == QuestionStatus.ANSWERED
    # One call before the pause, two after it, one for the grade: here, and at the model's side.
    assert Counter(map(is_grading, server.requests)) == {False: 3, True: 1}
    assert counted(installation) == {"draft": 3, "grade": 1}
    every = installation.ledger.model_calls.of_operation("acme", "op-1")
    assert {call.outcome for call in every} == {"answered"}
    heard = [message for message in server.requests[1]["messages"] if message["role"] == "tool"]
    asked = {call.id: call.args["question"] for call in calls}
    assert {message["tool_call_id"]: json.loads(message["content"]) for message in heard} == {
        call: f"Answer to {question}" for call, question in asked.items()
    }
