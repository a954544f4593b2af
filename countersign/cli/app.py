"""All commands together, and the one way out for whatever goes wrong in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer
from typer.main import get_command

from countersign.cli import errors
from countersign.cli.deciding import amend, answer, control, decide, edit, raise_budget, settle
from countersign.cli.demos import demo, demo_refund, dev_server, live_run
from countersign.cli.governing import doctor, freezing, retention
from countersign.cli.governing.directory import directory
from countersign.cli.governing.keys import keys
from countersign.cli.governing.policy import policy
from countersign.cli.proving import rebuild, reconcile
from countersign.cli.proving.audit import audit
from countersign.cli.reading import cost, outbox, read, watch
from countersign.cli.reviewing import brief, inbox, show
from countersign.cli.starting import compensate, resume, start
from countersign.settings import load_settings

app = typer.Typer(
    name="starter.py",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="People sign what an AI agent may do; it happens once; anyone can verify it later.",
)
app.command()(demo.demo)
app.command()(demo_refund.demo_refund)
app.command()(live_run.live)
app.command()(start.start)
app.command("list")(read.list_operations)
app.command()(inbox.inbox)
app.command("next")(inbox.next_waiting)
app.command()(show.show)
app.command()(brief.brief)
app.command()(read.status)
app.command()(read.timeline)
app.command()(rebuild.rebuild)
app.command()(read.wait)
app.command()(watch.watch)
app.command()(cost.cost)
app.command()(decide.approve)
app.command()(edit.edit)
app.command()(decide.reject)
app.command()(decide.break_glass)
app.command()(control.withdraw)
app.command()(control.cancel)
app.command()(control.take_over)
app.command()(amend.amend)
app.command()(control.grade)
app.command()(amend.propose)
app.command()(control.release)
app.command()(control.hand_over)
app.command()(answer.answer)
app.command()(raise_budget.raise_budget)
app.command()(settle.settle)
app.command()(freezing.freeze)
app.command()(freezing.freezes)
app.command()(freezing.unfreeze)
app.command()(compensate.compensate)
app.command()(outbox.outbox)
app.command()(reconcile.reconcile)
app.command()(resume.resume)
app.command()(retention.retention)
app.add_typer(decide.sign, name="sign")
app.add_typer(audit, name="audit")
app.add_typer(keys, name="keys")
app.add_typer(directory, name="directory")
app.add_typer(policy, name="policy")
app.command()(doctor.doctor)
app.command()(dev_server.server)


def main() -> None:
    """Run the command that the process was given, and end it with its exit code."""
    code = run(sys.argv[1:])
    # Threads of the Temporal client can outlive their last call by a moment; an interpreter that is taken down under
    # them aborts the process (seen: PyGILState_Release while finalizing). Everything was closed and printed by now.
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; whatever goes wrong has been said in one line on standard error."""
    try:
        code = get_command(app).main(args=list(arguments), prog_name="starter.py", standalone_mode=False)
    except BaseException as error:
        return errors.report(error, _log_folder())
    return code if isinstance(code, int) else 0


def _log_folder() -> Path:
    try:
        return load_settings().home / "logs"
    except Exception:
        return Path("var") / "logs"
