"""One attempt at a draft in a process of its own, which a test kills; run with the arguments of `main`."""

from __future__ import annotations

import asyncio
import sys
import threading

from countersign.agents.models import ModelSettings
from tests.agents.tables import Sales, finished, reporter, sales_material, unheard


def hold() -> None:
    """Say that the place was reached, and stay there until killed."""
    print("holding", flush=True)
    threading.Event().wait()


async def main(model_url: str, checkpoint_url: str, attempt: str, hold_at: str) -> None:
    """Draft; stop for ever inside a query (`query`) or when the draft is there (`end`)."""
    settings = ModelSettings(api_key="k", base_url=model_url, draft_model="test-model")
    drafter = reporter(settings, checkpoint_url)
    sales = Sales(lambda sql: hold() if hold_at == "query" else None)
    written = finished(
        await drafter.draft("acme:op-1:run:v1", int(attempt), sales_material(sales), None, (), {}, True, unheard)
    )
    if hold_at == "end":
        hold()
    print(f"draft: {written.draft['title']}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
