"""Persons of a tenant, their roles, limits and keys, as the ledger knows them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer, field_validator, model_validator

from countersign.domain.durations import Duration
from countersign.domain.identity import Name, PersonId, TenantId
from countersign.domain.money import WrittenAmount
from countersign.domain.values import Instant, Value

_ROLE = re.compile(r"[a-z][a-z0-9_]{0,31}")


def _role(text: str) -> str:
    if _ROLE.fullmatch(text) is None:
        raise ValueError(f"role {text[:40]!r} is not allowed; use 1 to 32 of a-z 0-9 _ starting with a-z")
    return text


Role = Annotated[str, AfterValidator(_role)]

REQUESTER = "requester"
"""The role that may ask for operations where a policy names no other."""
ADMIN = "admin"
"""The role that asks for, and decides about, changes of who may do what; see policies/administration.yaml."""


class Key(Value):
    """A person's Ed25519 public key and when it is good."""

    id: Name
    """The `kid` of statements made with it."""
    public_key: str
    """32 raw bytes, base64url without padding."""
    not_before: Instant
    not_after: Instant | None = None
    revoked_at: Instant | None = None

    def good_at(self, moment: datetime) -> bool:
        """Whether a statement made with this key counts at `moment`."""
        if self.revoked_at is not None and moment >= self.revoked_at:
            return False
        return self.not_before <= moment and (self.not_after is None or moment < self.not_after)


class Limit(Value):
    """How much money one person may approve in one currency (G08)."""

    each: WrittenAmount
    """The largest single action."""
    total: WrittenAmount | None = None
    """The most in sum within `within`, this action included."""
    within: Duration | None = None

    @model_validator(mode="after")
    def _whole(self) -> Limit:
        if (self.total is None) != (self.within is None):
            raise ValueError("give 'total' and 'within' together, or neither")
        if self.total is not None and self.total.currency != self.each.currency:
            raise ValueError("'each' and 'total' need the same currency")
        return self

    @property
    def currency(self) -> str:
        """The one currency that it is about."""
        return self.each.currency


class Standing(Value):
    """What a person may do in a tenant: the part of the directory that an administrator writes."""

    roles: Annotated[frozenset[Role], Field(strict=False), PlainSerializer(sorted, when_used="json")]
    """In JSON by name: what is hashed is the same in every process."""
    active: bool = True
    limits: Annotated[tuple[Limit, ...], Field(strict=False)] = ()
    """At most one per currency; an amount in a currency without a limit can be approved by nobody."""

    @field_validator("limits")
    @classmethod
    def _in_one_order(cls, limits: tuple[Limit, ...]) -> tuple[Limit, ...]:
        """So that the same standing is the same, however it is written."""
        return tuple(sorted(limits, key=lambda limit: limit.currency))

    @model_validator(mode="after")
    def _one_limit_per_currency(self) -> Standing:
        if len({limit.currency for limit in self.limits}) < len(self.limits):
            raise ValueError("give at most one limit per currency")
        return self

    def limit(self, currency: str) -> Limit | None:
        """The limit in that currency, or nothing."""
        return next((limit for limit in self.limits if limit.currency == currency), None)

    def may(self, role: str) -> bool:
        """Whether this person is active and has the role."""
        return self.active and role in self.roles


class Person(Standing):
    """One human being in one tenant; two ids are two persons, two keys of one id are one (G03, G04)."""

    tenant: TenantId
    id: PersonId
    keys: Annotated[tuple[Key, ...], Field(strict=False)] = ()

    @property
    def standing(self) -> Standing:
        """Roles, activity and limits without name and keys."""
        return Standing(roles=self.roles, active=self.active, limits=self.limits)

    def key(self, key_id: str) -> Key | None:
        """The key of that id, or nothing."""
        return next((key for key in self.keys if key.id == key_id), None)

    def has_good_key(self, moment: datetime) -> bool:
        """Whether this person can sign at `moment`."""
        return any(key.good_at(moment) for key in self.keys)
