"""Small true values for tests of notifications."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from countersign.domain.address import Audience, Mailbox, Webhook
from countersign.domain.escalation import Severity
from countersign.domain.notice import Notice, NoticeKind
from countersign.notifications.message import Message

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
TENANT = "acme"
SECRET = "a-secret-of-the-webhook"
PASSWORD = "the-mail-password-1"
HOSTILE = "x\r\nBcc: eve@evil.example\r\n\r\n<!channel> <https://evil.example|decide> @here & *bold* `code`"


def notice(**changes: Any) -> Notice:
    """An approval that managers are asked for."""
    fields: dict[str, Any] = {
        "kind": NoticeKind.APPROVAL_OPENED,
        "tenant": TENANT,
        "operation": "weekly-7",
        "roles": ("manager",),
        "severity": Severity.MEDIUM,
        "deadline": NOW + timedelta(hours=1),
        "at": NOW,
    }
    return Notice(**{**fields, **changes})


def message(told: Notice | None = None, id: str = "acme:12:chat") -> Message:
    """That notice on its way to managers."""
    return Message(id, told or notice(), Audience(roles=frozenset({"manager"}), persons=frozenset()))


def webhook(**changes: Any) -> Webhook:
    """Where managers and operators listen."""
    fields: dict[str, Any] = {
        "kind": "webhook", "tenants": [TENANT], "url": "https://chat.example.com/", "secret_env": "CHAT_SECRET",
        "roles": ["manager", "operator"],
    }  # fmt: skip
    return Webhook.model_validate({**fields, **changes})


def mailbox(**changes: Any) -> Mailbox:
    """Mail for managers, and for rita."""
    fields: dict[str, Any] = {
        "kind": "smtp", "tenants": [TENANT], "host": "127.0.0.1", "port": 25, "tls": "none",
        "from": "countersign@example.com", "to": {"manager": ["duty@example.com", "night@example.com"]},
        "persons": {"rita": "rita@example.com"},
    }  # fmt: skip
    return Mailbox.model_validate({**fields, **changes})
