"""Changes of who may do what (roles, limits, keys, policy, freezes) as values: what they need, and must not do (G13).

Pure. They run through Countersign like any other action, under the policy `administration`, except the first set-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Literal, TypeVar

from pydantic import Field, field_validator

from countersign.domain.canonical import canonical_bytes
from countersign.domain.curve import is_public_key
from countersign.domain.directory import Key, Person, Standing
from countersign.domain.durations import duration
from countersign.domain.errors import ConfigurationRefused
from countersign.domain.freeze import Freeze
from countersign.domain.identity import Name, PersonId, TenantId
from countersign.domain.need import Approver, unmet
from countersign.domain.policy import Policy, Rule
from countersign.domain.values import Value

ADMINISTRATION: Literal["administration"] = "administration"
"""The case, and the policy, under which authority is changed."""
TWO_PERSONS = 2
"""How many must approve a change of authority at the least, whatever a policy says."""
_DECIDE, _EXECUTE = timedelta(hours=1), timedelta(minutes=5)
"""The least time that a policy must leave people, and the gateway, for a change of authority."""
TOOLS = {"directory": "change_directory", "policy": "change_policy", "unfreeze": "unfreeze_effects"}
"""The gateway's tools for the kinds of change."""
TOOL_VERSION, SIDE_EFFECT, SCOPE = "1", "authority_change", "authority"
"""What every change of authority is to the policies."""


def changes_authority(tool: str) -> bool:
    """Whether it is the tool of a change of authority, which no freeze holds."""
    return tool in TOOLS.values()


class PersonChange(Value):
    """A person as they are to be; one that the directory does not have is added."""

    person: PersonId
    standing: Standing


class KeyAddition(Value):
    """A public key that a person is to have."""

    person: PersonId
    key: Key


class KeyRevocation(Value):
    """A key that is to count no longer, from when the change is made."""

    person: PersonId
    key_id: Name


Entry = TypeVar("Entry", PersonChange, KeyAddition, KeyRevocation)


class DirectoryChange(Value):
    """Changes of persons and keys, made together or not at all."""

    kind: Literal["directory"] = "directory"
    persons: Annotated[tuple[PersonChange, ...], Field(strict=False)] = ()
    keys_added: Annotated[tuple[KeyAddition, ...], Field(strict=False)] = ()
    keys_revoked: Annotated[tuple[KeyRevocation, ...], Field(strict=False)] = ()

    @field_validator("persons", "keys_added", "keys_revoked")
    @classmethod
    def _in_one_order(cls, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """So that the same change asked for again is the same, however it is written."""
        return tuple(sorted(entries, key=lambda entry: entry.model_dump_json()))

    @property
    def concerns(self) -> frozenset[str]:
        """The persons that it is about."""
        named = [entry.person for entry in self.persons]
        named += [entry.person for entry in self.keys_added]
        return frozenset(named + [entry.person for entry in self.keys_revoked])


class PolicyChange(Value):
    """A policy that is to be in force instead of the one of its name."""

    kind: Literal["policy"] = "policy"
    policy: Policy


class UnfreezeChange(Value):
    """A freeze that is to hold effects no longer; one person freezes, and it takes two to lift it."""

    kind: Literal["unfreeze"] = "unfreeze"
    freeze: Annotated[int, Field(ge=1)]
    """Its number in the tenant."""


Change = Annotated[DirectoryChange | PolicyChange | UnfreezeChange, Field(discriminator="kind")]


class AdministrationRequest(Value):
    """What an administrator asks for, and signs."""

    case: Literal["administration"] = ADMINISTRATION
    reason: Annotated[str, Field(min_length=1, max_length=2_000)]
    change: Change


class Authority(Value):
    """Who may do what in a tenant at one moment: the directory, and the policies and freezes in force."""

    tenant: TenantId
    persons: dict[str, Person]
    policies: dict[str, Policy]
    freezes: Annotated[tuple[Freeze, ...], Field(strict=False)] = ()
    """Those that hold something now."""

    def freeze(self, number: int) -> Freeze | None:
        """The freeze of that number, if it holds anything."""
        return next((one for one in self.freezes if one.number == number and one.in_force), None)


def tool(change: Change) -> str:
    """The gateway's tool that makes it."""
    return TOOLS[change.kind]


def target(change: Change) -> str:
    """What it changes: `directory`, `policy:NAME`, `freeze:NUMBER`."""
    if isinstance(change, UnfreezeChange):
        return f"freeze:{change.freeze}"
    return f"policy:{change.policy.policy}" if isinstance(change, PolicyChange) else "directory"


def summary(change: Change) -> str:
    """What it comes to, in a line."""
    if isinstance(change, UnfreezeChange):
        return f"freeze {change.freeze} lifted, so that what it held can happen"
    if isinstance(change, PolicyChange):
        return f"policy {change.policy.policy} version {change.policy.version} in force"
    return f"the directory's entries of {', '.join(sorted(change.concerns))}"


def content(change: Change) -> bytes:
    """The change as the bytes that are hashed, shown and applied."""
    return canonical_bytes(change.model_dump(mode="json"))


def present(change: Change, authority: Authority) -> bytes:
    """What is there now of all that a change is about, in canonical form: what it rests on, and is checked against."""
    if isinstance(change, UnfreezeChange):
        freeze = authority.freeze(change.freeze)
        return canonical_bytes({"freeze": freeze.model_dump(mode="json") if freeze else None})
    if isinstance(change, PolicyChange):
        policy = authority.policies.get(change.policy.policy)
        return canonical_bytes({"policy": policy.model_dump(mode="json") if policy else None})
    known = {name: authority.persons.get(name) for name in sorted(change.concerns)}
    return canonical_bytes({name: person.model_dump(mode="json") if person else None for name, person in known.items()})


def problems(change: Change, authority: Authority, now: datetime) -> tuple[str, ...]:
    """Why a change must not be made, a sentence each; none means that it may be proposed."""
    if isinstance(change, UnfreezeChange):
        return tuple(_freeze_problems(change, authority))
    if isinstance(change, PolicyChange):
        return tuple(_policy_problems(change.policy, authority, now))
    found = list(entry_problems(change, authority.persons))
    if not found:
        after = changed(authority, change, now)
        found += lockout(after, authority.policies.get(ADMINISTRATION), now)
    return tuple(found)


def changed(authority: Authority, change: DirectoryChange, now: datetime) -> dict[str, Person]:
    """The directory after a change without problems."""
    after = dict(authority.persons)
    for entry in change.persons:
        keys = after[entry.person].keys if entry.person in after else ()
        fields = {name: getattr(entry.standing, name) for name in Standing.model_fields}
        after[entry.person] = Person(tenant=authority.tenant, id=entry.person, keys=keys, **fields)
    for added in change.keys_added:
        person = after[added.person]
        after[added.person] = person.model_copy(update={"keys": (*person.keys, added.key)})
    for revoked in change.keys_revoked:
        person = after[revoked.person]
        after[revoked.person] = person.model_copy(update={"keys": _without(person.keys, revoked.key_id, now)})
    return after


def lockout(persons: Mapping[str, Person], policy: Policy | None, now: datetime) -> tuple[str, ...]:
    """Why these persons could not change their own directory any more: one asks, and others must be able to approve.

    Args:
        persons: the directory, as it would be.
        policy: the policy `administration`; without one nothing can be changed.
        now: when keys must be good, and until a change that is asked for now could be made.
    """
    if policy is None:
        return (
            f"there is no policy {ADMINISTRATION!r}, so nothing could ever be changed; add one to the policy files",
        )
    until = now + max(map(_longest, policy.rules), default=timedelta(0))
    signers = {
        name: person for name, person in persons.items()
        if person.active and any(key.good_at(now) and key.good_at(until) for key in person.keys)
    }  # fmt: skip
    stuck = (_stuck(policy, facts, signers) for facts in _changes_to_keep(policy))
    return tuple(dict.fromkeys(problem for problem in stuck if problem))


def check_floor(policy: Policy) -> None:
    """Refuse a policy for changes of authority that does with less than two persons.

    Raises:
        ConfigurationRefused: names the rule.
    """
    if policy.policy != ADMINISTRATION:
        return
    for rule in policy.rules:
        if rule.need is None or rule.need.approvals < TWO_PERSONS:
            raise ConfigurationRefused(
                f"policy {ADMINISTRATION}: rules.{rule.id}: changes of authority need two persons; give a 'need' with "
                f"'approvals: {TWO_PERSONS}' or more"
            )
        if duration(rule.need.decide_within) < _DECIDE or duration(rule.need.execute_within) < _EXECUTE:
            raise ConfigurationRefused(
                f"policy {ADMINISTRATION}: rules.{rule.id}.need: nobody could decide in so short a time; give "
                "decide_within 1h and execute_within 5m, or longer"
            )
    if policy.terms.after_rejection.then != "flag":
        # One administrator's no would otherwise keep everybody from revoking that very administrator's key.
        raise ConfigurationRefused(
            f"policy {ADMINISTRATION}: terms.after_rejection.then: a rejected change of authority can be asked "
            "for again; give 'flag'"
        )


def _freeze_problems(change: UnfreezeChange, authority: Authority) -> Iterator[str]:
    if authority.freeze(change.freeze) is None:
        held = ", ".join(str(one.number) for one in authority.freezes if one.in_force)
        yield f"freeze {change.freeze} is not in force, so there is nothing to lift; in force: {held or 'none'}"


def _policy_problems(policy: Policy, authority: Authority, now: datetime) -> Iterator[str]:
    present_one = authority.policies.get(policy.policy)
    wanted = present_one.version + 1 if present_one is not None else policy.version
    if policy.version != wanted:
        # A leap to the largest number there is would be the last change ever.
        yield f"policy {policy.policy}: version {policy.version} does not follow the one in force; make it {wanted}"
    try:
        check_floor(policy)
    except ConfigurationRefused as refused:
        yield refused.message
    if policy.policy == ADMINISTRATION:
        yield from lockout(authority.persons, policy, now)


def entry_problems(change: DirectoryChange, persons: Mapping[str, Person]) -> Iterator[str]:
    """Why the entries of a change do not fit the directory, a sentence each; whether it locks anyone out aside."""
    named = [entry.person for entry in change.persons]
    if not change.concerns:
        yield "the change changes nothing"
    yield from (f"{name} stands twice" for name in sorted({name for name in named if named.count(name) > 1}))
    taken = {key.id for person in persons.values() for key in person.keys}
    held = {key.public_key for person in persons.values() for key in person.keys}
    for added in change.keys_added:
        if added.person not in persons and added.person not in named:
            yield f"{added.person} is not in the directory, so no key can be added"
        if added.key.id in taken:
            yield f"key id {added.key.id} is taken; choose another id"
        if not is_public_key(added.key.public_key):
            # It could sign nothing, or anybody for it, and would yet stand for somebody who can (lockout).
            yield f"the public key for {added.person} is no Ed25519 public key in base64url; take it from 'keys new'"
        if added.key.public_key in held:
            # One private key must never speak for two persons (G04), nor come back after its revocation.
            yield f"the public key for {added.person} is registered already; make a new key pair"
        taken.add(added.key.id)
        held.add(added.key.public_key)
    for revoked in change.keys_revoked:
        person = persons.get(revoked.person)
        if person is None or person.key(revoked.key_id) is None:
            yield f"{revoked.person} has no key {revoked.key_id}"


def _without(keys: tuple[Key, ...], key_id: str, now: datetime) -> tuple[Key, ...]:
    """What was revoked before stays so from then on."""
    return tuple(
        key.model_copy(update={"revoked_at": min(key.revoked_at or now, now)}) if key.id == key_id else key
        for key in keys
    )


def _longest(rule: Rule) -> timedelta:
    """How long a change under this rule may take: whoever is to approve must be able to sign all that time."""
    need = rule.need
    return need.open_for() + duration(need.execute_within) if need is not None else timedelta(0)


def _changes_to_keep(policy: Policy) -> Iterator[dict[str, str]]:
    """Facts of the changes from which every other one can be made, in each environment that the policy tells apart.

    Lifting a freeze is none of them: a policy that forgot it, or is older than it, can be given a rule for it, since no
    freeze holds a change of authority.
    """
    named = {value for rule in policy.rules for value in rule.allowed("environment")}
    for kind, changed_target in (("directory", "directory"), ("policy", f"policy:{ADMINISTRATION}")):
        facts = {"tool": TOOLS[kind], "tool_version": TOOL_VERSION, "target": changed_target,
                 "side_effect": SIDE_EFFECT, "scope": SCOPE}  # fmt: skip
        yield from ({**facts, "environment": environment} for environment in ("any other", *sorted(named)))


def _stuck(policy: Policy, facts: Mapping[str, str], signers: Mapping[str, Person]) -> str:
    """Why nobody could make that change, in a sentence; empty if somebody could."""
    needs = tuple(rule.need for rule in policy.rules
                  if rule.need is not None and rule.amount is None and rule.fits(facts))  # fmt: skip
    # Once the last tier has begun; what begins when the time is over never counts.
    waited = min((need.open_for() for need in needs), default=timedelta(0)) - timedelta.resolution
    if not needs or any("approve" not in need.offered(waited) for need in needs):
        return (f"policy {policy.policy}: no rule lets people approve {facts['tool']} of {facts['target']} in "
                f"environment {facts['environment']}, so it could never be made; give one whose 'need' allows "
                "'approve'")  # fmt: skip
    could = {name: Approver(person, waited) for name, person in signers.items()
             if all("approve" in need.allowed(person, waited) for need in needs)}  # fmt: skip
    for asker in (name for name, person in signers.items() if person.may(policy.asked_by)):
        if not unmet(needs, {name: approver for name, approver in could.items() if name != asker}):
            return ""
    wanted = " and ".join(dict.fromkeys(f"{need.approvals} others with the role {need.role}" for need in needs))
    return (f"nobody could change the directory any more: one person with the role {policy.asked_by} must be able to "
            f"ask, and {wanted} to approve, each active and with a good key")  # fmt: skip
