"""A person's signed message to a run: its comment, its file, its sending, and what the run answered.

Apart from what is signed, since this is what decisions (decision_message) and commands (command_message) share.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import typer

from countersign.cli.rendering import TEMPORAL, complain, say, say_json
from countersign.cli.session import Session, finished
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.errors import InputRefused
from countersign.domain.identity import workflow_id
from countersign.domain.proposal import Assurance
from countersign.domain.strict_json import check_text
from countersign.domain.values import Sha256

MAX_COMMENT = 4_000


class Message(NamedTuple):
    """A message on its way to one run."""

    tenant: str
    operation: str
    name: str
    """The signal's and the update's."""
    id: str
    """Of the statement in it."""
    body: Mapping[str, Any]


class Answer(NamedTuple):
    """What became of a message."""

    kind: str
    """What was signed: `approve`, `take_over`, ..."""
    statement_id: str
    assurance: Assurance
    outcome: Outcome | None
    """The run's ruling; nothing where it was left as a signal."""
    accepted: str
    """The sentence for an acceptance."""
    later: str
    """When it counts where it was left as a signal."""
    sent_as: Literal["", "cli"] = ""
    """`cli` where the command had it recorded itself; else the outcome tells how it was sent."""
    todo: str = ""
    """What to do where it was refused."""


def check_comment(comment: str) -> None:
    """InputRefused for one that is too long, or no text."""
    check_text(comment, "--comment")
    if len(comment) > MAX_COMMENT:
        raise InputRefused(f"--comment: {len(comment)} characters, at most {MAX_COMMENT} are allowed")


def stored_comment(session: Session, tenant: str, comment: str) -> Sha256 | Literal[""]:
    """Put a comment into the ledger; its hash is what is signed."""
    return session.ledger.documents.put(tenant, comment.encode()) if comment else ""


def require_accepted(operation: str, kind: str, outcome: Outcome) -> None:
    """InputRefused with the reason, where the outcome is a refusal."""
    if outcome.ruling != Ruling.ACCEPTED:
        what = kind.replace("_", "-")
        raise InputRefused(f"operation {operation}: this {what} would be refused: {outcome.sentence()}")


def sent(message: Message) -> Outcome | None:
    """Send a message to its run; nothing if it was left as a signal, not ruled on yet."""
    return finished(_sent(message))


def keep_message(message: Message, out: Path) -> None:
    """Write a message into a file, and say how the temporal CLI sends it."""
    out.write_text(json.dumps(message.body) + "\n", encoding="utf-8")
    run = workflow_id(message.tenant, message.operation)
    say(f"written to {out}; send it with:")
    say(f"  {TEMPORAL} workflow signal --workflow-id {run} --name {message.name} --input-file {out}")


def tell(answer: Answer, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    """Say what the run answered; exit code 1 where it refused.

    Args:
        answer: what became of the message.
        as_json: whether it is for a program.
        more: further fields of the JSON document.
    """
    outcome = answer.outcome
    if as_json:
        say_json({
            "decision": answer.kind, "statement_id": answer.statement_id, "assurance": answer.assurance,
            "sent_as": answer.sent_as or ("update" if outcome else "signal"),
            "outcome": outcome.model_dump(mode="json") if outcome else None, **(more or {}),
        })  # fmt: skip
    elif outcome is None:
        say(f"sent as signal; not ruled on yet: no worker answers. It counts if one rules on it {answer.later}.")
    elif not outcome.counts:
        complain("; ".join(filter(None, [f"refused: {outcome.sentence()}", answer.todo])))
    else:
        say(answer.accepted)
    if outcome is not None and not outcome.counts:
        raise typer.Exit(1)


async def _sent(message: Message) -> Outcome | None:
    from countersign.cli.temporal_run import send_message
    from countersign.temporal_client import connect

    return await send_message(await connect(), message)
