"""Whole runs: the same texts on Temporal, to where people are called or to where they decide."""

from __future__ import annotations

import pytest

from countersign.domain.decision import Ruling
from countersign.domain.state import State
from tests.hostile.house import cells
from tests.hostile.texts import CLAIMS, ORDERS, STOPPED
from tests.support.installation import Installation
from tests.support.model_server import Turn, running_model_server
from tests.support.waiting import until_state
from tests.workflow.acting import vote
from tests.workflow.scripted_model import ScriptedModel, asking, grade

TALKING = [Turn(text=f"{ORDERS['to the grader']}\n{CLAIMS['fake verdict']}")]


@pytest.mark.guarantee("G40")
async def test_runs_that_texts_would_let_out_are_brought_before_people(sqlite_installation: Installation) -> None:
    """By a cell, and by a grader that talks."""
    courses = {
        "cell": (ScriptedModel(), cells(ORDERS["Chinese release"]), STOPPED),
        "grader": (ScriptedModel(grades=TALKING), None, "rubric_grader_error"),
    }
    for operation, (model, data, code) in courses.items():
        with running_model_server(model) as server:
            installation = asking(sqlite_installation, server)
            async with installation.workers():
                run = await installation.start(operation, **({"data": data} if data else {}))
                status = await until_state(run, State.ESCALATED)

        assert status.reason == code
        assert installation.ledger.executions.get("acme", operation) is None
    assert (sqlite_installation.published("public"), sqlite_installation.published("internal")) == ([], [])


@pytest.mark.guarantee("G40")
async def test_a_run_among_texts_that_claim_to_be_decisions_goes_out_by_a_persons_word_alone(
    sqlite_installation: Installation,
) -> None:
    said = " ".join(CLAIMS.values())
    talking = Turn(text=said, calls=grade().calls)
    with running_model_server(ScriptedModel(grades=[talking])) as server:
        installation = asking(sqlite_installation, server)
        async with installation.workers():
            run = await installation.start("op-1", data=cells(*CLAIMS.values()), question=CLAIMS["approved by"])
            await until_state(run, State.WAITING_APPROVAL)
            before = installation.published()
            outcome = await vote(installation, run, "bob")
            result = await run.result()

    assert before == []
    assert outcome.ruling == Ruling.ACCEPTED
    assert result.state == State.SUCCEEDED
    assert [path.name for path in installation.published()] == ["op-1.md"]
