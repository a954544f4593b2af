"""Rows of persons, keys, policies, freezes and set-ups: how authority is read, and the one way in which it is written.

Apart from the directory because decisions and registrations look at it inside transactions of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue
from sqlalchemy import Connection, Row, delete, func, select, tuple_, update

from countersign.domain.administration import Authority
from countersign.domain.directory import Key, Person
from countersign.domain.freeze import Freeze
from countersign.domain.policy import Policy
from countersign.domain.values import Instant
from countersign.ledger.store import Writing
from countersign.ledger.tables import freezes, keys, persons, policies, set_ups
from countersign.ports import Adopted

FIRST_SET_UP = "first_set_up"


class Mandate(NamedTuple):
    """By what right authority is changed, and when."""

    basis: str
    """FIRST_SET_UP or the operation."""
    subject: str
    now: Instant
    operation: str = ""

    def record(self, writing: Writing, type: str, **detail: JsonValue) -> None:
        """Have what was changed recorded with its basis."""
        writing.record(type, self.operation, self.subject, self.now, **detail, basis=self.basis)


def set_up_open(connection: Connection, tenant: str) -> bool:
    """Whether the tenant's first set-up is still open."""
    return connection.execute(select(set_ups.c.tenant).where(set_ups.c.tenant == tenant)).first() is None


def load_authority(connection: Connection, tenant: str) -> Authority:
    """Persons, and the policies and freezes in force."""
    return Authority(
        tenant=tenant,
        persons=load_persons(connection, tenant),
        policies=load_policies(connection, tenant),
        freezes=tuple(one for one in load_freezes(connection, tenant) if one.in_force),
    )


def load_freezes(connection: Connection, tenant: str) -> list[Freeze]:
    """All freezes, lifted ones too, oldest first."""
    of_tenant = select(freezes.c.freeze).where(freezes.c.tenant == tenant)
    return list(connection.execute(of_tenant.order_by(freezes.c.number)).scalars())


def load_policies(connection: Connection, tenant: str) -> dict[str, Policy]:
    """The policies in force by name."""
    return {name: one.policy for name, one in load_adopted(connection, tenant).items()}


def load_adopted(connection: Connection, tenant: str) -> dict[str, Adopted]:
    """The same, with since when and by what right."""
    names = select(policies.c.name, func.max(policies.c.version)).where(policies.c.tenant == tenant)
    newest = tuple_(policies.c.name, policies.c.version).in_(names.group_by(policies.c.name))
    rows = connection.execute(select(policies).where(policies.c.tenant == tenant, newest))
    # Sorted here: PostgreSQL's order of names depends on how the database was made.
    in_order = sorted(rows, key=lambda row: row.name)
    return {row.name: Adopted(policy=row.policy, since=row.adopted_at, basis=row.basis) for row in in_order}


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


def write_persons(
    writing: Writing, before: Mapping[str, Person], after: Mapping[str, Person], mandate: Mandate
) -> None:
    """Write and record what differs between two states of the directory; nobody is ever taken out of it."""
    for name, person in after.items():
        earlier = before.get(name)
        if earlier is None or earlier.standing != person.standing:
            _write_standing(writing, person, mandate, new=earlier is None)
        for key in person.keys:
            known = None if earlier is None else earlier.key(key.id)
            if known is None:
                _add_key(writing, name, key, mandate)
            elif known != key:
                _revoke_key(writing, name, key, mandate)


def adopt(writing: Writing, policy: Policy, mandate: Mandate, *, replacing: bool = False) -> None:
    """Put a policy in force; Conflict where this version of it has been, unless what is in force is replaced whole."""
    if replacing:
        of_name = (policies.c.tenant == writing.tenant) & (policies.c.name == policy.policy)
        writing.connection.execute(delete(policies).where(of_name))
    named = {"name": policy.policy, "version": policy.version, "policy": policy}
    values = {**named, "adopted_at": mandate.now, "basis": mandate.basis}
    writing.connection.execute(policies.insert().values(tenant=writing.tenant, **values))
    mandate.record(writing, "policy.adopted", policy=policy.policy, version=policy.version, label=policy.label())


def _person(tenant: str, row: Row[Any], held: list[Key]) -> Person:
    in_order = tuple(sorted(held, key=lambda key: key.id))
    return Person(tenant=tenant, id=row.id, roles=row.roles, keys=in_order, active=row.active, limits=row.limits)


def _write_standing(writing: Writing, person: Person, mandate: Mandate, *, new: bool) -> None:
    values = {"roles": person.roles, "active": person.active, "limits": person.limits}
    is_it = (persons.c.tenant == writing.tenant) & (persons.c.id == person.id)
    if new:
        writing.connection.execute(persons.insert().values(tenant=writing.tenant, id=person.id, **values))
    else:
        writing.connection.execute(update(persons).where(is_it).values(**values))
    standing = person.standing.model_dump(mode="json")
    mandate.record(writing, "directory.person_changed", person=person.id, **standing)


def _add_key(writing: Writing, person: str, key: Key, mandate: Mandate) -> None:
    values = {"id": key.id, "person": person, "public_key": key.public_key, "key": key}
    writing.connection.execute(keys.insert().values(tenant=writing.tenant, **values))
    shown = key.model_dump(mode="json", exclude={"id"})
    mandate.record(writing, "directory.key_added", person=person, key_id=key.id, **shown)


def _revoke_key(writing: Writing, person: str, key: Key, mandate: Mandate) -> None:
    is_it = (keys.c.tenant == writing.tenant) & (keys.c.id == key.id)
    writing.connection.execute(update(keys).where(is_it).values(key=key))
    mandate.record(writing, "directory.key_revoked", person=person, key_id=key.id)
