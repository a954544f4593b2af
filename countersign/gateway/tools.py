"""The tools that the gateway can execute, by name and version; whatever is not in this list cannot happen (G39).

Apart from the gateway's flow, because all that is particular to a tool stands in a file of its family, and a new one is
one entry here: the form of its arguments, the call that they mean, what it would really do in an action's words, by
which a policy decides, and what it rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from countersign.domain import compensation, publication, refund
from countersign.domain.action import Action
from countersign.domain.administration import TOOLS
from countersign.domain.errors import Drifted, NotAuthorised
from countersign.domain.policy import Answer
from countersign.domain.proposal import Proposal
from countersign.gateway.channels import Channel, Outlet
from countersign.gateway.following import Reverse, Tell
from countersign.gateway.governing import ChangeAuthority, ChangesDirectory, ChangesPolicy, Unfreezes
from countersign.gateway.publishing import Publish
from countersign.gateway.refunding import READS_ORDER, Refund
from countersign.gateway.tool import Call, Reach, Reader, Tool, check_word
from countersign.ports import Clock, Ledger

REGISTERED: Mapping[str, Tool] = {
    publication.TOOL: Publish(),
    refund.TOOL: Refund(),
    compensation.REVERSE: Reverse(),
    compensation.SEND_MESSAGE: Tell(),
    TOOLS["directory"]: ChangeAuthority(ChangesDirectory),
    TOOLS["policy"]: ChangeAuthority(ChangesPolicy),
    TOOLS["unfreeze"]: ChangeAuthority(Unfreezes),
}
READERS: Mapping[str, Reader[Any]] = {refund.REFUND: READS_ORDER}
"""How the facts are read that operations rest on, by case; for every case that says `gathers`."""


class Tools:
    """Knows how each registered tool is carried out here."""

    def __init__(
        self,
        channels: Mapping[str, Iterable[Channel]],
        ledger: Ledger,
        verify_evidence: Callable[[str, str], None],
        clock: Clock,
    ) -> None:
        own = {tenant: {channel.name: channel for channel in its} for tenant, its in channels.items()}
        self.reach = Reach(own, ledger, verify_evidence, clock)

    def call(self, action: Action) -> Call:
        """What executing `action` means; Ended where its tenant has no such channel, else as in `_tool`."""
        return _tool(action).call(action, self.reach)

    def channel(self, action: Action) -> Outlet:
        """Where its effect lies, if there is one, also where its tool has another version by now: to look does no harm.

        Raises:
            Ended: its tenant has nothing to look by.
            NotAuthorised: its tool is not registered, or its arguments are not in the tool's form.
        """
        return _registered(action).channel(action, self.reach)

    def check_evidence(self, proposal: Proposal) -> None:
        """What it rests on, once the proposal's origins are verified; as in `Tool.check_evidence` and `_tool`."""
        _tool(proposal.action).check_evidence(proposal, self.reach)


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
        check_word(action, field, value)
    # What is granted by rule goes out at once: there, another side effect is a way past people rather than a change.
    is_configured, by_rule = bool(action.channel), proposal.assessment.answer == Answer.BY_RULE
    if by_rule or not is_configured:
        check_word(action, "side_effect", side_effect)
    if action.side_effect != side_effect:
        changed = f"channel {action.channel} has the side effect {side_effect} and not {action.side_effect[:60]!r}"
        raise Drifted("side_effect", changed, expected=action.side_effect, found=side_effect)


def _registered(action: Action) -> Tool:
    """The tool of the action's name; NotAuthorised where it is not registered."""
    tool = REGISTERED.get(action.tool)
    if tool is None:
        named = f"{action.tool[:60]!r} version {action.tool_version[:20]!r}"
        raise NotAuthorised("tool_not_registered", f"tool {named} is not registered; nothing else can be executed")
    return tool


def _tool(action: Action) -> Tool:
    """The action's tool; Drifted where it has another version by now, else as in `_registered`."""
    tool = _registered(action)
    if action.tool_version != tool.version:
        other = f"tool {action.tool} is registered with version {tool.version}, not {action.tool_version[:20]!r}"
        raise Drifted("tool_version", other, expected=action.tool_version, found=tool.version)
    return tool
