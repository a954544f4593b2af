"""The report case: how a draft is checked and graded, what it becomes outside, and what a reviewer is shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from pydantic import JsonValue, ValidationError

from countersign.cases.assessing import policy_in_force
from countersign.cases.case import Query, ShownDraft, Submission, read_draft
from countersign.cases.report.allowing import allowed_queries
from countersign.cases.report.checks import check_draft, check_texts
from countersign.cases.report.claims import Reading
from countersign.cases.report.rendering import render_report, rendered_title
from countersign.cases.report.suspicion import STOPS
from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.channel import ChannelConfig, channel_taking
from countersign.domain.document_names import checked_document_name
from countersign.domain.draft import Violation
from countersign.domain.errors import InputRefused, QueryRefused
from countersign.domain.operation import Operation
from countersign.domain.publication import SCOPE, TOOL, TOOL_VERSION, PublishReport
from countersign.domain.question import Asked
from countersign.domain.report import CLAIM_REFERENCE, QUERY_TOOL, DatasetQuery, Draft, ReportRequest
from countersign.domain.rubric import Grade
from countersign.domain.values import first_problem
from countersign.ports import Evidence, Ledger, ReportMaterial

REPORT = "report"
RUBRIC = "report-rubric"


class Drafted(NamedTuple):
    """What was asked for, what the agent wrote, and how that was graded."""

    request: ReportRequest
    draft: Draft
    grade: Grade | None


class ReportCase:
    """Publishing a report that an agent drafted; fulfils `cases.case.DraftedCase`."""

    name = REPORT
    drafted = True
    gathers = False
    form = Draft
    prose = ("body",)
    rubric: ClassVar[str] = RUBRIC
    stops: ClassVar[Mapping[str, str]] = STOPS

    def __init__(
        self, ledger: Ledger, evidence: Evidence, channels: Mapping[str, ChannelConfig], environment: str
    ) -> None:
        self._ledger = ledger
        self._evidence = evidence
        self._channels = channels
        self._environment = environment

    def open(self, operation: Operation, believed: Sequence[Asked]) -> ReportMaterial:
        """The request with its dataset, read as the request declares it; the policy names further sensitive columns."""
        request = self._request(operation)
        sensitive = policy_in_force(self._ledger, operation.tenant, self.name).sensitive_columns
        dataset = self._evidence.open(operation.tenant, request.dataset, sensitive)
        return ReportMaterial(request, dataset, allowed_queries(believed))

    def check(self, draft: Draft, material: ReportMaterial, *, by_agent: bool) -> tuple[Violation, ...]:
        """Every figure recomputed on the data, and every word looked at.

        Orders in the data are looked for where an agent read it: a person's draft would otherwise be refused whatever
        the person writes.
        """
        dataset = material.dataset
        reading = Reading(dataset.single_value, dataset.sensitive, material.allowed)
        return check_draft(draft, material.request, reading, dataset.texts if by_agent else None)

    def edit_problem(self, operation: Operation, tool: str, args: Mapping[str, JsonValue]) -> str:
        """A changed query is one that the dataset would answer."""
        if tool != QUERY_TOOL:
            return f"a call of {tool[:60]} takes no other arguments; answer it as it is"
        try:
            query = DatasetQuery.model_validate(dict(args))
        except ValidationError as error:
            return f"arguments: {first_problem(error)}; the arguments are: {', '.join(DatasetQuery.model_fields)}"
        material = self.open(operation, ())
        try:
            material.dataset.sensitive(query.sql)
        except QueryRefused as refused:
            return f"argument 'sql': {refused.message}"
        finally:
            material.close()
        return ""

    def graded_text(self, operation: Operation, draft: Draft) -> str:
        """The very text that would go out."""
        return render_report(draft, self._request(operation))

    def task(self, operation: Operation) -> dict[str, JsonValue]:
        """The question, and how it was to be answered."""
        return task_of(self._request(operation))

    def shown(self, draft: Draft) -> ShownDraft:
        """The title, and the queries behind the figures."""
        return ShownDraft(draft.title, tuple(Query(claim.id, claim.query, claim.value) for claim in draft.claims))

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
        drafts, name = self._ledger.drafts, (operation.tenant, operation.operation, version)
        return Drafted(self._request(operation), read_draft(Draft, drafts.get(*name)), drafts.grade(*name))

    def _request(self, operation: Operation) -> ReportRequest:
        return ReportRequest.model_validate_json(self._ledger.documents.get(operation.tenant, operation.request_hash))

    def _submitted(
        self, operation: Operation, drafted: Drafted, args: PublishReport, policy_version: str
    ) -> Submission:
        request, draft, grade = drafted
        channel = channel_taking("documents", args.channel, operation.tenant, self._channels)
        text = render_report(draft, request).encode()
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


def task_of(request: ReportRequest) -> dict[str, JsonValue]:
    """What the grader of a report is told of its request."""
    asked = request.model_dump(mode="json", include={"question", "title", "period", "language"})
    task = "Write a report. It follows whole, in parts."
    return {"task": task, "request": asked, "dataset": request.dataset.name}


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
