"""YAML files of policies, rubrics and channels: one meaning each, and refusals that name file and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from countersign.domain.channel import Channels
from countersign.domain.errors import ConfigurationRefused
from countersign.domain.escalation import Reason
from countersign.domain.policy import Policy
from countersign.domain.rubric import Rubric
from countersign.strict_yaml import MAX_BYTES, load, parse, validated

ROOT = Path(__file__).resolve().parents[2]
POLICY = (ROOT / "policies" / "report.yaml").read_text(encoding="utf-8")
CHANNELS = (ROOT / "policies" / "channels.yaml").read_text(encoding="utf-8")
RUBRIC = """
rubric: report-rubric
version: 1
criteria:
  - id: answers
    text: It answers the question that was asked.
"""


def refusal(data: bytes | str) -> str:
    with pytest.raises(ConfigurationRefused) as refused:
        parse(data.encode() if isinstance(data, str) else data, where="p.yaml")
    assert refused.value.message.startswith("p.yaml: ")
    assert len(refused.value.message.splitlines()) == 1
    return refused.value.message


REFUSED = [
    ("a: &x 1\nb: *x", "anchors and aliases are not allowed"),
    ("a: &x 1", "anchors and aliases are not allowed"),
    ("&x a: 1", "anchors and aliases are not allowed"),
    ("a: &x [1]", "anchors and aliases are not allowed"),
    ("a: &x {b: *x}", "anchors and aliases are not allowed"),
    ("base: &b {a: 1}\nc:\n  <<: *b", "anchors and aliases are not allowed"),
    ("a: 1\nb: 2\na: 3", "key 'a' stands twice"),
    ("a: {b: 1, b: 1}", "key 'b' stands twice"),
    ("a: 1\n'a': 2", "key 'a' stands twice"),
    ("1: a", "key 1 is not text; quote it"),
    ("true: a", "key True is not text; quote it"),
    ("~: a", "key None is not text; quote it"),
    ("1.5: a", "key 1.5 is not text; quote it"),
    ("? [a]\n: 1", "key ['a'] is not text"),
    ("? {a: 1}\n: 1", "is not text"),
    ("\ta: 1", "cannot start any token"),
    ("a:\n\t- 1", "cannot start any token"),
    ("a: !!python/object/apply:os.system ['true']", "tags are not allowed"),
    ("a: !!python/name:os.system", "tags are not allowed"),
    ("!!map {a: 1}", "tags are not allowed"),
    ("a: !!str 1", "tags are not allowed"),
    ("a: !!binary aGk=", "tags are not allowed"),
    ("a: !!timestamp 2026-01-01", "tags are not allowed"),
    ("a: !!set {b}", "tags are not allowed"),
    ("a: !own 1", "tags are not allowed"),
    ("a: ! 1", "tags are not allowed"),
    ("a: 1\n---\nb: 2", "another document"),
    ("a: b: c", "mapping values are not allowed"),
    ("a: 'x", "unexpected end of stream"),
    ("a: [1, 2", "line 1:"),
    ("a: {b", "line 1:"),
    ("- a\nb: 1", "line 2:"),
    ("%YAML 3.0\n---\na: 1", "incompatible"),
    ("a: @x", "line 1:"),
    ("a: `x`", "line 1:"),
    ('a: "\\0"', "NUL"),
    ('a: "\\ud800"', "lone surrogate"),
    ('"\\udfff": 1', "lone surrogate"),
    (b"a: \0", "special characters are not allowed"),
    (b"a: \x1b", "special characters are not allowed"),
    (b"a: \xff", "not UTF-8 at byte 3"),
    ("a: é".encode("latin-1"), "not UTF-8 at byte 3"),
    ("a: 1".encode("utf-16"), "not UTF-8"),
    ("a: " + "9" * 5_000, "too many digits"),
    ("[" * 5_000, "nested too deeply"),
    ("- " * 5_000, "nested too deeply"),
    ("a: " + "{b: " * 5_000, "nested too deeply"),
    (b"#" * 1_000_000, f"1000000 bytes, at most {MAX_BYTES} are allowed"),
]


@pytest.mark.parametrize(("data", "says"), REFUSED, ids=[f"{n}-{data[:12]!r}" for n, (data, _) in enumerate(REFUSED)])
def test_what_means_more_than_it_says_is_refused(data: bytes | str, says: str) -> None:
    assert says in refusal(data)


def test_a_refusal_names_the_line() -> None:
    assert refusal("a: 1\nb: 2\nb: 3") == "p.yaml: line 3: key 'b' stands twice"


READ: list[tuple[str, Any]] = [
    ("", None),
    ("# nothing but a comment", None),
    ("a:", {"a": None}),
    ("a: ~", {"a": None}),
    ("a: null", {"a": None}),
    ("a: 12", {"a": 12}),
    ("a: -3", {"a": -3}),
    ("a: 0", {"a": 0}),
    ("a: 1.50", {"a": 1.5}),
    ("a: 1e3", {"a": 1000.0}),
    ("a: true", {"a": True}),
    ("a: false", {"a": False}),
    ("a: [x, {b: 1}]", {"a": ["x", {"b": 1}]}),
    ("a: |\n  two\n  lines", {"a": "two\nlines"}),
    ("a: '😀 二'", {"a": "😀 二"}),
    ("<<: {a: 1}", {"<<": {"a": 1}}),
    ("'1': a", {"1": "a"}),
]
STAYS_TEXT = [
    *("no", "No", "NO", "yes", "on", "off", "y", "n", "True", "TRUE", "False", "Null", "NULL", "none"),
    *("2026-01-05", "2026-01-05T10:00:00Z", "2026-01-05 10:00:00"),
    *("1:30", "12:30:45", "010", "007", "0x10", "0b1", "0o7", "1_000", "+1", "72h"),
    *(".nan", ".NaN", ".inf", "-.inf", ".5", "1.", "=", "<<", "1e", "NaN", "Infinity"),
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_what_is_read(text: str, value: Any) -> None:
    assert parse(text.encode(), where="x") == value
    assert parse(b"\xef\xbb\xbf" + text.encode(), where="x") == value


@pytest.mark.parametrize("text", STAYS_TEXT)
def test_what_older_yaml_turns_into_something_else_stays_text(text: str) -> None:
    """In YAML 1.1 `no` is false, `010` is 8, `1:30` is 90, and a date is no text."""
    assert parse(f"a: {text}\nb: [{text}]".encode(), where="x") == {"a": text, "b": [text]}


@given(st.binary(max_size=60) | st.text(st.sampled_from(list("ab01:-[]{}&*!|>'\"%@`,?#~.<= \n\t\\")), max_size=40))
def test_any_bytes_are_read_or_refused_in_one_line(data: bytes | str) -> None:
    raw = data.encode() if isinstance(data, str) else data
    try:
        parse(raw, where="p.yaml")
    except ConfigurationRefused as refused:
        message = refused.message
    else:
        message = "read"
    assert len(message.splitlines()) == 1


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Zl", "Zp"]), max_size=12)


@given(st.dictionaries(TEXT, st.none() | st.booleans() | st.integers() | TEXT | st.lists(TEXT, max_size=3), max_size=4))
def test_plain_data_in_quotes_comes_back(value: Any) -> None:
    assert parse(json.dumps(value, ensure_ascii=False).encode(), where="x") == value


def loading(tmp_path: Path, text: str, model: type[BaseModel], name: str = "f.yaml") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationRefused) as refused:
        load(path, model)
    assert refused.value.message.startswith(f"{path}: ")
    assert len(refused.value.message.splitlines()) == 1
    return refused.value.message.removeprefix(f"{path}: ")


def test_the_policies_of_this_repository_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "rubric.yaml").write_text(RUBRIC)

    assert load(ROOT / "policies" / "report-rubric.yaml", Rubric).criteria
    assert load(ROOT / "policies" / "report.yaml", Policy).policy == "report"
    assert set(load(ROOT / "policies" / "channels.yaml", Channels).channels) == {
        "internal",
        "public",
        "messages",
        "payments",
    }
    assert load(tmp_path / "rubric.yaml", Rubric).criteria[0].id == "answers"


POLICY_FIELDS = [
    # text in the good file, what stands there instead, the refusal
    ("policy: report", "polcy: report", "polcy: no such field; check the spelling"),
    ("policy: report\n", "", "policy: it is missing; give it"),
    ("policy: report", "policy:", "policy: write a text"),
    ("policy: report", "policy: ''", "policy: id '' is not allowed"),
    ("policy: report", "policy: no one", "policy: id 'no one' is not allowed"),
    ("version: 4", "version:", "version: write a whole number"),
    ("version: 4", "version: 0", "version: write 1 or more"),
    ("version: 4", "version: '1'", "version: write a whole number"),
    ("version: 4", "version: 1.5", "version: write a whole number"),
    ("version: 4", "version: 010", "version: write a whole number"),
    ("version: 4", "version: true", "version: write a whole number"),
    ("version: 4", "version: 1\nversion: 4", "line 5: key 'version' stands twice"),
    ("version: 4", "version: .nan", "version: write a whole number"),
    ("rules:", "rule:", "rule: no such field; check the spelling"),
    ("  - id: internal-by-rule", "  - ID: internal-by-rule", "rules.0.ID: no such field; check the spelling"),
    ("id: internal-by-rule", "id: external-needs-a-reviewer", "the file: each rule needs an id of its own"),
    ("when: {tool: publish_report, side_effect: internal_publication}", "when: {}", "rules.0.when: write 1 or more"),
    ("when: {tool: publish_report, side_effect: internal_publication}", "when:", "rules.0.when: write fields"),
    ("side_effect: internal_publication", "side_efect: internal_publication", "rules.0.when.side_efect"),
    ("side_effect: internal_publication", "side_effect:", "rules.0.when.side_effect"),
    ("side_effect: internal_publication", "side_effect: ''", "rules.0.when.side_effect"),
    ("side_effect: internal_publication", "side_effect: []", "rules.0.when.side_effect"),
    ("side_effect: internal_publication", "side_effect: true", "rules.0.when.side_effect"),
    ("grant: by_rule", "grant: always", "rules.0.grant: write 'by_rule'"),
    ("grant: by_rule", "grant:", "rules.0: give exactly one of 'grant' and 'need'"),
    ("    grant: by_rule\n", "", "rules.0: give exactly one of 'grant' and 'need'"),
    ("      role: reviewer\n", "", "rules.1.need.role: it is missing; give it"),
    ("role: reviewer", "role:", "rules.1.need.role: write a text"),
    ("role: reviewer", "roles: [reviewer]", "rules.1.need.roles: no such field; check the spelling"),
    ("approvals: 1", "approvals: 0", "rules.1.need.approvals: write 1 or more"),
    ("approvals: 1", "approvals: yes", "rules.1.need.approvals: write a whole number"),
    ("approvals: 1", "approval: 1", "rules.1.need.approval: no such field; check the spelling"),
    ("decisions: [approve, edit, reject]", "decisions: []", "rules.1.need.decisions: "),
    ("decisions: [approve, edit, reject]", "decisions: approve", "rules.1.need.decisions: write a list"),
    ("decisions: [approve, edit, reject]", "decisions: [aprove]", "rules.1.need.decisions.0: write 'approve'"),
    ("fields: [name, title]", "fields: []", "terms.editing.fields: "),
    ("fields: [name, title]", "feilds: [name]", "terms.editing.feilds: no such field; check the spelling"),
    ("raises_risk: [side_effect]", "raises_risk: [sideeffect]", "terms.editing.raises_risk.0: write 'tool'"),
    ("counts: where_one_suffices", "counts: always", "terms.editing.counts: write 'never'"),
    ("then: flag", "then: ignore", "terms.after_rejection.then: write 'flag' or 'refuse'"),
    ("within: 30d, then", "within: 30, then", "terms.after_rejection.within: '30' is no time"),
    ("decide_within: 72h", "decide_within: 72", "rules.1.need.decide_within: '72' is no time; write a number"),
    ("decide_within: 72h", "decide_within: 1:30", "rules.1.need.decide_within: '1:30' is no time"),
    ("decide_within: 72h", "decide_within: '{ge}'", "rules.1.need.decide_within: '{ge}' is no time"),
    ("role: reviewer", "role: Reviewer", "rules.1.need.role: role 'Reviewer' is not allowed; use 1 to 32 of a-z"),
    ("decide_within: 72h", "decide_witin: 72h", "rules.1.need.decide_witin: no such field; check the spelling"),
    ("execute_within: 1h", "execute_within: ''", "rules.1.need.execute_within: '' is no time"),
]


@pytest.mark.guarantee("G01")
@pytest.mark.parametrize(("good", "bad", "says"), POLICY_FIELDS)
def test_a_wrong_field_of_a_policy_is_named(tmp_path: Path, good: str, bad: str, says: str) -> None:
    assert good in POLICY

    assert loading(tmp_path, POLICY.replace(good, bad, 1), Policy).startswith(says)


WITH_DEFAULTS = ("counts:", "after_rejection:")
STEPPING_IN = (
    "takeover:",
    "settling:",
    "requester:",
    "ladder: {",
    "remind:",
    "then: expire",
    *(f"{reason}:" for reason in Reason),
)
"""Without these lines fewer people come in; none of them lets anything more happen."""
EDITING = ("terms:", "editing:", "fields:", "raises_risk:")
LINES = [line for line in POLICY.splitlines() if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize(
    "line", [line for line in LINES if not line.strip().startswith((*WITH_DEFAULTS, *STEPPING_IN))]
)
def test_no_line_of_a_policy_can_be_lost_unseen(tmp_path: Path, line: str) -> None:
    assert loading(tmp_path, POLICY.replace(f"{line}\n", "", 1).replace(line, "", 1), Policy)


def test_terms_that_are_left_out_are_as_cautious_as_the_defaults_say(tmp_path: Path) -> None:
    bare = [line for line in LINES if not line.strip().startswith((*WITH_DEFAULTS, *EDITING))]
    (tmp_path / "f.yaml").write_text("\n".join(bare))

    terms = load(tmp_path / "f.yaml", Policy).terms

    assert (terms.editing, terms.break_glass) == (None, None)
    assert (terms.after_rejection.within, terms.after_rejection.then) == ("30d", "flag")


RUBRIC_FIELDS = [
    ("rubric: report-rubric", "rubrik: report-rubric", "rubrik: no such field; check the spelling"),
    ("rubric: report-rubric", "rubric:", "rubric: write a text"),
    ("version: 1\n", "", "version: it is missing; give it"),
    ("criteria:", "critera:", "critera: no such field; check the spelling"),
    ("- id: answers", "- ident: answers", "criteria.0.ident: no such field; check the spelling"),
    ("id: answers", "id:", "criteria.0.id: write a text"),
    ("text: It answers the question that was asked.", "text:", "criteria.0.text: write a text"),
    ("text: It answers the question that was asked.", "text: ''", "criteria.0.text: write 10 or more"),
    ("text: It answers the question that was asked.", "text: 2026-01-05", None),
    ("text: It answers", "text: It answers: it", "line 6: mapping values are not allowed here"),
]


@pytest.mark.guarantee("G40")
@pytest.mark.parametrize(("good", "bad", "says"), RUBRIC_FIELDS)
def test_a_wrong_field_of_a_rubric_is_named(tmp_path: Path, good: str, bad: str, says: str | None) -> None:
    text = RUBRIC.replace(good, bad, 1)
    if says is None:
        (tmp_path / "f.yaml").write_text(text)
        assert load(tmp_path / "f.yaml", Rubric).criteria[0].text == "2026-01-05"
    else:
        assert loading(tmp_path, text, Rubric).startswith(says)


@pytest.mark.parametrize(
    ("good", "bad", "says"),
    [
        ("    kind: file", "    kind: folder", "channels.internal.kind: write 'file', 'http' or 'payments'"),
        ("    kind: file", "    kind: http", "channels.internal: a channel of kind http needs 'url'"),
        ("side_effect: internal_publication", "side_effect:", "channels.internal.side_effect"),
        ("    reversibility: reversible\n", "", "channels.internal.reversibility: it is missing; give it"),
        ("file\n    tenants: [acme]\n", "file\n", "channels.internal.tenants: it is missing; give it"),
        ("file\n    tenants: [acme]", "file\n    tenants: []", "channels.internal.tenants: "),
        ("file\n    tenants: [acme]", "file\n    tenants: acme", "channels.internal.tenants: "),
        ("file\n    tenants: [acme]", "file\n    tenants: ['*']", "channels.internal.tenants.0: "),
        ("file\n    tenants: [acme]", "file\n    tenants: [..]", "channels.internal.tenants.0: "),
        ("  internal:", "  Internal:", "channels.Internal"),
        ("channels:", "channel:", "channel: no such field; check the spelling"),
    ],
)
def test_a_wrong_field_of_the_channels_is_named(tmp_path: Path, good: str, bad: str, says: str) -> None:
    assert loading(tmp_path, CHANNELS.replace(good, bad, 1), Channels).startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file: write fields, each as `name: value`"),
        ("[]", "the file: write fields, each as `name: value`"),
        ("report", "the file: write fields, each as `name: value`"),
        ("policy: 1e999", "Out of range float values"),
    ],
)
def test_a_file_that_is_no_policy_at_all_is_refused(tmp_path: Path, text: str, says: str) -> None:
    assert loading(tmp_path, text, Policy).startswith(says)


def test_a_file_that_is_not_there_or_no_file_is_told_in_plain_words(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ConfigurationRefused, match="cannot be read: "):
            load(path, Policy)


def test_a_json_file_is_read_as_json(tmp_path: Path) -> None:
    """An escaped emoji is two surrogates to YAML, and one character to JSON."""
    text = '{"rubric": "r", "version": 1,\t"criteria": [{"id": "a", "text": "It is fun: \\ud83d\\ude00"}]}'
    path = tmp_path / "r.json"
    path.write_text(text)

    assert load(path, Rubric).criteria[0].text == "It is fun: 😀"
    assert loading(tmp_path, '{"rubric": "r", "rubric": "s"}', Rubric, "twice.json").startswith("not acceptable JSON")
    assert loading(tmp_path, text.replace("version", "versoin"), Rubric, "bad.json").startswith(
        "versoin: no such field"
    )


def test_plain_data_from_elsewhere_is_checked_the_same_way() -> None:
    with pytest.raises(ConfigurationRefused, match=r"^request: version: it is missing; give it$"):
        validated({"rubric": "r", "criteria": [{"id": "a", "text": "long enough"}]}, Rubric, where="request")
