"""`directory apply|show`: who is who in a tenant, from a file into the ledger, with the difference shown first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from pydantic import Field

from countersign.cli import options
from countersign.cli.keys import OPERATOR
from countersign.cli.rendering import STARTER, say, say_json, table
from countersign.cli.session import Session, now, opened
from countersign.domain.directory import Person, Role
from countersign.domain.identity import PersonId, TenantId
from countersign.domain.values import Value
from countersign.ports import Ledger
from countersign.strict_yaml import load

directory = typer.Typer(no_args_is_help=True, help="Show and change who is who in a tenant.")


class DirectoryFile(Value):
    """The form of a directory file."""

    tenants: Annotated[dict[TenantId, dict[PersonId, tuple[Role, ...]]], Field(min_length=1, strict=False)]
    """Tenant, person, roles; whoever of a named tenant is not in it becomes inactive."""


class Change(NamedTuple):
    """One person as they are to be, and how that differs, in a line."""

    person: Person
    line: str


@directory.command("apply")
def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Persons and roles (YAML).", show_default=False)],
    yes: options.Yes = False,
) -> None:
    """Bring the ledger to what a file says about its tenants; shows the difference and asks."""
    with opened() as session:
        changes = differences(session.ledger, file)
        if not changes:
            say(f"nothing to do: the directory is as {file} says")
            return
        for change in changes:
            say(change.line)
        if not yes:
            typer.confirm(f"apply these {len(changes)} changes?", abort=True)
        apply_changes(session, changes)
    say(f"{len(changes)} changes applied")


@directory.command("show")
def show(tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """Show a tenant's persons, their roles and how many good keys they have."""
    with opened() as session:
        persons = session.ledger.directory.persons(tenant)
    if as_json:
        say_json([{**p.model_dump(mode="json", exclude={"roles"}), "roles": sorted(p.roles)} for p in persons.values()])
    elif persons:
        say(table(["PERSON", "ROLES", "ACTIVE", "GOOD KEYS"], [_cells(person) for person in persons.values()]))
    else:
        say(f"tenant {tenant} has no persons; add them with: {STARTER} directory apply FILE")


def differences(ledger: Ledger, file: Path) -> list[Change]:
    """What has to change for the ledger to be as the file says."""
    changes = []
    for tenant, wanted in load(file, DirectoryFile).tenants.items():
        known = ledger.directory.persons(tenant)
        for name, roles in wanted.items():
            person = Person(tenant=tenant, id=name, roles=frozenset(roles))
            changes += _difference(known.get(name), person)
        gone = [person for name, person in known.items() if name not in wanted and person.active]
        changes += [Change(p.model_copy(update={"active": False}), f"- {tenant}/{p.id}: inactive") for p in gone]
    return changes


def apply_changes(session: Session, changes: list[Change]) -> None:
    """Write them into the ledger, each with its audit record."""
    for change in changes:
        session.ledger.directory.put_person(change.person, OPERATOR, now())


def _difference(known: Person | None, wanted: Person) -> list[Change]:
    where = f"{wanted.tenant}/{wanted.id}"
    roles = ", ".join(sorted(wanted.roles)) or "no role"
    if known is None:
        return [Change(wanted, f"+ {where}: {roles}")]
    if known.roles == wanted.roles and known.active:
        return []
    return [Change(wanted, f"~ {where}: {', '.join(sorted(known.roles)) or 'no role'} -> {roles}, active")]


def _cells(person: Person) -> list[str]:
    good = sum(1 for key in person.keys if key.good_at(now()))
    return [person.id, ", ".join(sorted(person.roles)), "yes" if person.active else "no", str(good)]
