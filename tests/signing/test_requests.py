"""Signed requests: the statement by which somebody asks for an operation, attacked like a decision."""

from __future__ import annotations

import pytest

from countersign.domain.errors import StatementRefused
from countersign.domain.operation import RequestStatement
from countersign.signing.statements import sign_request, verify_request
from tests.domain.samples import NOW
from tests.signing.tokens import BOB, EVE, REQUEST_CLAIMS, REQUEST_HEADER, SECONDS, directory, token

pytestmark = pytest.mark.guarantee("G18")


def test_a_request_from_the_future_is_refused_too() -> None:
    future = token(REQUEST_HEADER, {**REQUEST_CLAIMS, "iat": SECONDS + 3_600})

    with pytest.raises(StatementRefused) as refused:
        verify_request(future, directory(), installation="local", now=NOW)

    assert refused.value.reason == "not_yet"


def test_a_signed_request_verifies_and_binds_what_it_says() -> None:
    statement = RequestStatement(
        installation="local",
        person="bob",
        key_id="bob-1",
        tenant="acme",
        operation="report-1",
        request_hash=REQUEST_CLAIMS["request_hash"],
        issued_at=NOW,
        id="statement-000001",
    )

    verified, signer = verify_request(sign_request(statement, BOB), directory(), installation="local", now=NOW)

    assert (verified, signer.id) == (statement, "bob")


@pytest.mark.parametrize("name", REQUEST_CLAIMS)
def test_a_request_has_all_its_claims_in_their_form(name: str) -> None:
    for claims in (
        {key: value for key, value in REQUEST_CLAIMS.items() if key != name},
        {**REQUEST_CLAIMS, name: None},
    ):
        with pytest.raises(StatementRefused) as refused:
            verify_request(token(REQUEST_HEADER, claims), directory(), installation="local", now=NOW)
        assert refused.value.reason == ("audience" if name == "aud" else "claims")


def test_a_request_by_somebody_else_is_refused() -> None:
    with pytest.raises(StatementRefused) as refused:
        verify_request(token(REQUEST_HEADER, REQUEST_CLAIMS, EVE), directory(), installation="local", now=NOW)

    assert refused.value.reason == "signature"


@pytest.mark.guarantee("G06")
def test_a_request_whose_key_was_revoked_is_good_no_longer() -> None:
    signed = token(REQUEST_HEADER, REQUEST_CLAIMS)

    with pytest.raises(StatementRefused) as refused:
        verify_request(signed, directory(revoked_at=NOW), installation="local", now=NOW)

    assert refused.value.reason == "key_not_valid"
