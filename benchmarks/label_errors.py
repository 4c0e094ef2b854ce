"""Planted errors of labels: how well `entaug audit` finds them, beside cleanlab with the same probabilities.

    .venv/bin/python benchmarks/label_errors.py find --rates 5 2 10
    .venv/bin/python benchmarks/label_errors.py clean crossner-politics ncbi-disease
    .venv/bin/python benchmarks/label_errors.py report

A share of the mentions of a training set gets an error each, a quarter of them of each kind: a boundary that is off by
a neighbouring word, the label that is most like it, a mention that is left out, or a mention where there is none (words
that are a mention elsewhere, else a noun phrase). A tagger that was trained on the other folds of this set gives
probabilities to the tags of each fold. From these, which are kept in ``--folder``, entaug and cleanlab rank sentences
and words. Records are lines of ``results/label-errors``; finished ones are not repeated. cleanlab is an extra that
nothing else needs: ``pip install cleanlab``.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import entaug
from entaug import Mention, Sentence, score
from entaug.backends.soft_labels import TagProbabilities, tags_of
from entaug.core.changes import Change, changed
from entaug.core.folds import partition
from entaug.core.words import stop_words
from entaug.metrics import Finding, find_label_errors
from entaug.metrics.consistency import Judge, Usage, Usages
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from entaug.teacher.audit import create_judges
from entaug.teacher.train import TeacherParameters
from places import DATA, write_tables

RESULTS = Path(__file__).parent / "results"
KINDS = ("boundary", "type", "missing", "spurious")


@dataclass(frozen=True)
class Source:
    """A corpus: files of its training and of its test part, and how many sentences are drawn.

    Args:
        train: files below the data folder.
        test: a file below the data folder.
        size: the number of training sentences that are drawn.
        language: the language, which tells its nouns from other words by lists of stop words.
    """

    train: tuple[str, ...]
    test: str
    size: int
    language: str = "en"


CORPORA = {
    "crossner-politics": Source(
        ("crossner/politics/train.txt", "crossner/politics/dev.txt"), "crossner/politics/test.txt", 600
    ),
    "wnut17": Source(("wnut17/wnut17train.conll",), "wnut17/emerging.test.annotated", 1500),
    "crossner-science": Source(
        ("crossner/science/train.txt", "crossner/science/dev.txt"), "crossner/science/test.txt", 600
    ),
    "crossner-music": Source(("crossner/music/train.txt", "crossner/music/dev.txt"), "crossner/music/test.txt", 450),
    "crossner-literature": Source(
        ("crossner/literature/train.txt", "crossner/literature/dev.txt"), "crossner/literature/test.txt", 450
    ),
    "crossner-ai": Source(("crossner/ai/train.txt", "crossner/ai/dev.txt"), "crossner/ai/test.txt", 450),
    "ncbi-disease": Source(("ncbi-disease/train.tsv",), "ncbi-disease/test.tsv", 1000),
    "bc2gm": Source(("bc2gm/train.tsv",), "bc2gm/test.tsv", 800),
    "tdmsci": Source(("tdmsci/train_1500_v2.conll",), "tdmsci/test_500_v2.conll", 1000),
    "ewt": Source(("uner/en_ewt/en_ewt-ud-dev.iob2",), "uner/en_ewt/en_ewt-ud-test.iob2", 1500),
    "multiconer-en": Source(("multiconer-v1/500/en_sample_train.conll",), "multiconer-v1/15000/en_dev.conll", 500),
}
DEVELOPED_ON = ("crossner-politics", "wnut17")


# ------------------------------------------------------------------------------------------------------- planted errors


@dataclass(frozen=True)
class Planted:
    """An error that was planted: the mention that was right, and the one that stands there now."""

    place: int
    kind: str
    right: Mention | None
    wrong: Mention | None


class Planter:
    """Plants errors in flat sentences.

    Args:
        sentences: the sentences.
        language: their language.
        rng: the random stream.
    """

    def __init__(self, sentences: Sequence[Sentence], language: str, rng: Random) -> None:
        self.sentences = list(sentences)
        self.rng = rng
        self._stop_words = stop_words(language)
        self._confusable = confusable_labels(sentences)
        self._forms = Counter(s.mention_tokens(m) for s in sentences for m in s.mentions)
        self._labels = Counter(m.label for s in sentences for m in s.mentions)
        self._label_of: dict[tuple[str, ...], str] = {
            s.mention_tokens(m): m.label for s in sentences for m in s.mentions
        }

    def plant(self, rate: float) -> tuple[list[Sentence], list[Planted]]:
        """Return the sentences with errors, a share of the number of mentions, and the errors."""
        places = [(i, mention) for i, sentence in enumerate(self.sentences) for mention in sentence.mentions]
        number = round(rate * len(places))
        kinds = [kind for kind in KINDS if kind != "type" or len(self._labels) > 1]
        dirty = list(self.sentences)
        taken: set[tuple[int, int]] = set()  # words that an error has touched
        planted: list[Planted] = []
        self.rng.shuffle(places)
        for step in range(number):
            kind = kinds[step % len(kinds)]
            error = self._spurious(dirty, taken) if kind == "spurious" else self._at_mention(kind, places, dirty, taken)
            if error is None:
                continue
            planted.append(error)
            kept = [m for m in dirty[error.place].mentions if m != error.right]
            dirty[error.place] = dirty[error.place].with_(mentions=[*kept, *([error.wrong] if error.wrong else [])])
            for mention in (error.right, error.wrong):
                taken |= {(error.place, position) for position in (mention.positions() if mention else ())}
        return dirty, planted

    def _at_mention(
        self, kind: str, places: list[tuple[int, Mention]], dirty: list[Sentence], taken: set[tuple[int, int]]
    ) -> Planted | None:
        """An error at the next mention that has none and allows one."""
        for number, (place, mention) in enumerate(places):
            if any((place, position) in taken for position in mention.positions()):
                continue
            wrong = {"boundary": self._shifted, "type": self._renamed, "missing": lambda *_: None}[kind](
                dirty[place], mention
            )
            if wrong is None and kind != "missing":
                continue
            places.pop(number)
            return Planted(place, kind, mention, wrong)
        return None

    def _renamed(self, _: Sentence, mention: Mention) -> Mention | None:
        others = self._confusable[mention.label]
        return Mention(self.rng.choices(list(others), list(others.values()))[0], mention.spans) if others else None

    def _shifted(self, sentence: Sentence, mention: Mention) -> Mention | None:
        start, end = mention.spans[0]
        free = sentence.outside_mask()
        spans = []
        if start > 0 and free[start - 1] and is_wordy(sentence.tokens[start - 1]):
            spans.append((start - 1, end))
        if end < len(sentence) and free[end] and is_wordy(sentence.tokens[end]):
            spans.append((start, end + 1))
        if end - start > 1:
            spans += [(start + 1, end), (start, end - 1)]
        return Mention(mention.label, [self.rng.choice(spans)]) if spans else None

    def _spurious(self, dirty: list[Sentence], taken: set[tuple[int, int]]) -> Planted | None:
        """Half are words that are a mention elsewhere, where there are any; the others are like noun phrases."""
        labels, weights = list(self._labels), list(self._labels.values())
        wants_form = self.rng.random() < 0.5
        order = self.rng.sample(range(len(dirty)), len(dirty))
        for known in (True, False) if wants_form else (False,):
            for place in order:
                spans = list(self._known(dirty[place]) if known else self._phrases(dirty[place]))
                spans = [s for s in spans if not any((place, position) in taken for position in range(*s))]
                if spans:
                    span = self.rng.choice(spans)
                    label = self._label_of.get(dirty[place].tokens[slice(*span)])
                    label = label or self.rng.choices(labels, weights)[0]
                    return Planted(place, "spurious", None, Mention(label, [span]))
        return None

    def _known(self, sentence: Sentence) -> Iterator[tuple[int, int]]:
        free = sentence.outside_mask()
        for start in range(len(sentence)):
            for end in range(start + 1, min(len(sentence), start + 6) + 1):
                words = sentence.tokens[start:end]
                if (
                    all(free[start:end])
                    and words in self._forms
                    and not self._stop_words.issuperset(map(str.lower, words))
                ):
                    yield start, end

    def _phrases(self, sentence: Sentence) -> Iterator[tuple[int, int]]:
        """Runs of one to three words in no mention that are no stop words, without the first word of a sentence."""
        free = [
            out and is_wordy(word) and len(word) > 2 and word.lower() not in self._stop_words
            for out, word in zip(sentence.outside_mask(), sentence.tokens, strict=True)
        ]
        for start in range(1, len(sentence)):
            for end in range(start + 1, min(len(sentence), start + 3) + 1):
                if all(free[start:end]) and not (end < len(sentence) and free[end] and end - start < 3):
                    yield start, end


def is_wordy(token: str) -> bool:
    """Whether a token is a word, not a number or a mark."""
    return any(map(str.isalpha, token))


def confusable_labels(sentences: Iterable[Sentence]) -> dict[str, dict[str, float]]:
    """For each label the three that share most words with it, weighted by the cosine of the counts of their words."""
    words: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for mention in sentence.mentions:
            around = sentence.tokens[max(0, mention.start - 2) : mention.end + 2]
            words[mention.label].update(map(str.lower, around))
    norms = {label: sum(n * n for n in counts.values()) ** 0.5 for label, counts in words.items()}
    found = {}
    for label in sorted(words):
        scores = {
            other: 0.01 + sum(n * words[other][word] for word, n in words[label].items()) / norms[label] / norms[other]
            for other in sorted(words)
            if other != label
        }
        found[label] = dict(sorted(scores.items(), key=lambda item: -item[1])[:3])
    return found


def load(name: str) -> tuple[list[Sentence], list[Sentence]]:
    """The training sentences that are drawn, and the test sentences."""
    source = CORPORA[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train = [s for file in source.train for s in entaug.read(DATA / file, repair=True)]
        test = list(entaug.read(DATA / source.test, repair=True))
    plain = list({s.tokens: Sentence(s.tokens, s.mentions) for s in train}.values())
    drawn = sorted(Random(0).sample(range(len(plain)), min(source.size, len(plain))))
    return [plain[i] for i in drawn], [Sentence(s.tokens, s.mentions) for s in test]


# ------------------------------------------------------------------------------------------------ out-of-fold labels


FOLDS, SEED = 3, 0
TEACHERS = {"minilm": "linear:steps=250", "glove": "static-bilstm-crf:steps=300"}


@dataclass(frozen=True)
class Case:
    """A corpus with planted errors, and the probabilities of tags by teachers that have not seen the sentences."""

    clean: list[Sentence]
    dirty: list[Sentence]
    planted: list[Planted]
    tags: tuple[str, ...]
    probabilities: list[np.ndarray]

    def judges(self) -> Sequence[Judge]:
        """The opinions that `entaug audit` ranks by."""
        return create_judges(self.dirty, [TagProbabilities(self.tags, rows) for rows in self.probabilities])


def case(name: str, rate: float, teacher: str, folder: Path) -> Case:
    """A corpus with a share of planted errors; what the teachers say is kept in the folder."""
    clean, _ = load(name)
    dirty, planted = Planter(clean, CORPORA[name].language, Random(f"{name} {SEED}")).plant(rate)
    tags = tuple(tags_of(sorted({m.label for s in dirty for m in s.mentions})))
    file = folder / f"{name}-{rate:g}-{FOLDS}-{teacher}.npz"
    if not file.exists():
        rows: dict[str, np.ndarray] = {}
        parameters = TeacherParameters(tagger=TEACHERS[teacher])
        for fold in partition(dirty, FOLDS, SEED):
            inside = set(fold)
            trained = parameters.create_teacher(SEED).fit([s for i, s in enumerate(dirty) if i not in inside])
            plain = [Sentence(dirty[i].tokens) for i in fold]
            for i, soft in zip(fold, trained.tagger.tag_probabilities(plain), strict=True):
                rows[str(i)] = np.asarray(soft.aligned(tags), np.float32)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, allow_pickle=False, **rows)
    stored = np.load(file)
    return Case(clean, dirty, planted, tags, [stored[str(i)] for i in range(len(dirty))])


# ------------------------------------------------------------------------------------------------------------- rankings

Ranking = dict[str, np.ndarray]
"""Suspicion of each sentence (``"sentences"``) and of each token, by tags (``"tags"``) and by types (``"types"``)."""


def kind_of(tag: str, unit: str) -> str:
    """The class of a tag: itself, or its type."""
    return tag if unit == "tags" else tag.partition("-")[2] or "O"


def by_entaug(case: Case, judges: Sequence[Judge] | None, findings: Sequence[Finding] | None = None) -> Ranking:
    """The ranking of `find_label_errors`: a sentence or token is as suspicious as its most suspicious finding."""
    starts = np.cumsum([0, *map(len, case.dirty)])
    ranking = {"sentences": np.zeros(len(case.dirty)), **{unit: np.zeros(starts[-1]) for unit in ("tags", "types")}}
    for finding in find_label_errors(case.dirty, judges) if findings is None else findings:
        sentence = case.dirty[finding.place]
        ranking["sentences"][finding.place] = max(ranking["sentences"][finding.place], finding.score)
        new = changed(sentence, Change(finding.given, finding.suggested))
        for unit in ("tags", "types"):
            for i, (a, b) in enumerate(zip(sentence.iob(), new.iob(), strict=True), start=starts[finding.place]):
                if kind_of(a, unit) != kind_of(b, unit):
                    ranking[unit][i] = max(ranking[unit][i], finding.score)
    return ranking


def by_cleanlab(case: Case) -> dict[str, Ranking]:
    """The rankings of cleanlab by its settings: classes, score of a token, score of a sentence."""
    from cleanlab.token_classification.filter import find_label_issues
    from cleanlab.token_classification.rank import get_label_quality_scores

    rankings: dict[str, Ranking] = {}
    starts = np.cumsum([0, *map(len, case.dirty)])
    for unit in ("tags", "types"):
        classes = list(dict.fromkeys(kind_of(tag, unit) for tag in case.tags))
        member = np.array([[kind_of(tag, unit) == one for one in classes] for tag in case.tags], float)
        rows = [np.asarray(one, float) @ member for one in case.probabilities]
        rows = [one / one.sum(1, keepdims=True) for one in rows]
        labels = [[classes.index(kind_of(tag, unit)) for tag in s.iob()] for s in case.dirty]
        for method in ("self_confidence", "normalized_margin", "confidence_weighted_entropy"):
            for of_sentence in ("min", "softmin"):
                quality, tokens = get_label_quality_scores(
                    labels, rows, token_score_method=method, sentence_score_method=of_sentence
                )
                ranking = {"sentences": -np.asarray(quality), unit: -np.concatenate([np.asarray(t) for t in tokens])}
                rankings[f"{unit}, {method}, {of_sentence}"] = ranking
        issues = find_label_issues(labels, rows)
        base = rankings[f"{unit}, self_confidence, min"]
        filtered = {name: values.copy() for name, values in base.items()}
        for rank, (place, token) in enumerate(issues):  # before all others, in their order
            filtered[unit][starts[place] + token] = len(issues) - rank
            filtered["sentences"][place] = max(filtered["sentences"][place], len(issues) - rank)
        rankings[f"{unit}, find_label_issues"] = filtered
    return rankings


def truth(case: Case) -> Ranking:
    """1 for each sentence with a planted error, and for each token whose tag or type is wrong."""
    sentences = np.zeros(len(case.dirty))
    sentences[[error.place for error in case.planted]] = 1
    wrong = {
        unit: np.concatenate(
            [
                [kind_of(a, unit) != kind_of(b, unit) for a, b in zip(one.iob(), other.iob(), strict=True)]
                for one, other in zip(case.clean, case.dirty, strict=True)
            ]
        )
        for unit in ("tags", "types")
    }
    return {"sentences": sentences, **wrong}


def measured(ranking: Ranking, right: Ranking) -> dict[str, dict[str, float]]:
    """Average precision, and precision at 50 and at 200, of each part of a ranking."""
    from sklearn.metrics import average_precision_score

    found = {}
    for name, scores in ranking.items():
        ordered = right[name][np.argsort(-scores, kind="stable")]
        precision = {f"p{k}": round(float(ordered[:k].mean()), 4) for k in (50, 200)}
        found[name] = {"ap": round(float(average_precision_score(right[name], scores)), 4), **precision}
    return found


def find(name: str, rate: float, teacher: str, folder: Path) -> dict[str, Any]:
    """The record of a corpus and a rate of errors."""
    one, begun = case(name, rate, teacher, folder), time.monotonic()
    right, judges = truth(one), one.judges()
    findings = find_label_errors(one.dirty, judges)
    listed = [f for f in findings if f.score >= 0.7]
    wanted = {(error.place, error.wrong, error.right): error.kind for error in one.planted}
    hits = [wanted.get((f.place, f.given, f.suggested)) for f in findings]
    record: dict[str, Any] = {
        "corpus": name,
        "rate": rate,
        "teacher": teacher,
        "sentences": len(one.dirty),
        "mentions": sum(len(s.mentions) for s in one.clean),
        "planted": Counter(error.kind for error in one.planted),
        "listed": len(listed),
        "right_suggestions": {
            "first 50": sum(hit is not None for hit in hits[:50]),
            "listed": Counter(hit for hit in hits[: len(listed)] if hit is not None),
        },
        "seconds_without_training": round(time.monotonic() - begun, 1),
    }
    rankings = {"entaug": by_entaug(one, judges, findings), "entaug, labels alone": by_entaug(one, None)}
    with teacher_alone():
        rankings["entaug, teacher alone"] = by_entaug(one, judges)
    rankings |= {f"cleanlab: {setting}": ranking for setting, ranking in by_cleanlab(one).items()}
    return record | {"tools": {tool: measured(ranking, right) for tool, ranking in rankings.items()}}


@contextlib.contextmanager
def teacher_alone() -> Iterator[None]:
    """Leave out what the other places of the corpus say."""
    form, edge = Usages.form, Usages.edge
    try:
        Usages.form = Usages.edge = lambda *_: Usage()  # type: ignore[method-assign]
        yield
    finally:
        Usages.form, Usages.edge = form, edge  # type: ignore[method-assign]


# ------------------------------------------------------------------------------------------------- the gain of cleaning


def arms(one: Case) -> dict[str, list[Sentence]]:
    """The training sentences with errors, cleaned in two ways, and without errors."""
    findings = [f for f in find_label_errors(one.dirty, one.judges()) if f.score >= 0.7]
    right = {(error.place, error.wrong, error.right) for error in one.planted}
    chosen = {
        "accepted by support": [f for f in findings if f.support >= 0.5],
        "accepted where right": [f for f in findings if (f.place, f.given, f.suggested) in right],
    }
    result = {"with errors": one.dirty}
    for arm, accepted in chosen.items():
        sentences = list(one.dirty)
        for f in accepted:
            new = changed(sentences[f.place], Change(f.given, f.suggested))
            if new.is_flat and (f.given is None or f.given in sentences[f.place].mentions):
                sentences[f.place] = new
        result[arm] = sentences
    return result | {"without errors": one.clean}


def clean(name: str, rate: float, teacher: str, folder: Path, seed: int, arm: str) -> dict[str, Any]:
    """The record of a training of a tagger like the teachers: F1 on the first 500 test sentences."""
    _, test = load(name)
    kind, _, steps = TEACHERS[teacher].partition(":steps=")
    config = TaggerTrainingConfig(steps=int(steps), seed=seed)
    tagger = create_tagger(kind).fit(arms(case(name, rate, teacher, folder))[arm], config=config)
    scores = score(test[:500], tagger.predict([Sentence(s.tokens) for s in test[:500]]))
    f1 = round(100 * scores.micro.f1, 2)
    return {"corpus": name, "rate": rate, "teacher": teacher, "seed": seed, "arm": arm, "f1": f1}


# ---------------------------------------------------------------------------------------------------------- the records


def records_of(file: Path) -> list[dict[str, Any]]:
    """The records of a file."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def add_record(file: Path, key: dict[str, Any], make: Callable[[], dict[str, Any]]) -> None:
    """Append a record, unless there is one with this key."""
    if any(key.items() <= record.items() for record in records_of(file)):
        return
    begun = time.monotonic()
    record = make()
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(record) + "\n")
    print(key, f"{time.monotonic() - begun:.0f} s", flush=True)


def sheet(name: str, teacher: str, folder: Path) -> Iterator[str]:
    """The first findings of a corpus without planted errors, to be read."""
    one = case(name, 0.0, teacher, folder)
    for f in find_label_errors(one.dirty, one.judges())[:25]:
        sentence = one.dirty[f.place]
        both = [m and (" ".join(sentence.mention_tokens(m)), m.label) for m in (f.given, f.suggested)]
        yield f"{f.score:.2f} {f.support:.2f} {f.kind}: {both[0]} -> {both[1]} | {sentence} | {f.reason}"


# ------------------------------------------------------------------------------------------------------------ the page


def best_of(tools: dict[str, Any], part: str, measure: str = "ap") -> tuple[float, str]:
    """The best figure among the settings of cleanlab, and the setting."""
    return max((of[part][measure], tool) for tool, of in tools.items() if tool.startswith("cleanlab") and part in of)


def order_of(record: dict[str, Any]) -> tuple[float, int, int]:
    """The place of a record in the tables."""
    return record["rate"], list(TEACHERS).index(record["teacher"]), list(CORPORA).index(record["corpus"])


def page(found: list[dict[str, Any]], cleaned: list[dict[str, Any]]) -> str:
    """The tables as Markdown."""
    lines: list[str] = []
    for part, title in (("sentences", "Sentences"), ("types", "Words, by type"), ("tags", "Words, by tag")):
        default = "cleanlab: types, self_confidence, min" if part != "tags" else "cleanlab: tags, self_confidence, min"
        columns = ["corpus", "errors", "cleanlab, default", "cleanlab, best setting", "labels alone", "teacher alone"]
        columns += ["entaug", "P@50 cleanlab, entaug", "P@200 cleanlab, entaug"]
        lines += [f"### {title}\n", f"| {' | '.join(columns)} |", "|---|" + "---:|" * (len(columns) - 1)]
        for one in sorted(found, key=order_of):
            tools, name = one["tools"], one["corpus"]
            cells = [f"{name}{' *' if name in DEVELOPED_ON else ''}, {100 * one['rate']:g} %, {one['teacher']}"]
            cells += [str(sum(one["planted"].values())), f"{tools[default][part]['ap']:.3f}"]
            cells.append(f"{best_of(tools, part)[0]:.3f}")
            cells += [f"{tools[t][part]['ap']:.3f}" for t in ("entaug, labels alone", "entaug, teacher alone")]
            cells.append(f"**{tools['entaug'][part]['ap']:.3f}**")
            for k in ("p50", "p200"):
                cells.append(f"{best_of(tools, part, k)[0]:.2f}, {tools['entaug'][part][k]:.2f}")
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += [
        "### Kinds\n",
        "| corpus | listed | right among the first 50 | planted, and found with the right suggestion |",
        "|---|---:|---:|---|",
    ]
    for one in sorted(found, key=order_of):
        right = one["right_suggestions"]
        kinds = ", ".join(f"{kind} {right['listed'].get(kind, 0)} of {n}" for kind, n in one["planted"].items())
        setting = f"{one['corpus']}, {100 * one['rate']:g} %, {one['teacher']}"
        lines.append(f"| {setting} | {one['listed']} | {right['first 50']} | {kinds} |")
    lines += ["", "### The gain of cleaning\n", "| corpus | " + " | ".join(ARMS) + " |", "|---|" + "---:|" * len(ARMS)]
    groups: defaultdict[tuple[str, float, str], defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in cleaned:
        groups[one["corpus"], one["rate"], one["teacher"]][one["arm"]].append(one["f1"])
    for (name, rate, teacher), of in groups.items():
        cells = [
            f"{np.mean(of[arm]):.1f} ({', '.join(f'{f1:.1f}' for f1 in of[arm])})" if of[arm] else "-" for arm in ARMS
        ]
        lines.append(f"| {name}, {100 * rate:g} %, {teacher} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


ARMS = ("with errors", "accepted by support", "accepted where right", "without errors")


def main() -> None:
    """Run a part of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["find", "clean", "sheet", "report"])
    parser.add_argument("corpora", nargs="*", default=list(CORPORA), help="all by default")
    parser.add_argument("--rates", nargs="+", type=float, default=[5.0], help="in percent")
    parser.add_argument("--teacher", choices=list(TEACHERS), default="minilm")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "entaug-label-errors"))
    args = parser.parse_args()
    results = RESULTS / "label-errors"
    if args.part == "report":
        tables = page(records_of(results / "find.jsonl"), records_of(results / "clean.jsonl"))
        write_tables(RESULTS / "label-errors.md", tables)
        return
    for rate in (percent / 100 for percent in args.rates):
        for name in args.corpora:
            key: dict[str, Any] = {"corpus": name, "rate": rate, "teacher": args.teacher}
            if args.part == "find":
                add_record(results / "find.jsonl", key, partial(find, name, rate, args.teacher, args.folder))
            elif args.part == "sheet":
                print("\n".join(sheet(name, args.teacher, args.folder)))
            else:
                for seed, arm in itertools.product(range(args.seeds), ARMS):
                    make = partial(clean, name, rate, args.teacher, args.folder, seed, arm)
                    add_record(results / "clean.jsonl", {**key, "seed": seed, "arm": arm}, make)


if __name__ == "__main__":
    main()
