"""What an audit record stands for: the words, texts and facts behind its ids and hashes, each checked against them.

Apart from the story as a whole: here one record is looked at, whatever came before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import to_json

from countersign.cli.rendering import moment
from countersign.cli.session import Session
from countersign.domain.audit import AuditRecord
from countersign.domain.errors import Conflict, NotFound
from countersign.domain.execution import Execution
from countersign.domain.freeze import Freeze
from countersign.domain.operation import Operation
from countersign.domain.proposal import Approval, Proposal
from countersign.domain.rubric import Grade
from countersign.domain.values import Value
from countersign.ports import Findings


class Quoted(Value):
    """A whole text behind a record."""

    name: str
    text: str


class Told(Value):
    """What the ledger has behind one record."""

    said: tuple[str, ...] = ()
    texts: tuple[Quoted, ...] = ()
    lacks: tuple[str, ...] = ()
    """What the record names and the ledger does not have."""
    wrong: tuple[str, ...] = ()
    """What the ledger has, and not as the record names it."""

    def __add__(self, more: Told) -> Told:
        return Told(
            said=self.said + more.said, texts=self.texts + more.texts, lacks=self.lacks + more.lacks,
            wrong=self.wrong + more.wrong,
        )  # fmt: skip


class Source(NamedTuple):
    """One operation as the ledger's tables have it."""

    session: Session
    operation: Operation
    approvals: Mapping[str, Approval]
    executions: Mapping[str, Execution]
    freezes: Mapping[int, Freeze]

    @property
    def tenant(self) -> str:
        """Whose it is."""
        return self.operation.tenant

    def text(self, sha256: str, name: str) -> Told:
        """The document under a hash, whole."""
        try:
            data = self.session.ledger.documents.get(self.tenant, sha256)
        except NotFound:
            return Told(lacks=(f"{name} {sha256}",))
        except Conflict as changed:
            return Told(wrong=(f"{name}: {changed.message}",))
        return Told(texts=(Quoted(name=f"{name} {sha256}", text=_readable(data)),))

    def named(self, record: AuditRecord, field: str, name: str) -> Told:
        """The document that a record names in a field; nothing where it names none."""
        sha256 = str(record.detail.get(field) or "")
        return self.text(sha256, name) if sha256 else Told()


def told_of(source: Source, record: AuditRecord) -> Told:
    """What stands behind a record; nothing for one whose detail says all."""
    teller = _TELLERS.get(record.type) or _TELLERS.get(f"{record.type.partition('.')[0]}.*")
    return teller(source, record) if teller is not None else Told()


def pinned(source: Source, label: str, what: str) -> Told:
    """The text of a policy or rubric by its label, `name/version@sha256:...`, under which the ledger may keep it."""
    return source.text(label.rpartition("@")[2], f"{what} {label.partition('@')[0]}") if "@" in label else Told()


def _registered(source: Source, record: AuditRecord) -> Told:
    operation = source.operation
    told = Told(said=(f"asked for by {operation.requester}",))
    if record.detail["request_hash"] != operation.request_hash or record.subject != operation.requester:
        told += Told(wrong=(f"the registration now names {operation.requester} and request {operation.request_hash}",))
    return told + source.named(record, "request_hash", "request")


def _facts(source: Source, record: AuditRecord) -> Told:
    return source.named(record, "facts", "facts read outside")


def _findings(source: Source, record: AuditRecord) -> Findings | Told:
    """What was said of the version that a record is about; what to tell instead where that is not to be had."""
    version = record.detail["version"]
    assert isinstance(version, int), "the ledger numbers versions"
    try:
        return source.session.ledger.drafts.findings(source.tenant, source.operation.operation, version)
    except NotFound:
        return Told(wrong=(f"draft v{version} is not in the ledger any more",))
    except ValidationError:
        return Told(wrong=(f"what was said of v{version} cannot be read any more",))


def _written(source: Source, record: AuditRecord) -> Told:
    version, found = record.detail["version"], _findings(source, record)
    by = f"model {record.detail['model']}" if record.detail["model"] else f"{record.subject}, a person"
    said = (f"version {version} of the draft, written by {by}",)
    if isinstance(found, Told):
        return Told(said=said) + found
    if found.draft != record.detail["hash"]:
        return Told(said=said, wrong=(f"draft v{version} in the ledger is {found.draft}, not the recorded one",))
    draft = source.session.ledger.drafts.get(source.tenant, source.operation.operation, int(str(version)))
    return Told(said=said, texts=(Quoted(name=f"draft v{version}", text=_readable(to_json(draft))),))


def _checked(source: Source, record: AuditRecord) -> Told:
    found = _findings(source, record)
    if isinstance(found, Told):
        return found
    violations = found.checks.get(_hash(record))
    if violations is None:
        return _not_as_recorded(f"what the checks found in v{record.detail['version']}")
    nothing = f"v{record.detail['version']}: the deterministic checks found nothing"
    return Told(said=tuple(one.sentence() for one in violations) or (nothing,))


def _graded(source: Source, record: AuditRecord) -> Told:
    found, rubric = _findings(source, record), pinned(source, str(record.detail["rubric"]), "rubric")
    if isinstance(found, Told):
        return rubric + found
    grade = found.grades.get(_hash(record))
    if grade is None:
        return rubric + _not_as_recorded(f"the grade of v{record.detail['version']}")
    return rubric + Told(
        said=(f"{grade.verdict.value} by model {grade.answer.model}", *_criteria(grade)),
        texts=(Quoted(name=f"answer of the grader to v{record.detail['version']}", text=grade.answer.raw),),
    )


def _criteria(grade: Grade) -> list[str]:
    met = (f"{one.id}: {'met' if one.passed else 'not met'}{f': {one.gap}' if one.gap else ''}"
           for one in grade.answer.criteria)  # fmt: skip
    return [*met, *grade.feedback]


def _not_as_recorded(what: str) -> Told:
    return Told(wrong=(f"{what}: not in the ledger as it was recorded",))


def _proposed(source: Source, record: AuditRecord) -> Told:
    approval = source.approvals.get(str(record.detail["approval_id"]))
    if approval is None:
        return Told(wrong=(f"the proposal {record.detail['approval_id']} is not in the ledger any more",))
    proposal = approval.proposal
    told = Told(
        said=(
            f"{proposal.summary} -> {proposal.action.target}, proposed by {proposal.proposed_by}",
            f"why: {proposal.reason}",
            *([f"asked again: {proposal.asked_again}"] if proposal.asked_again else []),
            f"needs {', '.join(map(str, proposal.assessment.needs)) or 'nobody: granted by rule'}",
            f"rules {', '.join(proposal.assessment.rules)} of {proposal.action.policy_version}",
            f"models: {proposal.model_version}; rubric {proposal.rubric_version}",
            f"open until {moment(proposal.deadline)}, to be executed until {moment(proposal.execute_by)}",
        ),
        texts=(Quoted(name=f"action {proposal.action_hash}", text=_json(proposal.action.model_dump(mode="json"))),),
    )
    if proposal.action.hash() != record.detail["action_hash"]:
        told += Told(wrong=(f"the action in the ledger is {proposal.action.hash()}, not the recorded one",))
    told += source.text(proposal.document, "document")
    told += pinned(source, proposal.action.policy_version, "policy")
    return told + _view(source, record, approval)


def _view(source: Source, record: AuditRecord, approval: Approval) -> Told:
    """What people were shown: the recorded view, which must hold the very proposal that they decided about."""
    shown = source.named(record, "view", "view as people were shown it")
    if any(_proposal_in(one.text) != approval.proposal for one in shown.texts):
        return shown + Told(wrong=("the view that was shown is of another proposal than the ledger has now",))
    return shown


def _proposal_in(view: str) -> Proposal | None:
    try:
        return Proposal.model_validate_json(json.dumps(json.loads(view)["proposal"]))
    except (ValueError, KeyError, TypeError):
        return None


def _decided(source: Source, record: AuditRecord) -> Told:
    told = source.named(record, "comment_hash", "comment")
    return told + source.named(record, "edited_action", "edited action")


def _commanded(source: Source, record: AuditRecord) -> Told:
    told = source.named(record, "comment_hash", "comment")
    return told + source.named(record, "content", "content of the command")


def _escalated(source: Source, record: AuditRecord) -> Told:
    return source.named(record, "snapshot", "state of the run, as it was brought before people")


def _failed(source: Source, record: AuditRecord) -> Told:
    return source.named(record, "sentence", "refusal")


def _held(source: Source, record: AuditRecord) -> Told:
    freeze = source.freezes.get(int(str(record.detail["freeze"])))
    if freeze is None:
        return Told(wrong=(f"freeze {record.detail['freeze']} is not in the ledger any more",))
    what = f"tool {freeze.tool}" if freeze.tool else "every effect"
    lifted = f", lifted by {freeze.lifted_by} at {moment(freeze.lifted_at)}" if freeze.lifted_at is not None else ""
    return Told(said=(f"{what} held by {freeze.person} since {moment(freeze.since)}{lifted}: {freeze.reason}",))


def _executed(source: Source, record: AuditRecord) -> Told:
    execution = source.executions.get(str(record.detail["key"]))
    receipt = None if execution is None else execution.receipt
    if receipt is None:
        return Told(wrong=("the ledger has no receipt of it any more",))
    told = Told(said=(
        f"{receipt.channel} confirmed it as {receipt.reference}, content {receipt.content_hash}",
        *([receipt.detail] if receipt.detail else []),
    ))  # fmt: skip
    recorded = {name: record.detail.get(name) for name in ("channel", "key", "reference", "content_hash")}
    if recorded != receipt.model_dump(mode="json", include=set(recorded)):
        told += Told(wrong=("the receipt in the ledger is not the recorded one",))
    return told


def _hash(record: AuditRecord) -> Any:
    return record.detail["hash"]


def _readable(data: bytes) -> str:
    """JSON over several lines, any other text as it is."""
    text = data.decode("utf-8", "backslashreplace")
    try:
        return _json(json.loads(text)) if text.startswith(("{", "[")) else text
    except ValueError:
        return text


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


_TELLERS: Mapping[str, Callable[[Source, AuditRecord], Told]] = {
    "operation.registered": _registered,
    "facts.gathered": _facts,
    "draft.written": _written,
    "draft.checked": _checked,
    "draft.graded": _graded,
    "approval.opened": _proposed,
    "approval.granted_by_rule": _proposed,
    "decision.*": _decided,
    "break_glass.*": _decided,
    "command.*": _commanded,
    "escalation.*": _escalated,
    "step.failed": _failed,
    "effect.held": _held,
    "effect.executed": _executed,
}
"""By the record's type, or by the subject of it."""
