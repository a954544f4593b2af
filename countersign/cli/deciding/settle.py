"""`settle`: say what became of an effect whose outcome nobody knows, with evidence, after seeing what is known of it.

Apart from the other commands, because it is a statement about the outside and not about the run: it changes nothing by
itself, and what enough persons say alike is recorded by the gateway.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from countersign.cli import options
from countersign.cli.deciding.command_message import Order, command, keep
from countersign.cli.deciding.decide import OutFile, sign
from countersign.cli.deciding.said import Word, word_line, words_on
from countersign.cli.errors import Unreadable
from countersign.cli.rendering import STARTER, fields, say, say_json
from countersign.cli.session import Session, opened
from countersign.cli.situation import RunNow, run_now
from countersign.cli.standing import not_known
from countersign.domain.audit import AuditRecord
from countersign.domain.errors import Conflict, InputRefused
from countersign.domain.execution import Execution
from countersign.domain.proposal import Proposal
from countersign.domain.settlement import Finding, Settling

Executed = Annotated[bool, typer.Option("--executed", help="It lies outside; give its --reference there.")]
NotExecuted = Annotated[bool, typer.Option("--not-executed", help="It surely does not lie outside.")]
Reference = Annotated[
    str, typer.Option("--reference", metavar="REFERENCE", help="What the outside system calls it, where executed.")
]
Evidence = Annotated[
    str, typer.Option("--evidence", metavar="TEXT", help="Where and how you saw it; kept, and its hash is signed.")
]


class Known(NamedTuple):
    """What the ledger knows of an effect whose outcome is unknown."""

    proposal: Proposal
    execution: Execution
    attempts: tuple[AuditRecord, ...]
    """Each time the gateway sent or looked it up, and what came of it."""
    said: tuple[Word, ...]
    """What people said of it so far, each once."""
    settling: Settling | None
    """Who may say so, by the policy that it was proposed by."""


def settle(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.OptionalSigner = None,
    executed: Executed = False,
    not_executed: NotExecuted = False,
    reference: Reference = "",
    evidence: Evidence = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what is known of an effect whose outcome is unknown, and say what you found outside: sign that, send it.

    Without --executed or --not-executed it is only shown. Nothing is sent by it, and nothing is sent anew, under
    whatever key, until the gateway has found the effect or enough persons have settled what became of it.
    """
    with opened() as session:
        run = run_now(session, tenant, operation)
        known = known_of(session, run)
        if not executed and not not_executed:
            _show(run, known, as_json)
            return
        order = _order(known, person, _finding(executed, not_executed), reference, evidence, key)
        if not as_json:
            say(known_lines(run, known))
        command(session, run, order, as_json)


@sign.command("settle")
def sign_settle(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    evidence: Evidence,
    executed: Executed = False,
    not_executed: NotExecuted = False,
    reference: Reference = "",
    key: options.KeyFile = None,
) -> None:
    """Sign what you found outside of an effect whose outcome is unknown into a file."""
    with opened() as session:
        run = run_now(session, tenant, operation)
        known = known_of(session, run)
        say(known_lines(run, known))
        finding = _finding(executed, not_executed)
        keep(session, run, _order(known, person, finding, reference, evidence, key), out)


def known_of(session: Session, run: RunNow) -> Known:
    """What the ledger knows; Conflict where no outcome is unknown."""
    from countersign.cases.assessing import pinned_policy

    ledger, operation, execution = session.ledger, run.operation, run.unknown
    if execution is None:
        stands = f"it is {run.execution.status.value}" if run.execution is not None else "nothing was sent"
        raise Conflict(f"operation {operation.operation} has no effect whose outcome is unknown: {stands}")
    proposal = ledger.approvals.get(operation.tenant, execution.approval_id).proposal
    records = ledger.audit.records(operation.tenant, operation.operation)
    return Known(
        proposal=proposal,
        execution=execution,
        attempts=tuple(one for one in records if one.type.startswith("effect.") and _is_of(one, execution)),
        said=words_on(session, execution),
        settling=pinned_policy(ledger, proposal).settling,
    )


def known_lines(run: RunNow, known: Known) -> str:
    """All of it as text, and what must not be done meanwhile."""
    action, execution = known.proposal.action, known.execution
    return fields([
        ("operation", f"{run.operation.operation} ({run.operation.case}), {run.state.value}"),
        ("action", known.proposal.summary),
        ("target", action.target),
        ("amount", str(action.amount) if action.amount is not None else ""),
        ("channel", action.channel),
        ("key", execution.key),
        ("attempts", str(execution.attempt)),
        *[("", _attempt(one)) for one in known.attempts],
        ("last answer", execution.reason),
        ("not known", not_known(execution)),
        ("settled by", _who(known)),
        *[("said so far", word_line(one)) for one in known.said],
    ])  # fmt: skip


def _is_of(record: AuditRecord, execution: Execution) -> bool:
    return record.detail.get("key") == execution.key


def _attempt(record: AuditRecord) -> str:
    found = f": {record.detail['reason']}" if record.detail.get("reason") else ""
    return f"{record.recorded_at[:19]}Z attempt {record.detail.get('attempt')} {record.type.partition('.')[2]}{found}"


def _who(known: Known) -> str:
    if known.settling is None:
        return "nobody: the policy that it was proposed by names no role for it; it is looked up until it is found"
    persons = known.settling.persons(known.proposal.action.amount)
    alike = "" if persons == 1 else " who say the same"
    return f"{persons} of role {known.settling.role}{alike}, none of whom asked for it or made it"


def _finding(executed: bool, not_executed: bool) -> Finding:
    if executed == not_executed:
        raise Unreadable("give exactly one of --executed and --not-executed")
    return "executed" if executed else "not_executed"


def _order(
    known: Known, person: str | None, finding: Finding, reference: str, evidence: str, key: Path | None
) -> Order:
    if person is None:
        raise Unreadable("--as: say who settles it, such as --as lea")
    if not evidence.strip():
        raise InputRefused("--evidence: say where and how you saw it outside; whoever looks later has to know")
    return Order(
        "settle", person, evidence, key, key=known.execution.key, finding=finding, reference=reference
    )  # fmt: skip


def _show(run: RunNow, known: Known, as_json: bool) -> None:
    if as_json:
        say_json(_json(run, known))
        return
    say(known_lines(run, known))
    say("say what you found with:")
    for line in _ways(run):
        say(f"  {line}")


def _ways(run: RunNow) -> Iterator[str]:
    about = f"{STARTER} settle {run.operation.operation} --tenant {run.operation.tenant} --as PERSON"
    yield f"{about} --executed --reference REFERENCE --evidence TEXT"
    yield f"{about} --not-executed --evidence TEXT"


def _json(run: RunNow, known: Known) -> dict[str, Any]:
    amount, settling = known.proposal.action.amount, known.settling
    return {
        "operation": run.operation.operation, "state": run.state, "channel": known.proposal.action.channel,
        "target": known.proposal.action.target, "amount": amount.model_dump(mode="json") if amount else None,
        "execution": known.execution.model_dump(mode="json"), "not_known": not_known(known.execution),
        "attempts": [one.model_dump(mode="json", include={"sequence", "recorded_at", "type", "detail"})
                     for one in known.attempts],
        "role": settling.role if settling is not None else "",
        "persons": settling.persons(amount) if settling is not None else 0,
        "said": [one.model_dump(mode="json") for one in known.said],
        "commands": [*_ways(run)],
    }  # fmt: skip
