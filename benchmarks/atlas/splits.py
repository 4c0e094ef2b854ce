"""The low-resource splits of the atlas: for each corpus a file of the digests of its training sentences, without text.

    python benchmarks/atlas/splits.py            # from the project's root, with the real corpora in ../shared/data

They are frozen: records of all machines are of these sentences. A digest (`Sentence.fingerprint`) is of tokens and
mentions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from entaug.core.data import Sentence
from entaug.formats import read
from entaug.study.subsets import draw, rest

FOLDER = Path(__file__).parent
HEAD = "# Sentences of {train}, drawn by benchmarks/atlas/splits.py: digests of tokens and mentions"


def drawn(train: Sequence[Sentence], size: int) -> list[Sentence]:
    """Sentences in which each type has about its share; half of them with a discontinuous mention, if any has one."""
    having = [s for s in train if any(len(mention.spans) > 1 for mention in s.mentions)]
    if not having:
        return draw("stratified", train, [size])[size]
    half = size // 2
    return [*draw("stratified", having, [half])[half], *draw("stratified", rest(train, having), [half])[half]]


def main() -> None:
    """Write the files."""
    plan = tomllib.loads((FOLDER / "atlas.toml").read_text("utf-8"))
    for corpus in plan["corpora"]:
        train, test = (list(read(FOLDER / corpus[part])) for part in ("train", "test"))
        distinct = list({sentence.tokens: sentence for sentence in rest(train, test)}.values())
        for size in corpus["sizes"]:
            digests = sorted(sentence.fingerprint().hex() for sentence in drawn(distinct, size))
            lines = [HEAD.format(train="/".join(Path(corpus["train"]).parts[5:])), *digests]
            path = FOLDER / corpus["subset_ids"].format(size=size)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
