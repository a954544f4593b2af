"""Records one run per way to end into `histories/`: `python -m tests.workflow.record`, after a wanted change.

It stands apart from the tests because a recording is made once and then held against every later change. A run that is
open in production replays a history just as these: a change that breaks one of them needs `workflow.patched`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import yaml
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter

from countersign.domain.administration import DirectoryChange, PersonChange
from countersign.domain.decision import Outcome
from countersign.domain.directory import Standing
from countersign.domain.state import State
from tests.support.installation import Installation, new_installation
from tests.support.publisher import Publisher, running_publisher
from tests.support.temporal import running_dev_server
from tests.support.waiting import until_messages, until_state
from tests.workflow.press import TOKEN
from tests.workflow.strict_replay import FOLDER, commands_of, save

Run = WorkflowHandle[Any, Any]


async def _decided(installation: Installation, operation: str, decision: Any) -> Run:
    run = await installation.start(operation)
    await until_state(run, State.WAITING_APPROVAL)
    message = installation.decision(installation.proposal(operation), "bob", decision)
    await run.execute_update("decide", message, result_type=Outcome)
    await run.result()
    return run


async def approved(installation: Installation, _: Publisher) -> Run:
    """Approved and published."""
    return await _decided(installation, "approved", "approve")


async def approved_after_faults(installation: Installation, press: Publisher) -> Run:
    """Approved; the outside asks to come later, then publishes without saying so."""
    press.fail_next("rate_limited", "error_after")
    return await _decided(installation, "approved-after-faults", "approve")


async def rejected(installation: Installation, _: Publisher) -> Run:
    """Rejected, after a message that cannot be read."""
    run = await installation.start("rejected")
    await until_state(run, State.WAITING_APPROVAL)
    await run.signal("decide", {"decision": "approve"})
    await until_messages(run, 1)
    message = installation.decision(installation.proposal("rejected"), "bob", "reject")
    await run.execute_update("decide", message, result_type=Outcome)
    await run.result()
    return run


async def by_rule(installation: Installation, _: Publisher) -> Run:
    """Granted by rule."""
    run = await installation.start("by-rule", channel="internal")
    await run.result()
    return run


async def cancelled(installation: Installation, _: Publisher) -> Run:
    """Cancelled while people are asked."""
    run = await installation.start("cancelled")
    await until_state(run, State.WAITING_APPROVAL)
    await run.cancel()
    try:
        await run.result()
    except WorkflowFailureError:
        return run
    raise AssertionError("the run went on after its cancel")


async def edited(installation: Installation, _: Publisher) -> Run:
    """Edited by the reviewer, whose edit counts, then published as edited."""
    run = await installation.start("edited")
    await until_state(run, State.WAITING_APPROVAL)
    message = installation.edit(installation.proposal("edited"), "bob", name="half-year.md")
    await run.execute_update("decide", message, result_type=Outcome)
    await run.result()
    return run


async def withdrawn(installation: Installation, _: Publisher) -> Run:
    """Withdrawn by whoever asked."""
    run = await installation.start("withdrawn")
    await until_state(run, State.WAITING_APPROVAL)
    message = installation.decision(installation.proposal("withdrawn"), "rita", "withdraw")
    await run.execute_update("decide", message, result_type=Outcome)
    await run.result()
    return run


async def asked_anew(installation: Installation, press: Publisher) -> Run:
    """Granted; the approver loses the role before anything could be sent, and another one approves the new version."""
    press.fail_next("rate_limited")
    run = await installation.start("asked-anew")
    await until_state(run, State.WAITING_APPROVAL)
    first = installation.decision(installation.proposal("asked-anew"), "bob")
    await run.execute_update("decide", first, result_type=Outcome)
    await until_state(run, State.WAITING_RETRY)
    installation.demote("bob", "requester")
    await until_state(run, State.WAITING_APPROVAL)
    second = installation.decision(installation.proposal("asked-anew"), "carl")
    await run.execute_update("decide", second, result_type=Outcome)
    await run.result()
    return run


async def administered(installation: Installation, _: Publisher) -> Run:
    """A person added to the directory by two administrators; nothing is drafted."""
    standing = Standing(roles=frozenset({"reviewer"}))
    change = DirectoryChange(persons=(PersonChange(person="dan", standing=standing),))
    run = await installation.start_unchecked(installation.register_change("administered", change))
    await until_state(run, State.WAITING_APPROVAL)
    for person in ("ben", "cleo"):
        message = installation.decision(installation.proposal("administered"), person)
        await run.execute_update("decide", message, result_type=Outcome)
    await run.result()
    return run


async def failed(installation: Installation, _: Publisher) -> Run:
    """Refused at its opening: started for another request than the signed one."""
    order = installation.register("failed")
    run = await installation.start_unchecked(order.model_copy(update={"request_hash": "sha256:" + "0" * 64}))
    await run.result()
    return run


async def expired(installation: Installation, _: Publisher) -> Run:
    """Undecided at the deadline, which is near in this installation."""
    run = await installation.start("expired")
    await run.result()
    return run


async def waiting(installation: Installation, _: Publisher) -> Run:
    """Still open: people are asked."""
    run = await installation.start("waiting")
    await until_state(run, State.WAITING_APPROVAL)
    return run


WAYS: dict[str, Callable[[Installation, Publisher], Awaitable[Run]]] = {
    way.__name__: way
    for way in (
        approved,
        approved_after_faults,
        edited,
        asked_anew,
        administered,
        rejected,
        withdrawn,
        by_rule,
        cancelled,
        failed,
        expired,
        waiting,
    )
}


async def record(name: str, folder: Path, client: Client) -> None:
    """Record one way in an installation of its own, whose channels are all at a press: receipts name no folder here."""
    press = Publisher(folder / "press.db", TOKEN)
    with running_publisher(press) as url:
        changes = {"decide_within": "2s"} if name == "expired" else {}
        installation = new_installation(folder / "home", client).with_policy(folder, **changes)
        _publish_at(installation, url)
        async with installation.workers():
            run = await WAYS[name](installation, press)
            history = await run.fetch_history()
        installation.ledger.close()
    save(name, history, await commands_of(history))


def _publish_at(installation: Installation, url: str) -> None:
    path = installation.settings.policies / "channels.yaml"
    channels = yaml.safe_load(path.read_text())
    for channel in channels["channels"].values():
        channel |= {"kind": "http", "url": url, "token_env": "PRESS_TOKEN"}
    path.write_text(yaml.safe_dump(channels))


async def main(address: str) -> None:
    """Record every way, under an identity that names no machine."""
    client = await Client.connect(address, data_converter=pydantic_data_converter, identity="recorder")
    for name in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            await record(name, Path(folder), client)
        print(f"recorded {name}", flush=True)


if __name__ == "__main__":
    os.environ["PRESS_TOKEN"] = TOKEN
    FOLDER.mkdir(exist_ok=True)
    with running_dev_server() as server:
        asyncio.run(main(server))
