"""Opening a dataset from bytes, as every test of the reader does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from countersign.domain.report import DatasetSchema
from countersign.evidence.dataset import Dataset


@contextmanager
def opened(
    folder: Path, data: bytes | str, schema: dict[str, Any] | None = None, sensitive: Sequence[str] = ()
) -> Iterator[Dataset]:
    """The dataset that `data` is under `schema`, with what is sensitive beside."""
    raw = data.encode() if isinstance(data, str) else data
    path = folder / "evidence.csv"
    path.write_bytes(raw)
    sha256 = f"sha256:{hashlib.sha256(raw).hexdigest()}"
    declared = DatasetSchema.model_validate(schema or {})
    dataset = Dataset.open(path, sha256, declared, cache=folder / "cache", sensitive=sensitive)
    try:
        yield dataset
    finally:
        dataset.close()


def rows(folder: Path, data: bytes | str, schema: dict[str, Any] | None = None, sql: str = "FROM data") -> Any:
    """All rows of a query on it, as exact text."""
    with opened(folder, data, schema) as dataset:
        return list(dataset.query(sql, max_rows=10_000).rows)
