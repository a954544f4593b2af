"""What the folder channel does on a disk, in steps that survive a kill or a power cut between any two of them.

Every step works on open folder descriptors and follows no symbolic link, so that a path cannot be led outside between
check and use.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from countersign.domain.execution import OUTSIDE_CONFLICT
from countersign.gateway.channels import OutcomeUnknown

STAGING = ".countersign"
"""The folder's own place for what is under way and what was done, by key."""
_PART = ".part-"
_KEY = re.compile(r"[0-9a-f]{64}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened(folder: Path | str, parent: int | None = None) -> Iterator[int]:
    """A descriptor of a folder, which a link in its place never gives."""
    descriptor = os.open(folder, _FOLDER, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def staging_of(folder: int, key: str) -> Iterator[int]:
    """The key's own staging folder, which must be there."""
    with opened(STAGING, folder) as root, opened(key, root) as staging:
        yield staging


@contextmanager
def made_staging_of(folder: int, key: str) -> Iterator[int]:
    """The key's own staging folder, made if it is not there, in a way that survives a power cut."""
    _make_folder(STAGING, folder)
    with opened(STAGING, folder) as root:
        _make_folder(key, root)
        with opened(key, root) as staging:
            yield staging


def keys_in(folder: int) -> list[str]:
    """The keys that have a staging folder."""
    try:
        with opened(STAGING, folder) as root:
            return sorted(filter(_KEY.fullmatch, os.listdir(root)))
    except FileNotFoundError:
        return []


def staged(staging: int) -> list[str]:
    """The names of whole documents in a key's folder."""
    return [entry for entry in os.listdir(staging) if not entry.startswith(".")]


def lock(folder: int) -> None:
    """Wait until nobody else works in the folder; it is given back with the descriptor, by a kill as well."""
    fcntl.flock(folder, fcntl.LOCK_EX)


def stage(staging: int, name: str, document: bytes) -> None:
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
    if read(staging, name) != document:
        raise OutcomeUnknown(OUTSIDE_CONFLICT, f"another document is staged as {name!r} under the same key")


def same_file(staging: int, name: str, folder: int, other: str) -> bool:
    """Whether `other` in `folder` is the very file `name` in `staging`."""
    staged = os.stat(name, dir_fd=staging, follow_symlinks=False)
    try:
        return os.path.samestat(staged, os.stat(other, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return False


def read(folder: int, name: str) -> bytes:
    """The bytes of a file."""
    with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file:
        return file.read()


def unusable(channel: str, folder: Path, error: OSError) -> str:
    """Why a folder could not be used, and what to do."""
    is_link = error.errno in (errno.ELOOP, errno.ENOTDIR)
    reason = "it is, or holds, a link or file where a folder should be" if is_link else error.strerror
    return f"channel {channel!r} cannot use its folder {folder}: {reason}; put it right and try again"


def _make_folder(name: str, parent: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
        os.fsync(parent)
