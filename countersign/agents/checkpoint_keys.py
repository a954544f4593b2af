"""The keys that encrypt the agents' checkpoints: read from the settings or from a file, and used, each under its id.

Apart from the stores, since a key has to be told from its misspelling before anything is opened, without saying it.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import ConfigurationRefused, CountersignError, Unavailable
from countersign.domain.identity import NAME_PATTERN

SETTING = "COUNTERSIGN_THREAD_KEYS"
CIPHER = "aes256gcm"
KEY_BYTES = 32
NONCE_BYTES = 12
FORM = "ID=KEY,ID2=KEY2 with ids of a-z 0-9 . _ - and keys of 32 bytes in base64 (openssl rand -base64 32)"
_ID = re.compile(NAME_PATTERN, re.ASCII)


class CheckpointRefused(CountersignError):
    """A stored step of a draft is not as we wrote it, or its key is not given: nothing goes on from it."""

    code = "CHECKPOINT_REFUSED"


class ThreadKeys:
    """AES-256-GCM under several keys: the first encrypts, all decrypt."""

    def __init__(self, keys: Mapping[str, bytes], where: str = SETTING) -> None:
        """
        Args:
            keys: 32 bytes each, by id; the first is the one that encrypts.
            where: the setting or file in which they stand, for people.
        """
        self._ciphers = {name: AESGCM(key) for name, key in keys.items()}
        self.names = tuple(keys)
        self.first = self.names[0]
        """The id of the key that encrypts."""
        self.where = where

    def encrypt(self, data: bytes, bound: str) -> bytes:
        """A random nonce and the sealed `data`, under the first key; it opens only beside the same `bound`."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._ciphers[self.first].encrypt(nonce, data, bound.encode())

    def decrypt(self, key: str, sealed: bytes, bound: str) -> bytes:
        """The inverse of `encrypt`, under the key of that id.

        Raises:
            CheckpointRefused: there is no such key, or not this data was sealed with it beside `bound`.
        """
        if key not in self._ciphers:
            known = ", ".join(self.names)
            raise CheckpointRefused(
                f"it is encrypted with key {key[:64]!r}, and the keys given are {known}; add that one, as ID=KEY, to"
                f" {self.where}, behind the first, and restart the workers"
            )
        try:
            return self._ciphers[key].decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound.encode())
        except (InvalidTag, ValueError):
            raise CheckpointRefused(
                f"it was changed, belongs to another draft, or key {key} is not the one that it was written with"
            ) from None


def keys_in(text: str, where: str = SETTING) -> ThreadKeys:
    """The keys that a setting's or a file's text names, as `ID=KEY,...`.

    Raises:
        ConfigurationRefused: another form; it names `where` and which entry, and repeats nothing of it.
    """
    keys: dict[str, bytes] = {}
    for number, entry in enumerate(text.strip().split(","), start=1):
        name, _, encoded = entry.strip().partition("=")
        key = _decoded(encoded)
        if not _ID.fullmatch(name) or key is None:
            raise ConfigurationRefused(f"{where}: entry {number} is no key with its id; write {FORM}")
        if name in keys:
            raise ConfigurationRefused(f"{where}: entry {number} has the id of an earlier one; give each key its own")
        keys[name] = key
    return ThreadKeys(keys, where)


def key_of(sealed_as: str) -> str:
    """The id of the key that a stored value's type names, `msgpack+aes256gcm+KEY`; empty where it is not encrypted."""
    _, *how = sealed_as.split("+")
    return how[1] if len(how) == 2 and how[0] == CIPHER else ""


def keys_in_file(path: Path) -> ThreadKeys:
    """The keys in `path`, in the same form; made with one new key where it is not there.

    Raises:
        ConfigurationRefused: it holds something else.
        Unavailable: it cannot be read or made.
    """
    try:
        if not path.exists():
            _make(path)
        text = path.read_text(encoding="ascii")
    except UnicodeDecodeError:
        raise ConfigurationRefused(f"{path}: this is no text with keys; write {FORM}") from None
    except OSError as error:
        raise Unavailable(
            f"key file {path} cannot be used: {error.strerror}; mend that, or set {SETTING} instead"
        ) from None
    return keys_in(text, str(path))


def bound_to(*parts: str) -> str:
    """What a sealed value is bound to, in one text that no other parts give."""
    return json.dumps(parts)


def _decoded(text: str) -> bytes | None:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = os.urandom(KEY_BYTES)
    # Named by its hash: rows of another installation's file are then told from rows that were changed.
    name = f"file-{sha256_hex(key).removeprefix('sha256:')[:12]}"
    # Linked when it is whole: a reader never meets half a key, and of two makers one succeeds.
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-") as file:
        file.write(f"{name}={base64.b64encode(key).decode()}\n".encode())
        file.flush()
        os.fsync(file.fileno())
        try:
            os.link(file.name, path)
        except FileExistsError:
            return
