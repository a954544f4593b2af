"""The payment service of the examples in a thread of the test, or as a process that can be killed; with what it did.

It stands apart because tests of "once" must count effects where they happen: outside, in a database of its own.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countersign.settings import ROOT
from examples.payments.service import ADMIN_TOKEN, FAULTS, KINDS, TOKEN, serve
from examples.payments.store import Store
from tests.support.processes import Processes, RunningProcess

PAYMENTS_TOKEN, PAYMENTS_ADMIN_TOKEN = "payments-token-3c1b8a", "payments-admin-token-77d0e2"
ORDERS = ROOT / "examples" / "payments" / "orders.json"


def _nobody_waits() -> None:
    raise AssertionError("a service in another process cannot be told to go on")


@dataclass(frozen=True)
class Payments:
    """A payment service: where it listens, and what it has done."""

    base: str
    """Such as `http://127.0.0.1:8090`."""
    store: Store
    let_go: Callable[[], None] = _nobody_waits
    """Ends what is slow at this moment, in a service that runs in a thread."""

    @property
    def url(self) -> str:
        """Where refunds are posted."""
        return f"{self.base}/refunds"

    @property
    def orders_url(self) -> str:
        """Below which orders are read."""
        return f"{self.base}/orders"

    @property
    def messages_url(self) -> str:
        """Where customers' messages are posted."""
        return f"{self.base}/messages"

    def fail_next(self, *faults: str, on: str = "refunds", seconds: float = 0) -> None:
        """Have the next calls of a kind go wrong, one fault each."""
        for fault in faults:
            assert fault in FAULTS, f"no fault is called {fault!r}"
            assert on in KINDS, f"no kind of call is called {on!r}"
            self.store.fail(on, fault, seconds=seconds)

    def refunds(self) -> list[str]:
        """The keys of all refunds that really happened."""
        return self.store.effects("refunds")

    def refunded(self, order: str, payment: str) -> int:
        """What of a payment is refunded, in minor units."""
        return int(next(one["refunded"] for one in self.told(order)["payments"] if one["id"] == payment))

    def told(self, order: str) -> dict[str, Any]:
        """An order with its payments, as the service tells it."""
        found = self.store.order(order)
        assert found is not None
        return found


@contextmanager
def running_payments(database: Path, *, seed: Path = ORDERS, port: int = 0) -> Iterator[Payments]:
    """Serve from a thread, with the orders of the seed. At the end everything that is slow is let go."""
    store = Store(database)
    store.seed(json.loads(seed.read_bytes()))
    server = serve(store, PAYMENTS_TOKEN, PAYMENTS_ADMIN_TOKEN, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Payments(f"http://127.0.0.1:{server.server_port}", store, server.ending.set)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def started_payments(
    processes: Processes, database: Path, *, seed: Path = ORDERS, port: int = 0
) -> tuple[RunningProcess, Payments]:
    """The service as a process of its own; started again with the same database and port, it is the same one."""
    program = [sys.executable, "-m", "examples.payments", "--port", str(port)]
    files = ["--database", str(database), "--seed", str(seed)]
    secrets = {TOKEN: PAYMENTS_TOKEN, ADMIN_TOKEN: PAYMENTS_ADMIN_TOKEN}
    process = processes.start([*program, *files], name="payments", env=secrets, cwd=ROOT)
    base = process.wait_for_line(r"payments at (\S+)")[1]
    return process, Payments(base, Store(database))


def at_service(policies: Path, payments: Payments) -> None:
    """Point the channels of a folder of policy files, where they name the payment service, at this one."""
    path = policies / "channels.yaml"
    text = path.read_text(encoding="utf-8")
    assert _SHIPPED in text, f"{path} names no payment service at {_SHIPPED}"
    path.write_text(text.replace(_SHIPPED, payments.base), encoding="utf-8")


_SHIPPED = "http://127.0.0.1:8090"
"""Where the shipped channels look for the service."""
