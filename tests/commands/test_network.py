"""Commands that need no network open no connection."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import EXAMPLE

# Runs commands in a process in which the first attempt to connect to anything, or to look up a name, ends it.
DRIVER = """
import json, os, socket, sys

def refuse(*args, **kwargs):
    print("a connection was opened:", args[1:], file=sys.stderr)
    os._exit(99)

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from entaug.commands.main import main
for command in json.loads(sys.argv[1]):
    print("running", *command, file=sys.stderr)
    if command[0] == "probe":
        socket.create_connection(("localhost", 9))
    if code := main(command):
        sys.exit(code)
"""
TRAIN = str(EXAMPLE / "train.conll")


COMMANDS = [
    ("augment", TRAIN, "-m", "mr,sis,lwtr", "-o", "out.conll"),
    ("check", TRAIN),
    ("convert", TRAIN, "out.jsonl", "--allow-loss", "all"),
    ("quality", TRAIN, "--no-models", "-o", "out.md"),
    ("subset", TRAIN, "-o", "out", "--sizes", "10"),
    ("list", "methods"),
    ("models", "bom"),
]


@pytest.mark.parametrize(("commands", "code"), [(COMMANDS, 0), ([("probe",)], 99)])
def test_rules_checks_and_conversions_open_no_connection(
    commands: list[tuple[str, ...]], code: int, tmp_path: Path
) -> None:
    """As one that was opened would be noticed."""
    driver = [sys.executable, "-c", DRIVER, json.dumps(commands)]
    finished = subprocess.run(driver, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == code, finished.stderr
