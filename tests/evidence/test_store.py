"""Stored evidence: once per content, whole or not at all, and any later change is found."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from pathlib import Path

import pytest

from countersign.domain.errors import DataRefused, InputRefused, NotFound, Unavailable
from countersign.evidence.store import EvidenceStore


def test_the_same_bytes_are_stored_once_under_their_hash(tmp_path: Path) -> None:
    store, source = EvidenceStore(tmp_path / "evidence"), tmp_path / "sales.csv"
    source.write_bytes(b"a\n1\n" * 1_000_000)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    first = store.put(source)
    assert first == store.put(source) == store.put_bytes(source.read_bytes()) == f"sha256:{digest}"
    assert store.path(first) == tmp_path / "evidence" / digest[:2] / digest
    assert store.path(first).read_bytes() == source.read_bytes()
    assert [path for path in (tmp_path / "evidence").rglob("*") if path.is_file()] == [store.path(first)]
    store.verify(first)


@pytest.mark.guarantee("G14")
@pytest.mark.parametrize("changed", [b"a\n2\n", b"a\n1\n\n", b"", b"a\n1"])
def test_a_changed_byte_is_found(tmp_path: Path, changed: bytes) -> None:
    store = EvidenceStore(tmp_path)
    sha256 = store.put_bytes(b"a\n1\n")
    store.path(sha256).chmod(0o600)
    store.path(sha256).write_bytes(changed)
    with pytest.raises(DataRefused, match="was changed"):
        store.verify(sha256)
    store.put_bytes(b"a\n1\n")
    store.verify(sha256)


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path / "none")
    for ask in (store.path, store.verify):
        with pytest.raises(NotFound):
            ask("sha256:" + "0" * 64)


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
    source = tmp_path / "sales.csv"
    source.write_bytes(b"x" * 3_000_000)
    with pytest.raises(DataRefused, match="longer than the 2000000 bytes"):
        EvidenceStore(tmp_path / "evidence").put(source, max_bytes=2_000_000)
    assert list((tmp_path / "evidence").glob("*")) == []


def test_a_full_disk_is_said_in_words_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Unavailable, match="disk of the evidence store is full"):
        EvidenceStore(tmp_path / "evidence").put_bytes(b"a\n1\n")
    assert list((tmp_path / "evidence").glob("*")) == []


def test_a_store_that_cannot_be_made_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "evidence").write_text("a file where the folder should be")
    with pytest.raises(Unavailable, match="cannot be written"):
        EvidenceStore(tmp_path / "evidence").put_bytes(b"a\n1\n")


def test_many_at_once_store_one_whole_file(tmp_path: Path) -> None:
    store, data = EvidenceStore(tmp_path), b"a\n1\n" * 200_000
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(store.put_bytes(data))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    store.verify(found[0])
