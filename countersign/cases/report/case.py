"""The report case: what a finished draft becomes outside, and what a reviewer is shown of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from countersign.cases.case import Submission
from countersign.cases.report.checks import check_draft, check_texts
from countersign.cases.report.rendering import render_report, rendered_title
from countersign.cases.report.suspicion import Texts
from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.channel import ChannelConfig, not_configured
from countersign.domain.document_names import checked_document_name
from countersign.domain.draft import CLAIM_REFERENCE, Draft, ReportRequest, Violation
from countersign.domain.errors import ConfigurationRefused, InputRefused
from countersign.domain.operation import Operation
from countersign.domain.proposal import Proposal
from countersign.domain.publication import SCOPE, TOOL, TOOL_VERSION, PublishReport
from countersign.domain.rubric import Grade
from countersign.ports import Cell, Ledger

REPORT = "report"
RUBRIC = "report-rubric"


class Drafted(NamedTuple):
    """What was asked for, what the agent wrote, and how that was graded."""

    request: ReportRequest
    draft: Draft
    grade: Grade | None


class ReportCase:
    """Publishing a report that an agent drafted; fulfils `cases.case.Case`."""

    name = REPORT
    drafted = True

    def __init__(self, ledger: Ledger, channels: Mapping[str, ChannelConfig], environment: str) -> None:
        self._ledger = ledger
        self._channels = channels
        self._environment = environment

    def submission(
        self,
        operation: Operation,
        draft_version: int,
        policy_version: str,
        args: Mapping[str, JsonValue] | None = None,
    ) -> Submission:
        """The publication of a draft, under the operation's name in the channel that was asked for."""
        if args is not None:
            return self._with_arguments(operation, draft_version, args, policy_version)
        drafted = self._drafted(operation, draft_version)
        name, title = document_name(operation.operation), rendered_title(drafted.draft)
        asked_for = PublishReport(channel=drafted.request.channel, name=name, title=title)
        return self._submitted(operation, drafted, asked_for, policy_version)

    def edited(
        self, operation: Operation, before: Proposal, args: Mapping[str, JsonValue], policy_version: str
    ) -> Submission:
        """The publication with another channel, name or title."""
        return self._with_arguments(operation, before.draft_version, args, policy_version)

    def _with_arguments(
        self, operation: Operation, draft_version: int, args: Mapping[str, JsonValue], policy_version: str
    ) -> Submission:
        """The same as people want it; a new title is checked as the agent's was."""
        wanted, drafted = _read(args), self._drafted(operation, draft_version)
        if wanted.title == rendered_title(drafted.draft):
            return self._submitted(operation, drafted, wanted, policy_version)
        retitled = drafted._replace(draft=_retitled(drafted.draft, wanted.title))
        submission = self._submitted(operation, retitled, wanted, policy_version)
        found = check_texts(retitled.draft, retitled.request)
        return submission._replace(
            checks=f"{submission.checks}; the edited title was checked for figures and markup",
            verdict=f"{submission.verdict}, before people edited the title",
            problem="; ".join(violation.sentence() for violation in found),
        )

    def _drafted(self, operation: Operation, version: int) -> Drafted:
        stored = self._ledger.documents.get(operation.tenant, operation.request_hash)
        drafts, name = self._ledger.drafts, (operation.tenant, operation.operation, version)
        return Drafted(ReportRequest.model_validate_json(stored), drafts.get(*name), drafts.grade(*name))

    def _submitted(
        self, operation: Operation, drafted: Drafted, args: PublishReport, policy_version: str
    ) -> Submission:
        request, draft, grade = drafted
        channel, text = channel_of(args.channel, operation.tenant, self._channels), document(draft, request)
        action = Action(
            tenant=operation.tenant, operation=operation.operation, tool=TOOL, tool_version=TOOL_VERSION,
            args=args.model_dump(mode="json"), channel=args.channel, target=args.target,
            side_effect=channel.side_effect, scope=SCOPE, environment=self._environment,
            content_hash=sha256_hex(text), evidence_hash=request.dataset.sha256, policy_version=policy_version,
        )  # fmt: skip
        figures = len(draft.claims)
        return Submission(
            action=action, document=text, reason=request.question, summary=args.title,
            evidence=(f"{request.dataset.name} {request.dataset.sha256}",), reversibility=channel.reversibility,
            checks=f"{figures} of {figures} figures recomputed on the data, none differs",
            verdict=grade.verdict.value if grade else "not graded", cost="none", live=self._live(action),
            claims=tuple(claim.model_dump(mode="json") for claim in draft.claims),
            grades=tuple(result.model_dump(mode="json") for result in grade.answer.criteria) if grade else (),
        )  # fmt: skip

    def _live(self, action: Action) -> bytes | None:
        """What Countersign published last at the target."""
        receipt = self._ledger.executions.at_target(action.tenant, action.target)
        return None if receipt is None else self._ledger.documents.get(action.tenant, receipt.content_hash)


def check(
    draft: Draft, request: ReportRequest, recompute: Callable[[str], Cell], texts: Texts | None = None
) -> tuple[Violation, ...]:
    """Every finding of the deterministic checks, those that must stop a run first, then in the draft's order.

    `texts` is `DatasetReader.texts` for a draft that an agent wrote, since orders in the data were orders to it;
    nothing for a person's draft, which would otherwise be refused whatever the person writes.
    """
    return check_draft(draft, request, recompute, texts)


def document(draft: Draft, request: ReportRequest) -> bytes:
    """The bytes that would go out."""
    return render_report(draft, request).encode("utf-8")


def channel_of(name: str, tenant: str, channels: Mapping[str, ChannelConfig]) -> ChannelConfig:
    """The tenant's channel of that name; ConfigurationRefused names those that it has."""
    own = {each: config for each, config in channels.items() if tenant in config.tenants}
    try:
        return own[name]
    except KeyError:
        raise ConfigurationRefused(not_configured(name, tenant, own)) from None


def document_name(operation: str) -> str:
    """The published document's name; InputRefused for an operation id that makes no legal one."""
    return checked_document_name(f"{operation}.md")


def _retitled(draft: Draft, title: str) -> Draft:
    """The draft under a title that people wrote; the text as they wrote it is what goes out."""
    try:
        retitled = Draft.model_validate({**draft.model_dump(), "title": title})
    except ValidationError as error:
        raise InputRefused(f"argument 'title': {error.errors(include_url=False)[0]['msg']}") from None
    if CLAIM_REFERENCE.search(title):
        raise InputRefused("argument 'title': {{...}} refers to a claim; write the title as it is to be read")
    return retitled


def _read(args: Mapping[str, JsonValue]) -> PublishReport:
    try:
        return PublishReport.model_validate(dict(args))
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        allowed = ", ".join(PublishReport.model_fields)
        place = ".".join(str(part) for part in detail["loc"])
        raise InputRefused(f"argument {place[:60]!r}: {detail['msg']}; the arguments are: {allowed}") from None
