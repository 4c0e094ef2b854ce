r"""Readability of `cassi`, `cr`, `sr` and `mr`: a blind reading sheet of what two versions of the package write.

    .venv/bin/python benchmarks/readability.py generate old.json            # with the old package on PYTHONPATH
    .venv/bin/python benchmarks/readability.py generate new.json            # with the new one
    .venv/bin/python benchmarks/readability.py sheet old.json new.json sheet.txt --key key.json
    .venv/bin/python benchmarks/readability.py count sheet.txt key.json old.json new.json --write \
        benchmarks/results/readability.md

`generate` writes 30 new sentences for each method and corpus. `sheet` mixes and shuffles the sentences of both versions
with gold sentences, without their origin; the origin of each line is in the key. The reader puts a mark in front of
each line: ``+`` a sentence, headline or table row that a careful speaker could have written (a surprising fact is no
fault),
``-`` any other. The outputs of a version that are equal to those of the other are read once. `count` counts the marks.
Sheet, key and outputs hold sentences of other people's corpora and stay out of the repository.

``--part building`` takes the sentences for development; the sheet is made from ``--part final``, of other files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("ENTAUG_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
METHODS = ("mr", "sr", "cr", "cassi")
NEWS = ("newsgroup", "weblog")
"""Genres of the English Web Treebank: news texts and comments on the news."""
FILES = {
    ("news", "building"): "uner/en_ewt/en_ewt-ud-dev.iob2",
    ("news", "final"): "uner/en_ewt/en_ewt-ud-test.iob2",
    ("wnut17", "building"): "wnut17/wnut17train.conll",
    ("wnut17", "final"): "wnut17/emerging.test.annotated",
}
OPTIONS: dict[str, dict[str, Any]] = {"cassi": {"scorer": "causal"}}
"""What is not the default: the masked scorer of CASSI takes ten times as long, see benchmarks/cassi.md."""
POOL = 200  # sentences with mentions that the methods are fitted to


def pool(corpus: str, part: str) -> list[Any]:
    """The sentences that the methods are fitted to, in a fixed random order."""
    import entaug

    sentences = [s for s in entaug.read(DATA / FILES[corpus, part]) if s.mentions]
    if corpus == "news":
        sentences = [s for s in sentences if (s.id or "").startswith(NEWS)]
    sentences = list({s.tokens: s for s in sentences}.values())
    random.Random(part).shuffle(sentences)
    return [s.with_(id=f"{corpus}-{i}") for i, s in enumerate(sentences[:POOL])]


def generate(corpus: str, part: str, method_name: str, number: int) -> dict[str, Any]:
    """Write new sentences with a method: the sentences, how many sources were tried, and perplexities."""
    import entaug

    gold = pool(corpus, part)
    begun = time.monotonic()
    method = entaug.create_augmenter(method_name, **OPTIONS.get(method_name, {})).fit(gold)
    pairs: list[Any] = []
    tried = 0
    # In blocks, because models are asked for batches; results do not depend on them.
    for start in range(0, len(gold), 15):
        block = {s.key: s for s in gold[start : start + 15]}
        new = list(method.augment(block.values()))
        keys = list(block)
        for sentence in new:
            source = block[sentence.provenance.sources[0]] if sentence.provenance else gold[0]
            if len(pairs) < number:
                pairs.append(entaug.AugmentedPair(sentence, source))
                last = keys.index(source.key)
        if len(pairs) == number:
            tried += last + 1
            break
        tried += len(block)
    quality = entaug.measure_quality(pairs, gold, measures=["perplexity"])
    own = [entaug.AugmentedPair(pair.source) for pair in pairs]
    return {
        "sentences": [str(pair.augmented) for pair in pairs],
        "sources": [str(pair.source) for pair in pairs],
        "tried": tried,
        "rejected": dict(method.statistics_.rejected),
        "perplexity": quality.values["perplexity"],
        "perplexity of sources": entaug.measure_quality(own, [], measures=["perplexity"]).values["perplexity"],
        "seconds": time.monotonic() - begun,
    }


def sheet(old: dict[str, Any], new: dict[str, Any], seed: int) -> tuple[list[str], list[list[str]]]:
    """The lines to read, and for each the names of what it is an output of."""
    origins: dict[str, list[str]] = defaultdict(list)
    for version, records in (("old", old), ("new", new)):
        for name, record in records.items():
            for sentence in record["sentences"]:
                origins[sentence].append(f"{version}/{name}")
    for corpus in ("news", "wnut17"):
        for sentence in dict.fromkeys(old[f"{corpus}/mr"]["sources"]):
            origins[sentence].append(f"gold/{corpus}/gold")
    lines = sorted(origins)
    random.Random(seed).shuffle(lines)
    return lines, [origins[line] for line in lines]


def count(marks: list[str], key: list[list[str]]) -> dict[str, Counter[str]]:
    """The number of marks of each kind for each origin."""
    if len(marks) != len(key):
        raise SystemExit(f"{len(marks)} marks for {len(key)} lines")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mark, origins in zip(marks, key, strict=True):
        for origin in origins:
            counts[origin][mark] += 1
    return counts


def table(counts: dict[str, Counter[str]], old: dict[str, Any], new: dict[str, Any]) -> str:
    """The counts as Markdown."""
    lines = [
        "| corpus | method | readable before | after | yield before | after | perplexity before | after | sources |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, record in old.items():
        corpus, method = name.split("/")
        cells = [corpus, f"`{method}`"]
        for version in ("old", "new"):
            of = counts[f"{version}/{name}"]
            cells.append(f"{of['+']} of {of.total()}")
        for records in (old, new):
            made = len(records[name]["sentences"])
            cells.append(f"{made} of {records[name]['tried']}")
        cells += [f"{records[name]['perplexity']:.0f}" for records in (old, new)]
        cells.append(f"{new[name]['perplexity of sources']:.0f}")
        lines.append("| " + " | ".join(cells) + " |")
        del record
    for corpus in ("news", "wnut17"):
        of = counts[f"gold/{corpus}/gold"]
        lines.append(f"| {corpus} | gold | {of['+']} of {of.total()} | | | | | | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Generate sentences, make the sheet, or count the marks."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("generate")
    command.add_argument("output", type=Path)
    command.add_argument("--part", choices=("building", "final"), default="final")
    command.add_argument("--number", type=int, default=30)
    command.add_argument("--only", nargs="*", default=METHODS)
    command.add_argument("--corpora", nargs="*", default=("news", "wnut17"))
    command = commands.add_parser("sheet")
    for name in ("old", "new", "output"):
        command.add_argument(name, type=Path)
    command.add_argument("--key", type=Path, required=True)
    command.add_argument("--seed", type=int, default=0)
    command = commands.add_parser("count")
    for name in ("sheet", "key", "old", "new"):
        command.add_argument(name, type=Path)
    command.add_argument("--write", type=Path)
    args = parser.parse_args()
    if args.command == "generate":
        import entaug

        print(f"entaug of {Path(entaug.__file__).parent}", flush=True)
        records = json.loads(args.output.read_text()) if args.output.exists() else {}
        for method in args.only:
            for corpus in args.corpora:
                record = records[f"{corpus}/{method}"] = generate(corpus, args.part, method, args.number)
                args.output.write_text(json.dumps(records, indent=1, ensure_ascii=False))
                print(f"{corpus}/{method}: {len(record['sentences'])} in {record['seconds']:.0f} s", flush=True)
        return
    old, new = (json.loads(path.read_text()) for path in (args.old, args.new))
    if args.command == "sheet":
        lines, key = sheet(old, new, args.seed)
        args.output.write_text("".join(f"{i} {line}\n" for i, line in enumerate(lines, start=1)))
        args.key.write_text(json.dumps(key))
        return
    marks = [line[0] for line in args.sheet.read_text().splitlines() if line.strip()]
    text = table(count(marks, json.loads(args.key.read_text())), old, new)
    print(text)
    if args.write:
        head = args.write.read_text().partition("<!-- counts -->")[0] if args.write.exists() else ""
        args.write.write_text(f"{head}<!-- counts -->\n{text}")


if __name__ == "__main__":
    main()
