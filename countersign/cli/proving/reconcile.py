"""`reconcile`: ledger, Temporal and the outside system side by side, and every disagreement with what to do about it.

Run where the gateway runs, since it looks outside with the gateway's credentials. It changes nothing anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from countersign.cli import options
from countersign.cli.errors import DOES_NOT_FIT
from countersign.cli.proving.reconcile_money import money_of
from countersign.cli.proving.seen_runs import seen_runs
from countersign.cli.rendering import STARTER, TEMPORAL, say, say_json, visible_line
from countersign.cli.session import Session, finished, now, opened, require_tenant
from countersign.domain.errors import Unavailable
from countersign.domain.identity import workflow_id
from countersign.domain.operation import Operation
from countersign.domain.reconciliation import (
    SERVER,
    Disagreement,
    DisagreementKind,
    Effect,
    Gap,
    SeenRun,
    Survey,
    disagreements,
    gaps,
    lasting,
)

if TYPE_CHECKING:
    from countersign.gateway.reconciling import Outside

NOT_ALL_COMPARED = 4
"""The exit code where nothing disagrees, and something could not be asked."""
AGAIN_SECONDS = 2.0
"""Between two looks: whatever moves by itself has moved on by then."""

_RESUME = f"{STARTER} resume {{at}}"
_NEXT: dict[DisagreementKind, str] = {
    DisagreementKind.EFFECT_GONE: "find out who removed it there; it is not sent again, so ask anew where it is still"
    f" wanted: {STARTER} rebuild {{at}}",
    DisagreementKind.EFFECT_DIFFERS: "find out who changed it there; what was approved and sent:"
    f" {STARTER} rebuild {{at}}",
    DisagreementKind.EFFECT_UNRECORDED: "the gateway looks up before it sends, and records it once the run comes to"
    f" that; without a run: {_RESUME}",
    DisagreementKind.EFFECT_UNKNOWN: "ask for nothing like it until a person knows whose it is: another draft has"
    f" another key; was the ledger restored? {STARTER} audit verify --tenant {{tenant}}",
    DisagreementKind.REFUNDED_DIFFERS: "find out there who refunded or took back what besides us; what we did:"
    f" {STARTER} rebuild {{at}}",
    DisagreementKind.OUTCOME_OPEN: "a gateway worker looks it up until it is known; where it stays so, a person settles"
    f" it: {STARTER} settle {{at}}",
    DisagreementKind.EXECUTED_NOT_ENDED: f"the run ends at once, and sends nothing: {_RESUME}",
    DisagreementKind.EXECUTED_ENDED_OTHERWISE: f"what happened stands; to take it back: {STARTER} compensate {{at}}",
    DisagreementKind.SUCCEEDED_NOT_EXECUTED: "the ledger was changed or restored:"
    f" {STARTER} audit verify --tenant {{tenant}}",
    DisagreementKind.RUN_MISSING: _RESUME,
    DisagreementKind.RUN_CLOSED: _RESUME,
    DisagreementKind.RUN_GOES_ON: f"a worker ends it ({STARTER} doctor); where it stays: {TEMPORAL} workflow terminate"
    " --workflow-id {run}",
    DisagreementKind.RUN_UNKNOWN: "no worker does anything for it; was it started by hand, or the ledger restored? see:"
    f" {TEMPORAL} workflow describe --workflow-id {{run}}",
    DisagreementKind.STATES_DIFFER: f"the ledger's word counts; is a worker there? {STARTER} doctor",
    DisagreementKind.FOLLOWER_NOT_STARTED: _RESUME,
}


class Compared(NamedTuple):
    """What came of it."""

    survey: Survey
    found: Sequence[Disagreement]
    not_compared: Sequence[Gap]

    @property
    def code(self) -> int:
        """The command's exit code."""
        if self.found:
            return DOES_NOT_FIT
        return NOT_ALL_COMPARED if self.not_compared else 0


def reconcile(
    tenant: options.Tenant,
    operation: Annotated[
        str | None,
        typer.Argument(callback=options.checked, metavar="OPERATION", help="Only this one.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare ledger, Temporal and the outside system, and print every disagreement; changes nothing.

    Whatever differs is looked at twice, two seconds apart, so that what is only under way is not named. The exit code
    tells: 0 all was compared and agrees; 3 disagreements; 4 none, but something could not be compared.
    """
    with opened() as session:
        require_tenant(session, tenant)
        compared = compare(session, tenant, operation)
    if as_json:
        say_json(_json(compared, tenant))
    else:
        for line in lines_of(compared, tenant):
            say(line)
    raise typer.Exit(compared.code)


def compare(session: Session, tenant: str, operation: str | None = None) -> Compared:
    """Look at everything of a tenant, or of one operation, and again where something differs; NotFound without it."""
    first = _surveyed(session, tenant, operation)
    found = disagreements(first, now())
    if not found:
        return Compared(first, (), gaps(first, now()))
    time.sleep(AGAIN_SECONDS)
    second = _surveyed(session, tenant, operation)
    return Compared(second, lasting(found, disagreements(second, now())), gaps(second, now()))


def _surveyed(session: Session, tenant: str, only: str | None) -> Survey:
    from countersign.bootstrap import outside

    everything = session.ledger.operations.list(tenant)
    chosen = everything if only is None else [session.ledger.operations.get(tenant, only)]
    look = outside(session.settings, session.ledger, tenant, now)
    effects = [effect for one in chosen for effect in _effects(session, look, one)]
    # What lies under no key of ours belongs to no operation, so a question about one is not answered with it.
    strays, unlisted = look.strays() if only is None else ((), ())
    money = money_of(session.ledger, look, everything, {one.operation for one in chosen})
    runs = _runs(tenant, chosen, only)
    unseen = [runs] if isinstance(runs, Gap) else []
    return Survey(
        operations=tuple(chosen), others=tuple(everything), effects=tuple(effects), strays=tuple(strays),
        balances=tuple(money.balances), runs=None if isinstance(runs, Gap) else runs,
        gaps=(*unlisted, *money.gaps, *unseen),
    )  # fmt: skip


def _effects(session: Session, look: Outside, operation: Operation) -> Iterator[Effect]:
    """Every action that was ever proposed for it, each once: something may lie there under a key never sent, too."""
    tenant, name = operation.tenant, operation.operation
    executions = {one.key: one for one in session.ledger.executions.of_operation(tenant, name)}
    proposed = [one.proposal.action for one in session.ledger.approvals.of_operation(tenant, name)]
    for key, action in {one.idempotency_key(): one for one in proposed}.items():
        yield look.look(action, executions.get(key))


def _runs(tenant: str, chosen: Sequence[Operation], only: str | None) -> tuple[SeenRun, ...] | Gap:
    try:
        return finished(seen_runs(tenant, chosen, only))
    except Unavailable as unavailable:
        return Gap(part=SERVER, why=unavailable.message)


def lines_of(compared: Compared, tenant: str) -> Iterator[str]:
    """Each disagreement, what could not be compared, and the counts, as lines for people."""
    for one in compared.found:
        key = f" (key {one.key})" if one.key else ""
        about = one.operation or tenant
        yield visible_line(f"{one.kind}  {about}: {one.says}{key}; next: {_next(one, tenant)}")
    for gap in compared.not_compared:
        effects = f" ({gap.count} effects)" if gap.count > 1 else ""
        yield visible_line(f"not compared  {gap.part}{effects}: {gap.why}")
    survey = compared.survey
    counts = f"{len(survey.operations)} operations and {len(survey.effects)} actions compared"
    yield f"{counts}, disagreements: {len(compared.found)}, not compared: {len(compared.not_compared)}"


def _next(one: Disagreement, tenant: str) -> str:
    run = workflow_id(tenant, one.operation) if one.operation else ""
    return _NEXT[one.kind].format(at=f"{one.operation} --tenant {tenant}", tenant=tenant, run=run)


def _json(compared: Compared, tenant: str) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "operations": len(compared.survey.operations),
        "actions": len(compared.survey.effects),
        "disagreements": [{**one.model_dump(mode="json"), "next": _next(one, tenant)} for one in compared.found],
        "not_compared": [one.model_dump(mode="json") for one in compared.not_compared],
    }
