"""Who is in control of each run, and what people command: ruled on under the operation's lock, done at once (G28)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from countersign.domain.command import Command
from countersign.domain.control import Control
from countersign.domain.decision import Outcome
from countersign.domain.directory import Person
from countersign.ledger.commands import command, lapse, would
from countersign.ledger.control_rows import control_history, control_of
from countersign.ledger.drafts import latest_version
from countersign.ledger.store import Store, ending_of
from countersign.ports import Amendment, ReceivedCommand, Standing


class SqlControls:
    """ports.Controls on the ledger's database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def standing(self, tenant: str, operation: str) -> Standing:
        """How the operation stands; as in ports.Controls."""
        with self._store.reading(tenant) as connection:
            return Standing(
                control=control_of(connection, tenant, operation),
                ending=ending_of(connection, tenant, operation),
                draft_version=latest_version(connection, tenant, operation),
            )

    def history(self, tenant: str, operation: str) -> Sequence[Control]:
        """Everyone who was in control, oldest first."""
        with self._store.reading(tenant) as connection:
            return control_history(connection, tenant, operation)

    def command(self, received: ReceivedCommand, signer: Person, amendment: Amendment) -> Outcome:
        """Rule on a verified command and do what it says; as in ports.Controls."""
        with self._store.writing(received.command.tenant) as writing:
            return command(writing, received, signer, amendment)

    def would(self, command: Command, signer: Person, now: datetime) -> Outcome:
        """What `command` would say now; as in ports.Controls."""
        with self._store.reading(command.tenant) as connection:
            return would(connection, command, signer, now)

    def lapse(self, tenant: str, operation: str, version: int, now: datetime) -> Control:
        """Control to nobody where a lease is over; as in ports.Controls."""
        with self._store.writing(tenant) as writing:
            return lapse(writing, operation, version, now)
