"""Public keys: those of real key pairs are taken, and every other point of the curve is refused."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.curve import is_public_key
from countersign.signing.keys import public_text
from tests.domain.weak_keys import NEUTRAL, ORDER_2, ORDER_4, ORDER_8, text, twin_of


@pytest.mark.guarantee("G18")
def test_the_public_keys_of_real_key_pairs_are_taken() -> None:
    for _ in range(20):
        assert is_public_key(public_text(Ed25519PrivateKey.generate()))


@pytest.mark.guarantee("G18")
@pytest.mark.parametrize("data", [NEUTRAL, ORDER_2, ORDER_4, ORDER_8], ids=["1", "2", "4", "8"])
def test_a_point_of_small_order_for_which_anybody_can_sign_is_refused(data: bytes) -> None:
    assert not is_public_key(text(data))


@pytest.mark.guarantee("G04")
def test_a_twin_of_a_key_that_its_holder_can_sign_for_too_is_refused() -> None:
    real = public_text(Ed25519PrivateKey.generate())

    assert is_public_key(twin_of(twin_of(real)))
    assert not is_public_key(twin_of(real))


@pytest.mark.parametrize(
    "odd",
    [
        "", "AQ", "A" * 42, "A" * 44, "é" * 43, text(NEUTRAL) + "=",
        text((2**255 - 18).to_bytes(32, "little")), text((2).to_bytes(32, "little")),
    ],
    ids=["empty", "short", "31 bytes", "33 bytes", "not ASCII", "padding", "not canonical", "no point"],
)  # fmt: skip
def test_what_is_no_point_in_its_one_spelling_is_refused(odd: str) -> None:
    assert not is_public_key(odd)
