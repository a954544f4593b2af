"""The three ways in which people end a run, and what must not happen after any end."""

from __future__ import annotations

import pytest

from countersign import bootstrap
from countersign.domain.command import CommandKind
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.workflow.acting import approval, records

WAYS: list[tuple[CommandKind, str, dict[str, str], State, str]] = [
    ("withdraw", "rita", {}, State.WITHDRAWN, "withdrawn"),
    ("supersede", "rita", {"successor": "op-9"}, State.CANCELLED, "superseded"),
    ("cancel", "lea", {}, State.CANCELLED, "cancelled_by_operator"),
]
CLOSED_AS = {
    "withdraw": ApprovalStatus.WITHDRAWN,
    "supersede": ApprovalStatus.SUPERSEDED,
    "cancel": ApprovalStatus.CANCELLED,
}
Way = tuple[CommandKind, str, dict[str, str], State, str]
in_every_way = pytest.mark.parametrize("way", WAYS, ids=[way[0] for way in WAYS])


def assert_no_late_effect(installation: Installation) -> None:
    """A step of the run that comes only now, redelivered say, makes the gateway do nothing."""
    gateway = bootstrap.gateway(installation.settings, installation.ledger)
    for late in (gateway.execute, gateway.reconcile):
        late("acme", approval(installation).proposal.approval_id)
    assert installation.published() == []
    assert records(installation, "effect.intended") == []
