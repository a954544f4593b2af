"""Commands to a run: verified, what they bring with them worked out, and handed to the ledger, which rules on them.

Apart from decisions, which are about one proposal: a command is about the run, and always signed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from activities.interfaces import Message, MessageBatch, Told
from activities.messages import MAX_STATEMENT, Unreadable, check_key_now, read
from activities.runs import Runs
from countersign.cases.assessing import policy_in_force
from countersign.cases.case import Case, drafted_case, read_draft
from countersign.domain.canonical import canonical_bytes
from countersign.domain.command import Command
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.directory import Person
from countersign.domain.draft import DraftObject
from countersign.domain.errors import Conflict, CountersignError, InputRefused, NotFound, Unavailable
from countersign.domain.model_call import Budget, problem_with_raise, raised
from countersign.domain.question import Answer, Answers, QuestionStatus
from countersign.domain.strict_json import parse
from countersign.domain.values import Value, first_problem
from countersign.ports import Amendment, Ledger, ReceivedCommand
from countersign.signing.statements import verify_command

Form = TypeVar("Form", bound=Value)

MAX_CONTENT = 1024 * 1024
"""Bytes of a new draft, or of an action's arguments; more than the longest draft with all its claims has."""


class CommandMessage(Value):
    """The one JSON object of a command's message."""

    statement: Annotated[str, Field(min_length=1, max_length=MAX_STATEMENT)]
    """The signed command, a compact JWS; there is no unsigned form."""


class Commanding:
    """Rules on one command at a time."""

    def __init__(self, ledger: Ledger, runs: Runs, installation: str, cases: Mapping[str, Case]) -> None:
        self._ledger = ledger
        self._runs = runs
        self._installation = installation
        self._cases = cases

    def ruled(
        self, batch: MessageBatch, message: Message, persons: Mapping[str, Person]
    ) -> tuple[Outcome, Told | None]:
        """What became of a command, and what the run has to act upon if it was accepted.

        Raises:
            Unreadable, StatementRefused: it is no verified command to this run.
        """
        token = read(message, CommandMessage).statement
        command, signer = verify_command(token, persons, installation=self._installation, now=message.received_at)
        check_key_now(signer, command.key_id, self._runs.now())
        if command.command != message.name:
            signed = f"{message.name}: the statement in it is signed as {command.command}"
            raise Unreadable(Ruling.MALFORMED, signed)
        if (command.tenant, command.operation) != (batch.tenant, batch.operation):
            # Sent to many runs at once, or to the wrong one: good at most where it belongs (G20).
            raise Unreadable(Ruling.NOT_THIS_APPROVAL, "the command is for another operation; nothing was changed")
        if command.command == "answer" and not self._asks(batch):
            raise Unreadable(Ruling.NOTHING_ASKED, "another run asks this; start the operation again")
        received = ReceivedCommand(
            message_id=message.id, transport=message.transport, command=command, token=token, at=message.received_at
        )
        outcome = self._ledger.controls.command(received, signer, self._amendment(received, signer))
        return outcome, _told(command) if outcome.ruling == Ruling.ACCEPTED else None

    def _asks(self, batch: MessageBatch) -> bool:
        """Whether what the agent waits for, if anything, is the asking run's own: no other one takes it over (G23)."""
        asked = self._ledger.questions.current(batch.tenant, batch.operation)
        if asked is None or asked.status != QuestionStatus.PENDING:
            return True
        return self._runs.carries_line(batch.tenant, batch.operation, asked.question.line)

    def _amendment(self, received: ReceivedCommand, signer: Person) -> Amendment:
        """What the content comes to; whatever is wrong with it is told to the signer, and fails nothing."""
        command = received.command
        try:
            if command.command == "amend":
                return Amendment(draft=self._draft(command))
            if command.command == "answer":
                return Amendment(answers=self._answers(received, signer))
            if command.command == "raise_budget":
                return Amendment(budget=self._budget(command))
            if command.command == "propose" and not command.draft_version and self._case(command).drafted:
                raise InputRefused("nothing is drafted yet, so there is nothing to propose; amend first")
            if command.content:
                self._check_arguments(command)
            if command.command == "settle":
                self._check_evidence(command)
        except Unavailable:
            raise
        except CountersignError as refused:
            return Amendment(problem=refused.message)
        return Amendment()

    def _draft(self, command: Command) -> DraftObject:
        """What was signed, in the order of its form's fields, which is the order that the ledger's hash knows."""
        case = drafted_case(self._cases, self._ledger.operations.get(command.tenant, command.operation))
        draft: DraftObject = read_draft(case.form, self._content(command)).model_dump(mode="json")
        return draft

    def _answers(self, received: ReceivedCommand, signer: Person) -> tuple[Answer, ...]:
        """What is said of each call; an edit with arguments that the case lets its tool have.

        Looking at an edit opens the evidence: that is done only for whoever may answer this very question now.
        """
        command = received.command
        answers = _read(Answers, self._content(command)).answers
        if all(answer.args is None for answer in answers):
            return answers
        ruled = self._ledger.controls.would(command, signer, received.at)
        if ruled.ruling != Ruling.ACCEPTED:
            # Never left as in order: the ledger rules once more, and could accept by then what nobody looked at.
            raise InputRefused(ruled.detail or ruled.sentence())
        asked = self._ledger.questions.current(command.tenant, command.operation)
        tools = {call.id: call.tool for call in asked.question.calls} if asked is not None else {}
        operation = self._ledger.operations.get(command.tenant, command.operation)
        for answer in answers:
            # What is said of a call that does not wait is refused by the ruling, which knows all that wait.
            if answer.args is None or answer.call not in tools:
                continue
            case = drafted_case(self._cases, operation)
            problem = case.edit_problem(operation, tools[answer.call], answer.args)
            if problem:
                raise InputRefused(f"call {answer.call[:60]!r}: {problem}")
        return answers

    def _budget(self, command: Command) -> Budget:
        """What is added to the run's budget; the signer is told where it cannot be."""
        added = _read(Budget, self._content(command))
        operation = self._ledger.operations.get(command.tenant, command.operation)
        budgets = policy_in_force(self._ledger, command.tenant, operation.case).budgets
        before = self._ledger.model_calls.raises(command.tenant, command.operation)
        limit = raised(budgets.run, (more for _, more in before)) if budgets is not None else None
        problem = problem_with_raise(limit, added)
        if problem:
            raise InputRefused(problem)
        return added

    def _check_arguments(self, command: Command) -> None:
        """The arguments as the case reads them: as an edit is worked out before it is ruled on."""
        if command.command != "propose":
            raise InputRefused(f"{command.command} brings no content with it; only amend and propose do")
        args = self._content(command)
        if not isinstance(args, dict):
            raise InputRefused("the action's arguments must be one JSON object")
        operation = self._ledger.operations.get(command.tenant, command.operation)
        policy = policy_in_force(self._ledger, command.tenant, operation.case)
        submission = self._cases[operation.case].submission(operation, command.draft_version, policy.label(), args)
        if submission.problem:
            raise InputRefused(submission.problem)

    def _check_evidence(self, command: Command) -> None:
        """What was found outside, and is signed by its hash, can be read in the ledger by whoever asks later."""
        try:
            found = self._ledger.documents.get(command.tenant, command.comment_hash)
        except (NotFound, Conflict):
            found = b""
        if command.comment_hash and not found.strip():
            raise InputRefused("the evidence that was signed is not in the ledger; store it and sign again")

    def _content(self, command: Command) -> Any:
        """The document that the signer named by its hash: anybody can have put anything under that hash."""
        if not command.content:
            raise InputRefused(f"{command.command} names no content; sign one that does")
        try:
            data = self._ledger.documents.get(command.tenant, command.content)
        except (NotFound, Conflict):
            raise InputRefused("what was signed is not in the ledger; store it and sign again") from None
        value = parse(data, where="content", max_bytes=MAX_CONTENT)
        if canonical_bytes(value) != data:
            raise InputRefused("what was signed is not in canonical form (RFC 8785), in which it has one hash alone")
        return value

    def _case(self, command: Command) -> Case:
        return self._cases[self._ledger.operations.get(command.tenant, command.operation).case]


def _read(form: type[Form], content: Any) -> Form:
    try:
        return form.model_validate(content)
    except ValidationError as error:
        raise InputRefused(f"what was signed has not the form that it needs: {first_problem(error)}") from None


def _told(command: Command) -> Told:
    return Told(
        command=command.command, person=command.person, draft_version=command.draft_version, content=command.content
    )
