"""Who may do what in a tenant, and the two ways in which that changes: the first set-up, and governed actions (G13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, select

from countersign.domain.action import Action
from countersign.domain.administration import (
    ADMINISTRATION,
    Authority,
    Change,
    DirectoryChange,
    PolicyChange,
    changed,
    check_floor,
    content,
    entry_problems,
    lockout,
    present,
    problems,
)
from countersign.domain.canonical import sha256_hex
from countersign.domain.directory import Person
from countersign.domain.errors import Drifted, InputRefused, NotAuthorised
from countersign.domain.policy import Policy
from countersign.ledger.authority import (
    FIRST_SET_UP,
    Mandate,
    adopt,
    load_adopted,
    load_authority,
    load_persons,
    load_policies,
    set_up_open,
    write_persons,
)
from countersign.ledger.freezes import lift
from countersign.ledger.store import Store, Writing
from countersign.ledger.tables import changes, set_ups
from countersign.ports import Adopted


class SqlDirectory:
    """ports.Directory on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def person(self, tenant: str, person: str) -> Person | None:
        """The person, or nothing."""
        with self._store.reading(tenant) as connection:
            return load_persons(connection, tenant, [person]).get(person)

    def persons(self, tenant: str) -> dict[str, Person]:
        """All of a tenant by id."""
        with self._store.reading(tenant) as connection:
            return load_persons(connection, tenant)

    def policies(self, tenant: str) -> dict[str, Policy]:
        """The policies in force by name."""
        with self._store.reading(tenant) as connection:
            return load_policies(connection, tenant)

    def adopted(self, tenant: str) -> Mapping[str, Adopted]:
        """The same, with since when and by what right."""
        with self._store.reading(tenant) as connection:
            return load_adopted(connection, tenant)

    def authority(self, tenant: str) -> Authority:
        """Persons and policies as they are at one moment."""
        with self._store.reading(tenant) as connection:
            return load_authority(connection, tenant)

    def tenants(self) -> Sequence[str]:
        """Every tenant that the ledger knows, or that has a checkpoint, by name: one whose records were cut off too."""
        return sorted(self._store.tenants() | self._store.checkpoints.tenants())

    def set_up_open(self, tenant: str) -> bool:
        """Whether the tenant's first set-up is still open; also for a tenant that nobody knows."""
        with self._store.reading(tenant) as connection:
            return set_up_open(connection, tenant)

    def set_up(self, tenant: str, change: DirectoryChange, subject: str, now: datetime) -> None:
        """Make a change directly while the set-up is open; as in ports.Directory."""
        with self._store.writing(tenant) as writing:
            writing.lock_directory()
            _check_open(writing.connection, tenant)
            authority = load_authority(writing.connection, tenant)
            _refuse(entry_problems(change, authority.persons))
            mandate = Mandate(FIRST_SET_UP, subject, now)
            write_persons(writing, authority.persons, changed(authority, change, now), mandate)

    def adopt(self, tenant: str, policies: Sequence[Policy], subject: str, now: datetime) -> None:
        """Put policies in force while the set-up is open; as in ports.Directory.

        Raises:
            ConfigurationRefused: changes of authority would need less than two persons.
        """
        with self._store.writing(tenant) as writing:
            writing.lock_directory()
            _check_open(writing.connection, tenant)
            present = load_policies(writing.connection, tenant)
            for policy in policies:
                check_floor(policy)
                if present.get(policy.policy) != policy:
                    adopt(writing, policy, Mandate(FIRST_SET_UP, subject, now), replacing=True)

    def close_set_up(self, tenant: str, subject: str, now: datetime) -> bool:
        """End the first set-up; as in ports.Directory."""
        with self._store.writing(tenant) as writing:
            writing.lock_directory()
            if not set_up_open(writing.connection, tenant):
                return False
            authority = load_authority(writing.connection, tenant)
            _refuse(lockout(authority.persons, authority.policies.get(ADMINISTRATION), now))
            writing.insert_once(set_ups)
            Mandate(FIRST_SET_UP, subject, now).record(writing, "set_up.closed")
        return True

    def apply(self, tenant: str, change: Change, action: Action, now: datetime) -> None:
        """Make a governed change once; as in ports.Directory.

        Raises:
            NotAuthorised: the action is another tenant's, or not about this very change.
        """
        if (tenant, sha256_hex(content(change))) != (action.tenant, action.content_hash):
            raise NotAuthorised("not_this_action", f"the action of operation {action.operation} is not of this change")
        with self._store.writing(tenant) as writing:
            writing.lock_directory()
            if not writing.insert_once(changes, key=action.idempotency_key()):
                return
            authority = load_authority(writing.connection, tenant)
            _check_still_there(change, authority, action)
            _refuse(problems(change, authority, now))
            mandate = Mandate(action.operation, "gateway", now, action.operation)
            _make(writing, change, authority, mandate)

    def applied(self, tenant: str, key: str) -> bool:
        """Whether the change of that idempotency key was made."""
        made = select(changes.c.key).where(changes.c.tenant == tenant, changes.c.key == key)
        with self._store.reading(tenant) as connection:
            return connection.execute(made).first() is not None


def _make(writing: Writing, change: Change, authority: Authority, mandate: Mandate) -> None:
    if isinstance(change, DirectoryChange):
        write_persons(writing, authority.persons, changed(authority, change, mandate.now), mandate)
    elif isinstance(change, PolicyChange):
        adopt(writing, change.policy, mandate)
    else:
        freeze = authority.freeze(change.freeze)
        assert freeze is not None, "a change without problems lifts what is in force"
        lift(writing, freeze, mandate)


def _check_open(connection: Connection, tenant: str) -> None:
    if not set_up_open(connection, tenant):
        raise NotAuthorised(
            "set_up_closed",
            f"tenant {tenant}: its first set-up is closed; ask for the change as an operation of the case "
            f"{ADMINISTRATION!r}, which two administrators approve",
        )


def _refuse(found: Iterable[str]) -> None:
    sentences = tuple(found)
    if sentences:
        raise InputRefused("; ".join(sentences))


def _check_still_there(change: Change, authority: Authority, action: Action) -> None:
    found = sha256_hex(present(change, authority))
    if found != action.evidence_hash:
        raise Drifted(
            "authority_changed",
            "what the change is about was changed since it was proposed",
            expected=action.evidence_hash,
            found=found,
        )
