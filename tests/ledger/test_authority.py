"""Who may do what: the first set-up, its end, and the governed changes afterwards (G13); on both engines."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from countersign.domain.administration import ADMINISTRATION, DirectoryChange, PolicyChange
from countersign.domain.audit import AuditRecord
from countersign.domain.directory import Limit
from countersign.domain.errors import (
    ConfigurationRefused,
    CountersignError,
    Drifted,
    InputRefused,
    NotAuthorised,
)
from countersign.ledger import SqlLedger
from countersign.ledger.authority import load_authority
from countersign.ports import Adopted
from tests.ledger.builders import NOW, TENANT, audit_types, operation, person
from tests.ledger.founding import (
    LIMIT,
    POLICIES,
    added,
    apply,
    change_action,
    enrolment,
    founders,
    key,
    policy,
    revoked,
    standing,
)

LATER = NOW + timedelta(days=1)
OTHER = "globex"


def records(ledger: SqlLedger, kind: str, tenant: str = TENANT) -> list[AuditRecord]:
    return [record for record in ledger.audit.records(tenant) if record.type == kind]


def set_up(ledger: SqlLedger, *changes: DirectoryChange, tenant: str = TENANT) -> None:
    for change in changes:
        ledger.directory.set_up(tenant, change, "setup", NOW)


@pytest.mark.guarantee("G13")
def test_the_first_set_up_changes_the_directory_directly_and_every_record_says_so(empty_ledger: SqlLedger) -> None:
    assert empty_ledger.directory.set_up_open(TENANT)
    set_up(empty_ledger, enrolment(person("bob", limits=(LIMIT,))), standing(person("bob", "reviewer", "expert")))
    stored = empty_ledger.directory.person(TENANT, "bob")
    assert stored == person("bob", "reviewer", "expert", keys=(key("bob-1"),))
    assert empty_ledger.directory.persons(TENANT) == {"bob": stored}
    kept = list(empty_ledger.audit.records(TENANT))
    assert [record.type for record in kept] == [
        "directory.person_changed", "directory.key_added", "directory.person_changed"
    ]  # fmt: skip
    assert {record.detail["basis"] for record in kept} == {"first_set_up"}
    assert kept[0].detail["limits"] == [LIMIT.model_dump(mode="json")]
    assert kept[1].detail["public_key"] == key("bob-1").public_key


def test_what_is_there_already_is_set_up_again_without_a_record(empty_ledger: SqlLedger) -> None:
    set_up(empty_ledger, enrolment(person("bob")))
    before = list(empty_ledger.audit.records(TENANT))
    set_up(empty_ledger, standing(person("bob")))
    assert list(empty_ledger.audit.records(TENANT)) == before


def test_a_revoked_key_stays_known_and_is_good_no_more(empty_ledger: SqlLedger) -> None:
    set_up(empty_ledger, enrolment(person("bob")))
    for moment in (LATER, LATER + timedelta(days=1)):
        empty_ledger.directory.set_up(TENANT, revoked("bob", "bob-1"), "rita", moment)
    stored = empty_ledger.directory.persons(TENANT)["bob"].key("bob-1")
    assert stored is not None
    assert stored.good_at(LATER - timedelta(seconds=1))
    assert not stored.good_at(LATER)
    assert len(records(empty_ledger, "directory.key_revoked")) == 1


@pytest.mark.guarantee("G04")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (added("carl", key("bob-1")), "key id bob-1 is taken"),
        (added("carl", key("carl-2", public_key=key("bob-1").public_key)), "registered already"),
        (added("bob", key("bob-2", public_key=key("bob-1").public_key)), "registered already"),
        (added("nobody", key("k-1")), "nobody is not in the directory"),
        (revoked("carl", "bob-1"), "carl has no key bob-1"),
    ],
)
def test_a_change_with_problems_is_refused_whole(empty_ledger: SqlLedger, change: DirectoryChange, words: str) -> None:
    set_up(empty_ledger, enrolment(person("bob"), person("carl")))
    before = empty_ledger.directory.authority(TENANT), list(empty_ledger.audit.records(TENANT))
    with_dora = change.model_copy(update={"persons": standing(person("dora")).persons})
    with pytest.raises(InputRefused, match=words):
        set_up(empty_ledger, with_dora)
    assert (empty_ledger.directory.authority(TENANT), list(empty_ledger.audit.records(TENANT))) == before


@pytest.mark.guarantee("G04")
def test_the_table_itself_holds_one_person_per_private_key(ledger: SqlLedger, database: Engine) -> None:
    with database.begin() as connection, pytest.raises(Exception, match=r"(?i)unique"):
        connection.execute(text("UPDATE keys SET public_key = 'the same'"))


def test_the_same_key_may_be_registered_in_two_tenants(empty_ledger: SqlLedger) -> None:
    for tenant in (TENANT, OTHER):
        set_up(empty_ledger, enrolment(person("bob", tenant=tenant)), tenant=tenant)
    assert empty_ledger.directory.persons(OTHER)["bob"].keys == (key("bob-1"),)


@pytest.mark.guarantee("G13")
def test_while_the_set_up_is_open_nothing_can_be_asked_and_no_policy_is_in_force(empty_ledger: SqlLedger) -> None:
    set_up(empty_ledger, enrolment(*founders()))
    with pytest.raises(NotAuthorised, match="first set-up is open") as refused:
        empty_ledger.operations.register(operation())
    assert refused.value.reason == "set_up_open"
    assert empty_ledger.operations.list(TENANT) == []
    assert empty_ledger.directory.policies(TENANT) == {}
    assert empty_ledger.directory.adopted(TENANT) == {}


@pytest.mark.guarantee("G13")
def test_policies_are_part_of_the_set_up_and_whoever_closes_it_chooses_none(empty_ledger: SqlLedger) -> None:
    set_up(empty_ledger, enrolment(*founders()))
    empty_ledger.directory.adopt(TENANT, [policy("report", "anyone", 2)], "operator", NOW)
    empty_ledger.directory.adopt(TENANT, POLICIES, "operator", NOW)
    empty_ledger.directory.adopt(TENANT, POLICIES, "operator", LATER)
    assert empty_ledger.directory.close_set_up(TENANT, "rita", LATER)
    assert not empty_ledger.directory.set_up_open(TENANT)
    assert empty_ledger.directory.set_up_open(OTHER)
    assert empty_ledger.directory.policies(TENANT) == {one.policy: one for one in POLICIES}
    assert not empty_ledger.directory.close_set_up(TENANT, "eve", LATER)
    with pytest.raises(NotAuthorised):
        empty_ledger.directory.adopt(TENANT, [policy("report", "anyone", 3)], "eve", LATER)
    assert empty_ledger.directory.policies(TENANT) == {one.policy: one for one in POLICIES}
    adopted = records(empty_ledger, "policy.adopted")
    assert [record.detail["label"] for record in adopted][1:] == [one.label() for one in POLICIES]
    closed = records(empty_ledger, "set_up.closed")
    assert [(record.subject, record.detail) for record in closed] == [("rita", {"basis": "first_set_up"})]
    empty_ledger.operations.register(operation())


@pytest.mark.guarantee("G13")
def test_of_many_that_close_the_set_up_at_once_one_does(empty_ledger: SqlLedger) -> None:
    set_up(empty_ledger, enrolment(*founders()))
    empty_ledger.directory.adopt(TENANT, POLICIES, "operator", NOW)
    with ThreadPoolExecutor(8) as threads:
        closed = threads.map(lambda _: empty_ledger.directory.close_set_up(TENANT, "rita", NOW), range(8))
    assert sorted(closed) == [False] * 7 + [True]
    assert len(records(empty_ledger, "set_up.closed")) == 1


@pytest.mark.guarantee("G13")
@pytest.mark.parametrize("without", ["a policy", "enough admins", "good keys"])
def test_a_tenant_that_could_never_change_itself_is_not_closed(empty_ledger: SqlLedger, without: str) -> None:
    set_up(empty_ledger, enrolment(*founders()))
    if without == "enough admins":
        set_up(empty_ledger, standing(person("ada", "reviewer")))
    if without == "good keys":
        set_up(empty_ledger, revoked("ada", "ada-1"))
    empty_ledger.directory.adopt(TENANT, POLICIES[:1] if without == "a policy" else POLICIES, "operator", NOW)
    with pytest.raises(InputRefused):
        empty_ledger.directory.close_set_up(TENANT, "rita", NOW)
    assert empty_ledger.directory.set_up_open(TENANT)


@pytest.mark.guarantee("G13")
def test_no_policy_that_lets_one_person_change_authority_is_put_in_force(empty_ledger: SqlLedger) -> None:
    set_up(empty_ledger, enrolment(*founders()))
    alone = policy(ADMINISTRATION, "admin", asked_by="admin")
    with pytest.raises(ConfigurationRefused, match="two persons"):
        empty_ledger.directory.adopt(TENANT, [alone], "operator", NOW)
    assert empty_ledger.directory.policies(TENANT) == {}


@pytest.mark.guarantee("G13")
@pytest.mark.parametrize("change", [enrolment(person("eve", "admin")), revoked("bob", "bob-1"), added("bob", key("x"))])
def test_after_the_set_up_nothing_is_changed_directly(ledger: SqlLedger, change: DirectoryChange) -> None:
    before = ledger.directory.authority(TENANT)
    with pytest.raises(NotAuthorised, match="ask for the change as an operation of the case 'administration'"):
        ledger.directory.set_up(TENANT, change, "eve", LATER)
    assert ledger.directory.authority(TENANT) == before
    assert audit_types(ledger) == []


@pytest.mark.guarantee("G13")
def test_a_governed_change_is_made_once_and_recorded_with_its_operation(ledger: SqlLedger) -> None:
    higher = Limit.model_validate({"each": "9000.00 EUR"})
    change = DirectoryChange(
        persons=standing(person("bob", limits=(higher,)), person("fay")).persons,
        keys_added=added("fay", key("fay-1")).keys_added,
        keys_revoked=revoked("carl", "carl-1").keys_revoked,
    )
    action = apply(ledger, change, now=LATER)
    ledger.directory.apply(TENANT, change, action, LATER + timedelta(hours=1))
    persons = ledger.directory.persons(TENANT)
    assert persons["bob"].limits == (higher,)
    assert persons["bob"].keys == (key("bob-1"),)
    assert persons["fay"].keys == (key("fay-1"),)
    assert persons["carl"].keys == (key("carl-1", revoked_at=LATER),)
    made = [record for record in ledger.audit.records(TENANT) if record.operation == "change-1"]
    assert [record.type for record in made] == [
        "directory.person_changed", "directory.key_revoked", "directory.person_changed", "directory.key_added"
    ]  # fmt: skip
    assert {(record.detail["basis"], record.subject) for record in made} == {("change-1", "gateway")}
    assert ledger.directory.applied(TENANT, action.idempotency_key())
    assert not ledger.directory.applied(OTHER, action.idempotency_key())


@pytest.mark.guarantee("G13")
def test_a_governed_policy_change_takes_the_place_of_the_policy_of_its_name(ledger: SqlLedger) -> None:
    stricter = policy("report", "reviewer", version=2, approvals=2)
    apply(ledger, PolicyChange(policy=stricter))
    assert ledger.directory.policies(TENANT) == {"report": stricter, ADMINISTRATION: POLICIES[1]}
    adopted = records(ledger, "policy.adopted")[-1]
    assert (adopted.operation, adopted.detail["basis"]) == ("change-1", "change-1")
    assert adopted.detail["label"] == stricter.label()


@pytest.mark.guarantee("G13")
def test_each_policy_in_force_says_since_when_and_by_what_right(ledger: SqlLedger) -> None:
    """Of one name it is the highest version, as a number: 10 is above 9."""
    for version in range(2, 11):
        change = PolicyChange(policy=policy("report", "reviewer", version))
        apply(ledger, change, f"change-{version}", now=NOW + timedelta(hours=version))
    assert dict(ledger.directory.adopted(TENANT)) == {
        ADMINISTRATION: Adopted(policy=POLICIES[1], since=NOW, basis="first_set_up"),
        "report": Adopted(policy=policy("report", "reviewer", 10), since=NOW + timedelta(hours=10), basis="change-10"),
    }


@pytest.mark.guarantee("G13")
@pytest.mark.guarantee("G14")
@pytest.mark.parametrize(
    ("change", "meanwhile"),
    [
        (standing(person("bob", "admin")), standing(person("bob", "intern"))),
        (added("bob", key("bob-2")), revoked("bob", "bob-1")),
        (PolicyChange(policy=policy("report", "reviewer", 3)), PolicyChange(policy=policy("report", "expert", 2))),
    ],
)
def test_a_change_of_something_that_was_changed_meanwhile_is_void(
    ledger: SqlLedger, change: DirectoryChange | PolicyChange, meanwhile: DirectoryChange | PolicyChange
) -> None:
    action = change_action(ledger, change, "change-2", TENANT)
    apply(ledger, meanwhile)
    before = ledger.directory.authority(TENANT), audit_types(ledger)
    with pytest.raises(Drifted) as drifted:
        ledger.directory.apply(TENANT, change, action, LATER)
    assert drifted.value.expected == action.evidence_hash
    assert drifted.value.found == change_action(ledger, change, "change-2", TENANT).evidence_hash
    assert (ledger.directory.authority(TENANT), audit_types(ledger)) == before
    assert not ledger.directory.applied(TENANT, action.idempotency_key())


@pytest.mark.guarantee("G13")
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (standing(person("ada", "reviewer")), InputRefused, "admin"),
        (added("carl", key("bob-1")), InputRefused, "key id bob-1 is taken"),
        (PolicyChange(policy=policy("report", "reviewer", 1)), InputRefused, "version 1 does not follow"),
        (PolicyChange(policy=policy("report", "reviewer", 3)), InputRefused, "version 3 does not follow"),
        (PolicyChange(policy=policy(ADMINISTRATION, "admin", 2)), InputRefused, "two persons"),
    ],
)
def test_a_governed_change_that_must_not_be_is_refused_whatever_was_signed(
    ledger: SqlLedger, change: DirectoryChange | PolicyChange, error: type[CountersignError], words: str
) -> None:
    before = ledger.directory.authority(TENANT)
    with pytest.raises(error, match=words):
        apply(ledger, change)
    assert ledger.directory.authority(TENANT) == before
    assert audit_types(ledger) == []


@pytest.mark.guarantee("G13")
@pytest.mark.parametrize(
    "forge",
    [
        lambda action: action.model_copy(update={"tenant": OTHER}),
        lambda action: action.model_copy(update={"content_hash": action.evidence_hash}),
    ],
)
def test_an_action_of_another_change_or_tenant_changes_nothing(ledger: SqlLedger, forge: Callable[..., object]) -> None:
    change = standing(person("bob", "admin"))
    action = change_action(ledger, change, "change-1", TENANT)
    with pytest.raises(NotAuthorised, match="not of this change"):
        ledger.directory.apply(TENANT, change, forge(action), NOW)  # type: ignore[arg-type]
    assert audit_types(ledger) == []


@pytest.mark.guarantee("G13")
def test_of_changes_at_once_each_is_made_on_what_it_rests_on_or_void(ledger: SqlLedger) -> None:
    """Two that rest on the same state cannot both be made; those that do not touch each other all are."""
    changes = [standing(person("bob", f"role_{number}")) for number in range(4)]
    changes += [standing(person(f"new-{number}")) for number in range(4)]
    actions = [change_action(ledger, change, f"change-{at}", TENANT) for at, change in enumerate(changes)]

    def make(at: int) -> str:
        try:
            ledger.directory.apply(TENANT, changes[at], actions[at], NOW)
        except Drifted:
            return "void"
        return "made"

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(make, range(8)))
    assert sorted(made[:4]) == ["made", "void", "void", "void"]
    assert made[4:] == ["made"] * 4
    assert ledger.directory.persons(TENANT)["bob"].roles == {f"role_{made.index('made')}"}
    ledger.audit.verify(TENANT)


def test_authority_is_read_as_it_is_at_one_moment(ledger: SqlLedger) -> None:
    with ledger._store.reading(TENANT) as connection:
        before = load_authority(connection, TENANT)
        apply(ledger, standing(person("bob", "expert")))
        apply(ledger, PolicyChange(policy=policy("report", "expert", 2)), "change-2")
        assert load_authority(connection, TENANT) == before
    assert ledger.directory.authority(TENANT) != before
