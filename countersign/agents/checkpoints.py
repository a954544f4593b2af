"""Where an agent's progress is kept: LangGraph checkpoints in a SQLite file or in PostgreSQL, sealed and fenced.

It stands apart because LangGraph's savers know no attempts. An activity attempt that timed out can still be running;
each thread therefore has one current attempt, and a write of any other is refused in the transaction that would have
made it, whichever process it comes from. How rows are sealed: checkpoint_sealing.py; how they go: threads.py.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import aiosqlite
import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg.rows import DictRow, dict_row

from countersign.agents.checkpoint_keys import CheckpointRefused, ThreadKeys
from countersign.agents.checkpoint_sealing import INSTEAD, SealedSaver, SealedSerializer
from countersign.agents.failures import AttemptSuperseded
from countersign.agents.threads import BUSY_SECONDS, SCHEMA, store_at, unusable
from countersign.domain.values import Value

SETUP_LOCK = 0x636F756E  # any number that names this setup among PostgreSQL's advisory locks
CREATE = "CREATE TABLE IF NOT EXISTS checkpoint_attempts (thread_id TEXT PRIMARY KEY, attempt BIGINT NOT NULL)"
WIDEN = "ALTER TABLE checkpoint_attempts ALTER COLUMN attempt TYPE BIGINT"
"""PostgreSQL's, for tables that were made when attempts were counted from 1 and fitted into 32 bits."""
ENTER = (
    "INSERT INTO checkpoint_attempts (thread_id, attempt) VALUES ({0}, {0}) ON CONFLICT (thread_id) "
    "DO UPDATE SET attempt = excluded.attempt WHERE checkpoint_attempts.attempt <= excluded.attempt"
)
HOLD = "UPDATE checkpoint_attempts SET attempt = attempt WHERE thread_id = {0} AND attempt = {0}"
"""Changes nothing, but locks the row: a newer attempt can only enter after this transaction's write is done."""


class Checkpoints(Protocol):
    """A store of checkpoints."""

    def open(
        self, thread: str, attempt: int, form: type[Value]
    ) -> AbstractAsyncContextManager[BaseCheckpointSaver[Any]]:
        """A saver for one attempt at one thread; from here on, older attempts' writes are refused.

        `form` is what the thread's draft has, and all that is built from a checkpoint besides plain data.

        Raises:
            AttemptSuperseded: a newer attempt was here already, on entering or at any write.
            Unavailable: the database does not answer or is full.
        """
        ...


def checkpoints_at(url: str, keys: ThreadKeys) -> Checkpoints:
    """The store that `url` names, `sqlite:///path` or `postgresql://user@host/name`, sealed with the keys.

    Raises:
        ConfigurationRefused: it names no store.
    """
    kind, file = store_at(url)
    return SqliteCheckpoints(file, keys) if kind == "sqlite" else PostgresCheckpoints(url, keys)


class SqliteCheckpoints:
    """Checkpoints in one file; for workers that share one host."""

    def __init__(self, path: Path, keys: ThreadKeys) -> None:
        self._path = path
        self._keys = keys

    @asynccontextmanager
    async def open(self, thread: str, attempt: int, form: type[Value]) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        """See `Checkpoints.open`; each attempt has its own connection, so that drafts do not wait for each other."""
        async with (
            _plainly(f"checkpoint file {self._path}"),
            aiosqlite.connect(self._path, timeout=BUSY_SECONDS, factory=_RollingBack) as connection,
        ):
            saver = _FencedSqliteSaver(connection, SealedSerializer(self._keys, thread, form), thread, attempt)
            # A power cut may cost the last step, which is then repeated; a killed process costs nothing.
            await connection.execute("PRAGMA synchronous = NORMAL")
            await saver.setup()
            await connection.execute(CREATE)
            entered = await connection.execute(ENTER.format("?"), (thread, attempt))
            await connection.commit()
            _require(entered.rowcount, thread, attempt)
            yield saver


class PostgresCheckpoints:
    """Checkpoints in PostgreSQL; for workers on several hosts."""

    def __init__(self, url: str, keys: ThreadKeys) -> None:
        self._url = url
        self._keys = keys
        self._ready = False

    @asynccontextmanager
    async def open(self, thread: str, attempt: int, form: type[Value]) -> AsyncIterator[BaseCheckpointSaver[Any]]:
        """See `Checkpoints.open`."""
        async with (
            _plainly("checkpoint database"),
            await psycopg.AsyncConnection[DictRow].connect(
                self._url, autocommit=True, prepare_threshold=0, row_factory=dict_row
            ) as connection,
        ):
            await connection.execute(f"SET search_path TO {SCHEMA}")
            saver = _FencedPostgresSaver(connection, SealedSerializer(self._keys, thread, form), thread, attempt)
            await self._set_up(connection, saver)
            entered = await connection.execute(ENTER.format("%s"), (thread, attempt))
            _require(entered.rowcount, thread, attempt)
            yield saver

    async def _set_up(self, connection: psycopg.AsyncConnection[DictRow], saver: AsyncPostgresSaver) -> None:
        if self._ready:
            return
        # The migrations build indexes CONCURRENTLY, which would wait for ever for another worker's blocking lock.
        while not await _locked(connection):
            await asyncio.sleep(0.05)
        try:
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            await saver.setup()
            await connection.execute(CREATE)
            await connection.execute(WIDEN)
        finally:
            await connection.execute("SELECT pg_advisory_unlock(%s)", (SETUP_LOCK,))
        self._ready = True


class _RollingBack(sqlite3.Connection):
    """Ends its transaction before it closes: closed alone, the file stays locked for as long as a cursor is referenced.

    An attempt can end in the middle of a write. LangGraph waits for the steps that it cancels, but not for the writes
    that tell of them; and nothing waits where the attempt itself is cancelled.
    """

    def close(self) -> None:
        """In one call, so that nothing more of such a write comes in between."""
        try:
            self.rollback()
        finally:
            super().close()


class _FencedSqliteSaver(SealedSaver, AsyncSqliteSaver):
    """The library's saver, sealed; every write is one transaction with the check of its attempt."""

    def __init__(
        self, connection: aiosqlite.Connection, serializer: SerializerProtocol, thread: str, attempt: int
    ) -> None:
        super().__init__(connection, serde=serializer)
        self.thread = thread
        self._fence = (thread, attempt)
        self._writing = asyncio.Lock()

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        async with self._writing:
            try:
                held = await self.conn.execute(HOLD.format("?"), self._fence)
                _require(held.rowcount, *self._fence)
                yield
            except BaseException:
                await self.conn.rollback()
                raise


class _FencedPostgresSaver(SealedSaver, AsyncPostgresSaver):
    """The library's saver, sealed; every write is one transaction with the check of its attempt."""

    def __init__(
        self, connection: psycopg.AsyncConnection[DictRow], serializer: SerializerProtocol, thread: str, attempt: int
    ) -> None:
        super().__init__(connection, serde=serializer)
        self.thread = thread
        self._connection = connection
        self._fence = (thread, attempt)
        self._writing = asyncio.Lock()

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        async with self._writing, self._connection.transaction():
            held = await self._connection.execute(HOLD.format("%s"), self._fence)
            _require(held.rowcount, *self._fence)
            yield


def _require(rows: int, thread: str, attempt: int) -> None:
    if rows != 1:
        raise AttemptSuperseded(f"attempt {attempt} at {thread} is over: a newer attempt has taken the draft on")


async def _locked(connection: psycopg.AsyncConnection[DictRow]) -> bool:
    answer = await connection.execute("SELECT pg_try_advisory_lock(%s) AS locked", (SETUP_LOCK,))
    row = await answer.fetchone()
    return bool(row and row["locked"])


@asynccontextmanager
async def _plainly(what: str) -> AsyncIterator[None]:
    try:
        yield
    except psycopg.DataError:
        # A column that lies in clear no longer has the form in which it is asked about.
        raise CheckpointRefused(f"{what}: a row was changed; nothing goes on from it: {INSTEAD}") from None
    except (sqlite3.Error, psycopg.Error) as error:
        raise unusable(what, error) from error
