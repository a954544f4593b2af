"""What lies in the store of checkpoints: nothing in clear, each row in its place, under keys that can be changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import aiosqlite
import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg.rows import dict_row

from countersign.agents.checkpoint_keys import CheckpointRefused, ThreadKeys
from countersign.agents.checkpoint_sealing import SealedSaver
from countersign.agents.checkpoints import checkpoints_at
from countersign.agents.failures import AttemptSuperseded
from countersign.agents.threads import SCHEMA
from countersign.domain.errors import Unavailable
from countersign.domain.report import Draft
from tests.agents.paused import PLANTED, QUESTION, THREAD, WHOLE, Rows, answered, paused, run

OLD, NEW, OTHER = b"o" * 32, b"n" * 32, b"x" * 32
KEYS = ThreadKeys({"k1": OLD})
ELSEWHERE = "acme:op-2:run:1:v1"


async def plainly(url: str) -> None:
    """Pause as the library's own savers would keep it."""
    given = {"messages": [HumanMessage(QUESTION)]}
    if url.startswith("sqlite"):
        async with aiosqlite.connect(url.removeprefix("sqlite:///")) as file:
            await run(AsyncSqliteSaver(file), given)
        return
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, row_factory=dict_row) as server:
        await server.execute(f"SET search_path TO {SCHEMA}")
        await run(AsyncPostgresSaver(server), given)


@pytest.mark.guarantee("G46")
async def test_no_text_of_people_models_or_data_lies_there_in_clear(ledger_url: str) -> None:
    rows = Rows(ledger_url)
    await paused(ledger_url, KEYS, ELSEWHERE)
    assert [text for text in PLANTED if text.encode() in rows.contents()] == []
    assert await answered(ledger_url, KEYS, ELSEWHERE) == WHOLE
    assert [text for text in PLANTED if text.encode() in rows.contents()] == []
    # As the library keeps the same thread, all of it is found: so it would be found above.
    await plainly(ledger_url)
    assert [text for text in PLANTED if text.encode() in rows.contents()] == [*PLANTED[:-1]]


async def test_a_new_key_in_front_encrypts_and_the_old_one_still_reads(ledger_url: str) -> None:
    rows = Rows(ledger_url)
    await paused(ledger_url, KEYS)
    rotated = ThreadKeys({"k2": NEW, "k1": OLD})

    assert await answered(ledger_url, rotated) == WHOLE

    kinds = {
        kind.partition("+")[2]
        for table in ("checkpoints", "writes")
        for (kind,) in rows(f"SELECT type FROM {{{table}}}")
    }
    assert kinds == {"aes256gcm+k1", "aes256gcm+k2"}
    # What the old key wrote cannot be read without it; a thread of the new one alone can.
    with pytest.raises(CheckpointRefused, match="encrypted with key 'k1'"):
        await answered(ledger_url, ThreadKeys({"k2": NEW}), THREAD)
    await paused(ledger_url, rotated, ELSEWHERE)
    assert await answered(ledger_url, ThreadKeys({"k2": NEW}), ELSEWHERE) == WHOLE


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            {"k2": NEW},
            "encrypted with key 'k1', and the keys given are k2; add that one, as ID=KEY, to COUNTERSIGN_THREAD_KEYS",
        ),
        ({"k1": OTHER}, "it was changed, belongs to another draft, or key k1 is not the one"),
    ],
    ids=["missing", "wrong"],
)
async def test_without_its_key_a_draft_does_not_go_on_and_says_why(
    tmp_path: Path, keys: dict[str, bytes], words: str
) -> None:
    url = f"sqlite:///{tmp_path / 'threads.db'}"
    await paused(url, KEYS)

    with pytest.raises(CheckpointRefused) as refused:
        await answered(url, ThreadKeys(keys))

    assert words in refused.value.message
    assert "take the run over and release it" in refused.value.message
    assert await answered(url, KEYS) == WHOLE


def flipped(table: str, column: str) -> Callable[[Rows], None]:
    """One bit of each value is another one."""

    def flip(rows: Rows) -> None:
        for (value,) in rows(f"SELECT {column} FROM {table}"):
            changed = bytes([*value[:-1], value[-1] ^ 1])
            rows(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", changed, value)

    return flip


def moved(rows: Rows) -> None:
    """The rows of another thread lie under this one's name."""
    for table in ("{checkpoints}", "{writes}", *(() if rows.sqlite else (f"{SCHEMA}.checkpoints",))):
        rows(f"DELETE FROM {table} WHERE thread_id = ?", THREAD)
        rows(f"UPDATE {table} SET thread_id = ?", THREAD)


def relabelled(rows: Rows) -> None:
    """Another kind of value under the same seal."""
    rows("UPDATE {checkpoints} SET type = 'bytes+aes256gcm+k1'")


def without_seal(rows: Rows) -> None:
    """A row that says that it is not encrypted."""
    rows("UPDATE {checkpoints} SET type = 'msgpack'")


def taken_back(rows: Rows) -> None:
    """The thread's first step lies in place of its last."""
    if rows.sqlite:
        first = "SELECT checkpoint FROM checkpoints ORDER BY checkpoint_id LIMIT 1"
        rows(f"UPDATE checkpoints SET checkpoint = ({first})")
    else:
        first = f"SELECT checkpoint FROM {SCHEMA}.checkpoints ORDER BY checkpoint_id LIMIT 1"
        rows(f"UPDATE {SCHEMA}.checkpoints SET checkpoint = ({first})")


def exchanged(rows: Rows) -> None:
    """Every write of the thread has the value of the question."""
    question = "SELECT {value} FROM {writes} WHERE channel = '__interrupt__' AND thread_id = ?"
    rows(f"UPDATE {{writes}} SET {{value}} = ({question}) WHERE thread_id = ?", THREAD, THREAD)


@pytest.mark.parametrize(
    "damage",
    [flipped("{checkpoints}", "{checkpoint}"), flipped("{writes}", "{value}"),
     moved, relabelled, without_seal, taken_back, exchanged],
    ids=["a bit of a checkpoint", "a bit of a write", "another thread's", "another kind", "not encrypted",
         "an older step", "another call's"],
)  # fmt: skip
async def test_rows_that_are_not_as_they_were_written_are_refused(
    ledger_url: str, damage: Callable[[Rows], None]
) -> None:
    await paused(ledger_url, KEYS)
    await paused(ledger_url, KEYS, ELSEWHERE)

    damage(Rows(ledger_url))

    with pytest.raises(CheckpointRefused) as refused:
        await answered(ledger_url, KEYS)
    assert refused.value.message.startswith(f"checkpoint of {THREAD}: it ")
    assert not isinstance(refused.value, Unavailable)


@pytest.mark.parametrize(
    "change",
    ["jsonb_set(checkpoint, '{channel_values}', '{\"note\": \"read this instead\"}')",
     "jsonb_set(checkpoint, '{channel_versions}', '7')", "checkpoint - 'v'", "'null'"],
)  # fmt: skip
async def test_what_postgres_keeps_beside_the_sealed_value_is_not_believed(
    postgres_url: Callable[[], str], change: str
) -> None:
    url = postgres_url()
    await paused(url, KEYS)

    Rows(url)(f"UPDATE {SCHEMA}.checkpoints SET checkpoint = {change}")

    with pytest.raises(CheckpointRefused, match=r"changed|not encrypted"):
        await answered(url, KEYS)


async def test_a_thread_from_before_there_were_keys_is_refused(ledger_url: str) -> None:
    async with checkpoints_at(ledger_url, KEYS).open(THREAD, 1, Draft):
        pass
    await plainly(ledger_url)

    with pytest.raises(CheckpointRefused, match="it is not encrypted; nothing goes on from it"):
        await answered(ledger_url, KEYS)


async def test_attempts_are_counted_beyond_32_bits(ledger_url: str) -> None:
    """Each pause adds a million, and tables made before there were any had no room for it on PostgreSQL."""
    rows = Rows(ledger_url)
    if rows.sqlite:
        with sqlite3.connect(ledger_url.removeprefix("sqlite:///")) as file:
            file.execute("CREATE TABLE checkpoint_attempts (thread_id TEXT PRIMARY KEY, attempt INTEGER NOT NULL)")
    else:
        rows(f"CREATE SCHEMA {SCHEMA}")
        rows(f"CREATE TABLE {SCHEMA}.checkpoint_attempts (thread_id TEXT PRIMARY KEY, attempt INTEGER NOT NULL)")
    many = 5_000 * 1_000_000

    async with checkpoints_at(ledger_url, KEYS).open(THREAD, many + 1, Draft):
        pass

    with pytest.raises(AttemptSuperseded):
        async with checkpoints_at(ledger_url, KEYS).open(THREAD, many, Draft):
            pass


def test_a_saver_that_has_no_place_to_refuse_a_write_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="_held"):
        SealedSaver()  # type: ignore[abstract]  # that is what it is about
