"""Documents, operations, drafts: stored once, the same on both engines, each change with one record."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from countersign.domain.canonical import sha256_hex
from countersign.domain.draft import Violation
from countersign.domain.errors import Conflict, InputRefused, NotFound
from countersign.domain.report import Draft
from countersign.domain.rubric import CriterionResult, Grade, GraderAnswer, Verdict
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from tests.ledger.builders import NOW, OPERATION, TENANT, audit_types, draft, operation

LATER = NOW + timedelta(minutes=1)


def grade(verdict: Verdict = Verdict.SATISFIED, *feedback: str) -> Grade:
    results = (CriterionResult(id="clear", passed=not feedback),)
    answer = GraderAnswer(verdict=verdict.value, criteria=results, raw="{...}", model="offline")
    return Grade(verdict=verdict, feedback=feedback, answer=answer)


def test_a_document_comes_back_byte_for_byte_and_is_stored_once(ledger: SqlLedger) -> None:
    data = bytes(range(256)) + "数".encode()
    first, second = ledger.documents.put(TENANT, data), ledger.documents.put(TENANT, data)
    assert first == second == sha256_hex(data)
    assert ledger.documents.get(TENANT, first) == data


def test_a_document_that_was_changed_in_the_database_is_refused(ledger: SqlLedger, database: Engine) -> None:
    sha256 = ledger.documents.put(TENANT, b"what people saw")
    with database.begin() as connection:
        connection.execute(text("UPDATE documents SET data = :data"), {"data": b"another"})
    with pytest.raises(Conflict, match="no longer fit"):
        ledger.documents.get(TENANT, sha256)


def test_a_second_start_with_the_same_request_gets_the_first_operation(ledger: SqlLedger) -> None:
    first = ledger.operations.register(operation())
    again = ledger.operations.register(operation(registered_at=LATER, statement="d.e.f"))
    assert again == first
    assert audit_types(ledger) == ["operation.registered"]


def test_another_request_under_the_same_id_is_a_conflict_that_names_both(ledger: SqlLedger) -> None:
    first = ledger.operations.register(operation())
    other = operation(request=b"another request")
    with pytest.raises(Conflict) as conflict:
        ledger.operations.register(other)
    assert first.request_hash in conflict.value.message
    assert other.request_hash in conflict.value.message
    assert ledger.operations.get(TENANT, OPERATION) == first


def test_operations_are_listed_newest_first(ledger: SqlLedger) -> None:
    for number, id in enumerate(["b-1", "a.1", "c_1"]):
        ledger.operations.register(operation(id, registered_at=NOW + timedelta(microseconds=number // 2)))
    assert [one.operation for one in ledger.operations.list(TENANT)] == ["c_1", "a.1", "b-1"]


def test_where_a_run_stands_is_kept_and_recorded_once(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    for _ in range(3):
        ledger.operations.move(TENANT, OPERATION, State.FAILED, "max_iterations_reached", LATER)
    stored = ledger.operations.get(TENANT, OPERATION)
    assert (stored.state, stored.reason) == (State.FAILED, "max_iterations_reached")
    assert audit_types(ledger) == ["operation.registered", "run.failed"]


def test_draft_versions_are_kept_and_never_overwritten(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    first, second = draft(), draft("In 2026 sales were {{c1}}.")
    for _ in range(2):
        ledger.drafts.save(TENANT, OPERATION, 1, first, "offline", 1, NOW)
    ledger.drafts.save(TENANT, OPERATION, 2, second, "offline", 1, NOW)
    with pytest.raises(Conflict, match="draft v1"):
        ledger.drafts.save(TENANT, OPERATION, 1, second, "offline", 1, NOW)
    assert [ledger.drafts.get(TENANT, OPERATION, version) for version in (1, 2)] == [first, second]
    assert audit_types(ledger) == ["operation.registered", "draft.written", "draft.written"]


@pytest.mark.guarantee("G45")
def test_a_draft_has_the_hash_and_the_order_of_fields_that_every_ledger_before_gave_it(ledger: SqlLedger) -> None:
    """Earlier records bind these hashes; the ledger that made them knew the form of a report, and this one does not."""
    ledger.operations.register(operation())
    written = draft('Umsätze — 销售额 "{{c1}}"\n\x7f\u2028\t\\')
    hashes = [
        ledger.drafts.save(TENANT, OPERATION, version, one, "offline", 1, NOW)
        for version, one in enumerate((draft(), written), start=1)
    ]
    assert hashes == [
        "sha256:602ed644728fead8305cba6cffb49f0039c6b685f3d17ad936f90f724396e41c",
        "sha256:3aa82beef385130be594519ec7bd6a71feac3bf9b782fd6704976bcaf883f85b",
    ]
    assert [*ledger.drafts.get(TENANT, OPERATION, 2)] == [*Draft.model_fields]


def test_checks_and_grades_are_kept_and_recorded_once_each(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    ledger.drafts.save(TENANT, OPERATION, 1, draft(), "offline", 1, NOW)
    found = [Violation(code="value_mismatch", place="claims.c1.value", expected="42", found="43")]
    for _ in range(2):
        ledger.drafts.save_checks(TENANT, OPERATION, 1, found, 1, NOW)
        ledger.drafts.save_grade(TENANT, OPERATION, 1, grade(Verdict.NEEDS_REVISION, "clear: no"), "report/1", 1, NOW)
    records = list(ledger.audit.records(TENANT, OPERATION))[2:]
    assert [record.type for record in records] == ["draft.checked", "draft.graded"]
    assert records[0].detail["codes"] == ["value_mismatch"]
    assert records[1].detail["verdict"] == "needs_revision"
    assert ledger.drafts.feedback(TENANT, OPERATION, 1) == (found[0].sentence(), "clear: no")


def test_a_version_that_is_graded_again_keeps_both_answers_and_the_latest_counts(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    ledger.drafts.save(TENANT, OPERATION, 1, draft(), "offline", 1, NOW)
    ledger.drafts.save_checks(TENANT, OPERATION, 1, [], 1, NOW)
    for one in (grade(Verdict.GRADER_ERROR, "cut off"), grade(), grade(Verdict.GRADER_ERROR, "cut off")):
        ledger.drafts.save_grade(TENANT, OPERATION, 1, one, "report/1", 1, NOW)
    assert audit_types(ledger).count("draft.graded") == 3
    assert ledger.drafts.feedback(TENANT, OPERATION, 1) == ("cut off",)
    ledger.drafts.save_grade(TENANT, OPERATION, 1, grade(), "report/1", 1, NOW)
    assert ledger.drafts.feedback(TENANT, OPERATION, 1) == ()


@pytest.mark.guarantee("G10")
def test_an_operation_that_has_ended_is_never_taken_up_again(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    ledger.operations.move(TENANT, OPERATION, State.REJECTED, "rejected", NOW)
    ledger.operations.move(TENANT, OPERATION, State.REJECTED, "rejected", LATER)
    with pytest.raises(Conflict, match="ended as REJECTED"):
        ledger.operations.move(TENANT, OPERATION, State.RUNNING, "", LATER)
    assert ledger.operations.get(TENANT, OPERATION).state == State.REJECTED


def test_what_hangs_on_something_that_is_not_there_is_refused_without_a_record(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    before = audit_types(ledger)
    with pytest.raises(NotFound, match="'nowhere'"):
        ledger.drafts.save(TENANT, "nowhere", 1, draft(), "offline", 1, NOW)
    with pytest.raises(NotFound, match="v9"):
        ledger.drafts.save_checks(TENANT, OPERATION, 9, [], 1, NOW)
    with pytest.raises(NotFound, match="v9"):
        ledger.drafts.get(TENANT, OPERATION, 9)
    with pytest.raises(NotFound, match="'nowhere'"):
        ledger.operations.move(TENANT, "nowhere", State.RUNNING, "", NOW)
    assert audit_types(ledger) == before


@pytest.mark.parametrize("bad", ["NUL \x00", "lone surrogate \ud800"])
def test_texts_that_one_engine_cannot_hold_are_refused_on_both(ledger: SqlLedger, bad: str) -> None:
    ledger.operations.register(operation())
    before = audit_types(ledger)
    with pytest.raises(InputRefused):
        ledger.drafts.save(TENANT, OPERATION, 1, {**draft(), "body": bad}, "offline", 1, NOW)
    with pytest.raises(InputRefused):
        ledger.operations.move(TENANT, OPERATION, State.FAILED, bad, NOW)
    with pytest.raises(InputRefused):
        ledger.operations.get(TENANT, bad)
    with pytest.raises(InputRefused):
        ledger.audit.append(TENANT, "note.made", OPERATION, "rita", {"text": bad}, NOW)
    with pytest.raises(InputRefused):
        ledger.operations.register(operation("other", statement=bad))
    assert audit_types(ledger) == before


def test_numbers_and_times_that_the_engines_would_treat_differently_are_refused_on_both(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    with pytest.raises(InputRefused, match="number"):
        ledger.drafts.save(TENANT, OPERATION, 2**63, draft(), "offline", 1, NOW)
    with pytest.raises(InputRefused, match="offset"):
        ledger.operations.move(TENANT, OPERATION, State.FAILED, "reason", NOW.replace(tzinfo=None))


@pytest.mark.guarantee("G45")
def test_the_record_of_a_pass_binds_the_very_draft_that_passed(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    content = ledger.drafts.save(TENANT, OPERATION, 1, draft(), "offline", 1, NOW)
    ledger.drafts.save_checks(TENANT, OPERATION, 1, (), 1, NOW)
    ledger.drafts.save_grade(TENANT, OPERATION, 1, grade(), "report/1", 1, NOW)
    looked_at = {
        record.type: record.detail["draft"]
        for record in ledger.audit.records(TENANT, OPERATION)
        if record.type in ("draft.checked", "draft.graded")
    }
    assert looked_at == {"draft.checked": content, "draft.graded": content}
