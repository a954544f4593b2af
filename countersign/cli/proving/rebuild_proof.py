"""Whether the statement behind an audit record was really signed by whom the record names: looked at again, each time.

Apart from what is told of a record, since here nothing that the ledger says of a statement is believed but its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from countersign.cli.rendering import moment
from countersign.cli.session import Session
from countersign.domain.audit import RESTORED, AuditRecord
from countersign.domain.canonical import sha256_hex
from countersign.domain.directory import Key, Person
from countersign.domain.errors import Conflict, NotFound, StatementRefused

REGISTERED = "operation.registered"
FROZEN = "effects.frozen"
KEY_ADDED = "directory.key_added"

if TYPE_CHECKING:
    from countersign.signing.compact import Kind


class Proof(NamedTuple):
    """What a second look at a record's statement found; exactly one of the three is there."""

    holds: str = ""
    """By whom and with which key it was signed."""
    lacks: str = ""
    """Why it cannot be looked at again."""
    wrong: str = ""
    """What does not fit."""


class Keys:
    """The public keys of a tenant's persons: as the directory has them, and as the audit says they were added."""

    def __init__(self, persons: Mapping[str, Person], records: Iterable[AuditRecord]) -> None:
        self.persons = persons
        records = tuple(records)
        self._accepting = {one.detail["order_hash"] for one in records if one.type == RESTORED}
        self._added = {str(one.detail.get("key_id")): one for one in records if one.type == KEY_ADDED}

    def kind(self, record: AuditRecord) -> Kind[Any]:
        """What kind of statement a record rests on, so that none passes for another."""
        from countersign.signing.statements import COMMAND, DECISION, FREEZE, REQUEST, RESTORE

        if record.type.startswith(("decision.", "break_glass.")):
            return DECISION
        if record.type.startswith("command."):
            return COMMAND
        # Whoever accepts a loss freezes every effect by the same order.
        frozen = RESTORE if record.detail.get("order_hash") in self._accepting else FREEZE
        others: Mapping[str, Kind[Any]] = {REGISTERED: REQUEST, FROZEN: frozen, RESTORED: RESTORE}
        return others[record.type]

    def added(self, person: str, key: Key) -> str:
        """In which record the key was added, in words.

        Raises:
            StatementRefused: no record says that this very key was added, or it was as another person's.
        """
        record = self._added.get(key.id)
        if record is None or (record.detail["person"], record.detail["public_key"]) != (person, key.public_key):
            raise StatementRefused("unknown_key", f"no audit record says that key {key.id} was added as it is now")
        revoked = f", revoked at {moment(key.revoked_at)}" if key.revoked_at is not None else ""
        return f"added by record {record.sequence}{revoked}"


def proof_of(session: Session, record: AuditRecord, keys: Keys) -> Proof | None:
    """What became of looking at the statement again; nothing for a record that rests on none."""
    sha256 = str(record.detail.get("statement_hash") or record.detail.get("order_hash") or "")
    if not sha256:
        return None
    try:
        token = token_of(session, record)
    except NotFound:
        return Proof(lacks=f"the signed statement {sha256} is not in the ledger; its hash alone is")
    except Conflict as changed:
        return Proof(wrong=changed.message)
    if sha256_hex(token.encode()) != sha256:
        return Proof(wrong=f"the statement in the ledger is not the recorded one {sha256}")
    if record.detail.get("assurance") == "namespace-only":
        return Proof(holds="nobody signed it: namespace-only, worth no more than access to the Temporal namespace")
    try:
        return Proof(holds=_signed_by(session, record, token, keys))
    except StatementRefused as refused:
        return Proof(wrong=f"the signature does not hold: {refused.message}")


def token_of(session: Session, record: AuditRecord) -> str:
    """The statement as it came; NotFound where the ledger does not have it."""
    if record.type == REGISTERED:
        return session.ledger.operations.get(record.tenant, record.operation).statement
    sha256 = str(record.detail.get("statement_hash") or record.detail.get("order_hash"))
    return session.ledger.documents.get(record.tenant, sha256).decode("utf-8", "backslashreplace")


def _signed_by(session: Session, record: AuditRecord, token: str, keys: Keys) -> str:
    """Who signed it, as the key's own record confirms; StatementRefused where anything of it does not fit."""
    from countersign.signing.compact import verify

    at, installation = datetime.fromisoformat(record.recorded_at), session.settings.installation
    signed, signer = verify(keys.kind(record), token, keys.persons, installation=installation, now=at)
    if signer.id != record.subject:
        raise StatementRefused("signer", f"{signer.id} signed it, and the record names {record.subject}")
    key = signer.key(signed.key_id)
    assert key is not None, "it was verified with this key"
    return f"signed by {signer.id} with key {key.id} ({keys.added(signer.id, key)}); the signature holds"
