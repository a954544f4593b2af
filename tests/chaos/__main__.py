"""`make chaos`: the kill matrix, long; the table of what came of it, and an exit code that says whether all was well.

ROUNDS=n sets how many, ROUND=k plays one alone, SEED=n draws other random instants.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from tests.chaos.campaign import Campaign, table
from tests.chaos.round import Played

WORLDS = 3


def main() -> int:
    """Play, print, judge."""
    seed = int(os.environ.get("SEED") or 0)
    one = os.environ.get("ROUND")
    numbers = [int(one)] if one else range(1, int(os.environ.get("ROUNDS") or 200) + 1)

    def tell(played: Played) -> None:
        print(played.line, flush=True)
        if not played.is_well:
            what = f"{played.audit_fault} {played.died}".strip()
            print(f"  again with: make chaos ROUND={played.scenario.number} SEED={seed}  {what}", flush=True)

    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        rounds = asyncio.run(Campaign(Path(folder), seed=seed, worlds=WORLDS).play(numbers, tell))
    print(*table(rounds), sep="\n")
    return 0 if all(played.is_well for played in rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
