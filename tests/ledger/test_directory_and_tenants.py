"""Persons and keys, and the wall between tenants: another tenant's is as if it were not there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.decision import Ruling
from countersign.domain.errors import Conflict, CountersignError, InputRefused, NotFound
from countersign.domain.proposal import ApprovalStatus
from countersign.domain.state import State
from countersign.ledger import SqlLedger
from tests.ledger.builders import (
    NOW,
    OPERATION,
    TENANT,
    VIEW,
    audit_types,
    claim,
    decide,
    draft,
    granted,
    key,
    operation,
    person,
    proposal,
    statement,
)

LATER = NOW + timedelta(days=1)
OTHER = "bolt"


def test_a_person_is_put_and_changed_and_keeps_the_keys(ledger: SqlLedger) -> None:
    for _ in range(2):
        ledger.directory.put_person(person("bob", "reviewer"), "setup", NOW)
        ledger.directory.add_key(TENANT, "bob", key("bob-1"), "setup", NOW)
    ledger.directory.put_person(person("bob", "reviewer", "expert"), "rita", NOW)
    stored = ledger.directory.person(TENANT, "bob")
    assert stored == person("bob", "reviewer", "expert").model_copy(update={"keys": (key("bob-1"),)})
    assert ledger.directory.persons(TENANT) == {"bob": stored}
    assert audit_types(ledger) == [
        "directory.person_changed", "directory.key_added", "directory.person_changed"
    ]  # fmt: skip


def test_a_revoked_key_stays_known_and_is_good_no_more(ledger: SqlLedger) -> None:
    ledger.directory.put_person(person("bob"), "setup", NOW)
    ledger.directory.add_key(TENANT, "bob", key("bob-1"), "setup", NOW)
    ledger.directory.revoke_key(TENANT, "bob", "bob-1", "rita", LATER)
    ledger.directory.revoke_key(TENANT, "bob", "bob-1", "rita", LATER + timedelta(days=1))
    stored = ledger.directory.person(TENANT, "bob")
    assert stored is not None
    revoked = stored.key("bob-1")
    assert revoked is not None
    assert revoked.good_at(LATER - timedelta(seconds=1))
    assert not revoked.good_at(LATER)
    assert audit_types(ledger).count("directory.key_revoked") == 1
    with pytest.raises(Conflict, match="bob-1"):
        ledger.directory.add_key(TENANT, "bob", key("bob-1"), "rita", LATER)


def test_a_key_id_belongs_to_one_person(ledger: SqlLedger) -> None:
    for name in ("bob", "carl"):
        ledger.directory.put_person(person(name), "setup", NOW)
    ledger.directory.add_key(TENANT, "bob", key("k-1"), "setup", NOW)
    with pytest.raises(Conflict, match="k-1"):
        ledger.directory.add_key(TENANT, "carl", key("k-1"), "setup", NOW)
    with pytest.raises(NotFound, match="k-1"):
        ledger.directory.revoke_key(TENANT, "carl", "k-1", "setup", NOW)
    with pytest.raises(NotFound, match="nobody"):
        ledger.directory.add_key(TENANT, "nobody", key("k-2"), "setup", NOW)


def test_every_tenant_with_persons_or_records_is_known(ledger: SqlLedger) -> None:
    ledger.directory.put_person(person("bob", tenant="c.c"), "setup", NOW)
    ledger.audit.append("a-a", "note.made", "", "rita", {}, NOW)
    ledger.audit.append("b_b", "note.made", "", "rita", {}, NOW)
    assert ledger.directory.tenants() == ["a-a", "b_b", "c.c"]


def test_a_tenant_id_outside_the_pattern_is_refused_before_anything_is_written(ledger: SqlLedger) -> None:
    with pytest.raises(InputRefused, match=r"\.\./acme"):
        ledger.audit.append("../acme", "note.made", "", "rita", {}, NOW)
    assert ledger.directory.tenants() == []


@pytest.mark.guarantee("G09")
@pytest.mark.parametrize(
    "ask",
    [
        lambda ledger, tenant: ledger.operations.get(tenant, OPERATION),
        lambda ledger, tenant: ledger.operations.move(tenant, OPERATION, State.FAILED, "mine now", NOW),
        lambda ledger, tenant: ledger.drafts.get(tenant, OPERATION, 1),
        lambda ledger, tenant: ledger.drafts.save(tenant, OPERATION, 2, draft(), "offline", NOW),
        lambda ledger, tenant: ledger.drafts.save_checks(tenant, OPERATION, 1, [], NOW),
        lambda ledger, tenant: ledger.approvals.get(tenant, "approval-1"),
        lambda ledger, tenant: ledger.approvals.settle(tenant, "approval-1", ApprovalStatus.CANCELLED, NOW),
        lambda ledger, tenant: ledger.documents.get(tenant, sha256_hex(b"secret")),
        lambda ledger, tenant: ledger.directory.revoke_key(tenant, "bob", "bob-1", "rita", NOW),
        lambda ledger, tenant: claim(ledger, granted(ledger).model_copy(update={"proposal": proposal(tenant=tenant)})),
    ],
)
def test_another_tenants_things_get_the_answer_of_things_that_do_not_exist(
    ledger: SqlLedger, ask: Callable[[SqlLedger, str], object]
) -> None:
    granted(ledger)
    ledger.documents.put(TENANT, b"secret")
    ledger.drafts.save(TENANT, OPERATION, 1, draft(), "offline", NOW)
    ledger.directory.put_person(person("bob"), "setup", NOW)
    ledger.directory.add_key(TENANT, "bob", key("bob-1"), "setup", NOW)
    before = audit_types(ledger)
    with pytest.raises(NotFound) as of_another:
        ask(ledger, OTHER)
    assert (audit_types(ledger), audit_types(ledger, OTHER)) == (before, [])
    with pytest.raises(CountersignError) as of_nobody:
        ask(ledger, "nobody")
    assert of_another.value.message == of_nobody.value.message


@pytest.mark.guarantee("G09")
def test_two_tenants_may_use_the_same_names_and_see_only_their_own(ledger: SqlLedger) -> None:
    granted(ledger)
    granted(ledger, proposal(tenant=OTHER, content=b"theirs"))
    ledger.directory.put_person(person("bob", tenant=OTHER), "setup", NOW)
    assert ledger.directory.person(TENANT, "bob") is None
    assert ledger.directory.persons(TENANT) == {}
    assert [one.tenant for one in ledger.operations.list(TENANT)] == [TENANT]
    assert ledger.approvals.get(OTHER, "approval-1").proposal.tenant == OTHER
    assert {record.tenant for record in ledger.audit.records(TENANT)} == {TENANT}
    assert ledger.executions.get(OTHER, OPERATION) is None
    assert ledger.approvals.current("nobody", OPERATION) is None


@pytest.mark.guarantee("G09")
@pytest.mark.guarantee("G47")
def test_a_statement_of_another_tenant_moves_nothing_here(ledger: SqlLedger) -> None:
    ledger.operations.register(operation())
    ledger.approvals.open(proposal(), "run-1", VIEW, NOW)
    foreign = statement(proposal(tenant=OTHER), "bob")
    assert decide(ledger, foreign, signer=person("bob", tenant=OTHER)).ruling == Ruling.NOTHING_PENDING
    assert ledger.approvals.get(TENANT, "approval-1").status == ApprovalStatus.PENDING
    assert audit_types(ledger, OTHER) == ["decision.refused"]
