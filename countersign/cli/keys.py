"""`keys new|list|revoke`: the keys with which people sign; private halves stay in files, public ones in the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from countersign.cli import options
from countersign.cli.rendering import STARTER, moment, say, say_json, table
from countersign.cli.session import Session, key_path, now, opened
from countersign.domain.canonical import sha256_hex
from countersign.domain.directory import Key
from countersign.domain.errors import NotFound

OPERATOR = "operator"
"""The audit's name for whoever administers this installation at the command line."""

keys = typer.Typer(no_args_is_help=True, help="Make, list and revoke the keys with which people sign.")


@keys.command("new")
def new(
    person: options.PersonArgument,
    tenant: options.Tenant,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the private key goes; default: the keys folder.")
    ] = None,
) -> None:
    """Make a key pair for a person; the private half goes to a file that only its owner can read."""
    with opened() as session:
        path = out or key_path(session.settings, tenant, person)
        aside = None if out else _set_aside(session, tenant, person, path)
        key = make_key(session, tenant, person, path)
    if aside is not None:
        say(f"the old key is not good any more; its file is now {aside}")
    say(f"key {key.id} of {person} registered in tenant {tenant}; its private half is {path}")


@keys.command("list")
def list_keys(tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """List the keys of a tenant's persons."""
    with opened() as session:
        persons = session.ledger.directory.persons(tenant)
    listed = [(person.id, key) for person in persons.values() for key in person.keys]
    if as_json:
        say_json([{"person": person, **key.model_dump(mode="json")} for person, key in listed])
    elif listed:
        say(table(["PERSON", "KEY", "SINCE", "STATE"], [[p, k.id, moment(k.not_before), _state(k)] for p, k in listed]))
    else:
        say(f"tenant {tenant} has no keys; make one with: {STARTER} keys new PERSON --tenant {tenant}")


@keys.command("revoke")
def revoke(
    person: options.PersonArgument,
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="The key's id.", show_default=False)],
    tenant: options.Tenant,
) -> None:
    """Revoke a key from now on; votes signed with it no longer count."""
    with opened() as session:
        session.ledger.directory.revoke_key(tenant, person, key_id, OPERATOR, now())
    say(f"key {key_id} of {person} in tenant {tenant} is revoked")


def make_key(session: Session, tenant: str, person: str, path: Path) -> Key:
    """Make a key pair, write the private half to `path`, register the public one.

    Raises:
        NotFound: the tenant has no such person.
        Conflict: the file is there already; an old key is never overwritten.
    """
    from countersign.signing.keys import new_key_file, public_text

    if session.ledger.directory.person(tenant, person) is None:
        raise NotFound(
            f"person {person} is not in the directory of tenant {tenant}; add them to a directory file and run:"
            f" {STARTER} directory apply FILE"
        )
    public = public_text(new_key_file(path))
    key = Key(id=f"k-{sha256_hex(public.encode())[7:23]}", public_key=public, not_before=now())
    try:
        session.ledger.directory.add_key(tenant, person, key, OPERATOR, now())
    except BaseException:
        path.unlink()
        raise
    return key


def _set_aside(session: Session, tenant: str, person: str, path: Path) -> Path | None:
    """Make room for a new key where the file holds one that is not good now; a good one is left where it is."""
    from countersign.signing.keys import public_text, read_key_file

    known = session.ledger.directory.person(tenant, person)
    if known is None or not path.exists():
        return None
    public = public_text(read_key_file(path))
    old = next((key for key in known.keys if key.public_key == public), None)
    if old is None or old.good_at(now()):
        return None
    return path.rename(path.with_name(f"{person}.{old.id}.pem"))


def _state(key: Key) -> str:
    if key.revoked_at is not None:
        return f"revoked {moment(key.revoked_at)}"
    return "good" if key.good_at(now()) else "not good now"
