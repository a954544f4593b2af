"""Changes of authority as values: what they make of the directory, and what must not be proposed (G13)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from countersign.domain.action import Action
from countersign.domain.administration import (
    AdministrationRequest,
    Authority,
    Change,
    DirectoryChange,
    PolicyChange,
    UnfreezeChange,
    changed,
    content,
    present,
    problems,
    summary,
    target,
    tool,
)
from countersign.domain.canonical import sha256_hex
from countersign.domain.directory import Person, Standing
from countersign.domain.freeze import Freeze
from countersign.domain.policy import AfterRejection, Terms
from tests.domain.samples import NOW, a_key, a_person, a_policy, administration, an_action, by_people, by_rule
from tests.domain.weak_keys import NEUTRAL, ORDER_8, text, twin_of

pytestmark = pytest.mark.guarantee("G13")

HOUR, DAY, TICK = timedelta(hours=1), timedelta(days=1), timedelta(microseconds=1)
LONGEST = 73 * HOUR
"""From asking to the last moment of execution, under the policy of the samples."""
REPORT = a_policy(by_rule("all", {"tool": "publish_report"}), version=3)


def an_admin(name: str, *more: str) -> Person:
    return a_person(name, "admin", *more, keys=[a_key(name)])


PERSONS = {
    one.id: one for one in [an_admin("ada"), an_admin("ben"), an_admin("cyd"), a_person("bob", keys=[a_key("bob")])]
}
AUTHORITY = Authority(tenant="acme", persons=PERSONS, policies={"administration": administration(), "report": REPORT})


def a_change(**fields: Any) -> DirectoryChange:
    return DirectoryChange.model_validate(fields)


def standing(person: str, *roles: str, active: bool = True) -> dict[str, Any]:
    return {"person": person, "standing": {"roles": roles, "active": active}}


def key_for(person: str, name: str = "", **changes: Any) -> dict[str, Any]:
    return {"person": person, "key": a_key(name or f"{person}-new").model_copy(update=changes)}


def test_a_person_is_added_changed_and_given_keys_in_one_go() -> None:
    change = a_change(
        persons=[standing("dora", "reviewer"), standing("bob", "lawyer", active=False)],
        keys_added=[key_for("dora"), key_for("ben")],
        keys_revoked=[{"person": "bob", "key_id": "bob-1"}],
    )

    after = changed(AUTHORITY, change, NOW)

    assert problems(change, AUTHORITY, NOW) == ()
    assert (after["dora"].tenant, after["dora"].roles, after["dora"].has_good_key(NOW)) == (
        "acme",
        frozenset({"reviewer"}),
        True,
    )
    assert (after["bob"].standing, after["bob"].has_good_key(NOW)) == (
        Standing(roles=frozenset({"lawyer"}), active=False), False
    )  # fmt: skip
    assert [key.id for key in after["ben"].keys] == ["ben-1", "ben-new-1"]
    assert (after["ada"], after["cyd"]) == (PERSONS["ada"], PERSONS["cyd"])
    assert AUTHORITY.persons["bob"].active


@pytest.mark.parametrize(("earlier", "from_then_on"), [(None, NOW), (NOW - HOUR, NOW - HOUR), (NOW + HOUR, NOW)])
def test_a_key_is_revoked_from_the_change_on_and_never_again_later(earlier: Any, from_then_on: Any) -> None:
    bob = a_person("bob", keys=[a_key("bob").model_copy(update={"revoked_at": earlier}), a_key("bobs-other")])
    authority = AUTHORITY.model_copy(update={"persons": {**PERSONS, "bob": bob}})

    after = changed(authority, a_change(keys_revoked=[{"person": "bob", "key_id": "bob-1"}]), NOW)

    assert [key.revoked_at for key in after["bob"].keys] == [from_then_on, None]


PROBLEMS = [
    # the change, what is wrong with it
    ({}, "the change changes nothing"),
    ({"persons": [standing("bob", "lawyer"), standing("bob", "admin")]}, "bob stands twice"),
    ({"keys_added": [key_for("nobody")]}, "nobody is not in the directory"),
    ({"keys_added": [key_for("bob", "ada")]}, "key id ada-1 is taken"),
    ({"keys_added": [key_for("bob", "x"), key_for("ada", "x")]}, "key id x-1 is taken"),
    ({"keys_added": [key_for("bob", public_key=PERSONS["ada"].keys[0].public_key)]}, "registered already"),
    ({"keys_added": [key_for("bob", "x"), key_for("ada", "y", public_key=a_key("x").public_key)]}, "already"),
    ({"keys_added": [key_for("bob", public_key="AAAA")]}, "public key for bob is no Ed25519 public key"),
    ({"keys_added": [key_for("bob", public_key="A" * 42 + "B")]}, "bob is no Ed25519 public key in base64url"),
    ({"keys_revoked": [{"person": "bob", "key_id": "bob-2"}]}, "bob has no key bob-2"),
    ({"keys_revoked": [{"person": "bob", "key_id": "ada-1"}]}, "bob has no key ada-1"),
    ({"keys_revoked": [{"person": "nobody", "key_id": "ada-1"}]}, "nobody has no key ada-1"),
    ({"persons": [standing("ada", "reviewer")]}, "nobody could change the directory any more"),
    ({"persons": [standing("ada", "admin", active=False)]}, "nobody could change the directory any more"),
    ({"keys_revoked": [{"person": "cyd", "key_id": "cyd-1"}]}, "nobody could change the directory any more"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "problem"), PROBLEMS, ids=[problem for _, problem in PROBLEMS])
def test_a_change_that_must_not_be_made_is_not_even_proposed(fields: dict[str, Any], problem: str) -> None:
    assert any(problem in found for found in problems(a_change(**fields), AUTHORITY, NOW))


def test_a_revoked_key_does_not_come_back_under_another_id() -> None:
    """Whoever stole the private half would else be let in again by a new entry for it."""
    revoke = a_change(keys_revoked=[{"person": "bob", "key_id": "bob-1"}])
    later = AUTHORITY.model_copy(update={"persons": changed(AUTHORITY, revoke, NOW)})
    again = a_change(keys_added=[key_for("bob", public_key=PERSONS["bob"].keys[0].public_key)])

    assert any("registered already" in found for found in problems(again, later, NOW))


def a_policy_change(**changes: Any) -> PolicyChange:
    return PolicyChange(policy=administration(version=2, **changes))


POLICY_PROBLEMS = [
    (PolicyChange(policy=REPORT), "version 3 does not follow the one in force; make it 4"),
    (PolicyChange(policy=REPORT.model_copy(update={"version": 2})), "version 2 does not follow"),
    (PolicyChange(policy=REPORT.model_copy(update={"version": 5})), "version 5 does not follow"),
    (PolicyChange(policy=REPORT.model_copy(update={"version": 2**53 - 1})), "does not follow the one in force"),
    (PolicyChange(policy=administration(version=2**53 - 1)), "make it 2"),
    (a_policy_change(decide_within="1s"), "nobody could decide in so short a time"),
    (a_policy_change(execute_within="1s"), "nobody could decide in so short a time"),
    (a_policy_change(approvals=1), "changes of authority need two persons"),
    (PolicyChange(policy=a_policy(by_rule("r", {"tool": "change_directory"}), policy="administration", version=2)),
     "changes of authority need two persons"),
    (a_policy_change(approvals=3), "3 others with the role admin"),
    (a_policy_change(role="lawyer"), "2 others with the role lawyer"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "problem"), POLICY_PROBLEMS, ids=[problem for _, problem in POLICY_PROBLEMS])
def test_a_policy_that_must_not_be_in_force_is_not_even_proposed(change: PolicyChange, problem: str) -> None:
    assert any(problem in found for found in problems(change, AUTHORITY, NOW))


def test_a_policy_with_the_next_version_may_be_proposed_and_so_may_a_new_one() -> None:
    new = a_policy(by_people("r", {"tool": "refund"}), policy="refund")

    for policy in (REPORT.model_copy(update={"version": 4}), new, administration(version=2)):
        assert problems(PolicyChange(policy=policy), AUTHORITY, NOW) == ()


@pytest.mark.guarantee("G04")
@pytest.mark.guarantee("G18")
@pytest.mark.parametrize(
    "weak", [text(NEUTRAL), text(ORDER_8), twin_of(PERSONS["ada"].keys[0].public_key)], ids=["neutral", "small", "twin"]
)
def test_no_person_is_made_up_with_a_key_that_anybody_or_somebody_else_signs_for(weak: str) -> None:
    change = a_change(persons=[standing("dora", "admin")], keys_added=[key_for("dora", public_key=weak)])

    assert any("dora is no Ed25519 public key" in found for found in problems(change, AUTHORITY, NOW))


@pytest.mark.parametrize(
    "ending",
    [{"not_after": NOW + timedelta(seconds=1)}, {"revoked_at": NOW + timedelta(seconds=1)},
     {"not_after": NOW + LONGEST}],
)  # fmt: skip
def test_keys_that_end_before_a_change_could_be_made_keep_nobody_able_to_make_one(ending: dict[str, Any]) -> None:
    """Revoking the admins' keys with one hand and giving short-lived ones with the other would lock all out."""
    swap = a_change(
        keys_added=[key_for(name, **ending) for name in ("ada", "ben", "cyd")],
        keys_revoked=[{"person": name, "key_id": f"{name}-1"} for name in ("ada", "ben", "cyd")],
    )
    lasting = swap.model_copy(update={"keys_added": a_change(
        keys_added=[key_for(name, not_after=NOW + LONGEST + TICK) for name in ("ada", "ben", "cyd")]).keys_added}
    )  # fmt: skip

    assert any("nobody could change the directory" in found for found in problems(swap, AUTHORITY, NOW))
    assert problems(lasting, AUTHORITY, NOW) == ()


def test_a_policy_that_takes_longer_than_its_admins_keys_last_is_not_even_proposed() -> None:
    ending = {name: a_person(name, "admin", keys=[a_key(name).model_copy(update={"not_after": NOW + 30 * DAY})])
              for name in ("ada", "ben", "cyd")}  # fmt: skip
    authority = AUTHORITY.model_copy(update={"persons": ending})

    assert problems(a_policy_change(decide_within="29d"), authority, NOW) == ()
    assert any(
        "nobody could change" in found for found in problems(a_policy_change(decide_within="30d"), authority, NOW)
    )


def test_one_administrators_no_keeps_nobody_from_asking_again() -> None:
    strict = administration(version=2).model_copy(
        update={"terms": Terms(after_rejection=AfterRejection(then="refuse"))}
    )

    assert any("after_rejection.then" in found for found in problems(PolicyChange(policy=strict), AUTHORITY, NOW))


@pytest.mark.guarantee("G14")
def test_the_same_change_in_another_order_is_the_same_and_known_again_after_a_no() -> None:
    limits = [{"each": "9.00 USD"}, {"each": "5.00 EUR"}]
    rich = {"person": "eve", "standing": {"roles": ["lawyer", "admin"], "limits": limits}}
    entries: dict[str, list[Any]] = {
        "persons": [standing("dora", "reviewer"), standing("bob", "lawyer"), rich],
        "keys_added": [key_for("dora"), key_for("ben")],
        "keys_revoked": [{"person": "cyd", "key_id": "cyd-1"}, {"person": "bob", "key_id": "bob-1"}],
    }
    turned = {kind: list(reversed(some)) for kind, some in entries.items()}
    turned["persons"][0] = {"person": "eve", "standing": {"roles": ["admin", "lawyer"], "limits": limits[::-1]}}

    assert content(a_change(**turned)) == content(a_change(**entries))
    assert as_action(a_change(**turned)).likeness() == as_action(a_change(**entries)).likeness()
    assert as_action(a_change(**{**entries, "keys_added": []})).likeness() != as_action(a_change(**entries)).likeness()


def as_action(change: DirectoryChange) -> Action:
    return an_action(content_hash=sha256_hex(content(change)), evidence_hash=sha256_hex(present(change, AUTHORITY)))


def test_what_a_change_rests_on_is_what_is_there_of_all_it_is_about() -> None:
    change = a_change(persons=[standing("dora", "reviewer")], keys_revoked=[{"person": "bob", "key_id": "bob-1"}])
    demoted = AUTHORITY.model_copy(update={"persons": {**PERSONS, "bob": a_person("bob", "clerk")}})
    other = AUTHORITY.model_copy(update={"persons": {**PERSONS, "ada": a_person("ada", "clerk")}})

    assert json.loads(present(change, AUTHORITY))["dora"] is None
    assert present(change, demoted) != present(change, AUTHORITY)
    assert present(change, other) == present(change, AUTHORITY)


def test_what_a_policy_rests_on_is_the_one_in_force() -> None:
    change, new = PolicyChange(policy=REPORT), PolicyChange(policy=a_policy(by_rule("r", {"tool": "t"}), policy="new"))

    assert json.loads(present(change, AUTHORITY)) == {"policy": REPORT.model_dump(mode="json")}
    assert json.loads(present(new, AUTHORITY)) == {"policy": None}


@pytest.mark.guarantee("G14")
def test_content_is_the_whole_change_and_reads_back_as_the_same() -> None:
    kinds: TypeAdapter[Any] = TypeAdapter(Change)
    change = a_change(persons=[standing("dora", "reviewer")], keys_added=[key_for("dora")])

    for one in (change, PolicyChange(policy=REPORT), UnfreezeChange(freeze=2)):
        assert kinds.validate_json(content(one)) == one
    assert content(change) != content(a_change(persons=[standing("dora", "admin")], keys_added=[key_for("dora")]))


FROZEN = tuple(
    Freeze(tenant="acme", number=number, tool=tool, reason="a leak", person="omar", since=NOW)
    for number, tool in [(2, ""), (5, "refund")]
)
LIFTED = FROZEN[0].model_copy(update={"number": 1, "lifted_at": NOW, "lifted_by": "lift-1"})
HELD = AUTHORITY.model_copy(update={"freezes": (LIFTED, *FROZEN)})


@pytest.mark.parametrize(
    ("authority", "number", "problem"),
    [
        (HELD, 2, ""),
        (HELD, 5, ""),
        (HELD, 1, "freeze 1 is not in force, so there is nothing to lift; in force: 2, 5"),
        (HELD, 3, "freeze 3 is not in force, so there is nothing to lift; in force: 2, 5"),
        (AUTHORITY, 2, "freeze 2 is not in force, so there is nothing to lift; in force: none"),
    ],
)
def test_only_a_freeze_in_force_is_lifted(authority: Authority, number: int, problem: str) -> None:
    assert problems(UnfreezeChange(freeze=number), authority, NOW) == ((problem,) if problem else ())


def test_lifting_a_freeze_rests_on_that_freeze_as_it_is() -> None:
    change = UnfreezeChange(freeze=2)
    lifted = HELD.model_copy(update={"freezes": (FROZEN[1],)})

    assert json.loads(present(change, HELD)) == {"freeze": FROZEN[0].model_dump(mode="json")}
    assert json.loads(present(change, lifted)) == {"freeze": None}
    assert present(UnfreezeChange(freeze=5), lifted) == present(UnfreezeChange(freeze=5), HELD)
    assert (tool(change), target(change)) == ("unfreeze_effects", "freeze:2")
    assert summary(change) == "freeze 2 lifted, so that what it held can happen"


@pytest.mark.parametrize("fields", [{"freeze": 0}, {"freeze": "2"}, {}, {"freeze": 2, "tool": ""}])
def test_a_malformed_lifting_does_not_exist(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        UnfreezeChange.model_validate({"kind": "unfreeze", **fields})


def test_a_change_says_what_it_is_in_the_gateways_words() -> None:
    directory, policy = a_change(persons=[standing("dora", "reviewer"), standing("bob")]), PolicyChange(policy=REPORT)

    assert (tool(directory), target(directory)) == ("change_directory", "directory")
    assert (tool(policy), target(policy)) == ("change_policy", "policy:report")
    assert summary(directory) == "the directory's entries of bob, dora"
    assert summary(policy) == "policy report version 3 in force"


@pytest.mark.parametrize(
    "fields",
    [
        {"change": {"kind": "roles"}},
        {"change": {"kind": "directory", "tenant": "umbrella"}},
        {"change": {"kind": "directory", "persons": [{"person": "Bob", "standing": {"roles": []}}]}},
        {"reason": ""},
        {"case": "report"},
    ],
)
def test_a_malformed_request_does_not_exist(fields: dict[str, Any]) -> None:
    request = {"case": "administration", "reason": "dora joins", "change": {"kind": "directory"}}

    assert AdministrationRequest.model_validate(request).change == a_change()
    with pytest.raises(ValidationError):
        AdministrationRequest.model_validate({**request, **fields})
