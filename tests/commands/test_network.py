"""Commands that need no network open no connection."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import EXAMPLE

# Runs a command in a process in which the first attempt to connect to anything, or to look up a name, ends it.
DRIVER = """
import os, socket, sys

def refuse(*args, **kwargs):
    print("a connection was opened:", args[1:], file=sys.stderr)
    os._exit(99)

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
if sys.argv[1] == "probe":
    socket.create_connection(("localhost", 9))
from entaug.commands.main import main
sys.exit(main(sys.argv[1:]))
"""
TRAIN = str(EXAMPLE / "train.conll")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("augment", TRAIN, "-m", "mr,sis,lwtr", "-o", "out.conll"),
        ("check", TRAIN),
        ("convert", TRAIN, "out.jsonl", "--allow-loss", "all"),
        ("quality", TRAIN, "--no-models", "-o", "out.md"),
        ("subset", TRAIN, "-o", "out", "--sizes", "10"),
        ("list", "methods"),
        ("models", "bom"),
    ],
    ids=lambda arguments: " ".join(arguments[::2][:2]),
)
def test_rules_checks_and_conversions_open_no_connection(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    finished = run(tmp_path, *arguments)
    assert finished.returncode == 0, finished.stderr


def test_a_connection_would_be_noticed(tmp_path: Path) -> None:
    assert run(tmp_path, "probe").returncode == 99
