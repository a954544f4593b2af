"""notifications.yaml: what it may say, and who is told where."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from countersign import bootstrap
from countersign.domain.address import Mailbox, Webhook, audience_of, chosen
from countersign.domain.errors import ConfigurationRefused
from countersign.domain.escalation import Severity
from countersign.domain.notice import Notice
from countersign.domain.policy import Answer, Assessment
from countersign.ledger import SqlLedger
from countersign.notifications.message import Message
from countersign.notifications.webhook import body_of
from countersign.settings import ROOT, Settings
from tests.ledger.builders import NOW, ROOM, VIEW, need, operation, proposal
from tests.ledger.founding import found
from tests.notifications.notices import mailbox, notice, webhook

CHAT = """addresses:
  chat:
    kind: webhook
    tenants: [acme]
    roles: [manager]
    url: https://chat.example.com/hook
    secret_env: CHAT_SECRET
"""
MAIL = """addresses:
  mail:
    kind: smtp
    tenants: [acme]
    host: mail.example.com
    port: 587
    tls: starttls
    from: countersign@example.com
    to:
      manager: [duty@example.com]
    user_env: MAIL_USER
    password_env: MAIL_PASSWORD
"""
ROLES = {"rita": {"requester"}, "mia": {"manager"}}


def settings_with(folder: Path, notifications: str | None) -> Settings:
    (folder / "channels.yaml").write_bytes((ROOT / "policies" / "channels.yaml").read_bytes())
    if notifications is not None:
        (folder / "notifications.yaml").write_text(notifications)
    return Settings(policies=folder, home=folder / "home")


def told(about: Notice, **addresses: Webhook | Mailbox) -> tuple[str, ...]:
    audience = audience_of(about, addresses.values(), lambda person: ROLES.get(person, ()))
    return chosen(about, addresses, audience)


def example_addresses(folder: Path) -> Mapping[str, Webhook | Mailbox]:
    """Those that policies/notifications.yaml has for copying."""
    shipped = (ROOT / "policies" / "notifications.yaml").read_text()
    example = "".join(line[2:] + "\n" for line in shipped.splitlines() if line.startswith("#   "))
    return bootstrap.load_notifications(settings_with(folder, f"addresses:\n{example}"))


def test_the_repository_ships_no_address_and_its_example_is_true(tmp_path: Path) -> None:
    assert bootstrap.load_notifications(Settings(policies=ROOT / "policies")) == {}
    assert set(example_addresses(tmp_path)) == {"operations-chat", "mail"}


def test_whoever_is_asked_is_told_at_the_example_addresses_as_documented(tmp_path: Path, ledger: SqlLedger) -> None:
    (documented,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "notifications.md").read_text(), re.DOTALL)
    expected = json.loads(documented)
    about, addresses = expected["countersign"], example_addresses(tmp_path)
    needs = (need(role="manager"),)
    asking = proposal(
        about["code"], operation="weekly-7", assessment=Assessment(answer=Answer.PEOPLE, rules=("all",), needs=needs)
    )
    found(ledger)
    ledger.operations.register(operation("weekly-7"))
    ledger.approvals.open(asking, "run-1", VIEW, NOW, ROOM)
    ((_, opened),) = ledger.outbox.unaddressed("acme", 10)

    assert told(opened, **addresses) == ("mail", "operations-chat")
    message = Message(about["id"], opened, audience_of(opened, addresses.values(), lambda _: ()))
    sent = json.loads(body_of(message))
    assert (sent["text"], sent["countersign"]) == (expected["text"], about)


def test_without_the_file_there_is_no_address(tmp_path: Path) -> None:
    assert bootstrap.load_notifications(settings_with(tmp_path, None)) == {}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{}", "addresses"),
        (CHAT.replace("roles: [manager]", "roles: []"), "roles"),
        (CHAT.replace("tenants: [acme]", "tenants: []"), "tenants"),
        (CHAT.replace("secret_env: CHAT_SECRET", "secret: abc"), "secret"),
        (CHAT.replace("secret_env: CHAT_SECRET", ""), "secret_env"),
        (CHAT.replace("url: https://chat.example.com/hook", ""), "'url' or 'url_env'"),
        (CHAT + "    url_env: CHAT_URL\n", "'url' or 'url_env'"),
        (CHAT.replace("webhook", "pager"), "kind"),
        (CHAT.replace("  chat:", "  Chat:chat:"), "addresses"),
        (MAIL.replace("starttls", "none"), "tls: none is for this machine"),
        (MAIL.replace("    user_env: MAIL_USER\n", ""), "'user_env' and 'password_env'"),
        (MAIL.replace("duty@example.com]", '"duty@example.com\\r\\nBcc: eve@evil.example"]'), "to.manager"),
        (MAIL.replace("from: countersign@example.com", "from: Countersign <c@example.com>"), "from"),
        (MAIL.replace("    to:\n      manager: [duty@example.com]\n", ""), "'to' or 'persons'"),
        (MAIL.replace("587", "0"), "port"),
    ],
)
def test_what_would_not_work_is_refused_with_file_and_field(tmp_path: Path, text: str, field: str) -> None:
    with pytest.raises(ConfigurationRefused) as refused:
        bootstrap.load_notifications(settings_with(tmp_path, text))

    assert "notifications.yaml" in refused.value.message
    assert field in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, ("chat", "mail")),
        ({"severity": Severity.LOW}, ("mail",)),
        ({"roles": ("auditor",)}, ()),
        ({"roles": ("operator",)}, ("chat",)),
        ({"tenant": "globex"}, ()),
        ({"roles": (), "persons": ("rita",)}, ("mail",)),
        ({"roles": (), "persons": ("mia",)}, ("chat", "mail")),
        ({"roles": (), "persons": ("stranger",)}, ()),
        ({"roles": (), "persons": ()}, ()),
    ],
)
def test_who_is_told_where(about: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert told(notice(**about), chat=webhook(min_severity="medium"), mail=mailbox()) == expected


def test_a_mailbox_of_another_tenant_does_not_stand_for_a_person_of_the_same_name() -> None:
    about = notice(roles=(), persons=("rita",))

    assert told(about, chat=webhook(roles=["requester"]), mail=mailbox(tenants=["globex"])) == ("chat",)


def test_mail_reaches_each_recipient_once() -> None:
    box = mailbox(persons={"mia": "duty@example.com", "rita": "rita@example.com"})
    audience = audience_of(notice(persons=("mia",)), [box], lambda person: ROLES.get(person, ()))

    assert box.recipients(audience) == ("duty@example.com", "night@example.com")


@pytest.mark.guarantee("G39")
def test_the_credentials_of_addresses_are_kept_from_the_agent(tmp_path: Path) -> None:
    text = CHAT.replace("url: https://chat.example.com/hook", "url_env: CHAT_URL") + MAIL.removeprefix("addresses:\n")

    assert bootstrap.secret_variables(settings_with(tmp_path, text)) == {
        "CHAT_URL", "CHAT_SECRET", "MAIL_USER", "MAIL_PASSWORD", "PAYMENTS_TOKEN",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({}, "CHAT_SECRET is not set"),
        ({"CHAT_SECRET": "short-one"}, "at least 16 characters"),
        ({"CHAT_SECRET": "long-enough-secret", "URL": "http://chat.example.com/T0/secret-path"}, "https://"),
        ({"CHAT_SECRET": "long-enough-secret", "URL": "https://user:secret-path@chat.example.com/"}, "no user"),
        ({"CHAT_SECRET": "long-enough-secret", "URL": "https:///secret-path"}, "needs a host"),
    ],
)
def test_a_gateway_does_not_start_with_an_unusable_credential_and_repeats_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], problem: str
) -> None:
    monkeypatch.delenv("CHAT_SECRET", raising=False)
    text = CHAT.replace("url: https://chat.example.com/hook", "url_env: URL") if "URL" in environment else CHAT
    for name, value in environment.items():
        monkeypatch.setitem(os.environ, name, value)

    with pytest.raises(ConfigurationRefused, match=problem) as refused:
        bootstrap.relay(settings_with(tmp_path, text), None, bootstrap.wall_clock)  # type: ignore[arg-type]

    assert not [value for value in environment.values() if value in refused.value.message]
    assert "secret-path" not in refused.value.message
