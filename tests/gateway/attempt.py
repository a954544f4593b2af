"""One try to execute through a gateway with both kinds of channel, judged at the outside and in the record."""

from __future__ import annotations

from typing import Any

from countersign.domain.execution import EffectResult
from countersign.domain.proposal import Approval
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.http_channel import HttpChannel
from tests.gateway.world import TENANT, World
from tests.support.publisher import Publisher


class Attempt:
    """Executes and says what came of it, at the outside and in the record."""

    def __init__(self, world: World, press: HttpChannel, publisher: Publisher) -> None:
        self.world, self.press, self.publisher = world, press, publisher
        self.internal = FileChannel("internal", world.folder / "published", "internal_publication")

    def execute(self, approval: Approval, **wiring: Any) -> EffectResult:
        gateway = self.world.gateway(self.press, self.internal, **wiring)
        return gateway.execute(TENANT, approval.proposal.approval_id)

    def is_refused(self, approval: Approval, reason: str, **wiring: Any) -> None:
        """The execution is refused for good, with this code, in one line, on record; nothing happened outside."""
        result = self.execute(approval, **wiring)
        assert (result.status, result.reason.partition(":")[0]) == (None, reason)
        assert len(result.reason.splitlines()) == 1
        self.nothing_happened()
        records = [record for record in self.world.ledger.audit.records(TENANT) if record.type == "effect.refused"]
        assert [record.detail["reason"] for record in records] == [result.reason]

    def nothing_happened(self) -> None:
        assert self.publisher.calls("POST") + self.publisher.calls("GET") == []
        assert list((self.world.folder / "published").iterdir()) == []
