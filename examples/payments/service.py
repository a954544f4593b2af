"""The payment service's HTTP side: keys as in the IETF draft, look-ups, lists, and faults on demand.

    POST /refunds              {"order","payment","amount","currency","account","reason"}
    POST /refunds/reversals    {"key","reference"} of the refund
    POST /messages             a text
    GET  .../by-key/KEY        what was done under a key: {"key","reference","content_hash"}; 404: nothing, 409: running
    GET  .../keys              {"keys": [...]}, all that was ever done and is remembered
    GET  /orders/ID            {"order": {...}, "payments": [...]}

Every POST needs an `Idempotency-Key`: 400 without one, 409 while the first is running, 422 where it was used for
another body, else the stored answer. What the rules forbid is answered 422 with a problem code, and the key not used.
Faults are set at `POST /admin/faults`, where an admin token was given; without one there is no such path.
"""

from __future__ import annotations

import hmac
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from examples.payments.store import Answer, Fault, Malformed, Refused, Store

HOST = "127.0.0.1"
TOKEN, ADMIN_TOKEN = "PAYMENTS_TOKEN", "PAYMENTS_ADMIN_TOKEN"
"""Environment variables with the tokens that callers need."""
MAX_BODY = 64 * 1024
KINDS = ("refunds", "reversals", "messages", "lookups", "lists", "orders")
"""Kinds of calls, each with faults of its own."""
FAULTS = {
    "slow": "works on it for `seconds` before it does anything",
    "answer_lost": "does it, and breaks the connection",
    "closed": "breaks the connection, and does nothing",
    "error_after": "does it, and answers 500",
    "busy": "answers 409, and does nothing",
    "unavailable": "answers 503, and does nothing",
    "key_forgotten": "does it, loses the key, and breaks the connection",
    "garbage": "does it, and answers what is no receipt",
    "redirect": "answers 307, and does nothing",
}
_PATHS = {"/refunds": "refunds", "/refunds/reversals": "reversals", "/messages": "messages"}
_INSTEAD = {"busy": 409, "unavailable": 503, "redirect": 307}
_KEY = re.compile(r'"?([\x21\x23-\x7e]{1,255})"?')


class Server(ThreadingHTTPServer):
    """A bound server; `serve_forever` starts it."""

    daemon_threads = True

    def __init__(self, store: Store, token: str, admin_token: str, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.store = store
        self.token = token
        self.admin_token = admin_token
        self.ending = threading.Event()
        """Ends whatever is slow."""
        self._running: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def shutdown(self) -> None:
        """Serve nothing more, and let go whatever is slow."""
        self.ending.set()
        super().shutdown()

    @contextmanager
    def alone(self, resource: str, key: str) -> Iterator[bool]:
        """Whether nobody else works under the key; nobody else can until the end.

        In memory, so that nothing is left running for ever by a service that was killed.
        """
        with self._lock:
            is_free = (resource, key) not in self._running
            self._running.add((resource, key))
        try:
            yield is_free
        finally:
            if is_free:
                with self._lock:
                    self._running.discard((resource, key))

    def is_running(self, resource: str, key: str) -> bool:
        """Whether somebody works under the key."""
        with self._lock:
            return (resource, key) in self._running


def serve(store: Store, token: str, admin_token: str = "", port: int = 0) -> Server:
    """A server on this machine; port 0: any free one."""
    return Server(store, token, admin_token, port)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def handle(self) -> None:
        """Serve one connection; a caller that goes away in the middle is what several faults are for."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    def do_POST(self) -> None:
        """Do something under a key, or set a fault."""
        body = self._body()
        if body is None:
            self._problem(413, "too_large", f"a body has a length of at most {MAX_BODY} bytes")
        elif self.path.startswith("/admin/") and self._is_known(self.server.admin_token):
            self._administer(body)
        elif not self._is_known(self.server.token):
            self._problem(401, "unauthorized", "send the bearer token")
        elif self.path not in _PATHS:
            self._problem(404, "not_found", "there is nothing of that name")
        else:
            self._keyed(_PATHS[self.path], body)

    def do_GET(self) -> None:
        """Look up a key, list keys, or tell of an order."""
        place, _, name = self.path.rpartition("/")
        is_lookup = place.endswith("/by-key") and place.removesuffix("/by-key") in _PATHS
        is_list = name == "keys" and place in _PATHS
        if not self._is_known(self.server.token):
            self._problem(401, "unauthorized", "send the bearer token")
        elif is_lookup:
            resource = _PATHS[place.removesuffix("/by-key")]
            self._read("lookups", name, *self._found(resource, name))
        elif is_list:
            told = [answer._asdict() for answer in self.server.store.answers(_PATHS[place])]
            self._read("lists", "", 200, {"keys": told})
        elif place == "/orders":
            order = self.server.store.order(name)
            self._read("orders", name, *((404, {"code": "order_unknown"}) if order is None else (200, order)))
        else:
            self._problem(404, "not_found", "there is nothing of that name")

    def _keyed(self, resource: str, body: bytes) -> None:
        written = _KEY.fullmatch(self.headers.get("Idempotency-Key", ""))
        if written is None:
            self._problem(400, "key_missing", "send an Idempotency-Key of at most 255 visible characters")
            return
        key, store = written[1], self.server.store
        fault = store.arrive(resource, "POST", key)
        if fault is not None and self._instead(fault):
            return
        # Nothing is answered as long as the key is held: whoever has the answer finds the key free.
        try:
            answer = self._done(resource, key, body, fault)
        except Malformed as error:
            self._problem(400, "malformed", str(error))
        except Refused as refused:
            self._problem(422, refused.code, str(refused))
        else:
            self._tell(resource, answer, fault)

    def _done(self, resource: str, key: str, body: bytes, fault: Fault | None) -> Answer | None:
        """The answer; nothing where somebody else works under the key."""
        with self.server.alone(resource, key) as is_alone:
            if not is_alone:
                return None
            if fault is not None and fault.name == "slow":
                self.server.ending.wait(fault.seconds)
            return self.server.store.do(resource, key, body)

    def _tell(self, resource: str, answer: Answer | None, fault: Fault | None) -> None:
        if answer is None:
            self._problem(409, "still_running", "the first request under this key is running")
            return
        if fault is not None and fault.name == "key_forgotten":
            self.server.store.forget(resource, answer.key)
        if not self._after(fault):
            self._answer(201, answer._asdict())

    def _read(self, kind: str, name: str, status: int, told: object) -> None:
        fault = self.server.store.arrive(kind, "GET", name)
        if fault is not None and fault.name == "slow":
            self.server.ending.wait(fault.seconds)
        if (fault is None or not self._instead(fault)) and not self._after(fault):
            self._answer(status, told)

    def _found(self, resource: str, key: str) -> tuple[int, object]:
        if self.server.is_running(resource, key):
            return 409, {"code": "still_running"}
        answer = self.server.store.find(resource, key)
        return (404, {"code": "key_unknown"}) if answer is None else (200, answer._asdict())

    def _instead(self, fault: Fault) -> bool:
        """Whether the fault took the place of all that was to be done."""
        if fault.name == "closed":
            self.close_connection = True
        elif fault.name in _INSTEAD:
            self._problem(_INSTEAD[fault.name], fault.name, "as it was told to")
        else:
            return False
        return True

    def _after(self, fault: Fault | None) -> bool:
        """Whether the fault took the place of the answer."""
        name = fault.name if fault is not None else ""
        if name in ("answer_lost", "key_forgotten"):
            self.close_connection = True
        elif name == "error_after":
            self._problem(500, name, "as it was told to")
        elif name == "garbage":
            self._send(200, b"<html>done</html>", "text/html")
        else:
            return False
        return True

    def _administer(self, body: bytes) -> None:
        store = self.server.store
        try:
            asked = json.loads(body or b"{}")
            if self.path == "/admin/orders":
                store.seed(asked)
            elif self.path == "/admin/faults" and asked["on"] in KINDS and asked["fault"] in FAULTS:
                store.fail(asked["on"], asked["fault"], int(asked.get("calls", 1)), float(asked.get("seconds", 0)))
            elif self.path == "/admin/faults/clear":
                store.clear_faults()
            else:
                raise Malformed(f"faults are {', '.join(FAULTS)}; on {', '.join(KINDS)}")
        except (ValueError, KeyError, TypeError, Malformed) as error:
            self._problem(400, "malformed", str(error))
        else:
            self._answer(200, {})

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self.close_connection = True
            return None
        return self.rfile.read(int(length))

    def _is_known(self, token: str) -> bool:
        given = self.headers.get("Authorization", "")
        return bool(token) and hmac.compare_digest(given.encode(), f"Bearer {token}".encode())

    def _problem(self, status: int, code: str, detail: str) -> None:
        content = {"type": "about:blank", "status": status, "code": code, "detail": detail}
        self._send(status, json.dumps(content).encode(), "application/problem+json")

    def _answer(self, status: int, content: object) -> None:
        self._send(status, json.dumps(content).encode(), "application/json")

    def _send(self, status: int, data: bytes, media_type: str) -> None:
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
