"""What a tool of the gateway is: the form of its arguments, the call that they mean, and what that call rests on.

Apart from the tools themselves, so that a new kind of effect is one more file beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from pydantic import ValidationError

from countersign.domain.action import Action
from countersign.domain.canonical import canonical_bytes
from countersign.domain.channel import Takes, not_configured
from countersign.domain.errors import NotAuthorised
from countersign.domain.money import Amount
from countersign.domain.operation import Operation
from countersign.domain.proposal import Proposal
from countersign.domain.values import Value, first_problem
from countersign.gateway.channels import Channel, Outlet
from countersign.gateway.refusals import Ended, forged
from countersign.ports import Clock, Ledger

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

    channel: Outlet
    name: str
    """What the document is called outside; empty where it has no name."""
    key: str
    words: Words


@dataclass(frozen=True)
class Reach:
    """What tools act on and look at."""

    channels: Mapping[str, Mapping[str, Channel]]
    """By tenant and name."""
    ledger: Ledger
    verify_evidence: Callable[[str, str], None]
    """Takes tenant and hash; raises where the stored data no longer has that hash."""
    clock: Clock

    def channel(self, tenant: str, name: str, takes: Takes) -> Channel:
        """The tenant's channel of that name, for what it takes; `reversals` are taken by the one that takes back.

        Raises:
            Ended: the tenant has no such channel, or it takes something else, or takes nothing back.
        """
        own = self.channels.get(tenant, {})
        try:
            channel = own[name]
        except KeyError:
            raise Ended("channel_unknown", not_configured(name, tenant, own)) from None
        if takes == "reversals":
            return _reversing(channel)
        if channel.takes != takes:
            raise Ended("channel_unsuitable", f"channel {name!r} takes {channel.takes}, not {takes}; nothing was sent")
        return channel


class Tool(Protocol):
    """One kind of effect. All methods refuse arguments of another form, with NotAuthorised."""

    @property
    def version(self) -> str:
        """The one version that can be executed."""
        ...

    def channel(self, action: Action, reach: Reach) -> Outlet:
        """By what the effect goes out, and where it is looked up; Ended where the tenant has nothing for it."""
        ...

    def call(self, action: Action, reach: Reach) -> Call:
        """What executing the action means."""
        ...

    def check_evidence(self, proposal: Proposal, reach: Reach) -> None:
        """Drifted where what the action rests on is no longer what was approved, and NotAuthorised where it is not what
        was signed for; the proposal's origins must have been verified before."""
        ...


class Reader(NamedTuple, Generic[Form]):
    """How the facts are read that operations of one case rest on."""

    form: type[Form]
    """The form of the case's requests, which say what is read."""
    read: Callable[[str, Form, Reach], Value]
    """From tenant and request to the facts as they are now; NotFound or Unavailable where they cannot be read, Ended
    where the tenant has no channel to read them by."""


def read(form: type[Form], action: Action) -> Form:
    """The action's arguments in a tool's form; NotAuthorised in any other."""
    try:
        return form.model_validate_json(canonical_bytes(action.args))
    except ValidationError as error:
        raise NotAuthorised("arguments_refused", f"argument {first_problem(error)}") from None


def asked(form: type[Form], action: Action, reach: Reach) -> Form:
    """What a requester signed for, in the form of its case's requests; NotAuthorised in any other.

    Whose signature it has must have been verified before.
    """
    return read_request(form, reach.ledger.operations.get(action.tenant, action.operation), reach.ledger)


def read_request(form: type[Form], operation: Operation, ledger: Ledger) -> Form:
    """The request of an operation; see `asked`."""
    with forged("request", "what was signed for is not kept"):
        kept = ledger.documents.get(operation.tenant, operation.request_hash)
    try:
        return form.model_validate_json(kept)
    except ValidationError:
        raise NotAuthorised("request", f"what was signed for is no request of case {operation.case}") from None


def check_asked(field: str, said: object, signed_for: object) -> None:
    """NotAuthorised where an action is about something else than its requester has signed for."""
    if said != signed_for:
        raise NotAuthorised("request", f"the action's {field} is not the one that its requester has signed for")


def check_word(action: Action, field: str, value: object) -> None:
    """NotAuthorised where a field of the action is not what executing it would mean."""
    if getattr(action, field) != value:
        raise NotAuthorised("words_do_not_fit", f"the action's {field} is not {value!r}, which is what it would do")


def _reversing(channel: Channel) -> Channel:
    """The way by which the channel takes back; Ended where it has none."""
    reversing = channel.reversing()
    if reversing is None:
        raise Ended("not_reversible", f"channel {channel.name!r} cannot take back what it did; nothing was sent")
    return reversing
