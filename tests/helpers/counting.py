"""Counts in place of seconds: what a piece of work does, the same on every machine."""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_lines(work: Callable[[], object]) -> int:
    """The number of lines of Python that a piece of work runs."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def wait_until(condition: Callable[[], object], limit: float = 300) -> None:
    """Wait until something holds; the limit only ends a test that would wait for ever."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.01)
