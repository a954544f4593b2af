"""What people said of effects whose outcome is unknown: kept with the command that they signed, until it is spent.

Apart from executions because nothing here settles anything: it is the gateway that counts what was said, and records.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, func, select, update

from countersign.domain.command import Command
from countersign.domain.errors import Conflict
from countersign.domain.execution import MAY_BE_THERE, ExecutionStatus
from countersign.domain.operation import Operation
from countersign.domain.policy import kept_under, read_pinned
from countersign.domain.proposal import Proposal
from countersign.domain.settlement import Settlement, Settling, Unsettled
from countersign.ledger.approval_rows import find
from countersign.ledger.store import Writing
from countersign.ledger.tables import documents, executions, settlements
from countersign.ports import SignedSettlement


def unsettled(connection: Connection, operation: Operation, now: datetime) -> Unsettled | None:
    """The operation's effect whose outcome is unknown; nothing where there is none."""
    its = (executions.c.tenant == operation.tenant) & (executions.c.operation == operation.operation)
    latest = connection.execute(select(executions).where(its).order_by(executions.c.number.desc()).limit(1)).first()
    if latest is None or latest.status not in MAY_BE_THERE:
        return None
    approval = find(connection, operation.tenant, latest.approval_id)
    if approval is None:
        return None
    settling, unreadable = _settling(connection, approval.proposal)
    return Unsettled(
        key=latest.key,
        settling=settling,
        unreadable=unreadable,
        authors=frozenset(approval.proposal.authors),
        busy=latest.status == ExecutionStatus.INTENDED.value and now < latest.claimed_until,
    )


def keep(writing: Writing, said: Command, token: str, now: datetime) -> None:
    """Keep what an accepted command says; the caller holds the operation's lock."""
    if not said.finding:
        return
    of_key = (settlements.c.tenant == writing.tenant) & (settlements.c.key == said.key)
    latest = writing.connection.execute(select(func.max(settlements.c.number)).where(of_key)).scalar() or 0
    settlement = Settlement(
        person=said.person, key=said.key, finding=said.finding, reference=said.reference, at=now
    )  # fmt: skip
    writing.insert_once(
        settlements, key=said.key, number=latest + 1, person=said.person, statement=token, settlement=settlement,
        spent=0,
    )  # fmt: skip


def spend(writing: Writing, key: str) -> None:
    """From now on nothing that was said of the key counts: it was about what had been sent until then."""
    of_key = (settlements.c.tenant == writing.tenant) & (settlements.c.key == key)
    writing.connection.execute(update(settlements).where(of_key).values(spent=1))


def said_of(connection: Connection, tenant: str, key: str) -> list[SignedSettlement]:
    """All that was ever said of a key, oldest first."""
    of_key = select(settlements).where(settlements.c.tenant == tenant, settlements.c.key == key)
    rows = connection.execute(of_key.order_by(settlements.c.number))
    return [
        SignedSettlement(settlement=row.settlement, statement=row.statement, spent=bool(row.spent)) for row in rows
    ]  # fmt: skip


def _settling(connection: Connection, proposal: Proposal) -> tuple[Settling | None, str]:
    """What the policy that the action pins says of settling, or why that cannot be read.

    A later one lets nobody settle what was agreed before.
    """
    label = proposal.action.policy_version
    is_it = (documents.c.tenant == proposal.tenant) & (documents.c.sha256 == kept_under(label))
    kept = connection.execute(select(documents.c.data).where(is_it)).scalar()
    if kept is None:
        return None, f"policy {label[:120]} is not kept any more; restore a backup"
    try:
        return read_pinned(label, kept).settling, ""
    except Conflict as broken:
        return None, broken.message
