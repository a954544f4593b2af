"""What people do in a run, as updates that tell them at once what became of it; and what is then on record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest
from temporalio.client import WorkflowHandle

from countersign.domain.canonical import canonical_bytes
from countersign.domain.command import CommandKind
from countersign.domain.decision import Outcome, Ruling
from countersign.domain.proposal import Approval, Proposal, StatementKind
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.waiting import until_state

Run = WorkflowHandle[Any, Any]


def operation_of(run: Run) -> str:
    """The operation that it carries."""
    return run.id.partition(":")[2]


async def command(installation: Installation, run: Run, person: str, kind: CommandKind, **changes: Any) -> Outcome:
    """A person commands something, by the control version in force unless `changes` name another one."""
    message = installation.command(operation_of(run), person, kind, **changes)
    outcome: Outcome = await run.execute_update(kind, message, result_type=Outcome)
    return outcome


async def done(installation: Installation, run: Run, person: str, kind: CommandKind, **changes: Any) -> None:
    """The same, where it is to be accepted."""
    outcome = await command(installation, run, person, kind, **changes)
    assert outcome.ruling == Ruling.ACCEPTED, outcome.sentence()


async def vote(
    installation: Installation, run: Run, person: str, decision: StatementKind = "approve",
    proposal: Proposal | None = None,
) -> Outcome:  # fmt: skip
    """A person decides about the current proposal, or about an earlier one."""
    about = proposal or installation.proposal(operation_of(run))
    message = installation.decision(about, person, decision)
    outcome: Outcome = await run.execute_update("decide", message, result_type=Outcome)
    return outcome


def stored(installation: Installation, value: Any) -> str:
    """Put what a command names by its hash into the ledger."""
    return installation.ledger.documents.put(installation.tenant, canonical_bytes(value))


def rewritten(installation: Installation, operation: str, version: int, **changes: Any) -> str:
    """A draft made of that version with these fields changed, for `amend`."""
    draft = installation.ledger.drafts.get(installation.tenant, operation, version)
    return stored(installation, {**draft, **changes})


def approval(installation: Installation, operation: str = "op-1") -> Approval:
    """The current one."""
    current = installation.ledger.approvals.current(installation.tenant, operation)
    assert current is not None
    return current


def records(installation: Installation, type: str, operation: str = "op-1") -> list[dict[str, Any]]:
    """Details of an operation's audit records of one type, with who did it."""
    found = installation.ledger.audit.records(installation.tenant, operation)
    return [{**record.detail, "subject": record.subject} for record in found if record.type == type]


async def taken_over(installation: Installation, run: Run, person: str = "lea") -> None:
    """By a person, and the run has acted on it."""
    await done(installation, run, person, "take_over")
    status = await until_state(run, State.HUMAN_TAKEOVER)
    assert status.control == person


async def proposed(installation: Installation, operation: str = "op-1") -> Run:
    """A run that waits for people."""
    run = await installation.start(operation)
    await until_state(run, State.WAITING_APPROVAL)
    return run


async def owned(installation: Installation) -> Run:
    """A run with one draft, which lea holds."""
    run = await proposed(installation)
    await taken_over(installation, run)
    return run


async def approved_by(installation: Installation, run: Run, person: str = "bob") -> None:
    """What the person in control proposed is approved by another one."""
    await until_state(run, State.WAITING_APPROVAL)
    assert (await vote(installation, run, person)).ruling == Ruling.ACCEPTED


def work_on(installation: Installation, operation: str) -> list[tuple[CommandKind, dict[str, Any]]]:
    """All that the person in control does with version 1."""
    content = rewritten(installation, operation, 1, title="Another title")
    return [
        ("amend", {"draft_version": 1, "content": content}),
        ("grade", {"draft_version": 1}),
        ("propose", {"draft_version": 1}),
        ("release", {"draft_version": 1}),
        ("hand_over", {"to": "leo"}),
    ]


async def settled(installation: Installation, run: Run, person: str, finding: str, reference: str = "") -> Outcome:
    """A person says what became of the run's effect, with evidence; again where the gateway is just looking it up."""
    execution = installation.ledger.executions.get(installation.tenant, operation_of(run))
    assert execution is not None
    evidence = installation.ledger.documents.put(installation.tenant, b"seen in their console")
    said = {"key": execution.key, "finding": finding, "reference": reference, "comment_hash": evidence}
    async with asyncio.timeout(60):
        while True:
            outcome = await command(installation, run, person, "settle", **said)
            if outcome.ruling != Ruling.BEING_LOOKED_UP:
                return outcome
            await asyncio.sleep(0.2)


async def until_idle(run: Run) -> None:
    """Wait until no step is under way, given-up ones included: what they would still do, they have done."""
    async with asyncio.timeout(60):
        while (await run.describe()).raw_description.pending_activities:
            await asyncio.sleep(0.05)


class Held:
    """A call that begins, and then waits until the test lets it go on."""

    def __init__(self) -> None:
        self._begun, self._may_go_on = Event(), Event()

    async def begun(self) -> None:
        """Wait until the call was made."""
        assert await asyncio.to_thread(self._begun.wait, 60)

    def go_on(self) -> None:
        """Let it, and every later one, through."""
        self._may_go_on.set()

    def around(self, really: Callable[..., Any]) -> Callable[..., Any]:
        """The call that waits first."""

        def held(*arguments: Any, **named: Any) -> Any:
            self._begun.set()
            assert self._may_go_on.wait(60)
            return really(*arguments, **named)

        return held


@contextmanager
def holding_back(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Iterator[Held]:
    """Calls of `owner.name` wait until the test lets them go on."""
    held = Held()
    monkeypatch.setattr(owner, name, held.around(getattr(owner, name)))
    try:
        yield held
    finally:
        held.go_on()
