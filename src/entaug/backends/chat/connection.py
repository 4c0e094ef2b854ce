"""A connection to a server whose answers end, whatever it sends: after a total time, or at a size."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from typing import Any, Self

import openai

from entaug.backends.chat.failures import InvalidAnswerError, OversizedAnswerError

__all__ = ["MAX_BYTES", "Connection"]

MAX_BYTES = 16 << 20
"""The largest answer that is read; models that think aloud send a few hundred kilobytes."""

# Blocks of other encodings may unpack to any size before it can be looked at.
_ENCODINGS = frozenset({"identity", "gzip", "deflate"})
_OF_TRANSFER = frozenset({"content-encoding", "content-length", "transfer-encoding"})


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
                if len(content) > MAX_BYTES:
                    raise OversizedAnswerError
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
