"""The wall between tenants: another tenant's is as if it were not there, in the answers and in the database itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, inspect, select, text, update

from countersign.agents.checkpoints import checkpoints_at
from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Ruling
from countersign.domain.errors import CountersignError, Frozen, InputRefused, NotFound, Unavailable
from countersign.domain.escalation import Reason, Route, Severity
from countersign.domain.need import Ladder
from countersign.domain.policy import Answer, Assessment
from countersign.domain.progress import ProgressKind
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.report import Draft
from countersign.domain.rubric import CriterionResult, Grade, GraderAnswer, Verdict
from countersign.domain.settlement import Settlement
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from countersign.ledger.tables import documents, metadata, persons, restores, settlements, tenants, walled
from tests.ledger.asking import ENDED, a_call, ask, bring_before_people, raise_budget
from tests.ledger.builders import (
    NOW,
    OPERATION,
    ROOM,
    TENANT,
    VIEW,
    action,
    audit_types,
    claim,
    command,
    decide,
    draft,
    granted,
    need,
    opened,
    operation,
    person,
    proposal,
    send,
    statement,
)
from tests.ledger.founding import added, apply, enrolment, found, founders, key, order, revoked, standing
from tests.support.postgres import PostgresServer, as_superuser
from tests.support.thread_keys import THREAD_KEYS

OTHER = "globex"
ASKING = "op-4"
LADDERED = need().model_copy(update={"ladder": Ladder(remind=("5m",))})
ROUTE = Route(role="expert", severity=Severity.HIGH)


def fill(ledger: SqlLedger, tenant: str) -> None:
    """Have the tenant own a row in every table."""
    found(ledger, tenant)
    apply(ledger, added("bob", key("bob-2")), tenant=tenant)
    claim(ledger, granted(ledger, proposal(tenant=tenant)))
    ledger.documents.put(tenant, b"secret")
    ledger.drafts.save(tenant, OPERATION, 1, draft(), "offline", 1, NOW)
    ledger.drafts.save_checks(tenant, OPERATION, 1, [], 1, NOW)
    answer = GraderAnswer(
        verdict="satisfied", criteria=(CriterionResult(id="clear", passed=True),), raw="{}", model="offline"
    )
    grade = Grade(verdict=Verdict.SATISFIED, feedback=(), answer=answer)
    ledger.drafts.save_grade(tenant, OPERATION, 1, grade, "report/1", 1, NOW)
    fill_control(ledger, tenant)
    fill_recovery(ledger, tenant)
    fill_asking(ledger, tenant)


def fill_asking(ledger: SqlLedger, tenant: str) -> None:
    """The rows that come of an agent that asks, and of what its models cost."""
    ledger.operations.register(operation(ASKING, tenant=tenant))
    ask(ledger, tenant=tenant, operation=ASKING, answering={"ladder": {"remind": ["5m"]}})
    ledger.questions.mark(tenant, ASKING, 1, 0, NOW + timedelta(minutes=5))
    ledger.model_calls.begin(a_call(tenant, ASKING))
    bring_before_people(ledger, tenant, ASKING)
    raise_budget(ledger, tenant=tenant, operation=ASKING)
    ledger.progress.add(tenant, ASKING, ProgressKind.ASKED, 1, "", "", NOW)


def fill_recovery(ledger: SqlLedger, tenant: str) -> None:
    """The rows that come of reading outside, of people who say what became of an effect, and of a lost ledger."""
    ledger.operations.gathered(tenant, OPERATION, ledger.documents.put(tenant, b"{}"), NOW)
    execution = ledger.executions.get(tenant, OPERATION)
    assert execution is not None
    said = Settlement(person="lea", key=execution.key, finding="executed", reference="r", at=NOW)
    with ledger._store.writing(tenant) as writing:
        row = {"key": said.key, "number": 1, "person": said.person, "statement": "signed", "settlement": said}
        writing.insert_once(settlements, **row, spent=0)
        writing.insert_once(restores, number=1, since=NOW, until=NOW)


def fill_control(ledger: SqlLedger, tenant: str) -> None:
    """The rows that come of time, and of people who step in."""
    ledger.operations.register(operation("op-2", tenant=tenant))
    assessed = Assessment(answer=Answer.PEOPLE, rules=("rule-1",), needs=(LADDERED,))
    second = proposal("approval-2", operation="op-2", tenant=tenant, assessment=assessed)
    ledger.approvals.open(second, "run-2", VIEW, NOW, ROOM)
    ledger.approvals.mark(tenant, "approval-2", 0, NOW + timedelta(minutes=5))
    approval = granted(ledger, proposal("approval-3", operation="op-3", tenant=tenant, by_rule=True))
    ledger.freezes.freeze(tenant, order(tenant=tenant), NOW)
    with pytest.raises(Frozen):
        claim(ledger, approval)
    ledger.operations.hand_on(tenant, "op-2", "run-2", "run-2", NOW)
    ledger.escalations.open(tenant, "op-2", Reason.LOW_CONFIDENCE, ROUTE, "rubric_failed", 3, "failed", VIEW, NOW)
    send(ledger, command("take_over", "lena", tenant=tenant, operation="op-2"))
    send(ledger, command("cancel", "otto", tenant=tenant, operation="op-2"))
    ledger.outbox.address(tenant, 1, ["chat"], NOW)


def test_every_tenant_with_records_or_a_checkpoint_is_known(empty_ledger: SqlLedger, checkpoints: Path) -> None:
    empty_ledger.directory.set_up("c.c", enrolment(person("bob", tenant="c.c")), "setup", NOW)
    empty_ledger.audit.append("a-a", "note.made", "", "rita", {}, NOW)
    empty_ledger.audit.append("b_b", "note.made", "", "rita", {}, NOW)
    (checkpoints / "cut-off.jws").touch()
    assert empty_ledger.directory.tenants() == ["a-a", "b_b", "c.c", "cut-off"]


def test_a_tenant_id_outside_the_pattern_is_refused_before_anything_is_written(empty_ledger: SqlLedger) -> None:
    with pytest.raises(InputRefused, match=r"\.\./acme"):
        empty_ledger.audit.append("../acme", "note.made", "", "rita", {}, NOW)
    assert empty_ledger.directory.tenants() == []


@pytest.fixture(scope="module")
def filled_ledger(shared_ledger_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlLedger]:
    """One tenant with a row in every table, in which nobody changes anything."""
    ledger = opened(shared_ledger_url, tmp_path_factory.mktemp("checkpoints"))
    fill(ledger, TENANT)
    yield ledger
    ledger.close()


@pytest.mark.guarantee("G09")
@pytest.mark.parametrize(
    "ask",
    [
        lambda ledger, tenant: ledger.operations.get(tenant, OPERATION),
        lambda ledger, tenant: ledger.operations.move(tenant, OPERATION, State.FAILED, "mine now", NOW),
        lambda ledger, tenant: ledger.drafts.get(tenant, OPERATION, 1),
        lambda ledger, tenant: ledger.drafts.save(tenant, OPERATION, 2, draft(), "offline", 1, NOW),
        lambda ledger, tenant: ledger.drafts.save_checks(tenant, OPERATION, 1, [], 1, NOW),
        lambda ledger, tenant: ledger.approvals.get(tenant, "approval-1"),
        lambda ledger, tenant: ledger.approvals.settle(tenant, "approval-1", ApprovalStatus.CANCELLED, NOW),
        lambda ledger, tenant: ledger.approvals.void(tenant, "approval-1", "drift", "a", "b", NOW),
        lambda ledger, tenant: ledger.approvals.void_reason(tenant, "approval-1"),
        lambda ledger, tenant: ledger.approvals.mark(tenant, "approval-2", 0, NOW),
        lambda ledger, tenant: ledger.controls.standing(tenant, OPERATION),
        lambda ledger, tenant: ledger.controls.history(tenant, OPERATION),
        lambda ledger, tenant: ledger.controls.lapse(tenant, "op-2", 2, NOW),
        lambda ledger, tenant: send(ledger, command("take_over", "lena", tenant=tenant)),
        lambda ledger, tenant: ledger.escalations.close_unanswered(tenant, "op-2", 1, NOW),
        lambda ledger, tenant: ledger.operations.take_on(tenant, "op-2", "run-2", "run-3", NOW),
        lambda ledger, tenant: ask(ledger, tenant=tenant, operation=ASKING),
        lambda ledger, tenant: ledger.questions.mark(tenant, ASKING, 1, 0, NOW + timedelta(minutes=5)),
        lambda ledger, tenant: ledger.questions.expire(tenant, ASKING, 1, NOW + timedelta(days=1)),
        lambda ledger, tenant: ledger.model_calls.begin(a_call(tenant, ASKING)),
        lambda ledger, tenant: ledger.model_calls.end(tenant, ASKING, 1, ENDED, None, ""),
        lambda ledger, tenant: ledger.progress.add(tenant, ASKING, ProgressKind.ASKED, 1, "", "", NOW),
        lambda ledger, tenant: raise_budget(ledger, tenant=tenant, operation=ASKING),
        lambda ledger, tenant: ledger.freezes.freeze(tenant, order(tenant=tenant), NOW),
        lambda ledger, tenant: ledger.outbox.address(tenant, 1, ["chat"], NOW),
        lambda ledger, tenant: ledger.documents.get(tenant, sha256_hex(b"secret")),
        lambda ledger, tenant: ledger.operations.register(operation("new", tenant=tenant)),
        lambda ledger, tenant: ledger.directory.set_up(tenant, revoked("bob", "bob-1"), "rita", NOW),
        lambda ledger, tenant: ledger.directory.close_set_up(tenant, "rita", NOW),
        lambda ledger, tenant: claim(
            ledger, ledger.approvals.get(TENANT, "approval-1").model_copy(update={"proposal": proposal(tenant=tenant)})
        ),
    ],
)
def test_another_tenants_things_get_the_answer_of_things_that_do_not_exist(
    filled_ledger: SqlLedger, ask: Callable[[SqlLedger, str], object]
) -> None:
    before = audit_types(filled_ledger)
    with pytest.raises(CountersignError) as of_another:
        ask(filled_ledger, OTHER)
    assert (audit_types(filled_ledger), audit_types(filled_ledger, OTHER)) == (before, [])
    with pytest.raises(CountersignError) as of_nobody:
        ask(filled_ledger, "nobody")
    assert type(of_another.value) is type(of_nobody.value)
    assert of_another.value.message.replace(OTHER, "nobody") == of_nobody.value.message


@pytest.mark.guarantee("G09")
@pytest.mark.parametrize(
    "ask",
    [
        lambda ledger, tenant: ledger.operations.list(tenant),
        lambda ledger, tenant: ledger.approvals.current(tenant, OPERATION),
        lambda ledger, tenant: ledger.approvals.of_operation(tenant, OPERATION),
        lambda ledger, tenant: ledger.approvals.targets(tenant),
        lambda ledger, tenant: ledger.approvals.rejection_like(action(tenant=tenant), NOW),
        lambda ledger, tenant: ledger.executions.get(tenant, OPERATION),
        lambda ledger, tenant: ledger.executions.at_target(tenant, "public/report"),
        lambda ledger, tenant: ledger.directory.person(tenant, "bob"),
        lambda ledger, tenant: ledger.directory.persons(tenant),
        lambda ledger, tenant: ledger.directory.policies(tenant),
        lambda ledger, tenant: ledger.directory.adopted(tenant),
        lambda ledger, tenant: ledger.directory.set_up_open(tenant),
        lambda ledger, tenant: ledger.drafts.written(tenant, OPERATION, 1),
        lambda ledger, tenant: ledger.drafts.feedback(tenant, OPERATION, 1),
        lambda ledger, tenant: ledger.drafts.authors(tenant, OPERATION),
        lambda ledger, tenant: ledger.escalations.of_operation(tenant, "op-2"),
        lambda ledger, tenant: ledger.escalations.waiting(tenant),
        lambda ledger, tenant: ledger.questions.current(tenant, ASKING),
        lambda ledger, tenant: ledger.questions.of_operation(tenant, ASKING),
        lambda ledger, tenant: ledger.questions.pending(tenant),
        lambda ledger, tenant: ledger.model_calls.of_operation(tenant, ASKING),
        lambda ledger, tenant: ledger.model_calls.of_tenant(tenant),
        lambda ledger, tenant: ledger.model_calls.raises(tenant, ASKING),
        lambda ledger, tenant: ledger.progress.since(tenant, ASKING, 0),
        lambda ledger, tenant: ledger.freezes.of_tenant(tenant),
        lambda ledger, tenant: ledger.outbox.unaddressed(tenant, 10),
        lambda ledger, tenant: ledger.outbox.take(tenant, NOW, NOW, 10),
        lambda ledger, tenant: ledger.outbox.deliveries(tenant),
        lambda ledger, tenant: list(ledger.audit.records(tenant)),
    ],
)
def test_what_is_asked_of_another_tenant_is_as_empty_as_of_nobody(
    filled_ledger: SqlLedger, ask: Callable[[SqlLedger, str], object]
) -> None:
    assert ask(filled_ledger, OTHER) == ask(filled_ledger, "nobody")
    assert ask(filled_ledger, OTHER) in ([], {}, (), None, True)


@pytest.mark.guarantee("G09")
def test_two_tenants_may_use_the_same_names_and_see_only_their_own(ledger: SqlLedger) -> None:
    found(ledger, OTHER)
    granted(ledger)
    granted(ledger, proposal(tenant=OTHER, content=b"theirs"))
    apply(ledger, standing(person("bob", "expert", tenant=OTHER)), tenant=OTHER)
    assert ledger.directory.persons(TENANT)["bob"].roles == {"reviewer"}
    assert [one.tenant for one in ledger.operations.list(TENANT)] == [TENANT]
    assert ledger.approvals.get(OTHER, "approval-1").proposal.tenant == OTHER
    assert {record.tenant for record in ledger.audit.records(TENANT)} == {TENANT}


@pytest.mark.guarantee("G09")
@pytest.mark.guarantee("G47")
def test_a_statement_of_another_tenant_moves_nothing_here(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    ledger.approvals.open(proposal(), "run-1", VIEW, NOW, ROOM)
    foreign = statement(proposal(tenant=OTHER), "bob")
    assert decide(ledger, foreign, signer=person("bob", tenant=OTHER)).ruling == Ruling.NOTHING_PENDING
    assert ledger.approvals.get(TENANT, "approval-1").status == ApprovalStatus.PENDING
    assert audit_types(ledger, OTHER) == ["decision.refused"]


@pytest.mark.guarantee("G09")
@pytest.mark.guarantee("G41")
def test_what_waits_in_one_tenant_takes_no_room_from_another(ledger: SqlLedger) -> None:
    fill(ledger, TENANT)
    fill(ledger, OTHER)
    ledger.operations.register(operation("op-5", tenant=OTHER))
    waiting = len(ledger.questions.pending(OTHER)) + len(ledger.approvals.pending(OTHER))
    ask(ledger, tenant=OTHER, operation="op-5", room=waiting + 1)
    assert ledger.progress.forget(OTHER, ASKING) == len(ledger.progress.since(TENANT, ASKING, 0)) == 1


@pytest.fixture
def walled_ledger(postgres_server: PostgresServer, checkpoints: Path) -> SqlLedger:
    """Two tenants with a row in every table of PostgreSQL; SQLite has no such wall."""
    ledger = opened(postgres_server.create_database(with_tables=True), checkpoints)
    for tenant in (TENANT, OTHER):
        fill(ledger, tenant)
    return ledger


@pytest.mark.guarantee("G09")
def test_a_query_that_forgets_the_filter_sees_nothing_of_another_tenant(walled_ledger: SqlLedger) -> None:
    with walled_ledger._store.reading(TENANT) as connection:
        seen = {table.name: set(connection.execute(select(table.c.tenant)).scalars()) for table in walled}
    assert seen == {table.name: {TENANT} for table in walled}
    walled_ledger.close()


@pytest.mark.guarantee("G09")
def test_a_change_that_forgets_the_filter_changes_nothing_of_another_tenant(walled_ledger: SqlLedger) -> None:
    with walled_ledger._store.writing(TENANT) as writing:
        changed = writing.connection.execute(update(persons).values(active=False)).rowcount
        deleted = writing.connection.execute(text("DELETE FROM votes")).rowcount
    assert (changed, deleted) == (len(founders()), 1)
    assert all(one.active for one in walled_ledger.directory.persons(OTHER).values())
    assert len(walled_ledger.approvals.get(OTHER, "approval-1").votes) == 1
    walled_ledger.close()


@pytest.mark.guarantee("G09")
def test_a_row_of_another_tenant_is_not_taken(walled_ledger: SqlLedger) -> None:
    sha256 = sha256_hex(b"planted")
    with pytest.raises(Unavailable, match="another tenant's"), walled_ledger._store.writing(TENANT) as writing:
        writing.connection.execute(documents.insert().values(tenant=OTHER, sha256=sha256, data=b"planted"))
    with pytest.raises(NotFound):
        walled_ledger.documents.get(OTHER, sha256)
    with pytest.raises(Unavailable, match="another tenant's"), walled_ledger._store.writing(TENANT) as writing:
        writing.connection.execute(update(documents).values(tenant=OTHER))
    walled_ledger.close()


@pytest.mark.guarantee("G09")
def test_whoever_names_no_tenant_sees_nothing(walled_ledger: SqlLedger) -> None:
    """Nor does the next transaction on a connection still have the tenant of the one before."""
    with walled_ledger._store.engine.connect() as connection:
        seen = [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in walled]
    assert seen == [0] * len(walled)
    walled_ledger.close()


@pytest.mark.guarantee("G09")
def test_every_table_that_holds_anything_of_a_tenant_is_walled_for_its_owner_too(walled_ledger: SqlLedger) -> None:
    with walled_ledger._store.engine.connect() as connection:
        names = set(inspect(connection).get_table_names())
        forced = connection.execute(
            text("SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity")
        ).scalars()
        assert names - set(forced) == {"alembic_version", "installation", "tenants"}
    assert {table.name for table in metadata.sorted_tables if table not in walled} == {"installation", "tenants"}
    assert [*tenants.c] == [tenants.c.name]
    walled_ledger.close()


async def test_the_agents_checkpoints_which_have_no_wall_lie_apart_from_the_ledgers_tables(
    postgres_url: Callable[[], str], checkpoints: Path
) -> None:
    url = postgres_url()
    ledger = opened(url, checkpoints)
    async with checkpoints_at(url, THREAD_KEYS).open("thread-1", 1, Draft):
        pass
    with ledger._store.engine.connect() as connection:
        assert set(inspect(connection).get_table_names()) == {*metadata.tables, "alembic_version"}
        apart = inspect(connection).get_table_names(schema="agent_threads")
        assert {"checkpoints", "checkpoint_writes", "checkpoint_attempts"} <= set(apart)
    ledger.close()


@pytest.mark.guarantee("G09")
def test_a_user_for_whom_the_wall_does_not_hold_is_known(ledger: SqlLedger, ledger_url: str, checkpoints: Path) -> None:
    assert ledger.tenants_walled()
    as_root = opened(as_superuser(ledger_url), checkpoints)
    assert as_root.tenants_walled() == ledger_url.startswith("sqlite")
    as_root.close()


@pytest.mark.guarantee("G09")
def test_a_table_whose_wall_was_taken_down_is_known(walled_ledger: SqlLedger) -> None:
    with walled_ledger._store.engine.begin() as connection:
        connection.execute(text("ALTER TABLE votes NO FORCE ROW LEVEL SECURITY"))
    assert not walled_ledger.tenants_walled()
    walled_ledger.close()
