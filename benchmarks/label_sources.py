"""Sources of labels with planted errors: labels joined to soft labels, beside crowd-kit, skweak and each source alone.

    python benchmarks/label_sources.py join
    python benchmarks/label_sources.py train wnut17 --seeds 3
    python benchmarks/label_sources.py report

Of a corpus, 100 sentences are gold and 2,000 others have labels of sources with planted errors. The errors of a source
are of its own mixture (boundaries, types, missing, spurious), depend for a share on the words of the mention, as those
of lists and models do, and for another share on how difficult these words are for all sources; their number is set so
that the F1 of the source against gold is the one that is named. ``join`` scores the joined labels themselves, ``train``
taggers that learn them at an equal number of steps. Records are lines of ``results/label-sources``; finished ones are
not repeated. The peers are extras that nothing else needs:
``pip install --no-deps crowd-kit skweak hmmlearn``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import os
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: sums depend on the number of threads

import numpy as np

import entaug
from entaug import Mention, Sentence, score
from entaug.backends.soft_labels import TagProbabilities, tags_of
from entaug.core.words import stop_words
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from entaug.taggers.sources.joining import Joiner, labels_of
from label_errors import RESULTS, add_record, confusable_labels, is_wordy, records_of
from places import DATA, write_tables
from records import machine, versions

GOLD, TEXT = 100, 2000
STEPS = 250
CORPORA = {
    "multiconer-en": ("multiconer-v1/15000/en_train.conll", "multiconer-v1/15000/en_dev.conll"),
    "wnut17": ("wnut17/wnut17train.conll", "wnut17/emerging.test.annotated"),
    "ncbi-disease": ("ncbi-disease/train.tsv", "ncbi-disease/test.tsv"),
    "bc2gm": ("bc2gm/train.tsv", "bc2gm/test.tsv"),
}
Said = Sequence[Sequence[Sentence]]
"""For each source the sentences with its labels."""


@dataclass(frozen=True)
class Profile:
    """How a source errs.

    Args:
        f1: its F1 against gold.
        kinds: the shares of errors: boundary, type, missing, spurious.
        by_form: the share of errors that depend on the words of the mention alone.
        shared: the share of errors that other sources make at the same words.
    """

    name: str
    f1: float
    boundary: float
    type: float
    missing: float
    spurious: float
    by_form: float
    shared: float


PROFILES = (
    Profile("lists", 54.0, 0.15, 0.10, 0.60, 0.15, 0.7, 0.15),
    Profile("distant", 62.0, 0.20, 0.25, 0.35, 0.20, 0.5, 0.2),
    Profile("llm", 70.0, 0.35, 0.25, 0.05, 0.35, 0.3, 0.2),
    Profile("model", 80.0, 0.30, 0.30, 0.25, 0.15, 0.3, 0.3),
)


def number_of(*parts: object) -> float:
    """A number in [0, 1) that depends on some values."""
    return (crc32("\0".join(map(str, parts)).encode()) * 2654435761 % 2**32) / 2**32


class NoisySource:
    """A source with planted errors."""

    def __init__(self, profile: Profile, sentences: Sequence[Sentence], language: str, seed: int) -> None:
        self.profile = profile
        self.sentences = sentences
        self.seed = seed
        self._stop_words = stop_words(language)
        self._confusable = confusable_labels(sentences)
        self._labels = Counter(m.label for s in sentences for m in s.mentions)

    def label(self) -> list[Sentence]:
        """The sentences with the labels of the source, at the strength that gives its F1."""
        low, high = 0.0, 4.0
        for _ in range(10):
            middle = (low + high) / 2
            labelled = [self._label(i, s, middle) for i, s in enumerate(self.sentences)]
            if 100 * score(self.sentences, labelled).micro.f1 > self.profile.f1:
                low = middle
            else:
                high = middle
        return labelled

    def _draw(self, place: int, form: tuple[str, ...], what: str) -> float:
        """A number in [0, 1) that decides on an error at a place."""
        form = tuple(map(str.lower, form))
        kind = number_of("kind", self.seed, self.profile.name, place, form, what)
        if kind < self.profile.shared:
            return number_of("all", self.seed, form, what)
        if kind < self.profile.shared + self.profile.by_form:
            return number_of("form", self.seed, self.profile.name, form, what)
        return number_of("place", self.seed, self.profile.name, place, form, what)

    def _label(self, place: int, sentence: Sentence, strength: float) -> Sentence:
        profile, kept = self.profile, []
        taken: set[int] = {i for m in sentence.mentions for i in m.positions()}
        kinds = {"missing": profile.missing, "type": profile.type, "boundary": profile.boundary}
        if len(self._labels) == 1:
            kinds["missing"] += kinds.pop("type") / 2
        for mention in sentence.mentions:
            form = sentence.mention_tokens(mention)
            wrong: Mention | None = mention
            for kind, share in kinds.items():
                if self._draw(place, form, kind) < share * strength:
                    wrong = self._wrong(kind, place, sentence, mention, taken)
                    break
            if wrong is not None:
                kept.append(wrong)
                taken.update(wrong.positions())
        per_phrase = self._labels.total() / max(1, sum(map(len, self._phrases)))
        for start, end in self._phrases[place]:
            form = sentence.tokens[start:end]
            is_free = taken.isdisjoint(range(start, end))
            if is_free and self._draw(place, form, "spurious") < profile.spurious * strength * per_phrase:
                label = self._choice(self._labels, self._draw(place, form, "label"))
                kept.append(Mention(label, [(start, end)]))
                taken.update(range(start, end))
        return Sentence(sentence.tokens, kept)

    def _wrong(self, kind: str, place: int, sentence: Sentence, mention: Mention, taken: set[int]) -> Mention | None:
        form = sentence.mention_tokens(mention)
        if kind == "missing":
            return None
        if kind == "type":
            return Mention(self._choice(self._confusable[mention.label], self._draw(place, form, "to")), mention.spans)
        start, end = mention.spans[0]
        spans = [(start + 1, end), (start, end - 1)] if end - start > 1 else []
        if start and start - 1 not in taken and is_wordy(sentence.tokens[start - 1]):
            spans.append((start - 1, end))
        if end < len(sentence) and end not in taken and is_wordy(sentence.tokens[end]):
            spans.append((start, end + 1))
        return Mention(mention.label, [spans[int(self._draw(place, form, "side") * len(spans))]]) if spans else None

    @staticmethod
    def _choice(weights: dict[str, float] | Counter[str], number: float) -> str:
        """A label by weight."""
        total = sum(weights.values())
        bounds = itertools.accumulate(weight / total for weight in weights.values())
        below = [label for label, bound in zip(weights, bounds, strict=True) if number < bound]
        return below[0] if below else list(weights)[-1]

    @cached_property
    def _phrases(self) -> list[list[tuple[int, int]]]:
        return [list(self._phrases_of(sentence)) for sentence in self.sentences]

    def _phrases_of(self, sentence: Sentence) -> Iterator[tuple[int, int]]:
        """Runs of one to three words in no mention that are no stop words."""
        free = [
            out and is_wordy(word) and len(word) > 2 and word.lower() not in self._stop_words
            for out, word in zip(sentence.outside_mask(), sentence.tokens, strict=True)
        ]
        start = 0
        while start < len(sentence):
            end = start
            while end < len(sentence) and free[end] and end - start < 3:
                end += 1
            if end > start:
                yield start, end
            start = max(end, start + 1)


# ------------------------------------------------------------------------------------------------------------ the data


def load(name: str, seed: int) -> tuple[list[Sentence], list[Sentence]]:
    """The gold sentences and those of the text, in one list, and the test sentences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train, test = (list(entaug.read(DATA / file, repair=True)) for file in CORPORA[name])
    held_out = {s.tokens for s in test}
    plain = list({s.tokens: Sentence(s.tokens, s.mentions) for s in train if s.tokens not in held_out}.values())
    return Random(seed).sample(plain, GOLD + TEXT), [Sentence(s.tokens, s.mentions) for s in test]


def sources_of(name: str, seed: int, folder: Path) -> tuple[list[Sentence], list[list[Sentence]], list[Sentence]]:
    """The sentences with their own labels, with those of each source, and the test sentences."""
    sentences, test = load(name, seed)
    said = []
    for profile in PROFILES:
        file = folder / f"{name}-{seed}-{profile.name}.jsonl"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            entaug.write(NoisySource(profile, sentences, "en", seed).label(), file)
        said.append(list(entaug.read(file)))
    return sentences, said, test


# ------------------------------------------------------------------------------------------------------ joining labels

Joined = list[Sentence]


def without_overlaps(votes: Counter[Mention]) -> list[Mention]:
    """Mentions that do not overlap, those with most votes first."""
    kept: list[Mention] = []
    for mention, _ in sorted(votes.items(), key=lambda item: (-item[1], item[0].spans, item[0].label)):
        if all(mention.end <= other.start or other.end <= mention.start for other in kept):
            kept.append(mention)
    return kept


def voted(sentences: Sequence[Sentence], said: Said, least: float) -> Joined:
    """The mentions that at least a share of the sources has."""
    joined = []
    for sentence, of_sources in zip(sentences, zip(*said, strict=True), strict=True):
        votes = Counter(mention for one in of_sources for mention in one.mentions)
        kept = {mention: n for mention, n in votes.items() if n >= least * len(said)}
        joined.append(sentence.with_(mentions=without_overlaps(Counter(kept))))
    return joined


def of_source(sentences: Sequence[Sentence], said: Said, number: int) -> Joined:
    """The labels of one source."""
    del sentences
    return list(said[number])


def by_entaug(sentences: Sequence[Sentence], said: Said, num_gold: int) -> Joined:
    """Soft labels of entaug, with some sentences as gold."""
    mentions = [[s.mentions for s in one] for one in said]
    gold = [s.mentions if i < num_gold else None for i, s in enumerate(sentences)]
    joiner = Joiner(labels_of(sentences[:num_gold], mentions))
    return [
        soft.label(s) for soft, s in zip(joiner.join(mentions, list(map(len, sentences)), gold), sentences, strict=True)
    ]


def by_crowd_kit(sentences: Sequence[Sentence], said: Said, num_gold: int) -> Joined:
    """The model of Dawid and Skene over the tags of words, of crowd-kit, with the tags of gold sentences as given."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    rows = [
        (f"{i} {j}", source, tag)
        for source, one in enumerate(said)
        for i, s in enumerate(one)
        for j, tag in enumerate(s.iob())
    ]
    answers = pd.DataFrame(rows, columns=["task", "worker", "label"])
    known = {f"{i} {j}": tag for i, s in enumerate(sentences[:num_gold]) for j, tag in enumerate(s.iob())}
    model = DawidSkene(n_iter=100)
    model.fit(answers, true_labels=pd.Series(known, dtype=str) if known else None)
    columns = sorted({"O", *model.probas_.columns})
    table = model.probas_.reindex(columns=columns).fillna(0)
    place = {task: row for row, task in enumerate(table.index)}
    values = table.to_numpy()
    return [
        TagProbabilities(columns, values[[place[f"{i} {j}"] for j in range(len(s))]]).label(s)
        for i, s in enumerate(sentences)
    ]


def by_skweak(sentences: Sequence[Sentence], said: Said, num_gold: int) -> Joined:
    """The hidden Markov model of skweak, which knows no gold sentences."""
    import spacy
    from skweak.generative import HMM
    from spacy.tokens import Doc, Span

    del num_gold
    vocab = spacy.blank("en").vocab
    labels = sorted({m.label for one in said for s in one for m in s.mentions})
    docs = []
    for of_sources in zip(*said, strict=True):
        doc = Doc(vocab, words=list(of_sources[0].tokens))
        for profile, s in zip(PROFILES, of_sources, strict=True):
            doc.spans[profile.name] = [Span(doc, m.start, m.end, label=m.label) for m in s.mentions]
        docs.append(doc)
    tags = tags_of(labels)
    joined = []
    for s, doc in zip(sentences, HMM("joined", labels).fit_and_aggregate(docs), strict=True):
        values = np.zeros((len(s), len(tags)))
        for position, shares in doc.spans["joined"].attrs["probs"].items():
            for tag, share in shares.items():
                values[position, tags.index(tag)] = share
        values[:, 0] += np.maximum(0.0, 1 - values.sum(1))
        soft = TagProbabilities(tags, values)
        mentions = [Mention(span.label_, [(span.start, span.end)]) for span in doc.spans["joined"]]
        joined.append(soft.attach_to(s.with_(mentions=mentions)))
    return joined


METHODS: dict[str, Callable[[Sequence[Sentence], Said], Joined]] = {
    **{profile.name: partial(of_source, number=i) for i, profile in enumerate(PROFILES)},
    "union": partial(voted, least=0.0),
    "majority": partial(voted, least=0.5),
    "crowd-kit DS": partial(by_crowd_kit, num_gold=GOLD),
    "crowd-kit DS, no gold": partial(by_crowd_kit, num_gold=0),
    "skweak HMM, no gold": partial(by_skweak, num_gold=0),
    "entaug": partial(by_entaug, num_gold=GOLD),
    "entaug, no gold": partial(by_entaug, num_gold=0),
}


def log_loss(sentences: Sequence[Sentence], joined: Joined) -> float | None:
    """The mean negative log-probability of the right tag of a word; None for hard labels."""
    losses = []
    for s, one in zip(sentences, joined, strict=True):
        soft = TagProbabilities.from_sentence(one)
        if soft is None:
            return None
        for tag, row in zip(s.iob(), soft.values, strict=True):
            losses.append(-np.log(max(1e-4, row[soft.tags.index(tag)] if tag in soft.tags else 0)))
    return round(float(np.mean(losses)), 4)


def join(name: str, seed: int, method: str, folder: Path) -> dict[str, Any]:
    """The record of the joined labels of the text."""
    sentences, said, _ = sources_of(name, seed, folder)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        joined = METHODS[method](sentences, said)
    seconds = time.process_time() - begun
    counts = score(sentences[GOLD:], joined[GOLD:]).micro
    return {
        "corpus": name,
        "seed": seed,
        "method": method,
        "f1": round(100 * counts.f1, 2),
        "precision": round(100 * counts.precision, 2),
        "recall": round(100 * counts.recall, 2),
        "log_loss": log_loss(sentences[GOLD:], joined[GOLD:]),
        "cpu_seconds": round(seconds, 1),
        **environment(),
    }


# ------------------------------------------------------------------------------------------------------ training on it

ARMS = ("gold", "entaug", "union", "model", "llm", "distant", "lists", "majority", "crowd-kit DS", "entaug, no gold")


def train(name: str, seed: int, arm: str, folder: Path) -> dict[str, Any]:
    """The record of a tagger that learns the labels of the text first and then the gold sentences."""
    sentences, said, test = sources_of(name, seed, folder)
    new = [] if arm == "gold" else METHODS[arm](sentences, said)[GOLD:]
    schedule = "staged" if new else "shuffled"
    config = TaggerTrainingConfig(steps=STEPS, batch_size=8, seed=seed, schedule=schedule)  # type: ignore[arg-type]
    tagger = create_tagger("linear").fit(sentences[:GOLD], config=config, augmented=new)
    f1 = 100 * score(test, tagger.predict([Sentence(s.tokens) for s in test])).micro.f1
    return {"corpus": name, "seed": seed, "arm": arm, "steps": STEPS, "f1": round(f1, 2), **environment()}


def environment() -> dict[str, Any]:
    """The machine and the versions."""
    found = versions()
    for package in ("crowd-kit", "skweak", "hmmlearn"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"machine": machine(1), "versions": found}


# ------------------------------------------------------------------------------------------------------------ the page


def table(records: Sequence[dict[str, Any]], column: str, names: Sequence[str], figure: str) -> list[str]:
    """Means over the seeds, with the seeds in brackets: a row a method, a column a corpus."""
    values: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for one in sorted(records, key=lambda one: int(one["seed"])):
        if one[figure] is not None:
            values[one["corpus"], one[column]].append(one[figure])
    corpora = [name for name in CORPORA if any(key[0] == name for key in values)]
    digits = 3 if figure == "log_loss" else 1
    lines = [f"| {column} | {' | '.join(corpora)} |", "|---|" + "---:|" * len(corpora)]
    for name in names:
        cells = []
        for corpus in corpora:
            of = values[corpus, name]
            shown = ", ".join(f"{value:.{digits}f}" for value in of)
            cells.append(f"{np.mean(of):.{digits}f} ({shown})" if of else "-")
        if any(cell != "-" for cell in cells):
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def page(joined: Sequence[dict[str, Any]], trained: Sequence[dict[str, Any]]) -> str:
    """The tables as Markdown."""
    lines = ["## F1 of the labels of the 2,000 sentences", "", *table(joined, "method", list(METHODS), "f1")]
    lines += ["", "## Log-loss of the right tag of a word (less is better)", ""]
    lines += table(joined, "method", list(METHODS), "log_loss")
    lines += ["", f"## F1 on the test sentences of taggers that learned the labels, {STEPS} steps each", ""]
    lines += table(trained, "arm", ARMS, "f1")
    made = {(one["machine"], tuple(one["versions"].items())) for one in (*joined, *trained)}
    lines += ["", "Made on: "]
    lines += [f"- {name}; {', '.join(' '.join(pair) for pair in installed)}" for name, installed in sorted(made)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run a part of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["join", "train", "report"])
    parser.add_argument("corpora", nargs="*", default=list(CORPORA), help="all by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "entaug-label-sources"))
    args = parser.parse_args()
    results = RESULTS / "label-sources"
    if args.part == "report":
        tables = page(records_of(results / "join.jsonl"), records_of(results / "train.jsonl"))
        write_tables(RESULTS / "label-sources.md", tables)
        return
    names = METHODS if args.part == "join" else args.arms
    make = join if args.part == "join" else train
    for corpus, name, seed in itertools.product(args.corpora, names, range(args.seeds)):
        key = {"corpus": corpus, "seed": seed, "method" if args.part == "join" else "arm": name}
        add_record(results / f"{args.part}.jsonl", key, partial(make, corpus, seed, name, args.folder))


if __name__ == "__main__":
    main()
