"""Transactions of the ledger: each holds a change and its audit records together, or nothing at all (G45).

Every part of the ledger goes through here, so that no part can change something without a record, nor touch another
tenant's rows: on PostgreSQL each transaction is of one tenant, and row level security shows it no other (G09).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, Engine, Table, func, literal, select
from sqlalchemy.dialects import postgresql, sqlite

from countersign.domain.audit import GENESIS, AuditRecord, Checkpoint, link
from countersign.domain.canonical import canonical_bytes
from countersign.domain.command import Ending
from countersign.domain.errors import Conflict, NotFound
from countersign.domain.identity import checked_name
from countersign.domain.notice import Notice
from countersign.domain.state import State
from countersign.domain.strict_json import check_text
from countersign.domain.values import Sha256
from countersign.ledger.checkpoints import Checkpoints
from countersign.ledger.columns import PlainText, moment_text
from countersign.ledger.engines import in_plain_words, reading_engine
from countersign.ledger.tables import audit_records, documents, endings, notices, operations, tenants, walled

Fact = dict[str, Any]


class Writing:
    """One open writing transaction of one tenant.

    Locks are taken in one order, so that none waits for the other in a circle: the operation or the directory first,
    then the openings, a deciding person, the freezes or the model calls, the tenant's chain last, when everything else
    is done.
    """

    def __init__(self, connection: Connection, tenant: str) -> None:
        self.connection = connection
        self.tenant = tenant
        self.facts: list[Fact] = []
        self.notices: list[Notice] = []
        self.records: list[AuditRecord] = []
        """The audit records that were committed; empty until then."""
        self.lost: Checkpoint | None = None
        """The checkpoint that the chain goes on behind, in the one transaction that says so (ledger/restores.py)."""

    def insert_once(self, table: Table, **values: Any) -> bool:
        """Insert a row of this tenant; False where a unique key is taken, also by a transaction that just won."""
        insert = _insert(self.connection)(table).values(tenant=self.tenant, **values)
        statement = insert.on_conflict_do_nothing()
        return self.connection.execute(statement.returning(table.c.tenant)).first() is not None

    def lock_operation(self, operation: str) -> bool:
        """Until the end of the transaction nobody else changes anything of this operation; False if it is not there."""
        is_it = (operations.c.tenant == self.tenant) & (operations.c.operation == operation)
        locking = select(operations.c.operation).where(is_it).with_for_update()
        return self.connection.execute(locking).first() is not None

    def lock_known_operation(self, operation: str) -> None:
        """The same, or NotFound."""
        if not self.lock_operation(operation):
            raise absent("operation", operation)

    def check_running(self, operation: str) -> None:
        """Conflict where an operation, which the caller has locked, has ended: nothing is asked or done for it then.

        Also where people have ended it, and its run has not come to it yet.
        """
        state = self.state_of(operation)
        if state is None or not state.terminal:
            ending = self.ending_of(operation)
            state = None if ending is None else ending.state
        if state is not None:
            raise Conflict(f"operation {operation} has ended as {state.value}; ask anew under another id")

    def state_of(self, operation: str) -> State | None:
        """Where the operation's run stands, as the ledger has it; nothing where there is no such operation."""
        is_it = (operations.c.tenant == self.tenant) & (operations.c.operation == operation)
        state: str | None = self.connection.execute(select(operations.c.state).where(is_it)).scalar()
        return None if state is None else State(state)

    def ending_of(self, operation: str) -> Ending | None:
        """How people ended the operation; nothing where they did not."""
        return ending_of(self.connection, self.tenant, operation)

    def lock_directory(self) -> None:
        """Until the end of the transaction nobody else changes this tenant's persons, keys, policies or set-up."""
        _lock(self.connection, "directory", self.tenant)

    def lock_openings(self) -> None:
        """Until the end of the transaction nobody else brings anything of this tenant before people."""
        _lock(self.connection, "openings", self.tenant)

    def lock_model_calls(self) -> None:
        """Until the end of the transaction no other call of a model begins, or ends, for this tenant."""
        _lock(self.connection, "model_calls", self.tenant)

    def lock_person(self, person: str) -> None:
        """Until the end of the transaction no other decision of this person is ruled on, in whatever operation."""
        _lock(self.connection, "person", self.tenant, person)

    def lock_freezes(self) -> None:
        """Until the end of the transaction nobody else freezes, lifts a freeze or claims an effect of this tenant."""
        _lock(self.connection, "freezes", self.tenant)

    def record(self, type: str, operation: str, subject: str, now: datetime, /, **detail: JsonValue) -> None:
        """Have an audit record written at the end of this transaction; fields as in AuditRecord."""
        fact = {"type": type, "operation": operation, "subject": subject, "detail": detail}
        check_text(fact, f"audit record {type[:60]}")
        self.facts.append({**fact, "recorded_at": moment_text(now)})

    def notify(self, notice: Notice) -> None:
        """Have people told of what this transaction does, if it commits."""
        self.notices.append(notice)


class Store:
    """The database, the checkpoints and the name of the installation they belong to."""

    def __init__(self, engine: Engine, installation: str, checkpoints: Checkpoints) -> None:
        self.engine = engine
        self.installation = installation
        self.checkpoints = checkpoints
        # SQLite's own waiting polls and is unfair; threads of one process queue up here first.
        self._turn: AbstractContextManager[Any] = threading.Lock() if engine.name == "sqlite" else nullcontext()
        self._reader = reading_engine(engine)

    @contextmanager
    def reading(self, tenant: str) -> Iterator[Connection]:
        """One consistent look at what the tenant has, which waits for no writer."""
        with in_plain_words(self.engine), self._reader.begin() as connection:
            _enter(connection, tenant)
            yield connection

    def tenants(self) -> frozenset[str]:
        """Every tenant that has an audit record, or had one: the one thing that is read across tenants."""
        with in_plain_words(self.engine), self._reader.begin() as connection:
            return frozenset(connection.execute(select(tenants.c.name)).scalars())

    @contextmanager
    def writing(self, tenant: str) -> Iterator[Writing]:
        """One transaction: commits with its audit records at the end of the block, or changes nothing.

        Raises:
            ChainBroken: the chain no longer holds what its checkpoint says; nothing is written on top of that.
            Unavailable: the database failed and nothing was changed; or the checkpoint could not be written after the
                commit, and then a repeat returns what was recorded.
        """
        with in_plain_words(self.engine), self._turn, self.engine.begin() as connection:
            writing = Writing(connection, checked_name(tenant))
            _enter(connection, tenant)
            yield writing
            records = self._append(writing) if writing.facts else []
            if writing.notices:
                _post(writing)
        writing.records = records
        if records:
            self.checkpoints.advance(tenant, records[-1].sequence, records[-1].hash, writing.lost)

    def check_writable(self) -> None:
        """Write something and take it back; Unavailable, with the reason, where that fails."""
        with in_plain_words(self.engine), self._turn, self.engine.connect() as connection:
            attempt = connection.begin()
            _enter(connection, "doctor")
            Writing(connection, "doctor").insert_once(documents, sha256="", data=b"")
            attempt.rollback()

    def walled(self) -> bool:
        """As in ports.Ledger."""
        if self.engine.name != "postgresql":
            return True
        with in_plain_words(self.engine), self._reader.begin() as connection:
            holds = (select(func.row_security_active(table.name)) for table in walled)
            return all(connection.execute(each).scalar_one() for each in holds)

    def _append(self, writing: Writing) -> list[AuditRecord]:
        connection, tenant = writing.connection, writing.tenant
        _lock(connection, "chain", tenant)
        count, head = _head(connection, tenant)
        if count == 0:
            name = _insert(connection)(tenants).values(name=tenant)
            connection.execute(name.on_conflict_do_nothing())
        hash_at = partial(_hash_at, connection, tenant)
        self.checkpoints.confirm(tenant, count, head, hash_at, writing.lost)
        records: list[AuditRecord] = []
        for fact in writing.facts:
            fields = {"tenant": tenant, "sequence": count + 1, "origin": self.installation, **fact}
            record = link(fields, head)
            records.append(record)
            count, head = record.sequence, record.hash
        connection.execute(audit_records.insert(), [_row(record) for record in records])
        return records


def ending_of(connection: Connection, tenant: str, operation: str) -> Ending | None:
    """How people ended an operation; nothing where they did not."""
    is_it = (endings.c.tenant == tenant) & (endings.c.operation == operation)
    ending: Ending | None = connection.execute(select(endings.c.ending).where(is_it)).scalar()
    return ending


def absent(kind: str, name: object) -> NotFound:
    """The one answer for what is not there and for what is another tenant's (G09)."""
    return NotFound(f"{kind} {str(name)[:120]!r} is not there; check its name and the tenant")


def _post(writing: Writing) -> None:
    """Number the notices through the tenant, in the order in which their transactions end."""
    _lock(writing.connection, "chain", writing.tenant)
    latest = select(func.max(notices.c.number)).where(notices.c.tenant == writing.tenant)
    first = (writing.connection.execute(latest).scalar() or 0) + 1
    numbered = enumerate(writing.notices, start=first)
    rows = [{"tenant": writing.tenant, "number": number, "addressed": False, "notice": one} for number, one in numbered]
    writing.connection.execute(notices.insert(), rows)


def _insert(connection: Connection) -> Callable[[Table], Any]:
    return postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert


def _enter(connection: Connection, tenant: str) -> None:
    """Until the end of the transaction the database shows and takes this tenant's rows alone."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.set_config("countersign.tenant", literal(tenant, PlainText), True)))


def _lock(connection: Connection, *what: str) -> None:
    # SQLite has one writer anyway. A number made from the names will do: two that share one just wait in turn.
    if connection.dialect.name == "postgresql":
        number = int.from_bytes(hashlib.sha256(canonical_bytes([*what])).digest()[:8], signed=True)
        connection.execute(select(func.pg_advisory_xact_lock(number)))


def _head(connection: Connection, tenant: str) -> tuple[int, Sha256]:
    newest = select(audit_records.c.sequence, audit_records.c.hash).where(audit_records.c.tenant == tenant)
    row = connection.execute(newest.order_by(audit_records.c.sequence.desc()).limit(1)).first()
    return (0, GENESIS) if row is None else (row.sequence, Sha256(row.hash))


def _hash_at(connection: Connection, tenant: str, sequence: int) -> str | None:
    where = (audit_records.c.tenant == tenant) & (audit_records.c.sequence == sequence)
    return connection.execute(select(audit_records.c.hash).where(where)).scalar()


def _row(record: AuditRecord) -> dict[str, Any]:
    # Canonical, so that the verifier can compare the stored text itself, byte for byte.
    return {**record.model_dump(), "detail": canonical_bytes(record.detail).decode()}
