"""Answers to the agent as a person gives them at the command line: options, a file, or call by call at the terminal.

Apart from the command, which shows, signs and sends them: every answer names its call by the model's own id, never by
its place, and nothing is guessed for a call that was left out.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from pydantic import ValidationError

from countersign.cli.deciding.arguments import MAX_BYTES, from_editor, json_object
from countersign.cli.deciding.command_message import Order
from countersign.cli.errors import Unreadable
from countersign.cli.rendering import complain, say, visible_line
from countersign.cli.session import Session
from countersign.cli.situation import RunNow, case_of_drafts
from countersign.cli.standing import no_question
from countersign.domain.canonical import canonical_bytes
from countersign.domain.errors import Conflict, InputRefused
from countersign.domain.question import (
    Answer,
    AnswerKind,
    Answers,
    Asked,
    PendingCall,
    Question,
    QuestionStatus,
    problem_with_answers,
)
from countersign.domain.strict_json import check_text, parse
from countersign.domain.values import first_problem

EditProblem = Callable[[str, Mapping[str, Any]], str]
"""What is wrong with a tool's arguments as a person changed them, in a sentence; empty if nothing."""
_BULK: Mapping[str, AnswerKind] = {"approve": "approve", "reject": "reject"}


class Given(NamedTuple):
    """The options by which calls are answered, as they stand on the command line."""

    approve: Sequence[str] = ()
    edit: Sequence[str] = ()
    """`CALL=FILE`, FILE `-` for standard input."""
    reject: Sequence[str] = ()
    """`CALL` or `CALL=REASON`."""
    respond: Sequence[str] = ()
    """`CALL=TEXT`, or `TEXT` where only one call waits."""
    every: str = ""
    """`approve` or `reject`: the one decision for all calls."""
    file: Path | None = None
    """A document of answers, whole."""

    @property
    def ways(self) -> int:
        """How many of the three ways to answer are used: call by call, one decision for all, a file."""
        return sum([bool([*self.approve, *self.edit, *self.reject, *self.respond]), bool(self.every), bool(self.file)])


def answers_of(question: Question, given: Given) -> tuple[Answer, ...]:
    """The answers that the options stand for, not compared yet with what waits.

    Raises:
        Unreadable: an option of the wrong form, or more than one way to answer.
        InputRefused: an option that names no call that waits; a file or a text that cannot be read.
    """
    if given.ways > 1:
        raise Unreadable("answer call by call, or all by --all, or by --file; not by more than one of them")
    if given.every:
        return _for_all(question, given.every)
    return _from_file(given.file) if given.file is not None else tuple(_each(question, given))


def checked(question: Question, answers: Sequence[Answer], edit_problem: EditProblem) -> tuple[Answer, ...]:
    """The same answers, where each call has exactly one that it allows; InputRefused for all of them together."""
    tools = {call.id: call.tool for call in question.calls}
    problems = (
        f"--edit {one.call[:60]!r}: {found}"
        for one in answers
        if one.args is not None and (found := edit_problem(tools[one.call], one.args))
    )
    problem = problem_with_answers(question, answers) or next(problems, "")
    if problem:
        raise InputRefused(f"{problem}; nothing was sent; waiting: {_waiting(question)}")
    return tuple(answers)


def asked_at_terminal(question: Question, edit_problem: EditProblem) -> tuple[Answer, ...]:
    """The answers of whoever sits at the terminal, call by call, which was shown the question whole before.

    What is refused of one call is asked again, so that no other answer is lost. InputRefused where nobody is there.
    """
    try:
        return tuple(_asked(question, call, edit_problem) for call in question.calls)
    except typer.Abort:
        raise InputRefused(
            "not every call was answered, nothing was sent; where nobody can be asked give --approve, --edit, --reject,"
            " --respond, --all or --file"
        ) from None


def waiting_question(run: RunNow) -> Asked:
    """What the agent waits for; Conflict where it waits for nothing."""
    asked = run.asked
    if asked is None or asked.status != QuestionStatus.PENDING:
        raise Conflict(f"operation {run.operation.operation}: {no_question(run)}; nothing waits for an answer")
    return asked


def edit_problem_of(session: Session, run: RunNow) -> EditProblem:
    """What the run's case has to say of arguments that a person changed."""
    case = case_of_drafts(session, run)

    def problem(tool: str, args: Mapping[str, Any]) -> str:
        return case.edit_problem(run.operation, tool, args)

    return problem


def with_content(session: Session, run: RunNow, order: Order, answers: tuple[Answer, ...]) -> Order:
    """The order that names these answers, which are put into the ledger."""
    document = canonical_bytes(Answers(answers=answers).model_dump(mode="json"))
    return order._replace(content=session.ledger.documents.put(run.operation.tenant, document))


def _for_all(question: Question, every: str) -> tuple[Answer, ...]:
    if every not in _BULK:
        raise Unreadable(f"--all: {every[:20]!r} is not one of {', '.join(_BULK)}; the others are for one call each")
    kind = _BULK[every]
    unfit = [call for call in question.calls if kind not in call.decisions]
    if unfit:
        named = "; ".join(f"{call.id[:60]!r} ({call.tool}) takes only {', '.join(call.decisions)}" for call in unfit)
        ways = " ".join(_way(call, kind) for call in question.calls)
        raise InputRefused(f"--all {every}: {named}; nothing was sent; answer call by call, such as: {ways}")
    return tuple(Answer(call=call.id, decision=kind) for call in question.calls)


def _way(call: PendingCall, kind: AnswerKind) -> str:
    """How one call is answered as wanted where it can be, else in the first way that it takes."""
    taken = kind if kind in call.decisions else call.decisions[0]
    said = {"respond": f"{call.id}=TEXT", "edit": f"{call.id}=FILE"}.get(taken, call.id)
    return f"--{taken} {shlex.quote(said)}"


def _from_file(file: Path) -> tuple[Answer, ...]:
    data = file.read_bytes()
    parse(data, where=str(file), max_bytes=MAX_BYTES)
    try:
        return Answers.model_validate_json(data).answers
    except ValidationError as error:
        raise InputRefused(f"{file}: {first_problem(error)}; write {{'answers': [...]}}, one for each call") from None


def _each(question: Question, given: Given) -> Iterator[Answer]:
    for text in given.approve:
        yield Answer(call=_named(question, text, "--approve")[0], decision="approve")
    for text in given.edit:
        call, file = _named(question, text, "--edit")
        if file is None:
            raise Unreadable(f"--edit: {text[:60]!r} names no file; write CALL=FILE, or CALL=- for standard input")
        yield Answer(call=call, decision="edit", args=_arguments(file))
    for text in given.reject:
        call, reason = _named(question, text, "--reject")
        yield _told(call, "reject", reason or "", "--reject")
    for text in given.respond:
        call, words = _responded(question, text)
        yield _told(call, "respond", words, "--respond")


def _named(question: Question, text: str, option: str) -> tuple[str, str | None]:
    """The call that waits, and what follows behind `=`; ids are compared whole, since one may hold a `=` itself."""
    waiting = sorted((call.id for call in question.calls), key=len, reverse=True)
    for call in waiting:
        if text == call:
            return call, None
        if option != "--approve" and text.startswith(f"{call}="):
            return call, text[len(call) + 1 :]
    raise InputRefused(
        f"{option}: {text[:60]!r} names no call that waits; nothing was sent; waiting: {_waiting(question)}"
    )


def _responded(question: Question, text: str) -> tuple[str, str]:
    named = any(text.startswith(f"{call.id}=") for call in question.calls)
    if len(question.calls) == 1 and not named:
        return question.calls[0].id, text
    call, words = _named(question, text, "--respond")
    return call, words or ""


def _told(call: str, decision: AnswerKind, message: str, option: str) -> Answer:
    check_text(message, option)
    try:
        return Answer(call=call, decision=decision, message=message)
    except ValidationError as error:
        raise InputRefused(f"{option}: {first_problem(error)}") from None


def _arguments(file: str) -> dict[str, Any]:
    if file == "-":
        return json_object(sys.stdin.read().encode("utf-8", "surrogatepass"), "--edit: standard input")
    return json_object(Path(file).read_bytes(), file)


def _waiting(question: Question) -> str:
    return "; ".join(f"{call.id} ({call.tool}: {', '.join(call.decisions)})" for call in question.calls)


def _asked(question: Question, call: PendingCall, edit_problem: EditProblem) -> Answer:
    say(f"\n{visible_line(call.id)}: {call.tool}")
    alone = question.model_copy(update={"calls": (call,)})
    while True:
        try:
            answer = _answered(call, edit_problem)
            problem = problem_with_answers(alone, (answer,))
            if not problem:
                return answer
        except InputRefused as refused:
            problem = refused.message
        complain(f"{problem}; this call is asked again")


def _answered(call: PendingCall, edit_problem: EditProblem) -> Answer:
    decision = "respond" if call.only_asks else _decision(call)
    if decision == "respond":
        return _told(call.id, "respond", typer.prompt("your answer to the agent"), "your answer")
    if decision == "reject":
        reason = typer.prompt("why, for the agent (empty: only that it was refused)", default="", show_default=False)
        return _told(call.id, "reject", reason, "your reason")
    return _edited(call, edit_problem) if decision == "edit" else Answer(call=call.id, decision="approve")


def _decision(call: PendingCall) -> AnswerKind:
    """One of those that the call allows, by its name or the beginning of it; asked again until it is one."""
    while True:
        typed = typer.prompt(", ".join(call.decisions)).strip().lower()
        meant = [kind for kind in call.decisions if kind.startswith(typed)]
        if len(meant) == 1:
            return meant[0]
        complain(f"{typed[:20]!r} is not one of {', '.join(call.decisions)}")


def _edited(call: PendingCall, edit_problem: EditProblem) -> Answer:
    with from_editor(call.args, "arguments", "--edit CALL=FILE") as args:
        problem = edit_problem(call.tool, args)
        if problem:
            raise InputRefused(f"call {call.id[:60]!r}: {problem}")
    return Answer(call=call.id, decision="edit", args=args)
