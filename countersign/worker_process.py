"""A worker process: one of two roles, or a parent of one process each.

The roles never share a process. The `agent` role runs workflows and every step but the effect and is given no outside
credential; the `gateway` role has the credentials and runs no model (G39).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Literal, NoReturn

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from countersign import bootstrap
from countersign.domain.errors import ConfigurationRefused, CountersignError, Unavailable
from countersign.domain.loopback import require_loopback
from countersign.ports import Ledger
from countersign.settings import ROOT, Settings, load_settings
from countersign.temporal_client import connect, measured, missing_search_attributes, server_address
from workflows.governed_action import GovernedAction
from workflows.names import GATEWAY_QUEUE, RUN_QUEUE
from workflows.retention import Retention

Role = Literal["all", "agent", "gateway"]

THREADS = 16
GRACE = timedelta(seconds=10)
"""How long a stopping worker lets its steps finish; a draft goes on elsewhere from its checkpoint."""
PASSED_THROUGH = ("activities", "countersign", "pydantic", "pydantic_core", "annotated_types", "rfc8785")
"""Imported once and not again per run; kept free of clocks and chance by lint (20 KiB a run instead of 1 MiB)."""


def main(role: Role) -> int:
    """Run until SIGTERM or SIGINT; the exit code is 0 after an orderly stop."""
    _quiet()
    try:
        settings = settings_of(role)
        if settings.takes_unsigned:
            require_loopback(server_address(), settings.ledger_url, bootstrap.load_channels(settings))
        if role == "agent":
            _refuse_secrets(settings)
        return _both(settings) if role == "all" else asyncio.run(_serve(role, settings))
    except CountersignError as refusal:
        print(f"error: {refusal.message}", file=sys.stderr)
        return 1


def leave(code: int) -> NoReturn:
    """End the process at once, after an orderly stop: while Python takes itself down, a thread of the SDK's core can
    still call into it, which aborts the process now and then (SIGABRT instead of the exit code; SDK 1.35)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _quiet() -> None:
    """Below WARNING libraries log prompts, statements with their values, and addresses, where the environment asks for
    it (`OPENAI_LOG`); what we log ourselves is above that, and holds none of it (G46)."""
    logging.disable(logging.INFO)
    activity.logger.base_logger.addFilter(plainly)


def plainly(record: logging.LogRecord) -> bool:
    """Make one line, without a traceback, of a step's failure by a code of ours: a provider that is away, a budget that
    is used up. Whatever nobody foresaw has the name of its class instead of a code, and keeps its traceback."""
    failure = record.exc_info[1] if record.exc_info else None
    if isinstance(failure, ApplicationError) and (failure.type or "").isupper():
        about = getattr(record, "temporal_activity", {})
        then = "not tried again" if failure.non_retryable else "tried again"
        record.msg, record.args = "%s, attempt %s: %s; %s", (
            about.get("workflow_id", "no run"), about.get("attempt", "unknown"), failure.message, then,
        )  # fmt: skip
        record.exc_info = None
    return True


def settings_of(role: Role) -> Settings:
    """The settings as a role is given them: the gateway knows no key of the agent's, not even from `.env`."""
    settings = load_settings()
    without = {"openai_api_key": None, "thread_keys": None}
    return settings.model_copy(update=without) if role == "gateway" else settings


def _refuse_secrets(settings: Settings) -> None:
    """Whoever starts this role alone decides its environment, and a drafting process has no credential in it (G39)."""
    given = sorted(name for name in bootstrap.secret_variables(settings) if os.environ.get(name))
    if given:
        raise ConfigurationRefused(
            f"environment {', '.join(given)}: the agent role may hold no credential of an outside system; unset it here"
            " and set it for: .venv/bin/python worker.py --role gateway"
        )


async def _serve(role: Role, settings: Settings) -> int:
    client = await connect(measured(settings.metrics_address))
    absent = await missing_search_attributes(client)
    if absent:
        raise Unavailable(
            f"search attributes are not registered: {', '.join(absent)}; run: .venv/bin/python starter.py doctor --fix"
        )
    ledger = bootstrap.open_ledger(settings)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    _stop_with_parent(stop)
    with ThreadPoolExecutor(THREADS) as threads:
        async with _relaying(role, settings, ledger), _worker(role, client, settings, ledger, threads):
            server = client.service_client.config.target_host
            print(f"worker ready: role {role}, server {server}, profile {settings.profile}", flush=True)
            await stop.wait()
            _end_after(GRACE + timedelta(seconds=10))
    ledger.close()
    return 0


@asynccontextmanager
async def _relaying(role: Role, settings: Settings, ledger: Ledger) -> AsyncIterator[None]:
    """Notices leave beside the gateway, which has the credentials of chat and mail too."""
    if role != "gateway":
        yield
        return
    relay = bootstrap.relay(settings, ledger, bootstrap.wall_clock)
    relay.start()
    try:
        yield
    finally:
        await asyncio.to_thread(relay.stop)


def _worker(role: Role, client: Client, settings: Settings, ledger: Ledger, threads: ThreadPoolExecutor) -> Worker:
    if role == "gateway":
        return worker(client, GATEWAY_QUEUE, bootstrap.gateway_activities(settings, ledger), threads)
    steps = bootstrap.agent_activities(settings, ledger)
    return worker(client, RUN_QUEUE, steps, threads, workflows=[GovernedAction, Retention])


def worker(
    client: Client,
    queue: str,
    activities: list[Callable[..., Any]],
    threads: ThreadPoolExecutor,
    workflows: list[type] | None = None,
) -> Worker:
    """A worker as we configure it, for processes and for tests in one process."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    return Worker(
        client,
        task_queue=queue,
        workflows=workflows or [],
        activities=activities,
        activity_executor=threads,
        workflow_runner=SandboxedWorkflowRunner(restrictions=restrictions),
        graceful_shutdown_timeout=GRACE,
        # A cancelled draft hears of it with a heartbeat that is really sent; the default is every 16 s.
        max_heartbeat_throttle_interval=timedelta(seconds=5),
        # A killed worker's runs wait this long before another takes them; the default is 10 s.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=2),
    )


def _both(settings: Settings) -> int:
    """One process per role, started and stopped together; if one ends, so does the other."""
    secrets = bootstrap.secret_variables(settings)
    without_secrets = {name: value for name, value in os.environ.items() if name not in secrets}
    of_agents = ("OPENAI_", "COUNTERSIGN_THREAD_KEYS")
    without_models = {name: value for name, value in os.environ.items() if not name.startswith(of_agents)}
    # Two processes cannot serve at one address.
    beside = {"COUNTERSIGN_METRICS_ADDRESS": _next_port(settings.metrics_address)}
    children = [_child("agent", without_secrets), _child("gateway", without_models | beside)]

    stopping = threading.Event()

    def stop(*_: object) -> None:
        # Once only: a second signal would end a child that has given up its handler already, and not in order.
        if not stopping.is_set():
            stopping.set()
            for child in children:
                child.terminate()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    codes: list[int] = []
    ended = threading.Event()

    def wait_for(child: subprocess.Popen[bytes]) -> None:
        codes.append(child.wait())
        ended.set()

    waiting = [threading.Thread(target=wait_for, args=(child,)) for child in children]
    for thread in waiting:
        thread.start()
    while not ended.wait(0.5):
        pass
    stop()
    for thread in waiting:
        thread.join()
    return max(abs(code) for code in codes)


def _next_port(address: str) -> str:
    """The same address, one port further; where it has no port in numbers the agent's process says what is wrong."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + 1}" if port.isdecimal() else address


def _child(role: Role, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    # The pipe's end closes when this process dies in whatever way, and the child stops (see _stop_with_parent).
    return subprocess.Popen(
        [sys.executable, str(ROOT / "worker.py"), "--role", role],
        env={**environment, "COUNTERSIGN_WORKER_PARENT": str(os.getpid())},
        stdin=subprocess.PIPE,
    )


def _end_after(limit: timedelta) -> None:
    """A step that is tried for as long as the ledger is away would keep a stopping process for as long."""
    ending = threading.Timer(limit.total_seconds(), os._exit, args=(1,))
    ending.daemon = True
    ending.start()


def _stop_with_parent(stop: asyncio.Event) -> None:
    """Stop when the parent is gone, so that a killed parent leaves no worker behind."""
    if "COUNTERSIGN_WORKER_PARENT" not in os.environ:
        return
    loop = asyncio.get_running_loop()

    def wait_for_end_of_input() -> None:
        while os.read(0, 1024):
            pass
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait_for_end_of_input, daemon=True).start()
