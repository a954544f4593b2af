"""`cost`: every call of a model that was made for an operation, or what a tenant's came to; unknown stays unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from countersign.cli import options
from countersign.cli.reading.spending import Spent, budget_text, run_budget, spent, spent_json
from countersign.cli.rendering import fields, say, say_json, table
from countersign.cli.session import Session, now, opened, require_tenant
from countersign.cli.situation import run_now
from countersign.domain.model_call import ModelCall, cost_text

_HEAD = ["CALL", "ROLE", "DRAFT", "ATTEMPT", "ASKED", "ANSWERED", "INPUT", "OUTPUT", "MS", "OUTCOME", "COST"]
_SUMS = ["CALLS", "FAILED", "INPUT", "OUTPUT", "MS", "COST"]

By = Literal["case", "model"]


def cost(
    tenant: options.Tenant,
    operation: Annotated[
        str | None, typer.Argument(callback=options.checked, metavar="OPERATION", help="One; else the whole tenant.")
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Only calls of this long up to now, such as 7d.")
    ] = "",
    by: Annotated[By | None, typer.Option("--by", metavar="WHAT", help="Sums by case or by model.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what models cost: each call of an operation, or the sums of a tenant, by case or by model.

    Failed and repeated calls count. What a provider did not say is unknown, and in no sum but as a number of calls.
    """
    start = now() - options.period("--since", since, "7d") if since else None
    with opened() as session:
        if operation is None:
            require_tenant(session, tenant)
            calls, budget = session.ledger.model_calls.of_tenant(tenant, start), ""
        else:
            calls, budget = _of_operation(session, tenant, operation)
            calls = [call for call in calls if start is None or call.began_at >= start]
    groups = _groups(calls, by) if by is not None else {}
    if as_json:
        say_json({
            "tenant": tenant, "operation": operation or "", "since": start, "budget": budget,
            "calls": [call.model_dump(mode="json") for call in calls] if operation else [],
            "sums": spent_json(spent(calls)), "by": by or "",
            "groups": [{"name": name, **spent_json(one)} for name, one in groups.items()],
        })  # fmt: skip
        return
    if not calls:
        say(f"no model was called for {f'operation {operation}' if operation else f'tenant {tenant}'}")
        return
    if by is not None:
        say(table([by.upper(), *_SUMS], [[name, *_sums(one)] for name, one in groups.items()]))
    elif operation is not None:
        say(table(_HEAD, [_cells(call) for call in calls]))
    say(_total(spent(calls), budget))


def _of_operation(session: Session, tenant: str, operation: str) -> tuple[Sequence[ModelCall], str]:
    run = run_now(session, tenant, operation)
    return session.ledger.model_calls.of_operation(tenant, operation), budget_text(run_budget(session, run))


def _groups(calls: Sequence[ModelCall], by: By) -> dict[str, Spent]:
    """The sums by case, or by the model that has answered, the one that was asked where none is known to have."""
    found: defaultdict[str, list[ModelCall]] = defaultdict(list)
    for call in calls:
        found[call.case if by == "case" else call.answered or call.asked].append(call)
    return {name: spent(found[name]) for name in sorted(found)}


def _cells(call: ModelCall) -> list[str]:
    known = (call.input_tokens, call.output_tokens, call.milliseconds)
    return [
        str(call.number), call.role, f"v{call.draft_version}", str(call.attempt), call.asked,
        call.answered or "unknown", *("unknown" if one is None else str(one) for one in known),
        f"{call.outcome} {call.failure}".rstrip(), cost_text(call.nano, call.currency),
    ]  # fmt: skip


def _sums(one: Spent) -> list[str]:
    total = one.usage
    return [str(total.calls), str(total.failed), *_tokens(one), one.milliseconds, one.cost]


def _tokens(one: Spent) -> tuple[str, str]:
    return one.tokens(one.usage.input_tokens), one.tokens(one.usage.output_tokens)


def _total(one: Spent, budget: str) -> str:
    tokens_in, tokens_out = _tokens(one)
    return fields([
        ("calls", f"{one.usage.calls}, {one.usage.failed} of them failed"),
        ("input tokens", tokens_in),
        ("output tokens", tokens_out),
        ("milliseconds", one.milliseconds),
        ("cost", one.cost),
        ("no price", one.no_price),
        ("budget", budget),
    ])  # fmt: skip
