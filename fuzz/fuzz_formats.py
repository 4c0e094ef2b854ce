"""Coverage-guided fuzzing of the readers: for any bytes, a reader yields sentences or raises an `EntaugError`.

    .venv/bin/python fuzz/fuzz_formats.py jsonl -max_total_time=600 fuzz/seeds/jsonl

The sentences are written and read again, and must be the same. A folder is one file to the fuzzer: its files follow one
another, each preceded by a line ``=== NAME``. Inputs that revealed a fault are seeds, and
``tests/formats/test_fuzz.py`` runs all seeds. ``make fuzz`` fuzzes each format for ten minutes; it installs atheris.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from entaug.core.data import Sentence
from entaug.errors import EntaugError, LossError
from entaug.files.streams import encode_text
from entaug.formats.base import ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.corpus_file import CorpusFile
from entaug.formats.files import find_format

_MARK = re.compile(rb"=== ([\w.-]{1,40})\n")
_MAX_SENTENCES = 50  # of an input that are checked


def put(folder: Path, name: str, data: bytes) -> Path:
    """Write an input as a file, or as a folder of files."""
    format_ = find_format(name)
    if format_.folder:
        path = folder / "in"
        path.mkdir()
        parts = _MARK.split(data)[1:]
        for own, content in zip(parts[::2], parts[1::2], strict=True):
            if own.strip(b"."):
                (path / own.decode()).write_bytes(content)
        return path
    path = folder / f"in{format_.extensions[0] if format_.extensions else ''}"
    path.write_bytes(data)
    return path


def check(name: str, data: bytes) -> int:
    """Read an input in one format, write its sentences, and read them again; return their number."""
    format_: Any = find_format(name)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        path = put(folder, name, data)
        with contextlib.suppress(EntaugError):
            list(format_.read(path, format_.detect_dialect(path), ReadReport(repair=True, on_fault=lambda _: None)))
        try:
            dialect = format_.detect_dialect(path)
            sentences = list(format_.read(path, dialect, ReadReport()))[:_MAX_SENTENCES]
        except EntaugError:
            return 0
        kept = []
        for sentence in sentences:
            with contextlib.suppress(LossError):
                format_.dump(sentence, dialect)
                kept.append(sentence)
        if not kept:
            return 0
        again = folder / f"out{'' if path.is_dir() else path.suffix}"
        is_buffered = isinstance(format_, BufferedFormat)
        if is_buffered:
            CorpusFile(again, format_, dialect).write(kept)
        else:
            again.write_bytes(encode_text("".join(format_.dump(s, dialect) for s in kept)))
        back = list(format_.read(again, format_.detect_dialect(again) if is_buffered else dialect, ReadReport()))
        wanted = [format_.as_stored(s, dialect) for s in kept]
        # How a text without tokens is cut may change with what stands beside it.
        if name in ("bioc", "brat", "pubtator"):
            assert surfaces(back) == surfaces(wanted)
        else:
            assert [(s.tokens, s.mentions) for s in back] == [(s.tokens, s.mentions) for s in wanted]
        return len(kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def surfaces(sentences: list[Sentence]) -> list[tuple[str, str]]:
    """Labels and letters of mentions, in order."""
    return sorted((m.label, "".join("".join(s.mention_tokens(m)).split())) for s in sentences for m in s.mentions)


def main() -> None:
    """Fuzz one reader."""
    import atheris

    name, *rest = sys.argv[1:]
    atheris.instrument_all()
    find_format(name)
    # Late imports of the readers must not count towards the time of an input.
    for seed in sorted((Path(__file__).parent / "seeds" / name).glob("*")):
        check(name, seed.read_bytes())

    def one(data: bytes) -> None:
        check(name, data)

    atheris.Setup([sys.argv[0], "-max_len=4096", "-timeout=30", "-rss_limit_mb=4096", *rest], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
