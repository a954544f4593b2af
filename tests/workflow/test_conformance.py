"""What the SDK lets pass in silence: steps that are none, parameters that turn into dicts, modules imported twice."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from temporalio import activity, workflow
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from activities import interfaces
from countersign.bootstrap import agent_activities, gateway_activities
from countersign.worker_process import PASSED_THROUGH
from tests.support.installation import Installation
from workflows.governed_action import GovernedAction


def declared() -> dict[str, object]:
    """Every step that a workflow may call, by activity name."""
    stubs = [
        kind for _, kind in inspect.getmembers(interfaces, inspect.isclass) if kind.__module__ == interfaces.__name__
    ]
    return {
        definition.name: method
        for stub in stubs
        for _, method in inspect.getmembers(stub, inspect.isfunction)
        if (definition := activity._Definition.from_callable(method)) is not None and definition.name
    }


async def test_every_declared_step_is_registered_by_exactly_one_role(installation: Installation) -> None:
    settings, ledger = installation.settings, installation.ledger
    registered = [
        activity._Definition.must_from_callable(step).name
        for step in [*agent_activities(settings, ledger), *gateway_activities(settings, ledger)]
    ]
    assert sorted(registered, key=str) == sorted(declared())


def test_every_step_takes_one_argument() -> None:
    """An omitted second parameter turns the first into a dict (the SDK's issue 360)."""
    assert declared()
    for name, method in declared().items():
        assert len(inspect.signature(method).parameters) == 2, name  # type: ignore[arg-type]


def test_the_workflow_comes_from_this_repository() -> None:
    assert Path(inspect.getfile(GovernedAction)).parent == Path(__file__).resolve().parents[2] / "workflows"


def test_nothing_is_imported_again_for_each_run() -> None:
    """A module of ours that is forgotten in the pass-through costs 1 MiB and 50 ms a run."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    strict = SandboxedWorkflowRunner(
        restrictions=restrictions.with_import_notification_policy(
            workflow.SandboxImportNotificationPolicy.WARN_ON_DYNAMIC_IMPORT
            | workflow.SandboxImportNotificationPolicy.RAISE_ON_UNINTENTIONAL_PASSTHROUGH
        )
    )
    Replayer(workflows=[GovernedAction], workflow_runner=strict)


@pytest.mark.guarantee("G39")
async def test_the_drafting_role_has_no_effect_step(installation: Installation) -> None:
    names = {
        activity._Definition.must_from_callable(step).name
        for step in agent_activities(installation.settings, installation.ledger)
    }
    assert names.isdisjoint({"execute", "reconcile"})
