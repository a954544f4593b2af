"""Freezes from the command line: one person holds effects at once, two others let them go, and both are told apart."""

from __future__ import annotations

import re
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from countersign.cli.governing.freezing import can_be_lifted
from countersign.cli.session import now
from countersign.domain.errors import Frozen
from countersign.domain.freeze import Freeze
from countersign.domain.policy import Policy
from countersign.domain.state import State
from countersign.settings import ROOT
from countersign.strict_yaml import load
from tests.cli.desk import ACME, TENANT, Desk

LEA = (*ACME, "--as", "lea")
WHY = ("--reason", "figures of the new feed look wrong")


def claimed(desk: Desk) -> None:
    """The gateway's claim for what Bob approved."""
    made = desk.asked()
    desk.vote(made, "bob")
    approval, moment = desk.ledger.approvals.get(TENANT, made.approval_id), now()
    desk.ledger.executions.claim(approval, made.action.idempotency_key(), moment, moment + timedelta(minutes=1))


def test_one_person_holds_every_effect_from_that_moment_on(desk: Desk) -> None:
    frozen = desk.cli.done("freeze", *LEA, *WHY)

    assert "every effect in tenant acme from now on, as freeze 1" in frozen.out
    assert "starter.py unfreeze 1 --tenant acme --as ADMIN" in frozen.out
    with pytest.raises(Frozen):
        claimed(desk)


def test_one_tool_can_be_frozen_and_a_misspelt_one_is_refused(desk: Desk) -> None:
    wrong = desk.cli("freeze", *LEA, *WHY, "--tool", "publish_reports")
    authority = desk.cli("freeze", *LEA, *WHY, "--tool", "change_directory")
    right = desk.cli.done("freeze", *LEA, *WHY, "--tool", "publish_report", "--json").json()

    assert "there is no tool 'publish_reports'; choose publish_report" in wrong.err
    assert "changes of authority are never frozen" in authority.err
    assert (right["tool"], right["in_force"], right["person"]) == ("publish_report", True, "lea")
    assert [one.number for one in desk.ledger.freezes.of_tenant(TENANT)] == [1]


@pytest.mark.parametrize("person", ["bob", "max", "rita"])
def test_whoever_may_not_freeze_is_told_whose_it_is(desk: Desk, person: str) -> None:
    answer = desk.cli("freeze", *ACME, "--as", person, *WHY)

    assert answer.code == 1
    assert f"person {person} may not freeze: the role operator or admin is needed" in answer.err
    assert [*desk.ledger.freezes.of_tenant(TENANT)] == []


def test_whoever_freezes_is_warned_where_nobody_could_lift_it() -> None:
    shipped = load(ROOT / "policies" / "administration.yaml", Policy)
    of_before = shipped.model_dump(mode="json")
    of_before["rules"][0]["when"]["tool"] = ["change_directory", "change_policy"]
    freeze = Freeze(tenant=TENANT, number=1, reason="why", person="lea", since=now())

    assert can_be_lifted(freeze, shipped, "local")
    assert not can_be_lifted(freeze, Policy.model_validate(of_before), "local")
    assert not can_be_lifted(freeze, None, "local")


def test_a_freeze_that_can_be_lifted_warns_of_nothing(desk: Desk) -> None:
    assert "warning" not in desk.cli.done("freeze", *LEA, *WHY).err


def test_a_freeze_needs_a_reason(desk: Desk) -> None:
    assert "--reason: say why" in desk.cli("freeze", *LEA, "--reason", "  ").err
    assert "501 characters, at most 500 are allowed" in desk.cli("freeze", *LEA, "--reason", "x" * 501).err


def test_freezes_are_listed_as_documented_and_doctor_tells_of_those_in_force(desk: Desk) -> None:
    assert "nothing was ever frozen in tenant acme" in desk.cli.done("freezes", *ACME).out
    desk.cli.done("freeze", *LEA, *WHY)

    (one,) = desk.cli.done("freezes", *ACME, "--json").json()
    checks = {check["name"]: check for check in desk.cli("doctor", "--json").json()}

    text = (Path(__file__).parents[2] / "docs" / "json.md").read_text().partition("## `freezes`")[2]
    assert list(one) == re.findall(r"^\| `(\w+)` \|", text.partition("## ")[0], re.MULTILINE)
    assert re.search(
        r"^1 +yes +every effect .* lea .*figures of the new feed", desk.cli.done("freezes", *ACME).out, re.M
    )
    assert not checks["freezes of acme"]["ok"]
    assert "freeze 1 holds every effect: figures of the new feed look wrong" in checks["freezes of acme"]["detail"]


def granted(desk: Desk) -> None:
    """Bob has approved a publication, which the gateway may not send now."""
    desk.vote(desk.asked(), "bob")
    desk.stands("report-7", State.WAITING_RETRY, "frozen")


def test_a_freeze_waits_for_operators_and_for_whoever_may_ask_for_its_end(desk: Desk) -> None:
    granted(desk)
    desk.cli.done("freeze", *LEA, *WHY)

    (hers,) = desk.cli.done("inbox", *LEA, "--json").json()
    (admins,) = desk.cli.done("inbox", *ACME, "--as", "ada", "--json").json()
    following = desk.cli.done("next", *ACME, "--as", "ada").out

    assert (hers["kind"], hers["operation"], hers["target"]) == ("freeze", "", "every effect")
    assert "holds every effect (report-7); nobody asked for its end yet; reason: figures of" in hers["summary"]
    assert [line.split()[2] for line in hers["commands"]] == ["freezes"]
    assert [line.split()[2] for line in admins["commands"]] == ["freezes", "unfreeze"]
    assert "starter.py unfreeze 1 --tenant acme --as ada" in following
    assert "nothing waits for bob" in desk.cli.done("inbox", *ACME, "--as", "bob").out


def test_freezes_name_what_each_holds_and_who_asked_for_its_end(desk: Desk) -> None:
    granted(desk)
    desk.cli.done("freeze", *LEA, *WHY)
    desk.cli("unfreeze", "1", *ACME, "--as", "ada", "--operation", "thaw")

    (one,) = desk.cli.done("freezes", *ACME, "--json").json()
    listed = desk.cli.done("freezes", *ACME).out
    (admins,) = desk.cli.done("inbox", *ACME, "--as", "ada", "--json").json()

    assert (one["holds"], one["lifting"]) == (["report-7"], ["thaw"])
    assert re.search(r"^1 +yes +every effect .* report-7 +thaw +figures of", listed, re.MULTILINE)
    assert [line.split()[2] for line in admins["commands"]] == ["freezes"]


def test_a_second_freeze_of_the_same_is_warned_of_and_status_names_both(desk: Desk) -> None:
    granted(desk)
    desk.cli.done("freeze", *LEA, *WHY)

    second = desk.cli.done("freeze", *ACME, "--as", "ada", "--reason", "so do mine", "--tool", "publish_report")
    status = desk.cli.done("status", "report-7", *ACME).out

    assert re.search(r"warning: freeze 1 by lea since \S+ holds the same already", second.err)
    assert re.search(r"^waits for +freeze 1 \(figures .*\) and freeze 2 \(so do mine\) to be lifted", status, re.M)


def test_lifting_is_asked_for_by_an_admin_and_only_where_there_is_something_to_lift(desk: Desk) -> None:
    nothing = desk.cli("unfreeze", "1", *ACME, "--as", "ada")
    desk.cli.done("freeze", *LEA, *WHY)
    no_admin = desk.cli("unfreeze", "1", *LEA)
    asked = desk.cli("unfreeze", "1", *ACME, "--as", "ada", "--operation", "thaw")

    assert "tenant acme has no freeze 1" in nothing.err
    assert "may not ask for operations of case administration" in no_admin.err
    # There is no Temporal server at this desk: what was asked for stays registered.
    assert "the operation is registered" in asked.err
    assert desk.ledger.operations.get(TENANT, "thaw").requester == "ada"
    assert [one.in_force for one in desk.ledger.freezes.of_tenant(TENANT)] == [True]


def test_what_did_not_arrive_comes_first_and_waits_for_operators(desk: Desk) -> None:
    desk.asked()
    outbox, moment = desk.ledger.outbox, now()
    numbers = [number for number, _ in outbox.unaddressed(TENANT, 100)]
    for number in numbers:
        outbox.address(TENANT, number, ["chat"], moment)
    taken = outbox.take(TENANT, moment, moment + timedelta(minutes=1), 100)
    outbox.failed(taken[0], "410 Gone", None, moment)
    for one in taken[1:]:
        outbox.delivered(one, moment)

    listed = desk.cli.done("outbox", *ACME, "--json").json()
    (waiting,) = desk.cli.done("inbox", *LEA, "--json").json()
    checks = {check["name"]: check for check in desk.cli("doctor", "--json").json()}

    text = (Path(__file__).parents[2] / "docs" / "json.md").read_text().partition("## `outbox`")[2]
    assert list(listed[0]) == re.findall(r"^\| `(\w+)` \|", text.partition("## ")[0], re.MULTILINE)
    assert listed[0]["status"] == "failed"
    assert (waiting["kind"], waiting["target"]) == ("delivery_failed", "chat")
    assert "410 Gone" in waiting["summary"]
    assert "did not arrive at chat" in checks["notices of acme"]["detail"]
    assert re.search(r"^failed .* 410 Gone$", desk.cli.done("outbox", *ACME).out, re.MULTILINE)


def test_where_no_address_is_configured_outbox_and_doctor_say_so(desk: Desk, tmp_path: Path) -> None:
    desk.cli.monkeypatch.setenv("COUNTERSIGN_POLICIES", str(policies(tmp_path)))
    desk.asked()

    said = "takes notices of tenant acme, so nobody is sent any: 1 wait in the ledger, 0 were put aside; of those"

    assert said in desk.cli.done("outbox", *ACME).out
    checks = {check["name"]: check for check in desk.cli("doctor", "--json").json()}
    assert checks["notices of acme"]["ok"]
    assert said in checks["notices of acme"]["detail"]


def policies(folder: Path) -> Path:
    """The shipped policies without addresses."""
    copied = Path(shutil.copytree(ROOT / "policies", folder / "policies"))
    (copied / "notifications.yaml").unlink(missing_ok=True)
    return copied
