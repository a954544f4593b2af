"""Which operation took another one's place, and whose place it took: the record of the old run's end names both.

Apart from superseding itself, since whoever looks at either of the two is to find the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from countersign.cli.session import Session
from countersign.domain.operation import Operation

_SUPERSEDED = "superseded"


def successor_of(session: Session, tenant: str, operation: str) -> str:
    """The operation that took this one's place; empty if none did."""
    ending = session.ledger.controls.standing(tenant, operation).ending
    if ending is None or ending.reason != _SUPERSEDED:
        return ""
    ended = (one for one in session.ledger.audit.records(tenant, operation) if one.type == "run.ended_by_person")
    return next((str(one.detail["successor"]) for one in ended if "successor" in one.detail), "")


def predecessors_of(session: Session, operation: Operation) -> Sequence[str]:
    """The operations whose place this one took; they are of the same requester."""
    return [
        one.operation
        for one in session.ledger.operations.list(operation.tenant)
        if one.requester == operation.requester and (one.reason == _SUPERSEDED or not one.state.terminal)
        and successor_of(session, one.tenant, one.operation) == operation.operation
    ]  # fmt: skip
