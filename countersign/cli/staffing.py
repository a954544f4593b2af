"""Whether a tenant has the persons that its work needs: who asks and who decides, each with a good key.

Apart from `doctor`, which only shows it: the rule itself needs no ledger, file or server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from countersign.cli.rendering import STARTER
from countersign.domain.directory import REQUESTER, Person
from countersign.domain.errors import NotFound
from countersign.domain.policy import Policy


def manned(persons: Mapping[str, Person], policies: Iterable[Policy], tenant: str, moment: datetime) -> str:
    """Who can act in each role that is needed: `requester rita; reviewer bob, carl`.

    Raises:
        NotFound: fewer persons with a good key hold a role than must act in it; names each such role and what to do.
    """
    needed = _needed(policies)
    holders = {role: [one for one in persons.values() if one.active and role in one.roles] for role in needed}
    able = {role: [one.id for one in held if _has_key(one, moment)] for role, held in holders.items()}
    lacking = [
        _lack(role, needed[role], holders[role], able[role], tenant)
        for role in needed
        if len(able[role]) < needed[role]
    ]
    if lacking:
        raise NotFound("; ".join(lacking))
    return "; ".join(f"{role} {', '.join(names)}" for role, names in able.items())


def _needed(policies: Iterable[Policy]) -> dict[str, int]:
    """How many different persons must act in each role."""
    needed = {REQUESTER: 1}
    for need in (rule.need for policy in policies for rule in policy.rules):
        if need is not None:
            needed[need.role] = max(need.approvals, needed.get(need.role, 0))
    return needed


def _lack(role: str, needed: int, holders: list[Person], able: list[str], tenant: str) -> str:
    keyless = [person.id for person in holders if person.id not in able]
    if len(holders) >= needed:
        todo = f"{STARTER} keys new {keyless[0]} --tenant {tenant}"
        return f"role {role} needs {needed} with a good key; {', '.join(keyless)} has none; run: {todo}"
    who = f"only {', '.join(person.id for person in holders)} holds" if holders else "nobody holds"
    return f"{who} role {role}, which needs {needed}; add persons with: {STARTER} directory apply FILE"


def _has_key(person: Person, moment: datetime) -> bool:
    return any(key.good_at(moment) for key in person.keys)
