"""Count Danish genitives that `mr` replaces by another case: PYTHONPATH=src python benchmarks/genitives.py."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import entaug
from entaug import Sentence

DATA = Path(os.environ.get("ENTAUG_DATA", "../shared/data"))


def replaced(gold: Sequence[Sentence], seed: int) -> Iterator[tuple[str, str, str]]:
    """The last word of each mention that is replaced, that of the new one, and the word after it."""
    sources = {sentence.key: sentence for sentence in gold}
    for new in entaug.augment(gold, "mr", p=1.0, seed=seed):
        assert new.provenance is not None
        source = sources[new.provenance.sources[0]]
        for old, made in zip(source.mentions, new.mentions, strict=True):
            before, after = source.mention_tokens(old), new.mention_tokens(made)
            if before != after:
                yield before[-1], after[-1], "".join(source.tokens[old.end : old.end + 1])


def main() -> None:
    """For two corpora, places with a final "s" before a lower-case word that lost it, and others that got one."""
    warnings.simplefilter("ignore")
    for name, number in product(("uner/da_ddt/da_ddt-ud-train.iob2", "danplus/da_news_train.tsv"), (200, 1000)):
        gold = list(entaug.read(DATA / name, repair=True))[:number]
        words = [one for seed in (1, 2, 3) for one in replaced(gold, seed)]
        lost = [new[-1] != "s" for old, new, after in words if old[-1] == "s" and after.isalpha() and after.islower()]
        got = [new[-1] == "s" for old, new, _ in words if old[-1] != "s"]
        print(
            f"{Path(name).name}, {number} sentences: {sum(lost)} of {len(lost)} places lost an s, "
            f"{sum(got)} of {len(got)} others got one"
        )


if __name__ == "__main__":
    main()
