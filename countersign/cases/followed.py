"""What an operation did, for those that follow it: its receipt in the ledger, and the action that people let happen.

Apart from the cases that follow, since they rest on the same: a local record never claims what the outside has not
confirmed, so an operation without a receipt is followed by nothing.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from countersign.domain.compensation import CompensationRequest, MessageRequest
from countersign.domain.errors import Conflict
from countersign.domain.execution import Receipt
from countersign.domain.following import receipt_to_follow
from countersign.domain.operation import Operation
from countersign.domain.proposal import Proposal
from countersign.ports import Ledger

R = TypeVar("R", CompensationRequest, MessageRequest)


class Followed(NamedTuple):
    """An operation whose effect is confirmed."""

    operation: Operation
    proposal: Proposal
    """What was executed, as it was put before people or granted by rule."""
    receipt: Receipt


def confirmed(ledger: Ledger, tenant: str, operation: str) -> Followed:
    """The operation with its receipt.

    Raises:
        NotFound: there is no such operation.
        Conflict: nothing is confirmed of it, in a sentence that says how it stands.
    """
    stored = ledger.operations.get(tenant, operation)
    execution = ledger.executions.get(tenant, operation)
    if execution is None:
        raise Conflict(f"operation {operation} is {stored.state.value}: nothing was sent for it, so nothing follows it")
    receipt = receipt_to_follow(execution)
    if receipt is None:
        raise Conflict(
            f"operation {operation} is {stored.state.value}: its effect is {execution.status.value}, and nothing "
            "follows it until it is confirmed"
        )
    approval = ledger.approvals.get(tenant, execution.approval_id)
    return Followed(stored, approval.proposal, receipt)


def asked_behind(ledger: Ledger, operation: Operation, form: type[R]) -> tuple[R, Followed]:
    """The signed request of an operation that follows another one, and what that one did.

    Raises:
        NotFound: there is no such operation.
        Conflict: it is registered behind another one than its request names, or nothing is confirmed of that.
    """
    request = form.model_validate_json(ledger.documents.get(operation.tenant, operation.request_hash))
    if operation.follows != request.follows:
        raise Conflict(
            f"operation {operation.operation} is registered behind {operation.follows or 'nothing'}, and its request "
            f"names {request.follows}"
        )
    return request, confirmed(ledger, operation.tenant, request.follows)
