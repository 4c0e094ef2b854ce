"""Requests to a server: a connection whose answers end, whatever it sends, and what failures mean."""

from __future__ import annotations

import asyncio
import email.utils
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import CancelledError
from typing import Any, NamedTuple, Self

import openai

_MAX_BYTES = 16 << 20  # of an answer; models that think aloud send a few hundred kilobytes
# Blocks of other encodings may unpack to any size before it can be looked at.
_ENCODINGS = frozenset({"identity", "gzip", "deflate"})
_OF_TRANSFER = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_FIRST_DELAY, _MAX_DELAY, _MAX_RETRY_AFTER = 0.5, 30.0, 300.0
_KEY_REMEDY = "set the environment variable ENTAUG_API_KEY to a valid key"
_MODEL_REMEDY = "name a model of the server behind #, and end the address in /v1 where the server does"
_START_REMEDY = "start the server or check the address; the same command continues an interrupted run"
_LENGTH = 200  # characters of a server's message that are shown


class InvalidAnswerError(Exception):
    """The response of the server is not a chat completion, or far larger than one; the text says which."""

    def __init__(self, reason: str = "what the server sent is not an answer") -> None:
        super().__init__(reason)


class _BoundedClient(openai.DefaultAsyncHttpxClient):
    """A client of HTTP that reads no more of an answer than is wanted."""

    async def send(self, request: Any, **options: Any) -> Any:
        response = await super().send(request, **{**options, "stream": True})
        content = bytearray()
        try:
            if response.headers.get("content-encoding", "identity").lower() not in _ENCODINGS:
                raise InvalidAnswerError
            async for block in response.aiter_bytes():
                content += block
                if len(content) > _MAX_BYTES:
                    raise InvalidAnswerError("the server sent far more than an answer")
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_TRANSFER]
        return type(response)(response.status_code, headers=headers, content=bytes(content), request=response.request)


class Connection:
    """A client for several threads, on an event loop of its own: only there a request can be ended at any point."""

    def __init__(self, url: str, key: str, *, use_proxies: bool) -> None:
        # Redirected texts would reach a machine that the user has not named.
        self._http = _BoundedClient(follow_redirects=False, trust_env=use_proxies)
        self._client = openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0, http_client=self._http)
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._is_open = True

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_forever, name="entaug-connection", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_open = False
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.close()

    def request(self, call: Callable[[openai.AsyncOpenAI], Awaitable[Any]], seconds: float) -> bytes:
        """Make a request; raise `TimeoutError` if its whole answer has not come after some seconds."""

        async def limited() -> bytes:
            async with asyncio.timeout(seconds):
                content: bytes = (await call(self._client)).content
                return content

        with self._lock:  # what is given to a loop that has stopped would be waited for without end
            if not self._is_open:
                raise CancelledError
            future = asyncio.run_coroutine_threadsafe(limited(), self._loop)
        return future.result()


class Failure(NamedTuple):
    """A failure of a request: it may pass, it concerns this request, or it concerns all (is fatal)."""

    reason: str
    may_pass: bool = False
    is_fatal: bool = False
    remedy: str | None = None
    delay: float | None = None
    refused_parameter: str | None = None


def classify(error: Exception, secrets: Iterable[str] = ()) -> Failure | None:
    """Classify an error of the client library; None for an error that is none of a request."""
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return Failure("the server did not answer in time", may_pass=True)
    if isinstance(error, openai.APIStatusError):
        return _classify_status(error, secrets)
    if isinstance(error, InvalidAnswerError):
        return Failure(str(error), may_pass=True)
    if not isinstance(error, openai.APIConnectionError | OSError):
        return None
    if "ConnectError" in type(error.__cause__).__name__:
        return Failure("the server cannot be reached", is_fatal=True, remedy=_START_REMEDY)
    return Failure("the connection broke off", may_pass=True)


def _classify_status(  # noqa: PLR0911 (one for each)
    error: openai.APIStatusError, secrets: Iterable[str]
) -> Failure:
    status, shown = error.status_code, f"{error.status_code}{_shown(error, secrets)}"
    match status:
        case 401 | 403:
            return Failure(f"the server refuses access ({shown})", is_fatal=True, remedy=_KEY_REMEDY)
        case 404:
            return Failure(f"the server has no such model or address ({shown})", is_fatal=True, remedy=_MODEL_REMEDY)
        case 429 if error.code == "insufficient_quota":
            return Failure(f"the quota is used up ({shown})", is_fatal=True, remedy="extend it, and run again")
        case 429:
            return Failure("the rate limit was exceeded (429)", may_pass=True, delay=_retry_after(error))
    if status in (408, 409, 425) or status >= 500:
        return Failure(f"the server failed ({status})", may_pass=True, delay=_retry_after(error))
    if status < 400:
        return Failure(f"the server redirects to another address ({status})", is_fatal=True, remedy="name that address")
    named = [name for name in ("max_tokens", "temperature", "seed") if name in str(error.message)]
    parameter = error.param if isinstance(error.param, str) else next(iter(named), None)
    return Failure(f"the server refused the request ({status})", refused_parameter=parameter)


def _shown(error: openai.APIStatusError, secrets: Iterable[str]) -> str:
    """The server's message, on one line and without secrets."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    text = message if isinstance(message, str) else ""
    for secret in secrets:
        text = text.replace(secret, "***")
    text = " ".join(text.split())[:_LENGTH]
    return f": {text}" if text else ""


def _retry_after(error: openai.APIStatusError) -> float | None:
    """The number of seconds that the server asks to wait."""
    value = error.response.headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, ArithmeticError, OSError):
            return None
    return seconds if seconds >= 0 else None  # also excludes NaN


def retry_delay(attempt: int, failure: Failure) -> float:
    """Return the number of seconds before a request is repeated."""
    if failure.delay is not None:
        return min(failure.delay, _MAX_RETRY_AFTER)
    return min(_MAX_DELAY, _FIRST_DELAY * 2.0 ** min(attempt, 30)) * random.uniform(0.75, 1.0)
