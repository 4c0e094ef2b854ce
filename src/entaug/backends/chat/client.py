"""Requests to a server whose answers end, whatever it sends, and what failures mean."""

from __future__ import annotations

import asyncio
import email.utils
import json
import random
import time
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

_MAX_BYTES = 16 << 20  # of an answer; models that think aloud send a few hundred kilobytes
# Blocks of other encodings may unpack to any size before it can be looked at.
_ENCODINGS = ("identity", "gzip", "deflate")
_FIRST_DELAY, _MAX_DELAY, _MAX_RETRY_AFTER = 0.5, 30.0, 300.0
_KEY_REMEDY = "set the environment variable ENTAUG_API_KEY to a valid key"
_MODEL_REMEDY = "name a model of the server behind #, and end the address in /v1 where the server does"
_START_REMEDY = "start the server or check the address; the same command continues an interrupted run"
_LENGTH = 200  # characters of a server's message that are shown

Result = TypeVar("Result")


@dataclass(eq=False)
class Failure(Exception):  # noqa: N818 (most are no errors of the run)
    """A failure of a request: it may pass, it concerns this request, or it concerns all (is fatal)."""

    reason: str
    may_pass: bool = False
    is_fatal: bool = False
    remedy: str | None = None
    delay: float | None = None
    refused_parameter: str | None = None


def invalid_answer(reason: str = "what the server sent is not an answer") -> Failure:
    """The failure of a response that is not a chat completion, or far larger than one."""
    return Failure(reason, may_pass=True)


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine, in a thread of its own where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, coroutine).result()


def create_client(url: str, key: str | None, *, use_proxies: bool) -> httpx.AsyncClient:
    """Create a client for a server."""
    headers = {"Accept-Encoding": ", ".join(_ENCODINGS)}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    # Redirected texts would reach a machine that the user has not named.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)  # `RequestSettings.concurrency` says it
    return httpx.AsyncClient(
        base_url=url,
        headers=headers,
        follow_redirects=False,
        trust_env=use_proxies,
        timeout=None,  # noqa: S113 (`exchange` limits the time)
        limits=limits,
    )


async def exchange(
    client: httpx.AsyncClient,
    method: str,
    path: str,
    seconds: float,
    *,
    body: Mapping[str, Any] | None = None,
    secrets: Iterable[str] = (),
) -> Any:
    """Make a request, and return the JSON in the response; raise `Failure` if there is none after some seconds."""
    content = bytearray()
    try:
        async with asyncio.timeout(seconds), client.stream(method, path, json=body) as response:
            if response.headers.get("content-encoding", "identity").lower() not in _ENCODINGS:
                raise invalid_answer()
            async for block in response.aiter_bytes():
                content += block
                if len(content) > _MAX_BYTES:
                    raise invalid_answer("the server sent far more than an answer")
    except TimeoutError:
        raise Failure("the server did not answer in time", may_pass=True) from None
    except httpx.ConnectError:
        raise Failure("the server cannot be reached", is_fatal=True, remedy=_START_REMEDY) from None
    except (httpx.HTTPError, OSError):
        raise Failure("the connection broke off", may_pass=True) from None
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        answer = None
    if not response.is_success:
        raise _failure_of(response, answer, secrets)
    if answer is None:
        raise invalid_answer()
    return answer


def _failure_of(  # noqa: PLR0911 (one for each)
    response: httpx.Response, answer: Any, secrets: Iterable[str]
) -> Failure:
    """The failure that a status means."""
    error = answer.get("error") if isinstance(answer, dict) else None
    details: dict[str, Any] = error if isinstance(error, dict) else {}
    text = details["message"] if isinstance(details.get("message"), str) else ""
    for secret in secrets:
        text = text.replace(secret, "***")
    status = response.status_code
    shown = f"{status}: {' '.join(text.split())[:_LENGTH]}" if text else str(status)
    match status:
        case 401 | 403:
            return Failure(f"the server refuses access ({shown})", is_fatal=True, remedy=_KEY_REMEDY)
        case 404:
            return Failure(f"the server has no such model or address ({shown})", is_fatal=True, remedy=_MODEL_REMEDY)
        case 429 if details.get("code") == "insufficient_quota":
            return Failure(f"the quota is used up ({shown})", is_fatal=True, remedy="extend it, and run again")
        case 429:
            return Failure("the rate limit was exceeded (429)", may_pass=True, delay=_retry_after(response))
    if status in (408, 409, 425) or status >= 500:
        return Failure(f"the server failed ({status})", may_pass=True, delay=_retry_after(response))
    if status < 400:
        return Failure(f"the server redirects to another address ({status})", is_fatal=True, remedy="name that address")
    named = [name for name in ("max_tokens", "temperature", "seed") if name in text]
    parameter = details["param"] if isinstance(details.get("param"), str) else next(iter(named), None)
    return Failure(f"the server refused the request ({status})", refused_parameter=parameter)


def _retry_after(response: httpx.Response) -> float | None:
    """The number of seconds that the server asks to wait."""
    value = response.headers.get("retry-after", "")
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
