"""A small real publishing service over HTTP: `Idempotency-Key` as in the IETF draft, look-up by key, faults on demand.

It stands apart because tests of "once" must count effects where they happen: outside, in a database of its own that
outlives the service. It runs in a thread of the test, or as a program: `python -m tests.support.publisher --help`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FAULTS = (
    "hang",  # notes the key, then works on it until the service is told to go on
    "answer_late",  # publishes, then answers only when the service is told to go on
    "close_before",  # breaks the connection, publishes nothing
    "close_after",  # publishes, breaks the connection
    "drip",  # publishes, sends its answer byte by byte without end
    "rate_limited",
    "refuses",  # says 422, as to what it will never publish
    "unavailable",
    "error_before",
    "error_after",
    "bad_gateway_after",
    "request_timeout",
    "accepted",
    "redirect",
    "garbage",  # publishes, answers something that is no receipt
    "huge",  # publishes, sends an answer of any size without end
    "other_hash",  # publishes, claims to hold another document
    "other_key",
    "echo_token",  # publishes, puts the caller's credential into the reference
    "lookup_unavailable",
    "lookup_close",
    "lookup_garbage",
    "lookup_redirect",
    "lookup_forbidden",
)


_TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS publications (key TEXT PRIMARY KEY, body BLOB, is_done INTEGER);
CREATE TABLE IF NOT EXISTS effects (key TEXT, body BLOB);
CREATE TABLE IF NOT EXISTS calls (method TEXT, key TEXT, headers TEXT);
CREATE TABLE IF NOT EXISTS faults (number INTEGER PRIMARY KEY, name TEXT);
"""


class Publisher:
    """The service's state, in one SQLite file that several processes may open; and the faults of the next requests."""

    def __init__(self, database: Path, token: str) -> None:
        self.token = token
        self.go_on = threading.Event()
        self._database = database
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(_TABLES)

    def fail_next(self, *faults: str) -> None:
        """Queue faults: each POST takes the first of its kind, and each look-up the first `lookup_...`."""
        assert set(faults) <= set(FAULTS), f"unknown fault among {faults}"
        with self._connected() as connection:
            connection.executemany("INSERT INTO faults (name) VALUES (?)", [(fault,) for fault in faults])

    def take_faults(self) -> None:
        """Forget the faults that are queued still."""
        with self._connected() as connection:
            connection.execute("DELETE FROM faults")

    def effects(self) -> list[tuple[str, bytes]]:
        """Every publication that really happened, with key and body."""
        with self._connected() as connection:
            return list(connection.execute("SELECT key, body FROM effects"))

    def calls(self, method: str) -> list[str]:
        """The keys of all calls of a method, in order."""
        with self._connected() as connection:
            return [key for (key,) in connection.execute("SELECT key FROM calls WHERE method = ?", (method,))]

    def headers(self) -> list[dict[str, str]]:
        """The headers of all POSTs, in order."""
        with self._connected() as connection:
            rows = connection.execute("SELECT headers FROM calls WHERE method = 'POST'")
            return [json.loads(text) for (text,) in rows]

    def forget(self) -> None:
        """Lose all keys, as a service does that keeps them for a while only; what was published stays."""
        with self._connected() as connection:
            connection.execute("DELETE FROM publications")

    def take_fault(self, *, lookup: bool) -> str:
        """The fault of this request, or nothing."""
        condition = "LIKE" if lookup else "NOT LIKE"
        sql = f"SELECT number, name FROM faults WHERE name {condition} 'lookup%' ORDER BY number LIMIT 1"
        with self._connected() as connection:
            row = connection.execute(sql).fetchone()
            if row is None:
                return ""
            connection.execute("DELETE FROM faults WHERE number = ?", (row[0],))
            return str(row[1])

    def note_call(self, method: str, key: str, headers: dict[str, str]) -> None:
        """Write down that a call arrived."""
        with self._connected() as connection:
            connection.execute("INSERT INTO calls VALUES (?, ?, ?)", (method, key, json.dumps(headers)))

    def in_work(self) -> list[str]:
        """The keys of what was begun and is not done."""
        with self._connected() as connection:
            return [key for (key,) in connection.execute("SELECT key FROM publications WHERE is_done = 0")]

    def begin(self, key: str, body: bytes) -> int:
        """Note the key before working on it: 200 begun here, 201 done before, 409 in work, 422 had another body."""
        with self._connected() as connection:
            row = connection.execute("SELECT body, is_done FROM publications WHERE key = ?", (key,)).fetchone()
            if row is None:
                connection.execute("INSERT INTO publications VALUES (?, ?, 0)", (key, body))
                return 200
        if row[0] != body:
            return 422
        return 201 if row[1] else 409

    def publish(self, key: str, body: bytes) -> None:
        """Make the effect and note that it is done, in one transaction."""
        with self._connected() as connection:
            connection.execute("INSERT INTO effects VALUES (?, ?)", (key, body))
            connection.execute("UPDATE publications SET is_done = 1 WHERE key = ?", (key,))

    def found(self, key: str) -> tuple[int, bytes]:
        """The look-up: 200 and the body, 409 in work, 404 never seen."""
        with self._connected() as connection:
            row = connection.execute("SELECT body, is_done FROM publications WHERE key = ?", (key,)).fetchone()
        if row is None:
            return 404, b""
        return (200, row[0]) if row[1] else (409, b"")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """One transaction that no other process can come between."""
        with closing(sqlite3.connect(self._database, timeout=30, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    publisher: Publisher

    def handle(self) -> None:
        """Serve one connection; a caller that goes away in the middle is what several faults are for."""
        with suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        """Publish the body under the request's key."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Idempotency-Key"].strip('"')
        self.publisher.note_call("POST", key, dict(self.headers))
        fault = self.publisher.take_fault(lookup=False)
        if not self._is_known_caller():
            self._answer(401, {"error": "credential"})
        elif fault in _BEFORE:
            _BEFORE[fault](self)
        else:
            self._publish(key, body, fault)

    def do_GET(self) -> None:
        """Look a key up at `.../by-key/KEY`."""
        key = self.path.rpartition("/by-key/")[2]
        self.publisher.note_call("GET", key, dict(self.headers))
        fault = self.publisher.take_fault(lookup=True)
        if fault:
            _LOOKUP[fault](self)
            return
        status, body = self.publisher.found(key)
        self._answer(status, _receipt(key, body) if status == 200 else {"error": "no finished publication"})

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent: tests read the database."""

    def _is_known_caller(self) -> bool:
        return bool(self.headers["Authorization"] == f"Bearer {self.publisher.token}")

    def _publish(self, key: str, body: bytes, fault: str) -> None:
        status = self.publisher.begin(key, body)
        if status in (409, 422):
            self._answer(status, {"error": "in work" if status == 409 else "the key was used for another document"})
            return
        if fault == "hang":
            self.publisher.go_on.wait()
        if status == 200:
            self.publisher.publish(key, body)
        _AFTER.get(fault, _Handler._answer_receipt)(self, _receipt(key, body))

    def _answer_receipt(self, receipt: dict[str, str]) -> None:
        self._answer(201, receipt)

    def _answer(self, status: int, content: object) -> None:
        self._answer_bytes(status, json.dumps(content).encode())

    def _answer_bytes(self, status: int, data: bytes) -> None:
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _close(self) -> None:
        self.close_connection = True

    def _answer_late(self, receipt: dict[str, str]) -> None:
        self.publisher.go_on.wait()
        self._answer_receipt(receipt)

    def _flood(self, chunk: bytes, pause: float) -> None:
        """Answer without end: until the caller goes away or the service is told to go on."""
        self.send_response(201)
        self.end_headers()
        while not self.publisher.go_on.wait(pause):
            self.wfile.write(chunk)
            self.wfile.flush()
        self._close()


_BEFORE: dict[str, Callable[[_Handler], None]] = {
    "close_before": _Handler._close,
    "rate_limited": lambda handler: handler._answer(429, {}),
    "refuses": lambda handler: handler._answer(422, {}),
    "unavailable": lambda handler: handler._answer(503, {}),
    "error_before": lambda handler: handler._answer(500, {}),
    "request_timeout": lambda handler: handler._answer(408, {}),
    "accepted": lambda handler: handler._answer(202, {}),
    "redirect": lambda handler: handler._answer(307, {}),
}
_AFTER: dict[str, Callable[[_Handler, dict[str, str]], None]] = {
    "answer_late": _Handler._answer_late,
    "close_after": lambda handler, receipt: handler._close(),
    "drip": lambda handler, receipt: handler._flood(b" ", pause=0.02),
    "error_after": lambda handler, receipt: handler._answer(500, {}),
    "bad_gateway_after": lambda handler, receipt: handler._answer(502, {}),
    "garbage": lambda handler, receipt: handler._answer_bytes(200, b"<html>published</html>"),
    "huge": lambda handler, receipt: handler._flood(b"x" * 65_536, pause=0),
    "other_hash": lambda handler, receipt: handler._answer(200, receipt | {"content_hash": "sha256:" + "0" * 64}),
    "other_key": lambda handler, receipt: handler._answer(200, receipt | {"key": "0" * 64}),
    "echo_token": lambda handler, receipt: handler._answer(
        200, receipt | {"reference": f"https://example.com/?token={handler.publisher.token}"}
    ),
}
_LOOKUP: dict[str, Callable[[_Handler], None]] = {
    "lookup_unavailable": lambda handler: handler._answer(503, {}),
    "lookup_close": _Handler._close,
    "lookup_garbage": lambda handler: handler._answer_bytes(200, b"{"),
    "lookup_redirect": lambda handler: handler._answer(302, {}),
    "lookup_forbidden": lambda handler: handler._answer(403, {}),
}


def _receipt(key: str, body: bytes) -> dict[str, str]:
    content_hash = "sha256:" + hashlib.sha256(body).hexdigest()
    return {"key": key, "reference": f"https://reports.example.com/{key[:12]}", "content_hash": content_hash}


def serve(publisher: Publisher, port: int = 0) -> ThreadingHTTPServer:
    """A bound server on this machine; `serve_forever` starts it."""
    handler = type("Handler", (_Handler,), {"publisher": publisher})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    return server


@contextmanager
def running_publisher(publisher: Publisher) -> Iterator[str]:
    """Serve from a thread; yields the address to post to. At the end everything that hangs is let go."""
    server = serve(publisher)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/reports"
    finally:
        publisher.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    """Serve until killed; the first line says where."""
    parser = argparse.ArgumentParser(description="A publishing service for tests.")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--database", type=Path, required=True, help="SQLite file that holds what was published")
    parser.add_argument("--token", required=True, help="the bearer token that callers need")
    parser.add_argument("--fault", action="append", default=[], choices=FAULTS, help="a fault of a coming request")
    arguments = parser.parse_args()
    publisher = Publisher(arguments.database, arguments.token)
    publisher.fail_next(*arguments.fault)
    server = serve(publisher, arguments.port)
    print(f"publishing at http://127.0.0.1:{server.server_port}/reports", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
