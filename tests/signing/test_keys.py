"""Key pairs: one spelling per public key, and key files that only their owner can read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from countersign.domain.errors import Conflict, CountersignError, InputRefused, NotFound, Unavailable
from countersign.signing import keys
from countersign.signing.keys import new_key_file, public_key, public_text, read_key_file
from tests.domain.weak_keys import NEUTRAL, ORDER_2, text, twin_of
from tests.signing.tokens import BOB

TEXT = public_text(BOB)
SAME_BYTES = TEXT[:-1] + chr(ord(TEXT[-1]) + 1)


def test_a_public_key_is_written_and_read_back() -> None:
    assert len(TEXT) == 43
    assert public_text(public_key(TEXT)) == TEXT
    assert public_text(BOB.public_key()) == TEXT


@pytest.mark.guarantee("G03")
@pytest.mark.parametrize("text", [TEXT + "=", TEXT.replace("_", "/").replace("-", "+") + "=", SAME_BYTES])
def test_another_spelling_of_the_same_key_is_refused(text: str) -> None:
    """Two spellings could be registered as two keys, for two persons."""
    with pytest.raises(InputRefused):
        public_key(text)


@pytest.mark.guarantee("G04")
@pytest.mark.guarantee("G18")
@pytest.mark.parametrize("weak", [text(NEUTRAL), text(ORDER_2), twin_of(TEXT)], ids=["neutral", "small", "twin"])
def test_a_key_that_is_not_its_holders_alone_is_refused(weak: str) -> None:
    with pytest.raises(InputRefused, match="of its holder's own"):
        public_key(weak)


@pytest.mark.parametrize(
    "text", ["", "x", TEXT[:-1], TEXT + "A", TEXT + "\n", " " + TEXT, "é" * 43, "!" * 43, "A" * 10_000]
)
def test_what_is_no_public_key_is_refused_in_one_short_line(text: str) -> None:
    with pytest.raises(InputRefused) as refused:
        public_key(text)

    assert len(refused.value.message.splitlines()) == 1
    assert len(refused.value.message) < 400


@given(st.text(max_size=60))
def test_any_text_is_a_public_key_or_refused(text: str) -> None:
    try:
        key = public_key(text)
    except InputRefused:
        return
    assert public_text(key) == text


@pytest.mark.guarantee("G46")
def test_a_new_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "acme" / "bob.pem"

    key = new_key_file(path)

    assert public_text(read_key_file(path)) == public_text(key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_existing_key_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "bob.pem"
    key = new_key_file(path)

    with pytest.raises(Conflict, match="exists"):
        new_key_file(path)
    assert public_text(read_key_file(path)) == public_text(key)


def test_a_key_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a key in its place would be met by a reader, and stand in the way of the next try."""

    def full(key: Ed25519PrivateKey) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(keys, "_pem", full)
        with pytest.raises(Unavailable, match="No space left"):
            new_key_file(tmp_path / "bob.pem")
    assert list(tmp_path.iterdir()) == []
    new_key_file(tmp_path / "bob.pem")
    assert [path.name for path in tmp_path.iterdir()] == ["bob.pem"]


def test_a_link_is_not_followed_to_overwrite_something(tmp_path: Path) -> None:
    (tmp_path / "bob.pem").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(Conflict):
        new_key_file(tmp_path / "bob.pem")
    assert not (tmp_path / "elsewhere").exists()


def test_a_key_that_cannot_be_written_is_told_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(CountersignError, match="choose another"):
        new_key_file(tmp_path / "file" / "sub" / "bob.pem")
    with pytest.raises(Unavailable, match="cannot be written: File name too long"):
        new_key_file(tmp_path / ("x" * 300))


def pem(key: Ed25519PrivateKey | ec.EllipticCurvePrivateKey, password: bytes | None = None) -> bytes:
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no private key"),
        (b"not a key", "holds no private key"),
        (os.urandom(200), "holds no private key"),
        (pem(BOB)[:60], "holds no private key"),
        (pem(BOB, b"secret"), "holds no private key"),
        (
            BOB.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
            "holds no private key",
        ),
        (pem(ec.generate_private_key(ec.SECP256R1())), "another kind of key"),
    ],
)
def test_what_is_no_key_file_is_told_in_plain_words(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "bob.pem"
    path.write_bytes(content)

    with pytest.raises(InputRefused, match=says):
        read_key_file(path)


def test_a_key_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="keys new"):
        read_key_file(tmp_path / "bob.pem")
    with pytest.raises(InputRefused, match="cannot be read"):
        read_key_file(tmp_path)
