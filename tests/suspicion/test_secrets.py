"""Secrets are found by their own check digits and shapes, never repeated, and long figures are no secrets."""

from __future__ import annotations

import pytest

from countersign.domain.suspicion.secrets import find_secrets

SECRETS = [
    ("4111 1111 1111 1111", "payment card number"),
    ("4111111111111111", "payment card number"),
    ("3782-822463-10005", "payment card number"),
    ("5555-5555-5555-4444", "payment card number"),
    ("4111`1111`1111`1111", "payment card number"),
    ("DE89 3704 0044 0532 0130 00", "IBAN"),
    ("GB82WEST12345698765432", "IBAN"),
    ("jane.doe+x@mail.example.com", "e-mail address"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
    ("AKIAIOSFODNN7EXAMPLE", "access token"),
    ("ghp_" + "a1B2" * 9, "access token"),
    ("sk-proj-" + "a1B2" * 9, "access token"),
    ("eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl", "access token"),
]
NONE = (
    "4111 1111 1111 1112",
    "4,111,111,111,111,111", "1234567890123456", "0000000000000000", "DE89 3704 0044 0532 0130 01",
    "order 2026-06-30-0001", "a@b", "price @ 12.50", "AKIA is a prefix", "sk-short", "0.4111111111111111",
    "eyJ is how a token begins", "sales-2026.csv",
)  # fmt: skip


@pytest.mark.parametrize(("secret", "kind"), SECRETS)
def test_a_secret_is_found_where_it_stands_and_not_repeated(secret: str, kind: str) -> None:
    (found,) = find_secrets(f"Paid by {secret} was fine.")
    assert (found.kind, found.start) == (kind, 8)
    assert secret not in found.masked
    assert kind == "private key" or not any(secret[at : at + 6] in found.masked for at in range(len(secret) - 6))


@pytest.mark.parametrize("text", NONE)
def test_what_only_looks_like_one_is_none(text: str) -> None:
    assert list(find_secrets(f"It says {text} there.")) == []
