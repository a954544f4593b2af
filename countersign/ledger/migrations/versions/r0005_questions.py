"""Questions of agents, calls of models, what people add to budgets, and what goes on meanwhile. Frozen.

`_table` and `_column` are copied on purpose: revisions share no code, so that changing one can never change another.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add five tables."""
    _table("questions", "tenant operation n:number", "status question answered?", _of_operation("questions"))
    op.create_index("ix_questions_tenant_status", "questions", ["tenant", "status"])
    of_question = sa.ForeignKeyConstraint(
        ["tenant", "operation", "question"],
        ["questions.tenant", "questions.operation", "questions.number"],
        name="fk_question_ticks_questions",
    )
    _table("question_ticks", "tenant operation n:question n:number", "marked_at", of_question)
    figures = "n:input_tokens? n:output_tokens? n:milliseconds? n:nano?"
    summed = f"began_at case outcome {figures} currency call"
    _table("model_calls", "tenant operation n:number", summed, _of_operation("model_calls"))
    op.create_index("ix_model_calls_tenant_case_began_at", "model_calls", ["tenant", "case", "began_at"])
    _table(
        "budget_raises",
        "tenant operation n:number",
        "person statement raised_at budget",
        _of_operation("budget_raises"),
    )
    _table("progress", "tenant operation n:number", "event", _of_operation("progress"))


def _of_operation(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant", "operation"], ["operations.tenant", "operations.operation"], name=f"fk_{table}_operations"
    )


def _table(name: str, key: str, columns: str, *others: sa.schema.SchemaItem) -> None:
    """A walled table of text columns; `n:` marks whole numbers, `?` what may be missing."""
    made = [_column(column) for column in (*key.split(), *columns.split())]
    primary = sa.PrimaryKeyConstraint(*key.replace("n:", "").split(), name=f"pk_{name}")
    op.create_table(name, *made, primary, *others)
    if op.get_bind().dialect.name == "postgresql":
        own = "tenant = current_setting('countersign.tenant', true)"
        op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")  # for the owner too, as whom the program connects
        op.execute(f"CREATE POLICY of_tenant ON {name} USING ({own}) WITH CHECK ({own})")


def _column(name: str) -> sa.Column[object]:
    plain, optional = name.removeprefix("n:").removesuffix("?"), name.endswith("?")
    if name.startswith("n:"):
        return sa.Column(plain, sa.BigInteger(), nullable=optional, autoincrement=False)
    return sa.Column(plain, sa.Text(), nullable=optional)
