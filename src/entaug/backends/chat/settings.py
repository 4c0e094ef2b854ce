"""How a model behind a server is asked: nothing here has an effect on what is written.

Settings come from the code around (`use_request_settings`), as the options of the command line do; what is not set
there comes from environment variables: ``ENTAUG_LLM_`` and the name in capitals, as ``ENTAUG_LLM_CONCURRENCY``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Annotated, Any

from annotated_types import Interval

from entaug.config.params import NonNegativeInt, PositiveFloat, parameters, validate
from entaug.errors import ParameterError

Concurrency = Annotated[int, Interval(ge=1, le=1000)]


@dataclass(frozen=True, kw_only=True)
class RequestSettings:
    """Settings of requests to a model behind a server.

    Args:
        concurrency: number of requests at the same time (default: 8).
        timeout: number of seconds after which a request without a complete answer is repeated (default: 120).
        retries: how often a request is repeated after a failure that may pass: no answer in time, the rate limit, an
            error of the server, a broken connection (default: 6).
        answers: file in which answers are kept (default: ``answers.sqlite`` in the cache folder).
    """

    concurrency: Concurrency | None = None
    timeout: PositiveFloat | None = None
    retries: NonNegativeInt | None = None
    answers: str | None = None

    def __post_init__(self) -> None:
        validate(self)


_DEFAULTS: dict[str, Any] = {"concurrency": 8, "timeout": 120.0, "retries": 6}
_active: ContextVar[RequestSettings] = ContextVar("request_settings", default=RequestSettings())  # noqa: B039 (frozen)


def request_settings() -> RequestSettings:
    """The settings in force: those of the code around, completed from the environment and with defaults."""
    active = _active.get()
    missing: dict[str, Any] = {}
    for parameter in parameters(RequestSettings):
        if getattr(active, parameter.name) is None:
            text = os.environ.get(f"ENTAUG_LLM_{parameter.name.upper()}")
            missing[parameter.name] = parameter.parse(text) if text else _DEFAULTS.get(parameter.name)
    return replace(active, **missing)


def key_variable(variable: str) -> str | None:
    """The key in an environment variable, without the line end that files have."""
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        # The key itself is not repeated.
        remedy = "set it to the key alone"
        raise ParameterError(f"{variable} holds characters that no key has", remedy=remedy)
    return key or None


@contextlib.contextmanager
def use_request_settings(**settings: Any) -> Iterator[RequestSettings]:
    """Use settings within a ``with`` block."""
    given = {name: value for name, value in settings.items() if value is not None}
    token = _active.set(replace(_active.get(), **given))
    try:
        yield _active.get()
    finally:
        _active.reset(token)
