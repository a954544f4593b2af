"""What lies outside the ledger: data, models, the way out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from countersign.domain.draft import DatasetRef, Draft, ReportRequest
from countersign.domain.execution import EffectResult
from countersign.domain.rubric import GraderAnswer, Rubric
from countersign.domain.values import Sha256, Value
from countersign.ports.records import Written


class Clock(Protocol):
    """The wall clock of the edge; workflows pass their own time instead."""

    def __call__(self) -> datetime:
        """Now, in UTC."""
        ...


class Cell(Protocol):
    """The one value that a query yielded."""

    @property
    def text(self) -> str:
        """Exact text."""
        ...

    @property
    def kind(self) -> str:
        """`number`, `date` or `text`."""
        ...

    @property
    def unit(self) -> str | None:
        """The unit or currency it surely has; empty: surely none; None: it cannot be told."""
        ...


class DatasetReader(Protocol):
    """One dataset, read strictly and open for queries."""

    def describe(self) -> Value:
        """Columns, types, counts, ranges; as a frozen value."""
        ...

    def query(self, sql: str) -> Value:
        """The rows of one bounded read-only SELECT on table `data`; QueryRefused otherwise."""
        ...

    def single_value(self, sql: str) -> Cell:
        """The value of a query with one row and one column; QueryRefused otherwise."""
        ...

    def texts(self, *patterns: str) -> Sequence[tuple[str, str]]:
        """Each column with its own name and with its cells that a pattern (RE2) matches, bounded for each pattern."""
        ...

    def close(self) -> None:
        """Give the reading back."""
        ...


class Evidence(Protocol):
    """Datasets of a tenant under the hash of their bytes."""

    def put(self, tenant: str, source: Path) -> Sha256:
        """Store a file once; return its hash."""
        ...

    def open(self, tenant: str, dataset: DatasetRef) -> DatasetReader:
        """Read it as declared; DataRefused names row, column and value; NotFound where the tenant has no such data."""
        ...

    def verify(self, tenant: str, sha256: str) -> None:
        """Hash the stored bytes again; DataRefused where they are no longer the pinned ones."""
        ...


class Drafter(Protocol):
    """The deep agent that drafts."""

    async def draft(
        self,
        thread: str,
        attempt: int,
        request: ReportRequest,
        dataset: DatasetReader,
        earlier: Draft | None,
        feedback: Sequence[str],
        on_progress: Callable[[str], Awaitable[None]],
    ) -> Written:
        """Write a draft.

        Args:
            thread: what the durable checkpoint is keyed on: tenant, operation, run and draft version.
            attempt: the activity attempt; an older attempt's checkpoint writes are refused.
            request: what was asked.
            dataset: the pinned data that the tools read.
            earlier: the version before, where there is one.
            feedback: what the checks and the grader said of that version.
            on_progress: called with a few words before every model and tool call, which is not made where it raises.
        """
        ...


class Grader(Protocol):
    """Grades a whole draft against a rubric, with one model call."""

    async def grade(self, document: str, rubric: Rubric, request: ReportRequest) -> GraderAnswer:
        """The grader's answer as it came; an answer that cannot be read has verdict `grader_error`."""
        ...


class Effects(Protocol):
    """The gateway: verifies the grant for itself, then acts once."""

    def execute(self, tenant: str, approval_id: str) -> EffectResult:
        """Verify, claim, send or look up, record."""
        ...

    def reconcile(self, tenant: str, approval_id: str) -> EffectResult:
        """Only look up what became of an unknown outcome; never sends."""
        ...
