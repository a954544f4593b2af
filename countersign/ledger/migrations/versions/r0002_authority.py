"""Authority per tenant, what limits and rejections are looked up by, and row level security on PostgreSQL. Frozen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

WALLED = (
    "audit_records documents persons keys policies set_ups changes operations drafts draft_checks draft_grades "
    "approvals votes statements messages executions"
)


def upgrade() -> None:
    """Add tables and columns, fill them from what is there, and build the wall last: behind it nothing is seen here."""
    _tenants()
    _directory()
    _approvals()
    _executions()
    if op.get_bind().dialect.name == "postgresql":
        for table in WALLED.split():
            _wall(table)


def _wall(table: str) -> None:
    own = "tenant = current_setting('countersign.tenant', true)"
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")  # for the owner too, as whom the program connects
    op.execute(f"CREATE POLICY of_tenant ON {table} USING ({own}) WITH CHECK ({own})")


def _tenants() -> None:
    op.create_table("tenants", _text("name"), sa.PrimaryKeyConstraint("name", name="pk_tenants"))
    known = " UNION ".join(f"SELECT tenant FROM {table}" for table in ("persons", "operations", "audit_records"))
    op.execute(f"INSERT INTO tenants (name) {known}")


def _directory() -> None:
    """A tenant of before has an open set-up until its next start, as if it were new."""
    _add("persons", _text("limits", default="[]"))
    _add("keys", _text("public_key", default=""))
    for row in _rows("SELECT tenant, id, key FROM keys"):
        row["public_key"] = json.loads(row.pop("key"))["public_key"]
        _run("UPDATE keys SET public_key = :public_key WHERE tenant = :tenant AND id = :id", row)
    op.create_index("ix_keys_tenant_public_key", "keys", ["tenant", "public_key"], unique=True)
    _table(
        "policies", "tenant name version", "tenant name", sa.Column("version", sa.BigInteger(), nullable=False),
        *map(_text, ("policy", "adopted_at", "basis")),
    )  # fmt: skip
    _table("set_ups", "tenant", "tenant")
    _table("changes", "tenant key", "tenant key")


def _approvals() -> None:
    _add("votes", _text("decided_at", default=""))
    for row in _rows("SELECT tenant, approval_id, person, vote FROM votes"):
        row["decided_at"] = _microseconds(json.loads(row.pop("vote"))["decided_at"])
        is_it = "tenant = :tenant AND approval_id = :approval_id AND person = :person"
        _run(f"UPDATE votes SET decided_at = :decided_at WHERE {is_it}", row)
    op.create_index("ix_votes_tenant_person", "votes", ["tenant", "person"])
    names = ("changed_at", "void_reason", "likeness", "tool", "target")
    _add("approvals", *(_text(name, default="") for name in names))
    _add("approvals", sa.Column("currency", sa.Text()), sa.Column("minor", sa.BigInteger()))
    _fill_approvals()
    op.create_index("ix_approvals_tenant_number", "approvals", ["tenant", "number"], unique=True)
    for columns in (["likeness"], ["tool", "currency"], ["target"]):
        op.create_index(f"ix_approvals_tenant_{'_'.join(columns)}", "approvals", ["tenant", *columns])


def _fill_approvals() -> None:
    """Proposals in today's form, numbered through the whole tenant and no longer through their operation alone.

    Their action hash is that of the form before, so no grant of before is executed.
    """
    query = (
        'SELECT a.tenant, a.approval_id, a.proposal, a.opened_at, o."case" AS kind FROM approvals a '
        "JOIN operations o ON o.tenant = a.tenant AND o.operation = a.operation "
        # By time, but in each operation in the order it had: runs' clocks do not agree that well.
        "ORDER BY max(a.opened_at) OVER (PARTITION BY a.tenant, a.operation ORDER BY a.number), a.operation, a.number"
    )
    rows = [*_rows(query)]
    op.execute("UPDATE approvals SET number = -number")  # no new number meets an old one
    for number, row in enumerate(rows, start=1):
        proposal = json.loads(row["proposal"])
        proposal |= {"case": row.pop("kind"), "terms": {}, "cost": "none"}
        action = proposal["action"]
        row |= {"proposal": json.dumps(proposal, ensure_ascii=False), "likeness": _likeness(action)}
        row |= {"tool": action["tool"], "target": action["target"], "number": number}
        _run(
            "UPDATE approvals SET proposal = :proposal, changed_at = :opened_at, likeness = :likeness, tool = :tool, "
            "target = :target, number = :number WHERE tenant = :tenant AND approval_id = :approval_id",
            row,
        )


def _executions() -> None:
    """One name for in which order things came, as in the other tables."""
    with op.batch_alter_table("executions") as table:
        table.drop_constraint("uq_executions_tenant_operation_turn", type_="unique")
        table.alter_column("turn", new_column_name="number")
    op.create_index(
        "ix_executions_tenant_operation_number", "executions", ["tenant", "operation", "number"], unique=True
    )


def _likeness(action: dict[str, Any]) -> str:
    """Hash of the RFC 8785 form of what an action of before would do; it never had an amount."""
    names = ("tenant", "tool", "side_effect", "environment", "content_hash", "evidence_hash")
    fields = {**{name: action[name] for name in names}, "amount": None}
    canonical = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def _microseconds(moment: str) -> str:
    """`2026-11-30T09:00:00Z` in the fixed width of the ledger's times."""
    return moment if "." in moment else moment.replace("Z", ".000000Z")


def _text(name: str, *, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, server_default=default)


def _table(name: str, key: str, texts: str, *others: sa.Column[Any]) -> None:
    columns = [*map(_text, texts.split()), *others]
    op.create_table(name, *columns, sa.PrimaryKeyConstraint(*key.split(), name=f"pk_{name}"))


def _add(table: str, *columns: sa.Column[Any]) -> None:
    for column in columns:
        op.add_column(table, column)


def _rows(query: str) -> Iterator[dict[str, Any]]:
    yield from (dict(row._mapping) for row in op.get_bind().execute(sa.text(query)).all())


def _run(statement: str, values: dict[str, Any]) -> None:
    op.get_bind().execute(sa.text(statement), values)
