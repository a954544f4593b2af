"""What lies outside the ledger: data and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from countersign.domain.execution import EffectResult
from countersign.domain.report import DatasetRef
from countersign.domain.values import Sha256, Value


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

    def sensitive(self, sql: str) -> tuple[str, ...]:
        """The sensitive columns that a query reads, by name, `*` and aliases resolved; QueryRefused as in
        `query`, and where it cannot be told. The same for the same data, always."""
        ...

    def texts(self, *patterns: str, longest: int) -> Sequence[tuple[str, str]]:
        """Each column with its own name and with its cells that a pattern (RE2) matches, bounded for each pattern, and
        first with those of more than `longest` characters, cut after one more."""
        ...

    def close(self) -> None:
        """Give the reading back."""
        ...


class Evidence(Protocol):
    """Datasets of a tenant under the hash of their bytes."""

    def put(self, tenant: str, source: Path) -> Sha256:
        """Store a file once; return its hash."""
        ...

    def open(self, tenant: str, dataset: DatasetRef, sensitive: Sequence[str] = ()) -> DatasetReader:
        """Read it as declared; DataRefused names row, column and value; NotFound where the tenant has no such data.

        `sensitive` names columns that are so beside those that are declared.
        """
        ...

    def verify(self, tenant: str, sha256: str) -> None:
        """Hash the stored bytes again; DataRefused where they are no longer the pinned ones."""
        ...


class Effects(Protocol):
    """The gateway: verifies the grant for itself, then acts once."""

    def execute(self, tenant: str, approval_id: str) -> EffectResult:
        """Verify, claim, send or look up, record."""
        ...

    def reconcile(self, tenant: str, approval_id: str) -> EffectResult:
        """Only look up what became of an unknown outcome, and hear what people settled; never sends."""
        ...

    def gather(self, tenant: str, operation: str) -> Sha256:
        """Read outside what the operation's request is about, and keep it as its facts (Operations.gathered); returns
        the hash of the document.

        Raises:
            NotFound: the outside has nothing of that name.
            NotAuthorised: nobody has validly signed for it, or the tenant has no such way out.
            Unavailable: it does not answer, or not readably; nothing was recorded.
        """
        ...
