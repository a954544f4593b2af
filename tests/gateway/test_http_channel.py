"""The HTTP channel against a real service: what each answer, and each missing answer, is taken to mean."""

from __future__ import annotations

import base64
import hashlib
import logging
import socket
import time

import pytest
from pydantic import SecretStr

from countersign.domain.canonical import sha256_hex
from countersign.domain.errors import ConfigurationRefused
from countersign.domain.execution import Receipt
from countersign.gateway.channels import ChannelFailure, NotSent, OutcomeUnknown
from countersign.gateway.http_channel import HttpChannel
from tests.gateway.conftest import TOKEN
from tests.support.publisher import Publisher

KEY = "ab" * 32
DOCUMENT = "# Café\n".encode()
HASH = sha256_hex(DOCUMENT)


def channel_to(url: str, token: str = TOKEN) -> HttpChannel:
    return HttpChannel("press", url, SecretStr(token), "external_publication")


def send(channel: HttpChannel, document: bytes = DOCUMENT, key: str = KEY) -> Receipt:
    return channel.send(key, "report.md", document, sha256_hex(document))


def test_a_document_arrives_whole_with_key_digest_and_credential(press: HttpChannel, publisher: Publisher) -> None:
    receipt = send(press)
    assert publisher.effects() == [(KEY, DOCUMENT)]
    (headers,) = publisher.headers()
    assert headers["Idempotency-Key"] == KEY
    assert headers["Content-Type"] == "text/markdown; charset=utf-8"
    digest = base64.b64encode(hashlib.sha256(DOCUMENT).digest()).decode()
    assert headers["Content-Digest"] == f"sha-256=:{digest}:"
    assert headers["Content-Disposition"] == 'attachment; filename="report.md"'
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert (receipt.channel, receipt.key, receipt.content_hash) == ("press", KEY, HASH)
    assert press.look_up(KEY) == receipt


def test_the_same_key_again_is_answered_with_the_same_receipt(press: HttpChannel, publisher: Publisher) -> None:
    assert send(press) == send(press)
    assert len(publisher.effects()) == 1


@pytest.mark.parametrize(
    ("fault", "kind", "reason", "effects"),
    [
        ("rate_limited", NotSent, "rate_limited", 0),
        ("unavailable", OutcomeUnknown, "outside_error", 0),
        ("error_before", OutcomeUnknown, "outside_error", 0),
        ("error_after", OutcomeUnknown, "outside_error", 1),
        ("bad_gateway_after", OutcomeUnknown, "outside_error", 1),
        ("request_timeout", OutcomeUnknown, "outside_error", 0),
        ("accepted", OutcomeUnknown, "still_running", 0),
        ("redirect", OutcomeUnknown, "redirected", 0),
        ("close_before", OutcomeUnknown, "no_answer", 0),
        ("close_after", OutcomeUnknown, "no_answer", 1),
        ("garbage", OutcomeUnknown, "answer_unreadable", 1),
        ("huge", OutcomeUnknown, "answer_unreadable", 1),
    ],
)
@pytest.mark.guarantee("G36")
def test_each_way_to_fail_says_whether_something_may_have_happened(
    press: HttpChannel, publisher: Publisher, fault: str, kind: type[ChannelFailure], reason: str, effects: int
) -> None:
    publisher.fail_next(fault)
    with pytest.raises(kind) as failure:
        send(press)
    assert failure.value.reason == reason
    assert len(publisher.effects()) == effects
    assert publisher.calls("POST") == [KEY]
    assert TOKEN not in failure.value.line()
    assert "\n" not in failure.value.line()


@pytest.mark.parametrize("fault", ["answer_late", "drip"])
@pytest.mark.guarantee("G36")
def test_an_answer_that_does_not_come_to_its_end_in_time_is_given_up(
    impatient_press: HttpChannel, publisher: Publisher, fault: str
) -> None:
    publisher.fail_next(fault)
    with pytest.raises(OutcomeUnknown) as failure:
        send(impatient_press)
    assert failure.value.reason == "no_answer"
    assert publisher.calls("POST") == [KEY]


@pytest.mark.guarantee("G36")
def test_a_key_that_is_being_worked_on_is_unknown_to_a_second_caller_and_to_a_look_up(
    impatient_press: HttpChannel, press: HttpChannel, publisher: Publisher
) -> None:
    publisher.fail_next("hang")
    with pytest.raises(OutcomeUnknown, match="no whole answer"):
        send(impatient_press)
    # What was given up can arrive later still, on a machine that is busy.
    while publisher.in_work() != [KEY]:
        time.sleep(0.01)
    with pytest.raises(OutcomeUnknown) as busy:
        send(press)
    assert busy.value.reason == "still_running"
    with pytest.raises(OutcomeUnknown):
        press.look_up(KEY)


def test_another_document_under_the_same_key_is_a_conflict_for_a_person(
    press: HttpChannel, publisher: Publisher
) -> None:
    send(press)
    with pytest.raises(OutcomeUnknown) as conflict:
        send(press, b"another")
    assert conflict.value.reason == "outside_conflict"
    assert publisher.calls("GET") == [KEY]
    assert publisher.effects() == [(KEY, DOCUMENT)]


def test_a_service_that_lists_no_keys_says_so_and_takes_nothing_back(press: HttpChannel) -> None:
    assert press.held() is None
    assert press.reversing() is None


def test_a_wrong_credential_is_not_sent_and_not_shown(address: str, publisher: Publisher) -> None:
    channel = channel_to(address, "wrong-token")
    with pytest.raises(NotSent) as failure:
        send(channel)
    assert failure.value.reason == "not_accepted"
    assert "wrong-token" not in repr(failure.value) + repr(channel) + str(vars(channel))
    assert publisher.effects() == []


@pytest.mark.guarantee("G34")
def test_nobody_listening_is_surely_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(NotSent) as failure:
        send(channel_to(f"http://127.0.0.1:{port}/"))
    assert failure.value.reason == "unreachable"


@pytest.mark.guarantee("G34")
def test_a_host_without_a_name_is_surely_not_sent() -> None:
    with pytest.raises(NotSent) as failure:
        send(channel_to("https://no-such-host.invalid/x"))
    assert failure.value.reason == "unreachable"


@pytest.mark.guarantee("G34")
def test_a_server_that_speaks_no_tls_gets_nothing(address: str, publisher: Publisher) -> None:
    with pytest.raises(NotSent):
        send(channel_to(address.replace("http:", "https:")))
    assert publisher.calls("POST") == []


def test_what_was_never_sent_is_surely_not_there(press: HttpChannel) -> None:
    assert press.look_up(KEY) is None


@pytest.mark.parametrize(
    "fault", ["lookup_unavailable", "lookup_close", "lookup_garbage", "lookup_redirect", "lookup_forbidden"]
)
@pytest.mark.guarantee("G36")
def test_a_failing_look_up_never_says_not_there(press: HttpChannel, publisher: Publisher, fault: str) -> None:
    publisher.fail_next(fault)
    with pytest.raises(OutcomeUnknown):
        press.look_up(KEY)


@pytest.mark.guarantee("G36")
def test_a_look_up_that_reaches_nobody_never_says_not_there() -> None:
    channel = channel_to("https://no-such-host.invalid/x")
    with pytest.raises(OutcomeUnknown) as failure:
        channel.look_up(KEY)
    assert failure.value.reason == "lookup_failed"


@pytest.mark.guarantee("G46")
def test_the_credential_is_in_no_receipt_and_no_log(
    press: HttpChannel, publisher: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    publisher.fail_next("echo_token")
    receipt = send(press)
    assert receipt.reference == "https://example.com/?token=***"
    assert caplog.records
    assert TOKEN not in caplog.text


def test_a_proxy_in_the_environment_is_not_asked(
    press: HttpChannel, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    send(press)
    assert len(publisher.effects()) == 1


@pytest.mark.parametrize(
    "url",
    [
        "",
        "press.example.com/reports",
        "/reports",
        "ftp://press.example.com/",
        "file://localhost/etc/passwd",
        "http://press.example.com/",
        "http://10.0.0.1/",
        "http://127.0.0.1.example.com/",
        "http://localhost.example.com/",
        "https://user:secret@press.example.com/",
        "https://press.example.com/?to=elsewhere",
        "https://press.example.com/#part",
        "https://",
        "https://press example.com/",
        "https://[::1/",
    ],
)
def test_an_address_that_is_not_plainly_one_https_place_stops_the_start(url: str) -> None:
    with pytest.raises(ConfigurationRefused, match=r"channel 'press': url") as refused:
        channel_to(url)
    assert "secret" not in refused.value.message


@pytest.mark.parametrize(
    "url", ["https://press.example.com/a", "http://127.0.0.1:1/", "http://[::1]:1", "http://localhost/"]
)
def test_https_anywhere_and_http_on_this_machine_are_allowed(url: str) -> None:
    assert channel_to(url).name == "press"


def test_a_missing_token_stops_the_start() -> None:
    with pytest.raises(ConfigurationRefused, match="token is empty"):
        channel_to("https://press.example.com/", "")
