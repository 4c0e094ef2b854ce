"""How far constituents projected from dependency trees agree with those of link-grammar, on real sentences.

    .venv/bin/python benchmarks/constituents.py --write benchmarks/results/constituents.md

Both are asked for the same sentences; those that link-grammar cannot parse are left out and counted. A phrase of the
one agrees with one of the other where category and range are the same; next to it the same without the category.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import entaug
from entaug.backends.protocols import Constituent
from entaug.backends.resolve import resolve
from entaug.methods.constituents import CATEGORIES
from link_grammar import LinkGrammar
from places import DATA

CORPORA = {"crossner-politics": "crossner/politics/train.txt", "wnut17": "wnut17/wnut17train.conll"}
LONGEST = 40  # tokens: of longer sentences link-grammar hardly finishes one


def sentences(name: str, count: int) -> list[tuple[str, ...]]:
    """The first sentences that are neither very short nor very long."""
    found = (s.tokens for s in entaug.read(DATA / CORPORA[name]) if 5 <= len(s) <= LONGEST)
    return list(islice(found, count))


def points(only: Sequence[Constituent], words: Sequence[str]) -> set[tuple[str, int, int]]:
    """Phrases of the five categories, as triples, without punctuation at their ends."""
    found = set()
    for category, start, end, *_ in only:
        inner = [i for i in range(start, end) if any(c.isalnum() for c in words[i])]
        if category in CATEGORIES and inner:
            found.add((category, inner[0], inner[-1] + 1))
    return found


def share(part: int, whole: int) -> str:
    """A share in percent."""
    return f"{part / whole:.0%}" if whole else "-"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=100, help="of each corpus")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    projected = resolve("constituency_parser", "projected")
    linked = LinkGrammar()
    lines = [
        "# Constituents projected from dependency trees, beside those of link-grammar",
        "",
        f"`benchmarks/constituents.py` on {platform.machine()}; {projected.name}, {linked.name}.",
        "",
        "Of those of link-grammar: recall; of the projected ones: precision. Without categories in the last row.",
        "",
    ]
    total: dict[str, list[int]] = {name: [0, 0, 0] for name in (*CATEGORIES, "any range")}
    for name in CORPORA:
        asked = sentences(name, args.sentences)
        begun = time.monotonic()
        ours = projected.parse(asked)
        between = time.monotonic()
        theirs = linked.parse(asked)
        ended = time.monotonic()
        parsed = sum(map(bool, theirs))
        lines.append(
            f"- {name}: {len(asked)} sentences of 5 to {LONGEST} tokens, {parsed} parsed by link-grammar; "
            f"projection {len(asked) / (between - begun):.0f} sentences/s, "
            f"link-grammar {len(asked) / (ended - between):.1f}"
        )
        for words, one, other in zip(asked, ours, theirs, strict=True):
            if not other:
                continue
            a, b = points(one, words), points(other, words)
            for category in CATEGORIES:
                of_a, of_b = ({x for x in some if x[0] == category} for some in (a, b))
                for i, value in enumerate((len(of_a & of_b), len(of_b), len(of_a))):
                    total[category][i] += value
            ranges = [{x[1:] for x in some} for some in (a, b)]
            for i, value in enumerate((len(ranges[0] & ranges[1]), len(ranges[1]), len(ranges[0]))):
                total["any range"][i] += value
    lines += ["", "| | link-grammar | projected | both | recall | precision |", "|---|---|---|---|---|---|"]
    for category, (both, theirs_, ours_) in total.items():
        recall, precision = share(both, theirs_), share(both, ours_)
        lines.append(f"| {category} | {theirs_} | {ours_} | {both} | {recall} | {precision} |")
    print("\n".join(lines))
    if args.write:
        args.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
