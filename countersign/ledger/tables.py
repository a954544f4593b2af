"""The tables as the program reads them; the migrations make them, and a test holds the two together.

Whole frozen values lie as JSON text in one column; beside it stand only the columns that are searched or constrained.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKeyConstraint, Index, LargeBinary, MetaData, Table, UniqueConstraint

from countersign.domain.command import Ending
from countersign.domain.control import Control
from countersign.domain.decision import Outcome
from countersign.domain.directory import Key, Limit, Role
from countersign.domain.draft import DraftObject, Violation
from countersign.domain.escalation import Escalation
from countersign.domain.execution import Receipt
from countersign.domain.freeze import Freeze
from countersign.domain.model_call import Budget, ModelCall
from countersign.domain.notice import Notice
from countersign.domain.policy import Policy
from countersign.domain.progress import Progress
from countersign.domain.proposal import Proposal, Vote
from countersign.domain.question import Answered, Question
from countersign.domain.rubric import Grade
from countersign.domain.settlement import Settlement
from countersign.ledger.columns import Count, Frozen, Moment, PlainText

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def _text(name: str, *, key: bool = False) -> Column[str]:
    return Column(name, PlainText, primary_key=key, nullable=False)


def _count(name: str, *, key: bool = False) -> Column[int]:
    return Column(name, Count, primary_key=key, nullable=False, autoincrement=False)


installation = Table("installation", metadata, _count("id", key=True), _text("name"))

tenants = Table("tenants", metadata, _text("name", key=True))
"""Names alone, and the one table without row level security: whoever verifies all chains has to know whose there are.
A name is written with the tenant's first audit record."""

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
    Column("limits", Frozen(tuple[Limit, ...]), nullable=False),
)

keys = Table(
    "keys",
    metadata,
    _text("tenant", key=True),
    _text("id", key=True),
    _text("person"),
    _text("public_key"),
    Column("key", Frozen(Key), nullable=False),
    ForeignKeyConstraint(["tenant", "person"], ["persons.tenant", "persons.id"]),
    # One private key never speaks for two persons (G04).
    Index(None, "tenant", "public_key", unique=True),
)

policies = Table(
    "policies",
    metadata,
    _text("tenant", key=True),
    _text("name", key=True),
    _count("version", key=True),
    Column("policy", Frozen(Policy), nullable=False),
    Column("adopted_at", Moment, nullable=False),
    _text("basis"),
)
"""Every policy that was ever in force; of one name the highest version is."""

set_ups = Table("set_ups", metadata, _text("tenant", key=True))
"""The tenants whose first set-up is over; the audit says since when."""

changes = Table("changes", metadata, _text("tenant", key=True), _text("key", key=True))
"""The governed changes of persons, keys and policies that were made, by the action's idempotency key."""

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
    _text("follows"),
    Index(None, "tenant", "follows"),
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
    Column("draft", Frozen(DraftObject), nullable=False),
    _text("model"),
    _text("author"),
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
    Column("changed_at", Moment, nullable=False),
    _text("void_reason"),
    _text("likeness"),
    _text("tool"),
    _text("target"),
    Column("currency", PlainText, nullable=True),
    Column("minor", Count, nullable=True),
    # In which order the tenant's approvals were opened, as the ledger saw it: runs' clocks do not agree that well.
    Index(None, "tenant", "number", unique=True),
    Index(None, "tenant", "likeness"),
    Index(None, "tenant", "tool", "currency"),
    Index(None, "tenant", "target"),
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
    Column("decided_at", Moment, nullable=False),
    Column("vote", Frozen(Vote), nullable=False),
    Index(None, "tenant", "person"),
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
    _count("number"),
    Column("claimed_until", Moment, nullable=False),
    Column("receipt", Frozen(Receipt), nullable=True),
    _text("reason"),
    Column("may_land_until", Moment, nullable=True),
    UniqueConstraint("tenant", "operation", "action_hash"),
    # In which order the operation's executions were claimed; claimed again, one is the latest once more.
    Index(None, "tenant", "operation", "number", unique=True),
    _of_operation(),
    ForeignKeyConstraint(["tenant", "approval_id"], ["approvals.tenant", "approvals.approval_id"]),
)

facts = Table(
    "facts",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("number", key=True),
    _text("hash"),
    Column("gathered_at", Moment, nullable=False),
    _of_operation(),
)
"""What the gateway read outside for an operation, by the hash of the document; the highest number is what it rests on
now."""

settlements = Table(
    "settlements",
    metadata,
    _text("tenant", key=True),
    _text("key", key=True),
    _count("number", key=True),
    _text("person"),
    _text("statement"),
    Column("settlement", Frozen(Settlement), nullable=False),
    _count("spent"),
    ForeignKeyConstraint(["tenant", "key"], ["executions.tenant", "executions.key"]),
)
"""What people said of executions whose outcome was unknown, with the command as it was signed."""

restores = Table(
    "restores",
    metadata,
    _text("tenant", key=True),
    _count("number", key=True),
    Column("since", Moment, nullable=False),
    Column("until", Moment, nullable=False),
)
"""Times of which this ledger knows nothing, since it was restored from a backup."""

lines = Table(
    "lines",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _text("line", key=True),
    _text("run_id"),
    _text("handed_on_by"),
    _of_operation(),
)
"""Lines of runs that were handed on at least once, with the run that carries each now; empty between two runs."""

controls = Table(
    "controls",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("version", key=True),
    Column("control", Frozen(Control), nullable=False),
    _of_operation(),
)
"""Who was in control after the agent, from version 2 on; the highest version is."""

endings = Table(
    "endings",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    Column("ending", Frozen(Ending), nullable=False),
    _of_operation(),
)
"""The operations that people ended; their runs may not have come to it yet."""

escalations = Table(
    "escalations",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("number", key=True),
    _text("outcome"),
    Column("escalation", Frozen(Escalation), nullable=False),
    Index(None, "tenant", "outcome"),
    _of_operation(),
)

freezes = Table(
    "freezes",
    metadata,
    _text("tenant", key=True),
    _count("number", key=True),
    _text("order_hash"),
    _text("signed_order"),
    Column("freeze", Frozen(Freeze), nullable=False),
    Index(None, "tenant", "order_hash", unique=True),
)

holds = Table(
    "holds",
    metadata,
    _text("tenant", key=True),
    _count("number", key=True),
    _text("approval_id", key=True),
    ForeignKeyConstraint(["tenant", "number"], ["freezes.tenant", "freezes.number"]),
    ForeignKeyConstraint(["tenant", "approval_id"], ["approvals.tenant", "approvals.approval_id"]),
)
"""Which freeze has held which effect, so that each is recorded once, however often it is tried."""

ticks = Table(
    "ticks",
    metadata,
    _text("tenant", key=True),
    _text("approval_id", key=True),
    _count("number", key=True),
    Column("marked_at", Moment, nullable=False),
    ForeignKeyConstraint(["tenant", "approval_id"], ["approvals.tenant", "approvals.approval_id"]),
)
"""The reminders and tiers that have come."""

notices = Table(
    "notices",
    metadata,
    _text("tenant", key=True),
    _count("number", key=True),
    Column("addressed", Boolean(create_constraint=False), nullable=False),
    Column("notice", Frozen(Notice), nullable=False),
    Index(None, "tenant", "addressed", "number"),
)

deliveries = Table(
    "deliveries",
    metadata,
    _text("tenant", key=True),
    _count("number", key=True),
    _text("target", key=True),
    _count("attempts"),
    _text("status"),
    Column("next_at", Moment, nullable=False),
    _text("error"),
    Index(None, "tenant", "status", "next_at"),
    ForeignKeyConstraint(["tenant", "number"], ["notices.tenant", "notices.number"]),
)

questions = Table(
    "questions",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("number", key=True),
    _text("status"),
    Column("question", Frozen(Question), nullable=False),
    Column("answered", Frozen(Answered), nullable=True),
    Index(None, "tenant", "status"),
    _of_operation(),
)

question_ticks = Table(
    "question_ticks",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("question", key=True),
    _count("number", key=True),
    Column("marked_at", Moment, nullable=False),
    ForeignKeyConstraint(
        ["tenant", "operation", "question"], ["questions.tenant", "questions.operation", "questions.number"]
    ),
)
"""The reminders and tiers of questions that have come."""

model_calls = Table(
    "model_calls",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("number", key=True),
    Column("began_at", Moment, nullable=False),
    _text("case"),
    _text("outcome"),
    Column("input_tokens", Count, nullable=True),
    Column("output_tokens", Count, nullable=True),
    Column("milliseconds", Count, nullable=True),
    Column("nano", Count, nullable=True),
    _text("currency"),
    Column("call", Frozen(ModelCall), nullable=False),
    Index(None, "tenant", "case", "began_at"),
    _of_operation(),
)

budget_raises = Table(
    "budget_raises",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("number", key=True),
    _text("person"),
    _text("statement"),
    Column("raised_at", Moment, nullable=False),
    Column("budget", Frozen(Budget), nullable=False),
    _of_operation(),
)

progress = Table(
    "progress",
    metadata,
    _text("tenant", key=True),
    _text("operation", key=True),
    _count("number", key=True),
    Column("event", Frozen(Progress), nullable=False),
    _of_operation(),
)
"""What goes on while a run is drafted and graded; it may be deleted, and proves nothing."""

walled = tuple(table for table in metadata.sorted_tables if "tenant" in table.c)
"""The tables under row level security on PostgreSQL: all that hold anything of a tenant."""
