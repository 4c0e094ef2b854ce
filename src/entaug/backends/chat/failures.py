"""Failures of requests: which may pass, which concern one request, and which concern all."""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass

import openai

__all__ = ["Failure", "InvalidAnswerError", "OversizedAnswerError", "classify", "retry_delay"]

_FIRST_DELAY = 0.5
_MAX_DELAY = 30.0
_MAX_RETRY_AFTER = 300.0
_KEY_REMEDY = "set the environment variable ENTAUG_API_KEY to a valid key"
_MODEL_REMEDY = "name a model of the server behind #, and end the address in /v1 where the server does"
_START_REMEDY = "start the server or check the address; the same command continues an interrupted run"
_LENGTH = 200  # characters of a server's message that are shown


class InvalidAnswerError(Exception):
    """The response of the server is not a chat completion."""


class OversizedAnswerError(Exception):
    """The server sends more than any answer needs."""


@dataclass(frozen=True)
class Failure:
    """A failure of a request."""

    reason: str
    may_pass: bool = False
    is_fatal: bool = False
    remedy: str | None = None
    delay: float | None = None
    refused_parameter: str | None = None


def classify(error: Exception, secrets: Iterable[str] = ()) -> Failure | None:  # noqa: PLR0911 (one for each)
    """Classify an error of the client library."""
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return Failure("the server did not answer in time", may_pass=True)
    if isinstance(error, openai.APIStatusError):
        return _classify_status(error, secrets)
    if isinstance(error, InvalidAnswerError):
        return Failure("what the server sent is not an answer", may_pass=True)
    if isinstance(error, OversizedAnswerError):
        return Failure("the server sent far more than an answer", may_pass=True)
    if isinstance(error, openai.APIConnectionError | OSError):
        if "ConnectError" in type(error.__cause__).__name__:
            return Failure("the server cannot be reached", is_fatal=True, remedy=_START_REMEDY)
        return Failure("the connection broke off", may_pass=True)
    return None


def _classify_status(error: openai.APIStatusError, secrets: Iterable[str]) -> Failure:  # noqa: PLR0911 (one for each)
    status = error.status_code
    message = _shown(error, secrets)
    if status in (401, 403):
        return Failure(f"the server refuses access ({status}{message})", is_fatal=True, remedy=_KEY_REMEDY)
    if status == 404:
        return Failure(f"the server has no such model or address (404{message})", is_fatal=True, remedy=_MODEL_REMEDY)
    if status == 429:
        if error.code == "insufficient_quota":
            return Failure(f"the quota is used up (429{message})", is_fatal=True, remedy="extend it, and run again")
        return Failure("the rate limit was exceeded (429)", may_pass=True, delay=_retry_after(error))
    if status in (408, 409, 425) or status >= 500:
        return Failure(f"the server failed ({status})", may_pass=True, delay=_retry_after(error))
    if status < 400:
        return Failure(f"the server redirects to another address ({status})", is_fatal=True, remedy="name that address")
    parameter = error.param
    if not isinstance(parameter, str):
        named = [name for name in ("max_tokens", "temperature", "seed") if name in str(error.message)]
        parameter = named[0] if named else None
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
