"""The options that several commands share, so that a word means the same everywhere."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from countersign.cli.errors import Unreadable
from countersign.domain.durations import Duration, duration
from countersign.domain.errors import InputRefused
from countersign.domain.identity import checked_name
from countersign.domain.strict_json import check_text
from countersign.domain.values import MAX_WHY

MAX_REASON = 2_000
"""Characters that a request for a change of authority holds as its reason."""


def _name(param: typer.CallbackParam, value: str | None) -> str | None:
    try:
        return None if value is None else checked_name(value)
    except InputRefused as refused:
        raise InputRefused(f"{param.name}: {refused.message}") from None


def checked(param: typer.CallbackParam, value: str | None) -> str | None:
    """A person or operation that an option names, as a legal id; InputRefused otherwise."""
    return _name(param, value)


def names(param: typer.CallbackParam, value: list[str]) -> list[str]:
    """Each of several persons or operations as a legal id; InputRefused otherwise."""
    return [str(_name(param, one)) for one in value]


def period(option: str, text: str, example: str) -> timedelta:
    """The time that an option's text such as `90s` or `365d` stands for; Unreadable names option and form."""
    try:
        return duration(TypeAdapter(Duration).validate_python(text))
    except ValidationError:
        raise Unreadable(
            f"{option}: {text[:20]!r} is no time; write a number and s, m, h or d, such as {example}"
        ) from None


def _reason(value: str) -> str:
    return _of_length(value, MAX_REASON)


def _why(value: str) -> str:
    if not value.strip():
        raise InputRefused("--reason: say why; whoever decides about it, or looks at it later, has to know")
    return _of_length(value, MAX_WHY)


def _of_length(reason: str, most: int) -> str:
    check_text(reason, "--reason")
    if len(reason) > most:
        raise InputRefused(f"--reason: {len(reason)} characters, at most {most} are allowed")
    return reason


Tenant = Annotated[str, typer.Option("--tenant", callback=_name, help="Whose business it is.", metavar="TENANT")]
OptionalTenant = Annotated[
    str | None, typer.Option("--tenant", callback=_name, help="Whose business it is.", metavar="TENANT")
]
OperationArgument = Annotated[
    str, typer.Argument(callback=_name, metavar="OPERATION", help="Which operation.", show_default=False)
]
OptionalOperation = Annotated[
    str | None,
    typer.Option("--operation", callback=_name, metavar="ID", help="Name it; else derived from the request."),
]
Signer = Annotated[str, typer.Option("--as", callback=_name, metavar="PERSON", help="Who signs.")]
Viewer = Annotated[
    str | None,
    typer.Option("--as", callback=_name, metavar="PERSON", help="For whom: what may they decide, and why not."),
]
OptionalSigner = Annotated[str | None, typer.Option("--as", callback=_name, metavar="PERSON", help="Who signs.")]
PersonArgument = Annotated[
    str, typer.Argument(callback=_name, metavar="PERSON", help="Which person.", show_default=False)
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="The signer's key; default: the one `keys new` made here."),
]
Reason = Annotated[
    str, typer.Option("--reason", callback=_reason, metavar="TEXT", help="Why; shown to whoever decides about it.")
]
Why = Annotated[str, typer.Option("--reason", callback=_why, metavar="TEXT", help="Why; kept with what is signed.")]
"""A reason that has to be given."""
Comment = Annotated[str, typer.Option("--comment", metavar="TEXT", help="Kept in the ledger; its hash is signed.")]
Version = Annotated[
    int,
    typer.Option(
        "--version", min=0, max=1_000_000, metavar="N", help="Which draft version; 0 where nothing is drafted."
    ),
]
Unsigned = Annotated[
    bool, typer.Option("--unsigned", help="Without a signature: for trials in the profile `dev`; namespace-only.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Yes = Annotated[bool, typer.Option("--yes", help="Ask nothing.")]
