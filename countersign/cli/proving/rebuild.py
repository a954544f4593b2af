"""`rebuild`: the whole story of one operation from the ledger alone, for whoever asks a year later who allowed what.

Neither Temporal nor anything outside is asked. Every signature and every hash is looked at again, and what the ledger
lacks, or does not have as its audit says, is told plainly; where something does not fit, the exit code is 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import typer
from pydantic import ValidationError

from countersign.cli import options
from countersign.cli.errors import DOES_NOT_FIT
from countersign.cli.proving.rebuild_entries import Quoted, Source, Told, told_of
from countersign.cli.proving.rebuild_proof import FROZEN, Keys, proof_of
from countersign.cli.proving.rebuild_rows import compared
from countersign.cli.proving.rebuild_text import story_text
from countersign.cli.proving.restored import lost_of
from countersign.cli.rendering import STARTER, say, say_json
from countersign.cli.session import Session, opened
from countersign.domain.audit import AuditRecord, ChainBroken
from countersign.domain.errors import Conflict, NotFound
from countersign.domain.operation import Operation
from countersign.domain.values import Value

_ELSEWHERE = (
    "the data that drafts rest on: the ledger has its hash, the evidence folder the bytes",
    "what the agent and its models said to each other on the way to a draft",
)
"""What no ledger has, said where there was a draft."""


class Entry(Value):
    """One record of the story."""

    sequence: int
    at: str
    type: str
    subject: str
    detail: dict[str, object]
    proof: str
    """By whom the statement behind it was signed, looked at again; empty where it rests on none."""
    said: tuple[str, ...]
    texts: tuple[Quoted, ...]
    """Whole texts behind it, each only at the first record that names it."""
    lacks: tuple[str, ...]
    wrong: tuple[str, ...]


class Story(Value):
    """All of it."""

    operation: Operation
    audit: str
    """How far the tenant's chain was verified."""
    followers: tuple[str, ...]
    """The operations that follow this one."""
    entries: tuple[Entry, ...]
    lacks: tuple[str, ...]
    """All that the ledger does not have, with the record that names it."""
    unbound: tuple[str, ...]
    """What its rows say and no record binds: nobody could tell if that was changed."""
    wrong: tuple[str, ...]
    """All that does not fit."""


def rebuild(operation: options.OperationArgument, tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """Tell the whole story of an operation from the ledger alone, each signature and hash looked at again.

    The exit code is 3 where something does not fit; what only lacks leaves it at 0.
    """
    with opened() as session:
        story = story_of(session, tenant, operation)
    if as_json:
        say_json(story.model_dump(mode="json"))
    else:
        say(story_text(story.model_dump(mode="json")))
    raise typer.Exit(DOES_NOT_FIT if story.wrong else 0)


def story_of(session: Session, tenant: str, operation: str) -> Story:
    """The story.

    Raises:
        NotFound: there is no such operation.
        Conflict: its rows cannot even be read.
        ChainBroken: the records cannot.
    """
    try:
        source = _source(session, session.ledger.operations.get(tenant, operation))
    except NotFound:
        _require_untold(session, tenant, operation)
        raise
    except ValidationError:
        raise Conflict(
            f"operation {operation}: the ledger's rows of it were changed into what this program cannot read; restore a"
            f" backup, and see the records by themselves: {STARTER} timeline {operation} --tenant {tenant}"
        ) from None
    every = list(session.ledger.audit.records(tenant))
    keys = Keys(session.ledger.directory.persons(tenant), every)
    records = [one for one in every if one.operation == operation or _holds(one, every, operation)]
    entries = _each_text_once(_entry(source, one, keys) for one in records)
    audit, broken = _verified(session, tenant)
    rows = compared(session.ledger.audit.rows(tenant, operation), every, operation)
    drafted = any(one.type == "draft.written" for one in records)
    return Story(
        operation=source.operation,
        audit=audit,
        followers=tuple(one.operation for one in session.ledger.operations.followers(tenant, operation)),
        entries=entries,
        lacks=(
            *_numbered(entries, "lacks"),
            *(one.sentence() for one in lost_of(session, tenant)),
            *(_ELSEWHERE if drafted else ()),
        ),
        unbound=rows.unbound,
        wrong=(*broken, *_numbered(entries, "wrong"), *rows.wrong),
    )


def _require_untold(session: Session, tenant: str, operation: str) -> None:
    """An operation that is not there, and of which there are records, was taken away."""
    first = next(iter(session.ledger.audit.records(tenant, operation)), None)
    if first is not None:
        raise Conflict(
            f"operation {operation} is not in the ledger, and audit record {first.sequence} ({first.type}) is about it;"
            f" restore a backup, and see the records by themselves: {STARTER} audit show --operation {operation}"
            f" --tenant {tenant}"
        )


def _source(session: Session, operation: Operation) -> Source:
    name, ledger = (operation.tenant, operation.operation), session.ledger
    return Source(
        session=session,
        operation=operation,
        approvals={one.proposal.approval_id: one for one in ledger.approvals.of_operation(*name)},
        executions={one.key: one for one in ledger.executions.of_operation(*name)},
        freezes={one.number: one for one in ledger.freezes.of_tenant(operation.tenant)},
    )


def _holds(record: AuditRecord, every: Sequence[AuditRecord], operation: str) -> bool:
    """Whether it is the tenant's record of a freeze that held this operation's effect."""
    if record.type != FROZEN:
        return False
    held = (one for one in every if one.type == "effect.held" and one.operation == operation)
    return any(one.detail["freeze"] == record.detail["number"] for one in held)


def _entry(source: Source, record: AuditRecord, keys: Keys) -> Entry:
    told, proof = told_of(source, record), proof_of(source.session, record, keys)
    if proof is not None:
        told += Told(lacks=tuple(filter(None, [proof.lacks])), wrong=tuple(filter(None, [proof.wrong])))
    return Entry(
        sequence=record.sequence, at=record.recorded_at, type=record.type, subject=record.subject,
        detail={**record.detail}, proof=proof.holds if proof is not None else "", **told.model_dump(),
    )  # fmt: skip


def _each_text_once(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    seen: set[str] = set()
    told = []
    for entry in entries:
        new = tuple(one for one in entry.texts if one.name not in seen)
        seen.update(one.name for one in new)
        told.append(entry.model_copy(update={"texts": new}))
    return tuple(told)


def _numbered(entries: Iterable[Entry], name: str) -> list[str]:
    return [f"record {entry.sequence}: {sentence}" for entry in entries for sentence in getattr(entry, name)]


def _verified(session: Session, tenant: str) -> tuple[str, tuple[str, ...]]:
    """How far the tenant's chain holds, and where it does not."""
    try:
        checkpoint = session.ledger.audit.verify(tenant)
    except ChainBroken as broken:
        return f"does not hold from record {broken.sequence} on", (broken.message,)
    return f"{checkpoint.count} records of tenant {tenant} verified, head {checkpoint.head}", ()
