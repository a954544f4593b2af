"""What a command works with: settings, ledger, keys, and the Temporal server if it is there."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from countersign.cli.rendering import STARTER, moment
from countersign.domain.directory import Key, Person
from countersign.domain.errors import NotAuthorised, NotFound
from countersign.ports import Ledger
from countersign.settings import Settings, load_settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Result = TypeVar("Result")

OPERATOR = "operator"
"""The audit's name for whoever administers this installation at the command line."""
GOOD = "good"


class Session(NamedTuple):
    """The settings and the open ledger of one command."""

    settings: Settings
    ledger: Ledger


class SigningKey(NamedTuple):
    """A person's private key and the id under which the directory knows its public half."""

    id: str
    private: Ed25519PrivateKey


@contextmanager
def opened(settings: Settings | None = None) -> Iterator[Session]:
    """Settings and ledger, given back at the end."""
    from countersign.bootstrap import open_ledger

    settings = settings or load_settings()
    ledger = open_ledger(settings)
    try:
        yield Session(settings, ledger)
    finally:
        ledger.close()


def now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """A unique id for a statement."""
    return secrets.token_urlsafe(16)


def finished(work: Coroutine[Any, Any, Result]) -> Result:
    """Run asynchronous work to its end."""
    return asyncio.run(work)


def key_path(settings: Settings, tenant: str, person: str) -> Path:
    """Where `keys new` puts a person's private key."""
    return settings.keys_folder / tenant / f"{person}.pem"


def require_tenant(session: Session, tenant: str) -> None:
    """NotFound for a tenant that the ledger knows nothing of."""
    if tenant not in session.ledger.directory.tenants():
        raise NotFound(f"tenant {tenant!r} is not there; check its name")


def standing(key: Key, at: datetime) -> str:
    """How a key stands at a time, in words: GOOD, `revoked at ...`, `not good before ...`, `ended at ...`."""
    if key.good_at(at):
        return GOOD
    if key.revoked_at is not None and key.revoked_at <= at:
        return f"revoked at {moment(key.revoked_at)}"
    if key.not_before > at:
        return f"not good before {moment(key.not_before)}"
    return f"ended at {moment(key.not_after)}" if key.not_after is not None else GOOD


def known_person(session: Session, tenant: str, person: str) -> Person:
    """The person as the directory has them; NotFound where the tenant has no such person."""
    known = session.ledger.directory.person(tenant, person)
    if known is None:
        raise NotFound(
            f"person {person} is not in the directory of tenant {tenant}; see:"
            f" {STARTER} directory show --tenant {tenant}"
        )
    return known


def signing_key(session: Session, tenant: str, person: str, file: Path | None) -> SigningKey:
    """The person's private key, with the id that the directory has for it.

    Raises:
        NotFound: no such key file, or no such person in the tenant.
        NotAuthorised: the directory does not have this key as the person's, or it is not good now.
    """
    from countersign.signing.keys import public_text, read_key_file

    known = known_person(session, tenant, person)
    path = file or key_path(session.settings, tenant, person)
    private = read_key_file(path)
    public = public_text(private)
    registered = next((key for key in known.keys if key.public_key == public), None)
    if registered is None:
        raise NotAuthorised("unknown_key", f"key file {path} is not registered as a key of {person} in tenant {tenant}")
    stands = standing(registered, now())
    if stands != GOOD:
        raise NotAuthorised(
            "key_not_good",
            f"key {registered.id} in {path} is not good now: {stands}; nothing was signed; give another by --key FILE",
        )
    return SigningKey(registered.id, private)
