"""Changes of who may do what, as the command line makes them: directly in the first set-up, else asked for (G13).

Apart from the commands that work a change out: which of the two ways it goes is not theirs to choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from countersign.cli.rendering import STARTER, fields, say, warn
from countersign.cli.session import OPERATOR, Session, SigningKey, now, signing_key
from countersign.cli.starting.registering import (
    Intent,
    Started,
    derived_id,
    register_and_start,
    require_asker,
    started_lines,
)
from countersign.domain.administration import (
    ADMINISTRATION,
    AdministrationRequest,
    Change,
    DirectoryChange,
    problems,
)
from countersign.domain.canonical import canonical_bytes
from countersign.domain.errors import Conflict, InputRefused, NotAuthorised, NotFound
from countersign.domain.state import State


class Asking(NamedTuple):
    """How a change is asked for, by the options; of no account while the first set-up is open."""

    by: str | None
    key_file: Path | None
    reason: str
    operation: str | None
    """The operation's name; nothing: derived from the request."""


class Asker(NamedTuple):
    """Somebody who may ask for changes in a tenant, and how they ask."""

    person: str
    key: SigningKey
    asked: Asking


def askers(session: Session, tenants: Iterable[str], asked: Asking, command: str) -> Mapping[str, Asker]:
    """Who asks in each tenant whose first set-up is closed; refuses before anything is done what nobody could ask for.

    Raises:
        NotAuthorised: the first set-up of a tenant is closed, and nobody asks or whoever does may not.
    """
    closed = [tenant for tenant in tenants if not session.ledger.directory.set_up_open(tenant)]
    return {tenant: _asker(session, tenant, asked, command) for tenant in closed}


def make(session: Session, tenant: str, change: DirectoryChange, asker: Asker | None) -> Started | None:
    """Make a change of the directory directly where nobody asks, which the first set-up alone allows; else ask for it.

    Returns nothing where it was made.
    """
    if asker is None:
        session.ledger.directory.set_up(tenant, change, OPERATOR, now())
        return None
    return ask_for(session, tenant, change, asker)


def ask_for(session: Session, tenant: str, change: Change, asker: Asker) -> Started:
    """Register and start an operation that makes the change once two others have approved it.

    Raises:
        InputRefused: the change must not be made; nothing was registered.
        Conflict: the same was asked for before, and has its end.
    """
    person, asked = asker.person, asker.asked
    found = problems(change, session.ledger.directory.authority(tenant), now())
    if found:
        raise InputRefused(f"tenant {tenant}: {'; '.join(found)}")
    request = AdministrationRequest(reason=asked.reason or f"{change.kind} change asked for by {person}", change=change)
    document = canonical_bytes(request.model_dump(mode="json"))
    operation = asked.operation or _derived(session, tenant, change.kind, document)
    return register_and_start(session, Intent(tenant, person, ADMINISTRATION, operation, document), asker.key)


def say_asked(started: Started) -> None:
    """Tell that a change only counts when others have approved it, and what to do for that."""
    for line in started.warnings:
        warn(line)
    operation = started.operation
    name = f"{operation.operation} --tenant {operation.tenant}"
    say(started_lines(started))
    if operation.state.terminal:
        say(fields([("next", f"{STARTER} show {name}")]))
        return
    say(fields([
        ("next", f"{STARTER} wait {name} --until {State.WAITING_APPROVAL}"),
        ("then", f"two others, who have the role for it, each: {STARTER} show {name} --review"),
        ("and", f"{STARTER} approve {name} --as PERSON; until both have, nothing changes"),
    ]))  # fmt: skip


def _asker(session: Session, tenant: str, asked: Asking, command: str) -> Asker:
    if asked.by is None:
        raise NotAuthorised(
            "set_up_closed",
            f"the first set-up of tenant {tenant} is closed, so an admin has to ask and two others to approve;"
            f" ask with: {STARTER} {command} --as ADMIN",
        )
    key = signing_key(session, tenant, asked.by, asked.key_file)
    require_asker(session, tenant, ADMINISTRATION, asked.by)
    return Asker(asked.by, key, asked)


def _derived(session: Session, tenant: str, prefix: str, document: bytes) -> str:
    """An id for the request; one that has its end would answer with that, and change nothing."""
    name = derived_id(prefix, document)
    try:
        earlier = session.ledger.operations.get(tenant, name)
    except NotFound:
        return name
    if earlier.state.terminal:
        raise Conflict(
            f"the same change was asked for before, as operation {name}, and is {earlier.state}; to ask for it again"
            " name it by --operation ID"
        )
    return name
