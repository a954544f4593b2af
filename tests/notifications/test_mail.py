"""Mail through a real server: what arrives and to whom, over which connection, and what each answer means."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from countersign.domain.address import Audience
from countersign.domain.notice import NoticeKind
from countersign.notifications.mail import MailSender
from countersign.notifications.message import Message
from countersign.notifications.sending import Hopeless, NotDelivered, TryAgain
from tests.notifications.mail_server import Post, certificate, running_post
from tests.notifications.notices import HOSTILE, PASSWORD, mailbox, message, notice

BOTH = ["duty@example.com", "night@example.com"]


def sender_to(port: int, trust: ssl.SSLContext | None = None, limit: float = 5, **changes: Any) -> MailSender:
    user = "countersign" if changes.get("user_env") else ""
    return MailSender(mailbox(port=port, **changes), user, SecretStr(PASSWORD), trust, timedelta(seconds=limit))


@pytest.fixture
def post() -> Iterator[Post]:
    with running_post() as running:
        yield running


def test_mail_arrives_at_everyone_with_sentence_command_and_id(post: Post) -> None:
    sender_to(post.port).send(message())

    (mail,) = post.mails
    assert post.recipients == [BOTH]
    assert mail["Subject"].replace("\r\n", "") == (
        "[Countersign medium] Operation weekly-7 of tenant acme waits for a decision until 2026-11-30 10:00:00 UTC."
    )
    assert (mail["From"], mail["To"]) == ("countersign@example.com", ", ".join(BOTH))
    assert mail["Countersign-Delivery"] == "acme:12:chat"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "starter.py show weekly-7 --tenant acme --review" in mail.get_payload()
    assert "http" not in mail.get_payload()


def test_a_person_is_told_alone(post: Post) -> None:
    about = Message("acme:1:mail", notice(), Audience(roles=frozenset(), persons=frozenset({"rita"})))

    sender_to(post.port).send(about)

    assert post.recipients == [["rita@example.com"]]


def test_the_same_notice_again_is_the_same_mail_and_another_is_another(post: Post) -> None:
    sender = sender_to(post.port)
    for one in (message(), message(), message(id="acme:13:chat")):
        sender.send(one)

    first, again, other = post.mails
    assert first.as_string() == again.as_string()
    assert first["Message-ID"] != other["Message-ID"]


@pytest.mark.guarantee("G46")
def test_a_hostile_notice_injects_no_header(post: Post) -> None:
    sender_to(post.port).send(message(notice(kind=NoticeKind.RUN_ENDED, code=HOSTILE)))

    (mail,) = post.mails
    assert post.recipients == [BOTH]
    assert mail["Bcc"] is None
    assert [name for name in mail.keys() if not name.startswith("X-")] == [  # noqa: SIM118  # names come twice or more
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Countersign-Delivery", "Content-Type",
        "Content-Transfer-Encoding", "MIME-Version",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "kind", "error"),
    [
        ("451 later", TryAgain, "the server refused (451)"),
        ("554 my-own-secret", Hopeless, "the server refused (554)"),
    ],
)
def test_what_an_answer_means(post: Post, answer: str, kind: type[NotDelivered], error: str) -> None:
    post.answer = lambda: answer

    with pytest.raises(kind) as failure:
        sender_to(post.port).send(message())

    assert failure.value.error == error


@pytest.mark.parametrize(
    ("refused", "kind", "error", "reached"),
    [
        ({BOTH[0]: "550 nobody"}, Hopeless, "1 of 2 recipients refused (550)", [BOTH[1:]]),
        ({BOTH[0]: "450 busy"}, TryAgain, "1 of 2 recipients refused (450)", [BOTH[1:]]),
        (dict.fromkeys(BOTH, "550 nobody"), Hopeless, "2 of 2 recipients refused (550)", []),
        ({BOTH[0]: "450 busy", BOTH[1]: "550 nobody"}, TryAgain, "2 of 2 recipients refused (450, 550)", []),
    ],
)
def test_a_refused_recipient_is_told(
    post: Post, refused: dict[str, str], kind: type[NotDelivered], error: str, reached: list[list[str]]
) -> None:
    post.refused = refused

    with pytest.raises(kind) as failure:
        sender_to(post.port).send(message())

    assert failure.value.error == error
    assert post.recipients == reached


def test_starttls_with_a_login(tmp_path: Path) -> None:
    shown, trusting = certificate(tmp_path)
    with running_post(starttls=shown) as post:
        sender_to(post.port, trusting, tls="starttls", user_env="U", password_env="P").send(message())

    assert post.logins == [(b"countersign", PASSWORD.encode())]
    assert post.recipients == [BOTH]


def test_implicit_tls(tmp_path: Path) -> None:
    shown, trusting = certificate(tmp_path)
    with running_post(implicit=shown) as post:
        sender_to(post.port, trusting, tls="implicit").send(message())

    assert post.recipients == [BOTH]


@pytest.mark.guarantee("G46")
@pytest.mark.parametrize("tls", ["starttls", "implicit"])
@pytest.mark.parametrize("fault", ["unknown authority", "another host"])
def test_neither_mail_nor_password_goes_to_a_server_that_is_not_verified(tmp_path: Path, tls: str, fault: str) -> None:
    shown, trusting = certificate(tmp_path, "127.0.0.1" if fault == "unknown authority" else "127.0.0.2")
    trust = None if fault == "unknown authority" else trusting
    with running_post(**{tls: shown}) as post, pytest.raises(TryAgain, match="SSLCertVerificationError"):
        sender_to(post.port, trust, tls=tls, user_env="U", password_env="P").send(message())

    assert (post.mails, post.logins) == ([], [])


def test_a_server_without_starttls_gets_nothing(post: Post) -> None:
    with pytest.raises(Hopeless, match="no STARTTLS"):
        sender_to(post.port, tls="starttls", user_env="U", password_env="P").send(message())

    assert (post.mails, post.logins) == ([], [])


def test_a_dripping_server_is_cut_off_at_the_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                try:
                    while True:
                        connection.sendall(b"220-wait\r\n")
                        time.sleep(0.05)
                except OSError:
                    return

        thread = threading.Thread(target=answer)
        thread.start()
        began = time.monotonic()
        with pytest.raises(TryAgain, match="no answer"):
            sender_to(listening.getsockname()[1], limit=0.5).send(message())
        assert time.monotonic() - began < 3
        thread.join()


def test_nobody_listening_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    with pytest.raises(TryAgain, match="ConnectionRefusedError"):
        sender_to(port).send(message())
