"""`freeze`, `freezes`, `unfreeze`: hold effects at the gateway at once, and ask two administrators to let them go.

Apart from the commands about one run: a freeze is a tenant's, and holds runs that nobody has started yet.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from countersign.cli import options
from countersign.cli.governing.authority import Asking, ask_for, askers, say_asked
from countersign.cli.governing.frozen import Hold, holds
from countersign.cli.rendering import STARTER, fields, moment, say, say_json, table, warn
from countersign.cli.session import Session, new_id, now, opened, require_tenant, signing_key
from countersign.cli.tool_words import BUSINESS_NAMES
from countersign.domain.action import Action
from countersign.domain.administration import (
    ADMINISTRATION,
    SCOPE,
    SIDE_EFFECT,
    TOOL_VERSION,
    UnfreezeChange,
    changes_authority,
    target,
)
from countersign.domain.administration import tool as tool_of
from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Conflict, InputRefused, NotFound
from countersign.domain.freeze import Freeze, FreezeOrder
from countersign.domain.policy import Answer, Policy, assess


def freeze(
    tenant: options.Tenant,
    reason: options.Why,
    person: options.Signer,
    tool: Annotated[
        str | None, typer.Option("--tool", metavar="TOOL", help="Only this tool's effects; default: all of them.")
    ] = None,
    key: options.KeyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Hold every effect of a tenant, or of one tool, at the gateway at once, runs under way included.

    One person can, with the role operator or the one that asks for changes of authority. Deadlines go on meanwhile;
    changes of authority are never held, since without them nobody could lift it again.
    """
    from countersign.signing.statements import sign_freeze

    with opened() as session:
        named = _known_tool(tool)
        signing = signing_key(session, tenant, person, key)
        order = FreezeOrder(
            installation=session.settings.installation, person=person, key_id=signing.id, tenant=tenant,
            tool=named, reason=reason, issued_at=now(), id=new_id(),
        )  # fmt: skip
        token = sign_freeze(order, signing.private)
        before = [one for one in session.ledger.freezes.of_tenant(tenant) if one.in_force and one.tool in ("", named)]
        made = session.ledger.freezes.freeze(tenant, token, order.issued_at)
        policy = session.ledger.directory.policies(tenant).get(ADMINISTRATION)
        liftable = can_be_lifted(made, policy, session.settings.environment)
    for one in before:
        warn(
            f"freeze {one.number} by {one.person} since {moment(one.since)} holds the same already; effects go on only"
            " once each of them is lifted"
        )
    if not liftable:
        warn(
            f"no rule of the policy {ADMINISTRATION} in force in tenant {tenant} lets anyone lift a freeze; adopt one"
            f" that does: {STARTER} policy apply policies/administration.yaml --tenant {tenant} --as ADMIN"
        )
    if as_json:
        say_json(_json(made))
        return
    say(fields([
        ("frozen", f"{Hold(made, (), ()).what} in tenant {tenant} from now on, as freeze {made.number}"),
        ("lift it", f"{STARTER} unfreeze {made.number} --tenant {tenant} --as ADMIN"),
    ]))  # fmt: skip


def freezes(tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """List a tenant's freezes, those in force first, with the operations that each holds."""
    with opened() as session:
        require_tenant(session, tenant)
        found = holds(session, tenant)
    if as_json:
        say_json([_hold_json(one) for one in found])
    elif found:
        head = ["FREEZE", "IN FORCE", "WHAT", "SINCE", "BY", "LIFTED", "HOLDS", "END ASKED FOR BY", "REASON"]
        say(table(head, [_cells(one) for one in found]))
    else:
        say(f"nothing was ever frozen in tenant {tenant}")


def unfreeze(
    number: Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="Which freeze.", show_default=False)],
    tenant: options.Tenant,
    person: options.Signer,
    key: options.KeyFile = None,
    reason: options.Reason = "",
    operation: options.OptionalOperation = None,
) -> None:
    """Ask for a freeze to be lifted, as an admin; it is once two other admins have approved."""
    asked = Asking(person, key, reason, operation)
    with opened() as session:
        asking = askers(session, [tenant], asked, f"unfreeze {number} --tenant {tenant}")
        _require_in_force(session, tenant, number)
        if tenant not in asking:
            raise Conflict(
                f"the first set-up of tenant {tenant} is open: nothing can happen there, and nobody can lift a freeze"
                f" yet; complete it with: {STARTER} directory apply FILE"
            )
        started = ask_for(session, tenant, UnfreezeChange(freeze=number), asking[tenant])
    say(f"freeze {number} of tenant {tenant} holds until its end is approved:")
    say_asked(started)


def can_be_lifted(one: Freeze, policy: Policy | None, environment: str) -> bool:
    """Whether the policy `administration` has people decide about lifting it."""
    if policy is None:
        return False
    change, nothing = UnfreezeChange(freeze=one.number), sha256_hex(b"")
    action = Action(
        tenant=one.tenant, operation="unfreeze", tool=tool_of(change), tool_version=TOOL_VERSION, args={},
        target=target(change), side_effect=SIDE_EFFECT, scope=SCOPE, environment=environment, content_hash=nothing,
        evidence_hash=nothing, policy_version=policy.label(),
    )  # fmt: skip
    return assess(policy, action).answer == Answer.PEOPLE


def _known_tool(tool: str | None) -> str:
    """The tool by its name; a misspelt one would freeze nothing, in silence."""
    if tool is None:
        return ""
    able = [name for name in BUSINESS_NAMES if not changes_authority(name)]
    if changes_authority(tool):
        raise InputRefused(f"--tool {tool}: changes of authority are never frozen; choose {', '.join(able)}")
    if tool not in able:
        raise InputRefused(f"--tool: there is no tool {tool[:60]!r}; choose {', '.join(able)}")
    return tool


def _require_in_force(session: Session, tenant: str, number: int) -> None:
    found = {one.number: one for one in session.ledger.freezes.of_tenant(tenant)}
    if number not in found:
        raise NotFound(f"tenant {tenant} has no freeze {number}; see: {STARTER} freezes --tenant {tenant}")
    if not found[number].in_force:
        raise Conflict(f"freeze {number} of tenant {tenant} was lifted already, by operation {found[number].lifted_by}")


def _cells(hold: Hold) -> list[str]:
    one = hold.freeze
    lifted = f"{moment(one.lifted_at)} by {one.lifted_by}" if one.lifted_at is not None else ""
    in_force = "yes" if one.in_force else "no"
    held = (", ".join(names) for names in (hold.operations, hold.lifting))
    return [str(one.number), in_force, hold.what, moment(one.since), one.person, lifted, *held, one.reason]


def _json(one: Freeze) -> dict[str, Any]:
    return {**one.model_dump(mode="json"), "in_force": one.in_force}


def _hold_json(hold: Hold) -> dict[str, Any]:
    return {**_json(hold.freeze), "holds": [*hold.operations], "lifting": [*hold.lifting]}
