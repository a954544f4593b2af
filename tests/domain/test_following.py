"""What can be followed: what the outside has confirmed, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from countersign.domain.execution import Execution, ExecutionStatus, Receipt
from countersign.domain.following import receipt_to_follow
from countersign.domain.values import Sha256

HASH = Sha256("sha256:" + "1" * 64)
RECEIPT = Receipt(channel="press", key="a" * 64, reference="press/1", content_hash=HASH)


def execution(status: ExecutionStatus, receipt: Receipt | None) -> Execution:
    return Execution(
        tenant="acme", operation="op-1", approval_id="apr-1", action_hash=HASH, key="a" * 64, status=status, attempt=1,
        claimed_until=datetime(2026, 11, 30, tzinfo=UTC), receipt=receipt,
    )  # fmt: skip


@pytest.mark.guarantee("G38")
@pytest.mark.parametrize("status", ExecutionStatus)
def test_only_a_confirmed_effect_is_followed(status: ExecutionStatus) -> None:
    expected = RECEIPT if status == ExecutionStatus.EXECUTED else None
    assert receipt_to_follow(execution(status, RECEIPT)) == expected
    assert receipt_to_follow(execution(status, None)) is None
    assert receipt_to_follow(None) is None
