"""The tables as the program reads them; the migrations make them, and a test holds the two together.

Whole frozen values lie as JSON text in one column; beside it stand only the columns that are searched or constrained.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKeyConstraint, LargeBinary, MetaData, Table, UniqueConstraint

from countersign.domain.decision import Outcome
from countersign.domain.directory import Key, Role
from countersign.domain.draft import Draft, Violation
from countersign.domain.execution import Receipt
from countersign.domain.proposal import Proposal, Vote
from countersign.domain.rubric import Grade
from countersign.ledger.columns import Count, Frozen, Moment, PlainText

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def _text(name: str, *, key: bool = False) -> Column[str]:
    return Column(name, PlainText, primary_key=key, nullable=False)


def _count(name: str, *, key: bool = False) -> Column[int]:
    return Column(name, Count, primary_key=key, nullable=False, autoincrement=False)


installation = Table("installation", metadata, _count("id", key=True), _text("name"))

audit_records = Table(
    "audit_records",
    metadata,
    _text("tenant", key=True),
    _count("sequence", key=True),
    _text("recorded_at"),
    _text("origin"),
    _text("type"),
    _text("operation"),
    _text("subject"),
    _text("detail"),
    _text("previous"),
    _text("hash"),
)

documents = Table(
    "documents",
    metadata,
    _text("tenant", key=True),
    _text("sha256", key=True),
    Column("data", LargeBinary, nullable=False),
)

persons = Table(
    "persons",
    metadata,
    _text("tenant", key=True),
    _text("id", key=True),
    Column("roles", Frozen(frozenset[Role]), nullable=False),
    Column("active", Boolean(create_constraint=False), nullable=False),
)

keys = Table(
    "keys",
    metadata,
    _text("tenant", key=True),
    _text("id", key=True),
    _text("person"),
    Column("key", Frozen(Key), nullable=False),
    ForeignKeyConstraint(["tenant", "person"], ["persons.tenant", "persons.id"]),
)

operations = Table(
    "operations",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _text("case"),
    _text("request_hash"),
    _text("requester"),
    _text("statement"),
    _text("state"),
    _text("reason"),
    Column("registered_at", Moment, nullable=False),
)


def _of_operation() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["tenant", "operation"], ["operations.tenant", "operations.operation"])


drafts = Table(
    "drafts",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("version", key=True),
    _text("hash"),
    Column("draft", Frozen(Draft), nullable=False),
    _text("model"),
    Column("written_at", Moment, nullable=False),
    _of_operation(),
)


def _of_draft() -> ForeignKeyConstraint:
    columns = ["tenant", "operation", "version"]
    return ForeignKeyConstraint(columns, [f"drafts.{name}" for name in columns])


draft_checks = Table(
    "draft_checks",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("version", key=True),
    _count("number", key=True),
    _text("hash"),
    Column("violations", Frozen(tuple[Violation, ...]), nullable=False),
    Column("checked_at", Moment, nullable=False),
    _of_draft(),
)

draft_grades = Table(
    "draft_grades",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("version", key=True),
    _count("number", key=True),
    _text("hash"),
    Column("grade", Frozen(Grade), nullable=False),
    _text("rubric"),
    Column("graded_at", Moment, nullable=False),
    _of_draft(),
)

approvals = Table(
    "approvals",
    metadata,
    _text("tenant", key=True),
    _text("approval_id", key=True),
    _text("operation"),
    _text("run_id"),
    _count("approval_version"),
    _count("number"),
    _text("status"),
    Column("proposal", Frozen(Proposal), nullable=False),
    _text("view"),
    Column("opened_at", Moment, nullable=False),
    UniqueConstraint("tenant", "operation", "run_id", "approval_version"),
    UniqueConstraint("tenant", "operation", "number"),
    _of_operation(),
)

votes = Table(
    "votes",
    metadata,
    _text("tenant", key=True),
    _text("approval_id", key=True),
    _text("person", key=True),
    _count("number"),
    Column("vote", Frozen(Vote), nullable=False),
    UniqueConstraint("tenant", "approval_id", "number"),
    ForeignKeyConstraint(["tenant", "approval_id"], ["approvals.tenant", "approvals.approval_id"]),
)

statements = Table(
    "statements",
    metadata,
    _text("tenant", key=True),
    _text("id", key=True),
    _text("hash"),
    _text("operation"),
    Column("seen_at", Moment, nullable=False),
)

messages = Table(
    "messages",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _text("message_id", key=True),
    _text("statement_hash", key=True),
    _text("transport"),
    Column("outcome", Frozen(Outcome), nullable=False),
    Column("received_at", Moment, nullable=False),
)

executions = Table(
    "executions",
    metadata,
    _text("tenant", key=True),
    _text("key", key=True),
    _text("operation"),
    _text("approval_id"),
    _text("action_hash"),
    _text("status"),
    _count("attempt"),
    _count("turn"),
    Column("claimed_until", Moment, nullable=False),
    Column("receipt", Frozen(Receipt), nullable=True),
    _text("reason"),
    UniqueConstraint("tenant", "operation", "action_hash"),
    UniqueConstraint("tenant", "operation", "turn"),
    _of_operation(),
    ForeignKeyConstraint(["tenant", "approval_id"], ["approvals.tenant", "approvals.approval_id"]),
)
