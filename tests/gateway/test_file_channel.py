"""The folder channel on a real folder: whole or not at all, once, inside, and never over another file."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import Unavailable
from countersign.domain.execution import Receipt
from countersign.gateway import file_channel, file_reversal, folders
from countersign.gateway.channels import NotSent, OutcomeUnknown, Refused
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.folders import STAGING
from tests.gateway.asking import in_parallel

KEY, OTHER_KEY = "ab" * 32, "cd" * 32
NAME = "q2-report.md"
DOCUMENT = b"# Report\n" + b"all of it\n" * 5_000
TRACED = {module.__file__ for module in (file_channel, file_reversal, folders)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "published"


@pytest.fixture
def channel(folder: Path) -> FileChannel:
    return FileChannel("internal", folder, "internal_publication")


def send(channel: FileChannel, name: str = NAME, document: bytes = DOCUMENT, key: str = KEY) -> Receipt:
    return channel.send(key, name, document, sha256_hex(document))


def visible(folder: Path) -> dict[str, bytes]:
    """What a reader of the folder finds."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != STAGING}


def test_a_document_is_published_whole_and_found_by_its_key(channel: FileChannel, folder: Path) -> None:
    assert channel.look_up(KEY) is None
    receipt = send(channel)
    assert visible(folder) == {NAME: DOCUMENT}
    assert receipt == Receipt(
        channel="internal", key=KEY, reference=str(folder / NAME), content_hash=sha256_hex(DOCUMENT)
    )
    assert channel.look_up(KEY) == receipt
    assert channel.look_up(OTHER_KEY) is None


def test_the_same_key_again_publishes_nothing_more(channel: FileChannel, folder: Path) -> None:
    first = send(channel)
    written = (folder / NAME).stat().st_mtime_ns
    assert send(channel) == first
    assert (folder / NAME).stat().st_mtime_ns == written
    assert visible(folder) == {NAME: DOCUMENT}


@pytest.mark.parametrize("content", [DOCUMENT, b"mine"])
def test_another_operations_file_of_that_name_is_never_replaced(
    channel: FileChannel, folder: Path, content: bytes
) -> None:
    send(channel, document=content, key=OTHER_KEY)
    with pytest.raises(Refused, match="taken by another file") as refused:
        send(channel)
    assert refused.value.reason == "name_taken"
    assert visible(folder) == {NAME: content}
    assert channel.look_up(KEY) is None


def test_a_published_file_that_was_edited_since_is_told_apart(channel: FileChannel, folder: Path) -> None:
    send(channel)
    (folder / NAME).write_bytes(b"edited")
    found = channel.look_up(KEY)
    assert found is not None
    assert found.content_hash == sha256_hex(b"edited")
    with pytest.raises(OutcomeUnknown):
        send(channel)


def test_a_file_that_vanishes_while_it_is_published_is_unknown(
    channel: FileChannel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def link_and_lose(*arguments: Any, **named: Any) -> None:
        link(*arguments, **named)
        (folder / NAME).unlink(missing_ok=True)

    monkeypatch.setattr(os, "link", link_and_lose)
    with pytest.raises(OutcomeUnknown, match="was changed while"):
        send(channel)


ATTACKS = [
    "", ".", "..", "../out.md", "..\\out.md", "a/../../out.md", "a/b.md", "a\\b.md", "/etc/passwd", "/var/out.md",
    "//host/share", "\\\\host\\share", "C:\\out.md", "c:out.md", "file://localhost/out.md", "~/out.md", "~admin",
    "%2e%2e%2fout.md", "..%2fout.md", "..%c0%afout.md", "．．／out.md", "‥/out.md", "..∕out.md", "..⁄out.md",
    ".hidden.md", ".countersign", "-rf", "_under.md", " lead.md", "trail.md ", "trail.", "trail.md.", "a b.md",
    "Report.md", "REPORT.MD", "q2-Report.md", "ﬁle.md", "ſales.md", "İ.md", "straße.md",
    "caf\u00e9.md", "cafe\u0301.md", "\u212bngstrom.md", "ｑ2.md", "报告.md", "q2\u2010report.md", "раssword.md",
    "a\x00.md", "a\n.md", "a\r.md", "a\t.md", "a\x1b[2J.md", "a\x7f.md", "a\u0085.md", "a\u2028.md",
    "a\u202emd.exe", "a\u2066b.md", "a\u200b.md", "a\u200d.md", "\ufeffa.md", "a\ud800.md", "a\U000e0041.md",
    "con", "con.md", "nul.md", "aux.txt", "prn", "com1.md", "lpt9.tar.gz", "nul.",
    "a:stream.md", "a::$data", "a*.md", "a?.md", 'a".md', "a<b.md", "a>b.md", "a|b.md", "$(id).md", "`id`.md", "a;b.md",
    "a" * 101, "a" * 5_000, "é" * 200,
]  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS, ids=lambda name: ascii(name)[:40])
def test_no_spelling_leads_outside_or_to_a_second_form_of_a_name(
    channel: FileChannel, folder: Path, tmp_path: Path, name: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Refused) as refused:
        send(channel, name)
    assert refused.value.reason == "name_not_allowed"
    assert len(refused.value.message.splitlines()) == 1
    assert refused.value.message.isascii()
    assert refused.value.message.isprintable()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["a", "0.md", "q2-report.md", "a..b.md", "a_b.tar.gz", "a" * 100, "console.md", "com10.md"]
)
def test_plain_names_are_published(channel: FileChannel, folder: Path, name: str) -> None:
    send(channel, name)
    assert visible(folder) == {name: DOCUMENT}


@pytest.mark.parametrize("twin", ["Q2-Report.md", "q2-report.MD", "ｑ2-report.md", "Q2-REPORT.MD"])
def test_a_file_that_others_put_there_under_a_twin_of_the_name_stops_it(
    channel: FileChannel, folder: Path, twin: str
) -> None:
    (folder / twin).write_bytes(b"theirs")
    with pytest.raises(Refused) as refused:
        send(channel)
    assert refused.value.reason == "name_taken"
    assert visible(folder) == {twin: b"theirs"}


class TestLinks:
    """A link in place of anything the channel opens leads nowhere."""

    @pytest.fixture
    def outside(self, tmp_path: Path) -> Path:
        place = tmp_path / "outside"
        place.mkdir()
        (place / "victim.md").write_bytes(b"untouched")
        return place

    def check_untouched(self, outside: Path) -> None:
        assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"victim.md": b"untouched"}

    def test_the_folder_itself(self, channel: FileChannel, folder: Path, outside: Path) -> None:
        folder.rmdir()
        folder.symlink_to(outside, target_is_directory=True)
        with pytest.raises(NotSent) as failure:
            send(channel)
        assert failure.value.reason == "folder_unusable"
        with pytest.raises(OutcomeUnknown):
            channel.look_up(KEY)
        self.check_untouched(outside)

    @pytest.mark.parametrize("target", ["victim.md", "new.md", "."])
    def test_the_documents_name(self, channel: FileChannel, folder: Path, outside: Path, target: str) -> None:
        (folder / NAME).symlink_to(outside / target)
        with pytest.raises(Refused, match="taken"):
            send(channel)
        assert channel.look_up(KEY) is None
        self.check_untouched(outside)

    def test_the_staging_folder(self, channel: FileChannel, folder: Path, outside: Path) -> None:
        (folder / STAGING).symlink_to(outside, target_is_directory=True)
        with pytest.raises(NotSent):
            send(channel)
        with pytest.raises(OutcomeUnknown):
            channel.look_up(KEY)
        self.check_untouched(outside)

    def test_the_keys_folder(self, channel: FileChannel, folder: Path, outside: Path) -> None:
        (folder / STAGING).mkdir()
        (folder / STAGING / KEY).symlink_to(outside, target_is_directory=True)
        with pytest.raises(NotSent):
            send(channel)
        self.check_untouched(outside)

    def test_the_staged_document(self, channel: FileChannel, folder: Path, outside: Path) -> None:
        (folder / STAGING / KEY).mkdir(parents=True)
        (folder / STAGING / KEY / NAME).symlink_to(outside / "victim.md")
        with pytest.raises(NotSent):
            send(channel)
        assert visible(folder) == {}
        self.check_untouched(outside)

    def test_another_staged_document_under_the_key(self, channel: FileChannel, folder: Path) -> None:
        (folder / STAGING / KEY).mkdir(parents=True)
        (folder / STAGING / KEY / NAME).write_bytes(b"planted")
        with pytest.raises(OutcomeUnknown) as failure:
            send(channel)
        assert failure.value.reason == "outside_conflict"
        assert visible(folder) == {}

    def test_a_folder_under_the_documents_name(self, channel: FileChannel, folder: Path) -> None:
        (folder / NAME).mkdir()
        with pytest.raises(Refused, match="taken"):
            send(channel)


def test_a_folder_that_went_away_is_not_made_again_and_proves_nothing(channel: FileChannel, folder: Path) -> None:
    folder.rmdir()
    with pytest.raises(NotSent, match="No such file"):
        send(channel)
    with pytest.raises(OutcomeUnknown):
        channel.look_up(KEY)
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Unavailable, match="cannot make its folder"):
        FileChannel("internal", tmp_path / "file" / "published", "internal_publication")


@pytest.mark.parametrize("failing", ["open", "mkdir", "fsync", "link", "write"])
@pytest.mark.guarantee("G34")
def test_a_full_disk_publishes_nothing_and_does_not_use_the_key_up(
    channel: FileChannel, folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def full(*arguments: Any, **named: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen" if failing == "write" else failing, full)
        with pytest.raises(NotSent, match="No space left") as failure:
            send(channel)
    assert failure.value.reason == "folder_unusable"
    assert visible(folder) == {}
    send(channel)
    assert visible(folder) == {NAME: DOCUMENT}


def test_many_at_once_with_one_key_publish_one_file(channel: FileChannel, folder: Path) -> None:
    receipts = in_parallel(8, lambda number: send(channel))
    assert len(set(receipts)) == 1
    assert visible(folder) == {NAME: DOCUMENT}


def test_of_many_at_once_with_one_name_one_wins_and_the_others_know(channel: FileChannel, folder: Path) -> None:
    def attempt(number: int) -> Receipt | str:
        try:
            return send(channel, document=b"%d" % number, key=f"{number:064x}")
        except Refused as refused:
            return refused.reason

    answers = in_parallel(8, attempt)
    (winner,) = [answer for answer in answers if isinstance(answer, Receipt)]
    assert answers.count("name_taken") == 7
    assert [sha256_hex(content) for content in visible(folder).values()] == [winner.content_hash]


@pytest.mark.guarantee("G37")
def test_killed_at_any_line_it_leaves_nothing_or_a_whole_publication_and_can_be_repeated(tmp_path: Path) -> None:
    outcomes, line, ended = set(), 0, False
    while not ended:
        line += 1
        channel = FileChannel("internal", tmp_path / str(line), "internal_publication")
        ended = done_by_a_process_killed_at(line, partial(send, channel))
        left = visible(tmp_path / str(line))
        assert left in ({}, {NAME: DOCUMENT}), f"half a publication after line {line}"
        assert (channel.look_up(KEY) is not None) == bool(left), f"the look-up is wrong after line {line}"
        outcomes.add(bool(left))
        send(channel)
        assert visible(tmp_path / str(line)) == {NAME: DOCUMENT}
    assert line > 40
    assert outcomes == {True, False}


def done_by_a_process_killed_at(line: int, do: Callable[[], object]) -> bool:
    """Do it in a process of its own, killed before the n-th line of the channel's code; whether it came to its end."""
    process = os.fork()
    if process == 0:
        sys.settrace(killer(line))
        do()
        os._exit(0)
    _, status = os.waitpid(process, 0)
    return os.WIFEXITED(status)


def killer(line: int) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that kills its own process before the n-th line of the channel's modules."""
    left = [line]

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace
