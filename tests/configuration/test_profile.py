"""A worker in the `dev` profile, started as an operator starts it: on loopback addresses, or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from countersign.settings import ROOT
from tests.support.processes import Processes

LOCAL_PRESS = "http://127.0.0.1:1/"
CHANNELS = """channels:
  press: {{kind: http, tenants: [acme], url: "{url}", token_env: PRESS_TOKEN,
          side_effect: external_publication, reversibility: correctable}}
  internal: {{kind: file, tenants: [acme], side_effect: internal_publication, reversibility: reversible}}
  public: {{kind: file, tenants: [acme], side_effect: external_publication, reversibility: correctable}}
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The `dev` profile with a press on this machine, and no Temporal server."""
    policies = tmp_path / "policies"
    policies.mkdir()
    for path in (ROOT / "policies").glob("*.yaml"):
        (policies / path.name).write_bytes(path.read_bytes())
    (policies / "channels.yaml").write_text(CHANNELS.format(url=LOCAL_PRESS))
    return {
        "COUNTERSIGN_PROFILE": "dev", "COUNTERSIGN_HOME": str(tmp_path / "home"),
        "COUNTERSIGN_POLICIES": str(policies), "DATABASE_URL": "", "TEMPORAL_ADDRESS": "127.0.0.1:1",
        "TEMPORAL_CONFIG_FILE": os.devnull,
    }  # fmt: skip


def said(processes: Processes, environment: dict[str, str], tmp_path: Path, role: str) -> str:
    worker = processes.start(
        [sys.executable, str(ROOT / "worker.py"), "--role", role], env=environment, cwd=tmp_path, name=f"worker-{role}"
    )
    assert worker.wait(60) == 1
    return worker.output


@pytest.mark.guarantee("G04")
@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("TEMPORAL_ADDRESS", "temporal.example.com:7233", "TEMPORAL_ADDRESS (temporal.example.com)"),
        ("DATABASE_URL", "postgresql://u:secret@db.example.com/ledger", "DATABASE_URL (db.example.com)"),
    ],
)
@pytest.mark.parametrize("role", ["all", "agent", "gateway"])
def test_a_worker_does_not_start_beside_another_machine(
    environment: dict[str, str], processes: Processes, tmp_path: Path, role: str, variable: str, value: str, named: str
) -> None:
    output = said(processes, environment | {variable: value}, tmp_path, role)

    assert output.startswith(f"error: COUNTERSIGN_PROFILE=dev: {named}: decisions that nobody signed are taken on")
    assert output.count("\n") == 1
    assert "secret" not in output


@pytest.mark.guarantee("G04")
def test_a_channel_on_another_machine_stops_it_too(
    environment: dict[str, str], processes: Processes, tmp_path: Path
) -> None:
    (tmp_path / "policies" / "channels.yaml").write_text(CHANNELS.format(url="https://press.example.com/"))

    output = said(processes, environment, tmp_path, "gateway")

    assert output.startswith("error: COUNTERSIGN_PROFILE=dev: channel press (press.example.com): ")


def test_on_one_machine_it_gets_as_far_as_the_server(
    environment: dict[str, str], processes: Processes, tmp_path: Path
) -> None:
    assert "no Temporal server answers at 127.0.0.1:1" in said(processes, environment, tmp_path, "agent")


def test_the_signed_profile_asks_nothing_of_its_addresses(
    environment: dict[str, str], processes: Processes, tmp_path: Path
) -> None:
    elsewhere = environment | {"COUNTERSIGN_PROFILE": "", "TEMPORAL_ADDRESS": "temporal.invalid:7233"}

    assert "no Temporal server answers at temporal.invalid:7233" in said(processes, elsewhere, tmp_path, "agent")
