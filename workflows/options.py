"""Time limits and retries of every step, in one place.

A start-to-close limit does not stop an attempt that is still running, so no limit here is what keeps an effect single;
that is the gateway's claim (activities/executing.py).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TypedDict

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

from workflows.names import GATEWAY_QUEUE


class StepOptions(TypedDict, total=False):
    """Options of a normal activity."""

    task_queue: str
    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


class LocalOptions(TypedDict, total=False):
    """Options of a local activity."""

    start_to_close_timeout: timedelta
    retry_policy: RetryPolicy


_BACKOFF = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(minutes=1)
)

MODEL_STEP: StepOptions = {
    "start_to_close_timeout": timedelta(minutes=30),
    "schedule_to_close_timeout": timedelta(hours=6),
    "heartbeat_timeout": timedelta(seconds=20),
    "retry_policy": _BACKOFF,
    "cancellation_type": ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
}
"""Drafting and grading: a provider that is down or asks to wait is tried again for six hours."""

CHECK_STEP: StepOptions = {
    "start_to_close_timeout": timedelta(minutes=15),
    "schedule_to_close_timeout": timedelta(hours=6),
    "heartbeat_timeout": timedelta(seconds=20),
    "retry_policy": _BACKOFF,
}

RETENTION_STEP: StepOptions = {
    "start_to_close_timeout": timedelta(minutes=30),
    "schedule_to_close_timeout": timedelta(hours=6),
    "retry_policy": _BACKOFF,
}
"""Deleting old threads; what one attempt leaves, the next one finds."""

LEDGER_STEP: LocalOptions = {"start_to_close_timeout": timedelta(seconds=60), "retry_policy": _BACKOFF}
"""Small idempotent steps on the ledger; without it nothing may go on, so they are tried until it is back."""

FLOOD_STEP: StepOptions = {"start_to_close_timeout": timedelta(seconds=60), "retry_policy": _BACKOFF}
"""Ruling on many messages at once, as a normal activity (workflows/mailbox.py)."""

EFFECT_STEP: StepOptions = {
    "task_queue": GATEWAY_QUEUE,
    "start_to_close_timeout": timedelta(seconds=40),
    "retry_policy": _BACKOFF,
}
"""One attempt is a look-up and a send of at most 11 s each, and its claim ends after 27 s: when a killed gateway's
attempt is given up here, the next one may act at once. No limit in sum: an effect may have happened, so its outcome is
asked for until it is known."""

GATHER_STEP: StepOptions = {
    "task_queue": GATEWAY_QUEUE,
    "start_to_close_timeout": timedelta(seconds=40),
    "schedule_to_close_timeout": timedelta(hours=6),
    "retry_policy": _BACKOFF,
}
"""Reading what an operation rests on outside; a service that does not answer is asked again for six hours."""

RECONCILE_STEP: StepOptions = {
    "task_queue": GATEWAY_QUEUE,
    "start_to_close_timeout": timedelta(seconds=40),
    "retry_policy": RetryPolicy(
        initial_interval=timedelta(seconds=2), backoff_coefficient=2.0, maximum_interval=timedelta(minutes=5)
    ),
}
"""Looks up until it is known: an answer "still unknown" is a failure to be tried again, which costs no history, however
many weeks it takes."""

UNKNOWN_ESCALATES_AFTER = timedelta(minutes=15)
"""When people are called because an outcome is still unknown; it is looked up all the same."""

RETRY_PAUSES = tuple(timedelta(seconds=seconds) for seconds in (2, 5, 10, 15, 30, 60, 300))
"""Before the next attempt to send; the last is repeated."""


FROZEN_PAUSE = timedelta(seconds=60)
"""The longest wait while effects are frozen: whoever lifts a freeze is waiting for what it held."""


def pause(attempt: int, *, held: bool = False) -> timedelta:
    """How long to wait after the `attempt`-th failure, counted from 1; `held`: since effects are frozen."""
    wait = RETRY_PAUSES[min(attempt, len(RETRY_PAUSES)) - 1]
    return min(wait, FROZEN_PAUSE) if held else wait
