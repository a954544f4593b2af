"""Who may do what changes in two ways only: in the first set-up, and by what one admin asks and two others sign."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.governing.directory import differences
from countersign.cli.session import now, opened
from countersign.domain.policy import Policy
from countersign.signing.keys import new_key_file, public_text
from countersign.strict_yaml import load
from tests.cli.command_line import Answer, CommandLine
from tests.cli.office import ROOT, Office, running_office

pytestmark = pytest.mark.long

ADMINS = "ada: [admin], ben: [admin], cleo: [admin], dina: [admin]"
PERSONS = f"rita: [requester], bob: [reviewer], emil: [editor], {ADMINS}"
NUMBERS = itertools.count(1)
REPORT = ROOT / "policies" / "report.yaml"
SHIPPED = load(REPORT, Policy).version


class Board:
    """A tenant of its own in the office, whose first set-up is over."""

    def __init__(self, cli: CommandLine, folder: Path) -> None:
        self.cli = cli
        self.name = f"board-{next(NUMBERS)}"
        self.folder = folder
        self.tenant = ("--tenant", self.name)
        cli.done("directory", "apply", self.file(PERSONS), "--yes")
        cli.done("keys", "new", "rita", "bob", "ada", "ben", "cleo", "dina", *self.tenant)
        with opened() as session:
            session.ledger.directory.close_set_up(self.name, "operator", now())

    def file(self, persons: str) -> Path:
        """A directory file of this tenant."""
        path = self.folder / f"directory-{next(NUMBERS)}.yaml"
        path.write_text(f"tenants: {{{self.name}: {{{persons}}}}}")
        return path

    def policy(self, version: int) -> Path:
        """Another version of the report policy, which asks for two reviewers."""
        path = self.folder / f"report-{version}.yaml"
        text = REPORT.read_text().replace(f"version: {SHIPPED}\n", f"version: {version}\n")
        path.write_text(text.replace("approvals: 1", "approvals: 2"))
        return path

    def key(self, person: str) -> str:
        """The id of a person's first key."""
        listed = self.cli.done("keys", "list", *self.tenant, "--json").json()
        return next(str(one["id"]) for one in listed if one["person"] == person)

    def authority(self) -> Any:
        """All that anybody may do here: persons with their keys, and policies in force."""
        directory = self.cli.done("directory", "show", *self.tenant, "--json").json()
        return directory, self.cli.done("policy", "show", *self.tenant, "--json").json()

    def asked(self, *command: str | Path, operation: str) -> str:
        """Ada asks; until others can decide."""
        self.cli.done(*command, "--as", "ada", "--operation", operation)
        return self.proposed(operation)

    def proposed(self, operation: str) -> str:
        """Until others can decide."""
        self.cli.done("wait", operation, *self.tenant, "--until", "WAITING_APPROVAL", "--timeout", "2m")
        return operation

    def approve(self, operation: str, person: str) -> Answer:
        """A person's yes."""
        return self.cli("approve", operation, *self.tenant, "--as", person)

    def agreed(self, operation: str) -> None:
        """Two others approve, and the change is made."""
        for person in ("ben", "cleo"):
            assert self.approve(operation, person).code == 0
        self.cli.done("wait", operation, *self.tenant, "--timeout", "2m")

    def records(self, operation: str) -> list[dict[str, Any]]:
        """What the audit says of an operation."""
        listed: list[dict[str, Any]] = self.cli.done("timeline", operation, *self.tenant, "--json").json()
        return listed


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An office for these tests alone: what they put in force, other tests of the doctor would stumble over."""
    with running_office(tmp_path_factory.mktemp("boards")) as made:
        yield made


@pytest.fixture
def board(cli: CommandLine, tmp_path: Path) -> Board:
    """A tenant with admins ada, ben, cleo and dina, requester rita, reviewer bob, and emil, who has no key."""
    return Board(cli, tmp_path)


COMMANDS: dict[str, Callable[[Board], list[str | Path]]] = {
    "a person": lambda board: ["directory", "apply", board.file(f"{PERSONS}, mallory: [admin]"), "--yes"],
    "roles": lambda board: ["directory", "apply", board.file(PERSONS.replace("requester", "admin")), "--yes"],
    "limits": lambda board: ["directory", "apply", board.file(PERSONS.replace("[reviewer]", LIMITED)), "--yes"],
    "inactive": lambda board: ["directory", "apply", board.file(PERSONS.replace("bob: [reviewer], ", "")), "--yes"],
    "a key": lambda board: ["keys", "new", "bob", *board.tenant, "--out", board.folder / "second.pem"],
    "no key": lambda board: ["keys", "revoke", "bob", board.key("bob"), *board.tenant],
    "policy": lambda board: ["policy", "apply", board.policy(SHIPPED + 1), *board.tenant, "--yes"],
}
LIMITED = "{roles: [reviewer], limits: [{each: 1000.00 EUR, total: 5000.00 EUR, within: 24h}]}"


@pytest.mark.guarantee("G13")
@pytest.mark.parametrize("what", COMMANDS)
def test_after_the_first_set_up_nobody_changes_authority_alone(board: Board, what: str) -> None:
    before, command = board.authority(), COMMANDS[what](board)
    # As a client would send it that does not look first.
    board.cli.monkeypatch.setattr("countersign.cli.deciding.decision_message.require_open_to", lambda *_: None)

    alone = board.cli(*command)
    no_admin = board.cli(*command, "--as", "bob")
    asked = board.asked(*command, operation="alone")
    own = board.approve(asked, "ada")
    reviewer = board.approve(asked, "bob")
    one = board.approve(asked, "ben")

    assert alone.code == (2 if what == "policy" else 1)
    assert "--as" in alone.err
    assert no_admin.err.startswith("error: person bob may not ask for operations of case administration")
    assert own.err.startswith("error: refused: requester_may_not_decide")
    assert reviewer.err.startswith("error: refused: role_missing")
    assert "the proposal is pending" in one.out
    assert board.authority() == before


@pytest.mark.guarantee("G13")
def test_what_two_other_admins_approved_is_made_and_says_on_what_basis(board: Board) -> None:
    persons = PERSONS.replace("[reviewer]", LIMITED) + ", carl: [reviewer]"
    asked = board.asked("directory", "apply", board.file(persons), "--yes", operation="carl-joins")

    board.agreed(asked)

    shown = board.cli.done("directory", "show", *board.tenant).out
    assert "bob     reviewer, at most 1000.00 EUR each and 5000.00 EUR in 24h" in shown
    assert "carl    reviewer" in shown
    changed = [one["detail"] for one in board.records(asked) if one["type"] == "directory.person_changed"]
    assert sorted(one["person"] for one in changed) == ["bob", "carl"]
    assert {one["basis"] for one in changed} == {"carl-joins"}
    assert "records verified" in board.cli.done("audit", "verify", *board.tenant).out


@pytest.mark.guarantee("G13")
def test_the_first_set_up_is_recorded_as_such_and_ends_with_the_first_start(cli: CommandLine, tmp_path: Path) -> None:
    persons = f"rita: [requester], {ADMINS}"
    (tmp_path / "persons.yaml").write_text(f"tenants: {{founded: {{{persons}}}}}")
    request = request_in("founded", tmp_path)
    cli.monkeypatch.setenv("COUNTERSIGN_POLICIES", str(policies_for("founded", tmp_path)))
    cli.done("directory", "apply", tmp_path / "persons.yaml", "--yes")
    cli.done("keys", "new", "rita", "ada", "ben", "--tenant", "founded")
    locked = cli("start", request, "--operation", "first")
    cli.done("keys", "new", "cleo", "--tenant", "founded")

    first = cli.done("start", request, "--operation", "first")
    second = cli.done("start", request, "--operation", "first")

    assert locked.code == 1
    assert locked.err.startswith("error: the first set-up of tenant founded cannot end yet: nobody could change")
    assert "first set-up  is closed now: for every change of who may do what, one admin asks" in first.out
    assert "first set-up" not in second.out
    records = cli.done("audit", "show", "--tenant", "founded", "--json").json()
    kinds = ("directory.person_changed", "directory.key_added", "policy.adopted", "set_up.closed")
    assert {one["detail"]["basis"] for one in records if one["type"] in kinds} == {"first_set_up"}
    assert {one["type"] for one in records} >= set(kinds)
    in_force = cli.done("policy", "show", "--tenant", "founded", "--json").json()
    assert [one["policy"] for one in in_force] == ["administration", "compensation", "message", "refund", "report"]
    assert {one["basis"] for one in in_force} == {"first_set_up"}


@pytest.mark.guarantee("G13")
def test_a_key_counts_from_its_approval_until_the_approved_revocation(board: Board) -> None:
    second = board.folder / "second.pem"
    made = board.asked("keys", "new", "bob", *board.tenant, "--out", second, "--valid", "365d", operation="a-key")
    again = board.cli.done("keys", "new", "bob", *board.tenant, "--out", second, "--as", "ada")
    unapproved = board.cli("directory", "apply", board.file(ADMINS), "--as", "bob", "--key", second)
    board.agreed(made)
    approved = board.cli.done("keys", "list", *board.tenant, "--json").json()
    key = next(one for one in approved if one["person"] == "bob" and one["not_after"])
    revoked = board.asked("keys", "revoke", "bob", key["id"], *board.tenant, operation="no-key")
    board.agreed(revoked)
    after = board.cli.done("keys", "list", *board.tenant).out

    assert "already running" in again.out
    assert "a-key" in again.out
    assert "is not registered as a key of bob" in unapproved.err
    assert [one["detail"]["basis"] for one in board.records(made) if one["type"] == "directory.key_added"] == ["a-key"]
    assert next(line for line in after.splitlines() if key["id"] in line).split()[4] == "revoked"


def test_a_refused_key_leaves_no_secret_behind(board: Board) -> None:
    answer = board.cli("keys", "new", "emil", "nobody", *board.tenant, "--as", "ada")
    refused = board.cli("keys", "new", "bob", *board.tenant, "--out", board.folder / "new.pem", "--as", "rita")

    assert answer.err.startswith("error: person nobody is not in the directory")
    assert "may not ask for operations of case administration" in refused.err
    assert not (board.folder / "new.pem").exists()
    assert not (board.cli.home / "keys" / board.name / "emil.pem").exists()
    assert board.cli.done("list", *board.tenant, "--json").json() == []


@pytest.mark.guarantee("G13")
def test_a_policy_comes_in_force_when_it_was_approved(board: Board) -> None:
    asked = board.asked("policy", "apply", board.policy(SHIPPED + 1), *board.tenant, "--yes", operation="two-reviewers")
    pending = board.cli.done("policy", "show", "report", *board.tenant, "--json").json()

    board.agreed(asked)

    in_force = board.cli.done("policy", "show", "report", *board.tenant, "--json").json()
    assert [one["version"] for one in pending + in_force] == [SHIPPED, SHIPPED + 1]
    assert in_force[0]["basis"] == "two-reviewers"
    assert in_force[0]["content"]["rules"][1]["need"]["approvals"] == 2
    older = board.cli("policy", "apply", REPORT, *board.tenant, "--as", "ada", "--yes")
    assert f"version {SHIPPED} does not follow the one in force; make it {SHIPPED + 2}" in older.err


@pytest.mark.guarantee("G13")
def test_of_two_changes_at_once_the_second_is_asked_anew(board: Board) -> None:
    """What was approved on other facts is not applied to what nobody looked at."""
    first = board.asked("directory", "apply", board.file(PERSONS.replace("[reviewer]", LIMITED)), "--yes",
                        operation="limited")  # fmt: skip
    both = PERSONS.replace("bob: [reviewer]", "bob: [reviewer, editor]")
    second = board.asked("directory", "apply", board.file(both), "--yes", operation="promoted")
    board.agreed(first)
    before = board.authority()
    for person in ("ben", "cleo"):
        board.approve(second, person)
    asked_anew(board, second)
    unchanged = board.authority()

    board.agreed(second)

    assert unchanged == before
    bob = next(one for one in board.authority()[0] if one["id"] == "bob")
    assert bob["roles"] == ["editor", "reviewer"]
    assert bob["limits"] == []


def asked_anew(board: Board, operation: str) -> None:
    """Until its second version is before people, which the audit gives the reason of."""
    while board.cli.done("status", operation, *board.tenant, "--json").json()["proposal"]["approval_version"] < 2:
        pass
    board.proposed(operation)
    voided = [one["detail"] for one in board.records(operation) if one["type"] == "approval.voided"]
    assert len(voided) == 1
    assert voided[0]["expected"] != voided[0]["found"]


@pytest.mark.guarantee("G13")
def test_a_rejected_change_is_not_made_and_is_asked_again_under_a_name_only(board: Board) -> None:
    file, before = board.file(f"{PERSONS}, carl: [reviewer]"), board.authority()
    asked = board.cli.done("directory", "apply", file, "--as", "ada", "--yes").out.split("operation", 1)[1].split()[0]
    board.proposed(asked)

    board.cli.done("reject", asked, *board.tenant, "--as", "ben", "--comment", "carl has left")

    assert board.cli("wait", asked, *board.tenant, "--timeout", "2m").code == 3
    assert board.authority() == before
    again = board.cli("directory", "apply", file, "--as", "ada", "--yes")
    assert f"as operation {asked}, and is REJECTED; to ask for it again name it by --operation ID" in again.err
    board.asked("directory", "apply", file, "--yes", operation="carl-again")


def test_a_change_that_would_lock_everyone_out_is_not_asked_for(board: Board) -> None:
    file = board.file("rita: [requester], bob: [reviewer], ada: [admin], ben: [admin]")

    answer = board.cli("directory", "apply", file, "--as", "ada", "--yes")

    assert answer.code == 1
    assert "nobody could change the directory any more" in answer.err
    assert board.cli.done("list", *board.tenant, "--json").json() == []


def test_the_difference_is_shown_and_nothing_is_asked_without_a_yes(board: Board) -> None:
    persons = PERSONS.replace("bob: [reviewer]", f"bob: {LIMITED}").replace(", dina: [admin]", "")
    public = public_text(new_key_file(board.folder / "own.pem"))
    file = board.file(f"{persons}, carl: {{roles: [reviewer], keys: [{public}]}}")
    board.cli.monkeypatch.setattr("sys.stdin", (board.folder / "no").open("w+"))

    answer = board.cli("directory", "apply", file, "--as", "ada")

    assert answer.code == 1
    for line in (
        f"~ {board.name}/bob: reviewer -> reviewer, at most 1000.00 EUR each and 5000.00 EUR in 24h",
        f"+ {board.name}/carl: reviewer",
        f"- {board.name}/dina: admin -> admin, becomes inactive",
    ):
        assert line in answer.out.splitlines()
    assert public in answer.out
    assert board.cli.done("list", *board.tenant, "--json").json() == []


@pytest.mark.guarantee("G13")
def test_whoever_starts_first_does_not_choose_the_policies(cli: CommandLine, tmp_path: Path) -> None:
    """What whoever set the tenant up has put in force stays, whatever folder the first requester brings."""
    report = policies_for("settled", tmp_path) / "report.yaml"
    report.write_text(report.read_text().replace("external_publication}", "internal_publication}"))
    (tmp_path / "persons.yaml").write_text(f"tenants: {{settled: {{rita: [requester], bob: [reviewer], {ADMINS}}}}}")
    applied = cli.done("directory", "apply", tmp_path / "persons.yaml", "--yes")
    cli.done("keys", "new", "rita", "ada", "ben", "cleo", "--tenant", "settled")
    before = cli.done("policy", "show", "--tenant", "settled", "--json").json()
    cli.monkeypatch.setenv("COUNTERSIGN_POLICIES", str(tmp_path / "policies"))

    cli.done("start", request_in("settled", tmp_path), "--operation", "first")

    assert f"+ settled: policy report/{SHIPPED}@" in applied.out
    assert {one["basis"] for one in before} == {"first_set_up"}
    assert cli.done("policy", "show", "--tenant", "settled", "--json").json() == before


def test_nothing_starts_where_no_policy_was_put_in_force(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "persons.yaml").write_text(f"tenants: {{unruled: {{rita: [requester], {ADMINS}}}}}")
    with opened() as session:
        change = differences(session, tmp_path / "persons.yaml")["unruled"].change
        session.ledger.directory.set_up("unruled", change, "operator", now())
    cli.done("keys", "new", "rita", "ada", "ben", "cleo", "--tenant", "unruled")

    answer = cli("start", request_in("unruled", tmp_path), "--operation", "first")

    assert answer.code == 1
    assert "tenant unruled has no policy 'report' in force" in answer.err
    assert "starter.py directory apply FILE" in answer.err


def policies_for(tenant: str, folder: Path) -> Path:
    """The policies of this repository, with its channels open to another tenant."""
    copy = folder / "policies"
    shutil.copytree(ROOT / "policies", copy)
    channels = copy / "channels.yaml"
    channels.write_text(channels.read_text().replace("tenants: [acme]", f"tenants: [{tenant}]"))
    return copy


def request_in(tenant: str, folder: Path) -> Path:
    """The example's request, asked in another tenant."""
    text = (ROOT / "examples" / "request.yaml").read_text()
    path = folder / "request.yaml"
    path.write_text(text.replace("tenant: acme", f"tenant: {tenant}").replace("sales.", f"{ROOT}/examples/sales."))
    return path


def test_a_role_that_no_policy_names_or_nobody_holds_is_warned_about(board: Board) -> None:
    typo = board.file(PERSONS.replace("bob: [reviewer]", "bob: [reviever]"))
    policy = board.policy(SHIPPED + 1)
    policy.write_text(policy.read_text().replace("role: reviewer", "role: editor"))

    directory = board.cli("directory", "apply", typo, "--as", "ada", "--yes", "--operation", "typo")
    checked = board.cli.done("policy", "check", policy, *board.tenant)
    asked = board.cli.done("policy", "apply", policy, *board.tenant, "--as", "ada", "--yes", "--operation", "editors")
    board.proposed("editors")
    board.proposed("typo")

    unnamed = (
        f"no policy in tenant {board.name} names role reviever; "
        "the roles they name: admin, finance, lead, requester, reviewer"
    )
    unheld = f"policy report names role editor, which nobody with a good key holds in tenant {board.name}"
    assert f"warning: {unnamed}\n" in directory.err
    for err in (checked.err, asked.err):
        assert f"warning: {unheld}\n" in err
    assert f"! {unheld}" in board.cli.done("show", "editors", *board.tenant, "--review").out
    assert f"! {unnamed}" in board.cli.done("show", "typo", *board.tenant, "--review").out


def test_a_request_is_not_signed_with_a_key_that_is_not_good(bare: CommandLine, tmp_path: Path) -> None:
    """Else it would stand registered, fail, and its id would be used up."""
    (tmp_path / "persons.yaml").write_text(f"tenants: {{acme: {{rita: [requester], {ADMINS}}}}}")
    bare.done("directory", "apply", tmp_path / "persons.yaml", "--yes")
    bare.done("keys", "new", "rita", "ada", "ben", "cleo", "--tenant", "acme")
    listed = bare.done("keys", "list", "--tenant", "acme", "--json").json()
    key = next(one["id"] for one in listed if one["person"] == "rita")
    bare.done("keys", "revoke", "rita", key, "--tenant", "acme")

    answer = bare("start", request_in("acme", tmp_path), "--operation", "first")

    path = bare.home / "keys" / "acme" / "rita.pem"
    assert answer.code == 1
    assert answer.err.startswith(f"error: key {key} in {path} is not good now: revoked at 20")
    assert answer.err.endswith("nothing was signed; give another by --key FILE\n")
    assert bare.done("list", "--tenant", "acme", "--json").json() == []


def test_a_public_key_in_the_file_is_registered_once(bare: CommandLine, tmp_path: Path) -> None:
    public = public_text(new_key_file(tmp_path / "own.pem"))
    file = tmp_path / "persons.yaml"
    file.write_text(f"tenants: {{acme: {{rita: {{roles: [requester], keys: [{public}]}}}}}}")

    bare.done("directory", "apply", file, "--yes")
    again = bare.done("directory", "apply", file, "--yes")

    listed = bare.done("keys", "list", "--tenant", "acme", "--json").json()
    assert [(one["person"], one["public_key"]) for one in listed] == [("rita", public)]
    assert again.out.startswith("nothing to do")


def test_a_key_of_ones_own_making_is_used_where_it_lies(bare: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "persons.yaml").write_text("tenants: {acme: {rita: [requester], bob: [reviewer]}}")
    bare.done("directory", "apply", tmp_path / "persons.yaml", "--yes")
    public = public_text(new_key_file(tmp_path / "own.pem"))

    used = bare.done("keys", "new", "rita", "--tenant", "acme", "--out", tmp_path / "own.pem")
    shared = bare("keys", "new", "bob", "--tenant", "acme", "--out", tmp_path / "own.pem")

    listed = bare.done("keys", "list", "--tenant", "acme", "--json").json()
    assert [(one["person"], one["public_key"]) for one in listed] == [("rita", public)]
    assert "was there and is nobody's key yet: it is used" in used.out
    assert shared.code == 1
    assert "own.pem exists" in shared.err


def test_a_key_has_an_end(bare: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "persons.yaml").write_text("tenants: {acme: {rita: [requester]}}")
    bare.done("directory", "apply", tmp_path / "persons.yaml", "--yes")
    bare.done("keys", "new", "rita", "--tenant", "acme", "--valid", "365d")

    key = bare.done("keys", "list", "--tenant", "acme", "--json").json()[0]
    bare.monkeypatch.setattr("countersign.cli.governing.keys.now", lambda: now() + timedelta(days=366))

    assert datetime.fromisoformat(key["not_after"]) - datetime.fromisoformat(key["not_before"]) == timedelta(days=365)
    assert bare.done("keys", "list", "--tenant", "acme").out.splitlines()[1].partition("  ended at ")[1]
