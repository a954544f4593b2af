"""The authority channel: makes a governed change of persons, keys, policies or freezes in the ledger itself (G13).

It has the form of a channel, so that a change is claimed, made once, looked up and recorded like any other effect; but
it is made for one action, since what it changes belongs to one tenant and no channel's call names that.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import TypeAdapter

from countersign.domain.action import Action
from countersign.domain.administration import SIDE_EFFECT, Change
from countersign.domain.errors import InputRefused
from countersign.domain.execution import Receipt
from countersign.domain.values import Sha256
from countersign.gateway.channels import Check, Refused, always
from countersign.ports import Clock, Directory

_CHANGE: TypeAdapter[Change] = TypeAdapter(Change)


class AuthorityChannel:
    """Applies one action's change to its tenant's directory, policies or freezes; fulfils `channels.Outlet`."""

    name = "authority"
    side_effect = SIDE_EFFECT
    keys_kept = None
    lands_within = timedelta(0)
    time_limit = timedelta(seconds=5)
    """Nominal: the ledger makes a change once per key, so two attempts at once do no harm."""

    def __init__(self, directory: Directory, action: Action, clock: Clock) -> None:
        self._directory = directory
        self._action = action
        self._clock = clock

    def send(self, key: str, name: str, document: bytes, content_hash: Sha256, check: Check = always) -> Receipt:
        """Make the change that the approved bytes state.

        Raises:
            Drifted: what it changes is no longer what was approved; nothing was changed.
            Refused: it would have a problem by now, such as locking everybody out.
        """
        check()
        try:
            self._directory.apply(self._action.tenant, _CHANGE.validate_json(document), self._action, self._clock())
        except InputRefused as refused:
            raise Refused("change_refused", refused.message) from None
        return Receipt(channel=self.name, key=key, reference=name, content_hash=content_hash)

    def look_up(self, key: str) -> Receipt | None:
        """See `Channel.look_up`."""
        if not self._directory.applied(self._action.tenant, key):
            return None
        content_hash, target = self._action.content_hash, self._action.target
        return Receipt(channel=self.name, key=key, reference=target, content_hash=content_hash)
