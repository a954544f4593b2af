"""The tests' own ground: a killed process takes its children along, and the databases and servers are real."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from tests.support.processes import Processes, ProcessFailed
from workflows.names import SEARCH_ATTRIBUTES

ENDS_WITH_SEVEN = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
signal.pause()
"""
# The child alone holds the writing end of the pipe, so the reader meets its end when the child is gone.
CHILD = "import sys, time; pipe = open(sys.argv[1], 'w'); time.sleep(600)"
PARENT = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {CHILD!r}, sys.argv[1]])
time.sleep(600)
"""


def test_a_killed_process_takes_its_children_along(processes: Processes, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    parent = processes.start([sys.executable, "-c", PARENT, pipe])
    with pipe.open() as held_by_child:
        parent.kill()

        assert parent.wait() == -signal.SIGKILL
        assert held_by_child.read() == ""


def test_a_stopped_process_gives_its_exit_code(processes: Processes) -> None:
    program = (
        "import signal, sys; signal.signal(15, lambda *_: sys.exit(7)); print('ready', flush=True); signal.pause()"
    )
    process = processes.start([sys.executable, "-c", program])
    process.wait_for_line("^ready$")

    assert process.stop() == 7


def test_waiting_for_a_line_of_a_program_that_ended_shows_its_output(processes: Processes) -> None:
    process = processes.start([sys.executable, "-c", "import sys; sys.exit('no such port')"])

    with pytest.raises(ProcessFailed, match="no such port"):
        process.wait_for_line("ready")


def test_each_bare_ledger_is_new_and_empty(bare_ledger_url: str) -> None:
    engine = sqlalchemy.create_engine(bare_ledger_url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("CREATE TABLE note (id INTEGER PRIMARY KEY)"))
        assert sqlalchemy.inspect(engine).get_table_names() == ["note"]
    finally:
        engine.dispose()


def test_databases_do_not_share_tables(postgres_url: Callable[[], str]) -> None:
    first, second = postgres_url(), postgres_url()
    with psycopg.connect(first) as connection:
        connection.execute("CREATE TABLE note (id INTEGER)")

    with psycopg.connect(second) as connection:
        assert connection.execute("SELECT to_regclass('note')").fetchone() == (None,)


async def test_the_dev_server_knows_the_search_attributes(temporal_server: str) -> None:
    client = await Client.connect(temporal_server)
    request = ListSearchAttributesRequest(namespace=client.namespace)
    registered = await client.operator_service.list_search_attributes(request)

    assert set(SEARCH_ATTRIBUTES) <= set(registered.custom_attributes)


async def test_the_test_server_skips_time(time_skipping_server: WorkflowEnvironment) -> None:
    before = await time_skipping_server.get_current_time()
    await time_skipping_server.sleep(72 * 3600)

    assert (await time_skipping_server.get_current_time() - before).total_seconds() >= 72 * 3600
