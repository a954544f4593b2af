"""Persons of a tenant, their roles and keys, as the ledger knows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from countersign.domain.identity import Name, PersonId, TenantId
from countersign.domain.values import Instant, Value

Role = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]

REQUESTER = "requester"
"""The role that may ask for operations; the roles that may decide stand in the policy."""


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


class Person(Value):
    """One human being in one tenant; two ids are two persons, two keys of one id are one (G03, G04)."""

    tenant: TenantId
    id: PersonId
    roles: Annotated[frozenset[Role], Field(strict=False)]
    keys: Annotated[tuple[Key, ...], Field(strict=False)] = ()
    active: bool = True

    @property
    def may_request(self) -> bool:
        """Whether this person may ask for operations."""
        return self.active and REQUESTER in self.roles

    def key(self, key_id: str) -> Key | None:
        """The key of that id, or nothing."""
        return next((key for key in self.keys if key.id == key_id), None)
