"""Nothing secret or personal in clear where operators and Temporal keep things: planted, then looked for everywhere."""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import WorkflowHandle

from countersign.cli.demos.dev_server import free_port
from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import Turn, running_model_server
from tests.support.processes import Processes
from tests.support.publisher import Publisher, running_publisher
from tests.support.waiting import until_state
from tests.worker.test_worker_process import environment_of_child
from tests.workflow.asking import answer, newest, respond
from tests.workflow.press import TOKEN, with_http_channel
from tests.workflow.scripted_model import API_KEY, ScriptedModel, draft, grade, model_environment

THREAD_KEY = b64encode(b"planted-key-of-the-agents-thread").decode()
COMMENT = "Mrs Lindqvist rang about her refund"
ASKED = "May Mr Oyelaran's orders be named?"
TOLD = "Leave Oyelaran out, his number is 0170-5550199."
ACCOUNT = "DE89370400440532013000"
DATA = f"date,region,amount\n2026-01-05,Zanzibar-West,400.25\n2026-01-06,{ACCOUNT},100.25\n"
PROSE = "Quokka sales carried the quarter"
SECRETS = (API_KEY, TOKEN, THREAD_KEY, "planted-key-of-the-agents-thread", "PRIVATE KEY")
PRIVATE = (
    COMMENT, "Lindqvist", ASKED, TOLD, "Oyelaran", "0170-5550199", ACCOUNT, "Zanzibar", "400.25", "500.50",
    "How did sales", PROSE, "Quokka",
)  # fmt: skip
PLANTED = (*SECRETS, *PRIVATE)
REFUSED = Turn(
    status=401, error="invalid_api_key", headers=(("x-note", "Zanzibar"),), text=f"key {API_KEY} is wrong: {PROSE}"
)
LOUD = "import logging\nlogging.basicConfig(level=logging.DEBUG)\n"
"""As sitecustomize: whatever a library would ever log is asked for."""


@dataclass
class Asking(ScriptedModel):
    """Asks people once, beside its query, in the first draft of all."""

    def __call__(self, number: int, request: dict[str, Any]) -> Turn:
        """Answer a request."""
        turn = super().__call__(number, request)
        return replace(turn, calls=(("ask_user", {"question": ASKED}), *turn.calls)) if number == 2 else turn


async def everything_temporal_keeps(run: WorkflowHandle[Any, Any]) -> str:
    """History with its failures, search attributes, memo and what operators are shown of a run."""
    client = run._client
    request = DescribeWorkflowExecutionRequest(namespace=client.namespace)
    request.execution.workflow_id = run.id
    described = await client.workflow_service.describe_workflow_execution(request)
    events = [str(event) async for event in run.fetch_history_events()]
    return "\n".join([json.dumps((await run.fetch_history()).to_json_dict()), str(described), *events])


def found(planted: Sequence[str], text: str) -> list[str]:
    """Which of them stand there, as they are, in base64 or as a dump of bytes shows them."""
    forms = {each: (each, b64encode(each.encode()).decode().rstrip("="), each.encode().hex()) for each in planted}
    return [each for each, shapes in forms.items() if any(shape in text for shape in shapes)]


def raw(folder: Path, *names: str) -> str:
    """All files below a folder, or those of these beginnings, byte by byte."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name.startswith(names or ("",)))
    return "\n".join(path.read_bytes().decode("latin-1") for path in files)


async def metrics(address: str) -> str:
    """What a worker process serves there."""
    answer = await asyncio.to_thread(urlopen, f"http://{address}/metrics")
    return str(answer.read(), "utf-8")


@pytest.mark.guarantee("G39")
@pytest.mark.guarantee("G46")
async def test_planted_secrets_are_in_no_history_attribute_failure_log_checkpoint_or_metric(
    sqlite_installation: Installation, processes: Processes, publisher: Publisher, tmp_path: Path
) -> None:
    publisher.fail_next("error_after", "echo_token")
    (tmp_path / "sitecustomize.py").write_text(LOUD)
    port = free_port()
    clean = draft(body=f"{PROSE}: they came to {{{{total}}}} in all, summed over all records.")
    # The first run is published after a look-up, the second fails its checks with a figure of its own.
    unsupported = draft(body="Sales came to {{total}}, of which Zanzibar had 400.25.")
    model = Asking(drafts=[clean, unsupported], grades=[grade()])
    with running_publisher(publisher) as url, running_model_server(model) as server:
        # What cannot go on has failed here, instead of waiting for people.
        plain = sqlite_installation.with_fields(tmp_path / "plain", escalations={})
        press = with_http_channel(plain, tmp_path, url)
        loud = {
            "PYTHONPATH": str(tmp_path), "OPENAI_LOG": "debug", "PYTHONASYNCIODEBUG": "1",
            "COUNTERSIGN_THREAD_KEYS": f"planted-1={THREAD_KEY}", "COUNTERSIGN_METRICS_ADDRESS": f"127.0.0.1:{port}",
        }  # fmt: skip
        environment = press.environment() | model_environment(server) | {"PRESS_TOKEN": TOKEN} | loud
        worker = processes.start([sys.executable, "worker.py"], env=environment)
        run = await press.start("op-1", data=DATA)
        await until_state(run, State.WAITING_ANSWER)
        asked = newest(press).question
        told = answer(press, "lea", respond(asked.calls[0].id, TOLD))
        assert (await run.execute_update("answer", told, result_type=Outcome)).ruling == Ruling.ACCEPTED
        await until_state(run, State.WAITING_APPROVAL)
        comment = press.ledger.documents.put("acme", COMMENT.encode())
        assert comment == sha256_hex(COMMENT.encode())
        await run.signal("decide", {"comment": "the statement is missing", "statement": None})
        decision = press.decision(press.proposal("op-1"), "bob", comment_hash=comment)
        assert (await run.execute_update("decide", decision, result_type=Outcome)).ruling == Ruling.ACCEPTED
        assert (await run.result()).state == State.SUCCEEDED
        model.drafts = [unsupported]
        failed = await press.start("op-2", data=DATA)
        assert (await failed.result()).reason == "checks_failed"
        model.drafts = [REFUSED]
        refused = await press.start("op-3", data=DATA)
        assert (await refused.result()).reason == "model_refused"
        served = [await metrics(f"127.0.0.1:{each}") for each in (port, port + 1)]
        outside = [environment_of_child(worker, role) for role in ("agent", "gateway")]
        assert worker.stop() == 0
    assert all(word in json.dumps(server.requests) for word in (ASKED, TOLD, PROSE, "500.50")), "nothing was planted"
    kept = [await everything_temporal_keeps(each) for each in (run, failed, refused)]
    checkpoints = raw(press.settings.home, "threads.db")
    operations = ("op-1", "op-2", "op-3")
    told_watchers = [
        event.model_dump_json() for one in operations for event in press.ledger.progress.since("acme", one, 0)
    ]
    calls = [
        call.model_dump_json() for one in operations for call in press.ledger.model_calls.of_operation("acme", one)
    ]
    for text in (*kept, worker.output, checkpoints, *served, *told_watchers, *calls):
        assert found(PLANTED, text) == []
    assert "countersign_model_calls" in served[0]
    assert "temporal_" in served[1]
    assert len(checkpoints) > 10_000
    assert (len(told_watchers) > 10, len(calls) > 10) == (True, True)
    assert found(SECRETS[:-1], raw(press.settings.home)) == [], "a credential lies in the home folder"
    agent, gateway = ("\n".join(each.values()) for each in outside)
    assert (found((TOKEN,), agent), found((API_KEY, THREAD_KEY), gateway)) == ([], [])
    audit = " ".join(record.model_dump_json() for record in press.ledger.audit.records("acme"))
    assert found((*SECRETS, *PRIVATE), audit) == []
    assert "worker ready" in worker.output
