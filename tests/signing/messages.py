"""A run's step that takes decisions, and messages to it, over a ledger that keeps what reached it.

Apart from the tests because signed and unsigned messages, and each kind of decision, are sent in the same way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

from temporalio.testing import ActivityEnvironment

from activities.deciding import DecidingSteps
from activities.interfaces import Message, MessageBatch
from activities.runs import Runs
from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Background, Outcome, rule_on
from countersign.domain.directory import Person
from countersign.domain.edit import Edit
from countersign.domain.errors import NotFound
from countersign.domain.identity import workflow_id
from countersign.domain.proposal import Approval, Proposal
from countersign.ports import Ledger, Received
from tests.domain.samples import NOW, an_approval
from tests.signing.tokens import directory, token

TOKEN = token()


@dataclass
class RecordedMessages:
    """What reached the ledger: decisions that were ruled on, as the ledger rules, and refusals to record."""

    approval: Approval
    ruled_on: list[Received] = field(default_factory=list)
    refused: list[Outcome] = field(default_factory=list)

    def decide(self, received: Received, signer: Person, edit: Edit | None = None) -> Outcome:
        self.ruled_on.append(received)
        background = Background(directory(), NOW, received.assurance, edit=edit)
        return rule_on(received.statement, signer, self.approval, background)

    def record_refusal(
        self, tenant: str, operation: str, message_id: str, transport: str, outcome: Outcome, now: datetime
    ) -> Outcome:
        self.refused.append(outcome)
        return outcome

    def current(self, tenant: str, operation: str) -> None:
        return None


def sent(
    *bodies: str | None,
    name: str = "decide",
    operation: str = "report-1",
    unsigned: bool = False,
    proposal: Proposal | None = None,
) -> tuple[list[Outcome], RecordedMessages]:
    recorded = RecordedMessages(an_approval(proposal))
    ledger = SimpleNamespace(
        approvals=recorded, documents=Documents(), directory=SimpleNamespace(persons=lambda tenant: directory())
    )
    kept = cast(Ledger, ledger)
    messages = tuple(
        Message(
            id=f"run:{number}",
            name=name,
            transport="signal",
            body=body,
            problem="" if body else "no argument",
            received_at=NOW,
        )
        for number, body in enumerate(bodies)
    )
    batch = MessageBatch(tenant="acme", operation=operation, messages=messages)
    steps = DecidingSteps(kept, Runs(kept, lambda: NOW), "local", {}, unsigned=unsigned)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id=workflow_id("acme", operation))
    return list(environment.run(steps.decide, batch).outcomes), recorded


REASON, BLANK = b"the building is on fire", b" \n"


class Documents:
    """A ledger to which somebody gave two comments, and nobody an edited action."""

    def get(self, tenant: str, sha256: str) -> bytes:
        for comment in (REASON, BLANK):
            if sha256_hex(comment) == sha256:
                return comment
        raise NotFound(f"document {sha256} is not there")


def body_of(statement: Any = TOKEN) -> str:
    return json.dumps({"statement": statement})
