"""What the ledger's tables must hold of an operation by its audit records: folded from them alone, one after another.

Apart from the tables, which nothing here looks at: whoever changed a row cannot have changed what is expected of it.
What no record says of a row is not expected. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from countersign.domain.audit import RESTORED, AuditRecord
from countersign.domain.execution import ExecutionStatus
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.question import QuestionStatus
from countersign.domain.state import State

OPENED = frozenset({"approval.opened", "approval.granted_by_rule"})
"""Types of the records by which a proposal is there."""
HASH = ":hash"
"""Behind a column's name: not what it holds is expected, but what has this hash; of a whole value the canonical one."""

Key = tuple[Any, ...]
Row = dict[str, Any]


class Expected(NamedTuple):
    """What is expected of one row."""

    row: Row
    """By column; `name.field` is a field of a value that is kept whole."""
    sequence: int
    """The latest record that says something of it."""


class _Fold:
    """The rows as the records so far have left them."""

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.tables: defaultdict[str, dict[Key, Expected]] = defaultdict(dict)
        self.openings = 0
        """Of the whole tenant: proposals are numbered through it."""
        self.counted: dict[str, Row] = {}
        """Votes by the id of their statement, in case an edit is carried over."""

    def put(self, table: str, record: AuditRecord, *key: Any, **row: Any) -> None:
        """Expect these columns of a row, beside what is expected of it already."""
        before = self.tables[table].get(key)
        self.tables[table][key] = Expected({**(before.row if before else {}), **row}, record.sequence)

    def row(self, table: str, *key: Any) -> Row:
        """What is expected of a row so far; nothing of one that nobody told of."""
        found = self.tables[table].get(key)
        return {} if found is None else found.row

    def next(self, table: str, *key: Any) -> int:
        """The next number of rows that begin with these."""
        return 1 + sum(known[: len(key)] == key for known in self.tables[table])


def expected_rows(records: Iterable[AuditRecord], operation: str) -> Mapping[str, Mapping[Key, Expected]]:
    """By table and key.

    Args:
        records: all of the tenant, in order: freezes and restores are the tenant's, and proposals are numbered in it.
        operation: the one whose rows are meant.
    """
    fold = _Fold(operation)
    for record in records:
        fold.openings += record.type in OPENED
        if record.operation == operation:
            _fold_own(fold, record)
        if record.type in _OF_TENANT:
            _OF_TENANT[record.type](fold, record)
    return fold.tables


def _fold_own(fold: _Fold, record: AuditRecord) -> None:
    subject, _, verb = record.type.partition(".")
    if "message_id" in record.detail:
        _message(fold, record)
    if record.type in _OWN:
        _OWN[record.type](fold, record)
    elif subject == "run" and verb.upper() in State.__members__:
        fold.put("operations", record, fold.operation, state=verb.upper(), reason=record.detail["reason"])
    elif subject in ("approval", "break_glass") and verb.upper() in ApprovalStatus.__members__:
        _closed(fold, record, verb)


def _registered(fold: _Fold, record: AuditRecord) -> None:
    detail = record.detail
    fold.put(
        "operations", record, fold.operation, case=detail["case"], request_hash=detail["request_hash"],
        requester=record.subject, registered_at=record.recorded_at, follows=detail.get("follows", ""),
        state=State.CREATED.value, reason="", **{f"statement{HASH}": detail["statement_hash"]},
    )  # fmt: skip


def _written(fold: _Fold, record: AuditRecord) -> None:
    said = {"hash": record.detail["hash"], "model": record.detail["model"], "author": record.subject}
    fold.put("drafts", record, record.detail["version"], **said, written_at=record.recorded_at)


def _checked(fold: _Fold, record: AuditRecord) -> None:
    version = record.detail["version"]
    number = fold.next("draft_checks", version)
    fold.put("draft_checks", record, version, number, hash=record.detail["hash"], checked_at=record.recorded_at)


def _graded(fold: _Fold, record: AuditRecord) -> None:
    version, detail = record.detail["version"], record.detail
    said = {"hash": detail["hash"], "rubric": detail["rubric"], "graded_at": record.recorded_at}
    fold.put("draft_grades", record, version, fold.next("draft_grades", version), **said)


def _gathered(fold: _Fold, record: AuditRecord) -> None:
    detail = record.detail
    fold.put("facts", record, detail["number"], hash=detail["facts"], gathered_at=record.recorded_at)


def _opened(fold: _Fold, record: AuditRecord) -> None:
    detail, by_rule = record.detail, record.type != "approval.opened"
    fold.put(
        "approvals", record, detail["approval_id"], approval_version=detail["approval_version"],
        run_id=detail["run_id"], number=fold.openings, view=detail["view"], opened_at=record.recorded_at,
        changed_at=record.recorded_at, void_reason="",
        status=ApprovalStatus.GRANTED.value if by_rule else ApprovalStatus.PENDING.value,
        **{"proposal.action_hash": detail["action_hash"], "proposal.action.policy_version": detail["policy"]},
    )  # fmt: skip


def _closed(fold: _Fold, record: AuditRecord, status: str) -> None:
    detail, void = record.detail, {}
    if status == ApprovalStatus.VOIDED:
        void = {"void_reason": f"{detail['reason']}: expected {detail['expected']}, found {detail['found']}"}
    changed = {"status": status, "changed_at": record.recorded_at}
    fold.put("approvals", record, detail["approval_id"], **changed, **void)


def _voted(fold: _Fold, record: AuditRecord) -> None:
    named = ("decision", "assurance", "statement_id", "comment_hash")
    vote = {f"vote.{name}": record.detail[name] for name in named}
    vote["vote.edited_action"] = record.detail.get("edited_action", "")
    vote["vote.decided_at"] = record.recorded_at
    vote[f"vote.statement{HASH}"] = record.detail["statement_hash"]
    fold.counted[str(record.detail["statement_id"])] = vote
    _cast(fold, record, vote)


def _carried_over(fold: _Fold, record: AuditRecord) -> None:
    statement = record.detail["statement_id"]
    _cast(fold, record, fold.counted.get(str(statement), {"vote.statement_id": statement}))


def _cast(fold: _Fold, record: AuditRecord, vote: Row) -> None:
    approval = record.detail["approval_id"]
    at = {"decided_at": vote["vote.decided_at"]} if "vote.decided_at" in vote else {}
    number = fold.next("votes", approval)
    fold.put("votes", record, approval, record.subject, number=number, **at, **vote, **{"vote.person": record.subject})


def _message(fold: _Fold, record: AuditRecord) -> None:
    detail = record.detail
    said = {"transport": detail["transport"], "received_at": record.recorded_at, "outcome.ruling": detail["ruling"]}
    fold.put("messages", record, detail["message_id"], detail.get("statement_hash", ""), **said)


def _commanded(fold: _Fold, record: AuditRecord) -> None:
    detail = record.detail
    if detail["command"] != "settle" or not detail.get("finding"):
        return
    key, said = detail["key"], {"finding": detail["finding"], "reference": detail.get("reference", "")}
    fold.put(
        "settlements", record, key, fold.next("settlements", key), person=record.subject, spent=0,
        **{f"statement{HASH}": detail["statement_hash"], "settlement.key": key, "settlement.person": record.subject,
           "settlement.at": record.recorded_at, **{f"settlement.{name}": value for name, value in said.items()}},
    )  # fmt: skip


def _intended(fold: _Fold, record: AuditRecord) -> None:
    detail = record.detail
    before = fold.row("executions", detail["key"])
    # Until it has ended, no record says until when it may land.
    before.pop("may_land_until", None)
    claimed = {name: detail[name] for name in ("approval_id", "action_hash", "attempt", "claimed_until")}
    fold.put(
        "executions", record, detail["key"], **claimed, status=ExecutionStatus.INTENDED.value, receipt=None,
        reason=before.get("reason", ""), number=1 + _claims(fold),
    )  # fmt: skip


def _claims(fold: _Fold) -> int:
    return max((one.row["number"] for one in fold.tables["executions"].values()), default=0)


def _ended(fold: _Fold, record: AuditRecord) -> None:
    """How an execution stands; the claim is over with it."""
    detail, key = record.detail, record.detail["key"]
    status = ExecutionStatus[record.type.partition(".")[2].upper()]
    before = fold.row("executions", key)
    ended = {name: detail[name] for name in ("approval_id", "action_hash", "attempt")}
    over = {"claimed_until": min(str(before.get("claimed_until", record.recorded_at)), record.recorded_at)}
    if "may_land_until" in detail:
        over["may_land_until"] = str(detail["may_land_until"])
    if _overtakes(before, status, detail):
        ended["number"] = 1 + _claims(fold)
    fold.put("executions", record, key, **ended, **over, status=status.value, reason=detail.get("reason", ""))
    if status == ExecutionStatus.EXECUTED:
        _executed(fold, record)
    elif status == ExecutionStatus.NOT_SENT:
        for known in [known for known in fold.tables["settlements"] if known[0] == key]:
            fold.put("settlements", record, *known, spent=1)


def _overtakes(before: Row, status: ExecutionStatus, detail: Mapping[str, Any]) -> bool:
    """Whether it was found behind what was recorded last, and is the operation's latest again."""
    doubted = status == ExecutionStatus.UNKNOWN and before.get("status") in (None, ExecutionStatus.NOT_SENT.value)
    return doubted or bool(detail.get("found_late"))


def _executed(fold: _Fold, record: AuditRecord) -> None:
    detail = record.detail
    receipt = {f"receipt.{name}": detail[name] for name in ("channel", "key", "reference", "content_hash")}
    if "detail_hash" in detail:
        receipt[f"receipt.detail{HASH}"] = detail["detail_hash"]
    fold.row("executions", detail["key"]).pop("receipt", None)
    fold.put("executions", record, detail["key"], **receipt)
    changed = {"status": ApprovalStatus.CONSUMED.value, "changed_at": record.recorded_at}
    fold.put("approvals", record, detail["approval_id"], **changed)


def _held(fold: _Fold, record: AuditRecord) -> None:
    fold.put("holds", record, record.detail["freeze"], record.detail["approval_id"])


def _ticked(fold: _Fold, record: AuditRecord) -> None:
    fold.put("ticks", record, record.detail["approval_id"], record.detail["tick"], marked_at=record.recorded_at)


def _control(fold: _Fold, record: AuditRecord) -> None:
    version, holder = record.detail["version"], record.detail["to"]
    said = {"control.version": version, "control.since": record.recorded_at, "control.holder": holder}
    fold.put("controls", record, version, **said)


def _ended_by_person(fold: _Fold, record: AuditRecord) -> None:
    said = {f"ending.{name}": record.detail[name] for name in ("state", "reason")}
    fold.put("endings", record, fold.operation, **said)


def _handed_on(fold: _Fold, record: AuditRecord) -> None:
    fold.put("lines", record, record.detail["line"], run_id="", handed_on_by=record.detail["run_id"])


def _taken_on(fold: _Fold, record: AuditRecord) -> None:
    fold.put("lines", record, record.detail["line"], run_id=record.detail["run_id"])


def _escalated(fold: _Fold, record: AuditRecord) -> None:
    detail, number = record.detail, record.detail["number"]
    named = ("reason", "code", "role", "severity", "deadline", "attempts", "last_error", "snapshot", "outcome")
    said = {f"escalation.{name}": detail[name] for name in named}
    raised = {"escalation.raised_at": record.recorded_at} if record.type == "escalation.raised" else {}
    by = None if record.subject in ("run", "clock") else record.subject
    fold.put("escalations", record, number, outcome=detail["outcome"], **said, **raised,
             **{"escalation.number": number, "escalation.answered_by": by})  # fmt: skip


def _asked(fold: _Fold, record: AuditRecord) -> None:
    said = {"status": QuestionStatus.PENDING.value, f"question{HASH}": record.detail["question"], "answered": None}
    fold.put("questions", record, record.detail["number"], **said)


def _answered(fold: _Fold, record: AuditRecord) -> None:
    said = {
        "answered.person": record.subject, "answered.statement_id": record.detail["by"],
        "answered.at": record.recorded_at, f"answered.answers{HASH}": record.detail["answers"],
    }  # fmt: skip
    fold.row("questions", record.detail["number"]).pop("answered", None)
    fold.put("questions", record, record.detail["number"], status=QuestionStatus.ANSWERED.value, **said)


def _no_longer_asked(fold: _Fold, record: AuditRecord) -> None:
    fold.put("questions", record, record.detail["number"], status=record.type.partition(".")[2])


def _question_ticked(fold: _Fold, record: AuditRecord) -> None:
    key = (record.detail["number"], record.detail["tick"])
    fold.put("question_ticks", record, *key, marked_at=record.recorded_at)


def _budget_raised(fold: _Fold, record: AuditRecord) -> None:
    detail = record.detail
    said = {"person": record.subject, "statement": detail["by"], "budget": detail["budget"]}
    fold.put("budget_raises", record, detail["number"], **said, raised_at=record.recorded_at)


def _frozen(fold: _Fold, record: AuditRecord) -> None:
    detail = record.detail
    order = {"order_hash": detail["order_hash"], f"signed_order{HASH}": detail["order_hash"]}
    fold.put(
        "freezes", record, detail["number"], **order,
        **{"freeze.tool": detail["tool"], f"freeze.reason{HASH}": detail["reason_hash"],
           "freeze.person": record.subject, "freeze.since": record.recorded_at, "freeze.number": detail["number"],
           "freeze.lifted_at": None, "freeze.lifted_by": ""},
    )  # fmt: skip


def _unfrozen(fold: _Fold, record: AuditRecord) -> None:
    lifted = {"freeze.lifted_at": record.recorded_at, "freeze.lifted_by": record.detail["basis"]}
    fold.put("freezes", record, record.detail["number"], **lifted)


def _restored(fold: _Fold, record: AuditRecord) -> None:
    fold.put("restores", record, record.sequence, since=record.detail["since"], until=record.detail["until"])


_Folder = Callable[[_Fold, AuditRecord], None]
_OWN: Mapping[str, _Folder] = {
    "operation.registered": _registered, "draft.written": _written, "draft.checked": _checked,
    "draft.graded": _graded, "facts.gathered": _gathered, "approval.opened": _opened,
    "approval.granted_by_rule": _opened, "approval.reminded": _ticked, "approval.escalated": _ticked,
    "decision.accepted": _voted, "break_glass.accepted": _voted, "decision.carried_over": _carried_over,
    "command.accepted": _commanded, "effect.intended": _intended, "effect.executed": _ended,
    "effect.not_sent": _ended, "effect.unknown": _ended, "effect.held": _held, "control.changed": _control,
    "control.lapsed": _control, "run.ended_by_person": _ended_by_person, "run.handed_on": _handed_on,
    "run.taken_on": _taken_on, "escalation.raised": _escalated, "escalation.answered": _escalated,
    "escalation.unanswered": _escalated, "question.asked": _asked, "question.answered": _answered,
    "question.expired": _no_longer_asked, "question.superseded": _no_longer_asked,
    "question.reminded": _question_ticked, "question.escalated": _question_ticked, "budget.raised": _budget_raised,
}  # fmt: skip
_OF_TENANT: Mapping[str, _Folder] = {
    "effects.frozen": _frozen, "effects.unfrozen": _unfrozen, RESTORED: _restored,
}  # fmt: skip
