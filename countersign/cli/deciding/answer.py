"""`answer`: say what the agent waits for while it drafts, call by call, after seeing all of it; sign that, send it.

Apart from decisions, which are about an outward action: by an answer the agent reads or knows something, and nothing
goes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from countersign.cli import options
from countersign.cli.deciding.answers import (
    Given,
    answers_of,
    asked_at_terminal,
    checked,
    edit_problem_of,
    waiting_question,
    with_content,
)
from countersign.cli.deciding.command_message import Order, command, keep, require_open
from countersign.cli.deciding.decide import OutFile, sign
from countersign.cli.errors import Unreadable
from countersign.cli.rendering import STARTER, say, say_json
from countersign.cli.reviewing.questions import answer_lines, question_json, question_text
from countersign.cli.session import Session, now, opened
from countersign.cli.situation import RunNow, run_now
from countersign.domain.question import Answer, Asked

Approve = Annotated[
    list[str] | None, typer.Option("--approve", metavar="CALL", help="Let this call run as it is; as often as needed.")
]
Edit = Annotated[
    list[str] | None,
    typer.Option(
        "--edit", metavar="CALL=FILE", help="Run it with the arguments in FILE instead: JSON, whole; - reads."
    ),
]
Reject = Annotated[
    list[str] | None,
    typer.Option("--reject", metavar="CALL[=REASON]", help="Run nothing; the agent is told so, with the reason."),
]
Respond = Annotated[
    list[str] | None,
    typer.Option("--respond", metavar="CALL=TEXT", help="Tell the agent; TEXT alone where only one call waits."),
]
ForAll = Annotated[
    str, typer.Option("--all", metavar="DECISION", help="approve or reject: the same for every call that waits.")
]
File = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help='All answers as JSON: {"answers": [{"call", "decision", ...}]}.'),
]


def answer(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.OptionalSigner = None,
    approve: Approve = None,
    edit: Edit = None,
    reject: Reject = None,
    respond: Respond = None,
    every: ForAll = "",
    file: File = None,
    comment: options.Comment = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what the agent waits for while it drafts, and answer it: sign that, send it.

    Every call that waits is answered, or nothing is sent. Without --as it is only shown; with --as alone you are asked
    call by call.
    """
    given = Given(approve or (), edit or (), reject or (), respond or (), every, file)
    with opened() as session:
        run = run_now(session, tenant, operation)
        asked = waiting_question(run)
        if person is None and given.ways:
            raise Unreadable("--as: say who answers, such as --as lea")
        if person is None or (as_json and not given.ways):
            _show(session, run, asked, as_json)
            return
        ready = _prepared(session, run, Order("answer", person, comment, key), given, quiet=as_json)
        if not given.ways:
            typer.confirm("sign these answers and send them?", abort=True)
        command(session, run, ready.signed_content(session), as_json)


@sign.command("answer")
def sign_answer(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    approve: Approve = None,
    edit: Edit = None,
    reject: Reject = None,
    respond: Respond = None,
    every: ForAll = "",
    file: File = None,
    comment: options.Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign answers to the agent into a file; the answers are put into the ledger."""
    given = Given(approve or (), edit or (), reject or (), respond or (), every, file)
    with opened() as session:
        run = run_now(session, tenant, operation)
        ready = _prepared(session, run, Order("answer", person, comment, key), given)
        keep(session, run, ready.signed_content(session), out)


class _Prepared(NamedTuple):
    """Answers that were looked at and may be signed."""

    run: RunNow
    order: Order
    answers: tuple[Answer, ...]

    def signed_content(self, session: Session) -> Order:
        """The order that names the answers, which are put into the ledger only now."""
        return with_content(session, self.run, self.order, self.answers)


def _prepared(session: Session, run: RunNow, order: Order, given: Given, *, quiet: bool = False) -> _Prepared:
    """Show the question whole, and what is said of each call; refused before anything is shown or stored."""
    asked = waiting_question(run)
    order = order._replace(question=asked.question.hash())
    require_open(session, run, order)
    if not quiet:
        say(question_text(session, run.operation, asked, now()))
    edit_problem = edit_problem_of(session, run)
    found = answers_of(asked.question, given) if given.ways else asked_at_terminal(asked.question, edit_problem)
    answers = checked(asked.question, found, edit_problem)
    if not quiet:
        say("\n".join(["", "YOUR ANSWERS", *answer_lines(answers), ""]))
    return _Prepared(run, order, answers)


def _show(session: Session, run: RunNow, asked: Asked, as_json: bool) -> None:
    if as_json:
        shown = question_json(session, run.operation, asked, now())
        say_json({"operation": run.operation.operation, "state": run.state, **shown, "commands": [*_ways(run, asked)]})
        return
    say(question_text(session, run.operation, asked, now()))
    say("\nanswer all of it with one of:")
    for line in _ways(run, asked):
        say(f"  {line}")


def _ways(run: RunNow, asked: Asked) -> Iterator[str]:
    about = f"{STARTER} answer {run.operation.operation} --tenant {run.operation.tenant} --as PERSON"
    yield about
    calls = asked.question.calls
    yield from (
        f"{about} --all {kind}" for kind in ("approve", "reject") if all(kind in one.decisions for one in calls)
    )
    if len(calls) == 1 and calls[0].only_asks:
        yield f"{about} --respond TEXT"
    else:
        yield f"{about} --file ANSWERS_FILE"
