"""A table of sales that agents' tests draft about, read with DuckDB, and the script of a model that drafts well.

It stands apart from the real evidence reader because tests of the agent hold a query open or count what was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb

from countersign.agents.checkpoints import checkpoints_at
from countersign.agents.drafting import DeepAgentDrafter
from countersign.agents.models import ModelSettings, draft_model
from countersign.agents.report import REPORT_AGENT
from countersign.domain.errors import QueryRefused
from countersign.domain.model_call import CallEnd
from countersign.domain.progress import ProgressKind
from countersign.domain.report import ReportRequest
from countersign.evidence.results import ColumnDescription, DatasetDescription, QueryResult, SingleValue
from countersign.evidence.sensitive import sensitive_columns
from countersign.evidence.syntax import parsed
from countersign.ports import ReportMaterial, Waiting, Written
from tests.support.model_server import Turn
from tests.support.thread_keys import THREAD_KEYS

ROWS = "('North', 5), ('South', 7), ('North', 9)"


class Sales:
    """Three sales in two regions; `before_query` is called first, with the SQL; `secret` columns are sensitive."""

    def __init__(self, before_query: Callable[[str], None] = lambda sql: None, secret: Sequence[str] = ()) -> None:
        self.queries: list[str] = []
        self._before_query = before_query
        self._secret = secret

    def describe(self) -> DatasetDescription:
        """What the table holds."""
        region = ColumnDescription(
            name="region", type="text", unit="", currency="", currency_column="", blanks=0, distinct=2,
            minimum="North", maximum="South", samples=("North", "South"),
        )  # fmt: skip
        amount = region.model_copy(
            update={"name": "amount", "type": "number", "currency": "USD", "distinct": 3, "samples": ("5",)}
        )
        return DatasetDescription(rows=3, columns=(region, amount), notes=())

    def query(self, sql: str) -> QueryResult:
        """Ask DuckDB."""
        self.queries.append(sql)
        self._before_query(sql)
        try:
            # A connection of its own: an agent's calls run at once, in threads.
            cursor = duckdb.connect().execute(f"WITH data(region, amount) AS (VALUES {ROWS}) {sql}")
            rows = tuple(tuple(None if each is None else str(each) for each in row) for row in cursor.fetchall())
        except duckdb.Error as error:
            raise QueryRefused(f"query not possible: {str(error).splitlines()[0]}") from None
        columns = tuple(name for name, *_ in cursor.description or ())
        return QueryResult(columns=columns, units=("",) * len(columns), rows=rows, truncated=False)

    def single_value(self, sql: str) -> SingleValue:
        """The first cell."""
        text = self.query(sql).rows[0][0]
        assert text is not None
        return SingleValue(text=text, kind="number" if text.isdigit() else "text", unit=None)

    def sensitive(self, sql: str) -> tuple[str, ...]:
        """By the same rule as the real reader."""
        with duckdb.connect() as connection:
            return sensitive_columns(parsed(connection, sql), self._secret)

    def texts(self, *patterns: str, longest: int) -> tuple[tuple[str, str], ...]:
        """Nothing here looks like an order."""
        return ()

    def close(self) -> None:
        """Nothing is held."""


def sales_request(**changes: Any) -> ReportRequest:
    """A request about the table of sales."""
    dataset = {"sha256": "sha256:" + "0" * 64, "name": "sales.csv", "schema": {}}
    return ReportRequest.model_validate(
        {"question": "Where do we sell most?", "channel": "internal", "dataset": dataset} | changes
    )


def sales_material(dataset: Sales | None = None, **changes: Any) -> ReportMaterial:
    """What a report about the table of sales rests on."""
    return ReportMaterial(sales_request(**changes), dataset or Sales())


def reporter(settings: ModelSettings, checkpoint_url: str) -> DeepAgentDrafter[ReportMaterial]:
    """The agent of the report case, with the model that the settings name."""
    model = draft_model(settings, REPORT_AGENT.offline)
    return DeepAgentDrafter(model, checkpoints_at(checkpoint_url, THREAD_KEYS), REPORT_AGENT)


def good_draft(**changes: Any) -> dict[str, Any]:
    """The arguments of a Draft call that is well-formed."""
    claim = {"id": "c1", "query": "SELECT sum(amount) FROM data", "value": "21", "unit": "USD", "shown": "21 USD"}
    return {
        "title": "Sales", "body": "The total is {{c1}}.", "claims": [claim], "source": "sales.csv",
        "period": "The data states none.", "unit": "USD", "limitations": ["Only what the file holds."],
    } | changes  # fmt: skip


DESCRIBE = Turn(calls=(("describe_dataset", {}),))
QUERY = Turn(calls=(("query_dataset", {"sql": "SELECT sum(amount) FROM data"}),))
DELIVER = Turn(calls=(("Draft", good_draft()),))


class Heard:
    """Whoever watches: keeps what it is told, in order, and calls `before` with each, which may raise."""

    def __init__(self, before: Callable[[str], None] = lambda words: None) -> None:
        self.told: list[str] = []
        self.ends: list[CallEnd] = []
        self._before = before

    async def calling(self, model: str) -> int:
        """A model call, counted from 1."""
        number = 1 + sum(words.startswith("model call") for words in self.told)
        self._hear(f"model call {number}")
        return number

    async def called(self, number: int, end: CallEnd) -> None:
        """How it ended."""
        assert number == len(self.ends) + 1
        self._hear("model answer")
        self.ends.append(end)

    async def happened(self, kind: ProgressKind, name: str = "", detail: str = "") -> None:
        """A tool call."""
        self._hear(f"{kind}{detail} {name}")

    def calls(self) -> list[str]:
        """What was called, models and tools."""
        return [words for words in self.told if "call" in words]

    def _hear(self, words: str) -> None:
        self._before(words)
        self.told.append(words)


class _Unheard(Heard):
    """Nobody wants to know; many drafts at once share it."""

    async def called(self, number: int, end: CallEnd) -> None:
        """Not kept."""


unheard = _Unheard()


def finished(result: Written | Waiting) -> Written:
    """What was written; nobody had to be asked."""
    assert isinstance(result, Written)
    return result
