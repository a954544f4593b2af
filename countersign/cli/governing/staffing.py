"""Whether a tenant has the persons that its work needs: who asks and who decides, each with a good key.

Apart from `doctor`, which only shows it: the rule itself needs no ledger, file or server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from countersign.cli.rendering import STARTER
from countersign.domain.administration import Authority, Change, PolicyChange, UnfreezeChange
from countersign.domain.control import OPERATOR
from countersign.domain.directory import Person
from countersign.domain.errors import NotFound
from countersign.domain.policy import Policy


def manned(persons: Mapping[str, Person], policies: Iterable[Policy], tenant: str, moment: datetime) -> str:
    """Who can act in each role that is needed: `requester rita; reviewer bob, carl`, roles by name.

    Raises:
        NotFound: no policy is in force, or fewer persons with a good key hold a role than must act in it; names each
            such role and what to do.
    """
    needed = _needed(policies)
    holders = {role: [one for one in persons.values() if one.may(role)] for role in needed}
    able = {role: [one.id for one in held if one.has_good_key(moment)] for role, held in holders.items()}
    lacking = [
        _lack(role, needed[role], holders[role], able[role], tenant)
        for role in needed
        if len(able[role]) < needed[role]
    ]
    if not needed:
        raise NotFound(f"no policy is in force; put the policy files in force with: {STARTER} directory apply FILE")
    if lacking:
        raise NotFound("; ".join(lacking))
    return "; ".join(f"{role} {', '.join(names)}" for role, names in able.items())


def idle_roles(change: Change, authority: Authority, moment: datetime) -> Iterator[str]:
    """A sentence for each role in a change that lets nobody do anything: no policy names it, or nobody can act in it.

    Mostly a misspelt one; a warning and no refusal, since the other half may well be asked for next.
    """
    if isinstance(change, PolicyChange):
        able = [one for one in authority.persons.values() if one.active and one.has_good_key(moment)]
        held = {role for one in able for role in one.roles}
        for role in sorted(set(_needed([change.policy])) - held):
            policy = change.policy.policy
            yield f"policy {policy} names role {role}, which nobody with a good key holds in tenant {authority.tenant}"
        return
    if isinstance(change, UnfreezeChange):
        return
    named = _needed(authority.policies.values())
    given = {role for entry in change.persons for role in entry.standing.roles}
    for role in sorted(given - {*named, OPERATOR}):
        yield f"no policy in tenant {authority.tenant} names role {role}; the roles they name: {', '.join(named)}"


def too_few_to_settle(persons: Mapping[str, Person], policies: Iterable[Policy], moment: datetime) -> Iterator[str]:
    """A sentence for each role of which two may have to settle an unknown outcome, and fewer than two can.

    A warning and no lack: all else goes on, and what was sent is looked up all the same.
    """
    named: dict[str, list[str]] = {}
    for policy in policies:
        if policy.settling is not None and policy.settling.two_over:
            named.setdefault(policy.settling.role, []).append(policy.policy)
    for role, asking in sorted(named.items()):
        able = [one.id for one in persons.values() if one.may(role) and one.has_good_key(moment)]
        if len(able) < 2:
            who = f"{able[0]} alone holds" if able else "nobody holds"
            yield (
                f"settling by policies {', '.join(sorted(asking))} can need two of role {role}, which {who} with a good"
                " key; until there is a second one a large unknown outcome cannot be settled"
            )


def _needed(policies: Iterable[Policy]) -> dict[str, int]:
    """How many different persons must act in each role."""
    needed: dict[str, int] = {}
    for policy in policies:
        needed.setdefault(policy.asked_by, 1)
        for need in (rule.need for rule in policy.rules):
            if need is not None:
                needed[need.role] = max(need.approvals, needed.get(need.role, 0))
                for tier in need.ladder.tiers:
                    needed.setdefault(tier.role, 1)
        if (glass := policy.terms.break_glass) is not None:
            needed[glass.role] = max(glass.approvals, needed.get(glass.role, 0))
        if policy.takeover is not None:
            needed.setdefault(policy.takeover.role, 1)
        if policy.answering is not None:
            needed.setdefault(policy.answering.role, 1)
            for tier in policy.answering.ladder.tiers:
                needed.setdefault(tier.role, 1)
        for route in policy.escalations.values():
            needed.setdefault(route.role, 1)
    return dict(sorted(needed.items()))


def _lack(role: str, needed: int, holders: list[Person], able: list[str], tenant: str) -> str:
    keyless = [person.id for person in holders if person.id not in able]
    if len(holders) >= needed:
        todo = f"{STARTER} keys new {' '.join(keyless)} --tenant {tenant}"
        return f"role {role} needs {needed} with a good key; without one: {', '.join(keyless)}; run: {todo}"
    who = f"only {', '.join(person.id for person in holders)} holds" if holders else "nobody holds"
    return f"{who} role {role}, which needs {needed}; add persons with: {STARTER} directory apply FILE"
