"""What a change of authority would change, person by person, role by role, key by key, rule by rule. Pure.

Apart from administration, which says whether a change may be made; this is what people read before they agree to it.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from countersign.domain.administration import Authority, Change, PolicyChange, UnfreezeChange, changed
from countersign.domain.differences import Difference, differences, facts
from countersign.domain.directory import Key, Limit, Person
from countersign.domain.freeze import Freeze
from countersign.domain.money import Amount
from countersign.domain.policy import Policy
from countersign.domain.strict_json import parse

MAX_BYTES = 4_000_000
_CHANGE: TypeAdapter[Change] = TypeAdapter(Change)


def authority_differences(tenant: str, content: bytes, live: bytes, now: datetime) -> tuple[Difference, ...]:
    """Every place where what is in force would differ.

    Args:
        tenant: whose authority it is.
        content: the change, as `administration.content` writes it.
        live: what is in force of all that it is about, as `administration.present` writes it.
        now: when revoked keys would be revoked.

    Raises:
        InputRefused, ValidationError: for anything else; a change that cannot be read is no change without differences.
    """
    change = _CHANGE.validate_json(content)
    before = parse(live, where="what is in force", max_bytes=MAX_BYTES)
    if isinstance(change, UnfreezeChange):
        held = before["freeze"]
        return differences({} if held is None else _freeze(Freeze.model_validate_json(json.dumps(held))), {})
    if isinstance(change, PolicyChange):
        old = before["policy"]
        in_force = {} if old is None else _policy(Policy.model_validate_json(json.dumps(old)))
        return differences(in_force, _policy(change.policy))
    persons = {name: Person.model_validate_json(json.dumps(one)) for name, one in before.items() if one is not None}
    after = changed(Authority(tenant=tenant, persons=persons, policies={}), change, now)
    return differences(_persons(persons), _persons(after))


def _persons(persons: dict[str, Person]) -> dict[str, str]:
    return {f"{name}.{place}": fact for name, person in persons.items() for place, fact in _person(person).items()}


def _person(person: Person) -> dict[str, str]:
    return {
        "active": "yes" if person.active else "no",
        **{f"roles.{role}": "held" for role in person.roles},
        **{f"limits.{limit.currency}": _limit(limit) for limit in person.limits},
        **{f"keys.{key.id}": _key(key) for key in person.keys},
    }


def _limit(limit: Limit) -> str:
    total = f", {limit.total} within {limit.within}" if limit.total is not None else ""
    return f"{limit.each} at once{total}"


def _key(key: Key) -> str:
    end = f" until {key.not_after.isoformat()}" if key.not_after is not None else ""
    revoked = ", revoked" if key.revoked_at is not None else ""
    return f"{key.public_key}, good from {key.not_before.isoformat()}{end}{revoked}"


def _freeze(freeze: Freeze) -> dict[str, str]:
    holds = f"tool {freeze.tool}" if freeze.tool else "every effect but changes of authority"
    return {
        f"freeze.{freeze.number}": f"{holds} held since {freeze.since.isoformat()} by {freeze.person}: {freeze.reason}"
    }


def _policy(policy: Policy) -> dict[str, str]:
    """Rules by their ids and not by their places: their order means nothing."""
    value = policy.model_dump(mode="json", exclude={"rules"}, exclude_none=True)
    value["rules"] = {rule.id: rule.model_dump(mode="json", exclude={"id"}, exclude_none=True) for rule in policy.rules}
    return facts(with_amounts(value))


def with_amounts(value: Any) -> Any:
    """The same JSON value with amounts as people write them: `1000.00 EUR`."""
    if isinstance(value, dict):
        if value.keys() == set(Amount.model_fields):
            return str(Amount.model_validate(value))
        return {name: with_amounts(part) for name, part in value.items()}
    return [with_amounts(part) for part in value] if isinstance(value, list) else value
