"""A server with an OpenAI-compatible interface whose answers and faults a test writes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What the server sends.

    Args:
        text: the answer of the model.
        status: the status of HTTP; from 400 `text` is the message of the error.
        headers: further headers.
        finish_reason: why the answer ended.
        body: bytes to send instead of a chat completion.
        delay: seconds to wait before anything is sent.
        cut: whether the connection is closed in the middle of the answer.
        raw: gives what is sent instead of all this, piece by piece, until it ends or the client has gone.
        pause: seconds to wait after each of these pieces.
    """

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    body: bytes | None = None
    delay: float = 0.0
    cut: bool = False
    raw: Callable[[], Iterable[bytes]] | None = None
    pause: float = 0.0

    def content(self) -> bytes:
        if self.body is not None:
            return self.body
        if self.status >= 400:
            return json.dumps({"error": {"message": self.text, "code": None}}).encode()
        message = {"role": "assistant", "content": self.text}
        choices = [{"index": 0, "message": message, "finish_reason": self.finish_reason}]
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        completion = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
        return json.dumps({**completion, "choices": choices, "usage": usage}).encode()


Respond = Callable[[dict[str, Any], int], Reply]


class ScriptedServer(ThreadingHTTPServer):
    """The server; `respond` is called with the body of each request and how often the same one has come before."""

    daemon_threads = True

    def __init__(self, respond: Respond, models: tuple[str, ...] | Reply = ("tiny",)) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.respond = respond
        self.models = models
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def reply(self, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            before = self.bodies.count(body)
            self.bodies.append(body)
            self.headers.append(headers)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply = self.respond(body, before)
            time.sleep(reply.delay)
            return reply
        finally:
            with self._lock:
                self._at_once -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that have gone."""


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if isinstance(self.server.models, Reply):
            self._reply(self.server.models)
            return
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "me"} for name in self.server.models]
        self._reply(Reply(body=json.dumps({"object": "list", "data": models}).encode()))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server.reply(body, {name.lower(): value for name, value in self.headers.items()})
        self._reply(reply)

    def _reply(self, reply: Reply) -> None:
        if reply.raw is not None:
            self.close_connection = True
            for piece in reply.raw():
                self.wfile.write(piece)
                time.sleep(reply.pause)
            return
        content = reply.content()
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if reply.cut else content)
        if reply.cut:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


def last_line(body: dict[str, Any]) -> str:
    """The last line of the last message, which holds the input of the packaged prompts."""
    text: str = body["messages"][-1]["content"].splitlines()[-1]
    return text


def echo(body: dict[str, Any], before: int) -> Reply:
    """Answer with the input and a word that depends on the seed."""
    del before
    return Reply(f"{last_line(body)} {('indeed', 'again', 'today', 'perhaps')[body['seed'] % 4]}")


@contextmanager
def serving(respond: Respond = echo, models: tuple[str, ...] | Reply = ("tiny",)) -> Iterator[ScriptedServer]:
    """Run a server within a ``with`` block."""
    server = ScriptedServer(respond, models)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
