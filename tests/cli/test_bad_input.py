"""Everything that can be given wrongly: one clear line on standard error, a non-zero exit code, no traceback."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.cli.office import ROOT, STARTER, starter

ACME = "--tenant acme"
RITA = "--tenant acme --as rita"
ASK = "--question What? --channel internal"
ADMINS = "ada: [admin], ben: [admin], cleo: [admin]"
GOOD = "tenant: acme\nrequester: rita\nquestion: What?\nchannel: public\ndata: good.csv\nschema: good.yaml\n"
POLICY = """
policy: report
version: 3
rules:
  - {id: all, when: {side_effect: external_publication}, grant: by_rule}
"""

WRONG: list[tuple[str, int, str]] = [
    # command line, exit code, what the line has to say
    ("strt", 2, "No such command 'strt'. Did you mean 'start'"),
    ("start --tenent acme", 2, "No such option: --tenent"),
    ("start --tenant", 2, "Option '--tenant' requires an argument"),
    ("start a.yaml b.yaml", 2, "unexpected extra argument"),
    ("list", 2, "Missing option '--tenant'"),
    ("status --tenant acme", 2, "Missing argument 'OPERATION'"),
    ("approve op --tenant acme", 2, "Missing option '--as'"),
    ("sign approve op --tenant acme --as bob", 2, "Missing option '--out'"),
    ("audit show --tenant nope", 1, "tenant 'nope' is not there"),
    ("audit export --tenant nope", 1, "tenant 'nope' is not there"),
    ("take-over op --tenant acme", 2, "Missing option '--as'"),
    ("release op --tenant acme --as lea", 2, "Missing option '--version'"),
    ("grade op --tenant acme --as lea --version -1", 2, "--version"),
    ("hand-over op --tenant acme --as lea --to LEA", 1, "to: id 'LEA' is not allowed"),
    ("sign cancel op --tenant acme --as lea", 2, "Missing option '--out'"),
    ("brief op --tenant acme", 1, "op"),
    ("cancel op --tenant acme --as lea", 1, "op"),
    (f"start {ASK} {RITA} --supersedes old:one", 1, "supersedes: id 'old:one' is not allowed"),
    ("freeze --tenant acme --as lea", 2, "Missing option '--reason'"),
    ("freeze --tenant acme --as lea --reason fire", 1, "person lea is not in the directory of tenant acme"),
    ("freezes --tenant nope", 1, "tenant 'nope' is not there"),
    ("unfreeze 0 --tenant acme --as ada", 2, "NUMBER"),
    ("outbox --tenant nope", 1, "tenant 'nope' is not there"),
    ("keys new", 2, "Missing argument 'PERSON...'"),
    ("server --ui-port many", 2, "--ui-port"),
    ("wait op --tenant acme --until TOMORROW", 2, "--until"),
    ("list --tenant ACME", 1, "id 'ACME' is not allowed; use 1 to 64 of a-z"),
    ("list --tenant а", 1, "is not allowed"),
    ("list --tenant acme:x", 1, "is not allowed"),
    (f"list --tenant {'a' * 65}", 1, "is not allowed"),
    ("status ../etc --tenant acme", 1, "operation: id '../etc' is not allowed"),
    ("status op --tenant acme", 1, "op"),
    ("show op --tenant acme", 1, "op"),
    ("timeline op --tenant acme", 1, "op"),
    ("wait op --tenant acme", 1, "op"),
    ("wait op --tenant acme --timeout soon", 2, "--timeout: 'soon' is no time; write a number and s, m, h or d"),
    ("wait op --tenant acme --timeout -1s", 2, "--timeout: '-1s' is no time"),
    ("approve op --tenant acme --as bob", 1, "op"),
    ("audit verify", 1, "no tenant yet"),
    ("keys new rita --tenant acme", 1, "person rita is not in the directory of tenant acme"),
    ("keys new rita bob --tenant acme --out one.pem", 1, "--out: one file holds one key, and 2 persons are named"),
    ("keys new rita --tenant acme --valid soon", 2, "--valid: 'soon' is no time; write a number and s, m, h or d"),
    ("keys revoke rita k-1 --tenant acme", 1, "rita has no key k-1"),
    (f"keys revoke rita k-1 --tenant acme --reason {'x' * 2001}", 1, "--reason: 2001 characters, at most 2000 are"),
    ("directory apply nowhere.yaml", 1, "nowhere.yaml: cannot be read: No such file"),
    ("directory apply bad-role.yaml", 1, "tenants.acme.rita.roles.0: role 'Requester!' is not allowed; use 1 to 32"),
    ("directory apply no-list.yaml", 1, "no-list.yaml: tenants.acme.rita: roles are a list; write [requester]"),
    ("directory apply misspelt-entry.yaml", 1, "misspelt-entry.yaml: tenants.acme.rita.rols: no such field"),
    ("directory apply half-limit.yaml", 1, "tenants.acme.bob.limits.0: give 'total' and 'within' together, or neither"),
    ("directory apply no-currency.yaml", 1, "tenants.acme.bob.limits.0.each: amount '10.00 EUX': EUX is no currency"),
    ("directory apply two-limits.yaml", 1, "tenants.acme.bob: give at most one limit per currency"),
    ("directory apply no-key.yaml", 1, "tenants.acme.bob.keys.0: public key 'AAAA' is not the plain base64url of"),
    ("policy check nowhere.yaml", 1, "nowhere.yaml: cannot be read: No such file"),
    ("policy check field.yaml", 1, "field.yaml: ruls: no such field; check the spelling"),
    ("policy check fact.yaml", 1, "fact.yaml: rules.0.when.side_efect"),
    ("policy check effect.yaml", 1, "rules.all.when.side_effect: no channel has 'external_publicaton'; there are: "),
    (
        "policy check one-admin.yaml",
        1,
        "one-admin.yaml: policy administration: rules.one: changes of authority need two",
    ),
    (
        "policy check case.yaml",
        1,
        "case.yaml: policy: no case is called 'repot'; "
        "the cases are: report, refund, compensation, message, administration",
    ),
    ("policy check good-policy.yaml --amount 5", 1, "amount '5' is not allowed; write it as 1000.00 EUR"),
    ("policy explain op --tenant acme", 1, "op"),
    ("policy apply good-policy.yaml --tenant acme", 2, "Missing option '--as'"),
    (
        "policy apply good-policy.yaml --tenant acme --as ada",
        1,
        "the first set-up of tenant acme is open, so nobody need be asked: put the files",
    ),
    ("policy show nope --tenant acme", 1, "tenant 'acme' is not there; check its name"),
    ("policy show --tenant acme", 1, "tenant 'acme' is not there"),
    ("policy check good-policy.yaml --tenant acme", 1, "tenant 'acme' is not there"),
    ("list --tenant acme", 1, "tenant 'acme' is not there"),
    ("directory show --tenant acme", 1, "tenant 'acme' is not there"),
    ("keys list --tenant acme", 1, "tenant 'acme' is not there"),
    ("directory apply twice.yaml", 1, "key 'acme' stands twice"),
    ("directory apply good-directory.yaml", 1, "not confirmed, nothing was done; give --yes"),
    ("start", 1, "start: --tenant: give it, or a request file"),
    (f"start {RITA} --channel internal --data good.csv", 1, "start: --question: give it, or a request file"),
    (f"start {RITA} {ASK}", 1, "start: --data: give it, or a request file"),
    (f"start --tenant acme {ASK} --data good.csv", 1, "start: --as: give it, or a request file"),
    ("start nowhere.yaml", 1, "nowhere.yaml: cannot be read: No such file"),
    ("start folder", 1, "folder: cannot be read: Is a directory"),
    ("start misspelt.yaml", 1, "misspelt.yaml: qestion: no such field"),
    ("start without-question.yaml", 1, "without-question.yaml: question: it is missing; give it"),
    ("start empty-question.yaml", 1, "empty-question.yaml: question: write 1 or more characters"),
    ("start number.yaml", 1, "number.yaml: question: write a text, in quotes"),
    ("start twice-request.yaml", 1, "key 'question' stands twice"),
    ("start anchors.yaml", 1, "anchors and aliases are not allowed"),
    ("start key.yaml", 1, "key 7 is not text"),
    ("start tag.yaml", 1, "tag.yaml: line 1"),
    ("start list.yaml", 1, "list.yaml: holds no fields"),
    ("start empty.yaml", 1, "empty.yaml: holds no fields"),
    ("start latin.yaml", 1, "latin.yaml: not UTF-8 at byte"),
    ("start huge.yaml", 1, "huge.yaml: larger than the 65536 bytes"),
    ("start deep.yaml", 1, "deep.yaml: "),
    ("start nul.yaml", 1, "nul.yaml: "),
    ("start surrogate.json", 1, "lone surrogate"),
    ("start nan.json", 1, "NaN is not a number in JSON"),
    ("start twice.json", 1, "the key 'question' stands twice"),
    ("start cut.json", 1, "cut.json: not acceptable JSON"),
    ("start good-request.yaml --question Why?", 1, "--question: good-request.yaml gives 'question' already"),
    ("start good-request.yaml --as bob", 1, "--as: good-request.yaml gives 'requester' already"),
    ("start good-request.yaml", 1, "rita"),
]

FILES: dict[str, str | bytes] = {
    "good.csv": "day,amount\n2026-01-05,10.50\n",
    "good.yaml": "columns: {day: {type: date}, amount: {type: number}}",
    "good-request.yaml": GOOD,
    "good-directory.yaml": f"tenants: {{acme: {{rita: [requester], {ADMINS}}}}}",
    "misspelt-entry.yaml": "tenants: {acme: {rita: {rols: [requester]}}}",
    "half-limit.yaml": "tenants: {acme: {bob: {roles: [reviewer], limits: [{each: 10.00 EUR, within: 24h}]}}}",
    "no-currency.yaml": "tenants: {acme: {bob: {roles: [reviewer], limits: [{each: 10.00 EUX}]}}}",
    "two-limits.yaml": "tenants: {acme: {bob: {roles: [reviewer], limits: [{each: 10.00 EUR}, {each: 9.00 EUR}]}}}",
    "no-key.yaml": "tenants: {acme: {bob: {roles: [reviewer], keys: [AAAA]}}}",
    "good-policy.yaml": POLICY,
    "field.yaml": POLICY.replace("rules:", "ruls:"),
    "fact.yaml": POLICY.replace("side_effect:", "side_efect:"),
    "effect.yaml": POLICY.replace("external_publication", "external_publicaton"),
    "case.yaml": POLICY.replace("policy: report", "policy: repot"),
    "one-admin.yaml": (ROOT / "policies" / "administration.yaml")
    .read_text()
    .replace("two-admins", "one")
    .replace("approvals: 2", "approvals: 1"),
    "bad-role.yaml": "tenants: {acme: {rita: [Requester!]}}",
    "no-list.yaml": "tenants: {acme: {rita: requester}}",
    "twice.yaml": "tenants: {acme: {rita: [requester]}, acme: {bob: [reviewer]}}",
    "misspelt.yaml": GOOD.replace("question", "qestion"),
    "without-question.yaml": GOOD.replace("question: What?\n", ""),
    "empty-question.yaml": GOOD.replace("question: What?", "question: ''"),
    "number.yaml": GOOD.replace("question: What?", "question: 7"),
    "twice-request.yaml": GOOD + "question: Why?\n",
    "anchors.yaml": "a: &a [x, x]\nb: [*a, *a]\n",
    "key.yaml": "7: seven\n",
    "tag.yaml": "question: !!python/object/apply:os.system ['true']\n",
    "list.yaml": "- question\n",
    "empty.yaml": "",
    "latin.yaml": "question: für\n".encode("latin-1"),
    "huge.yaml": GOOD + "#" * 70_000,
    "deep.yaml": "a: " + "[" * 5_000,
    "nul.yaml": 'question: "a\\0b"\n',
    "surrogate.json": '{"question": "\\ud800"}',
    "nan.json": '{"question": NaN}',
    "twice.json": '{"question": "a", "question": "b"}',
    "cut.json": '{"question": "a"',
}


@pytest.fixture
def desk(bare: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """An empty installation, in a folder with the files above."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return bare


@pytest.fixture
def staffed(desk: CommandLine) -> CommandLine:
    """The same with rita and three admins in the directory, and their keys."""
    desk.done("directory", "apply", "good-directory.yaml", "--yes")
    desk.done("keys", "new", "rita", "ada", "ben", "cleo", "--tenant", "acme")
    return desk


def assert_one_line(err: str, said: str) -> None:
    assert err.startswith("error: "), err
    assert err.count("\n") == 1, err
    assert said in err


@pytest.mark.parametrize(("line", "code", "said"), WRONG, ids=[line[:40] for line, _, _ in WRONG])
def test_a_wrong_command_says_so_in_one_line(desk: CommandLine, line: str, code: int, said: str) -> None:
    answer = desk(*line.split())

    assert answer.code == code
    assert_one_line(answer.err, said)


@pytest.mark.parametrize(
    ("data", "schema", "said"),
    [
        (b"day,amount\n2026-01-05,1.5\n2026-02-30,2\n", FILES["good.yaml"], "2026-02-30"),
        (b'day,amount\n2026-01-05,"1,500.25"\n', FILES["good.yaml"], "1,500.25"),
        (b"day,amount\n2026-01-05,12 %\n", FILES["good.yaml"], "12 %"),
        (b"day,amount\n2026-01-05\n", FILES["good.yaml"], "bad.csv: row 1 (line 2)"),
        (b"day,day\n1,2\n", "columns: {}", "day"),
        (b"", "columns: {}", "empty"),
        (b"day,amount\n2026-01-05,\xe9\n", FILES["good.yaml"], "UTF-8"),
        (b"day,amount\n2026-01-05,1\n", "columns: {price: {type: number}}", "price"),
        (b"day,amount\n", "columns: {day: {typ: date}}", "columns.day.typ: no such field"),
        (b"day,amount\n", "columns: {day: {type: money}}", "columns.day.type: "),
        (b"day,amount\n", "delimiter: '#'", "delimiter: "),
    ],
)
def test_bad_data_is_refused_at_once(
    staffed: CommandLine, tmp_path: Path, data: bytes, schema: str | bytes, said: str
) -> None:
    (tmp_path / "bad.csv").write_bytes(data)
    (tmp_path / "bad.yaml").write_text(str(schema))

    answer = staffed("start", *RITA.split(), *ASK.split(), "--data", "bad.csv", "--schema", "bad.yaml")

    assert answer.code == 1
    assert_one_line(answer.err, said)
    assert staffed.done("list", "--tenant", "acme", "--json").json() == []


def test_a_person_without_the_role_cannot_ask(staffed: CommandLine, tmp_path: Path) -> None:
    """Refused before it is registered: the operation's id stays free for somebody who may."""
    (tmp_path / "more.yaml").write_text(f"tenants: {{acme: {{rita: [requester], bob: [reviewer], {ADMINS}}}}}")
    staffed.done("directory", "apply", "more.yaml", "--yes")
    staffed.done("keys", "new", "bob", "--tenant", "acme")

    answer = staffed("start", "--tenant", "acme", "--as", "bob", *ASK.split(), "--data", "good.csv")

    assert answer.code == 1
    assert_one_line(answer.err, "person bob may not ask for operations of case report in tenant acme: an active person")
    assert staffed.done("list", "--tenant", "acme", "--json").json() == []
    assert not (staffed.home / "evidence").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "--channel press",
            "channel 'press' is not configured for tenant acme; allowed: internal, messages, payments, public",
        ),
        ("--channel payments", "channel 'payments' takes refunds, not documents; allowed: internal, messages, public"),
        ("--channel Public", "channel: "),
        ("--language fr", "language: write 'en' or 'zh'"),
        ("--data nowhere.csv", "nowhere.csv"),
        ("--data folder", "folder is not a regular file"),
        ("--schema nowhere.yaml", "nowhere.yaml: cannot be read"),
        ("--as bob", "person bob is not in the directory of tenant acme"),
        ("--key nowhere.pem", "key file nowhere.pem is not there"),
        ("--key good.csv", "key file good.csv holds no private key"),
        ("--key folder", "key file folder cannot be read"),
        (f"--title {'t' * 301}", "title: write 300 characters at the most"),
        ("--operation Nope", "operation: id 'Nope' is not allowed"),
    ],
)
def test_a_wrong_option_of_start_is_named(staffed: CommandLine, change: str, said: str) -> None:
    options = dict(zip(*[iter(f"{RITA} {ASK} --data good.csv --schema good.yaml".split())] * 2, strict=True))
    name, value = change.split()

    answer = staffed("start", *[word for pair in {**options, name: value}.items() for word in pair])

    assert answer.code == 1
    assert_one_line(answer.err, said)


@pytest.mark.guarantee("G09")
def test_whoever_founds_a_tenant_has_no_channel_in_it(desk: CommandLine, tmp_path: Path) -> None:
    """Refused before anything is stored; the shipped channels are those of acme alone."""
    (tmp_path / "mine.yaml").write_text(f"tenants: {{globex: {{mal: [requester, reviewer], {ADMINS}}}}}")
    desk.done("directory", "apply", "mine.yaml", "--yes")
    desk.done("keys", "new", "mal", "ada", "ben", "cleo", "--tenant", "globex")

    answer = desk("start", "--tenant", "globex", "--as", "mal", *ASK.split(), "--data", "good.csv")

    assert answer.code == 1
    assert_one_line(answer.err, "channel 'internal' is not configured for tenant globex; allowed: none")
    assert not (desk.home / "evidence").exists()


def test_a_server_that_is_not_there_is_named_with_its_address(staffed: CommandLine) -> None:
    answer = staffed("start", "good-request.yaml")

    assert answer.code == 1
    assert_one_line(answer.err, "no Temporal server answers at 127.0.0.1:1")
    assert answer.err.endswith("; the operation is registered; give the same command again\n")
    assert len(staffed.done("list", "--tenant", "acme", "--json").json()) == 1
    assert ".venv/bin/python starter.py server" in answer.err


def test_a_key_of_somebody_else_signs_nothing(staffed: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "both.yaml").write_text(f"tenants: {{acme: {{rita: [requester], bob: [reviewer], {ADMINS}}}}}")
    staffed.done("directory", "apply", "both.yaml", "--yes")
    staffed.done("keys", "new", "bob", "--tenant", "acme", "--out", "bob.pem")

    answer = staffed("start", "good-request.yaml", "--key", "bob.pem")

    assert answer.code == 1
    assert_one_line(answer.err, "key file bob.pem is not registered as a key of rita in tenant acme")


def test_an_existing_key_is_never_overwritten(staffed: CommandLine) -> None:
    path = staffed.home / "keys" / "acme" / "rita.pem"
    before = path.read_bytes()

    answer = staffed("keys", "new", "rita", "--tenant", "acme")

    assert answer.code == 1
    assert_one_line(answer.err, f"key file {path} exists and its key is in use; for another one give --out FILE")
    assert path.read_bytes() == before


def test_a_new_key_takes_the_place_of_a_revoked_one(staffed: CommandLine) -> None:
    folder = staffed.home / "keys" / "acme"
    before = (folder / "rita.pem").read_bytes()
    listed = staffed.done("keys", "list", "--tenant", "acme", "--json").json()
    old = next(one["id"] for one in listed if one["person"] == "rita")
    staffed.done("keys", "revoke", "rita", old, "--tenant", "acme")

    answer = staffed.done("keys", "new", "rita", "--tenant", "acme")

    assert f"its file is now {folder / f'rita.{old}.pem'}" in answer.out
    assert (folder / f"rita.{old}.pem").read_bytes() == before
    assert (folder / "rita.pem").read_bytes() != before


def test_an_operation_that_is_not_there_has_no_audit(staffed: CommandLine) -> None:
    answer = staffed("audit", "show", "--tenant", "acme", "--operation", "nope")

    assert answer.code == 1
    assert_one_line(answer.err, "operation 'nope' is not there")


@pytest.mark.parametrize("line", ["", "keys", "audit", "sign", "policy"])
def test_a_group_alone_prints_its_help(bare: CommandLine, line: str) -> None:
    answer = bare(*line.split())

    assert answer.code == 2
    assert "error:" not in answer.err
    assert answer.err.startswith("Usage: starter.py") or answer.err.lstrip().startswith("Usage: starter.py")
    assert "\nCommands:\n" in answer.err


def misspelt_policy(folder: Path) -> None:
    path = folder / "report.yaml"
    path.write_text(path.read_text().replace("approvals:", "aprovals:"))


def empty_rubric(folder: Path) -> None:
    (folder / "report-rubric.yaml").write_text("rubric: report\nversion: 1\ncriteria: []\n")


def no_channels(folder: Path) -> None:
    (folder / "channels.yaml").unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (misspelt_policy, "report.yaml: rules.1.need"),
        (empty_rubric, "report-rubric.yaml: criteria"),
        (no_channels, "channels.yaml: cannot be read"),
    ],
)
def test_a_spoilt_policy_file_is_named_by_doctor(
    bare: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None], said: str
) -> None:
    folder = tmp_path / "policies"
    shutil.copytree(ROOT / "policies", folder)
    spoil(folder)
    monkeypatch.setenv("COUNTERSIGN_POLICIES", str(folder))

    answer = bare("doctor", "--json")

    assert answer.code == 1
    problems = {check["name"]: check["detail"] for check in answer.json() if not check["ok"]}
    assert said in problems["policy, rubric, channels"]


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("COUNTERSIGN_MAX_ROUNDS", "many", "setting COUNTERSIGN_MAX_ROUNDS: "),
        ("COUNTERSIGN_INSTALLATION", "My Company", "setting COUNTERSIGN_INSTALLATION: "),
        ("DATABASE_URL", "mysql://localhost/x", "DATABASE_URL"),
        ("DATABASE_URL", "postgresql://127.0.0.1:1/nothing", "ledger"),
        ("COUNTERSIGN_HOME", os.devnull, f"{os.devnull}"),
        ("TEMPORAL_PROFILE", "nowhere", "Temporal settings: "),
    ],
)
def test_a_wrong_setting_is_named(
    staffed: CommandLine, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)

    answer = staffed("start", "good-request.yaml")

    assert answer.code == 1
    assert_one_line(answer.err, said)


def test_a_bug_is_one_line_and_its_traceback_lies_in_the_log(
    bare: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("countersign.bootstrap.open_ledger", broken)

    answer = bare("list", "--tenant", "acme")

    assert answer.code == 1
    assert_one_line(answer.err, "unexpected ZeroDivisionError; this is a bug")
    assert "secret detail" not in answer.err
    assert "secret detail" in next((bare.home / "logs").glob("*.log")).read_text()


def test_a_full_disk_is_said_in_plain_words(staffed: CommandLine) -> None:
    answer = staffed("audit", "export", "--tenant", "acme", "--out", "/dev/full")

    assert answer.code == 1
    assert_one_line(answer.err, "there is no room left on the disk; make room and repeat the command")


def test_a_reader_that_has_gone_is_no_error(bare: CommandLine) -> None:
    command = shlex.join([*STARTER, "--help"])

    piped = subprocess.run(["sh", "-c", f"{command} | true"], capture_output=True, text=True, check=False)

    assert piped.stderr == ""


def test_text_that_is_no_unicode_is_refused(tmp_path: Path) -> None:
    answer = starter({"COUNTERSIGN_HOME": str(tmp_path)}, "list", "--tenant", os.fsdecode(b"\xff"))

    assert answer.returncode == 1
    assert_one_line(answer.stderr, "is not allowed")


def test_a_command_starts_without_what_it_does_not_need() -> None:
    """Help comes at once: the Temporal client, the ledger and the data engine take seconds to load."""
    from tests.house.test_import_direction import loaded_by

    assert loaded_by("countersign.cli.app").isdisjoint({"temporalio.client", "sqlalchemy", "duckdb", "cryptography"})
