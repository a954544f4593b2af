"""`audit show|verify|export`: the record of a tenant, and the proof that nobody changed it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from countersign.cli import options
from countersign.cli.failure import sentence_of
from countersign.cli.read import record_cells
from countersign.cli.rendering import say, say_json, table
from countersign.cli.session import Session, opened, require_tenant
from countersign.domain.audit import AuditRecord
from countersign.domain.errors import NotFound

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
def verify(tenant: options.OptionalTenant = None, as_json: options.AsJson = False) -> None:
    """Recompute the whole chain against the checkpoint kept outside; names the first bad record."""
    with opened() as session:
        tenants = [tenant] if tenant else list(session.ledger.directory.tenants())
        if not tenants:
            raise NotFound("there is no tenant yet, so nothing to verify")
        checkpoints = [session.ledger.audit.verify(name) for name in tenants]
    if as_json:
        say_json([checkpoint.model_dump(mode="json") for checkpoint in checkpoints])
        return
    for checkpoint in checkpoints:
        say(f"{checkpoint.tenant}: {checkpoint.count} records verified, head {checkpoint.head}")


@audit.command("export")
def export(
    tenant: options.Tenant,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write; default: standard output.")] = None,
) -> None:
    """Write a tenant's records as JSON lines, in order, with all that a verifier needs."""
    with opened() as session:
        lines = [json.dumps(record.model_dump(mode="json")) for record in _records(session, tenant)]
    if out is None:
        say("\n".join(lines))
        return
    out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    say(f"{len(lines)} records written to {out}")


def _records(session: Session, tenant: str, operation: str | None = None) -> list[AuditRecord]:
    """The records in order; NotFound for a tenant or an operation that is not there, rather than no lines."""
    records = list(session.ledger.audit.records(tenant, operation))
    if not records:
        require_tenant(session, tenant)
        if operation is not None:
            session.ledger.operations.get(tenant, operation)
    return records
