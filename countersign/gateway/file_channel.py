"""The folder channel: publishes a document as a file that appears whole, once, and never over another file.

How it survives a kill at any instruction: the document is first written under `.countersign/<key>/<name>`, complete and
on disk, and then appears as `<name>` by one hard link, which never replaces anything. A publication exists exactly when
both names are the same file; so `look_up` needs no record of its own that could be missing or wrong. What is taken back
moves, in one step as well, to a name beside the staged one (see file_reversal.py), where it still says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from countersign.domain.canonical import sha256_hex
from countersign.domain.channel import Takes
from countersign.domain.document_names import checked_document_name, folded
from countersign.domain.errors import InputRefused, Unavailable
from countersign.domain.execution import OUTSIDE_CONFLICT, Receipt
from countersign.domain.values import Sha256
from countersign.gateway.channels import Check, NotSent, OutcomeUnknown, Refused, always
from countersign.gateway.file_reversal import FileReversal, is_taken_back
from countersign.gateway.folders import (
    keys_in,
    lock,
    made_staging_of,
    opened,
    read,
    same_file,
    stage,
    staged,
    staging_of,
    unusable,
)


class FileChannel:
    """Publishes into one folder, on a file system with hard links."""

    takes: Takes = "documents"
    keys_kept = None
    lands_within = timedelta(0)
    time_limit = timedelta(seconds=5)
    """Nominal: a disk has no time limit, but two sends at once do no harm here, since linking replaces nothing."""

    def __init__(self, name: str, folder: Path, side_effect: str) -> None:
        """Make the folder if it is not there; later on its absence is a failure, since a disk may have gone away."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"channel {name!r} cannot make its folder {folder}: {error.strerror}") from None
        self.name = name
        self.side_effect = side_effect
        self._folder = folder

    def send(self, key: str, name: str, document: bytes, content_hash: Sha256, check: Check = always) -> Receipt:
        """See `Channel.send`."""
        try:
            checked_document_name(name)
        except InputRefused as refused:
            raise Refused("name_not_allowed", refused.message) from None
        try:
            with opened(self._folder) as folder, made_staging_of(folder, key) as staging:
                _refuse_twins(folder, name)
                stage(staging, name, document)
                lock(staging)
                if not is_taken_back(staging, name):
                    check()
                    _publish(folder, staging, name)
        except OSError as error:
            # Everything up to the link leaves no publication, and the link itself happens or does not.
            raise NotSent("folder_unusable", unusable(self.name, self._folder, error)) from None
        receipt = self.look_up(key)
        if receipt is None or receipt.content_hash != content_hash:
            raise OutcomeUnknown(OUTSIDE_CONFLICT, f"file {name!r} was changed while it was published")
        return receipt

    def look_up(self, key: str) -> Receipt | None:
        """See `Channel.look_up`; the publication is made durable before it is reported."""
        try:
            with opened(self._folder) as folder:
                return self._published(folder, key)
        except OSError as error:
            raise OutcomeUnknown("lookup_failed", unusable(self.name, self._folder, error)) from None

    def held(self) -> list[Receipt]:
        """See `Channel.held`."""
        return [*self._held()]

    def reversing(self) -> FileReversal:
        """See `Channel.reversing`."""
        return FileReversal(self.name, self._folder, self.side_effect)

    def _held(self) -> Iterator[Receipt]:
        try:
            with opened(self._folder) as folder:
                for key in keys_in(folder):
                    published = self._published(folder, key)
                    if published is not None:
                        yield published
        except OSError as error:
            raise OutcomeUnknown("lookup_failed", unusable(self.name, self._folder, error)) from None

    def _published(self, folder: int, key: str) -> Receipt | None:
        try:
            with staging_of(folder, key) as staging:
                taken_back = [name for name in staged(staging) if is_taken_back(staging, name)]
                there = [name for name in staged(staging) if same_file(staging, name, folder, name)]
                if not taken_back and not there:
                    return None
                name = [*taken_back, *there][0]
                os.fsync(folder)
                content_hash = sha256_hex(read(staging, name))
        except FileNotFoundError:
            return None
        return Receipt(
            channel=self.name, key=key, reference=str(self._folder / name), content_hash=content_hash,
            detail="it was taken back since" if taken_back else "",
        )  # fmt: skip


def _refuse_twins(folder: int, name: str) -> None:
    """Refuse where a file put there by others would be the same name on another file system or to a reader's eye."""
    for entry in os.listdir(folder):
        if entry != name and folded(entry) == name:
            raise Refused(
                "name_taken", f"document name {name!r} is taken by {entry!a}, the same name spelled otherwise"
            )


def _publish(folder: int, staging: int, name: str) -> None:
    try:
        os.link(name, name, src_dir_fd=staging, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        if not same_file(staging, name, folder, name):
            raise Refused(
                "name_taken", f"document name {name!r} is taken by another file, which is not replaced; choose another"
            ) from None
