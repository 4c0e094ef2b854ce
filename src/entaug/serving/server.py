"""The HTTP server: what Label Studio asks of an ML backend, as JSON."""

from __future__ import annotations

import base64
import hmac
import json
import socket
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson

from entaug.errors import EntaugError, OutputError, one_line
from entaug.serving.service import AnnotationService, NotReadyError

MAX_BODY = 64 << 20
"""The size of a request, in bytes."""
_MOST_DIGITS = 18  # of a length; `int` takes no more than some thousands
_SECONDS = 60.0  # that a client may take to send what it announced


class AnnotationServer(ThreadingHTTPServer):
    """The server of a service, at a port or at one that is free (0); it asks for no password where that is empty."""

    daemon_threads = True

    def __init__(self, service: AnnotationService, host: str, port: int, user: str = "", password: str = "") -> None:
        self.service = service
        self.authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode() if password else ""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            where = f"{host}:{port}"
            raise OutputError(f"cannot listen ({one_line(error)})", path=where, remedy="name another port") from None

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a request, with the settings of the service."""
        # Settings such as the device are context variables, and a new thread begins with an empty context.
        self.service.context.copy().run(super().process_request_thread, request, client_address)

    @property
    def url(self) -> str:
        """The address of the server."""
        host, port = self.server_address[:2]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"


class _RequestError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: AnnotationServer
    protocol_version = "HTTP/1.1"
    server_version = "entaug"
    timeout = _SECONDS

    def do_GET(self) -> None:
        service = self.server.service
        answers: dict[str, Callable[[], Any]] = {
            "/": service.status,
            "/health": service.status,
            "/versions": lambda: {"versions": [service.model_version]},
        }
        self._answer(answers)

    def do_POST(self) -> None:
        service = self.server.service
        answers: dict[str, Callable[[], Any]] = {
            "/setup": lambda: service.setup(self._body()),
            "/predict": lambda: service.predict(self._body()),
            "/webhook": lambda: service.webhook(self._body()),
        }
        self._answer(answers)

    def _answer(self, answers: Mapping[str, Callable[[], Any]]) -> None:
        path = self.path.partition("?")[0]
        path = path.rstrip("/") or "/"
        try:
            # Label Studio sends news without the password. They start what it can be asked about, and hold no data.
            if path != "/webhook":
                self._check_authorization()
            answer = answers.get(path, self._not_found)
            self._send(201 if path == "/webhook" else 200, answer())
        except _RequestError as error:
            self.close_connection = True  # what the client sends on is not read
            self._send(error.status, {"error": str(error)})
        except NotReadyError as error:
            self._send(503, {"error": str(error)})
        except EntaugError as error:
            self.server.service.options.report(f"refused: {error}")
            self._send(400, {"error": str(error)})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            self.close_connection = True
            self._send(500, {"error": f"fault of entaug: {type(error).__name__}: {one_line(error)}"})
            raise

    def _not_found(self) -> None:
        raise _RequestError(404, "there is no such path; there are /health, /setup, /predict, /webhook and /versions")

    def _check_authorization(self) -> None:
        wanted = self.server.authorization
        if wanted and not hmac.compare_digest(self.headers.get("Authorization", "").encode(), wanted.encode()):
            raise _RequestError(401, "the user name or the password is wrong")

    def _body(self) -> dict[str, Any]:
        # A web page in a browser may send anything to this machine but JSON.
        if self.headers.get_content_type() != "application/json":
            raise _RequestError(415, "the body must be application/json")
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal():
            raise _RequestError(411, "the length of the body must be given")
        if len(length) > _MOST_DIGITS or int(length) > MAX_BODY:
            raise _RequestError(413, f"the body is larger than {MAX_BODY:,} bytes; send fewer tasks at once")
        content = self.rfile.read(int(length))
        if len(content) < int(length):
            raise _RequestError(400, "the body ended early")
        try:
            body = orjson.loads(content)  # which takes no half of a surrogate pair
        except orjson.JSONDecodeError as error:
            raise _RequestError(400, f"the body is not JSON ({one_line(error)})") from None
        if not isinstance(body, dict):
            raise _RequestError(400, "the body must be a JSON object")
        return body

    def _send(self, status: int, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="entaug"')
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the service reports what matters."""
