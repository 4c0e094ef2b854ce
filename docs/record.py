"""Record what methods with models behind them make of the example corpus, for their pages.

    python docs/record.py [METHOD ...]

A build of the pages must not take half an hour or need models, so these examples are kept in ``recorded/``: a few gold
sentences and what was made of each, with its provenance. Run it again for a method whose output has changed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import entaug
from entaug.augmented import read_augmented

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
from method_pages import CORPUS, RECORDED, SEED, select_examples  # on the path of the documentation build only

ENOUGH = 30  # sentences are asked of those methods that take seconds over each


def main(names: list[str]) -> None:
    """Record the methods of these names, by default all that need a model.

    Args:
        names: of methods.
    """
    gold = list(entaug.read(CORPUS))
    for name in names or [name for name in entaug.METHODS if entaug.METHODS[name].info.needs]:
        augmenter = entaug.create_augmenter(name, seed=SEED).fit(gold)
        asked = gold if "rules" in augmenter.info.cost else gold[:ENOUGH]
        new = list(augmenter.augment(asked))
        with tempfile.TemporaryDirectory() as folder:
            everything = Path(folder, f"{name}.jsonl")
            entaug.write([*gold, *new], everything)
            pairs = select_examples(next(iter(read_augmented([everything]).methods.values())))
        sources = {s.key: s for pair in pairs for s in (pair.source, *pair.other_sources) if s}
        entaug.write([*sources.values(), *(pair.augmented for pair in pairs)], RECORDED / f"{name}.jsonl")
        sys.stderr.write(f"{name}: {len(pairs)} examples of {len(new)} new sentences\n")


if __name__ == "__main__":
    main(sys.argv[1:])
