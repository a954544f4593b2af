"""Operations that follow others, facts that were gathered, settlements of unknown outcomes, and restores. Frozen.

`_table` and `_column` are copied on purpose: revisions share no code, so that changing one can never change another.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns and three tables."""
    op.add_column("operations", sa.Column("follows", sa.Text(), nullable=False, server_default=""))
    op.create_index("ix_operations_tenant_follows", "operations", ["tenant", "follows"])
    op.add_column("executions", sa.Column("may_land_until", sa.Text(), nullable=True))
    # Nobody noted whether anything was sent, so each is looked up before another takes its place.
    op.execute("UPDATE executions SET may_land_until = claimed_until WHERE status <> 'executed'")
    of_operation = sa.ForeignKeyConstraint(
        ["tenant", "operation"], ["operations.tenant", "operations.operation"], name="fk_facts_operations"
    )
    _table("facts", "tenant operation n:number", "hash gathered_at", of_operation)
    of_execution = sa.ForeignKeyConstraint(
        ["tenant", "key"], ["executions.tenant", "executions.key"], name="fk_settlements_executions"
    )
    _table("settlements", "tenant key n:number", "person statement settlement n:spent", of_execution)
    _table("restores", "tenant n:number", "since until")


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
