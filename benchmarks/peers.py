"""One peer measured: a job as JSON on standard input, its seconds and results as JSON on standard output.

Runs in the peers' own environment (benchmarks/requirements-peers.txt), called by benchmarks/models.py. Loading is not
counted; the best of the runs and of the batch sizes tried is.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import torch


def best(job: dict[str, Any], run: Callable[[int], Any]) -> dict[str, Any]:
    """The quickest of all runs at all batch sizes."""
    found: dict[str, Any] = {"seconds": float("inf")}
    for size in job["batch_sizes"]:
        for _ in range(job["runs"]):
            begun = time.perf_counter()
            result = run(size)
            seconds = time.perf_counter() - begun
            if seconds < found["seconds"]:
                found = {"seconds": seconds, "batch_size": size, "result": result}
    return found


def minicons(job: dict[str, Any]) -> dict[str, Any]:
    """Pseudo-log-likelihood by minicons."""
    from minicons import scorer

    lm = scorer.MaskedLMScorer(job["model"], "cpu")
    texts: list[str] = job["texts"]

    def run(size: int) -> list[float]:
        found: list[float] = []
        for i in range(0, len(texts), size):
            found += lm.sequence_score(texts[i : i + size], reduction=lambda x: x.sum(0).item(), PLL_metric="original")
        return found

    run(len(texts))
    return best(job, run)


def bert_score(job: dict[str, Any]) -> dict[str, Any]:
    """F1 of all pairs by bert-score, its encoding included."""
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=job["model"], num_layers=job["layer"], idf=False, device="cpu")
    texts: list[str] = job["texts"]
    pairs = [(a, b) for i, a in enumerate(texts) for b in texts[i + 1 :]]
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    scorer.score(left[:64], right[:64])
    return best(job, lambda size: scorer.score(left, right, batch_size=size)[2].tolist())


def nlpaug(job: dict[str, Any]) -> dict[str, Any]:
    """Contextual substitution by nlpaug, as many words as ours."""
    from nlpaug.augmenter.word import ContextualWordEmbsAug

    found: dict[str, Any] = {"seconds": float("inf")}
    for size in job["batch_sizes"]:
        augmenter = ContextualWordEmbsAug(
            model_path=job["model"],
            model_type="bert",
            action="substitute",
            top_k=10,
            aug_min=job["n"],
            aug_max=job["n"],
            device="cpu",
            batch_size=size,
            verbose=0,
        )
        random.seed(0)
        augmenter.augment(job["texts"][:4])
        one = best({**job, "batch_sizes": [size]}, lambda _: augmenter.augment(job["texts"]))  # noqa: B023
        if one["seconds"] < found["seconds"]:
            found = one
    return found


PEERS = {"minicons": minicons, "bert-score": bert_score, "nlpaug": nlpaug}


def main() -> None:
    """Do the job."""
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    with contextlib.redirect_stdout(sys.stderr):
        answer = PEERS[job["peer"]](job)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
