"""Deletes what the agents kept of operations that ended long enough ago: their threads, and their progress.

Only what is surely over goes. A paused operation waits for weeks, and one that the ledger does not know may be one that
a restored backup has lost: neither has ended.
"""

from __future__ import annotations

from datetime import datetime

from countersign.agents.threads import Threads
from countersign.domain.durations import duration
from countersign.domain.errors import NotFound
from countersign.domain.retention import DELETED, NOTHING, Forgotten, RetentionOrder
from countersign.ports import Ledger


class Retention:
    """Forgets, by the ledger's word on what has ended and when."""

    def __init__(self, ledger: Ledger, threads: Threads) -> None:
        self._ledger = ledger
        self._threads = threads

    def forget(self, order: RetentionOrder, by: str, now: datetime) -> Forgotten:
        """Delete as ordered (audit `threads.deleted`, one record for each tenant of which there was anything).

        Args:
            order: how long what has ended is kept, and of which tenant.
            by: who or what has it done, for the audit.
            now: the time from which that is counted.

        Raises:
            NotFound: no such tenant.
            Unavailable: a database does not answer; the same again deletes the rest.
        """
        known = self._ledger.directory.tenants()
        if order.tenant and order.tenant not in known:
            raise NotFound(f"tenant {order.tenant!r} is not there; check its name")
        tenants = [order.tenant] if order.tenant else known
        return sum((self._forget(tenant, order.keep, by, now) for tenant in tenants), NOTHING)

    def _forget(self, tenant: str, keep: str, by: str, now: datetime) -> Forgotten:
        until = now - duration(keep)
        found = self._threads.of_tenant(tenant)
        over = {operation: found[operation] for operation in sorted(found) if self._ended(tenant, operation, until)}
        forgotten = Forgotten(operations=len(over), threads=sum(map(len, over.values())))
        if forgotten == NOTHING:
            return NOTHING
        # The record first: nothing is deleted that was not written down. What is left by a fault, the next run finds.
        self._ledger.audit.append(tenant, DELETED, "", by, {**forgotten.model_dump(), "keep": keep}, now)
        for operation, threads in over.items():
            self._ledger.progress.forget(tenant, operation)
            self._threads.delete(threads)
        return forgotten

    def _ended(self, tenant: str, operation: str, until: datetime) -> bool:
        try:
            stands = self._ledger.operations.get(tenant, operation).state
        except NotFound:
            return False
        if not stands.terminal:
            return False
        end = f"run.{stands.value.lower()}"
        times = [record.recorded_at for record in self._ledger.audit.records(tenant, operation) if record.type == end]
        return bool(times) and datetime.fromisoformat(times[-1]) <= until
