"""One of several programs that work on a ledger at once; tests start it, race it, and kill it.

    python -m tests.ledger.racer decide|claim|work URL CHECKPOINTS NAME

It says `ready`, begins when its input is closed, and prints what each of its calls came to, a line each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from pathlib import Path

from countersign.domain.errors import CountersignError
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from tests.ledger.builders import NOW, OPERATION, TENANT, claim, decide, opened, operation, statement

THREADS = 10


def votes(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread votes as another person on the one approval."""
    proposed = ledger.approvals.get(TENANT, "approval-1").proposal
    for number in range(THREADS):
        said = statement(proposed, f"person-{name}-{number}")
        yield lambda said=said: decide(ledger, said, message_id=f"m-{said.person}").ruling.value  # type: ignore[misc]


def claims(ledger: SqlLedger, name: str) -> Iterator[Callable[[], str]]:
    """Each thread claims the one execution."""
    approval = ledger.approvals.get(TENANT, "approval-1")
    for _ in range(THREADS):
        yield lambda: claim(ledger, approval).status.value


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


def main() -> None:
    what, url, checkpoints, name = sys.argv[1:]
    ledger = opened(url, Path(checkpoints))
    print("ready", flush=True)
    sys.stdin.read()
    if what == "work":
        work(ledger, name)
    calls = (votes if what == "decide" else claims)(ledger, name)
    with ThreadPoolExecutor(THREADS) as threads:
        for line in threads.map(answer, list(calls)):
            print(line, flush=True)
    ledger.close()


if __name__ == "__main__":
    main()
