"""The ledger as one object, wired and opened."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.errors import Unavailable
from countersign.ledger.approvals import SqlApprovals
from countersign.ledger.audit import SqlAuditLog
from countersign.ledger.checkpoints import Checkpoints
from countersign.ledger.controls import SqlControls
from countersign.ledger.directory import SqlDirectory
from countersign.ledger.documents import SqlDocuments
from countersign.ledger.drafts import SqlDrafts
from countersign.ledger.engines import make_engine
from countersign.ledger.escalations import SqlEscalations
from countersign.ledger.executions import SqlExecutions
from countersign.ledger.freezes import SqlFreezes
from countersign.ledger.model_calls import SqlModelCalls
from countersign.ledger.operations import SqlOperations
from countersign.ledger.outbox import SqlOutbox
from countersign.ledger.progress import SqlProgress
from countersign.ledger.questions import SqlQuestions
from countersign.ledger.schema import prepare
from countersign.ledger.store import Store
from countersign.ports import (
    Approvals,
    AuditLog,
    Controls,
    Directory,
    Documents,
    Drafts,
    Escalations,
    Executions,
    Freezes,
    ModelCalls,
    Operations,
    Outbox,
    ProgressLog,
    Questions,
)


class SqlLedger:
    """ports.Ledger on SQLite or PostgreSQL; safe for many threads, and for many processes on one database."""

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

    def __init__(self, store: Store) -> None:
        self._store = store
        self.documents = SqlDocuments(store)
        self.operations = SqlOperations(store)
        self.drafts = SqlDrafts(store)
        self.questions = SqlQuestions(store)
        self.model_calls = SqlModelCalls(store)
        self.progress = SqlProgress(store)
        self.approvals = SqlApprovals(store)
        self.executions = SqlExecutions(store)
        self.controls = SqlControls(store)
        self.escalations = SqlEscalations(store)
        self.freezes = SqlFreezes(store)
        self.outbox = SqlOutbox(store)
        self.directory = SqlDirectory(store)
        self.audit = SqlAuditLog(store)

    def check_writable(self) -> None:
        """As in ports.Ledger."""
        self._store.check_writable()

    def tenants_walled(self) -> bool:
        """As in ports.Ledger."""
        return self._store.walled()

    def close(self) -> None:
        """Give back all connections."""
        self._store.engine.dispose()


def open_ledger(url: str, *, installation: str, checkpoints: Path, signing_key: Ed25519PrivateKey) -> SqlLedger:
    """Open the ledger at `url`, bringing its tables up to date first.

    Args:
        url: `sqlite:///path` (the file is made, its folder must be there) or `postgresql://user@host:port/name`.
        installation: the name that audit records and checkpoints carry; a database belongs to one.
        checkpoints: folder outside the database for signed checkpoints; made where it is missing.
        signing_key: the installation's key; checkpoints are signed and verified with it.

    Raises:
        ConfigurationRefused: the URL, or a database that is not this installation's or newer than this program.
        Unavailable: database or folder cannot be reached, read or written.
    """
    engine = make_engine(url)
    try:
        checkpoints.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"checkpoint folder {checkpoints} cannot be made: {error.strerror}") from error
    files = Checkpoints(checkpoints, installation, signing_key)
    try:
        prepare(engine, installation, files)
    except BaseException:
        engine.dispose()
        raise
    return SqlLedger(Store(engine, installation, files))
