"""Models behind a server with an OpenAI-compatible interface: vLLM, Ollama, llama.cpp, hosted ones."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from entaug.backends.chat.client import Failure, create_client, exchange, invalid_answer, retry_delay, run
from entaug.backends.chat.settings import RequestSettings, key_variable, request_settings
from entaug.backends.compute import compute_settings
from entaug.backends.instruct import INCOMPLETE, Answer, ChatRequest, Usage
from entaug.backends.models.catalogue import cache_dir
from entaug.errors import EntaugError, MissingModelError, OutputError, ParameterError

API_KEY = "ENTAUG_API_KEY"
"""The environment variable with the API key; for OpenAI's own server also ``OPENAI_API_KEY``."""

_OPENAI_HOST, _OPENAI_KEY = "api.openai.com", "OPENAI_API_KEY"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Models that think aloud before they answer.
_THOUGHTS_BEGIN = re.compile(r"<think(?:ing)?>")
_THOUGHTS_END = re.compile(r"</think(?:ing)?>")
# Parameters that some servers do not take; the request is then sent without them, or with another name.
_OPTIONAL = {"seed": None, "temperature": None, "max_tokens": "max_completion_tokens"}
_LIST_SECONDS = 30.0
_MOST_TOKENS = 1 << 24  # of a request; a larger count is none
_LONGEST_TOKEN = 64  # characters of a token, on average
_LONGEST_ANSWER = 4096  # characters, besides those of the tokens that were asked for
_LONGEST_NAME = 500  # characters of the name of a model
_SHORTEST_KEY = 8  # characters; shorter ones are words that servers without keys are given
_LOCK_SECONDS = 60.0
_KEYS_PER_QUERY = 500
_CONSECUTIVE_FAILURES = 10  # requests in a row that failed after all repetitions: the server is not usable


def parse_address(address: str) -> tuple[str, str | None]:
    """Split the address of a model."""
    url, _, model = address.partition("#")
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
        httpx.URL(url)  # which refuses some that `urlsplit` takes
    except (ValueError, httpx.InvalidURL):
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise ParameterError("the address of a model has the form http://HOST:PORT/v1#MODEL", parameter="generator")
    if parts.username or parts.password or parts.query:
        # The address itself is not repeated: it may hold a secret.
        raise ParameterError(
            "the address of a model holds a password or a query, which would be written into outputs",
            parameter="generator",
            remedy=f"put the API key into the environment variable {API_KEY}",
        )
    return url.rstrip("/"), model or None


class ChatServer:
    """A model behind a server, an `entaug.backends.instruct.InstructModel`."""

    # Requests of a call are asked at the same time, failures that may pass are repeated with increasing delays, and
    # answers are kept in a file (`AnswerCache`), so that an answer does not change and nothing is asked twice.

    def __init__(self, address: str, *, name: str | None = None) -> None:
        self._url, model = parse_address(address)
        self._host = urlsplit(self._url).hostname or ""
        self.remote_host = None if self._host in _LOOPBACK else self._host
        if compute_settings().offline and self.remote_host:
            raise ParameterError(f"`offline` forbids requests to {self._host}", remedy="use a server on this machine")
        self._refused: set[str] = set()
        self._failures_in_row = 0
        self.usage = Usage()
        self._model = model or self._only_model()
        self.name = name or f"{self._url}#{self._model}"

    # -------------------------------------------------------------------------------------------------------- answering

    def answer(self, requests: Sequence[ChatRequest]) -> list[Answer]:
        settings = request_settings()
        cache = AnswerCache(settings.answers)
        keys = [request_key(self.name, request) for request in requests]
        by_key = dict(zip(keys, requests, strict=True))
        answers = cache.get(by_key)
        self.usage.from_cache += len(answers)
        if new := {key: request for key, request in by_key.items() if key not in answers}:
            run(self._ask_all(new, settings, cache, answers))
        for answer in answers.values():
            if answer.failure:
                self.usage.failed[answer.failure] += 1
        return [answers[key] for key in keys]

    async def _ask_all(
        self,
        requests: Mapping[bytes, ChatRequest],
        settings: RequestSettings,
        cache: AnswerCache,
        answers: dict[bytes, Answer],
    ) -> None:
        """Ask requests, and keep each answer as it comes."""
        waiting = iter(requests.items())
        stop = asyncio.Event()  # after an error requests under way end with their present attempt
        errors: list[EntaugError] = []

        async def work(client: httpx.AsyncClient) -> None:
            for key, request in waiting:
                try:
                    answer, is_final = await self._ask(client, settings, stop, request)
                    self.usage.requests += 1
                    # A request that was given up is asked again by the next run, so its failure is not kept.
                    answers[key] = cache.put(key, answer) if is_final else answer
                    self._check_failures(answer, is_final)
                except EntaugError as error:
                    errors.append(error)
                    stop.set()
                if stop.is_set():
                    return

        async with self._client() as client:
            await asyncio.gather(*(work(client) for _ in range(min(settings.concurrency or 1, len(requests)))))
        if errors:
            raise errors[0]

    def _check_failures(self, answer: Answer, is_final: bool) -> None:
        self._failures_in_row = 0 if is_final else self._failures_in_row + 1
        if self._failures_in_row == _CONSECUTIVE_FAILURES:
            raise EntaugError(
                f"{self._url}: {self._failures_in_row} requests in a row failed ({answer.failure})",
                remedy="run the same command again to continue when the server works",
            )

    async def _ask(
        self, client: httpx.AsyncClient, settings: RequestSettings, stop: asyncio.Event, request: ChatRequest
    ) -> tuple[Answer, bool]:
        """Ask one request until it is answered or given up; return whether the answer is final."""
        attempt = 0
        while True:
            refused = frozenset(self._refused)
            try:
                completion = await exchange(
                    client,
                    "POST",
                    "chat/completions",
                    settings.timeout or 0.0,
                    body=self._body(request, refused),
                    secrets=self._secrets(),
                )
                return self._read(completion, request), True
            except Failure as error:
                failure = error
            if failure.is_fatal:
                raise EntaugError(f"{self._url}: {failure.reason}", remedy=failure.remedy)
            parameter = failure.refused_parameter
            if parameter in _OPTIONAL and parameter not in refused:  # the request can be sent without it
                self._refused.add(parameter)
                continue
            if not failure.may_pass:
                return Answer("", failure.reason), True
            if attempt >= (settings.retries or 0) or stop.is_set():
                return Answer("", failure.reason), False
            self.usage.repeated[failure.reason] += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), retry_delay(attempt, failure))
            attempt += 1

    def _body(self, request: ChatRequest, refused: frozenset[str]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": role, "content": text} for role, text in request.messages],
        }
        values = {"seed": request.seed, "temperature": request.temperature, "max_tokens": request.max_tokens}
        for name, value in values.items():
            key = name if name not in refused else _OPTIONAL[name]
            if key is not None:
                body[key] = value
        return body

    def _read(self, completion: Any, request: ChatRequest) -> Answer:
        """The answer in what the server sent, the tokens of which are counted. No other text of it is kept."""
        try:
            choice = completion["choices"][0]
            text, reason = choice["message"]["content"], choice.get("finish_reason")
        except (LookupError, TypeError):
            raise invalid_answer() from None
        if not isinstance(text, str | None):
            raise invalid_answer()
        self.usage.add_tokens(_token_counts(completion))
        text = _without_thoughts(text or "").strip()
        faults = {
            "the answer holds broken characters": any("\ud800" <= character <= "\udfff" for character in text),
            "the answer repeats the API key": any(s in text for s in self._secrets() if len(s) >= _SHORTEST_KEY),
            "the answer is far longer than was asked for": len(text)
            > _LONGEST_ANSWER + _LONGEST_TOKEN * request.max_tokens,
        }
        if failure := next((fault for fault, is_found in faults.items() if is_found), None):
            return Answer("", failure)
        if reason == "length":
            return Answer(text, INCOMPLETE)
        if reason == "content_filter":
            return Answer(text, "the server's content filter withheld the answer")
        return Answer(text) if text else Answer("", "the answer is empty")

    # ------------------------------------------------------------------------------------------------------- the client

    def _secrets(self) -> list[str]:
        return [key for key in (os.environ.get(name, "").strip() for name in (API_KEY, _OPENAI_KEY)) if key]

    def _client(self) -> httpx.AsyncClient:
        key = key_variable(API_KEY)
        if self._host == _OPENAI_HOST:
            key = key or key_variable(_OPENAI_KEY)
            if not key:
                raise ParameterError(
                    f"{_OPENAI_HOST} needs an API key", remedy=f"set the environment variable {API_KEY}"
                )
        # A proxy is not asked for this machine.
        return create_client(self._url, key, use_proxies=self.remote_host is not None)

    def _only_model(self) -> str:
        """The name of the only model of the server."""
        try:
            names = self._names(run(self._list()))
        except Failure as failure:
            remedy = failure.remedy or "check the address, and name the model: http://HOST:PORT/v1#MODEL"
            raise MissingModelError(f"{self._url}: {failure.reason}", remedy=remedy) from None
        if len(names) != 1:
            shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise MissingModelError(
                f"{self._url} has {len(names)} models{f' ({shown})' if names else ''}",
                remedy=f"name one: {self._url}#MODEL",
            )
        return names[0]

    async def _list(self) -> Any:
        async with self._client() as client:
            return await exchange(client, "GET", "models", _LIST_SECONDS, secrets=self._secrets())

    def _names(self, models: Any) -> list[str]:
        """The names of the models in the list of a server; what cannot be a name is left out."""
        entries = models.get("data") if isinstance(models, dict) else None
        if not isinstance(entries, list):
            raise invalid_answer()
        secrets = self._secrets()

        def is_name(name: object) -> bool:
            is_text = isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST_NAME
            return is_text and not any(secret in str(name) for secret in secrets)

        return sorted({entry["id"] for entry in entries if isinstance(entry, dict) and is_name(entry.get("id"))})


def _token_counts(completion: Mapping[str, Any]) -> tuple[int, int] | None:
    """The tokens of a prompt and its answer, as the server counts them; None if it does not, or no such numbers."""
    usage = completion.get("usage")
    if not isinstance(usage, dict):
        return None
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(read) is int and type(written) is int and 0 <= read <= _MOST_TOKENS and 0 <= written <= _MOST_TOKENS:
        return read, written
    return None


def _without_thoughts(text: str) -> str:
    """A text without what is between the marks of thoughts, in one pass: it may hold millions of marks."""
    kept, position = [], 0
    while (begin := _THOUGHTS_BEGIN.search(text, position)) and (end := _THOUGHTS_END.search(text, begin.end())):
        kept.append(text[position : begin.start()])
        position = end.end()
    return "".join([*kept, text[position:]])


def request_key(model: str, request: ChatRequest) -> bytes:
    """Return the key of a request: a digest of the model and of all that the answer depends on."""
    content = [model, list(map(list, request.messages)), request.seed, request.max_tokens, float(request.temperature)]
    return hashlib.sha256(json.dumps(content).encode()).digest()


class AnswerCache:
    """Answers by request in a file of SQLite, which several processes may use at the same time."""

    # It holds digests of requests and the answers, neither prompts nor API keys.

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else cache_dir() / "answers.sqlite"
        with self._connection() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, text TEXT, failure TEXT)")

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Answer]:
        """Return the answers to requests."""
        wanted = list(keys)
        answers: dict[bytes, Answer] = {}
        with self._connection() as connection:
            for start in range(0, len(wanted), _KEYS_PER_QUERY):
                some = wanted[start : start + _KEYS_PER_QUERY]
                query = f"SELECT key, text, failure FROM answers WHERE key IN ({','.join('?' * len(some))})"  # noqa: S608
                for key, *answer in connection.execute(query, some):
                    answers[bytes(key)] = Answer(*answer)
        return answers

    def put(self, key: bytes, answer: Answer) -> Answer:
        """Keep an answer, unless another process has kept one in the meantime."""
        with self._connection() as connection:
            connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", (key, *answer))
        return self.get([key])[key]

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction; connections are short, because they may not cross a fork."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self.path, timeout=_LOCK_SECONDS)) as connection, connection:
                yield connection
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            remedy = "name another file by `answers`, or delete it"
            raise OutputError(f"answers cannot be kept there ({reason})", path=str(self.path), remedy=remedy) from None
