"""Rounds of drafting, and every way in which none of them leads to a proposal: then nothing is proposed or sent."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from sqlalchemy import create_engine, select

from countersign.domain.run import RunResult
from countersign.domain.state import State
from countersign.ledger.tables import draft_grades
from tests.support.installation import Installation
from tests.support.model_server import running_model_server
from tests.workflow.scripted_model import (
    UNREADABLE,
    ScriptedModel,
    asking,
    assignment_in,
    draft,
    grade,
    is_grading,
)

pytestmark = pytest.mark.long


@pytest.fixture
def sqlite_installation(sqlite_installation: Installation, tmp_path: Path) -> Installation:
    """One whose policy brings nothing before people: a run that cannot go on has failed."""
    return sqlite_installation.with_fields(tmp_path, escalations={})


UNSUPPORTED = draft(body="Sales came to {{total}} in all, and 17 customers left.")


def assert_nothing_was_proposed_or_sent(installation: Installation, result: RunResult, reason: str) -> None:
    """Neither the run nor the ledger nor the outside knows of any proposal or effect."""
    assert (result.state, result.reason) == (State.FAILED, reason)
    assert installation.ledger.approvals.current("acme", "op-1") is None
    assert installation.ledger.executions.get("acme", "op-1") is None
    assert installation.published() == installation.published("internal") == []
    assert installation.ledger.operations.get("acme", "op-1").state == State.FAILED


async def test_what_the_checks_found_reaches_the_next_version_which_is_published(
    sqlite_installation: Installation,
) -> None:
    model = ScriptedModel(drafts=[UNSUPPORTED, draft()])
    with running_model_server(model) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            run = await asked.start("op-1", channel="internal")
            result = await run.result()
    assert result.state == State.SUCCEEDED
    (report,) = asked.published("internal")
    assert "500.50" in report.read_text()
    assert "17 customers" not in report.read_text()
    second = assignment_in(server.requests[3])
    assert any("unsupported_number" in line and "17" in line for line in second["feedback"])
    assert "17 customers" in second["earlier_draft"]["body"]
    assert model.gradings == 1


async def test_what_the_grader_misses_reaches_the_next_version(sqlite_installation: Installation) -> None:
    model = ScriptedModel(
        drafts=[draft(), draft(body="In all, sales came to {{total}}, summed over all records.")],
        grades=[grade("needs_revision", gap="does not open with its conclusion"), grade()],
    )
    with running_model_server(model) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            result = await (await asked.start("op-1", channel="internal")).result()
    assert result.state == State.SUCCEEDED
    second = next(each for each in map(assignment_in, drafting(server.requests)) if each["earlier_draft"])
    assert "clear-conclusion: does not open with its conclusion" in second["feedback"]


def drafting(requests: list[dict[str, object]]) -> list[dict[str, object]]:
    return [request for request in requests if not is_grading(request)]


@pytest.mark.guarantee("G40")
@pytest.mark.parametrize(
    ("model", "reason", "gradings"),
    [
        (ScriptedModel(drafts=[UNSUPPORTED], grades=[grade()]), "checks_failed", 0),
        (ScriptedModel(grades=[grade("needs_revision", gap="unclear")]), "max_iterations_reached", 3),
        (ScriptedModel(grades=[grade("failed", gap="cannot be graded")]), "rubric_failed", 1),
        (ScriptedModel(grades=UNREADABLE), "rubric_grader_error", 2),
    ],
    ids=["checks never pass", "grade never satisfied", "rubric failed", "grader unreadable twice"],
)
async def test_without_a_satisfied_version_nothing_is_proposed(
    sqlite_installation: Installation, model: ScriptedModel, reason: str, gradings: int
) -> None:
    with running_model_server(model) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            result = await (await asked.start("op-1", channel="internal")).result()
    assert_nothing_was_proposed_or_sent(asked, result, reason)
    assert model.gradings == gradings
    assert asked.ledger.audit.verify("acme").count > 0


async def test_answers_of_the_grader_that_cannot_be_read_are_kept(sqlite_installation: Installation) -> None:
    with running_model_server(ScriptedModel(grades=UNREADABLE)) as server:
        asked = asking(sqlite_installation, server)
        async with asked.workers():
            await (await asked.start("op-1", channel="internal")).result()
    with create_engine(asked.settings.ledger_url).connect() as connection:
        kept = connection.execute(select(draft_grades.c.grade).order_by(draft_grades.c.number)).scalars().all()
    assert [grade.verdict for grade in kept] == ["grader_error"] * 2
    assert [answer.text in grade.answer.raw for answer, grade in zip(UNREADABLE, kept, strict=True)] == [True, True]


@pytest.mark.guarantee("G09")
async def test_nothing_is_proposed_for_a_channel_of_other_tenants(
    sqlite_installation: Installation, tmp_path: Path
) -> None:
    """However the run was started: by the command, it would have been refused there."""
    changed = sqlite_installation.with_policy(tmp_path)
    path = changed.settings.policies / "channels.yaml"
    channels = yaml.safe_load(path.read_text())
    channels["channels"]["internal"]["tenants"] = ["globex"]
    path.write_text(yaml.safe_dump(channels))
    async with changed.workers():
        result = await (await changed.start("op-1", channel="internal")).result()
    assert_nothing_was_proposed_or_sent(changed, result, "configuration_refused")
    (failed,) = [one for one in changed.ledger.audit.records("acme", "op-1") if one.type == "step.failed"]
    said = changed.ledger.documents.get("acme", str(failed.detail["sentence"]))
    assert said == b"channel 'internal' is not configured for tenant acme; allowed: messages, payments, public"


@pytest.mark.guarantee("G01")
async def test_a_side_effect_that_no_rule_names_is_denied(sqlite_installation: Installation, tmp_path: Path) -> None:
    changed = sqlite_installation.with_policy(tmp_path)
    path = changed.settings.policies / "channels.yaml"
    channels = yaml.safe_load(path.read_text())
    wire = {"kind": "file", "tenants": ["acme"], "side_effect": "payment", "reversibility": "irreversible"}
    channels["channels"]["wire"] = wire
    path.write_text(yaml.safe_dump(channels))
    async with changed.workers():
        result = await (await changed.start("op-1", channel="wire")).result()
    assert_nothing_was_proposed_or_sent(changed, result, "denied_by_policy")
    assert changed.published("wire") == []
