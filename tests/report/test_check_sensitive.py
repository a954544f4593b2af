"""A claim on a sensitive column stands only where a person allowed that very query, and is not computed otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.cases.refund.case import RefundCase
from countersign.cases.report.allowing import allowed_queries
from countersign.cases.report.case import ReportCase
from countersign.cases.report.checks import check_draft
from countersign.domain.policy import Policy
from countersign.domain.question import Answer, Answered, Answering, Asked, PendingCall, Question, QuestionStatus
from countersign.evidence.dataset import Dataset
from tests.evidence.opening import opened
from tests.ledger.founding import policy
from tests.report.sample import READING, TOTAL, Cell, draft, evidence, request, with_claim

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
OTHER = "SELECT min(amount) FROM data"


def sensitive(query: str) -> tuple[str, ...]:
    """Whatever speaks of amounts reads them."""
    return ("amount",) if "amount" in query else ()


def asked(answer: Answer | None, sql: str = TOTAL, tool: str = "query_dataset") -> Asked:
    """A question about one query, and what was answered."""
    call = PendingCall(id="c-1", tool=tool, args={"sql": sql}, description="It reads amounts.", decisions=("approve",))
    question = Question(
        tenant="acme", operation="op-1", number=1, line="run", draft_version=1, control_version=1, calls=(call,),
        answering=Answering(role="lead", within="4h", at_most=10), asked_at=NOW, deadline=NOW + timedelta(hours=4),
    )  # fmt: skip
    given = Answered(person="lea", statement_id="s-1", answers=(answer,), at=NOW) if answer else None
    return Asked(question, QuestionStatus.ANSWERED if given else QuestionStatus.PENDING, given)


def answer(decision: Any, **more: Any) -> Answer:
    return Answer(call="c-1", decision=decision, **more)


@pytest.mark.parametrize(
    ("ledger", "allowed"),
    [
        ((), set()),
        ((asked(None),), set()),
        ((asked(answer("reject", message="no")),), set()),
        ((asked(answer("approve")),), {TOTAL}),
        ((asked(answer("edit", args={"sql": OTHER})),), {OTHER}),
        ((asked(answer("respond", message=TOTAL), tool="ask_user"),), set()),
        ((asked(answer("reject")), asked(answer("approve"), OTHER)), {OTHER}),
    ],
    ids=["nothing asked", "waits", "rejected", "approved", "edited", "only asked", "two"],
)
def test_a_query_is_allowed_by_a_person_letter_by_letter(ledger: tuple[Asked, ...], allowed: set[str]) -> None:
    assert allowed_queries(ledger) == allowed


def test_a_claim_that_nobody_allowed_is_a_finding_that_tells_nothing_of_its_value() -> None:
    def recompute(query: str) -> Cell:
        assert query != TOTAL, "it was computed"
        return evidence(query)

    reading = READING._replace(recompute=recompute, sensitive=sensitive)
    (found,) = check_draft(with_claim("total", value="1"), request(), reading)

    assert (found.code, found.place) == ("sensitive_column", "claims.total.query")
    assert found.found == "the query reads amount, declared sensitive"
    assert "a person has allowed" in found.expected
    assert "sensitive_column" not in ReportCase.stops
    assert "1234" not in found.sentence()


def test_allowed_it_is_checked_like_every_other_claim() -> None:
    reading = READING._replace(sensitive=sensitive, allowed={TOTAL})
    assert check_draft(draft(), request(), reading) == ()
    (found,) = check_draft(with_claim("total", value="1", shown="-1,234.50 USD"), request(), reading)
    assert found.code == "value_mismatch"


@pytest.mark.parametrize("query", [f"{TOTAL} ", TOTAL.lower(), f"{TOTAL} WHERE true", OTHER])
def test_a_query_that_is_only_like_an_allowed_one_is_not_allowed(query: str) -> None:
    reading = READING._replace(sensitive=sensitive, allowed={TOTAL})
    codes = [found.code for found in check_draft(with_claim("total", query=query), request(), reading)]
    assert codes == ["sensitive_column"]


class Desk:
    """The report case on one dataset, and a ledger that knows one request and one policy."""

    def __init__(self, dataset: Dataset) -> None:
        self.documents = self.evidence = self.directory = self
        self.case = ReportCase(self, self, {}, "dev")  # type: ignore[arg-type]  # as much of a ledger as is asked
        self._dataset = dataset

    def get(self, tenant: str, sha256: str) -> str:
        """The request."""
        return request().model_dump_json(by_alias=True)

    def policies(self, tenant: str) -> dict[str, Policy]:
        """The one in force."""
        return {"report": policy("report", "reviewer")}

    def open(self, tenant: str, dataset: Any, sensitive: Any) -> Dataset:
        """The dataset."""
        return self._dataset


class Operation:
    """As much of one as the case asks."""

    tenant, operation, request_hash = "acme", "op-1", "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("tool", "args", "words"),
    [
        ("query_dataset", {"sql": OTHER}, ""),
        ("query_dataset", {"sql": "SELECT min(amount), count(*) FROM data"}, ""),
        ("query_dataset", {"sql": "DROP TABLE data"}, "argument 'sql': only one SELECT"),
        ("query_dataset", {"sql": "SELECT 1; SELECT 2"}, "exactly one SELECT"),
        ("query_dataset", {"sql": "FROM read_csv('/etc/passwd')"}, "argument 'sql':"),
        ("query_dataset", {"sql": ""}, "at least 1 character; the arguments are: sql"),
        ("query_dataset", {"sql": 5}, "sql: Input should be a valid string"),
        ("query_dataset", {"sql": " " * 4_001}, "at most 4000 characters"),
        ("query_dataset", {"sql": OTHER, "max_rows": 9}, "max_rows: Extra inputs are not permitted"),
        ("query_dataset", {}, "sql: Field required"),
        ("ask_user", {"question": "?"}, "a call of ask_user takes no other arguments"),
    ],
)
def test_an_edit_is_a_query_that_the_dataset_would_answer(
    tmp_path: Path, tool: str, args: dict[str, Any], words: str
) -> None:
    with opened(tmp_path, "amount\n5\n", {"columns": {"amount": {"type": "number", "sensitive": True}}}) as dataset:
        problem = Desk(dataset).case.edit_problem(Operation(), tool, args)  # type: ignore[arg-type]
    assert (words in problem, bool(problem)) == (True, bool(words))


def test_the_material_knows_what_people_allowed_in_the_operation(tmp_path: Path) -> None:
    with opened(tmp_path, "amount\n5\n") as dataset:
        material = Desk(dataset).case.open(Operation(), [asked(answer("approve"))])  # type: ignore[arg-type]
    assert material.allowed == {TOTAL}


def test_no_call_of_the_refund_agent_is_edited() -> None:
    case = RefundCase(None, {}, "dev")  # type: ignore[arg-type]  # nothing of it is asked
    assert "takes no other arguments" in case.edit_problem(Operation(), "ask_user", {})  # type: ignore[arg-type]
