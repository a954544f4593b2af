"""Changes made directly in the database, as whoever controls workflow, worker or database could make them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from countersign.domain.proposal import Vote


class Database:
    """The ledger's SQLite file, behind the ledger's back."""

    folder: Path

    def tamper(self, table: str, column: str, change: Callable[[Any], Any], where: str = "1 = 1") -> None:
        """Change a column of all (or some) rows."""
        with closing(sqlite3.connect(self.folder / "ledger.sqlite")) as connection, connection:
            rows = connection.execute(f'SELECT rowid, "{column}" FROM {table} WHERE {where}').fetchall()
            assert rows, f"no row of {table} to change"
            for rowid, value in rows:
                connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE rowid = ?', (change(value), rowid))

    def insert_vote(self, tenant: str, approval_id: str, vote: Vote) -> None:
        """Add a vote."""
        row = (tenant, approval_id, vote.person, 9, vote.decided_at.isoformat(), vote.model_dump_json())
        with closing(sqlite3.connect(self.folder / "ledger.sqlite")) as connection, connection:
            sql = "INSERT INTO votes (tenant, approval_id, person, number, decided_at, vote) VALUES (?, ?, ?, ?, ?, ?)"
            connection.execute(sql, row)


def changed_json(*path: str | int, to: Any) -> Callable[[str], str]:
    """A change of one value inside a column of JSON text."""

    def change(text: str) -> str:
        document = json.loads(text)
        inner = document
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = to(inner[path[-1]]) if callable(to) else to
        return json.dumps(document)

    return change


def merged_json(told: dict[str, Any]) -> Callable[[str], str]:
    """A change of several values of a JSON object in a column."""

    def change(text: str) -> str:
        for name, value in told.items():
            text = changed_json(name, to=value)(text)
        return text

    return change
