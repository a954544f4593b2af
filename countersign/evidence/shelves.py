"""The stored datasets of all tenants, a shelf for each: the same bytes of two tenants are two things (G09).

Readings are shared: drafting, checking and the next version's rounds ask the same pinned bytes, and reading millions of
rows takes seconds. A reading is of the bytes whose hash it compared, so sharing it cannot change what it says; each
opening compares the hash of the stored bytes all the same, so that evidence which was changed since is not relied on.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countersign.domain.identity import checked_name
from countersign.domain.report import DatasetRef
from countersign.domain.values import Sha256
from countersign.evidence.dataset import Dataset
from countersign.evidence.results import DatasetDescription, QueryResult, SingleValue
from countersign.evidence.store import EvidenceStore

KEPT_OPEN = 2
"""Readings that stay in memory when nobody uses them, the latest ones."""

Name = tuple[str, str, str, tuple[str, ...]]
"""Tenant, hash, schema, and what is sensitive beside: a reading tells of its columns accordingly."""


@dataclass
class _Reading:
    lock: threading.Lock
    dataset: Dataset | None = None
    users: int = 0


class Shelves:
    """Fulfils `ports.Evidence`; may be used from several threads at once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._readings: OrderedDict[Name, _Reading] = OrderedDict()

    def put(self, tenant: str, source: Path) -> Sha256:
        """See `ports.Evidence`."""
        return self._store(tenant).put(source)

    def open(self, tenant: str, dataset: DatasetRef, sensitive: Sequence[str] = ()) -> SharedDataset:
        """See `ports.Evidence`; give it back with `close`."""
        path = self._store(tenant).path(dataset.sha256)
        name = (tenant, dataset.sha256, dataset.schema_.model_dump_json(), tuple(sensitive))
        with self._lock:
            reading = self._readings.setdefault(name, _Reading(threading.Lock()))
            self._readings.move_to_end(name)
            reading.users += 1
        try:
            with reading.lock:  # the first user reads, the others wait for it
                if reading.dataset is None:
                    cache = self._root / tenant / "readings"
                    reading.dataset = Dataset.open(
                        path, dataset.sha256, dataset.schema_, cache=cache, sensitive=sensitive
                    )
                else:
                    self.verify(tenant, dataset.sha256)
                return SharedDataset(reading.dataset, self, name)
        except BaseException:
            self.give_back(name)
            raise

    def verify(self, tenant: str, sha256: str) -> None:
        """See `ports.Evidence`."""
        self._store(tenant).verify(sha256)

    def give_back(self, name: Name) -> None:
        """One user less; the readings that nobody uses are closed, but for the latest."""
        with self._lock:
            self._readings[name].users -= 1
            unused = [each for each, reading in self._readings.items() if reading.users == 0]
            dropped = [self._readings.pop(each) for each in unused[: max(0, len(unused) - KEPT_OPEN)]]
        for reading in dropped:
            if reading.dataset is not None:
                reading.dataset.close()

    def _store(self, tenant: str) -> EvidenceStore:
        return EvidenceStore(self._root / checked_name(tenant))


class SharedDataset:
    """Fulfils `ports.DatasetReader` for one user of a shared reading."""

    def __init__(self, dataset: Dataset, shelves: Shelves, name: Name) -> None:
        self._dataset = dataset
        self._shelves: Shelves | None = shelves
        self._name = name

    def describe(self) -> DatasetDescription:
        """See `Dataset.describe`."""
        return self._dataset.describe()

    def query(self, sql: str, **limits: Any) -> QueryResult:
        """See `Dataset.query`."""
        return self._dataset.query(sql, **limits)

    def single_value(self, sql: str) -> SingleValue:
        """See `Dataset.single_value`."""
        return self._dataset.single_value(sql)

    def sensitive(self, sql: str) -> tuple[str, ...]:
        """See `Dataset.sensitive`."""
        return self._dataset.sensitive(sql)

    def texts(self, *patterns: str, longest: int) -> tuple[tuple[str, str], ...]:
        """See `Dataset.texts`."""
        return self._dataset.texts(*patterns, longest=longest)

    def close(self) -> None:
        """Give the reading back; twice is fine."""
        shelves, self._shelves = self._shelves, None
        if shelves is not None:
            shelves.give_back(self._name)
