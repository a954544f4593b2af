"""What can be followed: an effect that the outside has confirmed, whatever state its operation has ended in.

Apart from those who ask, so that starter, steps, cases and ledger cannot say different things of it. The gateway does
not take it from here: it compares the receipt itself with the one that its action is about.
"""

from __future__ import annotations

from countersign.domain.execution import Execution, ExecutionStatus, Receipt


def receipt_to_follow(execution: Execution | None) -> Receipt | None:
    """The receipt on which rests whatever follows this execution's operation; None where nothing may follow it yet."""
    if execution is None or execution.status != ExecutionStatus.EXECUTED:
        return None
    return execution.receipt
