"""What the outside does to a granted action, over real HTTP: it is published once, whatever the way there."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from countersign.domain.run import Step
from countersign.domain.state import TRANSITIONS, State
from tests.support.installation import Installation
from tests.support.publisher import Publisher, running_publisher
from tests.workflow.press import approved, press_installation

pytestmark = pytest.mark.long

RETRY = [State.WAITING_RETRY, State.EXECUTING]
LOOK_UP = [State.OUTCOME_UNKNOWN]


@pytest.mark.guarantee("G34", "G36", "G37")
@pytest.mark.parametrize(
    ("faults", "way", "posts"),
    [
        (["rate_limited"], RETRY, 2),
        (["error_after"], LOOK_UP, 1),
        (["close_after", "lookup_unavailable"], LOOK_UP, 1),
        (["error_before"], [*LOOK_UP, *RETRY], 2),
        (["rate_limited", "bad_gateway_after"], [*RETRY, *LOOK_UP], 2),
    ],
    ids=["asked to come later", "500 after publishing", "look-up down, then up", "500 before publishing", "both"],
)
async def test_a_fault_of_the_outside_leads_to_one_publication(
    sqlite_installation: Installation,
    tmp_path: Path,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    faults: list[str],
    way: list[State],
    posts: int,
) -> None:
    publisher.fail_next(*faults)
    with running_publisher(publisher) as url:
        press = press_installation(sqlite_installation, tmp_path, url, monkeypatch)
        async with press.workers():
            run = await approved(press, "op-1")
            result = await run.result()
            steps = await run.query("timeline", result_type=list[Step])
    assert result.state == State.SUCCEEDED
    ((key, body),) = publisher.effects()
    assert (result.key, publisher.calls("POST")) == (key, [key] * posts)
    assert body == press.ledger.documents.get("acme", press.proposal("op-1").document)
    states = [step.state for step in steps]
    assert states == [State.RUNNING, State.WAITING_APPROVAL, State.EXECUTING, *way, State.SUCCEEDED]
    possible = {(before, after) for (before, _), after in TRANSITIONS.items()}
    assert set(pairwise(states)) <= possible
    types = [record.type for record in press.ledger.audit.records("acme", "op-1")]
    assert types.count("effect.executed") == 1
    assert types.index("effect.intended") < types.index("effect.executed")
    press.ledger.audit.verify("acme")
