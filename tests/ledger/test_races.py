"""Many threads and processes at once, and processes that are killed: one consistent result, a chain that holds."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from countersign.domain.administration import ADMINISTRATION, lockout
from countersign.domain.errors import Conflict
from countersign.domain.proposal import ApprovalStatus
from countersign.ledger import SqlLedger
from tests.ledger.builders import (
    NOW,
    OPERATION,
    ROOM,
    TENANT,
    VIEW,
    audit_types,
    decide,
    granted,
    opened,
    operation,
    person,
    proposal,
    statement,
)
from tests.ledger.founding import NEWCOMER, POLICIES, enrolment, found, founders
from tests.ledger.racer import PLACES, THREADS

Start = Callable[[str, str], "subprocess.Popen[str]"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def racers(ledger: SqlLedger, ledger_url: str, checkpoints: Path) -> Iterator[Start]:
    """Starts racers, each with its input still open, so that all can begin together."""
    started = ExitStack()

    def start(what: str, name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.ledger.racer", what, ledger_url, str(checkpoints), name]
        pipe = subprocess.PIPE
        racer = started.enter_context(subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True))
        started.callback(racer.kill)
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
        return racer

    with started:
        yield start


def race(start: Start, what: str) -> Counter[str]:
    """What the calls of two racers came to."""
    both = [start(what, name) for name in ("a", "b")]
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda racer: racer.communicate("")[0].split(), both))
    return Counter(answers[0] + answers[1])


def consistent(ledger: SqlLedger) -> bool:
    """Whether the chain holds and each approval stands as its votes and records say."""
    ledger.audit.verify(TENANT)
    approval = ledger.approvals.get(TENANT, "approval-1")
    kinds = ("decision.accepted", "break_glass.accepted")
    accepted = [record.subject for record in ledger.audit.records(TENANT) if record.type in kinds]
    return [vote.person for vote in approval.votes] == accepted


@pytest.fixture
def twenty(empty_ledger: SqlLedger) -> SqlLedger:
    """A ledger with a reviewer for each thread of two racers."""
    found(empty_ledger, more=[person(f"person-{racer}-{number}") for racer in "ab" for number in range(10)])
    empty_ledger.operations.register(operation())
    return empty_ledger


@pytest.mark.guarantee("G10")
@pytest.mark.parametrize("needed", [1, 3])
def test_of_twenty_votes_at_once_exactly_as_many_count_as_are_needed(
    twenty: SqlLedger, racers: Start, needed: int
) -> None:
    ledger = twenty
    ledger.approvals.open(proposal(approvals=needed), "run-1", VIEW, NOW, ROOM)
    assert race(racers, "decide") == {"accepted": needed, "already_settled": 20 - needed}
    assert ledger.approvals.get(TENANT, "approval-1").status == ApprovalStatus.GRANTED
    assert audit_types(ledger).count("approval.granted") == 1
    assert consistent(ledger)


ENDS = {
    "reject": ApprovalStatus.REJECTED, "edit": ApprovalStatus.EDITED,
    "approve": ApprovalStatus.GRANTED, "break_glass": ApprovalStatus.GRANTED,
}  # fmt: skip


@pytest.mark.guarantee("G10")
@pytest.mark.guarantee("G47")
@pytest.mark.parametrize("needed", [1, 3])
def test_of_twenty_decisions_of_every_kind_at_once_one_ends_the_approval_and_all_are_recorded(
    twenty: SqlLedger, racers: Start, needed: int
) -> None:
    twenty.approvals.open(proposal(approvals=needed), "run-1", VIEW, NOW, ROOM)
    rulings = race(racers, "mixed")
    approval = twenty.approvals.get(TENANT, "approval-1")
    assert rulings == {"accepted": len(approval.votes), "already_settled": 20 - len(approval.votes)}
    assert approval.status == ENDS[approval.votes[-1].decision]
    assert {vote.decision for vote in approval.votes[:-1]} <= {"approve", "break_glass"}
    ended = [kind for kind in audit_types(twenty) if kind.split(".")[1] in {status.value for status in ENDS.values()}]
    assert len(ended) == 1
    assert audit_types(twenty).count("decision.refused") == rulings["already_settled"]
    assert consistent(twenty)


@pytest.mark.guarantee("G31")
def test_of_twenty_claims_at_once_one_wins(ledger: SqlLedger, racers: Start) -> None:
    granted(ledger)
    assert race(racers, "claim") == {"intended": 1, "UNAVAILABLE": 19}
    assert audit_types(ledger).count("effect.intended") == 1
    assert consistent(ledger)


def told(answers: Counter[str], what: str) -> set[str]:
    """Which of the racers' calls came to `what`."""
    return {answer.partition(":")[2] for answer in answers if answer.startswith(f"{what}:")}


@pytest.mark.guarantee("G13")
def test_a_set_up_that_two_processes_end_and_change_at_once_is_ended_by_one(ledger: SqlLedger, racers: Start) -> None:
    """Whoever is enrolled is so before the end, whatever is registered is so after it, and nothing lies between."""
    ledger.directory.set_up(NEWCOMER, enrolment(*founders(NEWCOMER)), "setup", NOW)
    ledger.directory.adopt(NEWCOMER, POLICIES, "setup", NOW)
    answers = race(racers, "set_up")
    assert answers.total() == 20
    (closer,) = told(answers, "closed")
    assert answers["closed_before"] == 7
    newcomers = ledger.directory.persons(NEWCOMER).keys() - {one.id for one in founders()}
    assert newcomers == {f"person-{id}" for id in told(answers, "enrolled")}
    assert {one.operation for one in ledger.operations.list(NEWCOMER)} == told(answers, "registered")
    assert answers["NOT_AUTHORISED"] == 12 - len(newcomers) - len(told(answers, "registered"))
    kinds = [record.type for record in ledger.audit.records(NEWCOMER)]
    end = kinds.index("set_up.closed")
    assert [*ledger.audit.records(NEWCOMER)][end].subject == closer
    assert set(kinds[:end]) == {"directory.person_changed", "directory.key_added", "policy.adopted"}
    assert set(kinds[end + 1 :]) <= {"operation.registered"}
    ledger.audit.verify(NEWCOMER)


@pytest.mark.guarantee("G13")
def test_a_set_up_is_not_ended_while_another_process_takes_the_last_administrator_away(
    ledger: SqlLedger, racers: Start
) -> None:
    ledger.directory.set_up(NEWCOMER, enrolment(*founders(NEWCOMER)), "setup", NOW)
    ledger.directory.adopt(NEWCOMER, POLICIES, "setup", NOW)
    answers = race(racers, "lock_out")
    now = ledger.directory.authority(NEWCOMER)
    if ledger.directory.set_up_open(NEWCOMER):
        assert answers == {"demoted": 10, "INPUT_REFUSED": 10}
    else:
        assert answers == {f"closed:{told(answers, 'closed').pop()}": 1, "closed_before": 9, "NOT_AUTHORISED": 10}
        assert lockout(now.persons, now.policies[ADMINISTRATION], NOW) == ()
    ledger.audit.verify(NEWCOMER)


@pytest.mark.guarantee("G03")
@pytest.mark.guarantee("G17")
def test_one_statement_sent_in_twenty_messages_at_once_counts_once(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    proposed = ledger.approvals.open(proposal(approvals=2), "run-1", VIEW, NOW, ROOM).proposal
    with ThreadPoolExecutor(20) as threads:
        said = statement(proposed, "bob")
        outcomes = threads.map(lambda number: decide(ledger, said, message_id=f"m-{number}").ruling.value, range(20))
    assert Counter(outcomes) == {"accepted": 1, "replay": 19}
    assert ledger.approvals.get(TENANT, "approval-1").status == ApprovalStatus.PENDING
    assert consistent(ledger)


@pytest.mark.guarantee("G17")
def test_one_statement_id_used_in_two_operations_at_once_is_good_in_one(ledger: SqlLedger) -> None:
    approvals = []
    for number in range(8):
        ledger.operations.register(operation(f"op-{number}"))
        one = proposal(f"approval-{number}", operation=f"op-{number}")
        approvals.append(ledger.approvals.open(one, "run-1", VIEW, NOW, ROOM).proposal)
    with ThreadPoolExecutor(8) as threads:
        said = [statement(one, "bob", id="one-id-for-all-16") for one in approvals]
        outcomes = list(threads.map(lambda one: decide(ledger, one).ruling.value, said))
    assert Counter(outcomes) == {"accepted": 1, "id_conflict": 7}
    ledger.audit.verify(TENANT)


@pytest.mark.guarantee("G38")
def test_of_twenty_compensations_at_once_one_is_registered(ledger: SqlLedger, racers: Start) -> None:
    ledger.operations.register(operation())
    answers = race(racers, "compensate")
    assert answers["CONFLICT"] == 19
    assert {one.operation for one in ledger.operations.followers(TENANT, OPERATION)} == told(answers, "registered")
    ledger.audit.verify(TENANT)


@pytest.mark.guarantee("G41")
def test_of_twenty_proposals_and_questions_at_once_as_many_wait_as_there_is_room_for(
    ledger: SqlLedger, racers: Start
) -> None:
    for racer in "ab":
        for number in range(THREADS):
            ledger.operations.register(operation(f"flood-{racer}-{number}"))
    assert race(racers, "flood") == {"pending": PLACES, "TOO_MANY_PENDING": 20 - PLACES}
    assert len(ledger.questions.pending(TENANT)) + len(ledger.approvals.pending(TENANT)) == PLACES
    ledger.audit.verify(TENANT)


def test_of_two_requests_at_once_under_one_id_one_is_registered(ledger: SqlLedger) -> None:
    def register(number: int) -> str:
        try:
            return ledger.operations.register(operation(request=b"%d" % (number % 2))).request_hash
        except Conflict as conflict:
            return conflict.code

    with ThreadPoolExecutor(10) as threads:
        answers = Counter(threads.map(register, range(10)))
    stored = ledger.operations.get(TENANT, OPERATION)
    assert answers == {stored.request_hash: 5, "CONFLICT": 5}
    assert audit_types(ledger) == ["operation.registered"]


def test_many_writers_leave_one_gapless_chain_for_each_tenant(ledger: SqlLedger) -> None:
    def write(number: int) -> None:
        ledger.audit.append(f"tenant-{number % 3}", "note.made", "", "rita", {"number": number}, NOW)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(write, range(120)))
    assert [ledger.audit.verify(f"tenant-{number}").count for number in range(3)] == [40, 40, 40]


@pytest.mark.guarantee("G45")
def test_a_process_killed_in_the_middle_leaves_a_chain_that_holds_and_no_step_without_its_record(
    ledger: SqlLedger, racers: Start, ledger_url: str, checkpoints: Path
) -> None:
    ledger.operations.register(operation())
    said: list[str] = []
    for number, steps in enumerate((1, 3, 7)):
        racer = racers("work", f"racer{number}")
        assert racer.stdin is not None
        assert racer.stdout is not None
        racer.stdin.close()
        said += [racer.stdout.readline().split()[1] for _ in range(steps)]
        racer.kill()  # while it is in the middle of its next steps
        racer.wait()
    after = opened(ledger_url, checkpoints)
    after.audit.verify(TENANT)
    records = list(after.audit.records(TENANT))
    registered = [record.operation for record in records if record.type == "operation.registered"]
    assert sorted(registered) == sorted(one.operation for one in after.operations.list(TENANT))
    assert set(said) <= set(registered)
    moved = [record.detail["reason"] for record in records if record.type == "run.waiting_retry"]
    assert after.operations.get(TENANT, OPERATION).reason == moved[-1]
    after.operations.register(operation("after-the-kill"))
    assert after.audit.verify(TENANT).count == len(records) + 1
    after.close()
