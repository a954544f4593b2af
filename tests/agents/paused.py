"""A small agent that stops for a person's answer, with texts of everybody in every kind of channel, and its rows.

It stands apart because what lies in a store is looked at from outside here: as bytes, and through its tables.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from psycopg.rows import tuple_row

from countersign.agents.checkpoint_keys import ThreadKeys
from countersign.agents.checkpoints import checkpoints_at
from countersign.agents.threads import SCHEMA
from countersign.domain.report import Draft

THREAD = "acme:op-1:run:1:v1"
QUESTION, CELL, PROSE, SQL, PLAIN, ASKED, ANSWER = PLANTED = (
    "How did Zanzibar sell?", "Lindqvist-401", "I shall look at Mombasa", "SELECT kigali FROM data", "note of Nairobi",
    "May I read Kampala?", "Yes, says Dodoma",
)  # fmt: skip


def appended(before: list[AnyMessage], new: Sequence[Any]) -> list[AnyMessage]:
    """All messages, in their order."""
    return [*before, *(message for some in new for message in (some if isinstance(some, list) else [some]))]


class State(TypedDict, total=False):
    """Messages as the deep agent keeps them, and a plain text, which PostgreSQL's saver would keep inline."""

    messages: Annotated[list[AnyMessage], DeltaChannel(appended)]
    note: str


def look(state: State) -> State:
    """A model's call and what the tool read."""
    call = {"name": "query_dataset", "args": {"sql": SQL}, "id": "call-1"}
    return {"messages": [AIMessage(PROSE, tool_calls=[call]), ToolMessage(CELL, tool_call_id="call-1")], "note": PLAIN}


def ask(state: State) -> State:
    """A question to a person."""
    return {"messages": [HumanMessage(str(interrupt(ASKED)))]}


_GRAPH = StateGraph(State)
_GRAPH.add_node("look", look)
_GRAPH.add_node("ask", ask)
_GRAPH.add_edge(START, "look")
_GRAPH.add_edge("look", "ask")
_GRAPH.add_edge("ask", END)


async def go_on(url: str, keys: ThreadKeys, given: Any, attempt: int = 1, thread: str = THREAD) -> list[str]:
    """Run the agent on a thread until it stops; the texts of its messages as they lie in the store then."""
    async with checkpoints_at(url, keys).open(thread, attempt, Draft) as saver:
        return await run(saver, given, thread)


async def run(saver: BaseCheckpointSaver[Any], given: Any, thread: str = THREAD) -> list[str]:
    """The same with a saver of the test's."""
    agent = _GRAPH.compile(checkpointer=saver)
    config: RunnableConfig = {"configurable": {"thread_id": thread}, "metadata": {"asked": QUESTION}}
    await agent.ainvoke(given, config, durability="sync")
    state = await agent.aget_state(config)
    return [str(message.content) for message in state.values["messages"]]


async def paused(url: str, keys: ThreadKeys, thread: str = THREAD) -> None:
    """Run the agent until it waits for a person."""
    assert await go_on(url, keys, {"messages": [HumanMessage(QUESTION)]}, thread=thread) == [QUESTION, PROSE, CELL]


async def answered(url: str, keys: ThreadKeys, thread: str = THREAD) -> list[str]:
    """Go on with a person's answer, as a later attempt."""
    return await go_on(url, keys, Command(resume=ANSWER), attempt=2, thread=thread)


WHOLE = [QUESTION, PROSE, CELL, ANSWER]
"""The messages at the end."""


class Rows:
    """A store's tables, by what both engines have: `{checkpoints}` and `{writes}`, each with the column `{value}`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.sqlite = url.startswith("sqlite")
        self._names = (
            {"checkpoints": "checkpoints", "writes": "writes", "value": "value", "checkpoint": "checkpoint"}
            if self.sqlite
            else {
                "checkpoints": f"{SCHEMA}.checkpoint_blobs", "writes": f"{SCHEMA}.checkpoint_writes", "value": "blob",
                "checkpoint": "blob",
            }
        )  # fmt: skip

    def __call__(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Carry out a statement with the engine's names and `?` for each value; the rows, if it gives any."""
        named = statement
        for name, own in self._names.items():
            named = named.replace(f"{{{name}}}", own)
        with self._connection() as connection:
            done = connection.execute(named if self.sqlite else named.replace("?", "%s"), values)
            return done.fetchall() if done.description else []

    def contents(self) -> bytes:
        """Everything that lies there, as bytes: a file with its log, or every column of every table."""
        if self.sqlite:
            file = Path(self._url.removeprefix("sqlite:///"))
            return b"".join(each.read_bytes() for each in sorted(file.parent.glob(f"{file.name}*")))
        tables = self("SELECT table_name FROM information_schema.tables WHERE table_schema = ?", SCHEMA)
        cells = [cell for (name,) in tables for row in self(f"SELECT * FROM {SCHEMA}.{name}") for cell in row]
        return b"\n".join(
            cell if isinstance(cell, bytes) else json.dumps(cell, ensure_ascii=False).encode() for cell in cells
        )

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        if self.sqlite:
            with sqlite3.connect(self._url.removeprefix("sqlite:///")) as file:
                yield file
            file.close()
            return
        with psycopg.connect(self._url, row_factory=tuple_row) as server:
            yield server
