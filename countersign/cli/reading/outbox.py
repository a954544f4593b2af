"""`outbox`: what people were told, and whether it arrived; what failed comes first, what no address took last."""

from __future__ import annotations

from typing import Any

from countersign.cli import options
from countersign.cli.rendering import moment, say, say_json, table
from countersign.cli.session import Session, opened, require_tenant
from countersign.domain.notice import Notice
from countersign.ports.control import Delivery

_ORDER = ("failed", "waiting", "delivered")
MANY = 10_000
UNTOLD = "unaddressed"
NO_ADDRESS = "no address takes it, or it was over a day old by then"


def outbox(tenant: options.Tenant, as_json: options.AsJson = False) -> None:
    """List a tenant's notices and their deliveries: failed ones first, those that nobody was sent last."""
    with opened() as session:
        require_tenant(session, tenant)
        deliveries = sorted(session.ledger.outbox.deliveries(tenant), key=lambda one: _ORDER.index(one.status))
        untold = session.ledger.outbox.untold(tenant)
        note = unsent(session, tenant)
    if as_json:
        say_json([*map(_json, deliveries), *(_untold_json(number, notice) for number, notice in untold)])
        return
    if deliveries or untold:
        head = ["STATUS", "NOTICE", "WHAT", "OPERATION", "CODE", "TO", "AT", "ATTEMPTS", "NEXT", "ERROR"]
        say(table(head, [*map(_cells, deliveries), *(_untold_cells(number, notice) for number, notice in untold)]))
    else:
        say(f"nothing was sent to anybody in tenant {tenant}")
    if note:
        say(note)


def unsent(session: Session, tenant: str) -> str:
    """What was written and sent to nobody so far, and why; empty where everything found an address."""
    from countersign.bootstrap import load_notifications

    waiting = len(session.ledger.outbox.unaddressed(tenant, MANY))
    addresses = load_notifications(session.settings).values()
    if not any(tenant in address.tenants for address in addresses):
        given_up = len(session.ledger.outbox.untold(tenant))
        return (
            f"no address in {session.settings.policies / 'notifications.yaml'} takes notices of tenant {tenant}, so"
            f" nobody is sent any: {waiting} wait in the ledger, {given_up} were put aside; of those that wait, none"
            " older than a day is sent once there is an address"
        )
    if not waiting:
        return ""
    return f"{waiting} more notices wait for a gateway worker, which sends on those that are not over a day old"


def _cells(one: Delivery) -> list[str]:
    notice = one.notice
    due = moment(one.next_at) if one.status == "waiting" else ""
    return [one.status, str(one.number), notice.kind.value, notice.operation, notice.code, one.target,
            moment(notice.at), str(one.attempts), due, one.error]  # fmt: skip


def _untold_cells(number: int, notice: Notice) -> list[str]:
    told = [UNTOLD, str(number), notice.kind.value, notice.operation, notice.code]
    return [*told, "", moment(notice.at), "0", "", NO_ADDRESS]


def _untold_json(number: int, notice: Notice) -> dict[str, Any]:
    return {
        "tenant": notice.tenant, "number": number, "target": "", "notice": notice.model_dump(mode="json"),
        "attempts": 0, "status": UNTOLD, "next_at": None, "error": NO_ADDRESS,
    }  # fmt: skip


def _json(one: Delivery) -> dict[str, Any]:
    return one.model_dump(mode="json")
