"""Record examples of methods with models on the example corpus, for the pages of these methods.

    python docs/record.py [METHOD ...]

A build of the documentation should neither take half an hour nor need models. So the examples are kept in
``recorded/``: a few gold sentences and the sentences augmented from them, with their provenance. Record a method again
when its output has changed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import entaug
from entaug.formats.augmented import read_augmented

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
from method_pages import CORPUS, RECORDED, SEED, select_examples  # on the path set above

MAX_SENTENCES = 30  # for methods that take seconds per sentence
FEW = 10  # ... and for a language model on a processor


def given(name: str) -> dict[str, Any]:
    """What a method needs besides the corpus: an instruct model, or unlabelled text (that of dev) and a small teacher.

    Args:
        name: the name of the method.
    """
    if name == "rewrite":  # a small model, but one that anybody can run
        return {"generator": "smollm2-gguf", "style": "a post on social media", "max_attempts": 2}
    if name == "gal":
        return {"teacher": "linear:labels=teacher"}
    if name != "selftrain":
        return {}
    text = entaug.read_unlabelled([CORPUS.with_name("dev.conll")], entaug.read(CORPUS))
    return {"unlabelled": text, "ensemble_size": 2, "ensemble_steps": 200}


def main(names: list[str]) -> None:
    """Record examples.

    Args:
        names: the names of the methods; by default all that need a model.
    """
    gold = list(entaug.read(CORPUS))
    for name in names or [name for name in entaug.methods.METHODS if entaug.methods.METHODS[name].info.needs]:
        augmenter = entaug.create_augmenter(name, seed=SEED, **given(name)).fit(gold)
        sentences = gold if "rules" in augmenter.info.cost else gold[: FEW if name == "rewrite" else MAX_SENTENCES]
        new = list(augmenter.augment(sentences))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"{name}.jsonl")
            entaug.write([*gold, *new], path)
            pairs = select_examples(next(iter(read_augmented([path]).methods.values())))
        sources = {s.key: s for pair in pairs for s in (pair.source, *pair.other_sources) if s}
        entaug.write([*sources.values(), *(pair.augmented for pair in pairs)], RECORDED / f"{name}.jsonl")
        sys.stderr.write(f"{name}: {len(pairs)} examples of {len(new)} new sentences\n")


if __name__ == "__main__":
    main(sys.argv[1:])
