"""`policy check|explain|show|apply`: what a policy would ask, does ask and is, and how another comes in force."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from countersign.cli import options
from countersign.cli.deciding.decision_message import proposed
from countersign.cli.governing.authority import Asking, ask_for, askers, say_asked
from countersign.cli.governing.staffing import idle_roles
from countersign.cli.reading.spending import budget_lines
from countersign.cli.rendering import STARTER, fields, moment, say, say_json, table, visible_line, warn
from countersign.cli.reviewing.explaining import explanation, explanation_text
from countersign.cli.reviewing.reasons import (
    ANSWERS,
    Answered,
    Example,
    answered,
    asked_for,
    example_for,
    in_words,
    spent_in_each,
)
from countersign.cli.session import now, opened, require_tenant
from countersign.cli.standing import answering_text
from countersign.domain.administration import Authority, PolicyChange, content, present
from countersign.domain.authority_differences import authority_differences, with_amounts
from countersign.domain.errors import Conflict, InputRefused, NotFound
from countersign.domain.money import amount as read_amount
from countersign.domain.policy import Policy
from countersign.domain.visible import escaped
from countersign.ports import Adopted
from countersign.settings import load_settings

policy = typer.Typer(no_args_is_help=True, help="Check, explain, show and change who is asked about what.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="A policy (YAML).", show_default=False)]
NOTHING = "(none)"


def _fact(meaning: str) -> Any:
    return typer.Option(metavar="VALUE", help=f"The example's {meaning}.")


@policy.command("check")
def check(
    file: File,
    tool: Annotated[str, _fact("tool")] = "",
    tool_version: Annotated[str, _fact("tool version")] = "",
    channel: Annotated[str, _fact("channel")] = "",
    target: Annotated[str, _fact("target")] = "",
    side_effect: Annotated[str, _fact("side effect")] = "",
    scope: Annotated[str, _fact("scope")] = "",
    environment: Annotated[str, _fact("environment")] = "",
    amount: Annotated[str | None, typer.Option(metavar="AMOUNT", help="Its amount, such as '120.00 EUR'.")] = None,
    spent: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="What earlier actions in each window come to; default: nought.")
    ] = None,
    tenant: options.OptionalTenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Check a policy file, and show who would be asked about an example action, and why.

    Without options there is one example for each rule; a fact that is not given fits no rule that looks at it. With a
    tenant it also warns of roles that nobody there can act in.
    """
    from countersign.bootstrap import load_policy

    read = load_policy(file, load_settings())
    money, before = (None if text is None else read_amount(text) for text in (amount, spent))
    if before is not None and (money is None or money.currency != before.currency):
        raise InputRefused(f"--spent: {before} is added to the amount; give --amount in {before.currency}")
    given = Example(tool=tool, tool_version=tool_version, channel=channel, target=target, side_effect=side_effect,
                    scope=scope, environment=environment, amount=money)  # fmt: skip
    examples = [given] if given != Example() else [example_for(rule) for rule in read.rules]
    earlier = spent_in_each(read, before.minor if before else 0)
    answers = [answered(read, example.action(), earlier) for example in examples]
    warnings = [] if tenant is None else _idle_roles_in(tenant, read)
    if as_json:
        examples_json = [_answer_json(one) for one in answers]
        sensitive = list(read.sensitive_columns)
        say_json(
            {"policy": read.label(), "sensitive_columns": sensitive, "examples": examples_json, "warnings": warnings}
        )
        return
    for sentence in warnings:
        warn(sentence)
    say(f"{file} is well formed: {read.label()}; asked for by role {read.asked_by}")
    columns = ", ".join(map(visible_line, read.sensitive_columns))
    named = [("answering", answering_text(read.answering)), ("sensitive in every dataset", columns)]
    say(fields([*named, *budget_lines(read)]))
    for one in answers:
        say(f"\n{_answer_text(one)}")


@policy.command("explain")
def explain(operation: options.OperationArgument, tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """Explain who is asked about an operation's proposal and why, who could approve now, and what is missing."""
    with opened() as session:
        explained = explanation(session, proposed(session, tenant, operation))
    if as_json:
        say_json(explained)
    else:
        say(explanation_text(explained))


@policy.command("show")
def show(
    tenant: options.Tenant,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One policy, whole.", show_default=False)] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the policies in force in a tenant: version, since when, and by what right."""
    with opened() as session:
        require_tenant(session, tenant)
        found = session.ledger.directory.adopted(tenant)
    chosen = {one: adopted for one, adopted in found.items() if name in (None, one)}
    if name is not None and not chosen:
        raise NotFound(f"tenant {tenant} has no policy {name!r} in force")
    if as_json:
        say_json([_adopted_json(adopted) for adopted in chosen.values()])
    elif not found:
        say(
            f"tenant {tenant} has no policy in force; put the policy files in force with:"
            f" {STARTER} directory apply FILE"
        )
    elif name is not None:
        say(escaped(_as_yaml(chosen[name].policy)))
    else:
        rows = [_cells(adopted) for adopted in chosen.values()]
        say(table(["POLICY", "VERSION", "SINCE", "BASIS", "LABEL"], rows))


@policy.command("apply")
def apply(
    file: File,
    tenant: options.Tenant,
    person: options.Signer,
    key: options.KeyFile = None,
    reason: options.Reason = "",
    operation: options.OptionalOperation = None,
    yes: options.Yes = False,
) -> None:
    """Ask for a policy to come in force, as an admin; it does once two other admins have approved.

    Shows the difference to the policy in force.
    """
    from countersign.bootstrap import load_policy

    asked = Asking(person, key, reason, operation)
    with opened() as session:
        wanted = load_policy(file, session.settings)
        if session.ledger.directory.set_up_open(tenant):
            raise Conflict(
                f"the first set-up of tenant {tenant} is open, so nobody need be asked: put the files in"
                f" {session.settings.policies} in force with: {STARTER} directory apply FILE"
            )
        asker = askers(session, [tenant], asked, f"policy apply {file} --tenant {tenant}")[tenant]
        change, authority = PolicyChange(policy=wanted), session.ledger.directory.authority(tenant)
        if authority.policies.get(wanted.policy) == wanted:
            say(f"nothing to do: {wanted.label()} is in force")
            return
        _shown(change, authority)
        for sentence in idle_roles(change, authority, now()):
            warn(sentence)
        if not yes:
            typer.confirm("ask for this?", abort=True)
        say_asked(ask_for(session, tenant, change, asker))


def _idle_roles_in(tenant: str, read: Policy) -> list[str]:
    with opened() as session:
        require_tenant(session, tenant)
        return list(idle_roles(PolicyChange(policy=read), session.ledger.directory.authority(tenant), now()))


def _answer_json(one: Answered) -> dict[str, Any]:
    return {
        "facts": dict(one.facts), "amount": str(one.amount) if one.amount else None, "answer": one.assessment.answer,
        "rules": [reason._asdict() for reason in one.reasons],
        "needs": [need.model_dump(mode="json") for need in one.assessment.needs],
    }  # fmt: skip


def _answer_text(one: Answered) -> str:
    facts = [f"{name} {value}" for name, value in one.facts.items()]
    return fields([
        ("example", ", ".join([*facts, *([f"amount {one.amount}"] if one.amount else [])])),
        ("answer", ANSWERS[one.assessment.answer]),
        *(("needs", asked_for(need)) for need in one.assessment.needs),
        *(("rule", in_words(reason)) for reason in one.reasons),
    ])  # fmt: skip


def _cells(adopted: Adopted) -> list[str]:
    one = adopted.policy
    return [one.policy, str(one.version), moment(adopted.since), adopted.basis, one.label()]


def _adopted_json(adopted: Adopted) -> dict[str, Any]:
    one = adopted.policy
    return {
        "policy": one.policy, "version": one.version, "label": one.label(), "since": adopted.since,
        "basis": adopted.basis, "content": one.model_dump(mode="json"),
    }  # fmt: skip


def _as_yaml(one: Policy) -> str:
    """The whole policy as a file could have it, with what it leaves to the defaults."""
    values = with_amounts(one.model_dump(mode="json"))
    values["rules"] = [{name: value for name, value in rule.items() if value is not None} for rule in values["rules"]]
    return str(yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110))


def _shown(change: PolicyChange, authority: Authority) -> None:
    """What would differ, as those who decide will see it."""
    in_force = authority.policies.get(change.policy.policy)
    say(fields([("in force", in_force.label() if in_force else "none"), ("asked for", change.policy.label())]))
    for one in authority_differences(authority.tenant, content(change), present(change, authority), now()):
        say(f"  {visible_line(f'{one.place}: {one.before or NOTHING} -> {one.after or NOTHING}')}")
