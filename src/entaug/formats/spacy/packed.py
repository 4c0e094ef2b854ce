"""The packed bytes of a DocBin, unpacked in parts and within bounds: a small file may hold far more than memory."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Sized
from pathlib import Path
from typing import Any

from entaug.errors import InputError

__all__ = ["read_message", "unpacked"]

_MAX_SIZE = 1 << 34  # bytes, unpacked; most are zeros, which are not kept
_MIN_LIMIT = 1 << 28  # bytes that any file may have unpacked, and ...
_MAX_RATIO = 200  # ... bytes for each packed one; zlib packs a thousand zeros into one
_MAX_ITEMS = 1 << 22  # items that the lists and mappings of any file may have; larger files one for each byte
_BLOCK = 1 << 15  # words whose numbers are in memory at once as they are in the file
_INPUT = 1 << 16  # packed bytes that are unpacked at once


class _Inflated(io.RawIOBase):
    """Packed bytes, unpacked as they are read."""

    def __init__(self, data: bytes, path: Path) -> None:
        self._data = data
        self._path = path
        self._decompressor = zlib.decompressobj()
        self._position = 0
        self._left = min(_MAX_SIZE, max(_MIN_LIMIT, _MAX_RATIO * len(data)))

    @property
    def has_ended(self) -> bool:
        """Whether everything was read, and nothing is missing."""
        return not self.read(1) and self._decompressor.eof

    def read(self, size: int = -1) -> bytes:
        """Return as many bytes as asked for, or fewer at the end."""
        parts = []
        while size > 0 and not self._decompressor.eof:
            packed = self._decompressor.unconsumed_tail
            if not packed:
                packed = self._data[self._position : self._position + _INPUT]
                self._position += len(packed)
            part = self._decompressor.decompress(packed, size)
            if not part and not packed:
                break
            parts.append(part)
            size -= len(part)
            self._left -= len(part)
            if self._left < 0:
                message = f"is {len(self._data):,} bytes that hold too many unpacked"
                remedy = "check that it is a DocBin; split a large one"
                raise InputError(message, path=str(self._path), remedy=remedy)
        return b"".join(parts)


def read_message(data: bytes, path: Path) -> dict[str, Any]:
    """Read the parts of a DocBin."""
    from srsly import msgpack

    stream = _Inflated(data, path)
    count = _counter(max(_MAX_ITEMS, len(data)))
    # The class of that name without underscore calls the hooks that are installed for all of srsly.
    unpacker = msgpack._Unpacker(  # noqa: SLF001
        stream, raw=False, list_hook=count, object_pairs_hook=lambda pairs: count(dict(pairs)), max_buffer_size=0
    )
    message: dict[str, Any] = {}
    for _ in range(unpacker.read_map_header()):
        name = unpacker.unpack()
        if name == "tokens":
            size = _read_size(unpacker)
            if "attrs" in message:
                message[name] = _read_table(unpacker.read_bytes, size, len(message["attrs"]))
            else:
                message[name] = unpacker.read_bytes(size)
        else:
            message[name] = unpacker.unpack()
    if isinstance(table := message["tokens"], bytes):
        message["tokens"] = _read_table(io.BytesIO(table).read, len(table), len(message["attrs"]))
    if unpacker.read_bytes(1) or not stream.has_ended:
        raise ValueError("it ends too early or too late")
    return message


def _read_size(unpacker: Any) -> int:
    """The number of bytes that follow, from the head of a binary value."""
    kind = unpacker.read_bytes(1)
    width = {b"\xc4": 1, b"\xc5": 2, b"\xc6": 4}.get(kind)
    if width is None:
        raise ValueError("its words are no table")
    return int.from_bytes(unpacker.read_bytes(width), "big")


def _read_table(read: Callable[[int], bytes], size: int, width: int) -> tuple[int, list[Any]]:
    """The number of rows of a table, and its columns; None for those without any number but zero."""
    import numpy as np

    if not width or size % (8 * width):
        raise ValueError("its parts do not fit")
    blocks: list[list[Any]] = [[] for _ in range(width)]
    left = size
    while left:
        raw = read(min(left, 8 * width * _BLOCK))
        if not raw:
            raise ValueError("it ends too early")
        left -= len(raw)
        rows = np.frombuffer(raw, dtype="uint64").reshape(-1, width)
        for column, numbers in zip(blocks, rows.T, strict=True):
            most = numbers.max()
            # Zeros take no memory, other small numbers little.
            small = numbers.astype(np.min_scalar_type(most)) if most else np.broadcast_to(np.uint8(0), len(rows))
            column.append(small)
    used = [any(numbers.strides != (0,) for numbers in column) for column in blocks]
    columns = [np.concatenate(column) if is_used else None for column, is_used in zip(blocks, used, strict=True)]
    return size // (8 * width), columns


def _counter(limit: int) -> Callable[[Any], Any]:
    """A function that returns what it is given, until the items of all that make too many."""
    left = limit

    def count(items: Sized) -> Sized:
        nonlocal left
        left -= len(items) + 1
        if left < 0:
            raise ValueError("it holds too many items for its size")
        return items

    return count


def unpacked(data: bytes, *, lists: bool = True) -> Any:
    """Read a packed value."""
    from srsly import msgpack

    # Without a hook srsly searches for all installed hooks at each call.
    count = _counter(max(_MAX_ITEMS, len(data))) if len(data) > _INPUT else None
    more = {} if count is None else {"list_hook": count}
    return msgpack.unpackb(data, raw=False, use_list=lists, object_pairs_hook=dict, **more)
