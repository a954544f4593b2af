"""Replay that compares every command with what was recorded: arguments, time limits, timers, results, attributes.

It stands apart because the SDK's own replayer compares little more than kinds and ids: a changed argument or time limit
passes it. A recording is a history with the commands that the workflow gave while it was made, since a history does not
hold what its local activities were asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, WorkflowInstance, WorkflowInstanceDetails

from workflows.governed_action import GovernedAction
from workflows.names import RUN_QUEUE

FOLDER = Path(__file__).with_name("histories")
Fact = tuple[str, ...]


class CommandRecorder(UnsandboxedWorkflowRunner):
    """Runs workflows as usual and keeps the commands they give."""

    def __init__(self) -> None:
        self.commands: list[WorkflowCommand] = []

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """An instance whose activations are listened to."""
        instance = super().create_instance(det)
        activate = instance.activate

        def listened(act: WorkflowActivation) -> WorkflowActivationCompletion:
            completion = activate(act)
            self.commands.extend(completion.successful.commands)
            return completion

        instance.activate = listened  # type: ignore[method-assign]  # the SDK offers no hook for this
        return instance


async def commands_of(history: WorkflowHistory) -> list[WorkflowCommand]:
    """The commands that today's workflow gives for a history, which the SDK's own comparison must pass too."""
    recorder = CommandRecorder()
    replayer = Replayer(workflows=[GovernedAction], workflow_runner=recorder, data_converter=pydantic_data_converter)
    await replayer.replay_workflow(history)
    return recorder.commands


def as_kept(commands: list[WorkflowCommand]) -> list[dict[str, Any]]:
    """Commands in the form in which recordings keep them."""
    return [MessageToDict(command) for command in commands]


def save(name: str, history: WorkflowHistory, commands: list[WorkflowCommand]) -> None:
    """Keep a recording under a name, without stack traces of failures: they name folders, and nothing reads them."""
    events = _without_stack_traces(history.to_json_dict())
    kept = {"workflow_id": history.workflow_id, "history": events, "commands": as_kept(commands)}
    (FOLDER / f"{name}.json").write_text(json.dumps(kept, separators=(",", ":"), sort_keys=True) + "\n")


def _without_stack_traces(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_stack_traces(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {name: _without_stack_traces(each) for name, each in part.items() if name != "stackTrace"}


def load(name: str) -> tuple[WorkflowHistory, list[dict[str, Any]]]:
    """A recording's history and commands."""
    kept = json.loads((FOLDER / f"{name}.json").read_text())
    return WorkflowHistory.from_json(kept["workflow_id"], kept["history"]), kept["commands"]


def facts_of_history(history: WorkflowHistory) -> list[Fact]:
    """What the server recorded of a run's commands, as far as both sides have it."""
    return sorted(fact for event in history.events for fact in _facts_of_event(event))


def facts_of_commands(commands: list[WorkflowCommand]) -> list[Fact]:
    """The same of commands."""
    return sorted(fact for command in commands for fact in _facts_of_command(command))


def _facts_of_event(event: HistoryEvent) -> Iterator[Fact]:
    match event.event_type:
        case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            step = event.activity_task_scheduled_event_attributes
            yield _step(step.activity_type.name, step.task_queue.name, step.input.payloads, step.start_to_close_timeout)
        case EventType.EVENT_TYPE_TIMER_STARTED:
            yield "timer", event.timer_started_event_attributes.start_to_fire_timeout.ToJsonString()
        case EventType.EVENT_TYPE_MARKER_RECORDED:
            marker = event.marker_recorded_event_attributes
            if marker.marker_name == "core_local_activity":
                yield "local", json.loads(marker.details["data"].payloads[0].data)["activity_type"]
        case EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
            yield _attributes(event.upsert_workflow_search_attributes_event_attributes.search_attributes)
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
            result = event.workflow_execution_completed_event_attributes.result
            yield "result", result.payloads[0].data.decode()
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
            carried = event.workflow_execution_continued_as_new_event_attributes.input.payloads
            yield "goes on", *(each.data.decode() for each in carried)
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
            yield ("cancelled",)


def _facts_of_command(command: WorkflowCommand) -> Iterator[Fact]:
    match command.WhichOneof("variant"):
        case "schedule_activity":
            step = command.schedule_activity
            # A step without a queue of its own goes to the run's, which is another one while replaying.
            queue = RUN_QUEUE if step.task_queue.startswith("replay-") else step.task_queue
            yield _step(step.activity_type, queue, step.arguments, step.start_to_close_timeout)
        case "start_timer":
            yield "timer", command.start_timer.start_to_fire_timeout.ToJsonString()
        case "schedule_local_activity":
            yield "local", command.schedule_local_activity.activity_type
        case "upsert_workflow_search_attributes":
            yield _attributes(command.upsert_workflow_search_attributes.search_attributes)
        case "complete_workflow_execution":
            yield "result", command.complete_workflow_execution.result.data.decode()
        case "continue_as_new_workflow_execution":
            yield "goes on", *(each.data.decode() for each in command.continue_as_new_workflow_execution.arguments)
        case "cancel_workflow_execution":
            yield ("cancelled",)


def _step(name: str, queue: str, arguments: Any, limit: Any) -> Fact:
    return "step", name, queue, *(each.data.decode() for each in arguments), limit.ToJsonString()


def _attributes(attributes: Any) -> Fact:
    return "attributes", *(f"{name}={value.data.decode()}" for name, value in sorted(attributes.indexed_fields.items()))
