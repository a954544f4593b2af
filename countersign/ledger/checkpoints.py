"""Checkpoint files: `<tenant>.jws` in a folder outside the database, so that a shortened chain is seen (G43).

Apart from the chain because a file system knows no transaction: the order of steps here is what keeps a checkpoint from
ever being ahead of the chain, going backwards, or covering up what it was kept to reveal.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.domain.audit import ChainBroken, Checkpoint, cut_off
from countersign.domain.errors import StatementRefused, Unavailable
from countersign.domain.values import Sha256
from countersign.signing.checkpoints import sign_checkpoint, verify_checkpoint


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` alone, against other threads and other processes; it ends with the process."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Checkpoints:
    """The checkpoint files of one installation."""

    def __init__(self, folder: Path, installation: str, key: Ed25519PrivateKey) -> None:
        self._folder = folder
        self._installation = installation
        self._key = key
        self._public_key = key.public_key()
        self._verified: dict[str, tuple[str, Checkpoint]] = {}

    def exist(self) -> bool:
        """Whether a checkpoint of any tenant is there."""
        return next(self._folder.glob("*.jws"), None) is not None

    def tenants(self) -> frozenset[str]:
        """The tenants that have a checkpoint."""
        return frozenset(path.stem for path in self._folder.glob("*.jws"))

    def read(self, tenant: str) -> Checkpoint | None:
        """The tenant's checkpoint, or None where there is no file.

        Raises:
            ChainBroken: it is not signed by this installation's key, or is another tenant's or installation's.
        """
        try:
            token = self.path(tenant).read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(tenant, error) from error
        # Most reads meet the very text that was read or written last; its signature need not be checked again.
        known = self._verified.get(tenant)
        if known is None or known[0] != token:
            known = self._verified[tenant] = (token, self._checked(tenant, token))
        return known[1]

    def _checked(self, tenant: str, token: str) -> Checkpoint:
        try:
            checkpoint = verify_checkpoint(token.strip(), self._public_key)
        except StatementRefused as refused:
            raise ChainBroken(1, f"checkpoint {self.path(tenant)} proves nothing: {refused.message}") from None
        if (checkpoint.installation, checkpoint.tenant) != (self._installation, tenant):
            found = f"{checkpoint.installation}/{checkpoint.tenant}"
            raise ChainBroken(1, f"checkpoint {self.path(tenant)} is of {found}, not {self._installation}/{tenant}")
        return checkpoint

    def confirm(
        self,
        tenant: str,
        count: int,
        head: Sha256,
        hash_at: Callable[[int], str | None],
        lost: Checkpoint | None = None,
    ) -> None:
        """Before a record is appended: make sure that the chain still holds what its checkpoint says, and catch up.

        To be called while nobody else can append, so that the file cannot be ahead of the chain unless the chain was
        cut. A new chain's file is made here, before its first record, so that a missing file always means a loss.

        Args:
            tenant: whose chain.
            count: how long it is.
            head: the hash of its last record.
            hash_at: the hash of the record with a sequence number.
            lost: a checkpoint that the chain need not hold any more, since an operator said why.
        """
        known = self.read(tenant)
        if known is not None and known == lost:
            return
        if known is None and count > 0:
            raise missing(tenant, self.path(tenant), count)
        if known is not None and known.count > 0:
            _check_continues(known, count, head, hash_at)
        if known is None or known.count < count:
            self.advance(tenant, count, head)

    def advance(self, tenant: str, count: int, head: Sha256, lost: Checkpoint | None = None) -> None:
        """After a commit: write the checkpoint, unless one at least as far is there; Unavailable if it cannot be.

        It goes back in one case only: behind `lost`, as in `confirm`, whose count stays in the chain.
        """
        try:
            with locked(self._folder / f"{tenant}.lock"):
                known = self.read(tenant)
                if known is None or known.count < count or known == lost:
                    self._write(Checkpoint(installation=self._installation, tenant=tenant, count=count, head=head))
        except OSError as error:
            raise self._unusable(tenant, error) from error

    def _write(self, checkpoint: Checkpoint) -> None:
        path, token = self.path(checkpoint.tenant), sign_checkpoint(checkpoint, self._key)
        waiting = path.with_suffix(".new")
        with waiting.open("w", encoding="ascii") as file:
            file.write(token)
            file.flush()
            # Without this a power failure can leave an empty file under the final name: a false alarm.
            os.fsync(file.fileno())
        waiting.replace(path)
        self._verified[checkpoint.tenant] = (token, checkpoint)

    def path(self, tenant: str) -> Path:
        """Where the tenant's checkpoint lies."""
        return self._folder / f"{tenant}.jws"

    def _unusable(self, tenant: str, error: OSError) -> Unavailable:
        return Unavailable(
            f"checkpoint {self.path(tenant)} cannot be read or written: {error.strerror}; make the folder usable and "
            "repeat the step"
        )


def missing(tenant: str, path: Path, count: int) -> ChainBroken:
    """There are records but no checkpoint: whoever removed the file may have cut the chain too."""
    return ChainBroken(
        1, f"checkpoint {path} is missing while tenant {tenant} has {count} audit records; restore it from a backup"
    )


def _check_continues(known: Checkpoint, count: int, head: Sha256, hash_at: Callable[[int], str | None]) -> None:
    if known.count > count:
        raise cut_off(count, known)
    if (head if known.count == count else hash_at(known.count)) != known.head:
        raise ChainBroken(known.count, f"audit record {known.count} is not the one that the checkpoint names")
