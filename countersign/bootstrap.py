"""The composition root: settings in, wired parts out. The only place that knows which part fulfils which port.

Agents and the gateway are imported inside the functions that need them: a process that drafts never loads what acts
outside (G39), and the command line loads neither.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from countersign.cases.administration.case import AdministrationCase
from countersign.cases.case import Case
from countersign.cases.report.case import REPORT, RUBRIC, ReportCase
from countersign.domain.address import Mailbox, Notifications, Webhook
from countersign.domain.administration import ADMINISTRATION, SIDE_EFFECT, check_floor
from countersign.domain.channel import ChannelConfig, Channels
from countersign.domain.errors import ConfigurationRefused, Conflict
from countersign.domain.policy import Policy
from countersign.domain.rubric import Rubric
from countersign.ports import Clock, Effects, Evidence, Ledger
from countersign.settings import Settings
from countersign.signing.keys import new_key_file, read_key_file
from countersign.strict_yaml import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from countersign.gateway.channels import Channel
    from countersign.notifications.relay import Relay
    from countersign.notifications.sending import Sender


def installation_key(settings: Settings) -> Ed25519PrivateKey:
    """The key that signs audit checkpoints; made at the first use."""
    path = settings.keys_folder / "installation.pem"
    try:
        # Another process may make it between a look and this.
        return read_key_file(path) if path.exists() else new_key_file(path)
    except Conflict:
        return read_key_file(path)


def open_ledger(settings: Settings) -> Ledger:
    """The ledger, migrated to this program's version; Unavailable or ConfigurationRefused in plain words."""
    from countersign.ledger import open_ledger as open_at

    settings.home.mkdir(parents=True, exist_ok=True)
    return open_at(
        settings.ledger_url,
        installation=settings.installation,
        checkpoints=settings.checkpoints_folder,
        signing_key=installation_key(settings),
    )


def evidence(settings: Settings) -> Evidence:
    """The stored datasets."""
    from countersign.evidence.shelves import Shelves

    return Shelves(settings.evidence_folder)


def load_policies(settings: Settings) -> dict[str, Policy]:
    """The policy files of all cases by name: what `directory apply` puts in force in a first set-up."""
    return {name: load_policy(settings.policies / f"{name}.yaml", settings) for name in CASE_NAMES}


def load_policy(path: Path, settings: Settings) -> Policy:
    """One policy file; ConfigurationRefused names file and field of whatever would make it weaker than it reads."""
    policy = load(path, Policy)
    if policy.policy not in CASE_NAMES:
        allowed = ", ".join(CASE_NAMES)
        raise ConfigurationRefused(f"{path}: policy: no case is called {policy.policy!r}; the cases are: {allowed}")
    try:
        check_floor(policy)
    except ConfigurationRefused as refused:
        raise ConfigurationRefused(f"{path}: {refused.message}") from None
    _check_side_effects(path, policy, load_channels(settings))
    return policy


def _check_side_effects(path: Path, policy: Policy, channels: Mapping[str, ChannelConfig]) -> None:
    """A misspelt side effect would be a rule that never applies, unnoticed beside a broader one that grants."""
    known = {config.side_effect for config in channels.values()} | {SIDE_EFFECT}
    for rule in policy.rules:
        for name in rule.allowed("side_effect"):
            if name not in known:
                allowed = ", ".join(sorted(known))
                where = f"{path}: rules.{rule.id}.when.side_effect"
                raise ConfigurationRefused(f"{where}: no channel has {name!r}; there are: {allowed}")


def load_rubric(settings: Settings) -> Rubric:
    """The report case's rubric."""
    return load(settings.policies / f"{RUBRIC}.yaml", Rubric)


def load_channels(settings: Settings) -> Mapping[str, ChannelConfig]:
    """The configured channels by name."""
    return load(settings.policies / "channels.yaml", Channels).channels


def load_notifications(settings: Settings) -> Mapping[str, Webhook | Mailbox]:
    """The addresses of notices by name; none where there is no such file."""
    path = settings.policies / "notifications.yaml"
    return load(path, Notifications).addresses if path.exists() else {}


def secret_variables(settings: Settings) -> frozenset[str]:
    """Environment variables with credentials of outside systems, which no drafting process may be given (G39)."""
    channels = {config.token_env for config in load_channels(settings).values() if config.token_env}
    return frozenset(channels.union(*(address.variables for address in load_notifications(settings).values())))


def wall_clock() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


_CASES: Mapping[str, Callable[[Settings, Ledger, Clock], Case]] = {
    REPORT: lambda settings, ledger, _: ReportCase(ledger, load_channels(settings), settings.environment),
    ADMINISTRATION: lambda settings, ledger, clock: AdministrationCase(ledger, settings.environment, clock),
}
"""How each kind of work is made; a new case is one more line here."""
CASE_NAMES = tuple(_CASES)
"""The names of all `cases`, each with a policy file of its name."""


def cases(settings: Settings, ledger: Ledger, clock: Clock = wall_clock) -> dict[str, Case]:
    """The kinds of work that there are, by name."""
    return {name: made(settings, ledger, clock) for name, made in _CASES.items()}


def agent_activities(settings: Settings, ledger: Ledger, clock: Clock = wall_clock) -> list[Callable[..., Any]]:
    """Every step but the effect."""
    from activities.deciding import DecidingSteps
    from activities.drafting import DraftingSteps
    from activities.escalating import EscalatingSteps
    from activities.grading import GradingSteps
    from activities.opening import OpeningSteps
    from activities.proposing import ProposingSteps
    from activities.runs import Runs
    from activities.validating import ValidatingSteps
    from countersign.agents.checkpoints import checkpoints_at
    from countersign.agents.drafting import DeepAgentDrafter
    from countersign.agents.grading import RubricGrader
    from countersign.agents.models import ModelSettings, draft_model, grade_model

    data, rubric = evidence(settings), load_rubric(settings)
    models = ModelSettings(
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else "",
        base_url=settings.openai_base_url or "",
        draft_model=settings.draft_model,
        grade_model=settings.grade_model,
    )
    drafter = DeepAgentDrafter(draft_model(models), checkpoints_at(settings.threads_url))
    grader = RubricGrader(grade_model(models))
    runs, known = Runs(ledger, clock), cases(settings, ledger, clock)
    opening = OpeningSteps(
        ledger,
        runs,
        settings.installation,
        known,
        max_rounds=settings.max_rounds,
        max_grader_tries=settings.max_grader_tries,
    )
    deciding = DecidingSteps(ledger, runs, settings.installation, known, unsigned=settings.takes_unsigned)
    escalating = EscalatingSteps(ledger, runs)
    return [
        opening.open_run,
        opening.hand_on,
        opening.take_on,
        opening.record_state,
        DraftingSteps(ledger, runs, data, drafter).draft,
        ValidatingSteps(ledger, runs, data).validate,
        GradingSteps(ledger, runs, grader, rubric).grade,
        ProposingSteps(ledger, runs, known, rubric).propose,
        deciding.decide,
        deciding.signal_times,
        deciding.mark,
        deciding.settle,
        escalating.escalate,
        escalating.unanswered,
        escalating.lapse,
    ]


def gateway_activities(settings: Settings, ledger: Ledger, clock: Clock = wall_clock) -> list[Callable[..., Any]]:
    """The effect's steps, with the credentials."""
    from activities.executing import ExecutingSteps

    executing = ExecutingSteps(gateway(settings, ledger, clock))
    return [executing.execute, executing.reconcile]


def gateway(settings: Settings, ledger: Ledger, clock: Clock = wall_clock) -> Effects:
    """The gateway over the configured channels."""
    from countersign.gateway.gateway import Gateway

    return Gateway(
        ledger=ledger,
        channels=_channels(settings),
        verify_evidence=evidence(settings).verify,
        installation=settings.installation,
        environment=settings.environment,
        clock=clock,
        unsigned=settings.takes_unsigned,
    )


def relay(settings: Settings, ledger: Ledger, clock: Callable[[], datetime]) -> Relay:
    """The relay of notices over the configured addresses, with their credentials; for the gateway's process."""
    from countersign.notifications.relay import Relay

    addresses = load_notifications(settings)
    senders = {name: _sender(name, address, clock) for name, address in addresses.items()}
    return Relay(ledger, addresses, senders, clock)


def _sender(name: str, address: Webhook | Mailbox, clock: Callable[[], datetime]) -> Sender:
    from countersign.notifications.mail import MailSender
    from countersign.notifications.webhook import WebhookSender

    given = {variable: os.environ.get(variable, "") for variable in address.variables}
    for variable, value in given.items():
        if not value:
            raise ConfigurationRefused(f"address {name}: {variable} is not set; set it for the gateway")
    if isinstance(address, Mailbox):
        return MailSender(address, given.get(address.user_env, ""), SecretStr(given.get(address.password_env, "")))
    url = address.url or given[address.url_env]
    return WebhookSender(name, url, SecretStr(given[address.secret_env]), clock)


def _channels(settings: Settings) -> dict[str, list[Channel]]:
    """Each tenant's own ways out (G09)."""
    own: defaultdict[str, list[Channel]] = defaultdict(list)
    for name, config in load_channels(settings).items():
        for tenant in config.tenants:
            own[tenant].append(_channel(settings, tenant, name, config))
    return own


def _channel(settings: Settings, tenant: str, name: str, config: ChannelConfig) -> Channel:
    from countersign.gateway.file_channel import FileChannel
    from countersign.gateway.http_channel import HttpChannel

    if config.kind == "file":
        return FileChannel(name, settings.reports_folder / name / tenant, config.side_effect)
    token = os.environ.get(config.token_env, "")
    if not token:
        raise ConfigurationRefused(
            f"channel {name}: {config.token_env or 'token_env'} is not set; set it for the gateway"
        )
    return HttpChannel(name, config.url, SecretStr(token), config.side_effect)
