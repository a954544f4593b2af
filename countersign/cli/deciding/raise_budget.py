"""`raise-budget`: let a run that has used up what it may spend on models go on, with so much more.

Apart from the other commands, because what is signed is an amount, shown beside what was spent.
"""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import ValidationError

from countersign.cli import options
from countersign.cli.deciding.command_message import Order, command, keep, require_open
from countersign.cli.deciding.decide import OutFile, sign
from countersign.cli.errors import Unreadable
from countersign.cli.reading.spending import budget_text, budgets_of, run_budget, spent
from countersign.cli.rendering import fields, say
from countersign.cli.session import Session, opened
from countersign.cli.situation import RunNow, run_now
from countersign.domain.canonical import canonical_bytes
from countersign.domain.errors import InputRefused
from countersign.domain.model_call import Budget, problem_with_raise
from countersign.domain.money import amount

Calls = Annotated[int | None, typer.Option("--calls", metavar="N", min=1, help="So many calls more.")]
Tokens = Annotated[int | None, typer.Option("--tokens", metavar="N", min=1, help="So many tokens more.")]
Money = Annotated[str, typer.Option("--money", metavar="AMOUNT", help="So much money more, such as 5.00 USD.")]
Time = Annotated[str, typer.Option("--time", metavar="TIME", help="So long waiting for models more, such as 30m.")]


def raise_budget(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    calls: Calls = None,
    tokens: Tokens = None,
    money: Money = "",
    time: Time = "",
    comment: options.Comment = "",
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Give a run that is out of budget more to spend on models: sign that, send it.

    The role to which the run was escalated for it is needed, and not whoever asked for the operation. The agent then
    goes on where it stood; no finished call is made again.
    """
    more = _budget(calls, tokens, money, time)
    with opened() as session:
        run, order = _ordered(session, tenant, operation, Order("raise_budget", person, comment, key), more)
        if not as_json:
            say(_shown(session, run, more))
        command(session, run, order, as_json)


@sign.command("raise-budget")
def sign_raise_budget(
    operation: options.OperationArgument,
    tenant: options.Tenant,
    person: options.Signer,
    out: OutFile,
    calls: Calls = None,
    tokens: Tokens = None,
    money: Money = "",
    time: Time = "",
    comment: options.Comment = "",
    key: options.KeyFile = None,
) -> None:
    """Sign a larger budget for a run that is out of it into a file; what is added is put into the ledger."""
    more = _budget(calls, tokens, money, time)
    with opened() as session:
        run, order = _ordered(session, tenant, operation, Order("raise_budget", person, comment, key), more)
        say(_shown(session, run, more))
        keep(session, run, order, out)


def _ordered(session: Session, tenant: str, operation: str, order: Order, more: Budget) -> tuple[RunNow, Order]:
    """The run, and the order with its content in the ledger; refused before anything is stored."""
    run = run_now(session, tenant, operation)
    require_open(session, run, order)
    problem = problem_with_raise(run_budget(session, run), more)
    if problem:
        # Each option is named as the part of a budget that it gives.
        raise InputRefused(f"--{problem}")
    content = session.ledger.documents.put(tenant, canonical_bytes(more.model_dump(mode="json")))
    return run, order._replace(content=content)


def _budget(calls: int | None, tokens: int | None, money: str, time: str) -> Budget:
    if time:
        options.period("--time", time, "30m")
    try:
        return Budget(calls=calls, tokens=tokens, money=amount(money) if money else None, time=time or None)
    except ValidationError:
        raise Unreadable("give one of --calls, --tokens, --money and --time: how much more it may spend") from None


def _shown(session: Session, run: RunNow, more: Budget) -> str:
    name = (run.operation.tenant, run.operation.operation)
    done, budgets = spent(session.ledger.model_calls.of_operation(*name)), budgets_of(run)
    total = done.usage
    shared = f"{budget_text(budgets.tenant)} within {budgets.within}" if budgets and budgets.tenant else ""
    return fields([
        ("spent", f"{total.calls} calls, {total.failed} of them failed; {done.cost}"),
        ("no price", done.no_price),
        ("tokens", f"in {done.tokens(total.input_tokens)}, out {done.tokens(total.output_tokens)}"),
        ("milliseconds", done.milliseconds),
        ("budget now", budget_text(run_budget(session, run))),
        ("of the tenant", shared),
        ("you add", budget_text(more)),
    ])  # fmt: skip
