"""A press that reports are published to over HTTP, in place of the public folder, and the way of a run to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from temporalio.client import WorkflowHandle

from countersign.domain.decision import Outcome, Ruling
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import until_state

TOKEN = "press-token-5b1f"


def with_http_channel(installation: Installation, folder: Path, url: str) -> Installation:
    """The same installation with channel `public` at `url`; the gateway finds the token in `PRESS_TOKEN`."""
    changed = installation.with_policy(folder)
    path = changed.settings.policies / "channels.yaml"
    channels = yaml.safe_load(path.read_text())
    channels["channels"]["public"] = {
        "kind": "http",
        "tenants": [installation.tenant],
        "url": url,
        "token_env": "PRESS_TOKEN",
        "side_effect": "external_publication",
        "reversibility": "correctable",
    }
    path.write_text(yaml.safe_dump(channels))
    return changed


def press_installation(
    installation: Installation, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> Installation:
    """The same for workers in this process."""
    monkeypatch.setenv("PRESS_TOKEN", TOKEN)
    return with_http_channel(installation, folder, url)


async def approved(installation: Installation, operation: str) -> WorkflowHandle[Any, Any]:
    """A run that waited for people, and that bob approved."""
    run = await installation.start(operation)
    await until_state(run, State.WAITING_APPROVAL)
    decision = installation.decision(installation.proposal(operation), "bob")
    outcome = await run.execute_update("decide", decision, result_type=Outcome)
    assert outcome.ruling == Ruling.ACCEPTED
    return run
