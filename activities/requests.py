"""The stored request of an operation, as every step on its draft needs it."""

from __future__ import annotations

from countersign.domain.draft import ReportRequest
from countersign.ports import Ledger


def stored_request(ledger: Ledger, tenant: str, operation: str) -> ReportRequest:
    """The request that the requester signed, by the hash in the registration."""
    registered = ledger.operations.get(tenant, operation)
    return ReportRequest.model_validate_json(ledger.documents.get(tenant, registered.request_hash))
