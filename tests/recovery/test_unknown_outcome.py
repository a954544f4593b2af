"""An outcome that nobody knows is not one that did not happen: told apart at once, and each led to one effect."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from countersign.cli.demos.dev_server import free_port
from countersign.domain.execution import ExecutionStatus
from countersign.gateway.http_channel import HttpChannel
from tests.gateway.world import DOCUMENT, TENANT, World
from tests.support.publisher import Publisher
from tests.workflow.press import TOKEN

EXECUTED, NOT_SENT, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.NOT_SENT, ExecutionStatus.UNKNOWN


@pytest.mark.guarantee("G34", "G36")
@pytest.mark.parametrize(
    ("fault", "at_once", "there", "looked_up", "posts"),
    [
        ("unreachable", NOT_SENT, 0, NOT_SENT, 1),
        ("rate_limited", NOT_SENT, 0, NOT_SENT, 2),
        ("close_before", UNKNOWN, 0, NOT_SENT, 2),
        ("close_after", UNKNOWN, 1, EXECUTED, 1),
        ("error_after", UNKNOWN, 1, EXECUTED, 1),
        ("garbage", UNKNOWN, 1, EXECUTED, 1),
    ],
)
def test_outcome_unknown_is_told_from_not_executed(
    world: World,
    press: HttpChannel,
    publisher: Publisher,
    fault: str,
    at_once: ExecutionStatus,
    there: int,
    looked_up: ExecutionStatus,
    posts: int,
) -> None:
    """Nothing sent: the same key again. Unknown: nothing is sent before the look-up has said what happened."""
    approval, way = world.granted(), press
    approval_id, key = approval.proposal.approval_id, approval.proposal.action.idempotency_key()
    if fault == "unreachable":
        closed = f"http://127.0.0.1:{free_port()}/reports"
        way = HttpChannel("press", closed, SecretStr(TOKEN), "external_publication")
    else:
        publisher.fail_next(fault)

    assert world.gateway(way).execute(TENANT, approval_id).status == at_once
    assert len(publisher.effects()) == there
    sent = len(publisher.calls("POST"))

    assert world.gateway(press).reconcile(TENANT, approval_id).status == looked_up
    assert len(publisher.calls("POST")) == sent, "looking up sent something"

    assert world.gateway(press).execute(TENANT, approval_id).status == EXECUTED
    assert publisher.effects() == [(key, DOCUMENT)]
    assert publisher.calls("POST") == [key] * posts
    story = world.audit_types()
    assert ("effect.unknown" in story, story.count("effect.executed")) == (at_once == UNKNOWN, 1)
    world.ledger.audit.verify(TENANT)
