"""Records a run per way (ways.py) into `histories/`, after a wanted change: `-m tests.workflow.record [NAME...]`.

It stands apart from the tests because a recording is made once and then held against every later change. A run that is
open in production replays a history just as these: a change that breaks one of them needs `workflow.patched`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import yaml
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from tests.support.installation import Installation, new_installation
from tests.support.publisher import Publisher, running_publisher
from tests.support.temporal import GOES_ON_AFTER, running_dev_server
from tests.workflow.asking import stand_ins
from tests.workflow.press import TOKEN
from tests.workflow.strict_replay import FOLDER, commands_of, save
from tests.workflow.ways import WAYS, Way


async def record(name: str, way: Way, folder: Path, address: str) -> None:
    """Record one way in an installation of its own, whose channels are all at a press: receipts name no folder here.

    The client goes by an identity that names no machine.
    """
    client = await Client.connect(address, data_converter=pydantic_data_converter, identity="recorder")
    press = Publisher(folder / "press.db", TOKEN)
    with running_publisher(press) as url:
        installation = new_installation(folder / "home", client)
        installation = installation.with_policy(folder, **way.need).with_fields(folder, **way.fields)
        _publish_at(installation, url)
        async with AsyncExitStack() as stack:
            if way.agent_asks:
                stack.enter_context(stand_ins())
            if way.has_workers:
                await stack.enter_async_context(installation.workers())
            history = await (await way.go(installation, press)).fetch_history()
        installation.ledger.close()
    save(name, history, await commands_of(history))


def _publish_at(installation: Installation, url: str) -> None:
    path = installation.settings.policies / "channels.yaml"
    channels = yaml.safe_load(path.read_text())
    for channel in channels["channels"].values():
        channel.pop("orders_url", None)
        channel |= {"kind": "http", "url": url, "token_env": "PRESS_TOKEN"}
    path.write_text(yaml.safe_dump(channels))


def main(names: list[str]) -> None:
    """Record these ways, or all."""
    for name in names or sorted(WAYS):
        way = WAYS[name]
        limits = {GOES_ON_AFTER: way.grows_long_after} if way.grows_long_after else {}
        with tempfile.TemporaryDirectory() as folder, running_dev_server(limits) as address:
            asyncio.run(record(name, way, Path(folder), address))
        print(f"recorded {name}", flush=True)


if __name__ == "__main__":
    os.environ["PRESS_TOKEN"] = TOKEN
    FOLDER.mkdir(exist_ok=True)
    main(sys.argv[1:])
