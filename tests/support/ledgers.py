"""Databases that have their tables already: migrated once, copied for each test.

Apart from the fixtures, since worlds and desks make ledgers of their own. Migrating is what half of the tests of the
ledger would spend their time with; that it works is shown by those of opening and upgrading, which begin with nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

from countersign.ledger.engines import make_engine
from countersign.ledger.schema import migrate


def with_tables(file: Path) -> str:
    """The URL of the SQLite ledger at `file`, which gets its tables if it is not there."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_template(), file)
    return f"sqlite:///{file}"


def give_tables(url: str) -> None:
    """Migrate an empty database, as the program does when it opens it."""
    engine = make_engine(url)
    with engine.begin() as connection:
        migrate(connection)
    engine.dispose()


@cache
def _template() -> Path:
    """A migrated file; one per process, gone with it."""
    folder = tempfile.TemporaryDirectory(prefix="countersign-tables-")
    _KEPT.append(folder)
    file = Path(folder.name) / "ledger.sqlite"
    give_tables(f"sqlite:///{file}")
    return file


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
"""What holds the folder until the process ends."""
