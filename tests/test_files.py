"""Files and folders that appear when they are complete: what is beside them, and what killed processes leave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from entaug.errors import OutputError
from entaug.files import atomic
from entaug.files.atomic import atomic_file, atomic_folder

POSIX = pytest.mark.skipif(os.name != "posix", reason="asks the system about processes")


def killed(code: str, path: Path) -> None:
    """Run code that is killed within the block that writes a file or a folder."""
    head = "import os, signal, sys\nfrom pathlib import Path\nfrom entaug.files.atomic import *\n"
    head += "path = Path(sys.argv[1])\n"
    result = subprocess.run([sys.executable, "-c", head + code, str(path)], check=False)
    assert result.returncode == -9


DIE = "os.kill(os.getpid(), signal.SIGKILL)"


@POSIX
def test_leftovers_of_killed_processes_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "out [1].txt"
    killed(f"with atomic_file(path) as out:\n    out.write(b'x')\n    out.flush()\n    {DIE}", path)
    [first] = tmp_path.iterdir()
    killed(f"with atomic_folder(path) as new:\n    (new / 'a').write_text('x')\n    {DIE}", path)
    [second] = tmp_path.iterdir()
    assert first.name != second.name
    other = tmp_path / ".other.txt.00000000-1-00000000.tmp"
    other.touch()
    with atomic_file(path) as out:
        assert len(list(tmp_path.iterdir())) == 2
        out.write(b"whole")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([other.name, path.name])
    assert path.read_bytes() == b"whole"


@POSIX
def test_what_a_process_still_writes_stays(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with atomic_file(path) as first:
        atomic._searched.clear()
        with atomic_file(path) as second:
            second.write(b"second")
        first.write(b"first")
    assert path.read_bytes() == b"first"


@POSIX
def test_a_folder_that_was_moved_away_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").write_text("old")
    code = (
        "rename = Path.rename\n"
        "def die(self, target):\n"
        f"    if self.name == path.name and target == path:\n        {DIE}\n"
        "    return rename(self, target)\n"
        "Path.rename = die\n"
        "with atomic_folder(path, lambda old: None) as new:\n    (new / 'new').write_text('new')\n"
    )
    killed(code, path)
    assert not path.exists()
    with pytest.raises(ZeroDivisionError), atomic_folder(path, lambda old: None):
        _ = 1 / len((path / "old").read_text().removeprefix("old"))
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]
    assert (path / "old").read_text() == "old"


def test_a_link_made_in_advance_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    monkeypatch.setattr(atomic, "token_hex", lambda n: "0" * 2 * n)
    name = atomic._temporary_path(tmp_path / "out.txt").name
    (tmp_path / name).symlink_to(precious)
    with pytest.raises(OutputError, match="cannot be written"), atomic_file(tmp_path / "out.txt") as out:
        out.write(b"x")
    assert precious.read_text() == "keep"


def test_long_names_are_written(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120)
    with atomic_file(path) as out:
        out.write(b"x")
    with atomic_folder(tmp_path / ("f" * 250)) as new:
        (new / "x").touch()
    assert len(list(tmp_path.iterdir())) == 2
