"""A person takes over while the agent drafts: from then on it calls neither its model nor a tool (G30)."""

from __future__ import annotations

from pathlib import Path

import pytest

from countersign.agents.models import ModelSettings
from countersign.domain.errors import ControlChanged
from tests.agents.tables import DELIVER, DESCRIBE, QUERY, Heard, Sales, reporter, sales_material
from tests.support.model_server import running_model_server


@pytest.mark.guarantee("G30")
@pytest.mark.parametrize(
    ("taken_over_before", "model_calls", "tool_calls"),
    [
        ("model call 1", 0, []),
        ("tool_called describe_dataset", 1, []),
        ("model call 2", 1, ["describe"]),
        ("tool_called query_dataset", 2, ["describe"]),
        ("model call 3", 2, ["describe", "query"]),
    ],
)
async def test_no_call_is_made_after_a_takeover(
    tmp_path: Path, taken_over_before: str, model_calls: int, tool_calls: list[str]
) -> None:
    def before(words: str) -> None:
        if words == taken_over_before:
            raise ControlChanged("lea is in control")

    with running_model_server([DESCRIBE, QUERY, DELIVER]) as server:
        settings = ModelSettings(api_key="k", base_url=server.url, draft_model="test-model", timeout_seconds=30)
        agent, data = reporter(settings, f"sqlite:///{tmp_path / 'checkpoints.sqlite'}"), Watched()
        with pytest.raises(ControlChanged):
            await agent.draft("acme:op-1:line:1:v1", 1, sales_material(data), None, (), {}, True, Heard(before))
        assert (server.calls, data.calls) == (model_calls, tool_calls)


class Watched(Sales):
    """Sales that notes which of the agent's tools read it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        super().__init__(lambda sql: self.calls.append("query"))

    def describe(self):
        self.calls.append("describe")
        return super().describe()
