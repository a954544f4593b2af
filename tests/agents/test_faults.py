"""What becomes of each fault of a provider in the real agent and the real grader, and what is written down of the call.

Over real HTTP, whole and streamed. Trying again is Temporal's: nothing here does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from countersign.agents.failures import ModelRefused, ModelUnavailable
from countersign.agents.grading import RubricGrader
from countersign.agents.models import ModelSettings, grade_model
from countersign.domain.errors import CountersignError, Unavailable
from countersign.domain.model_call import CallEnd
from countersign.domain.progress import ProgressKind
from countersign.domain.rubric import Criterion, Rubric, Verdict, gate
from tests.agents.tables import DELIVER, good_draft, reporter, sales_material
from tests.support.model_server import ModelServer, Turn, running_model_server

ASKED = "test-model"
STRUCTURED = "gpt-5.5"
"""A model that langchain knows for structured output: a grade is asked of it as a form and not as a tool."""
SHORT, LONG = 0.2, 30.0
"""Seconds; short where the answer is held anyway."""
RUBRIC = Rubric(rubric="report-rubric", version=1, criteria=(Criterion(id="clear", text="It is clear."),))
GRADE = {"result": "satisfied", "explanation": "It is.", "criteria": [{"name": "clear", "passed": True}]}
OFFLINE: dict[str, Any] = {}


class Recorder:
    """Allows every call, and keeps how each ended."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ends: list[CallEnd] = []

    async def calling(self, model: str) -> int:
        """Its number."""
        self.asked.append(model)
        return len(self.asked)

    async def called(self, number: int, end: CallEnd) -> None:
        """Kept."""
        assert number == len(self.ends) + 1
        self.ends.append(end)

    async def happened(self, kind: ProgressKind, name: str = "", detail: str = "") -> None:
        """Nobody looks."""

    @property
    def end(self) -> CallEnd:
        """Of the one call that there was, without its time and its cause."""
        (end,) = self.ends
        assert end.milliseconds >= 0
        return end.model_copy(update={"milliseconds": 0, "cause": ""})

    @property
    def cause(self) -> str:
        """What was met in that call."""
        return self.ends[0].cause


class Fault(NamedTuple):
    """A way of not answering."""

    turn: Turn
    failure: type[CountersignError]
    end: CallEnd


def ended(error: str = "", tokens: bool = True, answered: str = ASKED) -> CallEnd:
    """How a call ended."""
    counted = (10, 5) if tokens else (None, None)
    return CallEnd(answered=answered, error=error, input_tokens=counted[0], output_tokens=counted[1], milliseconds=0)


NOTHING_CAME = ended(Unavailable.code, tokens=False, answered="")
FAULTS = {
    "429": Fault(Turn(status=429, headers=(("Retry-After", "7"),)), ModelUnavailable, NOTHING_CAME),
    "500": Fault(Turn(status=500), ModelUnavailable, NOTHING_CAME),
    "slow": Fault(Turn(held=True), ModelUnavailable, NOTHING_CAME),
    "cut off": Fault(Turn(calls=DELIVER.calls, cut=True), ModelUnavailable, NOTHING_CAME),
    "malformed": Fault(Turn(raw="<html>busy</html>"), ModelUnavailable, NOTHING_CAME),
    "refusal": Fault(Turn(refusal="I will not."), ModelRefused, ended(ModelRefused.code)),
    "held back": Fault(Turn(text="It", finish="content_filter"), ModelRefused, ended(ModelRefused.code)),
    "key": Fault(Turn(status=401), ModelRefused, ended(ModelRefused.code, tokens=False, answered="")),
}


def settings(server: ModelServer, streaming: bool, name: str = ASKED) -> ModelSettings:
    """A provider, with a time limit that runs out soon only where the next answer is held."""
    limit = SHORT if server.script(server.calls + 1, {}).held else LONG
    return ModelSettings("k", server.url, name, name, streaming=streaming, timeout_seconds=limit)


async def drafted(server: ModelServer, streaming: bool, folder: Path, recorder: Recorder, attempt: int = 1) -> Any:
    """What the agent brings back."""
    agent = reporter(settings(server, streaming), f"sqlite:///{folder / 'threads.sqlite'}")
    return await agent.draft("acme:op-1:run:v1", attempt, sales_material(), None, (), OFFLINE, True, recorder)


async def graded(server: ModelServer, streaming: bool, recorder: Recorder, name: str = ASKED) -> Any:
    """What the grader brings back."""
    grader = RubricGrader(grade_model(settings(server, streaming, name), OFFLINE))
    return await grader.grade("# Sales\n\nThey grew.", RUBRIC, {}, recorder)


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FAULTS)
async def test_a_draft_that_fails_says_whether_to_try_again_and_leaves_a_record(
    tmp_path: Path, name: str, streaming: bool
) -> None:
    fault, recorder = FAULTS[name], Recorder()
    with running_model_server([fault.turn, DELIVER]) as server:
        with pytest.raises(CountersignError) as failure:
            await drafted(server, streaming, tmp_path, recorder)
        server.release()
        assert server.calls == 1, "the client tried again by itself"

        assert type(failure.value) is fault.failure
        assert getattr(failure.value, "retry_after", None) == (7.0 if fault.turn.headers else None)
        assert recorder.end == fault.end
        if fault.turn.status != 200:
            assert recorder.cause == f"HTTP {fault.turn.status} (scripted)"
        else:
            assert bool(recorder.cause) == (fault.end is NOTHING_CAME)
        if fault.failure is ModelUnavailable:
            written = await drafted(server, streaming, tmp_path, Recorder(), attempt=2)
            assert written.draft == good_draft()


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FAULTS)
async def test_a_grade_that_fails_is_tried_again_or_is_no_pass_and_leaves_a_record(name: str, streaming: bool) -> None:
    fault, recorder = FAULTS[name], Recorder()
    with running_model_server([fault.turn]) as server:
        if fault.failure is ModelUnavailable:
            with pytest.raises(ModelUnavailable) as failure:
                await graded(server, streaming, recorder)
            assert failure.value.retry_after == (7.0 if fault.turn.headers else None)
        else:
            assert (await graded(server, streaming, recorder)).verdict == Verdict.GRADER_ERROR
        server.release()

    assert server.calls == 1
    assert recorder.end == fault.end


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("name", "good"),
    [(ASKED, Turn(calls=(("GraderResponse", GRADE),))), (STRUCTURED, Turn(text=json.dumps(GRADE)))],
    ids=["tool call", "structured output"],
)
async def test_a_grade_comes_as_a_tool_call_or_as_structured_output(name: str, good: Turn, streaming: bool) -> None:
    recorder = Recorder()
    with running_model_server([good]) as server:
        answer = await graded(server, streaming, recorder, name)

    asked_for = server.requests[0].get("response_format", {}).get("type")
    assert asked_for == ("json_schema" if name == STRUCTURED else None)
    assert gate(RUBRIC, answer).verdict == Verdict.SATISFIED
    assert "It is." in answer.raw, "what came is kept"
    assert recorder.end == ended(answered=name)


@pytest.mark.parametrize("name", [ASKED, STRUCTURED])
async def test_half_a_grade_that_was_streamed_is_no_grade(name: str) -> None:
    half = json.dumps(GRADE)[:-3]
    turn = Turn(text=half, finish="length") if name == STRUCTURED else Turn(calls=(("GraderResponse", half),))
    with running_model_server([turn]) as server:
        answer = await graded(server, True, Recorder(), name)

    assert answer.verdict == Verdict.GRADER_ERROR
    assert "clear" in answer.raw, "what came is kept"


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("turn", "end"),
    [
        (Turn(calls=DELIVER.calls, model="cheaper-model"), ended(answered="cheaper-model")),
        (Turn(calls=DELIVER.calls, model=""), ended(answered="")),
        (Turn(calls=DELIVER.calls, usage=False), ended(tokens=False)),
    ],
    ids=["another model", "no model named", "no usage"],
)
async def test_an_answer_is_recorded_as_it_came_and_never_completed(
    tmp_path: Path, turn: Turn, end: CallEnd, streaming: bool
) -> None:
    recorder = Recorder()
    with running_model_server([turn]) as server:
        written = await drafted(server, streaming, tmp_path, recorder)

    assert written.draft == good_draft()
    assert (recorder.asked, recorder.end) == ([ASKED], end)
