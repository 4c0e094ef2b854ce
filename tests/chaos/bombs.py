"""Small inputs that unpack, nest or count without end: one line of error, in bounded memory and time."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from pathlib import Path
from random import Random

from chaos.tools import Counts, Tools, check, error_line

__all__ = ["trial"]

_MEMORY = 5 << 30  # bytes of addresses, most of which are those of libraries
_SECONDS = 60  # of processor time

_LABEL_STUDIO = (
    '[{"data": {"text": "Ada left"}, "annotations": [{"result": [{"type": "labels", "from_name": "label", '
    '"to_name": "text", "value": {"start": %s, "end": %s, "text": "Ada", "labels": ["PER"]}}]}]}]'
)
_WEBANNO = "#FORMAT=WebAnno TSV 3.3\n#T_SP=x.Entity|value\n\n#Text=Ada left\n1-1\t%s-%s\tAda\tPER\n1-2\t4-8\tleft\t_\n"
_BIOC = (
    '{"id": "1", "passages": [{"offset": 0, "text": "Ada left", "annotations": [{"infons": {"type": "PER"}, '
    '"locations": [{"offset": %s, "length": %s}]}]}]}'
)
_TEXT = {
    "jsonl": (".jsonl", '{"tokens": ["Ada", "left"], "entities": [{"start": %s, "end": %s, "type": "PER"}]}'),
    "doccano": (".jsonl", '{"text": "Ada left", "label": [[%s, %s, "PER"]]}'),
    "prodigy": (
        ".jsonl",
        '{"text": "Ada left", "spans": [{"start": %s, "end": %s, "label": "PER"}], "answer": "accept"}',
    ),
    "gliner": (".json", '[{"tokenized_text": ["Ada", "left"], "ner": [[%s, %s, "PER"]]}]'),
    "w2ner": (".json", '[{"sentence": ["Ada", "left"], "ner": [{"index": [%s, %s], "type": "PER"}]}]'),
    "spacy-json": (".json", '[["Ada left", {"entities": [[%s, %s, "PER"]]}]]'),
    "label-studio": (".json", _LABEL_STUDIO),
    "bartner-nested": (".jsonlines", '{"sentences": [["Ada", "left"]], "ners": [[[%s, %s, "PER"]]]}'),
    "brat": (".ann", "T1\tPER %s %s\tAda\n"),
    "webanno": (".tsv", _WEBANNO),
    "pubtator": (".pubtator", "1|t|Ada left\n1|a|\n1\t%s\t%s\tAda\tPER\tx\n"),
    "bioc": (".json", _BIOC),
    "i2b2": (".con", 'c="ada" 1:%s 1:%s||t="per"\n'),
}
_NUMBERS = (
    *("9" * 20, "9" * 400, "9" * 5000, "-1", "-" + "9" * 30, "1e400", "1e308", "2147483648", "9223372036854775808"),
    *("1.5", "NaN", "Infinity", "true", "null", '"0"', "[]", "00", "0x1"),
)


def trial(rng: Random, folder: Path, tools: Tools) -> Counts:
    """One bomb through ``check`` or ``convert``."""
    kind = rng.choice([numbers, numbers, numbers, numbers, deep, deep, gzipped, long_line, docbin])
    path, format_ = kind(rng, folder)
    command = rng.choice(["check", "convert"])
    argv = ["check", path.name] if command == "check" else ["convert", path.name, "out.jsonl"]
    limits = {"AS": _MEMORY, "CPU": _SECONDS}
    ended = tools.light.run([*argv, "--from", format_], folder, env=tools.no_models, limits=limits)
    told = f"{kind.__name__} {path.name} as {format_}: exit code {ended.code}, {ended.cpu:.0f} s, {ended.mib:.0f} MiB"
    check(ended.code in (0, 1, 2), f"{told}: {ended.err[-800:]}")
    check("Traceback" not in ended.err, f"{told}: {ended.err[-800:]}")
    if ended.code == 2:
        error_line(ended)
        check(not (folder / "out.jsonl").exists(), f"{told}: refused, and a result")
    check(len(ended.err) < 20_000, f"{told}: {len(ended.err)} characters of error")
    return Counter({kind.__name__.replace("_", " "): 1, f"exit code {ended.code}": 1})


def numbers(rng: Random, folder: Path) -> tuple[Path, str]:
    """Offsets that no text has, or that are no numbers."""
    name = rng.choice(sorted(_TEXT))
    ending, text = _TEXT[name]
    path = folder / f"in{ending}"
    path.write_text(text % (rng.choice(("0", *_NUMBERS)), rng.choice(("3", *_NUMBERS))) + "\n", encoding="utf-8")
    if name in ("brat", "i2b2"):
        (folder / "in.txt").write_text("Ada left", encoding="utf-8")
    return path, name


def deep(rng: Random, folder: Path) -> tuple[Path, str]:
    """JSON that is nested without end, as a whole or in a further field."""
    name = rng.choice([n for n in sorted(_TEXT) if _TEXT[n][0].startswith(".json")])
    ending, text = _TEXT[name]
    depth = rng.choice([500, 1100, 20_000, 1_000_000])
    opening, closing = rng.choice([("[", "]"), ('{"a":', "}")])
    nest = opening * depth + ("1" if rng.random() < 0.5 else "") + closing * depth
    whole = text % ("0", "1")
    end = whole.rindex("}")
    content = rng.choice([nest, opening * depth, f'{whole[:end]}, "meta": {nest}{whole[end:]}'])
    path = folder / f"in{ending}"
    path.write_text(content + "\n", encoding="utf-8")
    return path, name


def gzipped(rng: Random, folder: Path) -> tuple[Path, str]:
    """A small file that unpacks to half a gigabyte or more."""
    name, ending = rng.choice(
        [
            ("conll", ".conll"),
            ("jsonl", ".jsonl"),
            ("gliner", ".json"),
            ("w2ner", ".json"),
            ("doccano", ".jsonl"),
            ("label-studio", ".json"),
        ]
    )
    block = rng.choice([b"\0", b" ", b"[", b"a", b'"'])
    path = folder / f"in{ending}.gz"
    with gzip.open(path, "wb", compresslevel=1) as out:
        for _ in range(rng.choice([40, 300, 1200])):
            out.write(block * (1 << 20))
    return path, name


def long_line(rng: Random, folder: Path) -> tuple[Path, str]:
    """One line of many megabytes: one token, or very many on a line."""
    size = rng.choice([1, 8, 40]) << 20
    name, content = rng.choice(
        [
            ("conll", "x" * size + "\tB-PER\n\n"),
            ("conll", "x\t" * (size // 2)),
            ("jsonl", json.dumps({"tokens": ["x" * size], "entities": [{"start": 0, "end": 1, "type": "PER"}]})),
            ("jsonl", json.dumps({"tokens": ["x"], "entities": [], "id": "x" * size})),
            ("conll", "\n" * size),
            ("conll", " " * size),
        ]
    )
    path = folder / ("in.conll" if name == "conll" else "in.jsonl")
    path.write_text(content, encoding="utf-8")
    return path, name


def docbin(rng: Random, folder: Path) -> tuple[Path, str]:
    """What spaCy packs with zlib: zeros, or MessagePack that announces more than there is."""
    heads = (b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\x91" * 100_000)
    packer = zlib.compressobj(1)
    path = folder / "in.spacy"
    with path.open("wb") as out:
        if rng.random() < 0.5:
            out.write(packer.compress(rng.choice(heads)))
        for _ in range(rng.choice([0, 100, 600])):
            out.write(packer.compress(rng.choice([bytes(1 << 20), b" " * (1 << 20)])))
        out.write(packer.flush())
    return path, "docbin"
