"""`directory apply|show`: who is who in a tenant, from a file into the ledger, with the difference shown first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from countersign.cli import options
from countersign.cli.governing.authority import Asking, ask_for, askers, say_asked
from countersign.cli.governing.directory_file import change_to, described, in_words, read_directory
from countersign.cli.governing.staffing import idle_roles
from countersign.cli.rendering import STARTER, say, say_json, table, warn
from countersign.cli.session import OPERATOR, Session, now, opened, require_tenant
from countersign.domain.administration import DirectoryChange
from countersign.domain.directory import Person
from countersign.domain.policy import Policy


class Difference(NamedTuple):
    """What has to change in a tenant for it to be as the files say."""

    change: DirectoryChange
    policies: tuple[Policy, ...] = ()
    """To be put in force; none once the first set-up is closed, when they are asked for one by one."""


directory = typer.Typer(no_args_is_help=True, help="Show and change who is who in a tenant.")


@directory.command("apply")
def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Persons, roles and limits (YAML).", show_default=False)],
    person: options.OptionalSigner = None,
    key: options.KeyFile = None,
    reason: options.Reason = "",
    operation: options.OptionalOperation = None,
    yes: options.Yes = False,
) -> None:
    """Bring the directory to what a file says; after the first set-up an admin asks, and two others approve.

    Shows the difference and asks. Whoever of a named tenant is not in the file becomes inactive. In the first set-up it
    also puts the policy files in force.
    """
    with opened() as session:
        found = differences(session, file)
        asking = askers(session, found, Asking(person, key, reason, operation), f"directory apply {file}")
        if not found:
            say(f"nothing to do: the directory is as {file} says")
            return
        count = _shown(session, found)
        if not yes:
            typer.confirm(f"apply these {count} changes?", abort=True)
        for tenant, difference in found.items():
            if tenant in asking:
                say_asked(ask_for(session, tenant, difference.change, asking[tenant]))
            else:
                set_up(session, tenant, difference)
                say(f"{tenant}: applied directly, in the first set-up; the first start ends it")


@directory.command("show")
def show(tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """Show a tenant's persons, their roles, limits, and how many good keys they have."""
    with opened() as session:
        require_tenant(session, tenant)
        persons = session.ledger.directory.persons(tenant)
    if as_json:
        say_json([person.model_dump(mode="json") for person in persons.values()])
    elif persons:
        say(table(["PERSON", "ROLES AND LIMITS", "ACTIVE", "GOOD KEYS"], [_cells(one) for one in persons.values()]))
    else:
        say(f"tenant {tenant} has no persons; add them with: {STARTER} directory apply FILE")


def differences(session: Session, file: Path) -> dict[str, Difference]:
    """What has to change, by tenant, for all to be as the file and the policy files say; what is so is left out.

    Raises:
        ConfigurationRefused: naming the file and the field that is wrong.
    """
    wanted, moment = read_directory(file).tenants, now()
    changes = {
        tenant: Difference(
            change_to(entries, session.ledger.directory.persons(tenant), moment), _to_adopt(session, tenant)
        )
        for tenant, entries in wanted.items()
    }
    return {tenant: found for tenant, found in changes.items() if found.change.concerns or found.policies}


def set_up(session: Session, tenant: str, difference: Difference) -> None:
    """Make it so directly, which the first set-up alone allows; see `ports.Directory`."""
    if difference.policies:
        session.ledger.directory.adopt(tenant, difference.policies, OPERATOR, now())
    if difference.change.concerns:
        session.ledger.directory.set_up(tenant, difference.change, OPERATOR, now())


def _to_adopt(session: Session, tenant: str) -> tuple[Policy, ...]:
    from countersign.bootstrap import load_policies

    if not session.ledger.directory.set_up_open(tenant):
        return ()
    in_force = session.ledger.directory.policies(tenant)
    return tuple(one for name, one in load_policies(session.settings).items() if in_force.get(name) != one)


def _shown(session: Session, found: Mapping[str, Difference]) -> int:
    """Say each change, and warn of roles that mean nothing; how many changes there are."""
    count = 0
    for tenant, difference in found.items():
        authority = session.ledger.directory.authority(tenant)
        lines = [*described(tenant, difference.change, authority.persons)]
        lines += _adopted(tenant, difference.policies, authority.policies)
        say("\n".join(lines))
        count += len(lines)
        policies = {**authority.policies, **{one.policy: one for one in difference.policies}}
        for sentence in idle_roles(difference.change, authority.model_copy(update={"policies": policies}), now()):
            warn(sentence)
    return count


def _adopted(tenant: str, wanted: tuple[Policy, ...], in_force: Mapping[str, Policy]) -> Iterator[str]:
    for one in wanted:
        before = in_force.get(one.policy)
        yield f"{'+' if before is None else '~'} {tenant}: policy {one.label()} in force"


def _cells(person: Person) -> list[str]:
    good = sum(1 for key in person.keys if key.good_at(now()))
    active = person.model_copy(update={"active": True})
    return [person.id, in_words(active), "yes" if person.active else "no", str(good)]
