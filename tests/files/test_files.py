"""Files and folders that appear when they are complete: what is beside them, and what killed processes leave."""

from __future__ import annotations

import errno
import gzip
import io
import os
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import pytest

from entaug.errors import InputError, OutputError
from entaug.files import atomic, streams
from entaug.files.atomic import atomic_file, atomic_folder, atomic_path, output_error
from entaug.files.streams import read_line_chunks, rereadable_path

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


class CountedBlocks(bytes):
    """A block that counts the bytes that are searched."""

    searched = 0

    def rfind(self, *args: object) -> int:
        CountedBlocks.searched += len(self)
        return super().rfind(*args)  # type: ignore[arg-type]


def test_a_long_line_is_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a line has so far was searched and copied with each further block: a line of 300 MiB took minutes."""
    path = tmp_path / "long.conll.gz"
    content = b"a\n" + b"b" * 50_000 + b"\nc"
    path.write_bytes(gzip.compress(content))
    monkeypatch.setattr(streams, "_BLOCK", 100)
    plain = streams._read_blocks
    monkeypatch.setattr(streams, "_read_blocks", lambda *args: map(CountedBlocks, plain(*args)))
    CountedBlocks.searched = 0
    chunks = list(read_line_chunks(path))
    assert [(number, [len(line) for line in lines]) for number, lines in chunks] == [(1, [1]), (2, [50_000]), (3, [1])]
    assert CountedBlocks.searched == len(content)


def test_lines_are_those_of_the_whole_text_whatever_the_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffa\r\n\nbücher\n\nlast one".encode())
    for size in range(1, 30):
        monkeypatch.setattr(streams, "_BLOCK", size)
        chunks = list(read_line_chunks(path))
        assert [line.rstrip("\r") for _, lines in chunks for line in lines] == ["a", "", "bücher", "", "last one"]
        assert [number for number, _ in chunks] == [
            1 + sum(len(ls) for _, ls in chunks[:i]) for i in range(len(chunks))
        ]


def test_a_line_without_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_MAX_LINE", 1 << 22)
    path = tmp_path / "bomb.conll.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"b" * (1 << 26), 1))
    tracemalloc.start()
    with pytest.raises(InputError, match="gz:2: a line of more than 4 MiB"):
        list(read_line_chunks(path))
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero here")
def test_devices_and_endless_input_do_not_fill_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_MAX_LINE", 1 << 22)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for device in ("/dev/zero", "/dev/urandom"):
        with pytest.raises(InputError, match=f"{device}: is a device; name a file"), rereadable_path(device):
            pass
    with rereadable_path("/dev/null") as path:
        assert path.read_bytes() == b""

    class Endless(io.RawIOBase):
        def __init__(self, block: bytes) -> None:
            self.block = block

        def read(self, size: int = -1) -> bytes:
            assert max((f.stat().st_size for f in tmp_path.rglob("*") if f.is_file()), default=0) < 1 << 24
            return self.block[:size]

    class Stdin:
        def __init__(self, block: bytes) -> None:
            self.buffer = Endless(block)

    monkeypatch.setattr(sys, "stdin", Stdin(b"\0" * (1 << 20)))
    with pytest.raises(InputError, match="<stdin>: has no end of line in 4 MiB"), rereadable_path("-"):
        pass
    monkeypatch.setattr(sys, "stdin", Stdin(b"a\n" * (1 << 19)))
    monkeypatch.setattr(streams, "_FREE", shutil.disk_usage(tmp_path).free - (1 << 22))
    told = r"<stdin>: is larger than the space for its temporary copy, [345] MiB"
    with pytest.raises(OutputError, match=told), rereadable_path("-"):
        pass
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_who_waits_for_a_pipe_says_so(tmp_path: Path) -> None:
    pipe = tmp_path / "gold.conll"
    os.mkfifo(pipe)
    code = (
        "import sys; from entaug.files import streams; streams._PATIENCE = 0.01; from entaug.commands.main import main"
    )
    code += "; sys.exit(main(['check', sys.argv[1]]))"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(pipe)], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        assert run.stderr is not None
        said = run.stderr.readline()
        pipe.write_bytes(b"Ada\tB-PER\n")
        assert run.wait() == 0
    assert said == f"entaug: {pipe}: is a pipe, waiting for a process that writes to it\n".encode()


@POSIX
@pytest.mark.parametrize("name", ["out.parquet", "out.conll", "out.jsonl.gz"])
def test_a_limit_on_the_size_of_files_is_told_of_the_output(tmp_path: Path, name: str) -> None:
    gold = tmp_path / "gold.conll"
    gold.write_text("".join(f"word{i}{i * i}\tB-X\n\n" for i in range(6000)))
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))"
    code += "; from entaug.commands.main import main; sys.exit(main(['convert', *sys.argv[1:]]))"
    run = subprocess.run(
        [sys.executable, "-c", code, gold, tmp_path / name], capture_output=True, text=True, check=False
    )
    told = f"entaug: error: {tmp_path / name}: cannot be written (File too large); raise the limit"
    assert run.returncode == 3
    assert run.stderr.startswith(told), run.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.conll"]


@POSIX
def test_a_folder_that_may_not_be_read_is_an_error_of_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text("Ada")
    (folder / "a.ann").write_text("")
    folder.chmod(0)
    if os.access(folder, os.R_OK):  # root reads everything
        refused = PermissionError(13, "Permission denied", str(folder / "dataset_dict.json"))

        def is_file(path: Path) -> bool:
            if path.parent == folder:
                raise refused
            return path.exists()

        monkeypatch.setattr(Path, "is_file", is_file)
    from entaug.commands.main import main

    assert main(["check", str(folder)]) == 2
    folder.chmod(0o700)


def test_an_error_names_the_output_not_its_temporary_place(tmp_path: Path) -> None:
    for inner in ("", "/text/a.ann"):
        with pytest.raises(OutputError) as caught, atomic_path(tmp_path / "a.csv") as new:
            raise output_error(Path(f"{new}{inner}"), OSError(errno.ENOSPC, "No space left on device"))
        assert str(caught.value).startswith(f"{tmp_path}/a.csv{inner}: cannot be written (No space left on device)")
    assert not list(tmp_path.iterdir())
