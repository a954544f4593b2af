"""The options that several commands share, so that a word means the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from countersign.domain.errors import InputRefused
from countersign.domain.identity import checked_name


def _name(param: typer.CallbackParam, value: str | None) -> str | None:
    try:
        return None if value is None else checked_name(value)
    except InputRefused as refused:
        raise InputRefused(f"{param.name}: {refused.message}") from None


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
OptionalSigner = Annotated[str | None, typer.Option("--as", callback=_name, metavar="PERSON", help="Who signs.")]
PersonArgument = Annotated[
    str, typer.Argument(callback=_name, metavar="PERSON", help="Which person.", show_default=False)
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="The signer's key; default: the one `keys new` made here."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Yes = Annotated[bool, typer.Option("--yes", help="Ask nothing.")]
