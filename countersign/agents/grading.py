"""The one file that knows deepagents' RubricMiddleware, a beta whose behaviour changes between releases.

It stands apart so that an upgrade is met here and in this file's contract tests only. The middleware's hook is called
directly: no drafting model is involved, and one grading is one model call. What the middleware would do by itself is
held down: its second call is refused, and a text that it would cut (4,000 characters a message, the last 30 messages)
is handed over in parts below that, or not at all. The gate that judges the answer is ours (countersign.domain.rubric).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from deepagents.middleware.rubric import GRADER_SYSTEM_PROMPT, RubricEvaluation, RubricMiddleware, RubricState
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.runtime import Runtime
from langsmith import tracing_context
from pydantic import JsonValue, SkipValidation

from countersign.agents.calling import watched_call
from countersign.agents.failures import ModelUnavailable, model_failure
from countersign.agents.models import ChatModel
from countersign.domain.errors import CountersignError, InputRefused
from countersign.domain.model_call import CallEnd
from countersign.domain.progress import ProgressKind
from countersign.domain.rubric import CriterionResult, GraderAnswer, Rubric, Verdict
from countersign.domain.strict_json import check_text
from countersign.ports import Watching

PART_CHARACTERS = 3_500
MAX_PARTS = 25
"""With the request's message before them, below the middleware's 30."""
INSTRUCTION = """

Every criterion of the rubric starts with its id. Return exactly one entry per criterion, and set `name` to that id,
verbatim and nothing else, whatever else the description of `name` suggests."""


class _Kept:
    """Whoever watches, and what they raised: the middleware would take it for a failure of the grader."""

    def __init__(self, watching: Watching) -> None:
        self._watching = watching
        self.raised: Exception | None = None

    async def calling(self, model: str) -> int:
        """See `ports.Watching`."""
        with self._keeping():
            return await self._watching.calling(model)

    async def called(self, number: int, end: CallEnd) -> None:
        """See `ports.Watching`."""
        with self._keeping():
            await self._watching.called(number, end)

    async def happened(self, kind: ProgressKind, name: str = "", detail: str = "") -> None:
        """See `ports.Watching`."""
        with self._keeping():
            await self._watching.happened(kind, name, detail)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.raised = error
            raise


@dataclass
class _GradingCall:
    """One grading: what the grader must be shown, and what came back."""

    parts: Sequence[str]
    watching: Annotated[_Kept, SkipValidation]
    asked: bool = False
    answer: str = ""
    failure: CountersignError | None = None


class RubricGrader:
    """Grades with the middleware; safe to share between concurrent gradings of one process."""

    def __init__(self, model: ChatModel) -> None:
        self._name = model.name
        self._middleware: RubricMiddleware[Any, Any] = RubricMiddleware(
            model=model.model,
            system_prompt=GRADER_SYSTEM_PROMPT + INSTRUCTION,
            grader_middleware=[_OneWholeCall(model.name)],
            grader_context_schema=_GradingCall,
            max_iterations=1,
        )

    async def grade(
        self, document: str, rubric: Rubric, task: Mapping[str, JsonValue], watching: Watching
    ) -> GraderAnswer:
        """Grade a whole document with one model call; the answer is not judged here.

        `task` reaches the grader as JSON, so that the texts of people and data in it stay data.

        An answer that cannot be used (cut, refused, contradicting itself) and a document that cannot be shown whole
        have the verdict `grader_error`.

        Raises:
            Unavailable: no answer came, and another attempt may bring one.
            BudgetExceeded, ControlChanged, and others: as `watching` says.
        """
        parts = split(document)
        if len(parts) > MAX_PARTS:
            limit = PART_CHARACTERS * MAX_PARTS
            return self._error(f"draft too long to be graded whole: {len(document)} characters, about {limit} fit", "")
        call = _GradingCall(parts, _Kept(watching))
        evaluation = await self._evaluate(call, rubric, task)
        if call.watching.raised:
            raise call.watching.raised
        if isinstance(call.failure, ModelUnavailable):
            raise call.failure
        if call.failure or evaluation["result"] == "grader_error":
            return self._error(call.failure.message if call.failure else evaluation["explanation"], call.answer)
        try:
            # Structured output is read from a text that can spell out what no text may hold.
            check_text([evaluation["explanation"], evaluation["criteria"]], "the grader's answer")
        except InputRefused as refused:
            return self._error(refused.message, call.answer)
        return GraderAnswer(
            verdict=_verdict(evaluation["result"]),
            criteria=tuple(
                CriterionResult(id=each["name"], passed=each["passed"], gap=str(each.get("gap", "")))
                for each in evaluation["criteria"]
            ),
            explanation=evaluation["explanation"],
            raw=call.answer,
            model=self._name,
        )

    async def _evaluate(self, call: _GradingCall, rubric: Rubric, task: Mapping[str, JsonValue]) -> RubricEvaluation:
        state: RubricState = {
            "messages": [HumanMessage(json.dumps(task, ensure_ascii=False)), *(AIMessage(part) for part in call.parts)],
            "rubric": _rubric_text(rubric),
        }
        # Whatever the environment says of LangSmith: a draft goes to its grader and to nobody else.
        with tracing_context(enabled=False):
            update = await self._middleware.aafter_agent(state, Runtime(context=call))
        evaluation: RubricEvaluation = (update or {})["_rubric_evaluations"][-1]
        return evaluation

    def _error(self, explanation: str, raw: str) -> GraderAnswer:
        return GraderAnswer(
            verdict=Verdict.GRADER_ERROR, criteria=(), explanation=explanation, raw=raw, model=self._name
        )


class _OneWholeCall(AgentMiddleware[Any, _GradingCall, Any]):
    """Around the grader's model: one call, with every part of the document in it, and the raw answer kept."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model

    async def awrap_model_call(
        self,
        request: ModelRequest[_GradingCall],
        handler: Callable[[ModelRequest[_GradingCall]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Refuse a second call and a cut document by raising, which the middleware turns into `grader_error`."""
        call = request.runtime.context
        if call.asked:
            raise _Unusable(f"the answer of grader {self._model} cannot be used; it is kept with the grade")
        seen = "\n".join(str(message.content) for message in request.messages).replace("<\\/", "</")
        if not all(part in seen for part in call.parts):
            raise _Unusable("the grading middleware would show the grader a cut draft; nothing was graded")
        call.asked = True
        try:
            response = await watched_call(call.watching, self._model, lambda: handler(request))
        except Exception as error:
            call.answer = _answer_in(error)
            call.failure = None if call.answer else model_failure(self._model, error)
            raise
        call.answer = _raw(response.result)
        return response


class _Unusable(Exception):
    """Ends a grading inside the middleware."""


def split(document: str) -> list[str]:
    """The document in parts that the middleware shows whole, cut between lines where that is possible."""
    parts = [""]
    for line in document.splitlines(keepends=True):
        for start in range(0, len(line), PART_CHARACTERS):
            piece = line[start : start + PART_CHARACTERS]
            if len(parts[-1]) + len(piece) > PART_CHARACTERS:
                parts.append("")
            parts[-1] += piece
    return parts


def _rubric_text(rubric: Rubric) -> str:
    return "\n".join(f"- {criterion.id}: {criterion.text}" for criterion in rubric.criteria)


def _verdict(result: str) -> str:
    # With one iteration the middleware calls every needs_revision so; rounds are counted by the run, not here.
    return Verdict.NEEDS_REVISION if result == Verdict.MAX_ITERATIONS_REACHED else result


def _answer_in(error: Exception) -> str:
    """What the model did answer, where LangChain's error says that it cannot be used; empty where nothing came."""
    message = getattr(error, "ai_message", None)
    return _raw([message]) if isinstance(message, AIMessage) else ""


def _raw(messages: Sequence[BaseMessage]) -> str:
    answers = [
        {
            "content": message.content,
            "tool_calls": message.tool_calls,
            "invalid_tool_calls": message.invalid_tool_calls,
            "refusal": message.additional_kwargs.get("refusal"),
        }
        for message in messages
        if isinstance(message, AIMessage)
    ]
    return json.dumps(answers[0] if answers else None, ensure_ascii=False)
