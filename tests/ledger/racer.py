"""One of several programs that work on a ledger at once; tests start it, race it, and kill it.

    python -m tests.ledger.racer KIND URL CHECKPOINTS NAME      KIND is one of KINDS below, or `work`

It says `ready`, begins when its input is closed, and prints what each of its calls came to, a line each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

from countersign.domain.edit import Edit
from countersign.domain.errors import CountersignError, Frozen
from countersign.domain.policy import Answer, Assessment
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from tests.ledger.asking import ask
from tests.ledger.builders import (
    NOW,
    OPERATION,
    OTHER_HASH,
    TENANT,
    VIEW,
    action,
    claim,
    command,
    decide,
    need,
    opened,
    operation,
    person,
    proposal,
    send,
    statement,
)
from tests.ledger.founding import NEWCOMER, enrolment, order, standing

THREADS = 10
PLACES = 5
"""How much may wait for people, where there is more of it."""
EDITED = Edit(action(args={"channel": "internal"}), Assessment(answer=Answer.PEOPLE, rules=("all",), needs=(need(),)))


def votes(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread votes as another person on the one approval."""
    proposed = ledger.approvals.get(TENANT, "approval-1").proposal
    for number in range(THREADS):
        said = statement(proposed, f"person-{name}-{number}")
        yield lambda said=said: decide(ledger, said, message_id=f"m-{said.person}").ruling.value  # type: ignore[misc]


def mixed(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread takes a decision of another kind, or as another person, on the one approval."""
    proposed = ledger.approvals.get(TENANT, "approval-1").proposal
    for number in range(THREADS):
        kind, by = ("approve", "reject", "edit", "break_glass")[number % 4], f"person-{name}-{number}"
        edited = EDITED.action.hash() if kind == "edit" else ""
        more = {"decision": kind, "edited_action": edited, "comment_hash": OTHER_HASH}
        said = statement(proposed, by, id=f"statement-{name}-{number:04}", **more)
        edit = EDITED if kind == "edit" else None
        yield lambda said=said, edit=edit: decide(ledger, said, message_id=said.id, edit=edit).ruling.value  # type: ignore[misc]


def claims(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread claims the one execution."""
    approval = ledger.approvals.get(TENANT, "approval-1")
    for _ in range(THREADS):
        yield lambda: claim(ledger, approval).status.value


def takers(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread takes the run over as another person."""
    for number in range(THREADS):
        yield partial(take_over, ledger, f"person-{name}-{number}")


def takers_and_claims(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Half of the threads claim the effect while the others take the run over."""
    approval = ledger.approvals.get(TENANT, "approval-1")
    for number in range(THREADS):
        taking = partial(take_over, ledger, f"person-{name}-{number}")
        yield taking if number % 2 else lambda: claim(ledger, approval).status.value


def freezes_and_claims(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """One thread freezes while the others each claim an effect of their own, and may do so again right afterwards."""
    yield partial(freeze, ledger, name)
    for number in range(THREADS - 1):
        yield partial(claim_often, ledger, f"approval-{name}-{number}")


def marks(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread marks the one tick."""
    for _ in range(THREADS):
        yield lambda: ledger.approvals.mark(TENANT, "approval-1", 0, NOW + timedelta(minutes=30)).value


def take_ons(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread takes the line on as another run."""
    for number in range(THREADS):
        yield partial(take_on, ledger, f"run-{name}-{number}")


def compensations(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread registers a compensation of its own of the one operation."""
    for number in range(THREADS):
        yield partial(compensate, ledger, f"undo-{name}-{number}")


def floods(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread brings something before people for an operation of its own, half of them a question, half an action;
    there is room for five."""
    for number in range(THREADS):
        id = f"flood-{name}-{number}"
        yield partial(bring_up_question if number % 2 else bring_up_action, ledger, id)


def bring_up_question(ledger: SqlLedger, id: str) -> str:
    return ask(ledger, operation=id, room=PLACES).status.value


def bring_up_action(ledger: SqlLedger, id: str) -> str:
    return ledger.approvals.open(proposal(id, operation=id), "run-1", VIEW, NOW, PLACES).status.value


def compensate(ledger: SqlLedger, id: str) -> str:
    undo = operation(id, request=id.encode(), case="compensation", follows=OPERATION)
    return f"registered:{ledger.operations.register(undo).operation}"


def take_over(ledger: SqlLedger, by: str) -> str:
    commanded = send(ledger, command("take_over", by))
    return f"{commanded.outcome.ruling.value}:{by}:{commanded.standing.control.person}"


def freeze(ledger: SqlLedger, name: str) -> str:
    ledger.freezes.freeze(TENANT, order(id=f"an-order-of-{name:->16}"), NOW)
    return f"frozen_after:{len([one for one in ledger.audit.records(TENANT) if one.type == 'effect.intended'])}"


def claim_often(ledger: SqlLedger, approval_id: str) -> str:
    """Claim, say that nothing was sent, and so on until it is held."""
    approval = ledger.approvals.get(TENANT, approval_id)
    for times in count():
        try:
            execution = claim(ledger, approval)
        except Frozen:
            return f"held_after:{times}"
        ledger.executions.not_sent(execution, "connection refused", NOW)
    raise AssertionError


def take_on(ledger: SqlLedger, run_id: str) -> str:
    ledger.operations.take_on(TENANT, OPERATION, "run-1", run_id, NOW)
    return f"taken_on:{run_id}"


def set_ups(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread ends the first set-up with policies of its own, enrols somebody, or registers an operation."""
    for number in range(THREADS):
        id = f"{name}{number}"
        yield (partial(close, ledger, id), partial(enrol, ledger, id), partial(register, ledger, id))[number % 3]


def lock_outs(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread ends the first set-up, or takes an administrator's role away, without whom it must not end."""
    for number in range(THREADS):
        yield partial(close, ledger, f"{name}{number}") if number % 2 else partial(demote, ledger)


def close(ledger: SqlLedger, id: str) -> str:
    closed = ledger.directory.close_set_up(NEWCOMER, id, NOW)
    return f"closed:{id}" if closed else "closed_before"


def enrol(ledger: SqlLedger, id: str) -> str:
    ledger.directory.set_up(NEWCOMER, enrolment(person(f"person-{id}", tenant=NEWCOMER)), id, NOW)
    return f"enrolled:{id}"


def register(ledger: SqlLedger, id: str) -> str:
    return f"registered:{ledger.operations.register(operation(id, tenant=NEWCOMER)).operation}"


def demote(ledger: SqlLedger) -> str:
    ledger.directory.set_up(NEWCOMER, standing(person("ada", tenant=NEWCOMER)), "eve", NOW)
    return "demoted"


def answer(call: Callable[[], str]) -> str:
    """What a call came to, a refusal by its code."""
    try:
        return call()
    except CountersignError as refused:
        return refused.code


def work(ledger: SqlLedger, name: str) -> None:
    """Register and move operations for ever, and say each step that is done."""
    for number in count():
        id = f"{name}-{number}"
        ledger.operations.register(operation(id))
        ledger.operations.move(TENANT, id, State.RUNNING, "", NOW + timedelta(seconds=number))
        ledger.operations.move(TENANT, OPERATION, State.WAITING_RETRY, id, NOW)
        print("done", id, flush=True)


KINDS: dict[str, Callable[[SqlLedger, str], Iterator[Callable[[], str]]]] = {
    "decide": votes, "mixed": mixed, "claim": claims, "set_up": set_ups, "lock_out": lock_outs, "take_over": takers,
    "take_over_and_claim": takers_and_claims, "freeze_and_claim": freezes_and_claims, "mark": marks,
    "take_on": take_ons, "compensate": compensations, "flood": floods,
}  # fmt: skip


def main() -> None:
    what, url, checkpoints, name = sys.argv[1:]
    ledger = opened(url, Path(checkpoints))
    print("ready", flush=True)
    sys.stdin.read()
    if what == "work":
        work(ledger, name)
    calls = KINDS[what](ledger, name)
    with ThreadPoolExecutor(THREADS) as threads:
        for line in threads.map(answer, list(calls)):
            print(line, flush=True)
    ledger.close()


if __name__ == "__main__":
    main()
