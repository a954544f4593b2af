"""Taking a publication of the folder channel back: its name goes away, if it is the very file that was published.

How it survives a kill at any instruction: what was asked for is first written down under the reversal's own key, and
then the published name moves, in one step, to `.countersign/<key of the publication>/.taken-<key of the reversal>`. The
reversal has happened exactly when that name is the staged file. So both keys are found again by what lies there, and a
late repeat of the publication puts nothing back.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from pydantic import ValidationError

from countersign.domain.canonical import sha256_hex
from countersign.domain.channel import Takes
from countersign.domain.compensation import ReversalDocument, reversal_of
from countersign.domain.execution import OUTSIDE_CONFLICT, Receipt
from countersign.domain.values import Sha256
from countersign.gateway.channels import Check, NotSent, OutcomeUnknown, Refused, always
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

_ASKED = ".reversal"
_TAKEN = ".taken-"


class FileReversal:
    """Takes back what a folder channel published; fulfils `channels.Channel`."""

    takes: Takes = "reversals"
    keys_kept = None
    lands_within = timedelta(0)
    time_limit = timedelta(seconds=5)
    """Nominal, as the folder channel's: what is taken back once is taken back."""

    def __init__(self, name: str, folder: Path, side_effect: str) -> None:
        """`name`, `folder` and `side_effect` are those of the channel that published."""
        self.name = name
        self.side_effect = reversal_of(side_effect)
        self._folder = folder

    def send(
        self,
        key: str,
        name: str,  # noqa: ARG002 - as in Channel
        document: bytes,
        content_hash: Sha256,
        check: Check = always,
    ) -> Receipt:
        """Take back the publication that the document names.

        Raises:
            Refused: it is not there as it was published, or was taken back under another key; nothing was changed.
            NotSent, OutcomeUnknown: as in `Channel.send`.
        """
        try:
            asked = ReversalDocument.model_validate_json(document)
        except ValidationError:
            raise Refused("document_unreadable", "what is to be taken back is not named by its key") from None
        try:
            with opened(self._folder) as folder:
                with made_staging_of(folder, key) as staging:
                    stage(staging, _ASKED, document)
                check()
                self._take_back(folder, asked, key)
        except OSError as error:
            raise NotSent("folder_unusable", unusable(self.name, self._folder, error)) from None
        receipt = self.look_up(key)
        if receipt is None or receipt.content_hash != content_hash:
            raise OutcomeUnknown(OUTSIDE_CONFLICT, "what was taken back was changed meanwhile; a person must look")
        return receipt

    def look_up(self, key: str) -> Receipt | None:
        """See `Channel.look_up`."""
        try:
            with opened(self._folder) as folder:
                return self._taken_back(folder, key)
        except OSError as error:
            raise OutcomeUnknown("lookup_failed", unusable(self.name, self._folder, error)) from None

    def held(self) -> list[Receipt]:
        """See `Channel.held`."""
        try:
            with opened(self._folder) as folder:
                return [one for one in (self._taken_back(folder, key) for key in keys_in(folder)) if one is not None]
        except OSError as error:
            raise OutcomeUnknown("lookup_failed", unusable(self.name, self._folder, error)) from None

    def reversing(self) -> None:
        """See `Channel.reversing`; whoever wants it back publishes anew."""

    def _take_back(self, folder: int, asked: ReversalDocument, key: str) -> None:
        name = Path(asked.reference).name
        try:
            with staging_of(folder, asked.key) as published:
                lock(published)
                if name in staged(published):
                    _move_away(folder, published, name, key)
                    return
        except FileNotFoundError:
            pass
        raise _not_published(name)

    def _taken_back(self, folder: int, key: str) -> Receipt | None:
        try:
            with staging_of(folder, key) as staging:
                document = read(staging, _ASKED)
            asked = ReversalDocument.model_validate_json(document)
            with staging_of(folder, asked.key) as published:
                if not any(_is_taken_by(published, name, key) for name in staged(published)):
                    return None
                os.fsync(folder)
                os.fsync(published)
        except FileNotFoundError:
            return None
        except ValidationError:
            raise OutcomeUnknown("lookup_failed", f"what was asked for under {key} cannot be read any more") from None
        return Receipt(channel=self.name, key=key, reference=asked.reference, content_hash=sha256_hex(document))


def is_taken_back(published: int, name: str) -> bool:
    """Whether the publication staged as `name` in its key's folder was taken back, under whatever key."""
    taken = (entry for entry in os.listdir(published) if entry.startswith(_TAKEN))
    return any(same_file(published, name, published, entry) for entry in taken)


def _is_taken_by(published: int, name: str, key: str) -> bool:
    return same_file(published, name, published, _TAKEN + key)


def _move_away(folder: int, published: int, name: str, key: str) -> None:
    _give_back_others(folder, published, name, key)
    if _is_taken_by(published, name, key):
        return
    if is_taken_back(published, name):
        raise Refused("reversed_already", f"{name!r} was taken back before, under another key; nothing was changed")
    if not same_file(published, name, folder, name):
        raise _not_published(name)
    os.rename(name, _TAKEN + key, src_dir_fd=folder, dst_dir_fd=published)
    _give_back_others(folder, published, name, key)


def _give_back_others(folder: int, published: int, name: str, key: str) -> None:
    """Put back a file of others that took the name's place between a look and the move; it is theirs."""
    if _TAKEN + key in os.listdir(published) and not _is_taken_by(published, name, key):
        os.link(_TAKEN + key, name, src_dir_fd=published, dst_dir_fd=folder, follow_symlinks=False)
        os.unlink(_TAKEN + key, dir_fd=published)
        raise _not_published(name)


def _not_published(name: str) -> Refused:
    return Refused("not_published", f"{name!r} is not there as it was published; nothing was changed")
