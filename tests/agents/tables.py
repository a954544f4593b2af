"""A table of sales that agents' tests draft about, read with DuckDB, and the script of a model that drafts well.

It stands apart from the real evidence reader because tests of the agent hold a query open or count what was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb

from countersign.agents.checkpoints import checkpoints_at
from countersign.agents.drafting import DeepAgentDrafter
from countersign.agents.models import ModelSettings, draft_model
from countersign.agents.report import REPORT_AGENT
from countersign.domain.errors import QueryRefused
from countersign.domain.report import ReportRequest
from countersign.evidence.results import ColumnDescription, DatasetDescription, QueryResult, SingleValue
from countersign.ports import ReportMaterial
from tests.support.model_server import Turn

ROWS = "('North', 5), ('South', 7), ('North', 9)"


class Sales:
    """Three sales in two regions; `before_query` is called first, with the SQL."""

    def __init__(self, before_query: Callable[[str], None] = lambda sql: None) -> None:
        self.queries: list[str] = []
        self._before_query = before_query

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
            cursor = duckdb.execute(f"WITH data(region, amount) AS (VALUES {ROWS}) {sql}")
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

    def texts(self, *patterns: str) -> tuple[tuple[str, str], ...]:
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
    return DeepAgentDrafter(model, checkpoints_at(checkpoint_url), REPORT_AGENT)


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


async def unheard(words: str) -> None:
    """Nobody wants to know how far a draft is."""
