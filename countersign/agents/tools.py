"""The drafting agent's two tools, and the only ones: describe the dataset, query it.

They stand apart because this file is the whole of what a drafting model can make happen (G39). The dataset comes with
the run's context, so one compiled agent serves every draft.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, tool
from pydantic import SkipValidation

from countersign.domain.errors import QueryRefused
from countersign.ports import DatasetReader


@dataclass(frozen=True)
class DraftingContext:
    """What one drafting run works on."""

    dataset: Annotated[DatasetReader, SkipValidation]
    """Not looked into by LangChain, which would take a protocol for a class."""
    on_progress: Callable[[str], Awaitable[None]]
    """Told before each model call and each tool call, in a few words; the call is not made where it raises."""


@tool
async def describe_dataset(runtime: ToolRuntime[DraftingContext]) -> str:
    """Describe the dataset: number of rows, and each column's name, type, unit, blanks, range and samples."""
    await runtime.context.on_progress("describe_dataset")
    description = await asyncio.to_thread(runtime.context.dataset.describe)
    return description.model_dump_json()


@tool
async def query_dataset(sql: str, runtime: ToolRuntime[DraftingContext]) -> str:
    """Run one read-only SELECT over table `data` and return its rows as exact text, bounded in number and time."""
    await runtime.context.on_progress("query_dataset")
    try:
        result = await asyncio.to_thread(runtime.context.dataset.query, sql)
    except QueryRefused as refused:
        return f"refused: {refused.message}"
    return result.model_dump_json()


DRAFTING_TOOLS: tuple[BaseTool, ...] = (describe_dataset, query_dataset)
