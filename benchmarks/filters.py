"""How much of what each method makes each filter refuses, with its defaults, on real corpora.

    .venv/bin/python benchmarks/filters.py --write benchmarks/results/filters.md
    .venv/bin/python benchmarks/filters.py --show fluency --methods mr     # some sentences, to be read

Each method makes one sentence of each source, unfiltered, and each filter then judges all of them alone.
"""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random

import entaug
from entaug.filters import FILTERS, Filter, create_filters
from entaug.formats.augmented import pair_with_sources
from places import DATA

CORPORA = {
    "CrossNER-ai": ("crossner/ai/train.txt", ("crossner/ai/dev.txt", "crossner/ai/test.txt")),
    "WNUT-17": ("wnut17/wnut17train.conll", ("wnut17/emerging.dev.conll", "wnut17/emerging.test.annotated")),
}
METHODS = ("lwtr", "mr", "lm", "sis", "bt", "crop")
READ = """## What reading showed

Up to twenty refused and twenty kept sentences of `lwtr`, `mr` and `lm` in both corpora were read (`--show validity`,
`--show fluency`); the defaults come from that.

- `validity`: all that it refused of the three was at fault ("including the The Walt Disney Company", a bracket whose
  partner was exchanged). Stop words are taken as written, and mentions that gold has are never held against a sentence:
  "R" and "US" are on the lists of English stop words. Of `crop` it refuses what has lost all its mentions.
- `fluency` at 1.5 nats a word takes nearly all word salad from clean text; what it leaves of `lwtr` there has a few
  words exchanged. Tweets are so unlikely themselves that a third of the salad passes. What it refuses of `mr` is mostly
  readable, with a rare name or a mention that does not fit ("calculator interface are written in JESS"). On CrossNER-ai
  a margin of 1.0 would refuse about 30 % of `mr`, and one of 2.0 about 8 %, with 12 % of the salad passing.
- `duplicates` finds nothing, since the base drops equal sentences before; it is for generators, and for corpora that
  say the same in other capitals. `least` is off: `lm` and `sr` are near their source by design.
- `similarity` refuses half of `crop`, which cuts, and `mentions` all of `mr`, which exchanges them: they are for
  methods that write freely.
- Nothing leaks: none of these methods has seen more than gold, or goes far from it.
"""


def sentences(name: str, count: int) -> list[entaug.Sentence]:
    """The first sentences with a mention."""
    return list(islice((s for s in entaug.read(DATA / CORPORA[name][0]) if s.mentions), count))


def show(
    made: Sequence[entaug.Sentence],
    sources: Sequence[entaug.Sentence | None],
    verdicts: Sequence[str | None],
    count: int,
) -> None:
    """Print some refused and some kept sentences, each with its source."""
    rng = Random(0)
    for kept in (False, True):
        chosen = [i for i, verdict in enumerate(verdicts) if (verdict is None) == kept]
        print(f"== {'kept' if kept else 'refused'}: {len(chosen)}")
        for i in sorted(rng.sample(chosen, min(count, len(chosen)))):
            source = sources[i]
            before = source or "-"
            print(f"\n  ({verdicts[i] or 'kept'})\n  {before}\n  {made[i]}")


def share(verdicts: Sequence[str | None]) -> str:
    """The share refused, and that of each reason where there are several."""
    reasons = Counter(verdict for verdict in verdicts if verdict is not None)
    if not reasons:
        return "0"
    parts = ", ".join(f"{reason} {100 * n / len(verdicts):.0f}" for reason, n in reasons.most_common())
    return f"{100 * reasons.total() / len(verdicts):.0f} ({parts})"


def main() -> None:
    """Measure and write, or show."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=100, help="of each corpus")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--filters", default="+".join(FILTERS), help="with parameters, joined by +")
    parser.add_argument("--show", metavar="FILTER", help="print sentences that this one refuses and keeps")
    parser.add_argument("--count", type=int, default=20, help="how many to print")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    methods = args.methods.split(",")
    lines = [
        "# What filters refuse",
        "",
        f"Percent of the new sentences that each filter refuses by itself, by default; {args.sentences} sentences",
        "with mentions of each corpus, one new sentence asked for of each. Command:",
        "",
        "    .venv/bin/python benchmarks/filters.py --write benchmarks/results/filters.md",
        "",
        f"entaug {entaug.__version__}, Python {platform.python_version()}, {platform.machine()}.",
    ]
    for name, (_, held_out) in CORPORA.items():
        gold = sentences(name, args.sentences)
        held = [s for file in held_out for s in entaug.read(DATA / file)]
        filters: list[Filter] = [one.fit(gold) for one in create_filters(args.show or args.filters, held)]
        made = {method: list(entaug.create_augmenter(method).fit(gold).augment(gold)) for method in methods}
        lines += ["", f"## {name}", "", f"| filter | {' | '.join(methods)} |", "|---" * (len(methods) + 1) + "|"]
        sources = {m: [p.source for p in pair_with_sources(some, gold) if p is not None] for m, some in made.items()}
        lines.append(f"| *sentences* | {' | '.join(str(len(made[m])) for m in methods)} |")
        for one in filters:
            verdicts = {m: one.judge(made[m], sources[m]) for m in methods}
            lines.append(f"| `{one.name}` | {' | '.join(share(verdicts[m]) for m in methods)} |")
            for method in methods if args.show else ():
                print(f"\n#### {name}, {method}, {one.name}")
                show(made[method], sources[method], verdicts[method], args.count)
    text = "\n".join([*lines, "", READ])
    if args.write:
        args.write.write_text(text)
    elif not args.show:
        print(text)


if __name__ == "__main__":
    main()
