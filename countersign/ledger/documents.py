"""Documents of a tenant under the hash of their bytes."""

from __future__ import annotations

from sqlalchemy import select

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Conflict, NotFound
from countersign.domain.values import Sha256
from countersign.ledger.store import Store, absent
from countersign.ledger.tables import documents


class SqlDocuments:
    """ports.Documents on the ledger's database; the hash is the record, so the audit names it where it is used."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def put(self, tenant: str, data: bytes) -> Sha256:
        """Store once; return the hash. Conflict where other bytes lie under it: nothing is built on those."""
        sha256 = sha256_hex(data)
        try:
            self.get(tenant, sha256)
        except NotFound:
            with self._store.writing(tenant) as writing:
                writing.insert_once(documents, sha256=sha256, data=data)
        return sha256

    def get(self, tenant: str, sha256: str) -> bytes:
        """The bytes; NotFound where there are none, Conflict where they no longer fit their hash."""
        where = (documents.c.tenant == tenant) & (documents.c.sha256 == sha256)
        with self._store.reading(tenant) as connection:
            data = connection.execute(select(documents.c.data).where(where)).scalar()
        if data is None:
            raise absent("document", sha256)
        if sha256_hex(data) != sha256:
            raise Conflict(f"document {sha256} was changed in the ledger: its bytes no longer fit; restore a backup")
        return bytes(data)
