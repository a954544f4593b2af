"""Looking outside under every key: what lies there, what lies there by nobody's right, and what cannot be asked."""

from __future__ import annotations

from functools import partial

import pytest

from countersign.domain.action import Action
from countersign.domain.channel import ChannelConfig
from countersign.domain.execution import ExecutionStatus
from countersign.domain.proposal import Approval
from countersign.domain.reconciliation import DisagreementKind, Effect, Survey, disagreements
from countersign.gateway.channels import Channel
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.http_channel import HttpChannel
from countersign.gateway.inactive_channel import InactiveChannel
from countersign.gateway.reconciling import Outside, Way, keys_by_right
from countersign.gateway.tools import Tools
from tests.gateway.world import DOCUMENT, TENANT, World
from tests.support.publisher import Publisher

NAME = "q2-report.md"


@pytest.fixture
def internal(world: World) -> FileChannel:
    return FileChannel("internal", world.folder / "published", "internal_publication")


def outside(world: World, *channels: Channel, **absent: str) -> Outside:
    """A look at these channels, with those that cannot be used and why."""
    keys = partial(keys_by_right, world.ledger, [TENANT])
    ways = {channel.name: Way(channel, "", keys) for channel in channels}
    tools = Tools({TENANT: channels}, world.ledger, world.verify_evidence, lambda: world.now)
    return Outside(ways | {name: Way(None, why, keys) for name, why in absent.items()}, tools)


def published(world: World, channel: Channel, operation: str = "q2-report") -> Approval:
    by_persons = () if channel.name == "internal" else ("bob",)
    approval = world.granted(operation, channel=channel.name, by_persons=by_persons)
    result = world.gateway(channel).execute(TENANT, approval.proposal.approval_id)
    assert result.status == ExecutionStatus.EXECUTED
    return approval


def effect(world: World, look: Outside, action: Action) -> Effect:
    executions = world.ledger.executions.of_operation(TENANT, action.operation)
    return look.look(action, next((one for one in executions if one.key == action.idempotency_key()), None))


def kinds(world: World, look: Outside, action: Action) -> list[DisagreementKind]:
    """The disagreements about one action's effect."""
    return [one.kind for one in disagreements(Survey(operations=(), effects=(effect(world, look, action),)), world.now)]


def test_what_was_published_is_found_and_agrees(world: World, internal: FileChannel, press: HttpChannel) -> None:
    for channel in (internal, press):
        action = published(world, channel, f"{channel.name}-1").proposal.action
        found = effect(world, outside(world, channel), action)
        assert found.execution is not None
        assert (found.channel, found.look.receipt) == (channel.name, found.execution.receipt)
        assert kinds(world, outside(world, channel), action) == []


def test_what_was_changed_or_removed_there_is_told(world: World, internal: FileChannel) -> None:
    action, file = published(world, internal).proposal.action, world.folder / "published" / NAME
    with file.open("ab") as document:
        document.write(b"!")
    assert kinds(world, outside(world, internal), action) == [DisagreementKind.EFFECT_DIFFERS]
    file.unlink()
    assert kinds(world, outside(world, internal), action) == [DisagreementKind.EFFECT_GONE]


@pytest.mark.guarantee("G36")
def test_what_was_never_claimed_here_is_found_there_by_its_key(world: World, internal: FileChannel) -> None:
    """As after a backup of the ledger from before the effect was brought back."""
    action = world.granted(channel="internal", by_persons=()).proposal.action
    assert kinds(world, outside(world, internal), action) == []
    internal.send(action.idempotency_key(), NAME, DOCUMENT, action.content_hash)
    assert kinds(world, outside(world, internal), action) == [DisagreementKind.EFFECT_UNRECORDED]


def test_a_stray_is_what_no_action_of_any_tenant_there_has(world: World, internal: FileChannel) -> None:
    action = published(world, internal).proposal.action
    internal.send("f" * 64, "other.md", DOCUMENT, action.content_hash)
    strays, unlisted = outside(world, internal).strays()
    assert [(one.channel, one.key) for one in strays] == [("internal", "f" * 64)]
    assert unlisted == []


def test_a_channel_without_its_credential_and_one_that_cannot_list_are_named(
    world: World, press: HttpChannel, internal: FileChannel
) -> None:
    action = published(world, internal).proposal.action
    look = outside(world, press, internal="PRESS_TOKEN is not set")
    assert effect(world, look, action).look.untold == "PRESS_TOKEN is not set"
    gone = effect(world, outside(world, press), action).look.untold
    assert gone == "channel 'internal' is not configured for tenant acme; allowed: press"
    _, unlisted = look.strays()
    assert [(gap.part, gap.why.partition(",")[0]) for gap in unlisted] == [
        ("internal", "PRESS_TOKEN is not set"),
        ("press", "it cannot list its keys"),
    ]


def test_a_channel_that_does_not_answer_is_asked_once_and_said_to_be_silent(
    world: World, press: HttpChannel, publisher: Publisher
) -> None:
    actions = [published(world, press, f"q{number}").proposal.action for number in (1, 2, 3)]
    publisher.fail_next("lookup_unavailable", "lookup_unavailable")
    asked = len(publisher.calls("GET"))
    look = outside(world, press)
    assert {effect(world, look, action).look.untold.partition(":")[0] for action in actions} == {"lookup_failed"}
    assert len(publisher.calls("GET")) == asked + 1
    assert [gap.why.partition(":")[0] for gap in look.strays()[1]] == ["lookup_failed"]


def test_looking_sends_nothing(world: World, press: HttpChannel, publisher: Publisher) -> None:
    action = world.granted().proposal.action
    assert effect(world, outside(world, press), action).look.receipt is None
    outside(world, press).strays()
    assert (publisher.calls("POST"), publisher.effects()) == ([], [])


def test_an_optional_channel_that_is_not_active_is_a_gap_only_where_it_was_used(world: World) -> None:
    action = world.granted().proposal.action
    config = ChannelConfig(
        kind="http", tenants=("acme",), side_effect="external_publication", reversibility="correctable",
        url="https://press.example.com", token_env="PRESS_TOKEN", optional=True,
    )  # fmt: skip
    inactive = InactiveChannel("press", config)
    assert outside(world, inactive).strays() == ([], [])
    look = outside(world, inactive)
    assert "PRESS_TOKEN is not set" in effect(world, look, action).look.untold
    assert [gap.part for gap in look.strays()[1]] == ["press"]
