"""What `doctor` looks at in each tenant: who can act, whether it can change itself, policies, alarms, notices, freezes.

Apart from the other checks, which are about the machine and its parts and know no tenant.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from countersign.cli.governing import staffing
from countersign.cli.reading.outbox import unsent
from countersign.cli.rendering import STARTER
from countersign.cli.session import Session, now
from countersign.domain.administration import ADMINISTRATION, lockout
from countersign.domain.errors import ConfigurationRefused, Conflict, NotFound
from countersign.domain.escalation import Reason
from countersign.domain.model_call import Prices
from countersign.domain.policy import Policy
from countersign.settings import Settings

ALARM = "alarm.raised"
"""The audit's type for what no honest course of a run leads to."""
RECENT = timedelta(days=7)
"""For how long after the last alarm the installation does not count as well."""


def manned(session: Session, tenant: str) -> str:
    """Who can act in each role that the policies in force need, with a note where too few can settle an outcome.

    Raises:
        NotFound: somebody lacks.
    """
    authority, at = session.ledger.directory.authority(tenant), now()
    persons, policies = authority.persons, authority.policies.values()
    held = staffing.manned(persons, policies, tenant, at)
    return "; ".join([held, *(f"note: {one}" for one in staffing.too_few_to_settle(persons, policies, at))])


def governed(session: Session, tenant: str) -> str:
    """Whether the first set-up is open; NotFound where nobody could change the directory after it."""
    authority = session.ledger.directory.authority(tenant)
    found = lockout(authority.persons, authority.policies.get(ADMINISTRATION), now())
    if session.ledger.directory.set_up_open(tenant):
        todo = f"; before the first start complete it with: {STARTER} directory apply FILE, and: {STARTER} keys new"
        if found:
            raise NotFound(f"open: {'; '.join(found)}{todo}")
        return "open: persons, keys and policies are changed without asking anyone; the first start ends it"
    if found:
        raise NotFound(f"closed, and {'; '.join(found)}")
    return "closed: an admin asks for every change, two others approve it"


def in_force(session: Session, tenant: str) -> str:
    """What is in force, and as a note each file that says otherwise: a tenant may well have policies of its own.

    Raises:
        ConfigurationRefused: a budget is in a currency in which nothing has a price, so that it is never used up.
    """
    from countersign.bootstrap import load_policies, load_prices

    in_force = session.ledger.directory.policies(tenant)
    is_open = session.ledger.directory.set_up_open(tenant)
    files = load_policies(session.settings)
    labels = ", ".join(policy.label().partition("@")[0] for policy in in_force.values()) or "none"
    notes = [
        _differs(session.settings, tenant, file, in_force.get(name), is_open)
        for name, file in files.items()
        if file != in_force.get(name)
    ]
    unpriced = _unpriced(in_force.values(), load_prices(session.settings))
    if unpriced:
        raise ConfigurationRefused("; ".join([f"{labels} in force", *unpriced]))
    return "; ".join([f"{labels} in force", *notes, *_without_a_way_on(in_force.values())])


def _unpriced(policies: Iterable[Policy], prices: Prices) -> list[str]:
    """A sentence for each budget of money in another currency than models are paid in."""
    currency = prices.currency
    return [
        f"policy {policy.policy} has a budget of {money}, and prices.yaml is in {currency}, so it is never used up;"
        f" write the budget in {currency} and ask for it with: {STARTER} policy apply FILE"
        for policy in policies
        if policy.budgets is not None
        for money in policy.budgets.unpriced(prices).values()
    ]


def _without_a_way_on(policies: Iterable[Policy]) -> list[str]:
    """A sentence for each policy by which a run that is out of budget just ends."""
    return [
        f"note: policy {one.policy} names nobody for {Reason.BUDGET_EXCEEDED.value}, so a run out of budget fails"
        for one in policies
        if one.budgets is not None and Reason.BUDGET_EXCEEDED not in one.escalations
    ]


def _differs(settings: Settings, tenant: str, file: Policy, in_force: Policy | None, is_open: bool) -> str:
    path = settings.policies / f"{file.policy}.yaml"
    told = f"{path} (version {file.version}) is another one"
    if is_open:
        return f"{told}; put it in force with: {STARTER} directory apply FILE"
    if in_force is not None and file.version != in_force.version + 1:
        return told
    return f"{told}; ask for it with: {STARTER} policy apply {path} --tenant {tenant} --as ADMIN"


def alarms(session: Session, tenant: str) -> str:
    """How many alarms were raised; Conflict where the last one is recent."""
    raised = [record for record in session.ledger.audit.records(tenant) if record.type == ALARM]
    if not raised:
        return "none raised"
    last = raised[-1]
    told = f"{len(raised)} raised, the last at {last.recorded_at[:19]}Z"
    seen = f"{STARTER} audit show --tenant {tenant}{f' --operation {last.operation}' if last.operation else ''}"
    if datetime.fromisoformat(last.recorded_at) > now() - RECENT:
        raise Conflict(f"{told}: somebody tried what no honest course leads to; see: {seen}")
    return f"{told}; see: {seen}"


def delivered(session: Session, tenant: str) -> str:
    """How many notices are on their way; Conflict where one was given up on recently."""
    deliveries = session.ledger.outbox.deliveries(tenant)
    waiting = sum(one.status == "waiting" for one in deliveries)
    failed = [one for one in deliveries if one.status == "failed" and one.notice.at > now() - RECENT]
    if failed:
        targets = ", ".join(dict.fromkeys(one.target for one in failed))
        raise Conflict(
            f"{len(failed)} did not arrive at {targets} in the last {RECENT.days} days; see: {STARTER} outbox --tenant"
            f" {tenant}"
        )
    told = f"{waiting} on their way, none failed in the last {RECENT.days} days"
    return "; ".join(filter(None, [told, unsent(session, tenant)]))


def flowing(session: Session, tenant: str) -> str:
    """Conflict where a freeze holds effects."""
    held = [one for one in session.ledger.freezes.of_tenant(tenant) if one.in_force]
    if held:
        told = "; ".join(f"freeze {one.number} holds {one.tool or 'every effect'}: {one.reason}" for one in held)
        raise Conflict(f"{told}; lift it with: {STARTER} unfreeze NUMBER --tenant {tenant} --as ADMIN")
    return "none in force"
