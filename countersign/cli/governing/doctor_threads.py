"""Whether the keys of the agents' checkpoints are good, and held for all that still has to be read with them.

Apart from `doctor`, which only shows it. Only what has not ended counts: what lies there of ended operations nobody
reads again, so that a key is let go of without waiting for the retention.
"""

from __future__ import annotations

from countersign.cli.session import Session
from countersign.domain.errors import Conflict, NotFound
from countersign.domain.thread import operation_of_thread
from countersign.settings import Settings

SETTING = "COUNTERSIGN_THREAD_KEYS"


def well_formed(settings: Settings) -> str:
    """Which keys there are and where they stand; nothing is made where there is none yet.

    Raises:
        ConfigurationRefused: they are not as they have to be written.
        Unavailable: their file cannot be read.
        Conflict: others can read their file.
    """
    file = settings.thread_keys_file
    if _none_yet(settings):
        return f"none yet: {file} is made at the first draft; for several machines set {SETTING}"
    from countersign.bootstrap import thread_keys

    keys = thread_keys(settings)
    if settings.thread_keys is None and file.stat().st_mode & 0o077:
        raise Conflict(f"{file} can be read by others; run: chmod 600 {file}")
    others = f"; held too: {', '.join(keys.names[1:])}" if keys.names[1:] else ""
    return f"{keys.first} encrypts{others}; from {keys.where}"


def held(session: Session) -> str:
    """That each key is held with which something of an operation that has not ended is encrypted.

    Raises:
        NotFound: some are not; names each, how many threads need it, and what to do.
        ConfigurationRefused, Unavailable: the keys, or the store, cannot be read.
    """
    from countersign.bootstrap import thread_keys, threads

    settings = session.settings
    names = () if _none_yet(settings) else thread_keys(settings).names
    needed = {
        key: sum(not _ended(session, thread) for thread in sealed) for key, sealed in threads(settings).by_key().items()
    }
    missing = [f"{key[:64]} ({count} of them)" for key, count in needed.items() if count and key not in names]
    if missing:
        raise NotFound(
            "threads of operations that have not ended are encrypted with keys that are not held:"
            f" {', '.join(missing)}; put each, as ID=KEY, behind the first in {_place(settings)}, and restart the"
            " workers; without it such a run is to be taken over and released: the agent then begins the version anew"
        )
    return "every key is held that an operation which has not ended needs"


def _none_yet(settings: Settings) -> bool:
    return settings.thread_keys is None and not settings.thread_keys_file.exists()


def _place(settings: Settings) -> str:
    file = settings.thread_keys_file
    if settings.thread_keys is not None:
        return SETTING
    return f"{SETTING}, or bring {file} back" if _none_yet(settings) else str(file)


def _ended(session: Session, thread: str) -> bool:
    """An operation that the ledger does not know may be one that a restored backup has lost, so it has not."""
    try:
        return session.ledger.operations.get(*operation_of_thread(thread)).state.terminal
    except NotFound:
        return False
