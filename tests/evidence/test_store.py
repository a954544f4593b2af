"""Stored evidence: once per content, whole or not at all, and any later change is found."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from countersign.domain.errors import DataRefused, InputRefused, NotFound, Unavailable
from countersign.evidence.store import EvidenceStore


def source(folder: Path, data: bytes = b"a\n1\n") -> Path:
    """A file as it is handed in."""
    path = folder / "source.csv"
    path.write_bytes(data)
    return path


def test_the_same_bytes_are_stored_once_under_their_hash(tmp_path: Path) -> None:
    store, sales = EvidenceStore(tmp_path / "evidence"), source(tmp_path, b"a\n1\n" * 1_000_000)
    digest = hashlib.sha256(sales.read_bytes()).hexdigest()
    first = store.put(sales)
    assert first == store.put(sales) == f"sha256:{digest}"
    assert store.path(first) == tmp_path / "evidence" / digest[:2] / digest
    assert store.path(first).read_bytes() == sales.read_bytes()
    assert [path for path in (tmp_path / "evidence").rglob("*") if path.is_file()] == [store.path(first)]
    store.verify(first)


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize("changed", [b"a\n2\n", b"a\n1\n\n", b"", b"a\n1"])
def test_a_changed_byte_is_found(tmp_path: Path, changed: bytes) -> None:
    store, original = EvidenceStore(tmp_path / "evidence"), source(tmp_path)
    sha256 = store.put(original)
    store.path(sha256).chmod(0o600)
    store.path(sha256).write_bytes(changed)
    with pytest.raises(DataRefused, match="was changed"):
        store.verify(sha256)
    store.put(original)
    store.verify(sha256)


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path / "none")
    for ask in (store.path, store.verify):
        with pytest.raises(NotFound):
            ask("sha256:" + "0" * 64)


@contextmanager
def no_more_open_files() -> Iterator[None]:
    """As on a busy machine: the system refuses to open one more file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_cannot_be_read_right_now_is_no_fact_about_the_evidence(tmp_path: Path) -> None:
    """Else a busy machine would void a grant for good."""
    store = EvidenceStore(tmp_path / "evidence")
    sha256 = store.put(source(tmp_path))
    with pytest.raises(Unavailable, match="cannot be read: too many open files"), no_more_open_files():
        store.verify(sha256)
    store.verify(sha256)
    stored = store.path(sha256)
    stored.unlink()
    stored.symlink_to(stored)
    for ask in (store.path, store.verify):
        with pytest.raises(Unavailable, match="cannot be read: too many levels"):
            ask(sha256)
    stored.unlink()
    stored.mkdir()
    with pytest.raises(NotFound):
        store.verify(sha256)


@pytest.mark.parametrize(
    "name", ["", "sha256:", "0" * 64, "sha256:" + "A" * 64, "sha256:../" + "0" * 61, "sha256:0/../x"]
)
def test_what_is_no_hash_names_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputRefused):
        EvidenceStore(tmp_path).path(name)


def test_a_source_that_cannot_be_read_is_refused_in_words(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path / "evidence")
    with pytest.raises(DataRefused, match=r"missing\.csv cannot be read: no such file"):
        store.put(tmp_path / "missing.csv")
    with pytest.raises(DataRefused, match="not a regular file"):
        store.put(tmp_path)
    assert list((tmp_path / "evidence").glob("*")) == []


def test_a_source_that_is_too_long_leaves_nothing(tmp_path: Path) -> None:
    long = source(tmp_path, b"x" * 3_000_000)
    with pytest.raises(DataRefused, match="longer than the 2000000 bytes"):
        EvidenceStore(tmp_path / "evidence").put(long, max_bytes=2_000_000)
    assert list((tmp_path / "evidence").glob("*")) == []


def test_a_full_disk_is_said_in_words_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Unavailable, match="disk of the evidence store is full"):
        EvidenceStore(tmp_path / "evidence").put(source(tmp_path))
    assert list((tmp_path / "evidence").glob("*")) == []


def test_a_store_that_cannot_be_made_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "evidence").write_text("a file where the folder should be")
    with pytest.raises(Unavailable, match="cannot be written"):
        EvidenceStore(tmp_path / "evidence").put(source(tmp_path))


def test_many_at_once_store_one_whole_file(tmp_path: Path) -> None:
    store, big = EvidenceStore(tmp_path / "evidence"), source(tmp_path, b"a\n1\n" * 200_000)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(store.put(big))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    store.verify(found[0])
