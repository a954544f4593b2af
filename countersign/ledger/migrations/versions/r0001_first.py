"""The first tables. Frozen: a later change is a later revision, never an edit here."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables, and the triggers that keep audit records from being changed."""
    _audit()
    _directory()
    _work()
    _approvals()
    _executions()


def _table(name: str, key: str, columns: str, *constraints: sa.Constraint, **others: sa.types.TypeEngine[Any]) -> None:
    """Text columns by name; `n:` marks whole numbers; `others` are columns of another type."""
    made = [_column(column) for column in columns.split()]
    made += [sa.Column(column, kind, nullable=False) for column, kind in others.items()]
    op.create_table(name, *made, sa.PrimaryKeyConstraint(*key.split(), name=f"pk_{name}"), *constraints)


def _column(name: str) -> sa.Column[object]:
    if name.startswith("n:"):
        return sa.Column(name.removeprefix("n:"), sa.BigInteger(), nullable=False, autoincrement=False)
    return sa.Column(name.removesuffix("?"), sa.Text(), nullable=name.endswith("?"))


def _unique(table: str, columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns.split(), name=f"uq_{table}_{columns.replace(' ', '_')}")


def _foreign(table: str, columns: str, referred: str, referred_columns: str) -> sa.ForeignKeyConstraint:
    targets = [f"{referred}.{column}" for column in referred_columns.split()]
    return sa.ForeignKeyConstraint(columns.split(), targets, name=f"fk_{table}_{referred}")


def _of_operation(table: str) -> sa.ForeignKeyConstraint:
    return _foreign(table, "tenant operation", "operations", "tenant operation")


def _audit() -> None:
    _table("installation", "id", "n:id name")
    _table(
        "audit_records", "tenant sequence",
        "tenant n:sequence recorded_at origin type operation subject detail previous hash",
    )  # fmt: skip
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION audit_records_stay() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'audit records are never changed'; END $$"
        )
        op.execute(
            "CREATE TRIGGER audit_records_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_records "
            "FOR EACH STATEMENT EXECUTE FUNCTION audit_records_stay()"
        )
    else:
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_records_no_{verb.lower()} BEFORE {verb} ON audit_records "
                "BEGIN SELECT RAISE(ABORT, 'audit records are never changed'); END"
            )


def _directory() -> None:
    _table("persons", "tenant id", "tenant id roles", active=sa.Boolean())
    _table("keys", "tenant id", "tenant id person key", _foreign("keys", "tenant person", "persons", "tenant id"))


def _work() -> None:
    _table("documents", "tenant sha256", "tenant sha256", data=sa.LargeBinary())
    _table(
        "operations", "tenant operation",
        "tenant operation case request_hash requester statement state reason registered_at",
    )  # fmt: skip
    key = "tenant operation version"
    _table("drafts", key, "tenant operation n:version hash draft model written_at", _of_operation("drafts"))
    for table, columns in (("draft_checks", "violations checked_at"), ("draft_grades", "grade rubric graded_at")):
        _table(
            table,
            f"{key} number",
            f"tenant operation n:version n:number hash {columns}",
            _foreign(table, key, "drafts", key),
        )


def _approvals() -> None:
    _table(
        "approvals", "tenant approval_id",
        "tenant approval_id operation run_id n:approval_version n:number status proposal view opened_at",
        _unique("approvals", "tenant operation run_id approval_version"),
        _unique("approvals", "tenant operation number"),
        _of_operation("approvals"),
    )  # fmt: skip
    _table(
        "votes", "tenant approval_id person", "tenant approval_id person n:number vote",
        _unique("votes", "tenant approval_id number"),
        _foreign("votes", "tenant approval_id", "approvals", "tenant approval_id"),
    )  # fmt: skip
    _table("statements", "tenant id", "tenant id hash operation seen_at")
    _table(
        "messages", "tenant operation message_id statement_hash",
        "tenant operation message_id statement_hash transport outcome received_at",
    )  # fmt: skip


def _executions() -> None:
    _table(
        "executions", "tenant key",
        "tenant key operation approval_id action_hash status n:attempt n:turn claimed_until receipt? reason",
        _unique("executions", "tenant operation action_hash"),
        _unique("executions", "tenant operation turn"),
        _of_operation("executions"),
        _foreign("executions", "tenant approval_id", "approvals", "tenant approval_id"),
    )  # fmt: skip
