"""Gateways that are killed between two steps, or started several at once: one effect, and none lost silently (G37)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from pydantic import SecretStr

from countersign.domain.execution import EffectResult, ExecutionStatus
from countersign.domain.proposal import Approval
from countersign.gateway.channels import Channel
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.gateway import CLAIM_MARGIN
from countersign.gateway.http_channel import HttpChannel, Limits
from tests.gateway.conftest import TOKEN
from tests.gateway.world import DOCUMENT, TENANT, World
from tests.support.processes import Processes, RunningProcess
from tests.support.publisher import Publisher

EXECUTED, UNKNOWN = ExecutionStatus.EXECUTED, ExecutionStatus.UNKNOWN
HAS_SENT = {"claimed": False, "sent": True, "recorded": True}
Start = Callable[..., RunningProcess]


@pytest.fixture
def start(world: World, processes: Processes, address: str) -> Start:
    """Starts a gateway process for an approval."""

    def start(approval: Approval, *options: str) -> RunningProcess:
        program = [sys.executable, "-m", "tests.gateway.executor", str(world.folder), approval.proposal.approval_id]
        more = ["--now", world.now.isoformat(), "--url", address, "--token", TOKEN, *options]
        return processes.start([*program, *more])

    return start


@pytest.fixture
def internal(world: World) -> FileChannel:
    return FileChannel("internal", world.folder / "published", "internal_publication")


def after_the_claim(world: World, channel: Channel) -> None:
    world.now += 2 * channel.time_limit + CLAIM_MARGIN


@pytest.mark.parametrize("step", HAS_SENT)
@pytest.mark.guarantee("G31", "G33", "G37")
def test_killed_while_posting_it_is_posted_once(
    world: World, start: Start, press: HttpChannel, publisher: Publisher, step: str
) -> None:
    approval = world.granted()
    killed = start(approval, "--kill-at", step)
    assert killed.wait() == -9, killed.output
    assert len(publisher.effects()) == HAS_SENT[step]

    gateway = world.gateway(press)
    at_once = gateway.execute(TENANT, approval.proposal.approval_id)
    assert at_once.status == (EXECUTED if step == "recorded" else UNKNOWN)
    after_the_claim(world, press)
    settled = gateway.execute(TENANT, approval.proposal.approval_id)
    assert settled.status == EXECUTED
    assert [body for _, body in publisher.effects()] == [DOCUMENT]
    assert len(publisher.calls("POST")) == 1
    assert world.audit_types()[-1] == "effect.executed"
    assert world.audit_types().count("effect.executed") == 1
    world.ledger.audit.verify(TENANT)


@pytest.mark.parametrize("step", HAS_SENT)
@pytest.mark.guarantee("G37")
def test_killed_while_publishing_a_file_it_is_published_once(
    world: World, start: Start, internal: FileChannel, step: str
) -> None:
    approval = world.granted(channel="internal", by_persons=())
    published = world.folder / "published" / "q2-report.md"
    killed = start(approval, "--kill-at", step)
    assert killed.wait() == -9, killed.output
    assert published.exists() == HAS_SENT[step]
    file_number = published.stat().st_ino if published.exists() else None

    after_the_claim(world, internal)
    assert world.gateway(internal).execute(TENANT, approval.proposal.approval_id).status == EXECUTED
    assert published.read_bytes() == DOCUMENT
    assert file_number in (None, published.stat().st_ino), "it was published anew"


@pytest.mark.parametrize("step", ["claimed", "sent"])
@pytest.mark.guarantee("G37")
def test_reconciling_after_a_kill_tells_what_happened_and_sends_nothing(
    world: World, start: Start, press: HttpChannel, publisher: Publisher, step: str
) -> None:
    approval = world.granted()
    assert start(approval, "--kill-at", step).wait() == -9
    after_the_claim(world, press)
    result = world.gateway(press).reconcile(TENANT, approval.proposal.approval_id)
    assert result.status == (EXECUTED if HAS_SENT[step] else ExecutionStatus.NOT_SENT)
    assert len(publisher.calls("POST")) == HAS_SENT[step]


@pytest.mark.guarantee("G37")
def test_killed_again_and_again_it_is_still_one_effect(
    world: World, start: Start, press: HttpChannel, publisher: Publisher
) -> None:
    approval = world.granted()
    for step in ("claimed", "claimed", "sent", "claimed"):
        assert start(approval, "--kill-at", step).wait() == -9
        after_the_claim(world, press)
    assert world.gateway(press).execute(TENANT, approval.proposal.approval_id).status == EXECUTED
    assert len(publisher.calls("POST")) == len(publisher.effects()) == 1


@pytest.mark.guarantee("G31")
def test_many_processes_make_one_call(world: World, start: Start, press: HttpChannel, publisher: Publisher) -> None:
    approval = world.granted()
    running = [start(approval) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4, [process.output for process in running]
    results = [EffectResult.model_validate_json(process.output.splitlines()[-1]) for process in running]
    assert {result.status for result in results} <= {EXECUTED, UNKNOWN}
    assert all(result.reason.startswith("in_progress") for result in results if result.status == UNKNOWN)
    assert world.gateway(press).execute(TENANT, approval.proposal.approval_id).status == EXECUTED
    assert len(publisher.calls("POST")) == len(publisher.effects()) == 1


@pytest.mark.guarantee("G36")
@pytest.mark.guarantee("G37")
def test_the_outside_dies_after_publishing_and_its_successor_still_knows_the_key(
    world: World, processes: Processes, publisher: Publisher
) -> None:
    program = [sys.executable, "-m", "tests.support.publisher", "--database", str(world.folder / "publisher.sqlite")]
    first = processes.start([*program, "--token", TOKEN, "--fault", "answer_late"])
    approval = world.granted()
    results: list[EffectResult] = []

    def execute(url: str) -> None:
        channel = HttpChannel(
            "press", url, SecretStr(TOKEN), "external_publication", Limits(total=timedelta(seconds=60))
        )
        results.append(world.gateway(channel).execute(TENANT, approval.proposal.approval_id))

    url = first.wait_for_line(r"publishing at (\S+)")[1]
    waiting = threading.Thread(target=execute, args=(url,))
    waiting.start()
    while not publisher.effects():
        assert waiting.is_alive()
    first.kill()
    waiting.join()
    second = processes.start([*program, "--token", TOKEN])
    execute(second.wait_for_line(r"publishing at (\S+)")[1])
    assert [result.status for result in results] == [UNKNOWN, EXECUTED]
    assert len(publisher.effects()) == len(publisher.calls("POST")) == 1
