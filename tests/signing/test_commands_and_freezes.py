"""Commands and freeze orders are read as strictly as decisions, and no kind of statement passes for another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from countersign.domain.command import COMMANDS, Command
from countersign.domain.errors import StatementRefused
from countersign.domain.freeze import FreezeOrder
from countersign.signing.statements import (
    sign_command,
    sign_freeze,
    verify_command,
    verify_decision,
    verify_freeze,
    verify_request,
)
from tests.domain.samples import NOW
from tests.signing.tokens import (
    BOB,
    CARL,
    CLAIMS,
    EVE,
    HEADER,
    PROPOSAL,
    REQUEST_CLAIMS,
    REQUEST_HEADER,
    SECONDS,
    directory,
    token,
)

pytestmark = pytest.mark.guarantee("G18")

COMMON = {name: REQUEST_CLAIMS[name] for name in ("aud", "sub", "tenant", "iat", "jti")}
COMMAND_CLAIMS: dict[str, Any] = {
    **COMMON,
    "operation": "report-1",
    "exp": SECONDS + 3_600,
    "command": "amend",
    "control_version": 3,
    "draft_version": 2,
    "content": PROPOSAL.action_hash,
    "to": "",
    "successor": "",
    "question": "",
    "key": "",
    "finding": "",
    "reference": "",
    "comment_hash": "",
}
FREEZE_CLAIMS: dict[str, Any] = {**COMMON, "tool": "publish_report", "reason": "a leaked key"}
COMMAND_HEADER, FREEZE_HEADER = ({**HEADER, "typ": typ} for typ in ("command+jwt", "freeze+jwt"))


class Form(NamedTuple):
    """One kind of statement: how it is written by hand, and read."""

    header: dict[str, Any]
    claims: dict[str, Any]
    verify: Callable[..., Any]


FORMS = {
    "decision": Form(HEADER, CLAIMS, verify_decision),
    "request": Form(REQUEST_HEADER, REQUEST_CLAIMS, verify_request),
    "command": Form(COMMAND_HEADER, COMMAND_CLAIMS, verify_command),
    "freeze": Form(FREEZE_HEADER, FREEZE_CLAIMS, verify_freeze),
}
NEW = ("command", "freeze")


def reason(form: Form, forged: str, now: Any = NOW) -> str:
    """Why it is refused."""
    with pytest.raises(StatementRefused) as refused:
        form.verify(forged, directory(), installation="local", now=now)
    assert len(refused.value.message.splitlines()) == 1
    return refused.value.reason


def test_a_command_is_read_as_it_was_signed() -> None:
    read, signer = verify_command(token(COMMAND_HEADER, COMMAND_CLAIMS), directory(), installation="local", now=NOW)
    assert signer.id == "bob"
    assert verify_command(sign_command(read, BOB), directory(), installation="local", now=NOW)[0] == read
    assert (read.command, read.control_version, read.content) == ("amend", 3, PROPOSAL.action_hash)


def test_a_freeze_order_is_read_as_it_was_signed() -> None:
    read, signer = verify_freeze(token(FREEZE_HEADER, FREEZE_CLAIMS), directory(), installation="local", now=NOW)
    assert signer.id == "bob"
    assert verify_freeze(sign_freeze(read, BOB), directory(), installation="local", now=NOW)[0] == read
    assert (read.tenant, read.tool, read.reason) == ("acme", "publish_report", "a leaked key")


def test_all_of_both_is_bound_by_the_signature() -> None:
    assert len(COMMAND_CLAIMS) + len({"kid"}) == len(Command.model_fields)
    assert len(FREEZE_CLAIMS) + len({"kid"}) == len(FreezeOrder.model_fields)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_signed(command: str) -> None:
    claims = {**COMMAND_CLAIMS, "command": command}
    read, _ = verify_command(token(COMMAND_HEADER, claims), directory(), installation="local", now=NOW)
    assert read.command == command


@pytest.mark.parametrize("written", FORMS)
@pytest.mark.parametrize("read", FORMS)
def test_no_kind_passes_for_another(written: str, read: str) -> None:
    if written == read:
        FORMS[read].verify(token(*FORMS[written][:2]), directory(), installation="local", now=NOW)
        return
    assert reason(FORMS[read], token(*FORMS[written][:2])) == "type"
    under_its_type = token(FORMS[read].header, FORMS[written].claims)
    assert reason(FORMS[read], under_its_type) == "claims"


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in NEW for name in FORMS[kind].claims])
def test_no_claim_may_be_missing_and_none_be_added(kind: str, name: str) -> None:
    form = FORMS[kind]
    missing = {each: value for each, value in form.claims.items() if each != name}
    assert reason(form, token(form.header, missing)) == ("audience" if name == "aud" else "claims")
    assert reason(form, token(form.header, {**form.claims, name + "x": form.claims[name]})) == "claims"


WRONG: dict[str, dict[str, list[Any]]] = {
    "command": {
        "command": ["withdrawn", "Cancel", "", None, ["cancel"], "approve", "freeze"],
        "control_version": [0, -1, "3", 3.0, True, None, 10**9],
        "draft_version": [-1, "2", 2.0, False, None, 10**9],
        "content": [None, "sha256:0", PROPOSAL.action_hash.upper(), {}],
        "to": [None, "Bob", "bob carl", ["bob"]],
        "successor": [None, "Report-2", 1],
        "key": [None, "a" * 63, "A" * 64, 1, "a" * 64 + "\n"],
        "finding": [None, "done", "Executed", True],
        "reference": [None, "a b", "x" * 501, "\u00e9", 1],
        "comment_hash": [None, "because"],
        "operation": ["", None, "Report-1"],
        "exp": [None, True, "tomorrow", 1.5, 10**300],
        "jti": ["short", None, "x" * 65],
    },
    "freeze": {
        "tool": [None, 1, ["publish_report"], "x" * 101],
        "reason": ["", None, "x" * 501],
        "tenant": ["", None, "ACME"],
        "iat": [None, True, "now", 1.5, 10**300],
        "jti": ["short", None, "x" * 65],
        "sub": ["", None, "Bob"],
    },
}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(kind, name, value) for kind, names in WRONG.items() for name, values in names.items() for value in values],
)
def test_a_claim_of_the_wrong_form_is_refused(kind: str, name: str, value: Any) -> None:
    form = FORMS[kind]
    assert reason(form, token(form.header, {**form.claims, name: value})) == "claims"


@pytest.mark.parametrize("kind", NEW)
def test_somebody_elses_signature_installation_or_key_is_refused(kind: str) -> None:
    form = FORMS[kind]
    assert reason(form, token(form.header, form.claims, EVE)) == "signature"
    assert reason(form, token(form.header, {**form.claims, "sub": "carl"})) == "unknown_key"
    assert reason(form, token({**form.header, "kid": "carl-1"}, form.claims, CARL)) == "unknown_key"
    assert reason(form, token(form.header, {**form.claims, "tenant": "other"})) == "unknown_key"
    assert reason(form, token(form.header, {**form.claims, "aud": "elsewhere"})) == "audience"
    assert reason(form, token({**form.header, "alg": "none"}, form.claims)) == "algorithm"


@pytest.mark.parametrize("kind", NEW)
def test_neither_comes_from_the_future(kind: str) -> None:
    form = FORMS[kind]
    assert reason(form, token(form.header, {**form.claims, "iat": SECONDS + 61})) == "not_yet"


@pytest.mark.guarantee("G29")
def test_a_command_is_good_until_its_end_and_not_at_it() -> None:
    form = FORMS["command"]
    good = token(form.header, form.claims)
    end = NOW + timedelta(hours=1)
    verify_command(good, directory(), installation="local", now=end - timedelta(microseconds=1))
    assert reason(form, good, end) == "expired"
