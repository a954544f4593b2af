"""What persons sign: decisions, requests, commands, orders to freeze, orders to go on behind a loss.

Each is of a `typ` of its own, so that none passes for another. How strictly all are read is said in compact.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.audit import RestoreOrder
from countersign.domain.command import Command
from countersign.domain.decision import Statement
from countersign.domain.directory import Person
from countersign.domain.errors import StatementRefused
from countersign.domain.freeze import FreezeOrder
from countersign.domain.operation import RequestStatement
from countersign.signing.compact import Kind, sign, verify

DECISION = Kind("decision+jwt", Statement)
REQUEST = Kind("request+jwt", RequestStatement)
COMMAND = Kind("command+jwt", Command)
FREEZE = Kind("freeze+jwt", FreezeOrder)
RESTORE = Kind("restore+jwt", RestoreOrder)
LEEWAY = timedelta(seconds=60)
"""How far a signer's clock may be ahead of ours."""


def sign_decision(statement: Statement, key: Ed25519PrivateKey) -> str:
    """The compact JWS of a decision."""
    return sign(DECISION, statement, key)


def sign_request(statement: RequestStatement, key: Ed25519PrivateKey) -> str:
    """The compact JWS of a request to start an operation."""
    return sign(REQUEST, statement, key)


def sign_command(command: Command, key: Ed25519PrivateKey) -> str:
    """The compact JWS of a command to a run."""
    return sign(COMMAND, command, key)


def sign_freeze(order: FreezeOrder, key: Ed25519PrivateKey) -> str:
    """The compact JWS of an order to hold effects."""
    return sign(FREEZE, order, key)


def sign_restore(order: RestoreOrder, key: Ed25519PrivateKey) -> str:
    """The compact JWS of an order to go on behind a loss."""
    return sign(RESTORE, order, key)


def verify_decision(
    token: str, persons: Mapping[str, Person], *, installation: str, now: datetime
) -> tuple[Statement, Person]:
    """The decision that `token` states and the person who signed it.

    Args:
        token: compact JWS.
        persons: the directory of the one tenant that the run belongs to, by person id.
        installation: the audience that it must name.
        now: workflow time in the run, wall time in the gateway.

    Raises:
        StatementRefused: with the reason of the first check that failed.
    """
    statement, signer = verify(DECISION, token, persons, installation=installation, now=now)
    _check_times(statement.issued_at, now, statement.expires_at)
    return statement, signer


def verify_request(
    token: str, persons: Mapping[str, Person], *, installation: str, now: datetime
) -> tuple[RequestStatement, Person]:
    """The request that `token` states and the person who signed it; StatementRefused otherwise."""
    statement, signer = verify(REQUEST, token, persons, installation=installation, now=now)
    _check_times(statement.issued_at, now)
    return statement, signer


def verify_command(
    token: str, persons: Mapping[str, Person], *, installation: str, now: datetime
) -> tuple[Command, Person]:
    """The command that `token` states and the person who signed it; as `verify_decision`."""
    command, signer = verify(COMMAND, token, persons, installation=installation, now=now)
    _check_times(command.issued_at, now, command.expires_at)
    return command, signer


def verify_freeze(
    token: str, persons: Mapping[str, Person], *, installation: str, now: datetime
) -> tuple[FreezeOrder, Person]:
    """The freeze order that `token` states and the person who signed it; StatementRefused otherwise.

    It has no end of its own: the ledger keeps each token once, so that a lifted freeze cannot be put in force again.
    """
    order, signer = verify(FREEZE, token, persons, installation=installation, now=now)
    _check_times(order.issued_at, now)
    return order, signer


def verify_restore(
    token: str, persons: Mapping[str, Person], *, installation: str, now: datetime
) -> tuple[RestoreOrder, Person]:
    """The order to go on behind a loss that `token` states and the person who signed it; StatementRefused otherwise.

    It has no end of its own: it names the loss, and there is that one only once.
    """
    order, signer = verify(RESTORE, token, persons, installation=installation, now=now)
    _check_times(order.issued_at, now)
    return order, signer


def _check_times(issued_at: datetime, now: datetime, expires_at: datetime | None = None) -> None:
    if issued_at > now + LEEWAY:
        raise StatementRefused("not_yet", "the statement is from the future; check the signing machine's clock")
    if expires_at is not None and now >= expires_at:
        raise StatementRefused("expired", f"the statement was good until {expires_at.isoformat()}; sign a new one")
