"""`keys new|list|revoke`: the keys with which people sign; private halves stay in files, public ones in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from countersign.cli import options
from countersign.cli.governing.authority import Asker, Asking, askers, make, say_asked
from countersign.cli.governing.directory_file import new_key
from countersign.cli.rendering import STARTER, moment, say, say_json, table
from countersign.cli.session import Session, key_path, now, opened, require_tenant, standing
from countersign.cli.starting.registering import Started, see_running
from countersign.domain.administration import (
    ADMINISTRATION,
    AdministrationRequest,
    DirectoryChange,
    KeyAddition,
    KeyRevocation,
)
from countersign.domain.directory import Key
from countersign.domain.errors import Conflict, InputRefused, NotFound
from countersign.domain.operation import Operation

keys = typer.Typer(no_args_is_help=True, help="Make, list and revoke the keys with which people sign.")


class Pair(NamedTuple):
    """A person's key pair; the private half lies in the file."""

    person: str
    public: str
    path: Path
    made: bool
    """Whether this command made it; else it lay there and was nobody's yet."""
    aside: Path | None
    """Where the file of the key before it is now, where that was not good any more."""


@keys.command("new")
def new(
    person: Annotated[
        list[str],
        typer.Argument(callback=options.names, metavar="PERSON...", help="Which persons.", show_default=False),
    ],
    tenant: options.Tenant,
    valid: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long it is good, such as 365d; default: until revoked.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the private key goes; default: the keys folder.")
    ] = None,
    admin: options.OptionalSigner = None,
    key: options.KeyFile = None,
    reason: options.Reason = "",
    operation: options.OptionalOperation = None,
) -> None:
    """Make a key pair for each person; the private half goes to a file that only its owner can read.

    After the first set-up an admin asks for it, and the key counts once two other admins have approved.
    """
    if out is not None and len(person) > 1:
        raise InputRefused(f"--out: one file holds one key, and {len(person)} persons are named; leave it out")
    period = None if valid is None else options.period("--valid", valid, "365d")
    asked = Asking(admin, key, reason, operation)
    with opened() as session:
        asking = askers(session, [tenant], asked, f"keys new {' '.join(person)} --tenant {tenant}")
        files = {one: out or key_path(session.settings, tenant, one) for one in person}
        pairs, started = add_keys(session, tenant, files, asking.get(tenant), period)
    for pair in pairs:
        _say_pair(pair, tenant, registered=started is None)
    if started is not None:
        say_asked(started)


@keys.command("list")
def list_keys(tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """List the keys of a tenant's persons."""
    with opened() as session:
        require_tenant(session, tenant)
        persons = session.ledger.directory.persons(tenant)
    listed = [(person.id, key) for person in persons.values() for key in person.keys]
    if as_json:
        say_json([{"person": person, **key.model_dump(mode="json")} for person, key in listed])
    elif listed:
        say(table(["PERSON", "KEY", "START", "END", "STATE"], [_cells(person, key) for person, key in listed]))
    else:
        say(f"tenant {tenant} has no keys; make one with: {STARTER} keys new PERSON --tenant {tenant}")


@keys.command("revoke")
def revoke(
    person: options.PersonArgument,
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="The key's id.", show_default=False)],
    tenant: options.Tenant,
    admin: options.OptionalSigner = None,
    key: options.KeyFile = None,
    reason: options.Reason = "",
    operation: options.OptionalOperation = None,
) -> None:
    """Revoke a key; votes signed with it no longer count. After the first set-up two other admins approve that."""
    change = DirectoryChange(keys_revoked=(KeyRevocation(person=person, key_id=key_id),))
    asked = Asking(admin, key, reason, operation)
    with opened() as session:
        asking = askers(session, [tenant], asked, f"keys revoke {person} {key_id} --tenant {tenant}")
        started = make(session, tenant, change, asking.get(tenant))
    if started is None:
        say(f"key {key_id} of {person} in tenant {tenant} is revoked")
    else:
        say(f"key {key_id} of {person} in tenant {tenant} is good until the revocation is approved:")
        say_asked(started)


def add_keys(
    session: Session, tenant: str, files: dict[str, Path], asker: Asker | None, period: timedelta | None = None
) -> tuple[Sequence[Pair], Started | None]:
    """Make a key pair per person and register the public halves, or ask for that; see `authority.make`.

    Raises:
        NotFound: the tenant has no such person.
        Conflict: a file holds another key already; it is never overwritten.
    """
    pairs: list[Pair] = []
    try:
        for person, path in files.items():
            pairs.append(_pair(session, tenant, person, path))
        pending = _asked_before(session, tenant, pairs)
        if pending is not None:
            run, warnings = see_running(pending)
            return pairs, Started(pending, False, run, warnings)
        start = now()
        end = None if period is None else start + period
        added = tuple(KeyAddition(person=pair.person, key=new_key(pair.public, start, end)) for pair in pairs)
        return pairs, make(session, tenant, DirectoryChange(keys_added=added), asker)
    except BaseException:
        _take_back(session, tenant, pairs)
        raise


def _pair(session: Session, tenant: str, person: str, path: Path) -> Pair:
    from countersign.signing.keys import new_key_file, public_text, read_key_file

    known = session.ledger.directory.persons(tenant)
    if person not in known:
        raise NotFound(
            f"person {person} is not in the directory of tenant {tenant}; add them to a directory file and run:"
            f" {STARTER} directory apply FILE"
        )
    aside = None
    if path.exists():
        public = public_text(read_key_file(path))
        if all(key.public_key != public for one in known.values() for key in one.keys):
            return Pair(person, public, path, made=False, aside=None)
        aside = _set_aside(known[person].keys, public, path)
        if aside is None:
            raise Conflict(f"key file {path} exists and its key is in use; for another one give --out FILE")
    return Pair(person, public_text(new_key_file(path)), path, made=True, aside=aside)


def _set_aside(held: Sequence[Key], public: str, path: Path) -> Path | None:
    """Make room for a new key where the file holds one that is not good now; a good one is left where it is."""
    old = next((key for key in held if key.public_key == public), None)
    if old is None or old.good_at(now()):
        return None
    return path.rename(path.with_name(f"{path.stem}.{old.id}.pem"))


def _asked_before(session: Session, tenant: str, pairs: Sequence[Pair]) -> Operation | None:
    """The operation, still open, that is to add exactly these keys."""
    public = {pair.public for pair in pairs}
    for operation in session.ledger.operations.list(tenant):
        if operation.case != ADMINISTRATION or operation.state.terminal:
            continue
        stored = session.ledger.documents.get(tenant, operation.request_hash)
        change = AdministrationRequest.model_validate_json(stored).change
        if isinstance(change, DirectoryChange) and {added.key.public_key for added in change.keys_added} == public:
            return operation
    return None


def _take_back(session: Session, tenant: str, pairs: Sequence[Pair]) -> None:
    """Remove the files of this command, unless an operation stands that makes their keys count."""
    if _asked_before(session, tenant, pairs) is None:
        for pair in pairs:
            if pair.made:
                pair.path.unlink()
            if pair.aside is not None:
                pair.aside.rename(pair.path)


def _say_pair(pair: Pair, tenant: str, *, registered: bool) -> None:
    if pair.aside is not None:
        say(f"the old key is not good any more; its file is now {pair.aside}")
    if not pair.made:
        say(f"key file {pair.path} was there and is nobody's key yet: it is used")
    key_id = new_key(pair.public, now()).id
    if registered:
        say(f"key {key_id} of {pair.person} registered in tenant {tenant}; its private half is {pair.path}")
    else:
        say(f"key {key_id} of {pair.person} is made, its private half is {pair.path}; it does not count in tenant"
            f" {tenant} before two admins have approved:")  # fmt: skip


def _cells(person: str, key: Key) -> list[str]:
    end = moment(key.not_after) if key.not_after is not None else "none"
    return [person, key.id, moment(key.not_before), end, standing(key, now())]
