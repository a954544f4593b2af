"""A small OpenAI-compatible server for tests: scripted answers over real HTTP, every request kept and counted.

It stands apart because fakes inside the process miss what goes wrong on the wire. Whoever asks for a stream gets the
same answer in chunks; structured output (`response_format`) is a turn whose text is the JSON. Run as a program, it
reads its script from a JSON file: `python -m tests.support.model_server SCRIPT.json PORT`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MISSING = "an id that is not sent"


@dataclass(frozen=True)
class Turn:
    """One answer of the model, or one way of not answering."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    """Tool calls as (name, arguments); arguments that are a string are sent as they are, malformed ones too."""
    ids: tuple[Any, ...] = ()
    """The ids of its calls, instead of good ones; MISSING: the field is left out."""
    refusal: str = ""
    finish: str = "stop"
    usage: bool = True
    model: str | None = None
    """The model that the answer names instead of the one that was asked; empty: it names none."""
    status: int = 200
    error: str = ""
    """The error code in the body of a status other than 200."""
    headers: tuple[tuple[str, str], ...] = ()
    raw: str | None = None
    """The whole body, instead of a well-formed one."""
    cut: bool = False
    """End the connection in the middle of the body."""
    ended: bool = False
    """Of a stream: end it in the middle as if it were whole, as a proxy does whose own source broke."""
    delay: float = 0.0
    """Seconds until the answer begins."""
    pause: float = 0.0
    """Seconds before each further chunk of a stream."""
    held: bool = False
    """Answer only after `ModelServer.release`."""


Script = Callable[[int, dict[str, Any]], Turn]
"""From a request's number (from 1) and its body to the answer."""


def in_order(turns: Sequence[Turn]) -> Script:
    """Turn n answers request n; requests beyond the turns are answered 500."""
    ended = Turn(status=500, error="script_ended")
    return lambda number, request: turns[number - 1] if number <= len(turns) else ended


def by_conversation(turns: Sequence[Turn], held_request: int = 0) -> Script:
    """Turn n answers whoever has n - 1 answers in the conversation, as a model does; that one request is held."""

    def answer(number: int, request: dict[str, Any]) -> Turn:
        answered = sum(message["role"] == "assistant" for message in request["messages"])
        turn: Turn = replace(turns[answered], held=number == held_request)
        return turn

    return answer


@dataclass
class ModelServer:
    """A running server."""

    url: str
    script: Script
    requests: list[dict[str, Any]] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _released: threading.Event = field(default_factory=threading.Event)

    @property
    def calls(self) -> int:
        """How many requests have arrived."""
        with self._changed:
            return len(self.requests)

    def wait_for_calls(self, count: int, timeout: float = 30.0) -> None:
        """Wait until that many requests have arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= count, timeout), f"only {len(self.requests)}"

    def release(self) -> None:
        """Let held answers go."""
        self._released.set()

    def tools(self, call: int = 0) -> set[str]:
        """The names of the tools that a request offered to the model."""
        return {tool["function"]["name"] for tool in self.requests[call].get("tools", [])}

    def take(self, request: dict[str, Any]) -> tuple[int, Turn]:
        """Count a request; its number from 1, and its answer."""
        with self._changed:
            self.requests.append(request)
            number = len(self.requests)
            self._changed.notify_all()
        turn = self.script(number, request)
        if turn.held:
            self._released.wait(60.0)
        return number, turn


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def body_of(number: int, turn: Turn, model: str) -> bytes:
    """The response body of a turn, in the form of a chat completion or of an error."""
    if turn.raw is not None:
        return turn.raw.encode()
    if turn.status != 200:
        said = turn.text or "scripted"
        return json.dumps({"error": {"message": said, "type": "scripted", "code": turn.error or None}}).encode()
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.refusal:
        message["refusal"] = turn.refusal
    if turn.calls:
        message["tool_calls"] = _calls(number, turn)
    completion = _head(number, turn, model, "chat.completion") | {
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(turn)}]
    }
    if turn.usage:
        completion["usage"] = USAGE
    return json.dumps(completion).encode()


def chunks_of(number: int, turn: Turn, model: str, with_usage: bool) -> list[bytes]:
    """The same as the events of a stream; usage comes last, where the request asks for it."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _pieces(turn.text)]
    deltas += [{"refusal": piece} for piece in _pieces(turn.refusal)]
    for at, whole in enumerate(_calls(number, turn)):
        function = whole["function"]
        deltas.append({"tool_calls": [whole | {"index": at, "function": function | {"arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}
            for piece in _pieces(function["arguments"])
        ]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": _finish(turn)})
    head = _head(number, turn, model, "chat.completion.chunk")
    events: list[dict[str, Any]] = [{**head, "choices": [choice]} for choice in choices]
    if turn.usage and with_usage:
        events.append({**head, "choices": [], "usage": USAGE})
    return [f"data: {json.dumps(event)}\n\n".encode() for event in events] + [b"data: [DONE]\n\n"]


def _pieces(text: str) -> list[str]:
    """A text in about four pieces."""
    size = max(1, -(-len(text) // 4))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _head(number: int, turn: Turn, model: str, kind: str) -> dict[str, Any]:
    named = model if turn.model is None else turn.model
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0} | ({"model": named} if named else {})


def _finish(turn: Turn) -> str:
    return "tool_calls" if turn.calls and turn.finish == "stop" else turn.finish


def _calls(number: int, turn: Turn) -> list[dict[str, Any]]:
    ids = turn.ids or [f"call-{number}-{at}" for at in range(len(turn.calls))]
    return [_call(id, *call) for id, call in zip(ids, turn.calls, strict=True)]


def _call(id: Any, name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"type": "function", "function": {"name": name, "arguments": text}}
    return call if id == MISSING else {"id": id, **call}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model_server: ModelServer

    def do_POST(self) -> None:  # the name is http.server's
        """Answer a chat completion with the next turn."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number, turn = self.model_server.take(request)
        time.sleep(turn.delay)
        try:
            if request.get("stream") and turn.status == 200 and turn.raw is None:
                with_usage = bool((request.get("stream_options") or {}).get("include_usage"))
                self._stream(turn, chunks_of(number, turn, request["model"], with_usage))
            else:
                self._answer(turn, body_of(number, turn, request["model"]))
        except ConnectionError:
            self.close_connection = True  # whoever asked is gone, as in a test that killed it

    def _stream(self, turn: Turn, chunks: list[bytes]) -> None:
        self._begin(turn, "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in chunks[: len(chunks) // 2] if turn.cut or turn.ended else chunks:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            time.sleep(turn.pause)
        if not turn.cut:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = self.close_connection or turn.cut

    def _begin(self, turn: Turn, form: str) -> None:
        self.send_response(turn.status)
        for name, value in turn.headers:
            self.send_header(name, value)
        self.send_header("Content-Type", form)

    def _answer(self, turn: Turn, body: bytes) -> None:
        self._begin(turn, "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if turn.cut else body)
        self.close_connection = self.close_connection or turn.cut

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are kept, not printed."""


@contextmanager
def running_model_server(script: Script | Sequence[Turn], port: int = 0) -> Iterator[ModelServer]:
    """Serve a script, or turns in order, on a port of this machine, any free one by default."""
    handler = type("Handler", (_Handler,), {})
    http = ThreadingHTTPServer(("127.0.0.1", port), handler)
    http.daemon_threads = True
    server = ModelServer(f"http://127.0.0.1:{http.server_port}/v1", script if callable(script) else in_order(script))
    handler.model_server = server  # type: ignore[attr-defined]  # the class was made two lines above
    threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.release()
        http.shutdown()
        http.server_close()


def save_script(path: Path, turns: Sequence[Turn]) -> None:
    """Write a script for the program."""
    path.write_text(json.dumps([asdict(turn) for turn in turns]), encoding="utf-8")


def load_script(path: Path) -> list[Turn]:
    """The inverse of `save_script`."""
    return [
        Turn(**{**turn, **{name: tuple(map(tuple, turn[name])) for name in ("calls", "headers") if name in turn}})
        for turn in json.loads(path.read_text(encoding="utf-8"))
    ]


if __name__ == "__main__":
    with running_model_server(load_script(Path(sys.argv[1])), int(sys.argv[2])) as running:
        print(f"model server at {running.url}", flush=True)
        threading.Event().wait()
