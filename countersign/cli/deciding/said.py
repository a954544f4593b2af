"""What people said so far of an effect whose outcome is unknown: each person once, with their evidence.

Apart from `settle`, because `status` and `brief` show it too, and the answer to a settlement says whom it needs still.
What counts in the end is the gateway's to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from countersign.cli.rendering import moment
from countersign.cli.reviewing.review_votes import comment_of
from countersign.cli.session import Session, now
from countersign.cli.situation import RunNow, run_now
from countersign.domain.canonical import sha256_hex
from countersign.domain.command import Command
from countersign.domain.execution import Execution
from countersign.domain.settlement import Settlement, settled


class Word(Settlement):
    """The last word of one person, as far as it is about what was sent last."""

    evidence: str
    """Where and how they saw it."""
    contradicted: bool
    """Whether somebody else says otherwise."""


def words_on(session: Session, execution: Execution | None) -> tuple[Word, ...]:
    """The last word of each person on an execution, oldest first; nothing where there is none."""
    if execution is None:
        return ()
    tenant = execution.tenant
    said = [one for one in session.ledger.executions.settlements(tenant, execution.key) if not one.spent]
    last = {one.settlement.person: one for one in said}
    if not last:
        return ()
    records = session.ledger.audit.records(tenant, execution.operation)
    hashes = {str(one.detail.get("statement_hash")): str(one.detail.get("comment_hash", "")) for one in records}
    found = {(one.settlement.finding, one.settlement.reference) for one in last.values()}
    return tuple(
        Word(
            **one.settlement.model_dump(),
            evidence=comment_of(session, tenant, hashes.get(sha256_hex(one.statement.encode()), "")),
            contradicted=len(found) > 1,
        )
        for one in sorted(last.values(), key=lambda one: one.settlement.at)
    )


def word_line(word: Word) -> str:
    """`lea at 2026-11-30T09:00:00Z: executed as refund-7; evidence: ticket 12`, marked where others say otherwise."""
    reference = f" as {word.reference}" if word.reference else ""
    marked = " [others say otherwise]" if word.contradicted else ""
    finding = word.finding.replace("_", " ")
    return f"{word.person} at {moment(word.at)}: {finding}{reference}{marked}; evidence: {word.evidence}"


def lacking(session: Session, signed: Command) -> str:
    """Who has to say the same before a settlement that was accepted comes to anything; empty where nobody has to."""
    from countersign.cases.assessing import pinned_policy

    run = run_now(session, signed.tenant, signed.operation)
    if run.unknown is None or run.unknown.key != signed.key:
        return ""
    proposal = session.ledger.approvals.get(signed.tenant, run.unknown.approval_id).proposal
    settling = pinned_policy(session.ledger, proposal).settling
    if settling is None:
        return ""
    needed = settling.persons(proposal.action.amount)
    counted = _of_role(session, run, settling.role)
    alike = [one for one in counted if (one.finding, one.reference) == (signed.finding, signed.reference)]
    missing = needed - len(alike)
    if missing > 0:
        return f"{'one' if missing == 1 else missing} more of role {settling.role} has to say the same"
    return "" if settled(counted, needed) else "others say otherwise, and nothing is settled while they do"


def _of_role(session: Session, run: RunNow, role: str) -> Sequence[Word]:
    """What those say who may still settle it."""
    persons, at = session.ledger.directory.persons(run.operation.tenant), now()
    able = {one.id for one in persons.values() if one.may(role) and one.has_good_key(at)}
    return [one for one in words_on(session, run.unknown) if one.person in able]
