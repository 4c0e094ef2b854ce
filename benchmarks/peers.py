"""One peer measured: a job as JSON on standard input, its seconds and results as JSON on standard output.

Runs in the peers' own environment (benchmarks/requirements-peers.txt), called by benchmarks/suite.py. Loading is not
counted. After a warm-up each batch size is tried and the best of all runs counts: a peer at its best.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

PACKAGES = ("torch", "transformers", "numpy", "minicons", "bert-score", "nlpaug", "augmenty", "spacy")


def best(job: dict[str, Any], run: Callable[[int], Any]) -> dict[str, Any]:
    """The quickest run: its seconds, batch size and result, and the seconds of each batch size.

    Every batch size is tried once and the best one again: some take minutes at the wrong one.
    """
    found: dict[str, Any] = {"seconds": float("inf"), "by_size": {}}

    def measure(size: int) -> None:
        begun = time.perf_counter()
        result = run(size)
        seconds = time.perf_counter() - begun
        found["by_size"][str(size)] = min(seconds, found["by_size"].get(str(size), seconds))
        if seconds < found["seconds"]:
            found.update(seconds=seconds, batch_size=size, result=result)

    for size in job["batch_sizes"]:
        measure(size)
    for _ in range(job["runs"] - 1):
        measure(found["batch_size"])
    return found


def minicons(job: dict[str, Any]) -> dict[str, Any]:
    """Pseudo-log-likelihood by minicons: the sum over sub-words, each hidden alone."""
    from minicons import scorer

    lm = scorer.MaskedLMScorer(job["model"], "cpu")
    texts: list[str] = job["texts"]

    def run(size: int, some: list[str] = texts) -> list[float]:
        found: list[float] = []
        for i in range(0, len(some), size):
            found += lm.sequence_score(some[i : i + size], reduction=lambda x: x.sum(0).item(), PLL_metric="original")
        return found

    run(1, texts[:3])
    return best(job, run)


def one_mask(job: dict[str, Any]) -> dict[str, Any]:
    """Pseudo-log-likelihood by its definition, in plain transformers: a forward pass of one row for each sub-word."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    model = AutoModelForMaskedLM.from_pretrained(job["model"]).eval()
    texts: list[str] = job["texts"]

    def score(text: str) -> float:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        total = 0.0
        for i in range(1, ids.shape[1] - 1):
            hidden = ids.clone()
            hidden[0, i] = tokenizer.mask_token_id
            with torch.inference_mode():
                total += float(torch.log_softmax(model(hidden).logits[0, i], -1)[ids[0, i]])
        return total

    score(texts[0])
    return best({**job, "batch_sizes": [1]}, lambda _: [score(text) for text in texts])


def bert_score(job: dict[str, Any]) -> dict[str, Any]:
    """F1 of all pairs by bert-score, its encoding included."""
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=job["model"], num_layers=job["layer"], idf=False, device="cpu")
    texts: list[str] = job["texts"]
    pairs = [(a, b) for i, a in enumerate(texts) for b in texts[i + 1 :]]
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    scorer.score(left[:64], right[:64])
    found = best(job, lambda size: scorer.score(left, right, batch_size=size)[2].tolist())
    # In a batch its padding counts as a cosine of 0, which lifts maxima below 0; pair by pair there is none.
    chosen = job["alone"]
    found["alone"] = scorer.score([left[i] for i in chosen], [right[i] for i in chosen], batch_size=1)[2].tolist()
    return found


def nlpaug(job: dict[str, Any]) -> dict[str, Any]:
    """Contextual substitution by nlpaug, as many words as ours; also how many sub-words each text really changed in."""
    from nlpaug.augmenter.word import ContextualWordEmbsAug
    from nlpaug.model.lang_models import Bert
    from transformers import AutoTokenizer

    # It knows BERT's special tokens alone; told those of MPNet, whose pieces are BERT's, it works with that as well.
    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    Bert.MASK_TOKEN, Bert.PAD_TOKEN = tokenizer.mask_token, tokenizer.pad_token
    Bert.UNKNOWN_TOKEN = tokenizer.unk_token
    texts: list[str] = job["texts"]
    augmenters = {
        size: ContextualWordEmbsAug(
            model_path=job["model"],
            model_type="bert",
            action="substitute",
            top_k=10,
            aug_min=job["n"],
            aug_max=job["n"],
            device="cpu",
            batch_size=size,
            force_reload=True,
        )
        for size in job["batch_sizes"]
    }
    random.seed(0)
    torch.manual_seed(0)
    for augmenter in augmenters.values():
        augmenter.augment(texts[:4])
    found = best(job, lambda size: augmenters[size].augment(texts))
    changed = []
    for before, after in zip(texts, found["result"], strict=True):
        pieces = tokenizer.tokenize(before), tokenizer.tokenize(after)
        changed.append(sum(a != b for a, b in zip(*pieces, strict=False)) if len(pieces[0]) == len(pieces[1]) else None)
    return found | {"changed": changed}


def augmenty(job: dict[str, Any]) -> dict[str, Any]:
    """Entity replacement by augmenty at the same level as ours: CPU seconds, as ours are."""
    import augmenty
    import spacy
    from spacy.tokens import Doc, Span

    nlp = spacy.blank("en")
    docs = []
    pools: dict[str, list[list[str]]] = {}
    for words, mentions in job["sentences"]:
        doc = Doc(nlp.vocab, words=words)
        doc.ents = [Span(doc, start, end, label=label) for start, end, label in mentions]
        docs.append(doc)
        for start, end, label in mentions:
            pools.setdefault(label, []).append(words[start:end])
    replace = augmenty.load("ents_replace_v1", level=0.3, ent_dict=pools)
    fastest = float("inf")
    for _ in range(job["repeat"]):
        begun = time.process_time()
        for _ in augmenty.docs(docs, augmenter=replace, nlp=nlp):
            pass
        fastest = min(fastest, time.process_time() - begun)
    return {"seconds": fastest}


def versions(_: dict[str, Any]) -> dict[str, Any]:
    """What is installed here."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


PEERS = {"minicons": minicons, "one-mask": one_mask, "bert-score": bert_score, "nlpaug": nlpaug} | {
    "augmenty": augmenty,
    "versions": versions,
}


def main() -> None:
    """Do the job."""
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    # Peers print as they like; standard output is for the answer.
    with contextlib.redirect_stdout(sys.stderr):
        answer = PEERS[job["peer"]](job)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
