"""Taking a file down again: the very file, once, whole or not at all, and both keys still say so."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.compensation import ReverseEffect, reversal_document
from countersign.domain.execution import Receipt
from countersign.gateway.channels import NotSent, OutcomeUnknown, Refused
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.folders import STAGING
from tests.gateway.asking import in_parallel
from tests.gateway.test_file_channel import DOCUMENT, KEY, NAME, OTHER_KEY, done_by_a_process_killed_at, send, visible

BACK, BACK_AGAIN = "12" * 32, "34" * 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "published"


@pytest.fixture
def channel(folder: Path) -> FileChannel:
    return FileChannel("internal", folder, "internal_publication")


def asked(receipt: Receipt) -> bytes:
    return reversal_document(
        ReverseEffect(channel="internal", follows="q2-report", key=receipt.key, reference=receipt.reference)
    )


def take_back(channel: FileChannel, receipt: Receipt, key: str = BACK) -> Receipt:
    document = asked(receipt)
    return channel.reversing().send(key, "", document, sha256_hex(document))


def test_a_publication_is_taken_back_and_both_keys_say_so(channel: FileChannel, folder: Path) -> None:
    published, back = send(channel), channel.reversing()
    assert (back.name, back.side_effect, back.look_up(BACK)) == ("internal", "internal_publication_reversal", None)
    receipt = take_back(channel, published)
    assert visible(folder) == {}
    assert (receipt.key, receipt.reference) == (BACK, published.reference)
    assert receipt.content_hash == sha256_hex(asked(published))
    assert back.look_up(BACK) == receipt
    assert take_back(channel, published) == receipt
    assert channel.look_up(KEY) == published.model_copy(update={"detail": "it was taken back since"})
    assert (back.held(), channel.held()) == ([receipt], [channel.look_up(KEY)])


@pytest.mark.guarantee("G31")
def test_a_late_repeat_of_the_publication_puts_nothing_back(channel: FileChannel, folder: Path) -> None:
    published = send(channel)
    take_back(channel, published)
    assert send(channel).key == KEY
    assert visible(folder) == {}


def test_the_name_is_free_for_another_publication_which_is_left_alone(channel: FileChannel, folder: Path) -> None:
    published = send(channel)
    take_back(channel, published)
    send(channel, document=b"a new one", key=OTHER_KEY)
    assert take_back(channel, published).key == BACK
    assert visible(folder) == {NAME: b"a new one"}
    assert [receipt.key for receipt in channel.held()] == sorted([KEY, OTHER_KEY])


def test_what_was_taken_back_is_not_taken_back_under_another_key(channel: FileChannel) -> None:
    published = send(channel)
    take_back(channel, published)
    with pytest.raises(Refused) as refused:
        take_back(channel, published, BACK_AGAIN)
    assert refused.value.reason == "reversed_already"
    assert channel.reversing().look_up(BACK_AGAIN) is None


def _replace(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"theirs")


@pytest.mark.parametrize("happens", [Path.unlink, _replace])
def test_a_file_that_is_not_the_published_one_any_more_is_left_alone(
    channel: FileChannel, folder: Path, happens: Callable[[Path], None]
) -> None:
    published = send(channel)
    happens(folder / NAME)
    left = visible(folder)
    with pytest.raises(Refused) as refused:
        take_back(channel, published)
    assert refused.value.reason == "not_published"
    assert visible(folder) == left
    assert channel.reversing().look_up(BACK) is None


def test_a_file_of_others_that_comes_between_look_and_move_is_given_back(
    channel: FileChannel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published, rename = send(channel), os.rename

    def replace_and_rename(*arguments: Any, **named: Any) -> None:
        _replace(folder / NAME)
        rename(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", replace_and_rename)
        with pytest.raises(Refused, match="not there as it was published"):
            take_back(channel, published)
    assert visible(folder) == {NAME: b"theirs"}
    assert channel.reversing().look_up(BACK) is None


@pytest.mark.parametrize("receipt", [
    Receipt(channel="internal", key=OTHER_KEY, reference=NAME, content_hash=sha256_hex(b"")),
    Receipt(channel="internal", key=KEY, reference="/etc/other.md", content_hash=sha256_hex(b"")),
    Receipt(channel="internal", key=KEY, reference="..", content_hash=sha256_hex(b"")),
])  # fmt: skip
def test_what_was_never_published_is_not_taken_back(channel: FileChannel, folder: Path, receipt: Receipt) -> None:
    send(channel)
    with pytest.raises(Refused) as refused:
        take_back(channel, receipt)
    assert refused.value.reason == "not_published"
    assert visible(folder) == {NAME: DOCUMENT}


@pytest.mark.parametrize("document", [b"", b"{}", b'{"key": "../x", "reference": "a"}'])
def test_a_document_that_names_no_publication_is_refused(channel: FileChannel, document: bytes) -> None:
    with pytest.raises(Refused) as refused:
        channel.reversing().send(BACK, "", document, sha256_hex(document))
    assert refused.value.reason == "document_unreadable"


def test_a_link_in_place_of_a_folder_leads_nowhere(channel: FileChannel, folder: Path, tmp_path: Path) -> None:
    published = send(channel)
    (folder / STAGING).rename(tmp_path / "elsewhere")
    (folder / STAGING).symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    with pytest.raises(NotSent):
        take_back(channel, published)
    for look in (channel.held, channel.reversing().held, lambda: channel.reversing().look_up(BACK)):
        with pytest.raises(OutcomeUnknown):
            look()
    assert visible(folder) == {NAME: DOCUMENT}


@pytest.mark.parametrize("failing", ["open", "mkdir", "link", "rename"])
@pytest.mark.guarantee("G34")
def test_a_failing_disk_takes_nothing_back_and_does_not_use_the_key_up(
    channel: FileChannel, folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def failed(*arguments: Any, **named: Any) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    published = send(channel)
    with monkeypatch.context() as patch:
        patch.setattr(os, failing, failed)
        with pytest.raises(NotSent, match="Input/output error"):
            take_back(channel, published)
    assert visible(folder) == {NAME: DOCUMENT}
    take_back(channel, published)
    assert visible(folder) == {}


def test_many_at_once_take_back_once(channel: FileChannel, folder: Path) -> None:
    published = send(channel)

    def attempt(number: int) -> str:
        try:
            return take_back(channel, published, f"{number:064x}").key
        except Refused as refused:
            return refused.reason

    answers = in_parallel(6, attempt)
    assert answers.count("reversed_already") == 5
    assert visible(folder) == {}


@pytest.mark.guarantee("G37")
def test_killed_at_any_line_it_is_there_or_taken_back_and_can_be_repeated(tmp_path: Path) -> None:
    outcomes, line, ended = set(), 0, False
    while not ended:
        line += 1
        channel = FileChannel("internal", tmp_path / str(line), "internal_publication")
        published = send(channel)
        ended = done_by_a_process_killed_at(line, partial(take_back, channel, published))
        left = visible(tmp_path / str(line))
        assert left in ({}, {NAME: DOCUMENT}), f"half taken back after line {line}"
        assert (channel.reversing().look_up(BACK) is None) == bool(left), f"the look-up is wrong after line {line}"
        assert channel.look_up(KEY) is not None, f"the publication's key is forgotten after line {line}"
        outcomes.add(bool(left))
        take_back(channel, published)
        assert visible(tmp_path / str(line)) == {}
    assert line > 40
    assert outcomes == {True, False}
