"""One try to execute through a gateway with both kinds of channel, judged at the outside and in the record."""

from __future__ import annotations

from typing import Any

from countersign.domain.audit import AuditRecord
from countersign.domain.execution import EffectResult
from countersign.domain.proposal import Approval, ApprovalStatus
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

    def is_forged(self, approval: Approval, reason: str, **wiring: Any) -> None:
        """The execution is refused for good, and an alarm is raised with the refusal's own words."""
        result = self._refused(approval, reason, **wiring)
        assert not result.voided
        assert [record.detail["reason"] for record in self.records("alarm.raised")] == [result.reason]

    def is_ended(self, approval: Approval, reason: str, **wiring: Any) -> None:
        """The execution is refused for good, as an honest run can meet it: nobody is alarmed."""
        result = self._refused(approval, reason, **wiring)
        assert not result.voided
        assert self.records("alarm.raised") == []

    def is_voided(self, approval: Approval, reason: str, **wiring: Any) -> AuditRecord:
        """The grant is void, people can be asked anew, and the record says what was expected and what found."""
        result = self._refused(approval, reason, **wiring)
        assert result.voided
        assert self.records("alarm.raised") == []
        assert self.world.approval(approval).status == ApprovalStatus.VOIDED
        (record,) = self.records("approval.voided")
        assert record.detail["reason"] == reason
        assert record.detail["expected"] != record.detail["found"]
        return record

    def records(self, kind: str) -> list[AuditRecord]:
        """The audit records of a type."""
        return [record for record in self.world.ledger.audit.records(TENANT) if record.type == kind]

    def nothing_happened(self) -> None:
        assert self.publisher.calls("POST") + self.publisher.calls("GET") == []
        assert list((self.world.folder / "published").iterdir()) == []

    def _refused(self, approval: Approval, reason: str, **wiring: Any) -> EffectResult:
        """Refused with this code, in one line, on record; nothing happened outside."""
        result = self.execute(approval, **wiring)
        assert (result.status, result.reason.partition(":")[0]) == (None, reason), result.reason
        assert len(result.reason.splitlines()) == 1
        self.nothing_happened()
        assert [record.detail["reason"] for record in self.records("effect.refused")] == [result.reason]
        return result
