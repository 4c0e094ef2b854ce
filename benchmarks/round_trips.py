"""Every real corpus through every format and back: is it the same, and how fast?

    .venv/bin/python benchmarks/round_trips.py --write benchmarks/results/round-trips.md

A corpus file is read, all sentences that a format can carry are written in it (it refuses the others by name, and they
are counted), and what was written is read. The same means: the same tokens and mentions in the same order, and the same
spaces where the corpus has them and the format a place for them; of texts without tokens: the same letters, mentions.
Speed is sentences a second on one core, the best of the files of at least five thousand sentences, start-up left out.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import entaug
from entaug.core.data import Sentence
from entaug.errors import LossError
from entaug.formats.base import ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.files import FORMATS, find_format, open_file, target
from places import DATA

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "formats")]

_LARGE = 5000
# These carry texts alone: the same means the same letters and mentions there.
WITHOUT_TOKENS = ("bioc", "brat", "chat", "pubtator")


def corpora() -> dict[str, list[Sentence]]:
    """All files of the real corpora."""
    from test_corpora import COUNTS, REPAIRED, options

    found = {}
    for name in COUNTS:
        opened = open_file(DATA / name, **options(name))
        found[name] = list(opened.sentences(ReadReport(repair=name in REPAIRED)))
    return found


def there_and_back(format_name: str, sentences: list[Sentence], folder: Path) -> dict[str, Any]:
    """One corpus in one format."""
    found = find_format(format_name)
    is_folder = isinstance(found, BufferedFormat) and found.folder
    to = target(folder / f"made{'' if is_folder or not found.extensions else found.extensions[0]}", format_name)
    kept = []
    for sentence in sentences:
        try:
            to.format.dump(sentence, to.dialect)
        except LossError:
            continue
        kept.append(sentence)
    record: dict[str, Any] = {"refused": len(sentences) - len(kept), "sentences": len(kept)}
    if not kept:
        return record
    begun = time.perf_counter()
    entaug.write(kept, to.path, format_name)
    written = time.perf_counter()
    options = {"misaligned": "cut", "split": "none"} if format_name in WITHOUT_TOKENS else {}
    back = list(open_file(to.path, format_name, **options).sentences())
    done = time.perf_counter()
    record["writing"], record["reading"] = len(kept) / (written - begun), len(kept) / (done - written)
    if format_name in WITHOUT_TOKENS:
        record["same"] = sorted(map(letters, kept)) == sorted(map(letters, back))  # texts come in the order of names
    else:
        record["same"] = len(back) == len(kept) and all(
            (a.tokens, a.mentions) == (b.tokens, b.mentions)
            and (a.spaces in (None, b.spaces) or not found.carries.spaces)
            for a, b in zip(kept, back, strict=True)
        )
    return record


def letters(sentence: Sentence) -> tuple[str, list[tuple[str, str]]]:
    """A sentence and its mentions without white space."""
    mentions = sorted((m.label, "".join("".join(sentence.mention_tokens(m)).split())) for m in sentence.mentions)
    return "".join("".join(sentence.tokens).split()), mentions


def main() -> None:
    """Try and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=list(FORMATS), default=list(FORMATS))
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    found = corpora()
    lines = [
        "# Every corpus through every format and back",
        "",
        (
            f"`benchmarks/round_trips.py`: {len(found)} files, {sum(map(len, found.values())):,} sentences; "
            f"{platform.machine()}, one core, Python {platform.python_version()}, entaug {entaug.__version__}."
        ),
        "",
        "| format | files the same | sentences the same | refused (nested or with gaps) | read/s | written/s |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in args.only:
        records = {}
        for corpus, sentences in found.items():
            with tempfile.TemporaryDirectory() as folder:
                records[corpus] = there_and_back(name, sentences, Path(folder))
        some = {corpus: r for corpus, r in records.items() if r["sentences"]}
        wrong = [corpus for corpus, r in some.items() if not r["same"]]
        large = [r for r in some.values() if r["sentences"] >= _LARGE] or list(some.values())
        same = sum(r["sentences"] for r in some.values() if r["same"])
        speed = [max((r[what] for r in large), default=0.0) for what in ("reading", "writing")]
        refused = sum(r["refused"] for r in records.values())
        lines.append(
            f"| {name} | {len(some) - len(wrong)} of {len(some)} | {same:,} | {refused:,} "
            f"| {speed[0]:,.0f} | {speed[1]:,.0f} |"
        )
        print(lines[-1], *wrong[:5], flush=True)
    if args.write:
        args.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
