"""CASSI: how many rows of the masked language model the choice needs, how long the whole takes, and how pairing grows.

    .venv/bin/python benchmarks/cassi.py --only rows speed whole growth --write benchmarks/cassi.md

- rows: one copy. Brute force computes every sub-word of every distinct candidate. Proof and intervals need fewer; the
  rows for the sentences themselves, which the intervals are made from, are counted. Picks are compared with the proof,
  which is what computing everything gives (tests/methods/test_cassi.py), and with brute force itself on the first few.
  A row that two ways ask for is computed once and counted for both. On WNUT-17 the first 100 sentences are left out:
  the spreads of the intervals were read off them.
- speed: augmentations a second beside a pipeline as the authors built theirs: one pair after the other, all candidates,
  one row a sub-word with the head computed at every place, in fp32.
- whole: everything, loading and parsing included, for both scorers, with where the time goes.
- specificity: all candidates scored. How the score, and the sum that it is the mean of, go with rare words (their mean
  inverse document frequency in the training file), with mentions and with the number of words, by rank correlation
  within a pair; and what selections of the best five prefer.
- subtrees: how many mentions lie whole in a subtree of a subject, object or complement, and how many words.
- units: whole subtrees exchanged, beside noun chunks (a subtree up to its head) and heads alone, as section 2.2 of the
  paper compares them: nearest pairs, all candidates. How many words come from the other sentence, how many pairs of
  neighbouring words neither sentence has, and how many pairs of all candidates are distinct.
- pairs: five candidates of a sentence drawn from those with its nearest partner, or one with each of five partners, as
  section 2.3 of the paper asks for; how many pairs of words and sentences are distinct.
- growth: pairing alone, exact and with the shortlist; how many of the exact ten best the shortlist has.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr

import entaug
from entaug import Sentence
from entaug.backends.dependency_trees import head_of
from entaug.backends.models.catalogue import model_path
from entaug.backends.protocols import Parse
from entaug.backends.resolve import resolve
from entaug.backends.transformers.encoder import TransformersEncoder
from entaug.backends.transformers.masked_lm import TransformersMaskedLM
from entaug.core.alignment import detokenize
from entaug.methods import CASSI
from entaug.methods.base import Request
from entaug.methods.cassi import (
    _CONFIDENCE,
    ScoreForecaster,
    Subtrees,
    exchange_candidates,
    find_subtrees,
    rank_partners,
)
from entaug.metrics.likelihood import CandidateSet, select_best
from places import DATA

CORPORA = {"wnut17": "wnut17/wnut17train.conll", "crossner-ai": "crossner/ai/train.txt"}
SEEN = {"wnut17": 100}  # sentences that the spreads were read off
LARGE = "multiconer-v1/15000/en_train.conll"
CONFIDENCES = (4.0, _CONFIDENCE, 1.5)  # deviations between intervals; the second is that of the method
STARTER: dict[str, Any] = {"encoder": "minilm", "encoder_layer": 4, "dependency_parser": "en_core_web_sm"}
Row = tuple[str, ...]
PAPER: dict[str, Any] = {"candidates": 1, "require_mention": False, "min_similarity": 0}
"""The selection of the paper, among all exchanges of the same form."""


class Counted:
    """A masked language model that counts the places it is asked for, and computes none of them twice."""

    def __init__(self, lm: TransformersMaskedLM) -> None:
        self.lm = lm
        self.name = lm.name
        self.fill = lm.fill
        self.token_offsets = lm.token_offsets
        self.rows = 0
        self._known: dict[tuple[str, int], float] = {}

    def token_log_probs(self, requests: Sequence[tuple[str, Sequence[int] | None]]) -> list[NDArray[np.float32]]:
        """As the model counted for."""
        known = self._known
        lengths = map(len, self.token_offsets([text for text, _ in requests]))
        wanted = [
            (text, list(range(length)) if places is None else list(places))
            for (text, places), length in zip(requests, lengths, strict=True)
        ]
        self.rows += sum(len(places) for _, places in wanted)
        new = [(text, [p for p in places if (text, p) not in known]) for text, places in wanted]
        new = [(text, places) for text, places in new if places]
        for (text, places), values in zip(new, self.lm.token_log_probs(new), strict=True):
            known.update(zip([(text, p) for p in places], values.tolist(), strict=True))
        return [np.array([known[text, p] for p in places], np.float32) for text, places in wanted]


def gold(name: str, count: int) -> list[Sentence]:
    """The first sentences of a corpus that nothing was fitted to."""
    return list(entaug.read(DATA / CORPORA[name]))[SEEN.get(name, 0) :][:count]


def contests_of(cassi: CASSI, sentences: list[Sentence]) -> list[tuple[Any, CandidateSet]]:
    """The pairs of a fitted method with what is to be decided in them."""
    found = []
    for sentence in sentences:
        pair: Any = cassi._prepare(Request(sentence, Random(0)))  # noqa: SLF001
        if hasattr(pair, "candidates"):
            found.append((pair, cassi._candidate_set(pair)))  # noqa: SLF001
    return found


def brute_force(contest: CandidateSet, lm: Any, top_k: int) -> tuple[NDArray[np.float64], list[int], int]:
    """The scores of all candidates, the likeliest of them, best first, and the one selected."""
    scores = entaug.metrics.pseudo_log_likelihood(list(contest.texts), lm) / np.array(contest.words)
    likeliest = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:top_k]
    wanted = contest.preferences or []
    return scores, likeliest, min(likeliest, key=lambda i: (-wanted[i], i))


def forecast(lm: Any, work: list[tuple[Any, CandidateSet]]) -> list[CandidateSet]:
    """Candidates with the scores that are expected of their sub-words."""
    pairs = [(pair.sources, pair.candidates, candidate_set) for pair, candidate_set in work]
    return list(ScoreForecaster(lm).forecast(pairs))


def rows(counts: dict[str, int], brute: int) -> Iterator[Row]:
    """Rows and picks."""
    lm = Counted(TransformersMaskedLM(model_path("mpnet-mlm"), device="cpu"))
    yield ("corpus", "way", "rows an augmentation", "of brute force", "picks")
    for name, count in counts.items():
        sentences = gold(name, count)
        cassi = CASSI(scorer="masked", masked_lm=lm, **PAPER).fit(sentences)
        work = contests_of(cassi, sentences)
        pairs, contests = [p for p, _ in work], [c for _, c in work]
        every = sum(len(p) for c in contests for p in lm.token_offsets(list(c.texts)))
        n = len(work)
        candidates = np.mean([len(c.texts) for c in contests])
        yield (name, f"brute force, {n} pairs, {candidates:.0f} candidates each", f"{every / n:.0f}", "100 %", "")
        chosen = {}
        ways = [("all computed", None), *((f"by intervals of {z:g} deviations", z) for z in CONFIDENCES)]
        for way, confidence in ways:
            lm.rows = 0
            foreseen = forecast(lm, list(zip(pairs, contests, strict=True)))
            verdicts = select_best(foreseen, cassi.top_k, lm, confidence)
            chosen[way] = [v.chosen for v in verdicts]
            alike = sum(a == b for a, b in zip(chosen[way], chosen["all computed"], strict=True))
            told = "" if way == "all computed" else f"{alike} of {n} as with all computed"
            yield (name, way, f"{lm.rows / n:.0f}", f"{lm.rows / every:.1%}", told)
        alike = 0
        for contest, proved in list(zip(contests, chosen["all computed"], strict=True))[:brute]:
            alike += brute_force(contest, lm, cassi.top_k)[2] == proved
        yield (name, f"brute force on {brute} pairs", "", "", f"{alike} of {brute} as with all computed")


@torch.inference_mode()
def plain_scores(lm: TransformersMaskedLM, texts: list[str]) -> list[float]:
    """Pseudo-log-likelihoods as the authors' pipeline computes them: one text at a time, the head at every place."""
    found = []
    for text in texts:
        ids = lm.tokenizer(text, return_tensors="pt")["input_ids"]
        places = range(1, ids.shape[1] - 1)
        masked = ids.repeat(len(places), 1)
        masked[torch.arange(len(places)), torch.tensor(places)] = lm.tokenizer.mask_token_id
        logits = lm.model(input_ids=masked, attention_mask=torch.ones_like(masked)).logits.log_softmax(-1)
        found.append(float(sum(logits[row, place, ids[0, place]] for row, place in enumerate(places))))
    return found


def speed(count: int, few: int) -> Iterator[Row]:
    """Augmentations a second: the choice alone, with the same pairs and candidates."""
    yield ("corpus", "way", "augmentations/s", "times as fast", "picks")
    sentences = gold("wnut17", count)
    plain = TransformersMaskedLM(model_path("mpnet-mlm"), device="cpu", precision="fp32")
    cassi = CASSI(scorer="masked", masked_lm=plain, **PAPER).fit(sentences)
    work = contests_of(cassi, sentences)
    step = max(1, len(work) // few)
    some = work[::step][:few]
    begun = time.monotonic()
    picks = []
    for _, contest in some:
        values = np.array(plain_scores(plain, list(contest.texts))) / np.array(contest.words)
        top = sorted(range(len(values)), key=lambda i: (-values[i], i))[: cassi.top_k]
        picks.append(min(top, key=lambda i: (-(contest.preferences or [])[i], i)))
    slow = len(some) / (time.monotonic() - begun)
    yield ("wnut17", f"as the authors' pipeline, fp32, {len(some)} pairs", f"{slow:.3f}", "1.0", "")
    for precision, confidence in (("fp32", None), ("fp32", _CONFIDENCE), ("bf16", None), ("bf16", _CONFIDENCE)):
        lm = TransformersMaskedLM(model_path("mpnet-mlm"), device="cpu", precision=precision)
        cassi.masked_lm_ = lm
        begun = time.monotonic()
        foreseen = forecast(lm, some)
        verdicts = select_best(foreseen, cassi.top_k, lm, confidence)
        fast = len(some) / (time.monotonic() - begun)
        alike = sum(v.chosen == pick for v, pick in zip(verdicts, picks, strict=True))
        way = f"{precision}, {'all computed' if confidence is None else 'by intervals'}"
        yield ("wnut17", way, f"{fast:.3f}", f"{fast / slow:.1f}", f"{alike} of {len(some)} the same")


def whole(counts: dict[str, int], copies: int) -> Iterator[Row]:
    """The whole method as a user runs it."""
    yield ("corpus", "scorer", "made", "seconds", "made/s", "where the time goes")
    for name, count in counts.items():
        for scorer in ("masked", "causal"):
            sentences = gold(name, count)
            spent: defaultdict[str, float] = defaultdict(float)
            begun = time.monotonic()
            backends = {
                "dependency_parser": resolve("dependency_parser", "en_core_web_sm"),
                "encoder": resolve("encoder", "minilm"),
                f"{scorer}_lm": resolve(f"{scorer}_lm", {"masked": "mpnet-mlm", "causal": "smollm2"}[scorer]),
            }
            spent["loading"] = time.monotonic() - begun
            for backend, method, what in (
                ("dependency_parser", "parse", "parsing"),
                ("encoder", "token_vectors", "encoding"),
                (f"{scorer}_lm", "token_log_probs", "scoring"),
            ):
                timed_method(backends[backend], method, what, spent)
            cassi = CASSI(scorer=scorer, copies=copies, **PAPER, **backends).fit(sentences)
            made = list(cassi.augment(sentences))
            total = time.monotonic() - begun
            spent["pairs, candidates and the rest"] = total - sum(spent.values())
            shares = "; ".join(f"{what} {seconds:.0f} s" for what, seconds in spent.items())
            kinds = Counter("fallback" in s.fields["entaug"] for s in made)
            yield (
                name,
                scorer,
                f"{len(made)} of {count * copies}, {count} sentences ({kinds[True]} by `mr`)",
                f"{total:.0f}",
                f"{len(made) / total:.2f}",
                shares,
            )


def timed_method(thing: Any, name: str, what: str, spent: dict[str, float]) -> None:
    """Have the time of a method of an object counted."""
    plain: Callable[..., Any] = getattr(thing, name)

    def timed(*given: Any, **named: Any) -> Any:
        begun = time.monotonic()
        try:
            return plain(*given, **named)
        finally:
            spent[what] += time.monotonic() - begun

    setattr(thing, name, timed)


def growth(sizes: list[int]) -> Iterator[Row]:
    """Pairing, exact and by the shortlist."""
    yield ("sentences", "exact, s", "shortlist of 100, s", "exact ten best found", "by 200", "of that encoding, s")
    encoder = TransformersEncoder(model_path("minilm"), device="cpu")
    everything = [s for s in entaug.read(DATA / LARGE) if len(s) > 4]
    for size in sizes:
        sentences = everything[:size]
        texts = [detokenize(s.tokens, s.spaces) for s in sentences]
        begun = time.monotonic()
        encoder.token_vectors(texts)
        encoding = time.monotonic() - begun
        tops, seconds = {}, {}
        for shortlist in (0, 100, 200):
            begun = time.monotonic()
            ranked = rank_partners(
                sentences, "bertscore", encoder, shortlist_size=shortlist, stream=lambda _: Random(0)
            )
            tops[shortlist] = [[j for j, _ in zip(ranking, range(10), strict=False)] for ranking in ranked]
            seconds[shortlist] = time.monotonic() - begun
        recall = {
            n: np.mean([len(set(a) & set(b)) / len(a) for a, b in zip(tops[0], tops[n], strict=True)])
            for n in (100, 200)
        }
        yield (
            str(size),
            f"{seconds[0]:.1f}",
            f"{seconds[100]:.1f}",
            f"{recall[100]:.1%}",
            f"{recall[200]:.1%}",
            f"{encoding:.1f}",
        )


def specificity(counts: dict[str, int]) -> Iterator[Row]:
    """Score, rarity of words, share of mentions and length of what is selected, and how they correlate."""
    lm = TransformersMaskedLM(model_path("mpnet-mlm"), device="cpu")
    yield ("corpus", "selection", "LM score", "mean IDF", "words in mentions", "words", "J-score")
    for name, count in counts.items():
        documents = [{word.lower() for word in s.tokens} for s in entaug.read(DATA / CORPORA[name])]
        idf = {word: np.log(len(documents) / n) for word, n in Counter(chain.from_iterable(documents)).items()}
        sentences = gold(name, count)
        cassi = CASSI(preset="paper", masked_lm=lm, **STARTER).fit(sentences)
        selected: dict[str, list[NDArray[np.float64]]] = defaultdict(list)
        correlations = []
        for pair, contest in contests_of(cassi, sentences):
            candidates = [candidate.sentence for candidate in pair.candidates]
            if len(candidates) <= cassi.top_k:
                continue
            scores, likeliest, chosen = brute_force(contest, lm, cassi.top_k)
            rarity = [np.mean([idf[word.lower()] for word in candidate.tokens]) for candidate in candidates]
            mentioned = [1 - np.mean(candidate.outside_mask()) for candidate in candidates]
            lengths = contest.words  # that are not punctuation
            values = np.array([scores, rarity, mentioned, lengths, contest.preferences]).T
            selected["best LM score"].append(values[likeliest[0]])
            selected["best J-score of the five likeliest"].append(values[chosen])
            selected["mean of the five likeliest"].append(values[likeliest].mean(0))
            selected["mean of all"].append(values.mean(0))
            sums = np.multiply(scores, lengths)
            selected["best sum"].append(values[np.argmax(sums)])
            traits = (rarity, mentioned, lengths)
            correlations.append([spearmanr(kind, one).statistic for kind in (scores, sums) for one in traits])
        for way, of_pairs in selected.items():
            score, rare, share, length, preference = np.mean(of_pairs, 0)
            yield (name, way, f"{score:.2f}", f"{rare:.2f}", f"{share:.1%}", f"{length:.1f}", f"{preference:.3f}")
        rho = np.nanmean(correlations, 0)  # without a mention in any candidate there is no correlation
        for kind, of_kind in (("LM score", rho[:3]), ("sum", rho[3:])):
            told = f"rank correlation with the {kind}, mean of {len(correlations)} pairs"
            yield (name, told, "", *(f"{one:+.2f}" for one in of_kind), "")


def subtrees() -> Iterator[Row]:
    """Mentions and words in the subtrees that are exchanged, in the first 300 sentences of each corpus."""
    parser = resolve("dependency_parser", STARTER["dependency_parser"])
    yield ("corpus", "mentions in a subtree", "words in one", "subtrees", "words of a subtree")
    for name, file in {**CORPORA, "multiconer-en": LARGE}.items():
        sentences = list(islice(entaug.read(DATA / file), 300))
        mentions = words = 0
        lengths: list[int] = []
        for sentence, parse in zip(sentences, parser.parse([s.tokens for s in sentences]), strict=True):
            found = find_subtrees(parse)
            spans = {*found.subjects, *found.objects}
            words += len({i for start, end in spans for i in range(start, end)})
            mentions += sum(any(s <= m.start and m.end <= e for s, e in spans) for m in sentence.mentions)
            lengths += [end - start for start, end in spans]
        shares = mentions / sum(len(s.mentions) for s in sentences), words / sum(map(len, sentences))
        yield (name, *(f"{share:.0%}" for share in shares), f"{len(lengths):,}", f"{np.mean(lengths):.1f}")


def _ranked(count: int) -> Iterator[tuple[str, list[Sentence], list[Parse], list[Iterator[int]]]]:
    """The first sentences of each corpus, with their trees, and for each the others from the nearest on."""
    parser, encoder = (resolve(kind, STARTER[kind]) for kind in ("dependency_parser", "encoder"))
    for name, file in {**CORPORA, "multiconer-en": LARGE}.items():
        sentences = list(islice(entaug.read(DATA / file), count))
        layer = STARTER["encoder_layer"]
        rankings = rank_partners(sentences, "bertscore", encoder, layer=layer, stream=lambda _: Random(0))
        yield name, sentences, list(parser.parse([s.tokens for s in sentences])), list(rankings)


def units(count: int = 300) -> Iterator[Row]:
    """Subtrees, chunks and heads in the first sentences of each corpus, each with the nearest other sentence."""
    yield ("corpus", "exchanged", "candidates", "words from the other", "new pairs of words", "distinct-2")
    for name, sentences, parses, rankings in _ranked(count):
        nearest = [next(ranking) for ranking in rankings]
        for unit in ("subtree", "chunk", "head"):
            spans = [_units(parse, unit) for parse in parses]
            bigrams: Counter[tuple[str, str]] = Counter()
            inserted, new = [], []
            for i, j in enumerate(nearest):
                known = {*pairwise(sentences[i].tokens), *pairwise(sentences[j].tokens)}
                for candidate in exchange_candidates(sentences[i], sentences[j], spans[i], spans[j]):
                    own = list(pairwise(candidate.sentence.tokens))
                    bigrams.update(own)
                    new.append(len(set(own) - known))
                    inserted.append(candidate.inserted[1] - candidate.inserted[0])
            distinct = len(bigrams) / bigrams.total()
            yield (name, unit, f"{len(new):,}", f"{np.mean(inserted):.1f}", f"{np.mean(new):.2f}", f"{distinct:.1%}")


def pairs(count: int = 300, each: int = 5) -> Iterator[Row]:
    """As many candidates of each of the first sentences: all of one pair, or one of each of several pairs."""
    yield ("corpus", f"{each} candidates", "sentences", "distinct-2", "distinct sentences")
    for name, sentences, parses, rankings in _ranked(count):
        found = [find_subtrees(parse) for parse in parses]
        ways: dict[str, list[tuple[str, ...]]] = {"of the nearest pair": [], "one of each of the nearest pairs": []}
        for i, ranking in enumerate(rankings):
            rng, nearest = Random(i), islice(ranking, each)
            made = [list(exchange_candidates(sentences[i], sentences[j], found[i], found[j])) for j in nearest]
            if len(made) < each or len(made[0]) < each or not all(made):
                continue
            drawn = rng.sample(made[0], each), [rng.choice(candidates) for candidates in made]
            for texts, candidates in zip(ways.values(), drawn, strict=True):
                texts += [candidate.sentence.tokens for candidate in candidates]
        for way, texts in ways.items():
            bigrams = Counter(chain.from_iterable(map(pairwise, texts)))
            distinct = f"{len(bigrams) / bigrams.total():.1%}"
            yield (name, way, f"{len(texts) // each:,}", distinct, f"{len(set(texts)) / len(texts):.0%}")


def _units(parse: Parse, unit: str) -> Subtrees:
    """What is exchanged in a sentence."""

    def part(span: tuple[int, int]) -> tuple[int, int]:
        head = head_of(parse, span)
        return {"subtree": span, "chunk": (span[0], head + 1), "head": (head, head + 1)}[unit]

    found = find_subtrees(parse)
    subjects, objects = (tuple(sorted(set(map(part, spans)))) for spans in (found.subjects, found.objects))
    return Subtrees(subjects, objects)


def table(made: Iterator[Row]) -> list[str]:
    """Markdown, printed as it comes."""
    lines = []
    for number, row in enumerate(made):
        lines.append(f"| {' | '.join(row)} |")
        if not number:
            lines.append("|" + "---|" * len(row))
        print("\n".join(lines[-1:]) if number else "\n".join(lines), flush=True)
    return lines


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser()
    parts = ["rows", "speed", "whole", "specificity", "subtrees", "units", "pairs", "growth"]
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--ai-sentences", type=int, default=200)
    parser.add_argument("--brute", type=int, default=20)
    parser.add_argument("--few", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000, 8000])
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    asked = {"wnut17": args.sentences, "crossner-ai": args.ai_sentences}
    counts = {name: count for name, count in asked.items() if count}
    runs: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
        "rows": (
            "Rows of the masked language model",
            lambda: rows(counts, args.brute),
        ),
        "speed": ("Beside the authors' way of scoring", lambda: speed(args.sentences, args.few)),
        "whole": ("The whole method, 3 copies", lambda: whole(counts, 3)),
        "specificity": ("Specificity", lambda: specificity(counts)),
        "subtrees": ("Mentions in subtrees", subtrees),
        "units": ("Subtrees, noun chunks and heads", units),
        "pairs": ("One candidate of a pair, or several", pairs),
        "growth": ("Pairing of more sentences", lambda: growth(args.sizes)),
    }
    given = " ".join(sys.argv[1:])
    text = [
        "# CASSI",
        "",
        f"`benchmarks/cassi.py {given}` on {platform.machine()}, {torch.get_num_threads()} threads;",
        f"torch {torch.__version__}, entaug {entaug.__version__}. MiniLM for pairing, our MPNet or SmolLM2 for scores,",
        "spaCy's small English pipeline for trees. See the head of the script for what is measured how.",
    ]
    for part in args.only:
        title, run = runs[part]
        print(f"\n## {title}\n", flush=True)
        text += ["", f"## {title}", "", *table(run())]
    if args.write:
        args.write.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
