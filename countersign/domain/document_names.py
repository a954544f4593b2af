"""Names that a published document may have: one spelling each, the same on every file system and in every URL.

Apart, because three places refuse a wrong name: the start, so that nobody waits for an approval in vain; the tool
registry, before anything is claimed; and the channels, which trust nobody.
"""

from __future__ import annotations

import re
import unicodedata

from countersign.domain.errors import InputRefused

MAX_NAME = 100
# Lower-case ASCII only: with it, two different names are never the same file on any file system, whatever it does with
# case and Unicode forms, and "no replacing" is decided by one system call instead of a comparison and a race.
_NAME = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{MAX_NAME - 1}}}(?<!\.)", re.ASCII)
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.ASCII)


def checked_document_name(name: str) -> str:
    """Return `name` if it is a legal document name; InputRefused, in one line, for every other spelling."""
    if not _NAME.fullmatch(name):
        raise InputRefused(
            f"document name {name[:80]!a} is not allowed; use 1 to {MAX_NAME} of a-z 0-9 . _ - "
            "starting with a-z or 0-9, not ending with a dot"
        )
    if _DEVICES.fullmatch(name):
        raise InputRefused(f"document name {name!r} is reserved for a device on some systems; choose another")
    return name


def folded(name: str) -> str:
    """The form in which two names are one file somewhere: without case, Unicode form and compatibility characters."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
