"""Operations that follow others, at the command line: what is signed beside a request, and who follows whom.

Apart from the commands, since `start` and `compensate` make such operations, and whoever looks at one is to find the
other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from countersign.cli.session import Session
from countersign.cli.starting.registering import Intent, require_asker
from countersign.domain.canonical import canonical_bytes
from countersign.domain.channel import channel_taking
from countersign.domain.compensation import MESSAGE, MessageRequest
from countersign.domain.errors import InputRefused
from countersign.domain.identity import checked_name
from countersign.domain.operation import Operation


def with_message(session: Session, intent: Intent, channel: str) -> Intent:
    """The same request with a second one behind it: the customer is told by `channel` once its effect is confirmed.

    Raises:
        NotFound, NotAuthorised: as `require_asker`, for messages.
        ConfigurationRefused: the tenant has no such channel.
        InputRefused: the channel takes no documents, or the operation id is too long for the message to be named after
            it.
    """
    from countersign.bootstrap import load_channels
    from countersign.cases.message.case import message_name

    require_asker(session, intent.tenant, MESSAGE, intent.requester)
    channel_taking("documents", channel, intent.tenant, load_channels(session.settings))
    name = named_after(intent.operation, MESSAGE)
    message_name(name)  # an id that no message can be sent under is refused before anyone is asked
    request = MessageRequest(follows=intent.operation, channel=channel)
    document = canonical_bytes(request.model_dump(mode="json"))
    behind = Intent(intent.tenant, intent.requester, MESSAGE, name, document, follows=intent.operation)
    return intent._replace(followers=(*intent.followers, behind))


def named_after(operation: str, what: str) -> str:
    """The id of an operation that follows another one: `refund-7.message`; InputRefused where that is too long."""
    try:
        return checked_name(f"{operation}.{what}")
    except InputRefused:
        raise InputRefused(
            f"operation id {operation} is too long for its {what} to be called {operation}.{what}; choose a shorter one"
        ) from None


def links(session: Session, operation: Operation) -> dict[str, list[dict[str, str]]]:
    """What it follows and what follows it, each with case and state, as in JSON."""
    operations, tenant = session.ledger.operations, operation.tenant
    before = [operations.get(tenant, operation.follows)] if operation.follows else []
    after = operations.followers(tenant, operation.operation)
    return {"follows": [*map(_link, before)], "followed_by": [*map(_link, after)]}


def link_lines(linked: Mapping[str, Sequence[Mapping[str, str]]]) -> list[tuple[str, str]]:
    """The same as lines, for people; with empty values where it stands alone."""
    return [
        (name.replace("_", " "), ", ".join(f"{one['operation']} ({one['case']}, {one['state']})" for one in several))
        for name, several in linked.items()
    ]


def _link(operation: Operation) -> dict[str, str]:
    return {"operation": operation.operation, "case": operation.case, "state": operation.state.value}
