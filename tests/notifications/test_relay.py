"""The relay on a real ledger: everything is delivered, once where nothing goes wrong, and what fails is seen."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from countersign.domain.errors import Unavailable
from countersign.domain.escalation import Severity
from countersign.domain.notice import NoticeKind
from countersign.ledger import SqlLedger
from countersign.notifications.message import Message
from countersign.notifications.relay import ATTEMPTS, CLAIM, LONGEST_WAIT, OF_ONE_TENANT, STALE, Relay, wait_after
from countersign.notifications.sending import Hopeless, NotDelivered, TryAgain
from tests.ledger.founding import found
from tests.notifications.notices import NOW, SECRET, TENANT, notice
from tests.notifications.relaying import Clock, relay_on, tell
from tests.support.processes import Processes
from tests.support.waiting import eventually


class Fake:
    """A sender that notes what it is given and does what the test says."""

    def __init__(self, *answers: NotDelivered | Exception, always: NotDelivered | Exception | None = None) -> None:
        self.sent: list[Message] = []
        self._answers = list(answers)
        self._always = always

    def send(self, message: Message) -> None:
        self.sent.append(message)
        answer = self._answers.pop(0) if self._answers else self._always
        if answer is not None:
            raise answer

    @property
    def ids(self) -> list[str]:
        return [message.id for message in self.sent]


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ids_at(server: HTTPServer) -> Counter[str]:
    return Counter(request.headers["Countersign-Delivery"] for request, _ in server.log)


def statuses(ledger: SqlLedger, tenant: str = TENANT) -> list[str]:
    return [delivery.status for delivery in ledger.outbox.deliveries(tenant)]


def kinds(ledger: SqlLedger, tenant: str = TENANT) -> list[str]:
    return [one.type for one in ledger.audit.records(tenant) if one.type.startswith("notice.")]


def drain(relay: Relay, clock: Clock, passes: int = 40) -> None:
    """Let all that is due, and all that becomes due, be tried."""
    for _ in range(passes):
        while relay.deliver_due():
            pass
        clock.skip(LONGEST_WAIT)


def test_a_notice_is_delivered_once_to_each_of_its_addresses_and_recorded(
    ledger: SqlLedger, clock: Clock, httpserver: HTTPServer
) -> None:
    httpserver.expect_request("/hook").respond_with_data("ok")
    relay = relay_on(ledger, clock, chat=httpserver.url_for("/hook"), pager=httpserver.url_for("/hook"))
    tell(ledger, notice(), notice(roles=("auditor",)))

    drain(relay, clock)

    assert ids_at(httpserver) == {"acme:1:chat": 1, "acme:1:pager": 1}
    assert statuses(ledger) == ["delivered", "delivered"]
    assert kinds(ledger) == ["notice.unaddressed", "notice.delivered", "notice.delivered"]
    assert not ledger.outbox.unaddressed(TENANT, 10)


def test_every_tenant_gets_its_own_and_no_other(ledger: SqlLedger, clock: Clock) -> None:
    found(ledger, "globex")
    chat = Fake()
    tell(ledger, notice(), notice(tenant="globex"))

    drain(relay_on(ledger, clock, chat=chat), clock)

    assert chat.ids == ["acme:1:chat"]


def test_a_person_is_told_where_their_role_is(ledger: SqlLedger, clock: Clock) -> None:
    chat = Fake()
    tell(ledger, notice(roles=(), persons=("bob", "nobody")), notice(roles=(), persons=("mia",)))

    drain(relay_on(ledger, clock, chat=chat), clock)

    assert chat.ids == ["acme:2:chat"]


async def test_two_relays_deliver_each_notice_once(ledger: SqlLedger, clock: Clock, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/hook").respond_with_data("ok")
    tell(ledger, *[notice(operation=f"weekly-{number}") for number in range(40)])
    relays = [relay_on(ledger, clock, chat=httpserver.url_for("/hook")) for _ in range(2)]

    for relay in relays:
        relay.start()
    await eventually(lambda: statuses(ledger) == ["delivered"] * 40)
    for relay in relays:
        relay.stop()

    assert ids_at(httpserver) == {f"acme:{number}:chat": 1 for number in range(1, 41)}
    assert kinds(ledger) == ["notice.delivered"] * 40


def test_killed_between_sending_and_recording_the_same_id_comes_again(
    ledger: SqlLedger, ledger_url: str, checkpoints: Path, clock: Clock, httpserver: HTTPServer, processes: Processes
) -> None:
    posted, killed = threading.Event(), threading.Event()

    def hold(request: Request) -> Response:
        posted.set()
        killed.wait(30)
        return Response("ok")

    httpserver.expect_oneshot_request("/hook").respond_with_handler(hold)
    tell(ledger, notice())
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "tests.notifications.relaying",
        ledger_url,
        checkpoints,
        httpserver.url_for("/hook"),
    ]
    first = processes.start(command)
    assert posted.wait(30), first.output
    first.kill()
    killed.set()
    second = relay_on(ledger, clock, chat=httpserver.url_for("/again"))
    httpserver.expect_request("/again").respond_with_data("ok")

    assert not second.deliver_due()
    clock.skip(CLAIM)
    assert second.deliver_due()

    assert ids_at(httpserver) == {"acme:1:chat": 2}
    first_body, second_body = (json.loads(request.data) for request, _ in httpserver.log)
    assert first_body == second_body
    assert statuses(ledger) == ["delivered"]


def test_what_fails_for_a_while_arrives_later_and_says_meanwhile_why(ledger: SqlLedger, clock: Clock) -> None:
    chat = Fake(TryAgain("answered with 503"), TryAgain("answered with 429", timedelta(hours=1)))
    relay = relay_on(ledger, clock, chat=chat)
    tell(ledger, notice())

    relay.deliver_due()
    (waiting,) = ledger.outbox.deliveries(TENANT)
    assert (waiting.status, waiting.error, waiting.next_at) == (
        "waiting", "answered with 503", NOW + timedelta(seconds=30),
    )  # fmt: skip
    assert not relay.deliver_due()
    clock.skip(timedelta(seconds=30))
    relay.deliver_due()
    clock.skip(timedelta(minutes=59))
    assert not relay.deliver_due()
    clock.skip(timedelta(minutes=1))
    relay.deliver_due()

    assert chat.ids == ["acme:1:chat"] * 3
    assert statuses(ledger) == ["delivered"]


def test_attempts_end_after_about_a_day() -> None:
    waits = [wait_after(attempt, TryAgain("answered with 503")) for attempt in range(1, ATTEMPTS + 1)]

    assert waits[-1] is None
    whole = sum((wait for wait in waits if wait is not None), timedelta())
    assert timedelta(hours=20) < whole < timedelta(days=1)
    assert wait_after(1, TryAgain("answered with 429", timedelta(days=365))) == LONGEST_WAIT


@pytest.mark.parametrize(
    ("always", "attempts"), [(TryAgain("answered with 503"), ATTEMPTS), (Hopeless("refused with 404"), 1)]
)
def test_a_notice_that_cannot_be_delivered_is_seen_and_escalates_once(
    ledger: SqlLedger, clock: Clock, always: NotDelivered, attempts: int
) -> None:
    chat, pager = Fake(always=always), Fake()
    relay = relay_on(ledger, clock, chat=chat, pager=pager)
    tell(ledger, notice())

    drain(relay, clock)

    assert Counter(chat.ids) == {"acme:1:chat": attempts, "acme:2:chat": attempts}
    assert pager.ids == ["acme:1:pager", "acme:2:pager"]
    told = pager.sent[1].notice
    assert (told.kind, told.severity, told.roles) == (NoticeKind.DELIVERY_FAILED, Severity.HIGH, ("operator",))
    assert "starter.py outbox --tenant acme" in pager.sent[1].command
    failed = [one for one in ledger.outbox.deliveries(TENANT) if one.status == "failed"]
    assert {(one.target, one.error) for one in failed} == {("chat", always.error)}
    assert kinds(ledger).count("notice.failed") == 2


def test_an_address_that_is_gone_is_no_longer_written_to(ledger: SqlLedger, clock: Clock) -> None:
    chat = Fake(TryAgain("answered with 503"))
    tell(ledger, notice())
    relay_on(ledger, clock, chat=chat).deliver_due()
    clock.skip(LONGEST_WAIT)

    relay_on(ledger, clock, other=Fake()).deliver_due()

    (waiting,) = ledger.outbox.deliveries(TENANT)
    assert waiting.error == "no such address is configured for it any more"
    assert len(chat.sent) == 1


def test_without_an_address_the_notices_stay_as_they_are(ledger: SqlLedger, clock: Clock) -> None:
    relay = relay_on(ledger, clock)
    tell(ledger, notice())

    relay.start()
    relay.stop()

    assert [number for number, _ in ledger.outbox.unaddressed(TENANT, 10)] == [1]


def test_a_first_address_is_not_flooded_with_old_notices(ledger: SqlLedger, clock: Clock) -> None:
    chat = Fake()
    tell(ledger, notice(at=NOW - STALE - timedelta(seconds=1)), notice(at=NOW - STALE))

    drain(relay_on(ledger, clock, chat=chat), clock)

    assert chat.ids == ["acme:2:chat"]
    assert [number for number, _ in ledger.outbox.untold(TENANT)] == [1]


def test_what_no_address_takes_leaves_a_trace_once(ledger: SqlLedger, clock: Clock) -> None:
    chat = Fake()
    tell(ledger, notice(roles=("nobody_hears",)), notice())

    for _ in range(2):
        drain(relay_on(ledger, clock, chat=chat), clock, passes=2)

    assert chat.ids == ["acme:2:chat"]
    assert [(number, told.roles) for number, told in ledger.outbox.untold(TENANT)] == [(1, ("nobody_hears",))]
    (record,) = [one for one in ledger.audit.records(TENANT) if one.type == "notice.unaddressed"]
    assert (record.subject, record.detail) == ("relay", {"notice": 1, "kind": "approval_opened"})


class Unwritable:
    """The ledger's outbox, whose deliveries cannot be recorded."""

    def __init__(self, ledger: SqlLedger) -> None:
        self.directory = ledger.directory
        self.outbox = self
        self.unaddressed = ledger.outbox.unaddressed
        self.address = ledger.outbox.address
        self.take = ledger.outbox.take
        self.failed = ledger.outbox.failed

    def delivered(self, *_: object) -> None:
        raise Unavailable("disk full")


def test_what_can_never_be_recorded_is_not_sent_for_ever(ledger: SqlLedger, clock: Clock) -> None:
    chat = Fake()
    relay = relay_on(Unwritable(ledger), clock, chat=chat)  # type: ignore[arg-type]
    tell(ledger, notice())

    drain(relay, clock)

    assert Counter(chat.ids)["acme:1:chat"] == ATTEMPTS
    assert "failed" in statuses(ledger)


def test_one_tenants_dead_address_leaves_room_for_others(ledger: SqlLedger, clock: Clock) -> None:
    dead = Fake(always=TryAgain("answered with 503"))
    tell(ledger, *[notice(operation=f"weekly-{number}") for number in range(OF_ONE_TENANT + 5)])

    relay_on(ledger, clock, chat=dead).deliver_due()

    assert len(dead.sent) == OF_ONE_TENANT


@pytest.mark.guarantee("G46")
def test_a_fault_is_logged_by_type_and_place_and_tried_again(
    ledger: SqlLedger, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    chat = Fake(ValueError(f"the secret is {SECRET}"))
    relay = relay_on(ledger, clock, chat=chat)
    tell(ledger, notice())

    with caplog.at_level(logging.DEBUG):
        drain(relay, clock)

    assert "delivery acme:1:chat failed by ValueError at" in caplog.text
    assert SECRET not in caplog.text
    assert chat.ids == ["acme:1:chat"] * 2
    assert statuses(ledger) == ["delivered"]


@pytest.mark.guarantee("G46")
def test_nothing_secret_is_logged_kept_or_sent(
    ledger: SqlLedger, clock: Clock, httpserver: HTTPServer, caplog: pytest.LogCaptureFixture
) -> None:
    httpserver.expect_request("/secret-path").respond_with_data("secret-answer", status=500)
    relay = relay_on(ledger, clock, chat=httpserver.url_for("/secret-path"))
    tell(ledger, notice())

    with caplog.at_level(logging.DEBUG, logger="countersign"):
        drain(relay, clock)

    kept = "".join(one.model_dump_json() for one in ledger.audit.records(TENANT))
    kept += "".join(one.model_dump_json() for one in ledger.outbox.deliveries(TENANT))
    ours = "".join(record.getMessage() for record in caplog.records if record.name.startswith("countersign"))
    sent = b"".join(request.data for request, _ in httpserver.log).decode()
    for text in (kept, ours, sent):
        assert not [secret for secret in (SECRET, "secret-path", "secret-answer") if secret in text]


async def test_a_ledger_that_is_away_for_a_while_ends_no_relay(
    ledger: SqlLedger, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chat = Fake()
    relay = relay_on(ledger, clock, chat=chat)
    monkeypatch.setattr("countersign.notifications.relay.POLL", timedelta(milliseconds=20))
    tell(ledger, notice())
    tenants = ledger.directory.tenants
    away = iter([Unavailable("postgresql://user:password@host is away")] * 3)

    def sometimes() -> object:
        if (fault := next(away, None)) is not None:
            raise fault
        return tenants()

    monkeypatch.setattr(ledger.directory, "tenants", sometimes)
    relay.start()
    await eventually(lambda: statuses(ledger) == ["delivered"])
    relay.stop()

    assert caplog.text.count("a pass of the relay failed by Unavailable") == 3
    assert "password" not in caplog.text


def test_a_stop_takes_a_second_at_the_most_even_while_the_other_side_hangs(ledger: SqlLedger, clock: Clock) -> None:
    posted, over = threading.Event(), threading.Event()

    class Hanging(Fake):
        def send(self, message: Message) -> None:
            posted.set()
            over.wait(30)

    relay = relay_on(ledger, clock, chat=Hanging())
    tell(ledger, notice())
    relay.start()
    assert posted.wait(30)

    began = time.monotonic()
    relay.stop()
    took = time.monotonic() - began
    over.set()

    assert took < 1.5
