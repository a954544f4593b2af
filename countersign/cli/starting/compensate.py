"""`compensate`: ask for what an operation did to be taken back, as a new operation of its own (G38).

No rollback: people decide about it anew, it goes out under a key of its own, and it can fail like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from countersign.cli import options
from countersign.cli.rendering import STARTER, fields, say, say_json, warn
from countersign.cli.session import Session, opened, signing_key
from countersign.cli.starting.following import named_after
from countersign.cli.starting.registering import Intent, Started, register_and_start, require_asker, started_lines
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.compensation import COMPENSATION, CompensationRequest, receipt_hash
from countersign.domain.errors import Conflict
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation
from countersign.domain.state import State

_UNDO = "undo"


class Wish(NamedTuple):
    """What somebody wants taken back, and why."""

    tenant: str
    follows: str
    by: str
    reason: str
    operation: str | None = None
    """The new operation's name; nothing: derived from the one that it follows."""


def compensate(
    follows: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    reason: options.Why,
    operation: Annotated[
        str | None,
        typer.Option("--operation", callback=options.checked, metavar="ID", help="Name it; else OPERATION.undo."),
    ] = None,
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Ask for what an operation did to be taken back: a new operation, which people decide about anew.

    The same wish again answers with the first run. What was not executed, or its channel cannot take back, is refused.
    """
    with opened() as session:
        started = start_compensation(session, Wish(tenant, follows, person, reason, operation), key)
    for line in started.warnings:
        warn(line)
    _say_started(started, as_json)


def start_compensation(session: Session, wish: Wish, key_file: Path | None = None) -> Started:
    """Register the signed wish behind the operation that it is about, and start its run.

    Raises:
        NotFound: there is no such operation.
        NotAuthorised: whoever asks does not have the role for it.
        Conflict: nothing is confirmed of it, it cannot be taken back, or it was or is being taken back already.
        ConfigurationRefused: its channel is no longer configured for the tenant.
        Unavailable: as `registering.see_running`.
    """
    from countersign.bootstrap import load_channels
    from countersign.cases.compensation.case import reversible_by
    from countersign.cases.followed import confirmed

    key = signing_key(session, wish.tenant, wish.by, key_file)
    require_asker(session, wish.tenant, COMPENSATION, wish.by)
    followed = confirmed(session.ledger, wish.tenant, wish.follows)
    reversible_by(followed, load_channels(session.settings))
    request = CompensationRequest(follows=wish.follows, receipt_hash=receipt_hash(followed.receipt), reason=wish.reason)
    document = canonical_bytes(request.model_dump(mode="json"))
    name = _name(session, wish, document)
    intent = Intent(wish.tenant, wish.by, COMPENSATION, name, document, follows=wish.follows)
    return register_and_start(session, intent, key)


def _name(session: Session, wish: Wish, document: bytes) -> str:
    """What the compensation is called: as the same wish before, where there was one that has not come to nothing."""
    behind = session.ledger.operations.followers(wish.tenant, wish.follows)
    earlier = [one for one in behind if one.case == COMPENSATION]
    standing = [one for one in earlier if one.state == State.SUCCEEDED or not one.state.terminal]
    if not standing:
        return wish.operation or _next_name(wish.follows, earlier)
    before = standing[0]
    same_wish = before.request_hash == sha256_hex(document) and wish.operation in (None, before.operation)
    if before.state == State.SUCCEEDED or not same_wish:
        how = "was taken back already" if before.state == State.SUCCEEDED else "is being taken back already"
        raise Conflict(
            f"what operation {wish.follows} did {how}, by {before.operation}, which is {before.state.value}; see:"
            f" {STARTER} show {before.operation} --tenant {wish.tenant}"
        )
    return before.operation


def _next_name(follows: str, earlier: Sequence[Operation]) -> str:
    """`report-7.undo`, and `report-7.undo-2` after one that came to nothing."""
    return named_after(follows, _UNDO if not earlier else f"{_UNDO}-{len(earlier) + 1}")


def _say_started(started: Started, as_json: bool) -> None:
    operation = started.operation
    if as_json:
        say_json({
            "operation": operation.operation, "follows": operation.follows,
            "workflow_id": workflow_id(operation.tenant, operation.operation), "first": started.first,
            "run": started.run, "state": operation.state, "reason": operation.reason,
            "request_hash": operation.request_hash, "requester": operation.requester, "warnings": started.warnings,
        })  # fmt: skip
        return
    name = f"{operation.operation} --tenant {operation.tenant}"
    say(started_lines(started))
    say(fields([
        ("next", f"{STARTER} wait {name} --until {State.WAITING_APPROVAL}"),
        ("then", f"whoever decides about it: {STARTER} show {name} --review"),
        ("and", f"until they have, and it is executed, what {operation.follows} did stands as it is"),
    ]))  # fmt: skip
