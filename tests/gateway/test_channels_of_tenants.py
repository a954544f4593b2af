"""Channels belong to the tenants that the gateway's configuration names, and no two share a folder (G09).

With the command line alone anybody founds a tenant in which they ask and approve; it must not give them a way out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest
import yaml

from countersign import bootstrap
from countersign.domain.channel import ChannelConfig, Takes, channel_of, channel_taking
from countersign.domain.errors import ConfigurationRefused, InputRefused
from countersign.domain.execution import EffectResult, ExecutionStatus
from countersign.domain.proposal import Approval
from countersign.settings import ROOT, Settings
from tests.gateway.asking import reconcile
from tests.gateway.attempt import Attempt
from tests.gateway.world import DOCUMENT, ENVIRONMENT, INSTALLATION, START, TENANT, World

EXECUTED = ExecutionStatus.EXECUTED
OTHER = "globex"


@pytest.fixture
def founded(world: World) -> Iterator[World]:
    """Another tenant of the same ledger, with persons, keys and policies of its own."""
    made = World(world.folder, tenant=OTHER)
    made.populate()
    yield made
    made.close()


@pytest.fixture
def settings(world: World, tmp_path: Path) -> Settings:
    """The gateway's, with policy files to change; the tests' data is stored for both tenants."""
    copytree(ROOT / "policies", tmp_path / "policies")
    made = Settings(
        home=tmp_path / "home", policies=tmp_path / "policies", installation=INSTALLATION, environment=ENVIRONMENT
    )
    for tenant in (TENANT, OTHER):
        bootstrap.evidence(made).put(tenant, world.folder / "sales.csv")
    return made


def granted_by_rule(world: World) -> Approval:
    """A report that the tenant's own policy lets into channel `internal` at once."""
    return world.granted(channel="internal", by_persons=())


def executed(settings: Settings, world: World, approval: Approval) -> EffectResult:
    """What the gateway answers, wired as its worker wires it."""
    return bootstrap.gateway(settings, world.ledger, lambda: START).execute(world.tenant, approval.proposal.approval_id)


def share(settings: Settings, *tenants: str) -> None:
    """Give every channel to these tenants, but the payment service's, which has one alone."""
    path = settings.policies / "channels.yaml"
    written = yaml.safe_load(path.read_text())
    for channel in written["channels"].values():
        if channel["kind"] != "payments":
            channel["tenants"] = [*tenants]
    path.write_text(yaml.safe_dump(written))


@pytest.mark.guarantee("G09")
def test_a_tenant_that_somebody_founds_has_no_way_out(settings: Settings, founded: World) -> None:
    """As shipped, the channels are acme's; what another tenant grants itself goes nowhere, and alarms nobody."""
    result = executed(settings, founded, granted_by_rule(founded))
    assert (result.status, result.voided) == (None, False)
    assert result.reason == "channel_unknown: channel 'internal' is not configured for tenant globex; allowed: none"
    assert [path for path in settings.reports_folder.rglob("*") if path.is_file()] == []
    assert "alarm.raised" not in [record.type for record in founded.ledger.audit.records(OTHER)]


@pytest.mark.guarantee("G09")
def test_two_tenants_with_one_channel_share_no_folder(settings: Settings, world: World, founded: World) -> None:
    """Operation and document have the same name in both, and neither tenant hears that it is taken."""
    share(settings, TENANT, OTHER)
    for each in (world, founded):
        assert executed(settings, each, granted_by_rule(each)).status == EXECUTED
    for tenant in (TENANT, OTHER):
        (document,) = (settings.reports_folder / "internal" / tenant).glob("*.md")
        assert (document.name, document.read_bytes()) == ("q2-report.md", DOCUMENT)


@pytest.mark.guarantee("G09")
def test_only_the_tenants_own_channels_are_named(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    channels = {TENANT: (attempt.internal,), OTHER: (attempt.internal, attempt.press)}
    attempt.is_ended(approval, "channel_unknown", channels=channels)
    (refused,) = attempt.records("effect.refused")
    assert str(refused.detail["reason"]).endswith(" for tenant acme; allowed: internal")


@pytest.mark.guarantee("G36")
def test_a_channel_that_is_taken_away_leaves_unknown_what_may_have_been_sent(world: World, attempt: Attempt) -> None:
    approval = world.granted()
    attempt.publisher.fail_next("close_after")
    assert attempt.execute(approval).status == ExecutionStatus.UNKNOWN
    without = world.gateway(channels={OTHER: (attempt.press,)})
    result = reconcile(without, approval)
    assert (result.status, result.reason.partition(":")[0]) == (ExecutionStatus.UNKNOWN, "channel_unknown")


CHANNELS = {
    name: ChannelConfig(kind="file", tenants=tenants, side_effect="publication", reversibility="reversible")
    for name, tenants in {"internal": (TENANT, OTHER), "public": (TENANT,)}.items()
}


@pytest.mark.guarantee("G09")
def test_drafting_takes_the_tenants_own_channels() -> None:
    assert channel_of("public", TENANT, CHANNELS) == CHANNELS["public"]
    assert channel_of("internal", OTHER, CHANNELS) == CHANNELS["internal"]


@pytest.mark.guarantee("G09")
@pytest.mark.parametrize("name", ["public", "wire"])
def test_drafting_refuses_another_tenants_in_the_gateways_words(name: str) -> None:
    """Whether or not somebody else has it."""
    with pytest.raises(ConfigurationRefused) as refused:
        channel_of(name, OTHER, CHANNELS)
    assert refused.value.message == f"channel {name!r} is not configured for tenant globex; allowed: internal"


@pytest.mark.parametrize(("name", "takes"), [("internal", "refunds"), ("payments", "documents")])
def test_drafting_refuses_a_channel_for_what_it_does_not_take_and_names_those_that_do(name: str, takes: Takes) -> None:
    service = ChannelConfig(
        kind="payments", tenants=(TENANT,), side_effect="refund", reversibility="reversible",
        url="https://shop.example.com/refunds", orders_url="https://shop.example.com/orders",
    )  # fmt: skip
    channels = {**CHANNELS, "payments": service, "others": service.model_copy(update={"tenants": (OTHER,)})}
    suitable = "internal, public" if takes == "documents" else "payments"
    with pytest.raises(InputRefused, match=f"channel '{name}' takes .*, not {takes}; allowed: {suitable}$"):
        channel_taking(takes, name, TENANT, channels)
    assert channel_taking("refunds", "payments", TENANT, channels) == service
