"""CASSI once more, slowly and straight from the paper: what the fast way has to agree with.

Nothing of entaug's way is used: similarity is a loop over pairs, an exchange splices rows of tags, every sub-word is
hidden alone by a plain loop over transformers, and all candidates are scored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from entaug import Sentence
from entaug.backends.protocols import Parse
from entaug.core.alignment import detokenize

SUBJECTS = {"nsubj", "nsubjpass", "csubj", "csubjpass"}
OBJECTS = {"dobj", "obj", "iobj", "pobj", "pcomp", "acomp", "ccomp", "xcomp", "oprd"}

Tagged = tuple[tuple[str, ...], tuple[str, ...]]  # words and IOB2 tags


class Choice(NamedTuple):
    words: tuple[str, ...]
    tags: tuple[str, ...]
    score: float
    j: float
    rank: int
    partner: int


def bertscore(a: Any, b: Any, around: tuple[int, int]) -> float:
    """F1 of two sentences given the vectors of their sub-words, special ones included."""
    a = a / np.linalg.norm(a, axis=1, keepdims=True)
    b = b / np.linalg.norm(b, axis=1, keepdims=True)
    cosines = a @ b.T
    before, after = around
    precision = cosines.max(axis=1)[before : len(a) - after].mean()
    recall = cosines.max(axis=0)[before : len(b) - after].mean()
    return float(2 * precision * recall / (precision + recall))


def ranges(parse: Parse, relations: set[str], tags: set[str]) -> list[tuple[int, int]]:
    found = set()
    for child, head in enumerate(parse.heads):
        if head == child or parse.relations[child].lower() not in relations or parse.tags[head] not in tags:
            continue
        below = {child}
        while more := {i for i, h in enumerate(parse.heads) if h in below and i != h} - below:
            below |= more
        if max(below) - min(below) + 1 == len(below):
            found.add((min(below), max(below) + 1))
    return sorted(found)


def splice(frame: Tagged, out: tuple[int, int], donor: Tagged, into: tuple[int, int]) -> Tagged:
    words = [*frame[0][: out[0]], *donor[0][into[0] : into[1]], *frame[0][out[1] :]]
    tags = [*frame[1][: out[0]], *donor[1][into[0] : into[1]], *frame[1][out[1] :]]
    for joint in (out[0], out[0] + into[1] - into[0]):
        if joint < len(tags) and tags[joint].startswith("I-"):
            tags[joint] = "B-" + tags[joint][2:]
    return tuple(words), tuple(tags)


def j_score(u: set[str], v: set[str], c: set[str]) -> float:
    return math.sqrt(len(u & c) * len(v & c) / (len(u | c) * len(v | c)))


def choose(
    gold: list[Sentence],
    parses: list[Parse],
    vectors: list[Any],
    around: tuple[int, int],
    score: Callable[[str], float],
    k: int = 5,
) -> dict[int, Choice | None]:
    """For each sentence, by its place, what one copy of it is; None where no exchange gives anything new.

    Sentences without any subtree are not in it. As entaug does, pairs are given out in the order of fingerprints.
    """
    verbs = {"VERB", "AUX"}
    trees = [(ranges(p, SUBJECTS, verbs), ranges(p, OBJECTS, verbs | {"ADP", "SCONJ", "PART"})) for p in parses]
    tagged = [(s.tokens, tuple(s.iob())) for s in gold]
    order = sorted((i for i, t in enumerate(trees) if t[0] or t[1]), key=lambda i: gold[i].fingerprint())
    met: set[frozenset[int]] = set()
    chosen: dict[int, Choice | None] = {}
    for u in order:
        chosen[u] = None
        scores = [(bertscore(vectors[u], vectors[v], around), v) for v in order if v != u]
        for _, v in sorted(scores, key=lambda pair: -pair[0]):
            common = any(trees[u][role] and trees[v][role] for role in (0, 1))
            if frozenset((u, v)) in met or not common or gold[u].tokens == gold[v].tokens:
                continue
            met.add(frozenset((u, v)))
            chosen[u] = best_of(tagged[u], tagged[v], trees[u], trees[v], score, k, v)
            break
    return chosen


def best_of(u: Tagged, v: Tagged, of_u: Any, of_v: Any, score: Any, k: int, partner: int) -> Choice | None:
    def low(one: Tagged) -> Any:
        return tuple(w.lower() for w in one[0]), one[1]

    seen = {low(u), low(v)}
    candidates: list[Tagged] = []
    for role in (0, 1):
        for a in of_u[role]:
            for b in of_v[role]:
                for made in (splice(u, a, v, b), splice(v, b, u, a)):
                    if low(made) not in seen:
                        seen.add(low(made))
                        candidates.append(made)
    if not candidates:
        return None
    sets = [{w.lower() for w in one[0]} for one in (u, v)]
    rated = []
    for number, (words, tags) in enumerate(candidates):
        count = max(1, sum(any(c.isalnum() for c in w) for w in words))
        value = score(detokenize(words)) / count
        rated.append((value, number, j_score(sets[0], sets[1], {w.lower() for w in words}), words, tags))
    top = sorted(rated, key=lambda one: (-one[0], one[1]))[:k]
    rank, best = max(enumerate(top, start=1), key=lambda pair: (pair[1][2], -pair[1][1]))
    return Choice(best[3], best[4], best[0], best[2], rank, partner)


def one_mask_at_a_time(lm: Any) -> Callable[[str], float]:
    """The pseudo-log-likelihood of a text by a plain loop over transformers."""
    import torch

    @torch.inference_mode()
    def score(text: str) -> float:
        ids = lm.tokenizer(text, return_tensors="pt")["input_ids"]
        places = [
            i for i, t in enumerate(ids[0].tolist()) if t not in lm.tokenizer.all_special_ids or 0 < i < len(ids[0]) - 1
        ]
        rows = ids.repeat(len(places), 1)
        for row, place in enumerate(places):
            rows[row, place] = lm.tokenizer.mask_token_id
        logits = lm.model(input_ids=rows, attention_mask=torch.ones_like(rows)).logits.float()
        return sum(float(logits[row, place].log_softmax(-1)[ids[0, place]]) for row, place in enumerate(places))

    return score
