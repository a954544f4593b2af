"""What every test can ask for: real Temporal servers, real databases, real processes, each started only when asked."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from tests.support.installation import Installation, new_installation
from tests.support.ledgers import with_tables
from tests.support.payments import Payments, running_payments
from tests.support.postgres import PostgresServer, drop_database, running_postgres
from tests.support.processes import Processes
from tests.support.temporal import running_dev_server, time_skipping_environment

# How long an example takes says nothing here: the first one compiles what the others use, on a machine that is busy.
settings.register_profile("countersign", deadline=None)
settings.load_profile("countersign")


def pytest_collection_finish() -> None:
    """What is loaded by now stays to the end: the garbage collector need not look through all of it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def temporal_server() -> Iterator[str]:
    """The address (`host:port`) of one dev server for the whole run; tests keep apart by tenant and task queue."""
    with running_dev_server() as address:
        yield address


@pytest.fixture
async def time_skipping_server() -> AsyncIterator[WorkflowEnvironment]:
    """A test server whose clock jumps over waits; each test has its own, since the clock is the server's."""
    async with time_skipping_environment() as environment:
        yield environment


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL server for the whole run."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgresServer) -> Callable[[], str]:
    """A factory: each call creates an empty PostgreSQL database and returns its URL."""
    return postgres_server.create_database


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A new ledger's URL, with its tables; the test runs once on a SQLite file and once on PostgreSQL."""
    yield from _new_ledger(request, tmp_path / "ledger.sqlite")


def _new_ledger(request: pytest.FixtureRequest, file: Path, *, bare: bool = False) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{file}" if bare else with_tables(file)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.create_database(with_tables=not bare)
    yield url
    drop_database(url)


@pytest.fixture(params=["sqlite", "postgres"], scope="module")
def shared_ledger_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same for all tests of a module that change nothing in it, since filling it takes longer than they do."""
    yield from _new_ledger(request, tmp_path_factory.mktemp("shared") / "ledger.sqlite")


@pytest.fixture(params=["sqlite", "postgres"])
def bare_ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The same without tables, for tests of how they come."""
    yield from _new_ledger(request, tmp_path / "ledger.sqlite", bare=True)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Starts programs; whatever of them is left at the end of the test is killed."""
    started = Processes(tmp_path)
    yield started
    started.close()


@pytest.fixture
def payments(tmp_path: Path) -> Iterator[Payments]:
    """The payment service of the examples, with its orders."""
    with running_payments(tmp_path / "payments.sqlite") as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def runs_ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The ledger of whole runs: on PostgreSQL in `make long`, and those of test_run.py always."""
    yield from _new_ledger(request, tmp_path / "ledger.sqlite")


@pytest.fixture
async def installation(tmp_path: Path, runs_ledger_url: str) -> AsyncIterator[Installation]:
    """A whole installation with rita, bob and carl, on each ledger, with a server of its own: runs share nothing."""
    async with running_installation(tmp_path / "home", database_url=runs_ledger_url) as made:
        yield made


@pytest.fixture
async def sqlite_installation(tmp_path: Path) -> AsyncIterator[Installation]:
    """The same on SQLite alone, for tests of what no database decides."""
    async with running_installation(tmp_path / "home") as made:
        yield made


@asynccontextmanager
async def running_installation(home: Path, **settings: Any) -> AsyncIterator[Installation]:
    """An installation with a dev server of its own."""
    server = running_dev_server()
    address = await asyncio.to_thread(server.__enter__)
    try:
        client = await Client.connect(address, data_converter=pydantic_data_converter)
        made = new_installation(home, client, **settings)
        yield made
        made.ledger.close()
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)
