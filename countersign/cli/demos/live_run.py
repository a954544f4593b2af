"""`live`: one report on examples/ with a real model, from the draft to the decision, and what it came to as a file.

Apart from the demo, which has to end well: here the model is what is looked at, and a run that the checks have stopped
is a result.
"""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from countersign.cli.deciding.answers import asked_at_terminal, checked, edit_problem_of, waiting_question, with_content
from countersign.cli.deciding.command_message import Order as Wanted
from countersign.cli.deciding.command_message import command
from countersign.cli.demos.demo_stage import alone, demo_settings, elsewhere, stage
from countersign.cli.demos.demo_steps import Progress, Prompt, begin, decided, enrol
from countersign.cli.demos.live_result import code_of, result_of
from countersign.cli.errors import Unreadable
from countersign.cli.failure import sentence_of
from countersign.cli.rendering import fields, say, say_json
from countersign.cli.reviewing.questions import answer_lines, question_text
from countersign.cli.session import Session, now, opened
from countersign.cli.situation import RunNow, run_now
from countersign.cli.starting.request_file import Order, RefundOrder, read_order
from countersign.domain.errors import InputRefused, Unavailable
from countersign.domain.question import Answer, PendingCall
from countersign.domain.state import State
from countersign.settings import ROOT, Settings, load_settings

REVIEWER = "bob"
ANSWERER = "lea"
KNOWN_NOTHING = "Nobody is here to ask. Go by the request and the data, and name what stays open among the limitations."
NOT_LOOKED_AT = "Nobody is here to look at it. Do without, and name what is missing among the limitations."
NO_KEY = (
    "OPENAI_API_KEY is not set: give the key of an OpenAI-compatible service, its address by OPENAI_BASE_URL, and its"
    " models by COUNTERSIGN_DRAFT_MODEL and COUNTERSIGN_GRADE_MODEL; see docs/live.md"
)


def live(
    yes: Annotated[
        bool, typer.Option("--yes", help="Answer the agent in fixed words, and approve without asking.")
    ] = False,
) -> None:
    """Run one report on examples/ with the model that OPENAI_API_KEY is for, and ask you.

    Starts a Temporal server and a worker; drafts, answers what the agent asks, checks, grades, publishes what you
    approve. Prints each failed call, and what it came to; writes that to OPERATION.json. Exit code 1 where it was
    stopped.
    """
    if not load_settings().openai_api_key:
        raise Unreadable(NO_KEY)
    settings = demo_settings("live")
    _for_the_worker(settings)
    with alone(settings.home), opened(settings) as session:
        order = _prepared(session)
        say("Starting a Temporal server and a worker ...")
        with stage(settings) as running:
            say(fields([("Temporal", running.address), ("web UI", running.web), ("folder", str(settings.home))]))
            progress = Progress(session, running, order.tenant, begin(session, order))
            state = _course(session, progress, order, yes)
        _told(session, order)
    if state not in (State.SUCCEEDED, State.REJECTED):
        raise typer.Exit(1)


def _for_the_worker(settings: Settings) -> None:
    """Our `.env` may lie elsewhere than where the worker looks for one: without this it would draft by rules."""
    given = {
        "OPENAI_API_KEY": settings.openai_api_key.get_secret_value() if settings.openai_api_key else "",
        "OPENAI_BASE_URL": settings.openai_base_url or "",
        "COUNTERSIGN_DRAFT_MODEL": settings.draft_model,
        "COUNTERSIGN_GRADE_MODEL": settings.grade_model,
        "COUNTERSIGN_MODEL_STREAMING": str(settings.model_streaming),
    }
    os.environ.update(given)


def _prepared(session: Session) -> Order | RefundOrder:
    """The example's request under a new operation id; in the first run of a folder also persons and keys."""
    request = read_order(ROOT / "examples" / "request.yaml", {"operation": f"live-{now():%Y%m%d-%H%M%S}"})
    if session.ledger.directory.set_up_open(request.tenant):
        enrol(session)
    return request


def _course(session: Session, progress: Progress, order: Order | RefundOrder, yes: bool) -> State:
    """Answer and decide whatever waits, until the run has ended or cannot go on."""
    tenant, operation = order.tenant, str(order.operation)

    def waits(state: State) -> bool:
        """A moment after a message was accepted the state is still the one before: what waits is what counts."""
        run = run_now(session, tenant, operation)
        return state.terminal or state == State.ESCALATED or run.question is not None or run.pending is not None

    while True:
        state = progress.until(waits)
        run = run_now(session, tenant, operation)
        if state.terminal or state == State.ESCALATED:
            return state
        if run.question is not None:
            _answer(session, run, yes)
        elif run.pending is not None:
            decided(session, run.pending, Prompt(REVIEWER, "Publish this?", yes))


def _answer(session: Session, run: RunNow, yes: bool) -> None:
    """Have a person answer the agent, sign that, send it; Unavailable where nobody answers."""
    asked = waiting_question(run)
    say(question_text(session, run.operation, asked, now()))
    edit_problem = edit_problem_of(session, run)
    try:
        answers = tuple(map(fixed, asked.question.calls)) if yes else asked_at_terminal(asked.question, edit_problem)
    except InputRefused:
        raise Unavailable(
            f"not answered: the agent's question waits in {session.settings.home}; give --yes where nobody can be asked"
        ) from None
    if yes:
        say("\n".join([f"Nobody is asked: {ANSWERER} answers this.", *answer_lines(answers), ""]))
    order = Wanted("answer", ANSWERER, question=asked.question.hash())
    answered = with_content(session, run, order, checked(asked.question, answers, edit_problem))
    command(session, run, answered, as_json=False)


def fixed(call: PendingCall) -> Answer:
    """What is answered where nobody is asked: the truth to a question, and no to whatever would need a look."""
    if call.only_asks:
        return Answer(call=call.id, decision="respond", message=KNOWN_NOTHING)
    return Answer(call=call.id, decision="reject", message=NOT_LOOKED_AT)


def _told(session: Session, order: Order | RefundOrder) -> None:
    result = result_of(session, order.tenant, str(order.operation))
    path = session.settings.home / f"{order.operation}.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    say_json(result)
    look = f"{elsewhere(session.settings)} {{}} {order.operation} --tenant {order.tenant}"
    say(fields([
        ("result", f"{result['state']} {result['reason']}".rstrip()),
        ("why", _why(session, order)),
        ("file", str(path)),
        ("all that happened", look.format("timeline")),
        ("the report", look.format("show")),
    ]))  # fmt: skip


def _why(session: Session, order: Order | RefundOrder) -> str:
    """The timeline's sentence for the reason at which the run stands; empty where the reason says all."""
    reason = code_of(session.ledger.operations.get(order.tenant, str(order.operation)).reason)
    records = session.ledger.audit.records(order.tenant, str(order.operation))
    said = [sentence_of(session, one) for one in records if str(one.detail.get("code", "")).lower() == reason]
    return next(filter(None, reversed(said)), "")
