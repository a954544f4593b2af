"""A relay as tests need it: on a ledger, with a webhook on loopback and a clock that the test sets.

    python -m tests.notifications.relaying URL CHECKPOINTS WEBHOOK

runs one in a process of its own, which says `relaying` and goes on until it is killed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from countersign.domain.notice import Notice
from countersign.ledger import SqlLedger
from countersign.notifications.relay import Relay
from countersign.notifications.sending import Sender
from countersign.notifications.webhook import WebhookSender
from countersign.ports import Ledger
from tests.ledger.builders import opened
from tests.notifications.notices import NOW, SECRET, webhook


@dataclass
class Clock:
    """Shows what the test sets."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now

    def skip(self, time: timedelta) -> None:
        self.now += time


def tell(ledger: SqlLedger, *notices: Notice) -> None:
    """Write notices as a transaction of the ledger does."""
    for notice in notices:
        with ledger._store.writing(notice.tenant) as writing:
            writing.notify(notice)


def relay_on(ledger: Ledger, clock: Clock, **senders: Sender | str) -> Relay:
    """A relay whose addresses are webhooks for managers and operators of acme: by a URL, or by a sender of the test."""
    made: Mapping[str, Sender] = {
        name: WebhookSender(name, sender, SecretStr(SECRET), clock) if isinstance(sender, str) else sender
        for name, sender in senders.items()
    }
    return Relay(ledger, {name: webhook() for name in made}, made, clock)


def main() -> None:
    url, checkpoints, hook = sys.argv[1:]
    relay_on(opened(url, Path(checkpoints)), Clock(), chat=hook).start()
    print("relaying", flush=True)
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
