"""The tools that the gateway can execute, by name and version; whatever is not in this list cannot happen (G39).

Apart from the gateway's flow, because this is where an action's words (tool, arguments, target, side effect) are
compared with what would really be done: a policy decides by those words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from countersign.domain.action import Action
from countersign.domain.channel import ChannelName
from countersign.domain.document_names import checked_document_name
from countersign.domain.errors import InputRefused, NotAuthorised
from countersign.domain.values import Value
from countersign.gateway.channels import Channel


def _document_name(name: str) -> str:
    try:
        return checked_document_name(name)
    except InputRefused as refused:
        raise ValueError(refused.message) from None


class PublishReport(Value):
    """Arguments of `publish_report` version 1."""

    channel: ChannelName
    name: Annotated[str, AfterValidator(_document_name)]
    title: Annotated[str, Field(min_length=1, max_length=10_000)]


TOOLS: Mapping[tuple[str, str], type[PublishReport]] = {("publish_report", "1"): PublishReport}


@dataclass(frozen=True)
class Publication:
    """An action as the call that it stands for."""

    channel: Channel
    name: str
    key: str


def publication_of(action: Action, channels: Mapping[str, Channel]) -> Publication:
    """What executing `action` means; NotAuthorised for an unregistered tool or words that do not fit the effect."""
    form = TOOLS.get((action.tool, action.tool_version))
    if form is None:
        tool = f"{action.tool[:60]!r} version {action.tool_version[:20]!r}"
        raise NotAuthorised("tool_not_registered", f"tool {tool} is not registered; nothing else can be executed")
    try:
        args = form.model_validate(action.args)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in detail["loc"])
        raise NotAuthorised("arguments_refused", f"argument {place[:60]!r}: {detail['msg']}") from None
    channel = channels.get(args.channel)
    if channel is None:
        allowed = ", ".join(sorted(channels)) or "none"
        raise NotAuthorised("channel_unknown", f"channel {args.channel!r} is not configured; configured: {allowed}")
    _check_words(action, args, channel)
    return Publication(channel, args.name, action.idempotency_key())


def _check_words(action: Action, args: PublishReport, channel: Channel) -> None:
    expected = {"target": f"{args.channel}:{args.name}", "side_effect": channel.side_effect, "scope": "one_document"}
    for field, value in expected.items():
        if getattr(action, field) != value:
            raise NotAuthorised("words_do_not_fit", f"the action's {field} is not {value!r}, which is what it would do")
