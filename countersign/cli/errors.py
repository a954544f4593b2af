"""What went wrong, in one line for the person at the terminal, and the exit code that goes with it.

The one place where errors become words. An unexpected one is a bug: its traceback goes to a file, never to the screen.
"""

from __future__ import annotations

import errno
import os
import tempfile
import traceback
from pathlib import Path

import typer

from countersign.cli.rendering import PYTHON, STARTER, complain
from countersign.domain.errors import CountersignError, InputRefused

REFUSED = 1
USAGE = 2
DOES_NOT_FIT = 3
"""What was compared disagrees; a command that compares was carried out all the same, and is no refusal."""
INTERRUPTED = 130

_DISK = {
    errno.ENOSPC: "there is no room left on the disk; make room and repeat the command",
    errno.EDQUOT: "the disk quota is used up; make room and repeat the command",
    errno.EROFS: "the disk is read-only; name a writable folder by COUNTERSIGN_HOME",
    errno.EACCES: "this user may not read or write it; change its owner or rights",
    errno.ENOENT: "it is not there; check the name",
    errno.EEXIST: "a file is in the way of a folder; name another folder",
    errno.EISDIR: "it is a folder; name a file",
    errno.ENOTDIR: "a part of its path is a file; check the name",
    errno.EADDRINUSE: "the port is taken; name another one",
}


class Unreadable(InputRefused):
    """An option's text that does not have the option's form, so that the command line cannot be read."""


def report(error: BaseException, log_folder: Path) -> int:
    """Print one line about `error` on standard error; return the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, SystemExit):
        # Whoever read our output has gone; there is nobody to tell.
        return REFUSED
    if isinstance(error, typer.Abort):
        return _say("not confirmed, nothing was done; give --yes where nobody can be asked", REFUSED)
    if isinstance(error, typer.TyperException):
        if _is_help(error):
            typer.echo(error.format_message(), err=True)
            return USAGE
        return _say(_usage(error), USAGE)
    sentence = in_plain_words(error)
    if sentence is not None:
        return _say(sentence, USAGE if isinstance(error, Unreadable) else REFUSED)
    log = _log(error, log_folder)
    return _say(f"unexpected {type(error).__name__}; this is a bug, please report it with the log {log}", REFUSED)


def in_plain_words(error: BaseException) -> str | None:
    """The sentence for an error that a person can do something about; nothing for a bug."""
    if isinstance(error, CountersignError):
        return error.message
    if isinstance(error, OSError) and error.errno in _DISK:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{_DISK[error.errno]}"
    if type(error).__module__.startswith("temporalio"):
        return _temporal(error)
    return None


def _temporal(error: BaseException) -> str | None:
    # Imported here: by then the client is loaded, and no other command pays half a second for it.
    from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
    from temporalio.service import RPCError, RPCStatusCode

    if isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError):
        return f"the run did not answer in time; look at it with: {STARTER} status"
    if isinstance(error, WorkflowUpdateFailedError):
        return f"the run refused the message: {error.cause}"
    if not isinstance(error, RPCError):
        return None
    words = {
        RPCStatusCode.UNAVAILABLE: f"the Temporal server does not answer; look with: {STARTER} doctor",
        RPCStatusCode.DEADLINE_EXCEEDED: "the Temporal server did not answer in time; is a worker running?",
        RPCStatusCode.PERMISSION_DENIED: "the Temporal server does not allow this; check TEMPORAL_API_KEY or TLS files",
        RPCStatusCode.UNAUTHENTICATED: "the Temporal server does not know us; check TEMPORAL_API_KEY or TLS files",
        RPCStatusCode.NOT_FOUND: f"no such run is open on the Temporal server ({_first_line(error)})",
        RPCStatusCode.RESOURCE_EXHAUSTED: "the Temporal server is overloaded; try again later",
    }
    return words.get(error.status, f"the Temporal server refused: {_first_line(error)}")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _is_help(error: typer.TyperException) -> bool:
    """Whether a group was called without a command of it: the error's text is then the group's help."""
    context = getattr(error, "ctx", None)
    return context is not None and error.format_message() == context.get_help()


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "starter.py"
    return f"{' '.join(error.format_message().split())} (see: {PYTHON} {command} --help)"


def _say(sentence: str, code: int) -> int:
    complain(sentence)
    return code


def _log(error: BaseException, folder: Path) -> Path:
    text = "".join(traceback.format_exception(error))
    for place in (folder, Path(tempfile.gettempdir())):
        try:
            place.mkdir(parents=True, exist_ok=True)
            path = place / f"starter-{os.getpid()}.log"
            path.write_text(text, encoding="utf-8")
        except OSError:
            continue
        return path
    return Path("(no log could be written)")
