"""The compensation case: what an operation did is taken back by a new action, with its own hash, approvals and key."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from countersign.cases.case import Submission
from countersign.cases.followed import Followed, asked_behind
from countersign.domain.action import Action
from countersign.domain.canonical import sha256_hex
from countersign.domain.channel import ChannelConfig, channel_of
from countersign.domain.compensation import (
    COMPENSATION,
    REVERSE,
    REVERSE_SCOPE,
    TOOL_VERSION,
    CompensationRequest,
    ReverseEffect,
    receipt_hash,
    reversal_document,
    reversal_of,
)
from countersign.domain.errors import Conflict
from countersign.domain.operation import Operation
from countersign.ports import Ledger

_ANOTHER = "a compensation is not edited; reject it, and ask for the other one"


class CompensationCase:
    """Taking back a confirmed effect; fulfils `cases.case.Case`."""

    name = COMPENSATION
    drafted = False
    gathers = False

    def __init__(self, ledger: Ledger, channels: Mapping[str, ChannelConfig], environment: str) -> None:
        self._ledger = ledger
        self._channels = channels
        self._environment = environment

    def submission(
        self,
        operation: Operation,
        draft_version: int,  # noqa: ARG002 - as in Case
        policy_version: str,
        args: Mapping[str, JsonValue] | None = None,
    ) -> Submission:
        """The reversal that was asked for, resting on the receipt that the request names.

        Raises:
            Conflict: nothing is confirmed of what it follows, or something else than what was asked about; or the
                channel that did it cannot take it back.
            ConfigurationRefused: that channel is no longer configured for the tenant.
        """
        request, followed = asked_behind(self._ledger, operation, CompensationRequest)
        if receipt_hash(followed.receipt) != request.receipt_hash:
            raise Conflict(f"operation {request.follows} has another receipt than the one that is to be taken back")
        channel = reversible_by(followed, self._channels)
        action = self._action(operation, followed, channel, policy_version)
        return Submission(
            action=action, document=reversal_document(_reversal(followed)),
            reason=request.reason, summary=f"take back: {followed.proposal.summary}",
            evidence=(f"receipt of {request.follows} {request.receipt_hash}",
                      f"action of {request.follows} {followed.proposal.action_hash}"),
            reversibility="correctable",
            checks=f"the receipt of {request.follows} is in the ledger; the channel can be asked to take it back",
            verdict="none: nothing was drafted", cost="none", live=self._live(followed),
            problem="" if args is None or dict(args) == action.args else _ANOTHER,
        )  # fmt: skip

    def _action(self, operation: Operation, followed: Followed, channel: ChannelConfig, policy_version: str) -> Action:
        args = _reversal(followed)
        return Action(
            tenant=operation.tenant, operation=operation.operation, tool=REVERSE, tool_version=TOOL_VERSION,
            args=args.model_dump(mode="json"), channel=args.channel, target=args.target,
            side_effect=reversal_of(channel.side_effect), scope=REVERSE_SCOPE, environment=self._environment,
            content_hash=sha256_hex(reversal_document(args)), evidence_hash=receipt_hash(followed.receipt),
            policy_version=policy_version, amount=args.amount,
        )  # fmt: skip

    def _live(self, followed: Followed) -> bytes:
        """What went out and would be taken back."""
        return self._ledger.documents.get(followed.operation.tenant, followed.receipt.content_hash)


def reversible_by(followed: Followed, channels: Mapping[str, ChannelConfig]) -> ChannelConfig:
    """The channel that did it, if it can be asked to take it back.

    Raises:
        ConfigurationRefused: it is not configured for the tenant, or the effect took no configured channel.
        Conflict: it cannot.
    """
    action, name = followed.proposal.action, followed.operation.operation
    if followed.proposal.case == COMPENSATION:
        raise Conflict(f"operation {name} took something back itself; ask anew for what is to stand")
    if not action.channel:
        raise Conflict(
            f"operation {name} changed who may do what, which is not taken back; ask for the change that should stand"
        )
    channel = channel_of(action.channel, action.tenant, channels)
    if followed.proposal.reversibility == "irreversible" or not channel.takes_back:
        raise Conflict(
            f"operation {name}: channel {action.channel} cannot take back {action.side_effect}; ask for a correction as"
            " an operation of its own"
        )
    return channel


def _reversal(followed: Followed) -> ReverseEffect:
    receipt = followed.receipt
    return ReverseEffect(
        channel=receipt.channel, follows=followed.operation.operation, key=receipt.key, reference=receipt.reference,
        amount=followed.proposal.action.amount,
    )  # fmt: skip
