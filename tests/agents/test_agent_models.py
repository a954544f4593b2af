"""Which models are taken, where checkpoints may lie, and that nothing of a draft leaves for a tracing service."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from countersign.agents.checkpoints import checkpoints_at
from countersign.agents.models import ModelSettings, draft_model, grade_model
from countersign.agents.report import REPORT_AGENT
from countersign.domain.errors import ConfigurationRefused
from tests.agents.tables import DELIVER, DESCRIBE, QUERY
from tests.support.model_server import by_conversation, running_model_server
from tests.support.processes import Processes
from tests.support.thread_keys import THREAD_KEYS

ROOT = Path(__file__).resolve().parents[2]


def test_without_a_key_the_offline_models_are_taken() -> None:
    assert draft_model(ModelSettings(), REPORT_AGENT.offline).name == "offline-drafter/1"
    assert grade_model(ModelSettings(), REPORT_AGENT.rules).name == "offline-grader/1"


def test_with_a_key_each_task_has_the_model_that_the_settings_name() -> None:
    settings = ModelSettings(api_key="k", draft_model="writer", grade_model="critic")

    names = draft_model(settings, REPORT_AGENT.offline).name, grade_model(settings, REPORT_AGENT.rules).name
    assert names == ("writer", "critic")


@pytest.mark.parametrize("url", ["", "checkpoints.sqlite", "mysql://host/name", "sqlite://relative"])
def test_a_checkpoint_store_of_another_kind_is_refused_with_what_is_allowed(url: str) -> None:
    with pytest.raises(ConfigurationRefused, match="sqlite:///FILE or postgresql://HOST/NAME"):
        checkpoints_at(url, THREAD_KEYS)


@pytest.mark.guarantee("G39")
@pytest.mark.guarantee("G46")
def test_an_environment_that_asks_for_tracing_sends_nothing_of_a_draft(processes: Processes, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as tracer,
        running_model_server(by_conversation([DESCRIBE, QUERY, DELIVER])) as server,
    ):
        endpoint = f"http://127.0.0.1:{tracer.getsockname()[1]}"
        tracing = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": endpoint, "LANGSMITH_API_KEY": "k"}
        arguments = [server.url, f"sqlite:///{tmp_path / 'checkpoints.sqlite'}", "1", "-"]
        process = processes.start(
            [sys.executable, "-m", "tests.agents.drafting_process", *arguments], env=tracing, cwd=ROOT
        )
        assert process.wait() == 0
        tracer.setblocking(False)
        with pytest.raises(BlockingIOError):
            tracer.accept()
