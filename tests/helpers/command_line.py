"""Running the command line in tests."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import EXAMPLE
from entaug.commands.main import main


def fails(capsys: pytest.CaptureFixture[str], code: int, *argv: str) -> str:
    """The one line of a failure."""
    try:
        got = main(argv)
    except SystemExit as stop:
        got = int(stop.code or 0)
    out, err = capsys.readouterr()
    assert got == code, err
    assert out == ""
    assert len(err.splitlines()) == 1, err
    return err


def repeated(folder: Path, times: int) -> Path:
    """A file that holds the training sentences of the example so many times."""
    path = folder / "big.conll"
    path.write_bytes((EXAMPLE / "train.conll").read_bytes() * times)
    return path


@contextlib.contextmanager
def heeding_ctrl_c() -> Iterator[None]:
    """What is started in the block heeds Ctrl-C, also where the tests run in the background and are to ignore it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def interrupt_after(sentences: int) -> Callable[[str, int, int | None], None]:
    """A progress callback that interrupts a run after so many augmented sentences."""

    def progress(stage: str, done: int, total: int | None) -> None:
        if stage == "augmenting" and done >= max(1, sentences):
            raise KeyboardInterrupt

    return progress


def files_of(path: Path) -> dict[str, bytes]:
    """The bytes of a file, or of all files of a folder by name."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
