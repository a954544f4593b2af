"""Nothing secret or personal in clear where operators and Temporal keep things: planted, then looked for everywhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import WorkflowHandle

from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.model_server import Turn, running_model_server
from tests.support.processes import Processes
from tests.support.publisher import Publisher, running_publisher
from tests.support.waiting import until_state
from tests.workflow.press import TOKEN, with_http_channel
from tests.workflow.scripted_model import API_KEY, ScriptedModel, draft, grade, model_environment

COMMENT = "Mrs Lindqvist rang about her refund"
DATA = "date,region,amount\n2026-01-05,Zanzibar-West,400.25\n2026-01-06,Zanzibar-West,100.25\n"
PLANTED = (API_KEY, TOKEN, COMMENT, "Lindqvist", "Zanzibar", "400.25", "500.50", "How did sales", "PRIVATE KEY")
REFUSED = Turn(status=401, error="invalid_api_key", headers=(("x-note", "Zanzibar"),))


async def everything_temporal_keeps(run: WorkflowHandle[Any, Any]) -> str:
    """History with its failures, search attributes, memo and what operators are shown of a run."""
    client = run._client
    request = DescribeWorkflowExecutionRequest(namespace=client.namespace)
    request.execution.workflow_id = run.id
    described = await client.workflow_service.describe_workflow_execution(request)
    events = [str(event) async for event in run.fetch_history_events()]
    return "\n".join([json.dumps((await run.fetch_history()).to_json_dict()), str(described), *events])


@pytest.mark.guarantee("G46")
async def test_planted_secrets_are_in_no_history_attribute_failure_or_log(
    sqlite_installation: Installation, processes: Processes, publisher: Publisher, tmp_path: Path
) -> None:
    publisher.fail_next("error_after", "echo_token")
    # The first run is published after a look-up, the second fails its checks with a figure of its own.
    unsupported = draft(body="Sales came to {{total}}, of which Zanzibar had 400.25.")
    model = ScriptedModel(drafts=[draft(), unsupported], grades=[grade()])
    with running_publisher(publisher) as url, running_model_server(model) as server:
        # What cannot go on has failed here, instead of waiting for people.
        plain = sqlite_installation.with_fields(tmp_path / "plain", escalations={})
        press = with_http_channel(plain, tmp_path, url)
        environment = press.environment() | model_environment(server) | {"PRESS_TOKEN": TOKEN}
        worker = processes.start([sys.executable, "worker.py"], env=environment)
        run = await press.start("op-1", data=DATA)
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
        assert worker.stop() == 0
    kept = [await everything_temporal_keeps(each) for each in (run, failed, refused)]
    for text in (*kept, worker.output):
        assert [secret for secret in PLANTED if secret in text] == []
    audit = " ".join(record.model_dump_json() for record in press.ledger.audit.records("acme"))
    assert [secret for secret in (API_KEY, TOKEN, "Lindqvist", "Zanzibar") if secret in audit] == []
    assert "worker ready" in worker.output
