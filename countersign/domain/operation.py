"""An operation as it is registered: the request by its hash, signed by whoever asks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from countersign.domain.identity import OperationId, PersonId, TenantId
from countersign.domain.state import State
from countersign.domain.values import Instant, Sha256, Value


class RequestStatement(Value):
    """What the requester signs; the second kind of statement, `typ: request+jwt`."""

    installation: str
    person: PersonId
    key_id: str
    tenant: TenantId
    operation: OperationId
    request_hash: Sha256
    issued_at: Instant
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{16,64}$")]


class Operation(Value):
    """One business intent and where its run stands."""

    tenant: TenantId
    operation: OperationId
    case: str
    request_hash: Sha256
    """Hash of the request's canonical form; the request itself lies in the ledger's documents under it."""
    requester: PersonId
    statement: str
    """The requester's signed statement, as it came."""
    state: State = State.CREATED
    reason: str = ""
    """Reason code and sentence of the state, where it has one."""
    registered_at: Instant
    follows: OperationId | Literal[""] = ""
    """The operation on whose receipt it rests: what it compensates, or tells of; empty for all others."""
