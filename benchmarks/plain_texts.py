"""How fast texts without tokens are read, in each format that has such, beside spaCy's tokeniser alone.

    .venv/bin/python benchmarks/plain_texts.py --write benchmarks/results/plain-texts.md

20,000 different sentences of the real corpora (ENTAUG_DATA or ../shared/data) are written without their tokens, each a
text, and read. Speed is sentences a second of processor time on one core, spaCy loaded before: the first time, when
most words are new to it, and once more, as when a file is augmented, which is read twice. Each row is a process of its
own. "As spaCy comes" is the same with the tokeniser as `spacy.blank` gives it: it remembers 10,000 words, and finds out
of each new one all that spaCy may ever be asked.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import entaug
from entaug.core.data import Sentence
from entaug.formats.files import open_file
from entaug.formats.text import _load_pipeline
from places import DATA

CORPORA = (
    "crossner/*/*.txt",
    "wnut17/*.*",
    "multiconer-v1/15000/en_train.conll",
    "tdmsci/*.conll",
    "ncbi-disease/*.tsv",
)
MANY = 20_000
FILES = {
    "doccano": "doccano.jsonl",
    "prodigy": "prodigy.jsonl",
    "label-studio": "tasks.json",
    "spacy-json": "tuples.json",
    "brat": "brat",
}


def sentences() -> list[Sentence]:
    """So many different sentences, without ids."""
    found: dict[tuple[str, ...], Sentence] = {}
    for pattern in CORPORA:
        for path in sorted(DATA.glob(pattern)):
            if "README" in path.name:
                continue
            for one in entaug.read(path, "conll", repair=True):
                found.setdefault(one.tokens, one.with_(id=None, meta={}))
    return list(found.values())[:MANY]


def put(folder: Path) -> dict[str, Any]:
    """The sentences in each format, without tokens; what there is of them."""
    gold = sentences()
    entaug.write(gold, folder / FILES["doccano"], "doccano", tokens=False)
    entaug.write(gold, folder / FILES["label-studio"], "label-studio", tokens=False)
    entaug.write(gold, folder / FILES["brat"], "brat")
    records = [json.loads(line) for line in (folder / FILES["doccano"]).read_text(encoding="utf-8").splitlines()]
    tuples = [[record["text"], {"entities": record["label"]}] for record in records]
    (folder / FILES["spacy-json"]).write_text(json.dumps(tuples), encoding="utf-8")
    with (folder / FILES["prodigy"]).open("w", encoding="utf-8") as out:
        for record in records:
            spans = [{"start": a, "end": b, "label": label} for a, b, label in record["label"]]
            out.write(json.dumps({"text": record["text"], "spans": spans}) + "\n")
    pieces = {piece for record in records for piece in record["text"].split()}
    return {"sentences": len(gold), "tokens": sum(map(len, gold)), "pieces": len(pieces)}


def rate(run: Callable[[], int]) -> float:
    """Sentences a second of processor time."""
    begun = time.process_time()
    count = run()
    return count / (time.process_time() - begun)


def measure(folder: Path, name: str, *, plain: bool) -> None:
    """Print how fast one format is read, the first time and once more; with `plain` as spaCy comes."""
    nlp = _load_pipeline("en")[0]
    if plain:
        import spacy

        fresh: Any = spacy.blank("en")
        nlp.vocab.lex_attr_getters = fresh.vocab.lex_attr_getters
        nlp.tokenizer.max_cache_size = fresh.tokenizer.max_cache_size
    nlp.make_doc("Ada sang.")
    if name == "spacy":
        lines = (folder / FILES["doccano"]).read_text(encoding="utf-8").splitlines()
        texts = [json.loads(line)["text"] for line in lines]
        rates = [rate(lambda: sum(1 for text in texts if nlp.make_doc(text))) for _ in range(2)]
    else:
        opened = open_file(folder / FILES[name], name, misaligned="cut")
        rates = []
        for _ in range(2):
            begun = time.process_time()
            for _ in opened.sentences():
                pass
            rates.append(MANY / (time.process_time() - begun))
    print(json.dumps(rates))


def main() -> None:
    """Measure, each row in a process of its own, and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", nargs=3, metavar=("FOLDER", "FORMAT", "PLAIN"), help="what a process of its own does")
    args = parser.parse_args()
    if args.one:
        measure(Path(args.one[0]), args.one[1], plain=args.one[2] == "plain")
        return
    with tempfile.TemporaryDirectory() as folder:
        there = put(Path(folder))
        lines = [
            "# Texts without tokens",
            "",
            (
                f"`benchmarks/plain_texts.py`: {there['sentences']:,} different sentences, {there['tokens']:,} tokens, "
                f"{there['pieces']:,} different words between spaces; {platform.machine()}, one core, "
                f"Python {platform.python_version()}, entaug {entaug.__version__}. "
                "Sentences a second of processor time."
            ),
            "",
            "| | first time | once more | as spaCy comes | once more | times as fast | once more |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for name in ("spacy", *FILES):
            found: dict[str, list[float]] = {}
            for how in ("plain", "ours", "plain", "ours"):
                command = [sys.executable, __file__, "--one", folder, name, how]
                rates = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                found[how] = [max(pair) for pair in zip(rates, found.get(how, rates), strict=True)]
            ours, plain = found["ours"], found["plain"]
            cells = [f"{value:,.0f}" for value in (*ours, *plain)]
            cells += [f"{a / b:.1f}" for a, b in zip(ours, plain, strict=True)]
            title = "spaCy's tokeniser alone" if name == "spacy" else f"`{name}`"
            lines.append(f"| {title} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    if args.write:
        args.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
