"""A channel whose credential is not set here: nothing goes out, nothing is taken for gone, and all of it can wait."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from countersign.domain.channel import ChannelConfig, Takes
from countersign.domain.compensation import reversal_of
from countersign.domain.errors import Unavailable
from countersign.domain.execution import Receipt
from countersign.domain.refund import OrderFacts
from countersign.domain.values import Sha256
from countersign.gateway.channels import Channel, Check, NotSent, OutcomeUnknown, always


class InactiveChannel:
    """Stands for an optional channel until its token is set; fulfils `channels.Channel`."""

    keys_kept = None
    lands_within = timedelta(0)
    time_limit = timedelta(seconds=1)

    def __init__(self, name: str, config: ChannelConfig) -> None:
        self.name = name
        self.side_effect = config.side_effect
        self.takes: Takes = config.takes
        self._config = config
        self._why = (
            f"channel {name!r} is not active: {config.token_env} is not set; set it for the gateway and start it again"
        )

    def send(
        self,
        key: str,  # noqa: ARG002 - as in Channel
        name: str,  # noqa: ARG002 - as in Channel
        document: bytes,  # noqa: ARG002 - as in Channel
        content_hash: Sha256,  # noqa: ARG002 - as in Channel
        check: Check = always,  # noqa: ARG002 - as in Channel
    ) -> Receipt:
        """Send nothing; it can be tried again."""
        raise NotSent("channel_inactive", self._why)

    def look_up(self, key: str) -> Receipt | None:  # noqa: ARG002 - as in Channel
        """Know nothing of what lies outside."""
        raise OutcomeUnknown("channel_inactive", self._why)

    def held(self) -> Iterable[Receipt] | None:
        """Know nothing of what lies outside."""
        raise OutcomeUnknown("channel_inactive", self._why)

    def reversing(self) -> Channel | None:
        """See `Channel.reversing`; what the kind of channel cannot do once it is active is not offered before."""
        return InactiveReversal(self.name, self._config) if self._config.takes_back else None


class InactiveReversal(InactiveChannel):
    """The same for the way by which it takes back."""

    def __init__(self, name: str, config: ChannelConfig) -> None:
        super().__init__(name, config)
        self.side_effect = reversal_of(config.side_effect)
        self.takes = "reversals"

    def reversing(self) -> Channel | None:
        """What was taken back stays so."""
        return None


class InactivePayments(InactiveChannel):
    """The same for a payments channel; fulfils `payments_channel.PaymentService`."""

    def facts(self, order: str) -> OrderFacts:
        """Know nothing of any order."""
        raise Unavailable(f"order {order} cannot be read: {self._why}")
