"""The installation's key on a fresh home: whoever starts first makes it, everyone reads the same one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from countersign.bootstrap import installation_key
from countersign.settings import Settings
from countersign.signing.keys import public_text

STARTERS = 16


def test_all_that_start_at_once_on_a_fresh_home_get_one_key(tmp_path: Path) -> None:
    for home in (tmp_path / str(number) for number in range(20)):
        settings, line = Settings(home=home), threading.Barrier(STARTERS)

        def start(settings: Settings = settings, line: threading.Barrier = line) -> str:
            line.wait()
            return public_text(installation_key(settings))

        with ThreadPoolExecutor(STARTERS) as threads:
            started = [threads.submit(start) for _ in range(STARTERS)]
        assert len({each.result() for each in started}) == 1
        assert [path.name for path in settings.keys_folder.iterdir()] == ["installation.pem"]
