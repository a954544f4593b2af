"""The composition root: settings in, wired parts out. The only place that knows which part fulfils which port.

Agents and the gateway are imported inside the functions that need them: a process that drafts never loads what acts
outside (G39), and the command line loads neither.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import SecretStr

from countersign.cases.administration.case import AdministrationCase
from countersign.cases.case import Case, DraftedCase
from countersign.cases.compensation.case import CompensationCase
from countersign.cases.message.case import MessageCase
from countersign.cases.refund.case import RefundCase
from countersign.cases.report.case import REPORT, ReportCase
from countersign.domain.address import Mailbox, Notifications, Webhook
from countersign.domain.administration import ADMINISTRATION, SIDE_EFFECT, check_floor
from countersign.domain.channel import ChannelConfig, Channels
from countersign.domain.compensation import COMPENSATION, MESSAGE, reversal_of
from countersign.domain.errors import ConfigurationRefused, Conflict, CountersignError
from countersign.domain.model_call import Prices
from countersign.domain.policy import Policy
from countersign.domain.refund import REFUND
from countersign.domain.rubric import Rubric
from countersign.ports import Clock, Drafter, Effects, Evidence, Grader, Ledger, Retainer
from countersign.settings import Settings
from countersign.signing.keys import new_key_file, read_key_file
from countersign.strict_yaml import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from countersign.agents.checkpoint_keys import ThreadKeys
    from countersign.agents.kind import AgentKind
    from countersign.agents.models import ModelSettings
    from countersign.agents.threads import Threads
    from countersign.gateway.channels import Channel
    from countersign.gateway.reconciling import Outside, Way
    from countersign.notifications.relay import Relay
    from countersign.notifications.sending import Sender

    _Make = Callable[[Settings, Ledger, Clock], Case]


class _Drafting(NamedTuple):
    """A case in which an agent drafts."""

    case: type[DraftedCase[Any, Any]]
    make: _Make
    agent: Callable[[], AgentKind[Any]]
    """Loads its agent: only a process that drafts has the agent framework."""


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
    _check_currency(path, policy, settings)
    return policy


def _check_side_effects(path: Path, policy: Policy, channels: Mapping[str, ChannelConfig]) -> None:
    """A misspelt side effect would be a rule that never applies, unnoticed beside a broader one that grants."""
    known = {config.side_effect for config in channels.values()} | {SIDE_EFFECT}
    # Of every channel, whether or not it takes back: the file for all of them stays good where one of them does not.
    known |= {reversal_of(config.side_effect) for config in channels.values()}
    for rule in policy.rules:
        for name in rule.allowed("side_effect"):
            if name not in known:
                allowed = ", ".join(sorted(known))
                where = f"{path}: rules.{rule.id}.when.side_effect"
                raise ConfigurationRefused(f"{where}: no channel has {name!r}; there are: {allowed}")


def _check_currency(path: Path, policy: Policy, settings: Settings) -> None:
    """A budget that is never used up would limit nothing, unnoticed."""
    if policy.budgets is None:
        return
    prices = load_prices(settings)
    priced = prices.currency
    for name, money in policy.budgets.unpriced(prices).items():
        where = f"{path}: budgets.{name}.money"
        raise ConfigurationRefused(
            f"{where}: it is in {money.currency}, and prices.yaml in {priced}; write it in {priced}"
        )


def load_prices(settings: Settings) -> Prices:
    """What model calls cost."""
    return load(settings.policies / "prices.yaml", Prices)


def load_rubrics(settings: Settings) -> dict[str, Rubric]:
    """The rubric of each case in which an agent drafts, by the case's name."""
    return {name: load(settings.policies / f"{one.case.rubric}.yaml", Rubric) for name, one in _DRAFTED.items()}


def load_channels(settings: Settings) -> Mapping[str, ChannelConfig]:
    """The configured channels by name."""
    return load(settings.policies / "channels.yaml", Channels).channels


def is_inactive(config: ChannelConfig) -> bool:
    """Whether a channel waits for its token in this process: an optional one that is not given any."""
    return bool(config.url) and config.optional and not os.environ.get(config.token_env)


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


def stops(case: str) -> Mapping[str, str]:
    """What it means that a run of the case ended by one of its checks' codes; nothing of a case without drafts."""
    return _DRAFTED[case].case.stops if case in _DRAFTED else {}


def _report_agent() -> AgentKind[Any]:
    from countersign.agents.report import REPORT_AGENT

    return REPORT_AGENT


def _refund_agent() -> AgentKind[Any]:
    from countersign.agents.refund import REFUND_AGENT

    return REFUND_AGENT


_DRAFTED: Mapping[str, _Drafting] = {
    REPORT: _Drafting(
        ReportCase,
        lambda settings, ledger, _: ReportCase(
            ledger, evidence(settings), load_channels(settings), settings.environment
        ),
        _report_agent,
    ),
    REFUND: _Drafting(
        RefundCase,
        lambda settings, ledger, _: RefundCase(ledger, load_channels(settings), settings.environment),
        _refund_agent,
    ),
}
"""The cases in which an agent drafts; a new one is one more entry here."""
_CASES: Mapping[str, _Make] = {
    **{name: drafting.make for name, drafting in _DRAFTED.items()},
    COMPENSATION: lambda settings, ledger, _: CompensationCase(ledger, load_channels(settings), settings.environment),
    MESSAGE: lambda settings, ledger, _: MessageCase(ledger, load_channels(settings), settings.environment),
    ADMINISTRATION: lambda settings, ledger, clock: AdministrationCase(ledger, settings.environment, clock),
}
"""How each kind of work is made; a new one in which nothing is drafted is one more line here."""
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
    from activities.questioning import QuestioningSteps
    from activities.retaining import RetainingSteps
    from activities.runs import Runs
    from activities.validating import ValidatingSteps

    models, rubrics, prices = _models(settings), load_rubrics(settings), load_prices(settings)
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
    questioning, escalating = QuestioningSteps(ledger, runs), EscalatingSteps(ledger, runs)
    drafting = DraftingSteps(
        ledger,
        runs,
        known,
        _drafters(settings, models),
        prices=prices,
        max_pending=settings.max_pending,
        installation=settings.installation,
    )
    return [
        opening.open_run,
        opening.hand_on,
        opening.take_on,
        opening.record_state,
        drafting.draft,
        questioning.mark_question,
        questioning.expire_question,
        ValidatingSteps(ledger, runs, known, settings.installation).validate,
        GradingSteps(ledger, runs, known, _grader(models), rubrics, prices=prices).grade,
        ProposingSteps(ledger, runs, known, rubrics, max_pending=settings.max_pending).propose,
        deciding.decide,
        deciding.signal_times,
        deciding.mark,
        deciding.settle,
        escalating.escalate,
        escalating.unanswered,
        escalating.lapse,
        RetainingSteps(retention(settings, ledger), clock).forget_threads,
    ]


def _models(settings: Settings) -> ModelSettings:
    from countersign.agents.models import ModelSettings

    return ModelSettings(
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else "",
        base_url=settings.openai_base_url or "",
        draft_model=settings.draft_model,
        grade_model=settings.grade_model,
        streaming=settings.model_streaming,
    )


def _drafters(settings: Settings, models: ModelSettings) -> dict[str, Drafter[Any]]:
    """One agent for each case in which an agent drafts, by the case's name."""
    from countersign.agents.checkpoints import checkpoints_at
    from countersign.agents.drafting import DeepAgentDrafter
    from countersign.agents.models import draft_model

    kinds = {name: drafting.agent() for name, drafting in _DRAFTED.items()}
    checkpoints = checkpoints_at(settings.threads_url, thread_keys(settings))
    return {
        name: DeepAgentDrafter(draft_model(models, kind.offline), checkpoints, kind) for name, kind in kinds.items()
    }


def thread_keys(settings: Settings) -> ThreadKeys:
    """The keys of the agents' checkpoints: from the settings, or from a file that is made at the first use."""
    from countersign.agents.checkpoint_keys import keys_in, keys_in_file

    given = settings.thread_keys
    return keys_in(given.get_secret_value()) if given else keys_in_file(settings.thread_keys_file)


def retention(settings: Settings, ledger: Ledger) -> Retainer:
    """What deletes the agents' stored threads of operations that have ended."""
    from countersign.agents.retention import Retention

    return Retention(ledger, threads(settings))


def threads(settings: Settings) -> Threads:
    """The agents' stored threads."""
    from countersign.agents.threads import threads_at

    return threads_at(settings.threads_url)


def _grader(models: ModelSettings) -> Grader:
    from countersign.agents.grading import RubricGrader
    from countersign.agents.kind import all_rules
    from countersign.agents.models import grade_model

    return RubricGrader(grade_model(models, all_rules(drafting.agent() for drafting in _DRAFTED.values())))


def gateway_activities(settings: Settings, ledger: Ledger, clock: Clock = wall_clock) -> list[Callable[..., Any]]:
    """The effect's steps, with the credentials."""
    from activities.executing import ExecutingSteps
    from activities.runs import Runs

    executing = ExecutingSteps(gateway(settings, ledger, clock), Runs(ledger, clock))
    return [executing.execute, executing.gather, executing.reconcile]


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


def outside(settings: Settings, ledger: Ledger, tenant: str, clock: Clock = wall_clock) -> Outside:
    """What the tenant has outside, read with the gateway's credentials; a channel that cannot be used says why."""
    from countersign.gateway.reconciling import Outside
    from countersign.gateway.tools import Tools

    own = {name: config for name, config in load_channels(settings).items() if tenant in config.tenants}
    ways = {name: _way(settings, ledger, tenant, name, config) for name, config in own.items()}
    active = [way.channel for way in ways.values() if way.channel is not None]
    return Outside(ways, Tools({tenant: active}, ledger, evidence(settings).verify, clock))


def _way(settings: Settings, ledger: Ledger, tenant: str, name: str, config: ChannelConfig) -> Way:
    from countersign.gateway.reconciling import Way, keys_by_right

    keys = partial(keys_by_right, ledger, config.tenants)
    try:
        return Way(_channel(settings, tenant, name, config), "", keys)
    except CountersignError as refused:
        return Way(None, refused.message, keys)


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
    from countersign.gateway.inactive_channel import InactiveChannel, InactivePayments
    from countersign.gateway.payments_channel import PaymentsChannel

    if is_inactive(config):
        return InactivePayments(name, config) if config.takes == "refunds" else InactiveChannel(name, config)
    # The type checker sees that there is a line for each kind.
    match config.kind:
        case "file":
            return FileChannel(name, settings.reports_folder / name / tenant, config.side_effect)
        case "http":
            return HttpChannel(name, config.url, _token(name, config), config.side_effect)
        case "payments":
            return PaymentsChannel(name, config.url, config.orders_url, _token(name, config), config.side_effect)


def _token(name: str, config: ChannelConfig) -> SecretStr:
    token = os.environ.get(config.token_env, "")
    if not token:
        raise ConfigurationRefused(
            f"channel {name}: {config.token_env or 'token_env'} is not set; set it for the gateway"
        )
    return SecretStr(token)
