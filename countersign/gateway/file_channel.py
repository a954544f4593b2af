"""The folder channel: publishes a document as a file that appears whole, once, and never over another file.

How it survives a kill at any instruction: the document is first written under `.countersign/<key>/<name>`, complete and
on disk, and then appears as `<name>` by one hard link, which never replaces anything. A publication exists exactly when
both names are the same file; so `look_up` needs no record of its own that could be missing or wrong. Every step works
on open folder descriptors and follows no symbolic link, so that a path cannot be led outside between check and use.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from countersign.domain.canonical import sha256_hex
from countersign.domain.document_names import checked_document_name, folded
from countersign.domain.errors import InputRefused, Unavailable
from countersign.domain.execution import Receipt
from countersign.domain.values import Sha256
from countersign.gateway.channels import NotSent, OutcomeUnknown, Refused

STAGING = ".countersign"
_PART = ".part-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileChannel:
    """Publishes into one folder, on a file system with hard links."""

    keys_kept = None
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

    def send(self, key: str, name: str, document: bytes, content_hash: Sha256) -> Receipt:
        """See `Channel.send`."""
        try:
            checked_document_name(name)
        except InputRefused as refused:
            raise Refused("name_not_allowed", refused.message) from None
        try:
            with _opened(self._folder) as folder, _staging(folder, key) as staging:
                _refuse_twins(folder, name)
                _stage(staging, name, document)
                _publish(folder, staging, name)
        except OSError as error:
            # Everything up to the link leaves no publication, and the link itself happens or does not.
            raise NotSent("folder_unusable", self._sentence(error)) from None
        receipt = self.look_up(key)
        if receipt is None or receipt.content_hash != content_hash:
            raise OutcomeUnknown("outside_conflict", f"file {name!r} was changed while it was published")
        return receipt

    def look_up(self, key: str) -> Receipt | None:
        """See `Channel.look_up`; the publication is made durable before it is reported."""
        try:
            with _opened(self._folder) as folder:
                return self._published(folder, key)
        except OSError as error:
            raise OutcomeUnknown("lookup_failed", self._sentence(error)) from None

    def _published(self, folder: int, key: str) -> Receipt | None:
        try:
            with _opened(STAGING, folder) as staging_root, _opened(key, staging_root) as staging:
                staged = [entry for entry in os.listdir(staging) if not entry.startswith(_PART)]
                published = next((entry for entry in staged if _same_file(staging, folder, entry)), None)
                if published is None:
                    return None
                os.fsync(folder)
                content_hash = sha256_hex(_read(staging, published))
        except FileNotFoundError:
            return None
        return Receipt(channel=self.name, key=key, reference=str(self._folder / published), content_hash=content_hash)

    def _sentence(self, error: OSError) -> str:
        is_link = error.errno in (errno.ELOOP, errno.ENOTDIR)
        reason = "it is, or holds, a link or file where a folder should be" if is_link else error.strerror
        return f"channel {self.name!r} cannot use its folder {self._folder}: {reason}; put it right and try again"


@contextmanager
def _opened(folder: Path | str, parent: int | None = None) -> Iterator[int]:
    """A descriptor of a folder, which a link in its place never gives."""
    descriptor = os.open(folder, _FOLDER, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _staging(folder: int, key: str) -> Iterator[int]:
    """The key's own staging folder, made if it is not there, in a way that survives a power cut."""
    _make_folder(STAGING, folder)
    with _opened(STAGING, folder) as root:
        _make_folder(key, root)
        with _opened(key, root) as staging:
            yield staging


def _make_folder(name: str, parent: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
        os.fsync(parent)


def _refuse_twins(folder: int, name: str) -> None:
    """Refuse where a file put there by others would be the same name on another file system or to a reader's eye."""
    for entry in os.listdir(folder):
        if entry != name and folded(entry) == name:
            raise Refused(
                "name_taken", f"document name {name!r} is taken by {entry!a}, the same name spelled otherwise"
            )


def _stage(staging: int, name: str, document: bytes) -> None:
    """Put the whole document under its name into the key's folder, unless an earlier attempt did."""
    part = _PART + secrets.token_hex(8)
    descriptor = os.open(part, _NEW, 0o644, dir_fd=staging)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(document)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(part, name, src_dir_fd=staging, dst_dir_fd=staging, follow_symlinks=False)
        os.fsync(staging)
    finally:
        os.unlink(part, dir_fd=staging)
    if _read(staging, name) != document:
        raise OutcomeUnknown("outside_conflict", f"another document is staged as {name!r} under the same key")


def _publish(folder: int, staging: int, name: str) -> None:
    try:
        os.link(name, name, src_dir_fd=staging, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        if not _same_file(staging, folder, name):
            raise Refused(
                "name_taken", f"document name {name!r} is taken by another file, which is not replaced; choose another"
            ) from None


def _same_file(staging: int, folder: int, name: str) -> bool:
    staged = os.stat(name, dir_fd=staging, follow_symlinks=False)
    try:
        published = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(staged, published)


def _read(folder: int, name: str) -> bytes:
    with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file:
        return file.read()
