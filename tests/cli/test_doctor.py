"""`doctor` finds what is missing, each on its own line with what to do, and mends what it can."""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from countersign.agents.checkpoint_keys import ThreadKeys, keys_in_file
from countersign.cli.demos.dev_server import free_port, server_command
from countersign.cli.session import now, opened
from countersign.domain.state import State
from tests.agents.paused import paused
from tests.cli.command_line import Answer, CommandLine
from tests.cli.office import ROOT, Office, starter
from tests.ledger.builders import operation as an_operation
from tests.support.postgres import as_superuser
from tests.support.processes import Processes

ACME = ("--tenant", "acme")
KEY_1, KEY_2 = (base64.b64encode(letter * 32).decode() for letter in (b"1", b"2"))
ADMINS = "ada: [admin], ben: [admin], cleo: [admin]"


def problems(answer: Answer) -> dict[str, str]:
    return {check["name"]: check["detail"] for check in answer.json() if not check["ok"]}


@pytest.fixture
def plain_server(processes: Processes, tmp_path: Path) -> str:
    """A dev server without our search attributes; its address."""
    port = free_port()
    command = server_command("127.0.0.1", port, free_port(), tmp_path / "temporal.db")
    server = processes.start([part for part in command if not part.startswith("--search-attribute")])
    while True:
        assert server.is_running, server.output
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionError:
            continue
        return f"127.0.0.1:{port}"


def test_a_healthy_office_has_no_problem(cli: CommandLine) -> None:
    answer = cli.done("doctor")

    assert "problem" not in answer.out
    held = "admin ada, ben, cleo; finance fay, finn; lead lea, max; requester rita; reviewer bob, carl"
    assert f"persons of acme: {held}\n" in answer.out
    assert re.search(r"gateway worker: polls countersign-gateway, last seen \d+ s ago", answer.out)
    assert "payments (not active without PAYMENTS_TOKEN, which is not set here)" in answer.out
    assert len(answer.out.splitlines()) == 16 + 6 * answer.out.count("persons of ")


def test_a_worker_says_its_profile_as_it_starts(office: Office) -> None:
    ready = [line for line in office.worker.output.splitlines() if line.startswith("worker ready: ")]

    assert len(ready) == 2
    assert all(line.endswith(", profile signed") for line in ready)


def test_without_a_server_everything_else_is_still_looked_at(bare: CommandLine) -> None:
    answer = bare("doctor", "--json")

    assert answer.code == 1
    assert set(problems(answer)) == {"persons", "Temporal server"}
    assert ".venv/bin/python starter.py directory apply FILE" in problems(answer)["persons"]
    assert ".venv/bin/python starter.py server" in problems(answer)["Temporal server"]
    assert {"ledger", "audit", "evidence folder"} <= {check["name"] for check in answer.json()}


def test_missing_search_attributes_are_named_and_registered(bare: CommandLine, plain_server: str) -> None:
    bare.monkeypatch.setenv("TEMPORAL_ADDRESS", plain_server)
    enrolled(bare)

    refused = bare("start", ROOT / "examples" / "request.yaml")
    found = problems(bare("doctor", "--json"))
    mended = bare("doctor", "--fix", "--json")

    assert refused.code == 1
    assert "CountersignTenant" in refused.err
    assert ".venv/bin/python starter.py doctor --fix" in refused.err
    assert set(found) == {"search attributes", "agent worker", "gateway worker"}
    assert set(problems(mended)) == {"agent worker", "gateway worker"}
    started = bare.done("start", ROOT / "examples" / "request.yaml")
    assert started.err.count("warning: no worker polls the task queue") == 2


def test_an_unknown_namespace_is_said(bare: CommandLine, plain_server: str) -> None:
    bare.monkeypatch.setenv("TEMPORAL_ADDRESS", plain_server)
    bare.monkeypatch.setenv("TEMPORAL_NAMESPACE", "nowhere")

    assert "nowhere" in problems(bare("doctor", "--json"))["namespace"]


def test_looking_leaves_nothing_in_the_ledger(bare: CommandLine) -> None:
    enrolled(bare)
    before = everything(bare.home / "ledger.db")

    answer = bare("doctor", "--json")

    assert "ledger" not in problems(answer)
    assert everything(bare.home / "ledger.db") == before


def test_a_ledger_that_cannot_be_written_is_a_problem(bare: CommandLine) -> None:
    enrolled(bare)
    with closing(sqlite3.connect(bare.home / "ledger.db")) as connection, connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON documents BEGIN SELECT RAISE(ABORT, 'no room'); END")

    assert "no room" in problems(bare("doctor", "--json"))["ledger"]


def everything(ledger: Path) -> list[str]:
    """All that a ledger file holds."""
    with closing(sqlite3.connect(ledger)) as connection:
        return list(connection.iterdump())


def test_a_key_that_others_can_read_is_a_problem(bare: CommandLine) -> None:
    bare("doctor")
    (bare.home / "keys" / "installation.pem").chmod(0o644)

    assert "chmod 600" in problems(bare("doctor", "--json"))["installation key"]


def test_thread_keys_that_are_malformed_or_open_to_others_are_a_problem(bare: CommandLine) -> None:
    named = {check["name"]: check["detail"] for check in bare("doctor", "--json").json()}
    file = bare.home / "keys" / "threads.keys"
    untouched = file.exists()
    keys_in_file(file)
    file.chmod(0o640)
    readable = problems(bare("doctor", "--json"))["thread keys"]
    bare.monkeypatch.setenv("COUNTERSIGN_THREAD_KEYS", f"k1={KEY_1},k2=short")

    malformed = problems(bare("doctor", "--json"))["thread keys"]

    assert named["thread keys"].startswith("none yet: ")
    assert not untouched, "looking made a key"
    assert readable.endswith(f"run: chmod 600 {file}")
    assert malformed.startswith("COUNTERSIGN_THREAD_KEYS: entry 2 is no key with its id; write ")
    bare.monkeypatch.setenv("COUNTERSIGN_THREAD_KEYS", f"k2={KEY_2},k1={KEY_1}")
    good = next(one for one in bare("doctor", "--json").json() if one["name"] == "thread keys")
    assert (good["ok"], good["detail"]) == (True, "k2 encrypts; held too: k1; from COUNTERSIGN_THREAD_KEYS")


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_key_that_open_drafts_were_encrypted_with_and_that_is_not_held_is_a_problem(
    bare: CommandLine, request: pytest.FixtureRequest, store: str
) -> None:
    if store == "postgres":
        bare.monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url")())
    enrolled(bare)
    with opened() as session:
        session.ledger.directory.close_set_up("acme", "rita", now())
        for name in ("waits", "over"):
            session.ledger.operations.register(an_operation(name, tenant="acme", registered_at=now()))
        session.ledger.operations.move("acme", "over", State.CANCELLED, "", now())
        url = session.settings.threads_url
    for name, keys in (("waits", {"k1": b"1" * 32}), ("over", {"k0": b"0" * 32}), ("lost", {"k1": b"1" * 32})):
        asyncio.run(paused(url, ThreadKeys(keys), f"acme:{name}:run:1:v1"))
    without = problems(bare("doctor", "--json"))["checkpoints"]
    bare.monkeypatch.setenv("COUNTERSIGN_THREAD_KEYS", f"k2={KEY_2}")

    other = problems(bare("doctor", "--json"))["checkpoints"]

    assert "keys that are not held: k1 (2 of them); put each, as ID=KEY, behind the first in " in other
    assert "COUNTERSIGN_THREAD_KEYS, and restart the workers" in other
    assert f"COUNTERSIGN_THREAD_KEYS, or bring {bare.home / 'keys' / 'threads.keys'} back" in without
    bare.monkeypatch.setenv("COUNTERSIGN_THREAD_KEYS", f"k2={KEY_2},k1={KEY_1}")
    assert "checkpoints" not in problems(bare("doctor", "--json")), "the key of what has ended is needed no more"


def test_a_folder_that_cannot_be_made_is_a_problem(bare: CommandLine) -> None:
    bare.home.mkdir(parents=True)
    (bare.home / "evidence").write_text("in the way")

    assert "a file is in the way" in problems(bare("doctor", "--json"))["evidence folder"]


def test_a_cut_off_audit_is_a_problem(bare: CommandLine) -> None:
    enrolled(bare)
    for path in bare.home.glob("ledger.db*"):
        path.unlink()

    assert problems(bare("doctor", "--json"))["ledger"]


def test_a_taken_port_is_said_at_once(bare: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = starter({"COUNTERSIGN_HOME": str(bare.home), "TEMPORAL_ADDRESS": f"127.0.0.1:{port}"}, "server")

    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: port {port} on 127.0.0.1 is taken")


def test_a_dev_server_is_not_started_for_another_machine(bare: CommandLine) -> None:
    bare.monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example.com:7233")

    answer = bare("server")

    assert answer.code == 1
    assert answer.err.startswith(
        "error: TEMPORAL_ADDRESS is temporal.example.com:7233; a dev server listens on localhost"
    )


def enrolled(cli: CommandLine) -> None:
    cli.done("directory", "apply", ROOT / "policies" / "directory.yaml", "--yes")
    cli.done("keys", "new", "rita", "bob", "fay", "finn", "flora", "lea", "leo", "ada", "ben", "cleo", *ACME)


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ("rita: [requester]", "nobody holds role reviewer, which needs 1"),
        ("bob: [reviewer]", "nobody holds role requester, which needs 1"),
        (
            "rita: [requester], bob: [reviewer]",
            "without one: bob; run: .venv/bin/python starter.py keys new bob ",
        ),
    ],
)
def test_a_role_that_nobody_can_act_in_is_a_problem(bare: CommandLine, tmp_path: Path, roles: str, said: str) -> None:
    enrolled(bare)
    bob = next(one["id"] for one in bare.done("keys", "list", *ACME, "--json").json() if one["person"] == "bob")
    bare.done("keys", "revoke", "bob", bob, *ACME)
    (tmp_path / "persons.yaml").write_text(f"tenants: {{acme: {{{roles}, {ADMINS}}}}}")
    bare.done("directory", "apply", tmp_path / "persons.yaml", "--yes")

    assert said in problems(bare("doctor", "--json"))["persons of acme"]


def test_too_few_to_settle_a_large_refund_is_said_and_is_no_problem(bare: CommandLine) -> None:
    enrolled(bare)
    enough = persons_of_acme(bare)
    leo = next(one["id"] for one in bare.done("keys", "list", *ACME, "--json").json() if one["person"] == "leo")
    bare.done("keys", "revoke", "leo", leo, *ACME)
    alone = persons_of_acme(bare)

    assert (enough["ok"], "note:" in enough["detail"]) == (True, False)
    assert alone["ok"]
    assert alone["detail"].endswith(
        "; note: settling by policies compensation, refund can need two of role lead, which lea alone holds with a good"
        " key; until there is a second one a large unknown outcome cannot be settled"
    )


def persons_of_acme(cli: CommandLine) -> dict[str, Any]:
    """The check by which a tenant's roles can be acted in."""
    return next(one for one in cli("doctor", "--json").json() if one["name"] == "persons of acme")


def test_a_worker_that_asked_long_ago_counts_as_gone(cli: CommandLine) -> None:
    """The server names a dead worker's poller for minutes; only one that asks again is alive."""
    cli.monkeypatch.setattr("countersign.cli.temporal_run.now", lambda: now() + timedelta(seconds=80))

    found = problems(cli("doctor", "--json"))
    started = cli.done("start", ROOT / "examples" / "request.yaml", "--operation", "unattended")

    assert set(found) == {"agent worker", "gateway worker"}
    assert re.match(r"no worker polls .*, last seen \d+ s ago; start one with: ", found["agent worker"])
    assert started.err.count("warning: no worker polls the task queue") == 2


def test_a_tenant_that_could_not_change_itself_is_a_problem(bare: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "few.yaml").write_text("tenants: {acme: {rita: [requester], bob: [reviewer], ada: [admin]}}")
    bare.done("directory", "apply", tmp_path / "few.yaml", "--yes")
    bare.done("keys", "new", "rita", "bob", "ada", *ACME)
    alone = problems(bare("doctor", "--json"))
    bare.done("directory", "apply", ROOT / "policies" / "directory.yaml", "--yes")
    bare.done("keys", "new", "ben", "cleo", *ACME)

    assert "nobody could change the directory any more" in alone["set-up of acme"]
    assert "only ada holds role admin, which needs 2" in alone["persons of acme"]
    assert "set-up of acme" not in problems(bare("doctor", "--json"))


@pytest.mark.parametrize(("version", "asks"), [(9, False), (5, True)])
def test_a_policy_file_that_is_not_in_force_is_noted(
    cli: CommandLine, tmp_path: Path, version: int, asks: bool
) -> None:
    """A tenant may have a policy of its own for good; only the next version can be asked for."""
    cli.done("start", ROOT / "examples" / "request.yaml", "--operation", "closes-the-set-up")
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    file = tmp_path / "policies" / "report.yaml"
    file.write_text(file.read_text().replace("version: 4", f"version: {version}"))
    cli.monkeypatch.setenv("COUNTERSIGN_POLICIES", str(tmp_path / "policies"))

    checks = {check["name"]: check["detail"] for check in cli.done("doctor", "--json").json()}

    assert f"report/4 in force; {file} (version {version}) is another one" in checks["policies of acme"]
    assert (f"policy apply {file} --tenant acme --as ADMIN" in checks["policies of acme"]) == asks


def test_a_file_that_was_changed_in_the_first_set_up_is_put_in_force_by_the_same_command(
    bare: CommandLine, tmp_path: Path
) -> None:
    enrolled(bare)
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    file = tmp_path / "policies" / "report.yaml"
    file.write_text(file.read_text().replace("approvals: 1", "approvals: 2"))
    bare.monkeypatch.setenv("COUNTERSIGN_POLICIES", str(tmp_path / "policies"))

    noted = {check["name"]: check["detail"] for check in bare("doctor", "--json").json()}["policies of acme"]
    applied = bare.done("directory", "apply", ROOT / "policies" / "directory.yaml", "--yes")

    assert f"{file} (version 4) is another one; put it in force with:" in noted
    assert "~ acme: policy report/4@" in applied.out
    shown = bare.done("policy", "show", "report", *ACME, "--json").json()
    assert [rule["need"]["approvals"] for rule in shown[0]["content"]["rules"] if rule["need"]] == [2]


def with_policies(cli: CommandLine, folder: Path, name: str, before: str, after: str) -> Path:
    """A folder of policies of its own, with one text of one file changed."""
    if not folder.exists():
        shutil.copytree(ROOT / "policies", folder)
    file = folder / name
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))
    cli.monkeypatch.setenv("COUNTERSIGN_POLICIES", str(folder))
    return folder


ANSWERED_BY = "  role: lead\n  requester"
LADDER = "ladder: {remind: [4h], then: expire}\nbudgets"
TIERS = "tiers: [{after: 8h, role: lead, decisions: [approve]}, {after: 12h, role: counsel, decisions: [approve]}]"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ANSWERED_BY, ANSWERED_BY.replace("lead", "counsel")),
        (LADDER, LADDER.replace("then", f"{TIERS}, then")),
        ("LOW_CONFIDENCE: {role: lead", "LOW_CONFIDENCE: {role: counsel"),
    ],
    ids=["from the beginning", "by a tier later", "by an escalation"],
)
def test_a_role_that_answers_the_agent_and_that_nobody_has_is_a_problem(
    bare: CommandLine, tmp_path: Path, before: str, after: str
) -> None:
    with_policies(bare, tmp_path / "policies", "report.yaml", before, after)
    enrolled(bare)

    found = problems(bare("doctor", "--json"))["persons of acme"]

    assert found.startswith("nobody holds role counsel, which needs 1; add persons with: ")


def test_a_budget_in_a_currency_without_prices_is_a_problem(bare: CommandLine, tmp_path: Path) -> None:
    limit, money = "run: {calls: 60, time: 1h}", "run: {calls: 60, time: 1h, money: 5.00 USD}"
    folder = with_policies(bare, tmp_path / "policies", "report.yaml", limit, money)
    with_policies(bare, folder, "report.yaml", "  BUDGET_EXCEEDED: {role: lead, severity: low, within: 72h}\n", "")
    enrolled(bare)
    priced = next(one for one in bare("doctor", "--json").json() if one["name"] == "policies of acme")
    with_policies(bare, folder, "report.yaml", money, limit)
    with_policies(bare, folder, "prices.yaml", "currency: USD", "currency: EUR")

    found = problems(bare("doctor", "--json"))["policies of acme"]

    assert priced["ok"]
    assert "note: policy report names nobody for BUDGET_EXCEEDED, so a run out of budget fails" in priced["detail"]
    assert "policy report has a budget of 5.00 USD, and prices.yaml is in EUR, so it is never used up" in found


def test_keys_that_lack_are_all_named(bare: CommandLine) -> None:
    bare.done("directory", "apply", ROOT / "policies" / "directory.yaml", "--yes")

    found = problems(bare("doctor", "--json"))["persons of acme"]

    assert "role admin needs 2 with a good key; without one: ada, ben, cleo; run: " in found
    assert "keys new ada ben cleo --tenant acme" in found


def test_the_profile_is_told_and_so_is_an_address_that_it_forbids(bare: CommandLine) -> None:
    signed = next(one for one in bare("doctor", "--json").json() if one["name"] == "profile")
    bare.monkeypatch.setenv("COUNTERSIGN_PROFILE", "dev")
    dev = next(one for one in bare("doctor", "--json").json() if one["name"] == "profile")
    bare.monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.invalid:7233")

    assert (signed["ok"], signed["detail"]) == (True, "signed: every decision must be signed")
    assert (dev["ok"], dev["detail"].partition(":")[0]) == (True, "dev")
    assert "TEMPORAL_ADDRESS (temporal.invalid)" in problems(bare("doctor", "--json"))["profile"]


def test_an_alarm_is_a_problem_for_a_week(bare: CommandLine) -> None:
    enrolled(bare)
    with opened() as session:
        session.ledger.audit.append("acme", "alarm.raised", "forged", "gateway", {}, now())

    assert "audit show --tenant acme --operation forged" in problems(bare("doctor", "--json"))["alarms of acme"]
    bare.monkeypatch.setattr("countersign.cli.governing.tenant_checks.now", lambda: now() + timedelta(days=8))
    assert "alarms of acme" not in problems(bare("doctor", "--json"))


def test_a_database_user_that_row_level_security_does_not_hold_is_a_problem(
    bare: CommandLine, postgres_url: Callable[[], str]
) -> None:
    bare.monkeypatch.setenv("DATABASE_URL", as_superuser(postgres_url()))

    assert "passes by row level security" in problems(bare("doctor", "--json"))["tenants apart"]
