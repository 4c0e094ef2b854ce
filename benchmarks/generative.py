"""EnTDA and ACLM with the starter generator: what they keep of what they write, how fluent and how new it is.

    .venv/bin/python benchmarks/generative.py --write benchmarks/results/generative.md

- yield: what was kept of all texts that were looked at, with why the others were not.
- perplexity: of SmolLM2 as it is, not fine-tuned, over sub-words of running text; beside it that of mention replacement
  on the same sentences, and of the gold sentences themselves.
- new words: the share of words that their source has not, mean over sentences.

Both as `entaug quality` has them.
"""

from __future__ import annotations

import argparse
import platform
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import entaug
from entaug import Sentence
from entaug.backends.models.catalogue import model_path
from entaug.backends.transformers.causal_lm import TransformersCausalLM
from entaug.formats.augmented import AugmentedPair
from entaug.methods import ACLM, EnTDA, MentionReplacement
from entaug.methods.base import Augmenter
from places import DATA

CORPORA = {
    "crossner-ai": ("crossner/ai/train.txt", 100),
    "genia-nested": ("genia/nested-jsonl/train.jsonl", 200),
    "genia-discontinuous": ("genia/discontinuous-jsonl/train.jsonl.gz", 200),
}
RUNS: dict[str, tuple[str, type[Augmenter], dict[str, Any]]] = {
    "entda": ("crossner-ai", EnTDA, {"copies": 3}),
    "aclm": ("crossner-ai", ACLM, {"copies": 5}),
    "entda-nested": ("genia-nested", EnTDA, {"copies": 3}),
    "entda-discontinuous": ("genia-discontinuous", EnTDA, {"copies": 3}),
}


def gold(name: str, count: int | None) -> list[Sentence]:
    """The first sentences of a corpus; of the discontinuous one the first that have such a mention."""
    where, usual = CORPORA[name]
    sentences: Iterator[Sentence] = iter(entaug.read(DATA / where))
    if name == "genia-discontinuous":
        sentences = (s for s in sentences if not all(m.is_contiguous for m in s.mentions))
    return [s for s, _ in zip(sentences, range(count or usual), strict=False)]


def measure(name: str, count: int | None, lm: TransformersCausalLM) -> Iterator[str]:
    """One run, as lines of Markdown; some of what was made is shown."""
    corpus, cls, params = RUNS[name]
    sentences = gold(corpus, count)
    method = cls(**params)
    begun = time.monotonic()
    method.fit(sentences)
    fitted = time.monotonic() - begun
    made = list(method.augment(sentences))
    seconds = time.monotonic() - begun
    tally = method.statistics_
    looked = tally.accepted + tally.rejected.total()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    simple = list(MentionReplacement(p=1.0, copies=3).fit(sentences).augment(sentences))
    tuned: Any = method.trained_  # type: ignore[attr-defined]
    yield f"## {name}: {corpus}, {len(sentences)} sentences, copies={method.copies}"
    yield ""
    yield f"`{method.signature}`"
    yield ""
    yield f"- made {tally.accepted} of {tally.requested}; yield {tally.accepted / max(1, looked):.1%} of {looked} texts"
    for reason, times in tally.rejected.most_common():
        yield f"    - {reason}: {times} ({times / looked:.1%})"
    yield f"- learning {fitted:.0f} s, {len(tuned.losses)} epochs, kept {tuned.best_epoch}, losses " + ", ".join(
        f"{a:.2f}/{b:.2f}" if b is not None else f"{a:.2f}" for a, b in tuned.losses
    )
    yield f"- writing {seconds - fitted:.0f} s, {tally.accepted / max(1e-9, seconds - fitted):.2f} kept a second; "
    yield f"  peak memory {memory:.1f} GiB"
    sources = {s.key: s for s in sentences}
    texts = {"gold": [AugmentedPair(s) for s in sentences]}
    for what, some in (("mr", simple), (name, made)):
        texts[what] = [AugmentedPair(s, sources[s.fields["entaug"]["sources"][0]]) for s in some]
    found = {
        what: entaug.metrics.measure_quality(
            pairs, sentences, measures=["perplexity", "new_words"], causal_lm=lm
        ).values
        for what, pairs in texts.items()
        if pairs
    }
    yield "- perplexity: " + ", ".join(f"{what} {values['perplexity']:.0f}" for what, values in found.items())
    yield "- new words: " + ", ".join(
        f"{what} {values['new_words']:.1%}" for what, values in found.items() if values["new_words"] is not None
    )
    yield ""
    for sentence in made[:: max(1, len(made) // 10)][:10]:
        yield f"    {sentence}"
    yield ""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=list(RUNS), default=list(RUNS))
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    lm = TransformersCausalLM(model_path("smollm2"), device="cpu")
    lines = [
        "# EnTDA and ACLM with the starter generator",
        "",
        f"`benchmarks/generative.py` on {platform.machine()}, {torch.get_num_threads()} threads; torch",
        f"{torch.__version__}, entaug {entaug.__version__}. SmolLM2-135M with low-rank adapters.",
        "",
    ]
    for name in args.only:
        for line in measure(name, args.sentences, lm):
            print(line, flush=True)
            lines.append(line)
    if args.write:
        args.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
