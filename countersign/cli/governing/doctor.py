"""`doctor`: everything a run needs, looked at in one go, each with what to do about it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from countersign.cli import options
from countersign.cli.errors import in_plain_words
from countersign.cli.governing import doctor_threads, tenant_checks
from countersign.cli.rendering import STARTER, WORKER, say, say_json
from countersign.cli.session import Session, opened
from countersign.domain.errors import ConfigurationRefused, Conflict, CountersignError, Unavailable
from countersign.domain.loopback import require_loopback
from countersign.settings import Settings, load_settings
from workflows.names import GATEWAY_QUEUE, RUN_QUEUE, SEARCH_ATTRIBUTES

if TYPE_CHECKING:
    from temporalio.client import Client

    from countersign.domain.channel import ChannelConfig

FREE_BYTES = 500 * 1024 * 1024
"""Below this much free room, publishing or recording may fail in the middle of a day's work."""
SERVER_SECONDS = 5.0


class Check(NamedTuple):
    """One line of the answer."""

    name: str
    ok: bool
    detail: str
    """What was found, or what is wrong and what to do."""


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Register missing search attributes.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Check all that a run needs, and say what to do.

    Policy files, addresses of notices, keys, disk, profile, ledger, audit, keys of checkpoints, persons, policies in
    force, alarms, notices that did not arrive, freezes, Temporal server, search attributes, workers.
    """
    checks = list(examined(load_settings(), fix))
    if as_json:
        say_json([check._asdict() for check in checks])
    else:
        for check in checks:
            say(f"{'ok     ' if check.ok else 'problem'}  {check.name}: {check.detail}")
    raise typer.Exit(0 if all(check.ok for check in checks) else 1)


def examined(settings: Settings, fix: bool) -> Iterator[Check]:
    """All checks, each done whatever the others say."""
    yield _checked("policy, rubric, channels", lambda: _files(settings))
    yield _checked("notifications", lambda: _notifications(settings))
    yield _checked("installation key", lambda: _installation_key(settings))
    yield _checked("thread keys", lambda: doctor_threads.well_formed(settings))
    yield _checked("evidence folder", lambda: _folder(settings))
    yield _checked("profile", lambda: _profile(settings))
    yield _checked("models", lambda: _models(settings))
    yield from _of_ledger(settings)
    yield from asyncio.run(_of_server(fix))


def _checked(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except Exception as error:
        sentence = in_plain_words(error)
        if sentence is None:
            raise
        return Check(name, False, sentence)


def _files(settings: Settings) -> str:
    from countersign.bootstrap import load_channels, load_policies, load_rubrics

    policies, rubrics, channels = load_policies(settings), load_rubrics(settings), load_channels(settings)
    named = [*(policy.label() for policy in policies.values()), *(rubric.label() for rubric in rubrics.values())]
    versions = ", ".join(label.partition("@")[0] for label in named)
    return f"{versions}; channels {', '.join(map(_told, channels.items()))}"


def _told(named: tuple[str, ChannelConfig]) -> str:
    """A channel by its name, with what it waits for."""
    from countersign.bootstrap import is_inactive

    name, config = named
    return f"{name} (not active without {config.token_env}, which is not set here)" if is_inactive(config) else name


def _notifications(settings: Settings) -> str:
    from countersign.bootstrap import load_notifications

    addresses = load_notifications(settings)
    if not addresses:
        return "no addresses: people are told nothing, and look for themselves (inbox)"
    return f"addresses {', '.join(addresses)}"


def _installation_key(settings: Settings) -> str:
    from countersign.bootstrap import installation_key

    path = settings.keys_folder / "installation.pem"
    installation_key(settings)
    if path.stat().st_mode & 0o077:
        raise Conflict(f"{path} can be read by others; run: chmod 600 {path}")
    return f"{path}, readable by its owner only"


def _folder(settings: Settings) -> str:
    folder = settings.evidence_folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder) as probe:
        probe.write(b"x" * 4096)
        probe.flush()
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES:
        raise Unavailable(f"{folder}: only {free // 2**20} MiB are free on its disk; make room")
    return f"{folder} writable, {free // 2**30} GiB free"


def _profile(settings: Settings) -> str:
    from countersign.bootstrap import load_channels
    from countersign.temporal_client import server_address

    if not settings.takes_unsigned:
        return f"{settings.profile}: every decision must be signed"
    require_loopback(server_address(), settings.ledger_url, load_channels(settings))
    return f"{settings.profile}: decisions that nobody signed are taken too, on this machine alone"


def _models(settings: Settings) -> str:
    if settings.openai_api_key is None:
        return "offline: rule-based drafter and grader (set OPENAI_API_KEY for a model)"
    return f"draft {settings.draft_model}, grade {settings.grade_model}, at {settings.openai_base_url or 'OpenAI'}"


def _of_ledger(settings: Settings) -> Iterator[Check]:
    try:
        with opened(settings) as session:
            yield _checked("ledger", lambda: _written(session))
            yield _checked("tenants apart", lambda: _walled(session))
            yield _checked("audit", lambda: _verified(session))
            yield _checked("checkpoints", lambda: doctor_threads.held(session))
            yield from _tenants(session)
    except CountersignError as error:
        yield Check("ledger", False, error.message)


def _written(session: Session) -> str:
    session.ledger.check_writable()
    # The password is not for the screen.
    where = session.settings.ledger_url.rpartition("@")[2]
    return f"{where} migrated and writable"


def _verified(session: Session) -> str:
    counts = [f"{tenant} {session.ledger.audit.verify(tenant).count}" for tenant in session.ledger.directory.tenants()]
    return f"records verified: {', '.join(counts)}" if counts else "no records yet"


def _walled(session: Session) -> str:
    if not session.ledger.tenants_walled():
        raise ConfigurationRefused(
            "this database user passes by row level security, so only the queries keep tenants apart; connect as one"
            " that is no superuser and has no BYPASSRLS"
        )
    return "by the database as well as by each query"


def _tenants(session: Session) -> Iterator[Check]:
    tenants = session.ledger.directory.tenants()
    if not tenants:
        todo = f"add persons with: {STARTER} directory apply FILE"
        yield Check("persons", False, f"there is no tenant yet, so nobody can ask or decide; {todo}")
    for tenant in tenants:
        yield _checked(f"persons of {tenant}", partial(tenant_checks.manned, session, tenant))
        yield _checked(f"set-up of {tenant}", partial(tenant_checks.governed, session, tenant))
        yield _checked(f"policies of {tenant}", partial(tenant_checks.in_force, session, tenant))
        yield _checked(f"alarms of {tenant}", partial(tenant_checks.alarms, session, tenant))
        yield _checked(f"notices of {tenant}", partial(tenant_checks.delivered, session, tenant))
        yield _checked(f"freezes of {tenant}", partial(tenant_checks.flowing, session, tenant))


async def _of_server(fix: bool) -> list[Check]:
    from countersign.temporal_client import connect

    checks: list[Check] = []
    with _noting(checks, "Temporal server"):
        client = await asyncio.wait_for(connect(), SERVER_SECONDS)
        checks.append(Check("Temporal server", True, client.service_client.config.target_host))
        with _noting(checks, "namespace"):
            checks.append(Check("namespace", True, await _namespace(client)))
        with _noting(checks, "search attributes"):
            checks.append(Check("search attributes", True, await _search_attributes(client, fix)))
        for queue, role in ((RUN_QUEUE, "agent"), (GATEWAY_QUEUE, "gateway")):
            with _noting(checks, f"{role} worker"):
                checks.append(Check(f"{role} worker", True, await _worker(client, queue)))
    return checks


@contextmanager
def _noting(checks: list[Check], name: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        checks.append(Check(name, False, f"no answer within {SERVER_SECONDS:.0f} s; check TEMPORAL_ADDRESS"))
    except Exception as error:
        sentence = in_plain_words(error)
        if sentence is None:
            raise
        checks.append(Check(name, False, sentence))


async def _namespace(client: Client) -> str:
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest

    from countersign.cli.temporal_run import SOON

    described = await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=client.namespace), timeout=SOON
    )
    days = described.config.workflow_execution_retention_ttl.seconds // 86400
    return f"{client.namespace}, closed runs kept for {days} days"


async def _search_attributes(client: Client, fix: bool) -> str:
    from countersign.cli.temporal_run import require_search_attributes
    from countersign.temporal_client import missing_search_attributes

    if fix:
        absent = await missing_search_attributes(client)
        await _register(client, absent)
    await require_search_attributes(client)
    return f"{len(SEARCH_ATTRIBUTES)} registered"


async def _register(client: Client, absent: list[str]) -> None:
    from temporalio.api.enums.v1 import IndexedValueType
    from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest

    from countersign.cli.temporal_run import SOON
    from countersign.temporal_client import value_type

    types = {name: IndexedValueType.Value(value_type(SEARCH_ATTRIBUTES[name])) for name in absent}
    if types:
        request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=types)
        await client.operator_service.add_search_attributes(request, timeout=SOON)


async def _worker(client: Client, queue: str) -> str:
    from countersign.cli.temporal_run import POLL, last_poll

    age = await last_poll(client, queue)
    seen = "" if age is None else f", last seen {age.total_seconds():.0f} s ago"
    if age is None or age >= POLL:
        raise Unavailable(f"no worker polls the task queue {queue}{seen}; start one with: {WORKER}")
    return f"polls {queue}{seen}"
