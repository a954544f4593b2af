"""A gateway process for tests that kill it: opens an installation, executes one approval, prints the result as JSON.

It stands apart from the tests because only a process of its own can be ended by SIGKILL between two steps.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from countersign.gateway.acting import Step
from countersign.gateway.channels import Channel
from countersign.gateway.file_channel import FileChannel
from countersign.gateway.http_channel import HttpChannel, Limits
from tests.gateway.refunding import reopened
from tests.gateway.world import TENANT


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("approval_id")
    parser.add_argument("--now", type=datetime.fromisoformat, required=True)
    parser.add_argument("--url", default="", help="address of the HTTP channel `press`")
    parser.add_argument("--token", default="")
    parser.add_argument("--kill-at", default="", help="the step after which the process kills itself")
    parser.add_argument("--payments", default="", help="address of a payment service, for refunds")
    parser.add_argument("--barrier", type=Path, help="file whose appearance is waited for, after the line `ready`")
    arguments = parser.parse_args()

    def on_step(step: Step) -> None:
        if step == arguments.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    world = reopened(arguments.folder, arguments.payments)
    world.now = arguments.now
    channels: list[Channel] = [FileChannel("internal", arguments.folder / "published", "internal_publication")]
    if arguments.url:
        limits = Limits(total=timedelta(seconds=60))
        channels.append(HttpChannel("press", arguments.url, SecretStr(arguments.token), "external_publication", limits))
    if arguments.payments:
        channels.append(world.payments)
    gateway = world.gateway(*channels, on_step=on_step)
    if arguments.barrier:
        wait_for(arguments.barrier)
    print(gateway.execute(TENANT, arguments.approval_id).model_dump_json())
    world.close()


def wait_for(barrier: Path) -> None:
    """Say `ready`, and wait until the file is there."""
    print("ready", flush=True)
    while not barrier.exists():
        time.sleep(0.001)


if __name__ == "__main__":
    main()
