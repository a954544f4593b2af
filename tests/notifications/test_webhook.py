"""The webhook against a real server: what it posts, how it is signed, and what each answer means."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from countersign.domain.notice import NoticeKind
from countersign.notifications.sending import Hopeless, NotDelivered, TryAgain
from countersign.notifications.signature import signed_headers
from countersign.notifications.webhook import WebhookSender
from countersign.settings import ROOT
from tests.notifications.notices import HOSTILE, NOW, SECRET, message, notice


def sender_to(url: str, limit: timedelta = timedelta(seconds=5)) -> WebhookSender:
    return WebhookSender("chat", url, SecretStr(SECRET), lambda: NOW, limit)


@pytest.fixture(scope="module")
def is_genuine() -> Any:
    """The function that the documentation gives to receivers."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "notifications.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    return names["is_genuine"]


@pytest.fixture
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW.timestamp() + 10)


def received(server: HTTPServer) -> list[Request]:
    return [request for request, _ in server.log]


@pytest.mark.usefixtures("at_now")
def test_what_arrives_is_signed_slack_compatible_and_names_its_id(httpserver: HTTPServer, is_genuine: Any) -> None:
    httpserver.expect_request("/hook", method="POST").respond_with_data("ok")

    sender_to(httpserver.url_for("/hook")).send(message())

    (request,) = received(httpserver)
    body = json.loads(request.data)
    assert set(body) == {"text", "blocks", "countersign"}
    assert body["text"].endswith("starter.py show weekly-7 --tenant acme --review")
    assert [block["text"]["type"] for block in body["blocks"]] == ["plain_text", "plain_text"]
    assert body["countersign"] == {
        "id": "acme:12:chat", "kind": "approval_opened", "tenant": "acme", "operation": "weekly-7", "code": "",
        "severity": "medium", "deadline": "2026-11-30T10:00:00Z", "at": "2026-11-30T09:00:00Z",
        "command": "starter.py show weekly-7 --tenant acme --review",
    }  # fmt: skip
    assert request.headers["Countersign-Delivery"] == "acme:12:chat"
    assert is_genuine(SECRET, request.headers, request.data)


@pytest.mark.usefixtures("at_now")
def test_any_changed_byte_breaks_the_signature(is_genuine: Any) -> None:
    body = b'{"text": "hello"}'
    headers = signed_headers(SECRET, body, NOW)

    assert is_genuine(SECRET, headers, body)
    for place in range(len(body)):
        assert not is_genuine(SECRET, headers, body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :])
    assert not is_genuine(SECRET + "x", headers, body)
    later = str(int(headers["Countersign-Timestamp"]) + 1)
    assert not is_genuine(SECRET, {**headers, "Countersign-Timestamp": later}, body)
    assert not is_genuine(SECRET, {}, body)
    assert not is_genuine(SECRET, {**headers, "Countersign-Signature": "v1=é"}, body)


def test_an_old_message_is_not_taken_as_new(is_genuine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = signed_headers(SECRET, b"{}", NOW)

    monkeypatch.setattr(time, "time", lambda: NOW.timestamp() + 301)

    assert not is_genuine(SECRET, headers, b"{}")


@pytest.mark.guarantee("G46")
def test_a_hostile_notice_brings_no_markup_link_or_secret(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/hook").respond_with_data("ok")

    sender_to(httpserver.url_for("/hook")).send(message(notice(kind=NoticeKind.RUN_ENDED, code=HOSTILE)))

    (request,) = received(httpserver)
    text = request.data.decode()
    assert not re.search(r"[<>@*`|]|//", json.loads(text)["text"])
    assert not set("<>@") & set(text)
    assert "\\n" not in text
    assert SECRET not in text + str(request.headers)


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (429, TryAgain, "answered with 429"),
        (500, TryAgain, "answered with 500"),
        (503, TryAgain, "answered with 503"),
        (301, Hopeless, "redirected with 301"),
        (307, Hopeless, "redirected with 307"),
        (400, Hopeless, "refused with 400"),
        (404, Hopeless, "refused with 404"),
        (410, Hopeless, "refused with 410"),
    ],
)
def test_what_an_answer_means(httpserver: HTTPServer, status: int, kind: type[NotDelivered], error: str) -> None:
    elsewhere = {"Location": httpserver.url_for("/elsewhere")}
    httpserver.expect_request("/hook").respond_with_data("my-own-secret", status=status, headers=elsewhere)

    with pytest.raises(kind) as failure:
        sender_to(httpserver.url_for("/hook")).send(message())

    assert failure.value.error == error
    assert len(received(httpserver)) == 1


@pytest.mark.parametrize(
    ("retry_after", "expected"),
    [
        ("120", timedelta(minutes=2)),
        (format_datetime(NOW + timedelta(minutes=5), usegmt=True), timedelta(minutes=5)),
        (format_datetime(NOW - timedelta(minutes=5), usegmt=True), timedelta()),
        ("soon", None),
        ("-5", None),
        ("١٢", None),
        ("", None),
    ],
)
def test_what_retry_after_asks_for(httpserver: HTTPServer, retry_after: str, expected: timedelta | None) -> None:
    answer = Response(status=429)
    answer.headers["Retry-After"] = retry_after.encode().decode("latin-1")
    httpserver.expect_request("/hook").respond_with_response(answer)

    with pytest.raises(TryAgain) as failure:
        sender_to(httpserver.url_for("/hook")).send(message())

    assert failure.value.after == expected


@pytest.fixture
def dripping() -> Iterator[str]:
    """A server that answers with a header line every now and then, for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = threading.Event()

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not done.wait(0.05):
                    try:
                        connection.sendall(b"X-More: 1\r\n")
                    except OSError:
                        return

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        done.set()
        thread.join()


def test_a_dripping_answer_is_cut_off_at_the_limit(dripping: str) -> None:
    began = time.monotonic()

    with pytest.raises(TryAgain, match="no answer"):
        sender_to(dripping, timedelta(seconds=0.5)).send(message())

    assert time.monotonic() - began < 3


def test_nobody_listening_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    with pytest.raises(TryAgain, match="ConnectError"):
        sender_to(f"http://127.0.0.1:{port}/secret-path").send(message())
