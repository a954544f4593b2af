"""Control, escalations, freezes, notices, and lines of runs; withdrawing is a command now, and no vote. Frozen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add tables and a column, and take the votes out that are none any more."""
    op.add_column("drafts", sa.Column("author", sa.Text(), nullable=False, server_default="agent"))
    _control()
    _freezes()
    _notices()
    _withdrawals()


def _control() -> None:
    _table("lines", "tenant operation line", "run_id handed_on_by", _of_operation("lines"))
    _table("controls", "tenant operation n:version", "control", _of_operation("controls"))
    _table("endings", "tenant operation", "ending", _of_operation("endings"))
    _table("escalations", "tenant operation n:number", "outcome escalation", _of_operation("escalations"))
    op.create_index("ix_escalations_tenant_outcome", "escalations", ["tenant", "outcome"])
    _table("ticks", "tenant approval_id n:number", "marked_at", _of_approval("ticks"))


def _freezes() -> None:
    _table("freezes", "tenant n:number", "order_hash signed_order freeze")
    op.create_index("ix_freezes_tenant_order_hash", "freezes", ["tenant", "order_hash"], unique=True)
    of_freeze = _foreign("holds", "tenant number", "freezes", "tenant number")
    _table("holds", "tenant n:number approval_id", "", of_freeze, _of_approval("holds"))


def _notices() -> None:
    _table("notices", "tenant n:number", "notice", sa.Column("addressed", sa.Boolean(), nullable=False))
    op.create_index("ix_notices_tenant_addressed_number", "notices", ["tenant", "addressed", "number"])
    of_notice = _foreign("deliveries", "tenant number", "notices", "tenant number")
    _table("deliveries", "tenant n:number target", "n:attempts status next_at error", of_notice)
    op.create_index("ix_deliveries_tenant_status_next_at", "deliveries", ["tenant", "status", "next_at"])


def _withdrawals() -> None:
    """Their approvals stay withdrawn; what was signed goes under the hash by which the audit names it."""
    for tenant in [row["name"] for row in _rows("SELECT name FROM tenants")]:
        if op.get_bind().dialect.name == "postgresql":
            _run("SELECT set_config('countersign.tenant', :tenant, true)", {"tenant": tenant})
        query = "SELECT tenant, approval_id, person, vote FROM votes WHERE tenant = :tenant"
        for row in _rows(query, {"tenant": tenant}):
            vote = json.loads(row.pop("vote"))
            if vote["decision"] == "withdraw":
                _keep_document(tenant, vote["statement"].encode())
                is_it = "tenant = :tenant AND approval_id = :approval_id AND person = :person"
                _run(f"DELETE FROM votes WHERE {is_it}", row)


def _keep_document(tenant: str, data: bytes) -> None:
    values = {"tenant": tenant, "sha256": f"sha256:{hashlib.sha256(data).hexdigest()}", "data": data}
    into = "INSERT INTO documents (tenant, sha256, data) VALUES (:tenant, :sha256, :data)"
    _run(f"{into} ON CONFLICT DO NOTHING", values)


def _table(name: str, key: str, columns: str, *others: sa.schema.SchemaItem) -> None:
    """A walled table of text columns; `n:` marks whole numbers."""
    made = [_column(column) for column in (*key.split(), *columns.split())]
    primary = sa.PrimaryKeyConstraint(*key.replace("n:", "").split(), name=f"pk_{name}")
    op.create_table(name, *made, primary, *others)
    if op.get_bind().dialect.name == "postgresql":
        own = "tenant = current_setting('countersign.tenant', true)"
        op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")  # for the owner too, as whom the program connects
        op.execute(f"CREATE POLICY of_tenant ON {name} USING ({own}) WITH CHECK ({own})")


def _column(name: str) -> sa.Column[object]:
    if name.startswith("n:"):
        return sa.Column(name.removeprefix("n:"), sa.BigInteger(), nullable=False, autoincrement=False)
    return sa.Column(name, sa.Text(), nullable=False)


def _foreign(table: str, columns: str, referred: str, referred_columns: str) -> sa.ForeignKeyConstraint:
    targets = [f"{referred}.{column}" for column in referred_columns.split()]
    return sa.ForeignKeyConstraint(columns.split(), targets, name=f"fk_{table}_{referred}")


def _of_operation(table: str) -> sa.ForeignKeyConstraint:
    return _foreign(table, "tenant operation", "operations", "tenant operation")


def _of_approval(table: str) -> sa.ForeignKeyConstraint:
    return _foreign(table, "tenant approval_id", "approvals", "tenant approval_id")


def _rows(query: str, values: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    yield from (dict(row._mapping) for row in op.get_bind().execute(sa.text(query), values or {}).all())


def _run(statement: str, values: dict[str, Any]) -> None:
    op.get_bind().execute(sa.text(statement), values)
