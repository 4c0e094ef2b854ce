"""Count Danish genitives that `mr` replaces by another case: PYTHONPATH=src python benchmarks/genitives.py."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import entaug

DATA = Path(os.environ.get("ENTAUG_DATA", "../shared/data"))


def main() -> None:
    """For two corpora, places with a final "s" before a lower-case word that lost it, and others that got one."""
    warnings.simplefilter("ignore")
    for name in ("uner/da_ddt/da_ddt-ud-train.iob2", "danplus/da_news_train.tsv"):
        for number in (200, 1000):
            gold = list(entaug.read(DATA / name, repair=True))[:number]
            sources = {sentence.key: sentence for sentence in gold}
            genitives, others = [], []
            for seed in (1, 2, 3):
                for new in entaug.augment(gold, "mr", p=1.0, seed=seed):
                    assert new.provenance is not None
                    source = sources[new.provenance.sources[0]]
                    for old_mention, new_mention in zip(source.mentions, new.mentions, strict=True):
                        old, words = source.mention_tokens(old_mention), new.mention_tokens(new_mention)
                        after = source.tokens[old_mention.end : old_mention.end + 1]
                        if old == words:
                            continue
                        if old[-1].endswith("s") and after and after[0].isalpha() and after[0].islower():
                            genitives.append(not words[-1].endswith("s"))
                        elif not old[-1].endswith("s"):
                            others.append(words[-1].endswith("s"))
            print(
                f"{Path(name).name}, {number} sentences: {sum(genitives)} of {len(genitives)} places lost an s, "
                f"{sum(others)} of {len(others)} others got one"
            )


if __name__ == "__main__":
    main()
