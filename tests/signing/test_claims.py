"""The claims of a statement, one by one: none may be missing, of another form, or in another one's place."""

from __future__ import annotations

from typing import Any

import pytest

from countersign.signing.statements import sign_decision, verify_decision
from tests.domain.samples import NOW, a_statement
from tests.signing.tokens import (
    BOB,
    CLAIMS,
    SECONDS,
    claims_with,
    directory,
    header_with,
    refusal,
    token,
)

pytestmark = pytest.mark.guarantee("G18")


def without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


@pytest.mark.parametrize("name", CLAIMS)
def test_no_claim_may_be_missing(name: str) -> None:
    reason = "audience" if name == "aud" else "claims"

    assert refusal(token(claims=without(CLAIMS, name))).reason == reason


WRONG_VALUES: dict[str, list[Any]] = {
    "iat": [True, False, None, "0", 1.5, float(SECONDS), 10**18, -(10**18), 10**300, [], {}],
    "exp": [True, None, "2026-12-01", 1e18, 10**300, 253_402_300_800],
    "approval_version": [0, -1, True, "2", 2.0, 10**300, None],
    "decision": ["sign", "withdraw", "breakglass", "Approve", "", None, ["approve"], True],
    "action_hash": ["", "sha256:", "0" * 64, None, CLAIMS["action_hash"].upper()],
    "comment_hash": [None, "looks good", "sha256:0"],
    "edited_action": [None, "sha256:0", {}, 0, [], CLAIMS["action_hash"].upper()],
    "sub": [None, "", "Bob", "bob ", "bоb", 7, ["bob"], {}],
    "tenant": ["ACME", "acme:x", None, ["acme"]],
    "operation": ["Report-1", "", None, "report-1\n"],
    "jti": ["", "short", "x" * 65, None, 1, "with blanks 000000"],
    "approval_id": [None, 1, ["apr-1"]],
    # claims that there are not
    "role": ["reviewer"],
    "nbf": [SECONDS],
    "": [""],
    "\n": ["\n"],
    "x" * 3_000: [1],
}


@pytest.mark.parametrize("changes", [{name: value} for name, values in WRONG_VALUES.items() for value in values])
def test_a_claim_of_the_wrong_form_is_refused(changes: dict[str, Any]) -> None:
    assert refusal(token(claims=claims_with(**changes))).reason == "claims"


@pytest.mark.parametrize("decision", ["approve", "edit", "reject", "respond", "break_glass"])
def test_every_kind_of_decision_is_signed_with_all_that_it_says(decision: str) -> None:
    """What a kind needs beside (an edited action, a reason, a role) is ruled on afterwards, by one rule for all."""
    edited = CLAIMS["action_hash"] if decision == "edit" else ""
    statement = a_statement(decision=decision, edited_action=edited)

    assert verify_decision(sign_decision(statement, BOB), directory(), installation="local", now=NOW)[0] == statement


@pytest.mark.guarantee("G14")
def test_the_edited_action_cannot_be_put_in_another_ones_place() -> None:
    """The hash of the whole new action is under the editor's signature."""
    edit = token(claims=claims_with(decision="edit", edited_action=CLAIMS["action_hash"]))
    other = token(claims=claims_with(decision="edit", edited_action="sha256:" + "0" * 64))

    assert refusal(other.rsplit(".", 1)[0] + "." + edit.rsplit(".", 1)[1]).reason == "signature"


@pytest.mark.parametrize("kid", [None, 1, ["bob-1"], {"bob-1": 1}, True])
def test_a_key_id_that_is_no_text_is_refused(kid: Any) -> None:
    assert refusal(token(header_with(kid=kid))).reason == "claims"
