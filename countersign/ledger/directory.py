"""Persons of tenants and their public keys; every change is recorded with who made it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Column, ColumnElement, Connection, Row, func, select, update

from countersign.domain.directory import Key, Person
from countersign.domain.errors import Conflict
from countersign.ledger.store import Store, Writing, absent
from countersign.ledger.tables import audit_records, keys, operations, persons


class SqlDirectory:
    """ports.Directory on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def person(self, tenant: str, person: str) -> Person | None:
        """The person, or nothing."""
        with self._store.reading() as connection:
            return load_persons(connection, tenant, [person]).get(person)

    def persons(self, tenant: str) -> dict[str, Person]:
        """All of a tenant by id."""
        with self._store.reading() as connection:
            return load_persons(connection, tenant)

    def tenants(self) -> Sequence[str]:
        """Every tenant with persons, operations, audit records or a checkpoint, by name: one cut off too."""
        tables = (persons.c.tenant, operations.c.tenant, audit_records.c.tenant)
        with self._store.reading() as connection:
            found = {tenant for column in tables for tenant in _distinct(connection, column)}
        return sorted(found | self._store.checkpoints.tenants())

    def put_person(self, person: Person, subject: str, now: datetime) -> None:
        """Insert or change roles and activity; as in ports.Directory."""
        values = {"roles": person.roles, "active": person.active}
        roles: list[JsonValue] = [*sorted(person.roles)]
        with self._store.writing(person.tenant) as writing:
            if not writing.insert_once(persons, id=person.id, **values):
                stored = _lock(writing, person.id)
                if (stored.roles, stored.active) == (person.roles, person.active):
                    return
                writing.connection.execute(update(persons).where(_is(person.tenant, person.id)).values(**values))
            writing.record(
                "directory.person_changed", "", subject, now, person=person.id, roles=roles, active=person.active
            )

    def add_key(self, tenant: str, person: str, key: Key, subject: str, now: datetime) -> None:
        """Register a public key once; as in ports.Directory."""
        with self._store.writing(tenant) as writing:
            stored = _lock(writing, person)
            if stored.key(key.id) == key:
                return
            if not writing.insert_once(keys, id=key.id, person=person, key=key):
                raise Conflict(f"key id {key.id} is taken in tenant {tenant}; choose another id for the new key")
            names = {"person": person, "key_id": key.id}
            writing.record("directory.key_added", "", subject, now, **names, public_key=key.public_key)

    def revoke_key(self, tenant: str, person: str, key_id: str, subject: str, now: datetime) -> None:
        """Revoke from `now` on; a key that is revoked already stays as it is."""
        with self._store.writing(tenant) as writing:
            key = _lock(writing, person).key(key_id)
            if key is None:
                raise absent("key", key_id)
            if key.revoked_at is not None:
                return
            revoked = key.model_copy(update={"revoked_at": now})
            is_it = (keys.c.tenant == tenant) & (keys.c.id == key_id)
            writing.connection.execute(update(keys).where(is_it).values(key=revoked))
            writing.record("directory.key_revoked", "", subject, now, person=person, key_id=key_id)


def load_persons(connection: Connection, tenant: str, only: Collection[str] | None = None) -> dict[str, Person]:
    """Persons of a tenant with their keys by id: all, or those named in `only`."""
    found, owned = select(persons).where(persons.c.tenant == tenant), select(keys).where(keys.c.tenant == tenant)
    if only is not None:
        found, owned = found.where(persons.c.id.in_(only)), owned.where(keys.c.person.in_(only))
    held: dict[str, list[Key]] = {}
    for row in connection.execute(owned):
        held.setdefault(row.person, []).append(row.key)
    # Sorted here: PostgreSQL's order of names depends on how the database was made.
    rows = sorted(connection.execute(found), key=lambda row: row.id)
    return {row.id: _person(tenant, row, held.get(row.id, [])) for row in rows}


def _person(tenant: str, row: Row[Any], held: list[Key]) -> Person:
    in_order = tuple(sorted(held, key=lambda key: key.id))
    return Person(tenant=tenant, id=row.id, roles=row.roles, keys=in_order, active=row.active)


def _lock(writing: Writing, person: str) -> Person:
    where = _is(writing.tenant, person)
    if writing.connection.execute(select(persons.c.id).where(where).with_for_update()).first() is None:
        raise absent("person", person)
    return load_persons(writing.connection, writing.tenant, [person])[person]


def _is(tenant: str, person: str) -> ColumnElement[bool]:
    return (persons.c.tenant == tenant) & (persons.c.id == person)


def _distinct(connection: Connection, column: Column[Any]) -> Iterator[str]:
    """The different values of an index's first column, one look-up each; SELECT DISTINCT would read every record."""
    value = connection.execute(select(func.min(column))).scalar()
    while value is not None:
        yield value
        value = connection.execute(select(func.min(column)).where(column > value)).scalar()
