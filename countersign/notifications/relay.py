"""The relay: takes notices out of the ledger, chooses their addresses, delivers them, and tries again what failed.

Any number of relays may run at once: the ledger gives each delivery to one of them for a while, and to another if that
one died. A delivery is therefore made at least once, each time under the same id. What it records is the ledger's own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from time import monotonic
from traceback import extract_tb

from countersign.domain.address import Mailbox, Webhook, audience_of, chosen
from countersign.notifications.message import Message, message_id
from countersign.notifications.sending import TIME_LIMIT, Hopeless, NotDelivered, Sender, TryAgain
from countersign.ports import Ledger
from countersign.ports.control import Delivery

log = logging.getLogger(__name__)

POLL = timedelta(seconds=2)
"""How long a notice waits at the most before a relay sees it, while nothing is in its way."""
CLAIM = timedelta(seconds=60)
"""How long one relay has a delivery: an attempt's limit, and room for a slow ledger to record it."""
AT_ONCE = 32
"""Attempts at one time in one relay."""
OF_ONE_TENANT = 8
"""Of those, so that one tenant's dead address holds up no other's."""
ATTEMPTS = 10
FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(hours=6)
"""Waits grow threefold up to this: ten attempts then reach over 21 hours, a night and a working day, which is as long
as an outage of chat or mail lasts that anybody mends."""
STALE = timedelta(days=1)
"""A notice that nobody was told of for as long misleads more than it tells; it stays in the ledger, and the queues show
what still waits. So an installation that is given its first address sends no months of old notices."""
PARTING = 0.8
"""Seconds that attempts under way have to end at a stop; the others are made again elsewhere."""


class Relay:
    """One relay, for every tenant of the ledger."""

    def __init__(
        self,
        ledger: Ledger,
        addresses: Mapping[str, Webhook | Mailbox],
        senders: Mapping[str, Sender],
        clock: Callable[[], datetime],
    ) -> None:
        """`senders`: one for each address, by its name."""
        self._ledger = ledger
        self._addresses = addresses
        self._senders = senders
        self._clock = clock
        self._stop = threading.Event()
        self._turn = 0
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def start(self) -> None:
        """Begin, in a thread of its own; without an address there is nothing to do."""
        if self._addresses:
            self._thread.start()

    def stop(self) -> None:
        """End within a second."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                busy = self.deliver_due()
            except Exception as fault:
                _report("a pass of the relay", fault)
                busy = False
            if not busy:
                self._stop.wait(POLL.total_seconds())

    def deliver_due(self) -> bool:
        """Choose the addresses of what is new and try everything that is due, once; whether there was any."""
        taken: list[Delivery] = []
        for tenant in self._tenants_in_turn():
            if self._stop.is_set() or len(taken) >= AT_ONCE:
                break
            try:
                self._choose(tenant)
                taken += self._take(tenant, min(OF_ONE_TENANT, AT_ONCE - len(taken)))
            except Exception as fault:
                _report(f"the outbox of tenant {tenant}", fault)
        self._attempt_all(taken)
        return bool(taken)

    def _tenants_in_turn(self) -> Iterable[str]:
        """Each pass begins with another one, so that many busy tenants do not keep the last from its turn."""
        tenants = list(self._ledger.directory.tenants())
        self._turn = (self._turn + 1) % max(len(tenants), 1)
        return tenants[self._turn :] + tenants[: self._turn]

    def _choose(self, tenant: str) -> None:
        outbox, now = self._ledger.outbox, self._clock()
        for number, notice in outbox.unaddressed(tenant, AT_ONCE):
            stale = now - notice.at > STALE
            if stale:
                log.warning("notice %s of tenant %s lay for over a day; nobody is told now", number, tenant)
            targets = () if stale else chosen(notice, self._addresses, audience_of(notice, *self._known(tenant)))
            outbox.address(tenant, number, targets, now)

    def _known(self, tenant: str) -> tuple[Iterable[Webhook | Mailbox], Callable[[str], Iterable[str]]]:
        def roles_of(person: str) -> Iterable[str]:
            found = self._ledger.directory.person(tenant, person)
            return found.roles if found is not None and found.active else ()

        return self._addresses.values(), roles_of

    def _take(self, tenant: str, limit: int) -> Iterable[Delivery]:
        now = self._clock()
        return self._ledger.outbox.take(tenant, now, now + CLAIM, limit)

    def _attempt_all(self, taken: Iterable[Delivery]) -> None:
        """In threads that a stop can leave behind."""
        threads = [threading.Thread(target=self._attempt, args=(delivery,), daemon=True) for delivery in taken]
        for thread in threads:
            thread.start()
        end = monotonic() + TIME_LIMIT.total_seconds() + 5
        while monotonic() < end and (alive := [thread for thread in threads if thread.is_alive()]):
            if self._stop.is_set():
                end = min(end, monotonic() + PARTING)
            alive[0].join(0.05)

    def _attempt(self, delivery: Delivery) -> None:
        try:
            failure = self._send(delivery)
            if failure is None:
                self._ledger.outbox.delivered(delivery, self._clock())
            else:
                self._give_back(delivery, failure)
        except Exception as fault:
            _report(f"recording delivery {delivery.tenant}:{delivery.number}:{delivery.target}", fault)

    def _send(self, delivery: Delivery) -> NotDelivered | None:
        address, notice = self._addresses.get(delivery.target), delivery.notice
        if address is None or not address.takes(notice):
            # Another relay may still have, or already have, other addresses.
            return TryAgain("no such address is configured for it any more")
        if delivery.attempts > ATTEMPTS:
            # However often it was sent: nobody could ever write down what became of it.
            return Hopeless("no attempt could be recorded")
        name = message_id(delivery.tenant, delivery.number, delivery.target)
        try:
            audience = audience_of(notice, *self._known(delivery.tenant))
            self._senders[delivery.target].send(Message(name, notice, audience))
        except NotDelivered as failure:
            return failure
        except Exception as fault:
            _report(f"delivery {name}", fault)
            return TryAgain(f"failed by {type(fault).__name__}")
        return None

    def _give_back(self, delivery: Delivery, failure: NotDelivered) -> None:
        now = self._clock()
        wait = None if isinstance(failure, Hopeless) else wait_after(delivery.attempts, failure)
        self._ledger.outbox.failed(delivery, failure.error, now + wait if wait is not None else None, now)


def wait_after(attempts: int, failure: NotDelivered) -> timedelta | None:
    """How long to wait after so many attempts; nothing: it is given up. At least what the other side asks for, within
    the longest wait."""
    if attempts >= ATTEMPTS:
        return None
    own = min(FIRST_WAIT * 3.0 ** (attempts - 1), LONGEST_WAIT)
    asked = failure.after if isinstance(failure, TryAgain) and failure.after is not None else timedelta()
    return max(own, min(asked, LONGEST_WAIT))


def _report(what: str, fault: BaseException) -> None:
    """By type and place; its text may hold an address or a secret."""
    place = extract_tb(fault.__traceback__)[-1]
    log.error("%s failed by %s at %s:%s; it is tried again", what, type(fault).__name__, place.filename, place.lineno)
