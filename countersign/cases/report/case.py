"""The report case: what a finished draft becomes outside, and what a reviewer is shown of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from countersign.cases.report.checks import check_draft
from countersign.cases.report.rendering import render_report, rendered_title
from countersign.domain.action import Action
from countersign.domain.channel import ChannelConfig
from countersign.domain.document_names import checked_document_name
from countersign.domain.draft import Draft, ReportRequest, Violation
from countersign.domain.errors import ConfigurationRefused
from countersign.domain.values import Sha256
from countersign.ports import Cell

POLICY = "report"
RUBRIC = "report-rubric"
TOOL, TOOL_VERSION = "publish_report", "1"


def check(draft: Draft, request: ReportRequest, recompute: Callable[[str], Cell]) -> tuple[Violation, ...]:
    """Every finding of the deterministic checks, in the draft's order."""
    return check_draft(draft, request, recompute)


def document(draft: Draft, request: ReportRequest) -> bytes:
    """The bytes that would go out."""
    return render_report(draft, request).encode("utf-8")


def channel_of(request: ReportRequest, channels: Mapping[str, ChannelConfig]) -> ChannelConfig:
    """The request's channel; ConfigurationRefused names the allowed ones."""
    try:
        return channels[request.channel]
    except KeyError:
        allowed = ", ".join(sorted(channels))
        raise ConfigurationRefused(f"channel {request.channel!r} is not configured; allowed: {allowed}") from None


def document_name(operation: str) -> str:
    """The published document's name; InputRefused for an operation id that makes no legal one."""
    return checked_document_name(f"{operation}.md")


def action(
    tenant: str,
    operation: str,
    request: ReportRequest,
    draft: Draft,
    channel: ChannelConfig,
    *,
    content_hash: Sha256,
    environment: str,
    policy_version: str,
) -> Action:
    """The publication of a draft as one exact action."""
    name = document_name(operation)
    return Action(
        tenant=tenant, operation=operation, tool=TOOL, tool_version=TOOL_VERSION,
        args={"channel": request.channel, "name": name, "title": rendered_title(draft)},
        target=f"{request.channel}:{name}", side_effect=channel.side_effect, scope="one_document",
        environment=environment, content_hash=content_hash, evidence_hash=request.dataset.sha256,
        policy_version=policy_version,
    )  # fmt: skip
