"""The evidence store: each file once, under the hash of its bytes.

It stands apart from reading because a stored file is only bytes: what they mean is the schema's business.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from countersign.domain.errors import DataRefused, InputRefused, NotFound, Unavailable
from countersign.domain.values import Sha256

MAX_BYTES = 8 << 30
"""The largest file that is taken in, in bytes."""

_BLOCK = 1 << 20
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")


class EvidenceStore:
    """Files under `root/<first two hex digits>/<hex>`; written whole or not at all, never changed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, source: Path, *, max_bytes: int = MAX_BYTES) -> Sha256:
        """Take in a copy of the file `source` and return its hash; the same bytes twice are stored once.

        Raises:
            DataRefused: the file is missing, unreadable, no regular file, or longer than `max_bytes`.
            Unavailable: the store cannot be written (disk full, no permission).
        """
        if source.exists() and not source.is_file():
            raise DataRefused(f"{source.name} is not a regular file; name the CSV file itself")
        return self._take_in(_limited(_source_blocks(source), source.name, max_bytes))

    def path(self, sha256: str) -> Path:
        """Where the bytes with that hash lie.

        Raises:
            InputRefused: `sha256` is not of the form `sha256:` and 64 hex digits.
            NotFound: nothing is stored under it.
            Unavailable: the store does not let us look.
        """
        path = self._place(sha256)
        with _reading(sha256):
            if not stat.S_ISREG(path.stat().st_mode):
                raise _absent(sha256)
        return path

    def verify(self, sha256: str) -> None:
        """Read the stored bytes again and compare them with the hash they are stored under.

        Raises:
            DataRefused: the bytes were changed since.
            NotFound: nothing is stored under that hash.
            Unavailable: the store does not let us read, which says nothing about the bytes.
        """
        path = self.path(sha256)
        digest = hashlib.sha256()
        with _reading(sha256):
            for block in _blocks(path):
                digest.update(block)
        if f"sha256:{digest.hexdigest()}" != sha256:
            raise changed(sha256)

    def _place(self, sha256: str) -> Path:
        match = _SHA256.fullmatch(sha256)
        if not match:
            raise InputRefused(f"evidence {sha256[:80]!r} is not a hash; write sha256: and 64 lower-case hex digits")
        return self._root / match[1][:2] / match[1]

    def _take_in(self, blocks: Iterable[bytes]) -> Sha256:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".incoming-", dir=self._root)
            try:
                with os.fdopen(handle, "wb") as target:
                    sha256 = _copy(blocks, target.fileno())
                self._settle(Path(name), sha256)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(name)
        except OSError as error:
            raise _unwritable(error) from error
        return sha256

    def _settle(self, temporary: Path, sha256: Sha256) -> None:
        """Give the finished file its name; the rename and the folder entry are forced to disk."""
        place = self._place(sha256)
        place.parent.mkdir(exist_ok=True)
        os.chmod(temporary, 0o440)
        os.replace(temporary, place)
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def changed(sha256: str) -> DataRefused:
    """The refusal of bytes that are no longer those that the hash names."""
    return DataRefused(f"evidence {sha256} was changed after it was stored; add the original file again")


def _copy(blocks: Iterable[bytes], target: int) -> Sha256:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
        view = memoryview(block)
        while view:
            view = view[os.write(target, view) :]
    os.fsync(target)
    return Sha256(f"sha256:{digest.hexdigest()}")


@contextmanager
def _reading(sha256: str) -> Iterator[None]:
    """Missing bytes are a fact; a full table of files, a failing disk or a missing right is none."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise _absent(sha256) from None
    except OSError as error:
        raise Unavailable(f"evidence {sha256} cannot be read: {_words(error)}; check the data directory") from error


def _absent(sha256: str) -> NotFound:
    return NotFound(f"no evidence is stored under {sha256}; add the file again under its name")


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _source_blocks(source: Path) -> Iterator[bytes]:
    try:
        yield from _blocks(source)
    except OSError as error:
        raise DataRefused(f"{source.name} cannot be read: {_words(error)}; check its name and permissions") from error


def _limited(blocks: Iterable[bytes], name: str, max_bytes: int) -> Iterator[bytes]:
    total = 0
    for block in blocks:
        total += len(block)
        if total > max_bytes:
            raise DataRefused(f"{name} is longer than the {max_bytes} bytes that are allowed; split it or cut columns")
        yield block


def _unwritable(error: OSError) -> Unavailable:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable("the disk of the evidence store is full; free some space and start again")
    return Unavailable(f"the evidence store cannot be written: {_words(error)}; check the data directory")


def _words(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
