"""The business database: tables, migrations and the audit chain."""

from countersign.ledger.sql_ledger import SqlLedger, open_ledger

__all__ = ["SqlLedger", "open_ledger"]
