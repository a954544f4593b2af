"""Where refunds are asked for, drafted and proposed on a real ledger: as the run's steps do it, without a run.

Apart from the fixtures, which only say on which ledger it stands.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from countersign.cases.assessing import assessed
from countersign.cases.case import Submission
from countersign.cases.refund.case import RefundCase
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.channel import Channels
from countersign.domain.operation import Operation
from countersign.domain.policy import Assessment, Policy
from countersign.domain.proposal import Approval, Proposal
from countersign.domain.refund import REFUND, OrderFacts, RefundDraft, RefundRequest
from countersign.domain.values import Sha256
from countersign.strict_yaml import load
from tests.ledger.builders import NOW, TENANT, VIEW, opened
from tests.ledger.builders import proposal as a_proposal
from tests.ledger.founding import found
from tests.refund import sample

POLICIES = Path(__file__).resolve().parents[2] / "policies"
POLICY = load(POLICIES / "refund.yaml", Policy)
CHANNEL = {
    "kind": "payments", "tenants": [TENANT], "side_effect": "refund", "reversibility": "correctable",
    "url": "https://pay.example/refunds", "orders_url": "https://pay.example/orders", "token_env": "PAY_TOKEN",
}  # fmt: skip
CHANNELS = Channels.model_validate({"channels": {"payments": CHANNEL}}).channels


class Desk:
    """A tenant's ledger with the refund case on it."""

    def __init__(self, url: str, checkpoints: Path) -> None:
        self.ledger = opened(url, checkpoints)
        found(self.ledger)
        self.case = RefundCase(self.ledger, CHANNELS, "test")
        self._clock = NOW

    def asked(self, name: str = "refund-1", request: RefundRequest | None = None) -> Operation:
        """Register a request."""
        document = canonical_bytes((request or sample.request()).model_dump(mode="json"))
        operation = Operation(
            tenant=TENANT, operation=name, case=REFUND, request_hash=self.ledger.documents.put(TENANT, document),
            requester="rita", statement="a.b.c", registered_at=NOW,
        )  # fmt: skip
        return self.ledger.operations.register(operation)

    def gathered(self, operation: Operation, facts: OrderFacts | None = None) -> Sha256:
        """Keep facts as the gateway does."""
        stored = self.ledger.documents.put(TENANT, canonical_bytes((facts or sample.facts()).model_dump(mode="json")))
        self.ledger.operations.gathered(TENANT, operation.operation, stored, NOW)
        return stored

    def drafted(
        self, name: str = "refund-1", request: RefundRequest | None = None, facts: OrderFacts | None = None,
        draft: RefundDraft | None = None,
    ) -> Operation:  # fmt: skip
        """A request with facts and a draft, which passed."""
        operation = self.asked(name, request)
        self.gathered(operation, facts)
        written = (draft or sample.draft()).model_dump(mode="json")
        self.ledger.drafts.save(TENANT, name, 1, written, "a-model", 1, NOW)
        return operation

    def submission(self, operation: Operation, **args: Any) -> Submission:
        """What the draft comes to, or with other arguments."""
        made = self.case.submission(operation, 1, POLICY.label())
        if not args:
            return made
        return self.case.submission(operation, 1, POLICY.label(), {**made.action.args, **args})

    def proposed(self, operation: Operation) -> tuple[Assessment, Approval]:
        """What the policy says of it, and the proposal as it is opened then."""
        self._clock += timedelta(minutes=1)
        made = self.submission(operation)
        assessment, spent, _ = assessed(self.ledger, POLICY, made.action, None, self._clock)
        fields: dict[str, Any] = {
            "case": REFUND, "action": made.action, "action_hash": made.action.hash(), "assessment": assessment,
            "document": sha256_hex(made.document), "spent": spent, "proposed_at": self._clock,
        }  # fmt: skip
        proposal = a_proposal(f"approval-of-{operation.operation}").model_copy(update=fields)
        return assessment, self.ledger.approvals.open(proposal, "run-1", VIEW, self._clock, room=1_000)

    def edited(self, operation: Operation, before: Proposal, **args: Any) -> Submission:
        """What a reviewer's edit makes of a proposal."""
        return self.case.submission(operation, before.draft_version, POLICY.label(), {**before.action.args, **args})

    def close(self) -> None:
        """Close the ledger."""
        self.ledger.close()
