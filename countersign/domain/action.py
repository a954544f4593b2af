"""The action: the exact side effect that people authorise, and the hash that stands for all of it."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, JsonValue

from countersign.domain.canonical import digest
from countersign.domain.identity import OperationId, TenantId
from countersign.domain.money import Amount
from countersign.domain.strict_json import check_text
from countersign.domain.values import Sha256, Value

SCHEMA_VERSION = "2"
"""Version of the action's own form; a change of its fields changes every hash on purpose."""

Reversibility = Literal["reversible", "correctable", "irreversible"]

FactName = Literal["tool", "tool_version", "channel", "target", "side_effect", "scope", "environment"]
"""What policy conditions may look at; closed: a misspelt condition stops the start, and does not just never apply."""


def _plain_text(args: dict[str, JsonValue]) -> dict[str, JsonValue]:
    check_text(args, "action args")
    return args


class Action(Value):
    """One outward side effect, whole: nothing that matters to it lies outside this value (G14)."""

    tenant: TenantId
    operation: OperationId
    tool: str
    """The gateway's name of the effect: `publish_report`."""
    tool_version: str
    args: Annotated[dict[str, JsonValue], AfterValidator(_plain_text)]
    """The tool's arguments; money and large integers as text or minor units, never floats."""
    channel: str = ""
    """The way out that it takes, where the tool has several: a name in channels.yaml."""
    target: str
    """Who or what is changed: the channel and the name in it."""
    side_effect: str
    """What changes outside, in the policy's words: `internal_publication`, `external_publication`."""
    scope: str
    """How far it reaches: `one_document`."""
    environment: str
    """Which installation it is meant for: `dev`, `production`."""
    content_hash: Sha256
    """Hash of the bytes that go out."""
    evidence_hash: Sha256
    """Hash of the data they rest on."""
    policy_version: str
    """Name, version and hash of the policy that was asked."""
    amount: Amount | None = None
    """How much money it moves, where it moves any: what limits are compared with."""
    schema_version: str = SCHEMA_VERSION

    def hash(self) -> Sha256:
        """SHA-256 of the RFC 8785 form: what a person signs and the gateway executes."""
        return digest(self.model_dump(mode="json"))

    def idempotency_key(self) -> str:
        """The key sent outside: the same for every attempt, retry, reset and rebuild of this very action."""
        return idempotency_key(self.tenant, self.operation, self.hash())

    def likeness(self) -> Sha256:
        """Hash of what it would do, whatever the operation and the place are called: a rejected action keeps it when
        it is proposed again under another name."""
        fields = self.model_dump(
            mode="json",
            include={"tenant", "tool", "side_effect", "environment", "content_hash", "evidence_hash", "amount"},
        )
        return digest(fields)

    def facts(self) -> dict[str, str]:
        """What policy conditions may look at, by FactName."""
        return {name: getattr(self, name) for name in get_args(FactName)}


def idempotency_key(tenant: str, operation: str, action_hash: str) -> str:
    """A key from tenant, operation and action hash; hashed as a structure, since joined text could collide."""
    return digest({"tenant": tenant, "operation": operation, "action_hash": action_hash}).removeprefix("sha256:")
