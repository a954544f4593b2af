"""The stored datasets of all tenants, a shelf for each: the same bytes of two tenants are two things (G09)."""

from __future__ import annotations

from pathlib import Path

from countersign.domain.draft import DatasetRef
from countersign.domain.identity import checked_name
from countersign.domain.values import Sha256
from countersign.evidence.dataset import Dataset
from countersign.evidence.store import EvidenceStore


class Shelves:
    """Fulfils `ports.Evidence`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, tenant: str, source: Path) -> Sha256:
        """See `ports.Evidence`."""
        return self._store(tenant).put(source)

    def open(self, tenant: str, dataset: DatasetRef) -> Dataset:
        """See `ports.Evidence`."""
        path = self._store(tenant).path(dataset.sha256)
        return Dataset.open(path, dataset.sha256, dataset.schema_, cache=self._root / tenant / "readings")

    def verify(self, tenant: str, sha256: str) -> None:
        """See `ports.Evidence`."""
        self._store(tenant).verify(sha256)

    def _store(self, tenant: str) -> EvidenceStore:
        return EvidenceStore(self._root / checked_name(tenant))
