"""Worker processes as an operator starts them: which role gets which secret (G39), from whatever folder."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from countersign import bootstrap
from countersign.ledger import SqlLedger
from countersign.settings import ROOT, Settings
from countersign.worker_process import Role, settings_of
from tests.ledger.founding import found
from tests.notifications.notices import notice
from tests.notifications.relaying import tell
from tests.support.processes import Processes, RunningProcess

WORKER = [sys.executable, str(ROOT / "worker.py")]
PRESS = """channels:
  press: {kind: http, tenants: [acme], url: "http://127.0.0.1:1/", token_env: PRESS_TOKEN,
          side_effect: external_publication, reversibility: correctable}
  internal: {kind: file, tenants: [acme], side_effect: internal_publication, reversibility: reversible}
"""
CHAT = """addresses:
  chat: {kind: webhook, tenants: [acme], roles: [manager], url_env: CHAT_URL, secret_env: CHAT_SECRET}
"""
ADDRESS = {"CHAT_URL": "http://127.0.0.1:1/chat-path-1", "CHAT_SECRET": "chat-secret-of-the-gateway"}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Settings with a press whose token is given, a model's key, and no Temporal server."""
    (tmp_path / "policies").mkdir()
    for name in ("report.yaml", "report-rubric.yaml"):
        (tmp_path / "policies" / name).write_bytes((ROOT / "policies" / name).read_bytes())
    (tmp_path / "policies" / "channels.yaml").write_text(PRESS)
    return {
        "COUNTERSIGN_HOME": str(tmp_path / "home"), "COUNTERSIGN_POLICIES": str(tmp_path / "policies"),
        "DATABASE_URL": "", "PRESS_TOKEN": "press-token-1", "OPENAI_API_KEY": "sk-model-1",
        "TEMPORAL_ADDRESS": "127.0.0.1:1", "TEMPORAL_CONFIG_FILE": os.devnull,
    }  # fmt: skip


@pytest.mark.guarantee("G39")
def test_the_agent_role_does_not_start_with_a_credential(
    environment: dict[str, str], processes: Processes, tmp_path: Path
) -> None:
    worker = processes.start([*WORKER, "--role", "agent"], env=environment, cwd=tmp_path)

    assert worker.wait(60) == 1
    assert worker.output.startswith("error: environment PRESS_TOKEN: the agent role may hold no credential")
    assert worker.output.count("\n") == 1
    assert "press-token-1" not in worker.output


@pytest.mark.guarantee("G39")
def test_the_agent_role_does_not_start_with_the_credential_of_an_address(
    environment: dict[str, str], processes: Processes, tmp_path: Path
) -> None:
    (tmp_path / "policies" / "notifications.yaml").write_text(CHAT)
    given = environment | ADDRESS | {"PRESS_TOKEN": ""}
    worker = processes.start([*WORKER, "--role", "agent"], env=given, cwd=tmp_path)

    assert worker.wait(60) == 1
    assert worker.output.startswith("error: environment CHAT_SECRET, CHAT_URL: the agent role may hold no credential")
    assert not [value for value in ADDRESS.values() if value in worker.output]


def test_a_gateway_without_the_secret_of_an_address_does_not_start(
    environment: dict[str, str], temporal_server: str, processes: Processes, tmp_path: Path
) -> None:
    (tmp_path / "policies" / "notifications.yaml").write_text(CHAT)
    given = environment | ADDRESS | {"TEMPORAL_ADDRESS": temporal_server, "CHAT_SECRET": ""}
    worker = processes.start([*WORKER, "--role", "gateway"], env=given, cwd=tmp_path)

    assert worker.wait(60) == 1
    assert worker.output == "error: address chat: CHAT_SECRET is not set; set it for the gateway\n"


def test_the_gateway_delivers_notices_beside_its_work_and_stops_cleanly(
    environment: dict[str, str], temporal_server: str, processes: Processes, tmp_path: Path, httpserver: HTTPServer
) -> None:
    (tmp_path / "policies" / "notifications.yaml").write_text(CHAT)
    settings = Settings(home=tmp_path / "home", policies=tmp_path / "policies", database_url="")
    ledger = bootstrap.open_ledger(settings)
    assert isinstance(ledger, SqlLedger)
    found(ledger)
    tell(ledger, notice(at=bootstrap.wall_clock()))
    ledger.close()
    with httpserver.wait(raise_assertions=True, stop_on_nohandler=False, timeout=30) as arrived:
        httpserver.expect_oneshot_request("/hook").respond_with_data("ok")
        given = environment | ADDRESS | {"TEMPORAL_ADDRESS": temporal_server, "CHAT_URL": httpserver.url_for("/hook")}
        worker = processes.start([*WORKER, "--role", "gateway"], env=given, cwd=tmp_path)
        worker.wait_for_line("worker ready")
    began = time.monotonic()

    assert arrived.result
    assert worker.stop() == 0
    assert time.monotonic() - began < 5
    (request, _), *more = httpserver.log
    assert (request.headers["Countersign-Delivery"], more) == ("acme:1:chat", [])


def test_an_agent_whose_credential_is_empty_gets_as_far_as_the_server(
    environment: dict[str, str], processes: Processes, tmp_path: Path
) -> None:
    worker = processes.start([*WORKER, "--role", "agent"], env=environment | {"PRESS_TOKEN": ""}, cwd=tmp_path)

    assert worker.wait(60) == 1
    assert "Temporal" in worker.output


@pytest.mark.guarantee("G39")
def test_each_child_gets_its_own_secrets_and_starts_from_any_folder(
    environment: dict[str, str], processes: Processes, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        parent = processes.start(WORKER, env=environment | {"TEMPORAL_ADDRESS": address}, cwd=tmp_path)
        agent, gateway = environment_of_child(parent, "agent"), environment_of_child(parent, "gateway")

    assert "PRESS_TOKEN" not in agent
    assert "press-token-1" not in "".join(agent.values())
    assert agent["OPENAI_API_KEY"] == "sk-model-1"
    assert gateway["PRESS_TOKEN"] == "press-token-1"
    assert "sk-model-1" not in "".join(gateway.values())


@pytest.mark.guarantee("G39")
@pytest.mark.parametrize(("role", "known"), [("agent", True), ("gateway", False)])
def test_a_key_of_the_agents_in_the_dotenv_file_is_not_for_the_gateway(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, role: Role, known: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "COUNTERSIGN_THREAD_KEYS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-model-1\nCOUNTERSIGN_THREAD_KEYS=k1=a2V5\n")

    settings = settings_of(role)
    assert [each is not None for each in (settings.openai_api_key, settings.thread_keys)] == [known, known]


def environment_of_child(parent: RunningProcess, role: str) -> dict[str, str]:
    """The environment that the system has for the child of that role, as soon as it has become that program."""
    while parent.is_running:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                ours = f"\nPPid:\t{parent.popen.pid}\n" in (folder / "status").read_text()
                if ours and f"--role\0{role}\0" in (folder / "cmdline").read_text():
                    pairs = (folder / "environ").read_text().split("\0")
                    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
            except OSError:
                continue
        time.sleep(0.02)
    raise AssertionError(parent.output)
