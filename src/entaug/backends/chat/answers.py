"""A file of answers by request, so that runs can be repeated and continued without asking again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from entaug.backends.instruct import Answer, ChatRequest
from entaug.backends.models.catalogue import cache_dir
from entaug.errors import OutputError

__all__ = ["AnswerCache", "request_key"]

_LOCK_SECONDS = 60.0
_CHUNK = 500  # keys of one query


def request_key(model: str, request: ChatRequest) -> bytes:
    """Return the key of a request: a digest of the model and of all that the answer depends on."""
    content = [model, list(map(list, request.messages)), request.seed, request.max_tokens, float(request.temperature)]
    return hashlib.sha256(json.dumps(content).encode()).digest()


class AnswerCache:
    """Answers by request in a file of SQLite, which several processes may use at the same time."""

    # It holds digests of requests and the answers, neither prompts nor API keys.

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else cache_dir() / "answers.sqlite"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._error(error.strerror or error) from None
        with self._connection() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, text TEXT, failure TEXT)")

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Answer]:
        """Return the answers to requests."""
        wanted = list(keys)
        answers: dict[bytes, Answer] = {}
        with self._connection() as connection:
            for start in range(0, len(wanted), _CHUNK):
                chunk = wanted[start : start + _CHUNK]
                marks = ",".join("?" * len(chunk))
                query = f"SELECT key, text, failure FROM answers WHERE key IN ({marks})"  # noqa: S608 (marks alone)
                answers.update(
                    (bytes(key), Answer(text, failure)) for key, text, failure in connection.execute(query, chunk)
                )
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
            with contextlib.closing(sqlite3.connect(self.path, timeout=_LOCK_SECONDS)) as connection, connection:
                yield connection
        except sqlite3.Error as error:
            raise self._error(error) from None

    def _error(self, reason: object) -> OutputError:
        remedy = "name another file by --answers, or delete it"
        return OutputError(f"answers cannot be kept there ({reason})", path=str(self.path), remedy=remedy)
