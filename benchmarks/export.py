"""Exported taggers beside the tagger that they are made of: the same predictions, F1 and speed on one thread.

    python benchmarks/export.py

A MiniLM `linear` tagger is trained on 500 sentences of each corpus, exported to ONNX and to transformers, and predicts
up to 1,000 test sentences. Times are CPU times of predicting, the median of three turns in which all take part.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch and ONNX Runtime are imported

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import entaug
from entaug.commands.export import export
from entaug.taggers.base import TaggerTrainingConfig, create_tagger, load_tagger
from entaug.taggers.pretrained.huggingface import HuggingFaceTagger
from places import DATA
from records import environment

CORPORA = {
    "ncbi-disease": ("ncbi-disease/train.tsv", "ncbi-disease/test.tsv"),
    "wnut17": ("wnut17/wnut17train.conll", "wnut17/emerging.test.annotated"),
    "crossner-politics": ("crossner/politics/train.txt", "crossner/politics/test.txt"),
}


def argmax_differences(tagger: Any, folder: Path, sentences: list[Any]) -> tuple[int, int]:
    """Sentences whose likeliest tags are no valid sequence, and others that the two taggers label differently."""
    other = HuggingFaceTagger(str(folder))
    splits = other._split_tags  # noqa: SLF001
    invalid = different = 0
    own = tagger.predict(sentences)
    for sentence, labelled in zip(sentences, own, strict=True):
        with torch.inference_mode():
            scores = other._model([other._model.prepare(sentence.tokens)])[0]  # noqa: SLF001
        tags = [splits[i] for i in scores.argmax(-1).tolist()]
        is_valid = all(
            place != "I" or (before[0] in "BI" and before[1] == label)
            for before, (place, label) in zip([("O", ""), *tags], tags, strict=False)
        )
        iob = ["-".join(filter(None, (place, label))) for place, label in tags]
        invalid += not is_valid
        different += is_valid and iob != labelled.iob()
    return invalid, different


def main() -> None:
    """Print a table."""
    torch.set_num_threads(1)
    print(environment(1) + "\n")
    print(
        "| corpus | test sentences | F1 torch | F1 fp32 | F1 int8 | fp32, times as fast | int8, times as fast | "
        "likeliest tags no valid sequence | of the others different |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, (train, test) in CORPORA.items():
        gold = [s for s in entaug.read(DATA / train) if s.mentions][:500]
        sentences = list(entaug.read(DATA / test))[:1000]
        bare = [s.with_(mentions=()) for s in sentences]
        tagger: Any = create_tagger("linear", encoder="minilm", device="cpu", precision="fp32")
        tagger.fit(gold, config=TaggerTrainingConfig(steps=600, batch_size=8))
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            tagger.save(folder / "tagger")
            for form in ("onnx", "huggingface"):
                export(folder / "tagger", folder / form, to=form)
            int8: Any = load_tagger(folder / "onnx")
            fp32: Any = type(int8)(**{**int8.get_params(), "quantized": False}).restore(folder / "onnx")
            times: dict[str, list[float]] = {"torch": [], "fp32": [], "int8": []}
            f1 = {}
            for _ in range(3):
                for kind, one in (("torch", tagger), ("fp32", fp32), ("int8", int8)):
                    begun = time.process_time()
                    predicted = one.predict(bare)
                    times[kind].append(time.process_time() - begun)
                    f1[kind] = 100 * entaug.score(sentences, predicted).micro.f1
            seconds = {kind: statistics.median(own) for kind, own in times.items()}
            invalid, different = argmax_differences(tagger, folder / "huggingface", bare)
        scores = " | ".join(f"{f1[kind]:.2f}" for kind in times)
        ratios = " | ".join(f"{seconds['torch'] / seconds[kind]:.2f}" for kind in ("fp32", "int8"))
        print(f"| {name} | {len(sentences):,} | {scores} | {ratios} | {invalid} | {different} |", flush=True)


if __name__ == "__main__":
    main()
