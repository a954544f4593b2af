"""The tool that publishes a document by a configured channel; it rests on stored data."""

from __future__ import annotations

from countersign.domain import publication
from countersign.domain.action import Action
from countersign.domain.proposal import Proposal
from countersign.domain.publication import PublishReport
from countersign.domain.report import ReportRequest
from countersign.gateway.channels import Channel
from countersign.gateway.refusals import drifted
from countersign.gateway.tool import Call, Reach, Words, asked, check_asked, read


class Publish:
    """Fulfils `tool.Tool`."""

    version = publication.TOOL_VERSION

    def channel(self, action: Action, reach: Reach) -> Channel:
        """See `Tool.channel`."""
        return reach.channel(action.tenant, read(PublishReport, action).channel, "documents")

    def call(self, action: Action, reach: Reach) -> Call:
        """See `Tool.call`."""
        args = read(PublishReport, action)
        words = Words(channel=args.channel, target=args.target, scope=publication.SCOPE, amount=None)
        return Call(self.channel(action, reach), args.name, action.idempotency_key(), words)

    def check_evidence(self, proposal: Proposal, reach: Reach) -> None:
        """See `Tool.check_evidence`; another channel than the one that was asked for is a person's edit alone."""
        action = proposal.action
        args, request = read(PublishReport, action), asked(ReportRequest, action, reach)
        check_asked("evidence", action.evidence_hash, request.dataset.sha256)
        if not proposal.authors:
            check_asked("channel", args.channel, request.channel)
        with drifted("evidence", "the evidence is no longer what was approved", expected=action.evidence_hash):
            reach.verify_evidence(action.tenant, action.evidence_hash)
