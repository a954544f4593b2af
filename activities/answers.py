"""What people answered the agent, believed from what they signed and not from what the ledger tells.

Apart from the steps of agent and checks, because this is where such statements are believed: with a forged answer
neither goes on, and it raises the alarm; one whose signer may no longer say so is refused, or allows nothing, without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from pydantic import JsonValue, ValidationError

from countersign.domain.canonical import digest
from countersign.domain.command import Command
from countersign.domain.directory import Person
from countersign.domain.errors import CountersignError, InputRefused, NotAuthorised, Unavailable
from countersign.domain.operation import Operation
from countersign.domain.question import (
    Answer,
    Answered,
    Answers,
    Asked,
    Question,
    beyond,
    may_answer,
    problem_with_answers,
)
from countersign.domain.strict_json import parse
from countersign.domain.values import first_problem
from countersign.ports import Ledger
from countersign.signing.statements import LEEWAY, verify_command

FORGED, LAPSED = "answer_forged", "answer_lapsed"
_COUNTS_FOR_NOTHING = "it counts for nothing, and the agent was told nothing of it"


class SignedAnswers:
    """Looks at answers before a step goes on with them."""

    def __init__(self, ledger: Ledger, installation: str, step: str) -> None:
        """
        Args:
            ledger: where signed commands, what they name, and persons are read.
            installation: the audience that the commands must name.
            step: whose step the alarm comes from.
        """
        self._ledger = ledger
        self._installation = installation
        self._step = step

    def believed(self, operation: Operation, now: datetime) -> tuple[Asked, ...]:
        """What people have answered in any version and run of an operation, by what they signed.

        One whose signer may no longer say so is left out, so that it allows nothing: the agent can ask anew.

        Raises:
            NotAuthorised: `answer_forged`, with the alarm raised, be it in one of them.
        """
        asked = self._ledger.questions.of_operation(operation.tenant, operation.operation)
        return tuple(one for one in asked if one.answered is not None and self._is_believed(operation, one, now))

    def _is_believed(self, operation: Operation, asked: Asked, now: datetime) -> bool:
        try:
            self.check(operation, asked, now)
        except NotAuthorised as refused:
            if refused.reason != LAPSED:
                raise
            return False
        return True

    def check(self, operation: Operation, asked: Asked, now: datetime) -> None:
        """Refuse answers that nobody signed for exactly this question of the operation; one without an answer has none.

        Raises:
            NotAuthorised: `answer_forged`, with the alarm raised; `answer_lapsed`, where its signer is no longer
                somebody who may answer so.
        """
        if asked.answered is None:
            return
        question, answered = asked.question, asked.answered
        try:
            command, signer = self._read(question, answered)
            _check_said(operation, question, answered, command, now)
            self._check_content(question, answered, command)
        except NotAuthorised as forged:
            reason = f"{forged.reason}: {forged.message}"
            detail: dict[str, JsonValue] = {"number": question.number, "reason": reason}
            self._ledger.audit.append(operation.tenant, "alarm.raised", operation.operation, self._step, detail, now)
            raise
        self._check_signer(operation, question, answered, signer)

    def _read(self, question: Question, answered: Answered) -> tuple[Command, Person]:
        """The command as it was good when it was taken in."""
        persons = self._ledger.directory.persons(question.tenant)
        with _forged(answered):
            token = self._ledger.questions.signed(question.tenant, answered.statement_id)
            return verify_command(token, persons, installation=self._installation, now=answered.at)

    def _check_content(self, question: Question, answered: Answered, command: Command) -> None:
        with _forged(answered):
            document = parse(self._ledger.documents.get(question.tenant, command.content), where="answers")
            try:
                signed = Answers.model_validate(document)
            except ValidationError as error:
                raise InputRefused(first_problem(error)) from None
            # By what they come to as JSON: to Python 1 is the same as true.
            if _digest(signed.answers) != _digest(answered.answers):
                raise InputRefused("the ledger tells it differently from what was signed")
            if problem := problem_with_answers(question, signed.answers):
                raise InputRefused(problem)

    def _check_signer(self, operation: Operation, question: Question, answered: Answered, signer: Person) -> None:
        """With the roles of now; which ones they had then is not known."""
        may = may_answer(question, signer, operation.requester, answered.at)
        if not may or not signer.active or beyond(question, signer, answered.answers, answered.at):
            raise NotAuthorised(
                LAPSED,
                f"{signer.id} answered question {question.number} and may not, with the roles of now; "
                f"{_COUNTS_FOR_NOTHING}",
            )


def _check_said(operation: Operation, question: Question, answered: Answered, command: Command, now: datetime) -> None:
    """Compare what the ledger tells with what was signed, and both with what it must be about."""
    with _forged(answered):
        # Of the operation that the row lies under, not of the question in it: that one may be another's.
        about = ("answer", operation.tenant, operation.operation, question.control_version, question.hash())
        if about != (command.command, command.tenant, command.operation, command.control_version, command.question):
            raise InputRefused("it is for another question")
        if (answered.person, answered.statement_id) != (command.person, command.id):
            raise InputRefused("the ledger tells it differently from what was signed")
        if not question.asked_at - LEEWAY <= answered.at < min(question.deadline, now + LEEWAY):
            raise InputRefused("it was not given after the question and before its deadline")


def _digest(answers: Sequence[Answer]) -> str:
    return digest([answer.model_dump(mode="json") for answer in answers])


@contextmanager
def _forged(answered: Answered) -> Iterator[None]:
    """Turn what is wrong with an answer into its refusal; that a part of our own does not answer is no such thing."""
    try:
        yield
    except Unavailable:
        raise
    except CountersignError as wrong:
        said = f"what {answered.person} is said to have answered was never good: {wrong.message}"
        raise NotAuthorised(FORGED, f"{said}; {_COUNTS_FOR_NOTHING}") from None
