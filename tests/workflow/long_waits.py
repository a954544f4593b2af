"""Runs over days: time passes up to a moment, with workers or without, and what was recorded and told in that time."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from countersign.domain.audit import AuditRecord
from countersign.domain.notice import Notice, NoticeKind
from countersign.domain.state import State
from tests.support.installation import Installation
from tests.support.skipping import Skipping
from tests.support.waiting import until_state
from tests.workflow.acting import Run

JUST_BEFORE = timedelta(seconds=5)
"""Before a moment, and yet long enough for what a test does then."""
SURELY = timedelta(seconds=1)
"""Past a moment, so that the server has noticed it: a task that it hands out in that very instant is lost in the test
server, as `tests.course.recorded.Stranded` says."""
AT_ONCE = timedelta(seconds=10)
"""How late something may be that comes at its time, on a machine that has much to do."""


async def time_is(skipping: Skipping, moment: datetime) -> None:
    """Let time pass until `moment`.

    The test server's time jumps over nothing while a task waits for a worker, so the last of it passes by itself.
    """
    left = moment - await skipping.now() - timedelta(milliseconds=200)
    if left > timedelta(0):
        await skipping.pass_time(left)
    while await skipping.now() < moment:
        await asyncio.sleep(0.02)


async def waiting(installation: Installation, operation: str = "op-1", **request: Any) -> Run:
    """A run that waits for people."""
    run = await installation.start(operation, **request)
    await until_state(run, State.WAITING_APPROVAL)
    return run


def audited(installation: Installation, *types: str) -> list[AuditRecord]:
    """The records of these types, in their order."""
    return [record for record in installation.ledger.audit.records("acme", "op-1") if record.type in types]


def told(installation: Installation, kind: NoticeKind) -> list[Notice]:
    """What people are told of that kind, in its order; the outbox has it from the transaction of what it tells of."""
    return [notice for _, notice in installation.ledger.outbox.unaddressed("acme", 1_000) if notice.kind == kind]
