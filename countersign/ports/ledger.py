"""The ledger as one object."""

from __future__ import annotations

from typing import Protocol

from countersign.ports.agent import ModelCalls, ProgressLog, Questions
from countersign.ports.control import Controls, Escalations, Freezes, Outbox
from countersign.ports.people import Approvals, Directory
from countersign.ports.records import AuditLog, Documents, Drafts, Executions, Operations


class Ledger(Protocol):
    """The business database, one object with its parts."""

    documents: Documents
    operations: Operations
    drafts: Drafts
    questions: Questions
    model_calls: ModelCalls
    progress: ProgressLog
    approvals: Approvals
    executions: Executions
    controls: Controls
    escalations: Escalations
    freezes: Freezes
    outbox: Outbox
    directory: Directory
    audit: AuditLog

    def check_writable(self) -> None:
        """Unavailable, with the reason, where nothing could be written now; leaves nothing behind."""
        ...

    def tenants_walled(self) -> bool:
        """Whether row level security holds for the database's user as whom we are connected.

        False for a PostgreSQL superuser, or one with BYPASSRLS: then only the program's own queries keep tenants apart.
        True on SQLite, whose file is guarded by its file rights alone.
        """
        ...

    def close(self) -> None:
        """Give back all connections."""
        ...
