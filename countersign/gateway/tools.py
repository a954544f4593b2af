"""The tools that the gateway can execute, by name and version; whatever is not in this list cannot happen (G39).

Apart from the gateway's flow, because all that is particular to a tool stands here, so that a new one is one entry: the
form of its arguments, the call that they mean, what it would really do in an action's words, by which a policy decides,
and what it rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from pydantic import ValidationError

from countersign.domain import publication
from countersign.domain.action import Action
from countersign.domain.administration import (
    SCOPE,
    TOOL_VERSION,
    TOOLS,
    DirectoryChange,
    PolicyChange,
    UnfreezeChange,
    content,
    present,
    target,
)
from countersign.domain.canonical import canonical_bytes, sha256_hex
from countersign.domain.channel import not_configured
from countersign.domain.errors import Drifted, NotAuthorised
from countersign.domain.money import Amount
from countersign.domain.policy import Answer
from countersign.domain.proposal import Proposal
from countersign.domain.publication import PublishReport
from countersign.domain.values import Value, first_problem
from countersign.gateway.authority_channel import AuthorityChannel
from countersign.gateway.channels import Channel
from countersign.gateway.refusals import Ended, drifted
from countersign.ports import Clock, Directory

Form = TypeVar("Form", bound=Value)


class Words(NamedTuple):
    """What a call would do, beside its channel's side effect; a tool states all of it, or a policy could be misled."""

    channel: str
    target: str
    scope: str
    amount: Amount | None


@dataclass(frozen=True)
class Call:
    """An action as the call that it stands for."""

    channel: Channel
    name: str
    key: str
    words: Words


@dataclass(frozen=True)
class Reach:
    """What tools act on and look at."""

    channels: Mapping[str, Mapping[str, Channel]]
    """By tenant and name."""
    directory: Directory
    verify_evidence: Callable[[str, str], None]
    """Takes tenant and hash; raises where the stored data no longer has that hash."""
    clock: Clock

    def channel(self, tenant: str, name: str) -> Channel:
        """The tenant's channel of that name; Ended without one."""
        own = self.channels.get(tenant, {})
        try:
            return own[name]
        except KeyError:
            raise Ended("channel_unknown", not_configured(name, tenant, own)) from None


class Tool(Protocol):
    """One kind of effect. Both methods refuse arguments of another form, with NotAuthorised."""

    @property
    def version(self) -> str:
        """The one version that can be executed."""
        ...

    def call(self, action: Action, reach: Reach) -> Call:
        """What executing the action means."""
        ...

    def check_evidence(self, action: Action, reach: Reach) -> None:
        """Drifted where what the action rests on is no longer what was approved."""
        ...


class _Publish:
    """Sends a document out by a configured channel; it rests on stored data."""

    version = publication.TOOL_VERSION

    def call(self, action: Action, reach: Reach) -> Call:
        args = _read(PublishReport, action)
        words = Words(channel=args.channel, target=args.target, scope=publication.SCOPE, amount=None)
        return Call(reach.channel(action.tenant, args.channel), args.name, action.idempotency_key(), words)

    def check_evidence(self, action: Action, reach: Reach) -> None:
        _read(PublishReport, action)
        with drifted("evidence", "the evidence is no longer what was approved", expected=action.evidence_hash):
            reach.verify_evidence(action.tenant, action.evidence_hash)


class _ChangesDirectory(Value):
    """Arguments of `change_directory`."""

    change: DirectoryChange


class _ChangesPolicy(Value):
    """Arguments of `change_policy`."""

    change: PolicyChange


class _Unfreezes(Value):
    """Arguments of `unfreeze_effects`."""

    change: UnfreezeChange


class _ChangeAuthority:
    """Changes who may do what; it rests on what is in force."""

    version = TOOL_VERSION

    def __init__(self, form: type[_ChangesDirectory | _ChangesPolicy | _Unfreezes]) -> None:
        self._form = form

    def call(self, action: Action, reach: Reach) -> Call:
        change = _read(self._form, action).change
        # The approved bytes are what is applied, so they must state the very change that the words are about.
        _check_word(action, "content_hash", sha256_hex(content(change)))
        words = Words(channel="", target=target(change), scope=SCOPE, amount=None)
        channel = AuthorityChannel(reach.directory, action, reach.clock)
        return Call(channel, words.target, action.idempotency_key(), words)

    def check_evidence(self, action: Action, reach: Reach) -> None:
        change = _read(self._form, action).change
        now_in_force = sha256_hex(present(change, reach.directory.authority(action.tenant)))
        if now_in_force != action.evidence_hash:
            changed = "what the change is about is no longer what it was when it was asked for"
            raise Drifted("evidence", changed, expected=action.evidence_hash, found=now_in_force)


REGISTERED: Mapping[str, Tool] = {
    publication.TOOL: _Publish(),
    TOOLS["directory"]: _ChangeAuthority(_ChangesDirectory),
    TOOLS["policy"]: _ChangeAuthority(_ChangesPolicy),
    TOOLS["unfreeze"]: _ChangeAuthority(_Unfreezes),
}


class Tools:
    """Knows how each registered tool is carried out here."""

    def __init__(
        self,
        channels: Mapping[str, Iterable[Channel]],
        directory: Directory,
        verify_evidence: Callable[[str, str], None],
        clock: Clock,
    ) -> None:
        own = {tenant: {channel.name: channel for channel in its} for tenant, its in channels.items()}
        self._reach = Reach(own, directory, verify_evidence, clock)

    def call(self, action: Action) -> Call:
        """What executing `action` means; Ended where its tenant has no such channel, else as in `_tool`."""
        return _tool(action).call(action, self._reach)

    def check_evidence(self, action: Action) -> None:
        """Drifted where what the action rests on is no longer what was approved; else as in `_tool`."""
        _tool(action).check_evidence(action, self._reach)


def changes_authority(action: Action) -> bool:
    """Whether the action's tool changes who may do what."""
    return action.tool in TOOLS.values()


def check_words(proposal: Proposal, call: Call) -> None:
    """Refuse a proposal whose words are not what the call would do; the grant must have been verified before.

    Raises:
        Drifted: people agreed to what the channel's `side_effect` was said to be, and the configuration says otherwise.
        NotAuthorised: any other word does not fit, or the side effect of what no person looked at.
    """
    action, side_effect = proposal.action, call.channel.side_effect
    for field, value in call.words._asdict().items():
        _check_word(action, field, value)
    # What is granted by rule goes out at once: there, another side effect is a way past people rather than a change.
    is_configured, by_rule = bool(action.channel), proposal.assessment.answer == Answer.BY_RULE
    if by_rule or not is_configured:
        _check_word(action, "side_effect", side_effect)
    if action.side_effect != side_effect:
        changed = f"channel {action.channel} has the side effect {side_effect} and not {action.side_effect[:60]!r}"
        raise Drifted("side_effect", changed, expected=action.side_effect, found=side_effect)


def _tool(action: Action) -> Tool:
    """The action's tool; Drifted where it has another version by now, NotAuthorised where it is not registered."""
    tool = REGISTERED.get(action.tool)
    if tool is None:
        named = f"{action.tool[:60]!r} version {action.tool_version[:20]!r}"
        raise NotAuthorised("tool_not_registered", f"tool {named} is not registered; nothing else can be executed")
    if action.tool_version != tool.version:
        other = f"tool {action.tool} is registered with version {tool.version}, not {action.tool_version[:20]!r}"
        raise Drifted("tool_version", other, expected=action.tool_version, found=tool.version)
    return tool


def _read(form: type[Form], action: Action) -> Form:
    try:
        return form.model_validate_json(canonical_bytes(action.args))
    except ValidationError as error:
        raise NotAuthorised("arguments_refused", f"argument {first_problem(error)}") from None


def _check_word(action: Action, field: str, value: object) -> None:
    if getattr(action, field) != value:
        raise NotAuthorised("words_do_not_fit", f"the action's {field} is not {value!r}, which is what it would do")
