"""Tenants as tests need them: persons with keys, the policies in force, the first set-up closed, and changes after it.

Apart from the builders because an operation can only be registered where somebody may decide about it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.action import Action
from countersign.domain.administration import (
    ADMINISTRATION,
    SCOPE,
    SIDE_EFFECT,
    TOOL_VERSION,
    Change,
    DirectoryChange,
    KeyAddition,
    KeyRevocation,
    PersonChange,
    content,
    present,
    target,
    tool,
)
from countersign.domain.canonical import sha256_hex
from countersign.domain.directory import Key, Limit, Person
from countersign.domain.freeze import FreezeOrder
from countersign.domain.policy import Policy
from countersign.ledger import SqlLedger
from countersign.signing.keys import public_text
from countersign.signing.statements import sign_freeze
from tests.ledger.builders import INSTALLATION, NOW, TENANT, person

NEWCOMER = "initech"
"""A tenant whose first set-up races are about."""
ROLES = {
    "rita": "requester",
    "bob": "reviewer",
    "carl": "reviewer",
    "dora": "reviewer",
    "ivan": "intern",
    "ada": "admin",
    "ben": "admin",
    "cleo": "admin",
    "lena": "lead",
    "lars": "lead",
    "otto": "operator",
}
LIMIT = Limit.model_validate({"each": "1000.00 EUR", "total": "2500.00 EUR", "within": "7d"})
"""What each reviewer may approve."""


def private_key(id: str) -> Ed25519PrivateKey:
    """The private key of the public key `id`; each id has another."""
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(id.encode()).digest())


def key(id: str, **changes: Any) -> Key:
    """A public key, good from NOW on."""
    return Key(**{"id": id, "public_key": public_text(private_key(id)), "not_before": NOW, **changes})


def policy(name: str, role: str, version: int = 1, approvals: int = 1, **changes: Any) -> Policy:
    """A policy whose one rule needs people of one role, for changes of authority and publications."""
    need = {"role": role, "approvals": approvals, "decisions": ["approve"], "decide_within": "1h"}
    rule = {
        "id": "all",
        "when": {"side_effect": [SIDE_EFFECT, "external_publication"]},
        "need": {**need, "execute_within": "1h"},
    }
    return Policy.model_validate({"policy": name, "version": version, "rules": [rule], **changes})


TAKEOVER = {"role": "lead", "lease": "8h"}
POLICIES = (
    policy("report", "reviewer", takeover=TAKEOVER),
    policy(ADMINISTRATION, "admin", approvals=2, asked_by="admin"),
)


def enrolment(*persons: Person) -> DirectoryChange:
    """The change that adds, or alters, these persons, each new one with the key `NAME-1`."""
    return DirectoryChange(
        persons=tuple(PersonChange(person=one.id, standing=one.standing) for one in persons),
        keys_added=tuple(KeyAddition(person=one.id, key=key(f"{one.id}-1")) for one in persons),
    )


def standing(*persons: Person) -> DirectoryChange:
    """The change that gives persons their roles, limits and activity, and no key."""
    return DirectoryChange(persons=tuple(PersonChange(person=one.id, standing=one.standing) for one in persons))


def added(person: str, *keys: Key) -> DirectoryChange:
    """The change that gives a person keys."""
    return DirectoryChange(keys_added=tuple(KeyAddition(person=person, key=one) for one in keys))


def revoked(person: str, key_id: str) -> DirectoryChange:
    """The change that revokes a key."""
    return DirectoryChange(keys_revoked=(KeyRevocation(person=person, key_id=key_id),))


def founders(tenant: str = TENANT) -> list[Person]:
    """The persons of ROLES; reviewers with LIMIT."""
    return [
        person(name, role, tenant=tenant, limits=(LIMIT,) if role == "reviewer" else ())
        for name, role in ROLES.items()
    ]  # fmt: skip


def found(
    ledger: SqlLedger, tenant: str = TENANT, more: Iterable[Person] = (), policies: Sequence[Policy] = POLICIES
) -> None:
    """Make the first set-up of a tenant and close it; one that has been founded stays as it is."""
    if ledger.directory.set_up_open(tenant):
        ledger.directory.set_up(tenant, enrolment(*founders(tenant), *more), "setup", NOW)
        ledger.directory.adopt(tenant, policies, "rita", NOW)
        ledger.directory.close_set_up(tenant, "rita", NOW)


def change_action(ledger: SqlLedger, change: Change, operation: str, tenant: str) -> Action:
    """The action that stands for a change of what is there now."""
    return Action(
        tenant=tenant,
        operation=operation,
        tool=tool(change),
        tool_version=TOOL_VERSION,
        args={"change": change.model_dump(mode="json")},
        target=target(change),
        side_effect=SIDE_EFFECT,
        scope=SCOPE,
        environment="test",
        content_hash=sha256_hex(content(change)),
        evidence_hash=sha256_hex(present(change, ledger.directory.authority(tenant))),
        policy_version="administration/1",
    )


def apply(
    ledger: SqlLedger,
    change: Change,
    operation: str = "change-1",
    *,
    tenant: str = TENANT,
    now: datetime = NOW,
) -> Action:
    """Make a change as the gateway does with a granted action; return the action."""
    action = change_action(ledger, change, operation, tenant)
    ledger.directory.apply(tenant, change, action, now)
    return action


def order(by: str = "otto", *, id: str = "a-signed-order-1", tenant: str = TENANT, **changes: Any) -> str:
    """The signed order of a person to hold every effect."""
    fields: dict[str, Any] = {
        "installation": INSTALLATION, "person": by, "key_id": f"{by}-1", "tenant": tenant, "tool": "",
        "reason": "a figure on the front page is wrong", "issued_at": NOW, "id": id,
    }  # fmt: skip
    return sign_freeze(FreezeOrder(**{**fields, **changes}), private_key(f"{by}-1"))
