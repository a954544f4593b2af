"""`audit show|verify|accept-restored|export`: the record of a tenant, and the proof that nobody changed it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from countersign.cli import options
from countersign.cli.errors import DOES_NOT_FIT
from countersign.cli.failure import sentence_of
from countersign.cli.proving.audit_export import export_lines
from countersign.cli.proving.history_check import BY_RUNS, Checked, KeptRun, check, untold_or_gone
from countersign.cli.proving.restored import Lost, accept_restored, lost_of
from countersign.cli.reading.read import record_cells
from countersign.cli.rendering import say, say_json, table
from countersign.cli.session import Session, finished, opened, require_tenant
from countersign.domain.audit import AuditRecord, Checkpoint
from countersign.domain.errors import NotFound
from countersign.domain.operation import Operation

audit = typer.Typer(no_args_is_help=True, help="Show, verify and export the audit record.")


@audit.command("show")
def show(tenant: options.Tenant, operation: options.OptionalOperation = None, as_json: options.AsJson = False) -> None:
    """Show a tenant's records in order, all or one operation's."""
    with opened() as session:
        records = _records(session, tenant, operation)
        rows = [[str(one.sequence), one.operation, *record_cells(one, sentence_of(session, one))] for one in records]
    if as_json:
        say_json([record.model_dump(mode="json") for record in records])
        return
    say(table(["SEQ", "OPERATION", "AT", "WHAT", "BY", "DETAIL"], rows))


@audit.command("verify")
def verify(
    tenant: options.OptionalTenant = None,
    history: Annotated[
        bool, typer.Option("--history", help="Also compare it with what Temporal's histories say came to the runs.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Recompute the whole chain against the checkpoint kept outside; names the first bad record.

    With --history the exit code is 3 where a message has no record, a record no message, or an operation is gone.
    """
    with opened() as session:
        tenants = [tenant] if tenant else list(session.ledger.directory.tenants())
        if not tenants:
            raise NotFound("there is no tenant yet, so nothing to verify")
        verified = [_verified(session, name) for name in tenants]
        if history:
            verified = [one._replace(history=_against_history(session, one.checkpoint.tenant)) for one in verified]
    if as_json:
        say_json([_verified_json(one) for one in verified])
    else:
        say("\n".join(line for one in verified for line in _verified_lines(one)))
    if any(one.history is not None and one.history.problems for one in verified):
        raise typer.Exit(DOES_NOT_FIT)


audit.command("accept-restored")(accept_restored)


@audit.command("export")
def export(
    tenant: options.Tenant,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write; default: standard output.")] = None,
) -> None:
    """Write a tenant's records as JSON lines, in order, with all that a verifier needs."""
    with opened() as session:
        records = _records(session, tenant)
        lines = [json.dumps(line) for line in export_lines(session, tenant, records)]
    if out is None:
        say("\n".join(lines))
        return
    out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    say(f"{len(records)} records written to {out}, with keys and statements in {len(lines)} lines")


class _Verified(NamedTuple):
    """What became of verifying one tenant's record."""

    checkpoint: Checkpoint
    lost: list[Lost]
    history: Checked | None = None


def _verified(session: Session, tenant: str) -> _Verified:
    return _Verified(session.ledger.audit.verify(tenant), lost_of(session, tenant))


def _against_history(session: Session, tenant: str) -> Checked:
    """The tenant's record beside the histories that the Temporal server has."""
    records = list(session.ledger.audit.records(tenant))
    named: dict[str, set[str]] = {}
    for one in records:
        if one.detail.get("transport") in BY_RUNS:
            named.setdefault(one.operation, set()).add(str(one.detail["message_id"]).rpartition(":")[0])
    operations = session.ledger.operations.list(tenant)
    found = check(finished(_kept([(one, named.get(one.operation, set())) for one in operations])), records)
    return found.model_copy(update={"problems": (*untold_or_gone(operations, records), *found.problems)})


async def _kept(operations: Sequence[tuple[Operation, Collection[str]]]) -> list[KeptRun]:
    from countersign.cli.proving.temporal_history import kept_runs
    from countersign.temporal_client import connect

    client = await connect()
    return [run for operation, named in operations for run in await kept_runs(client, operation, named)]


def _verified_json(one: _Verified) -> dict[str, Any]:
    return {
        **one.checkpoint.model_dump(mode="json"),
        "lost": [lost.model_dump(mode="json") for lost in one.lost],
        "history": one.history.model_dump(mode="json") if one.history is not None else None,
    }


def _verified_lines(one: _Verified) -> list[str]:
    tenant = one.checkpoint.tenant
    lines = [f"{tenant}: {one.checkpoint.count} records verified, head {one.checkpoint.head}"]
    lines += [f"{tenant}: {lost.sentence()}" for lost in one.lost]
    return lines if one.history is None else [*lines, *_history_lines(tenant, one.history)]


def _history_lines(tenant: str, found: Checked) -> list[str]:
    waiting = f", {found.waiting} more were not ruled on" if found.waiting else ""
    lines = [f"{tenant}: {found.messages} messages in {found.runs} histories have their record{waiting}"]
    if found.gone_messages:
        gone = f"{found.gone_messages} recorded messages of {found.gone_runs} runs"
        lines.append(f"{tenant}: not checked: {gone} that the server no longer has")
    if found.by_no_run:
        lines.append(f"{tenant}: not checked: {found.by_no_run} recorded messages that came too late for any run")
    return [*lines, *(f"{tenant}: DIFFERENT: {problem}" for problem in found.problems)]


def _records(session: Session, tenant: str, operation: str | None = None) -> list[AuditRecord]:
    """The records in order; NotFound for a tenant or an operation that is not there, rather than no lines."""
    records = list(session.ledger.audit.records(tenant, operation))
    if not records:
        require_tenant(session, tenant)
        if operation is not None:
            session.ledger.operations.get(tenant, operation)
    return records
