"""Outputs of the methods whose words come from a model, without and with the label guard, to count wrong labels by eye.

    .venv/bin/python benchmarks/label_safety.py news tweets --sheets FOLDER
    .venv/bin/python benchmarks/label_safety.py --count FOLDER

The first command fits each method to sentences of a corpus that have mentions, records the first draft for each (what
the method gives without the guard) and the sentence that passes the guard, and writes 15 of each to a sheet: lines of
the form ``METHOD CORPUS before|after MARK SENTENCE``. A reader replaces the mark ``?`` by the number of labels that are
wrong or missing. The second command adds the marks up. Sheets hold the text of others and are not committed.

The corpora are read from ``$ENTAUG_DATA``: newsgroups and weblogs of English EWT (UNER), and tweets of WNUT-17. Each
has a part that the guard was developed on (``news-dev``, ``tweets-dev``) and one for the final count.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import entaug
from entaug import Sentence
from entaug.methods import create_augmenter
from entaug.methods.types import Rejection, Request
from places import DATA

CORPORA = {
    "news": "uner/en_ewt/en_ewt-ud-test.iob2",
    "news-dev": "uner/en_ewt/en_ewt-ud-dev.iob2",
    "tweets": "wnut17/emerging.test.annotated",
    "tweets-dev": "wnut17/wnut17train.conll",
}
NEWS = ("newsgroup", "weblog")
METHODS = ("lm", "bt", "melm", "daga", "mulda", "entda", "aclm")
LENGTHS = range(6, 36)


def gold(corpus: str, count: int, draw: int | None = None) -> list[Sentence]:
    """Sentences of a corpus with mentions and a usual length, in a fixed random order.

    Args:
        corpus: a key of `CORPORA`.
        count: the number of sentences.
        draw: the seed of another draw, without the 25 sentences of the first one.

    Returns:
        The sentences.
    """
    path = DATA / CORPORA[corpus]
    sentences = _of_news(path) if "news" in corpus else list(entaug.read(path, repair=True))
    usable = [s for s in sentences if s.mentions and len(s) in LENGTHS]
    random.Random(7).shuffle(usable)
    if draw is not None:
        used = {sentence.tokens for sentence in usable[:25]}
        usable = [sentence for sentence in usable if sentence.tokens not in used]
        random.Random(draw).shuffle(usable)
    return usable[:count]


def _of_news(path: Path) -> list[Sentence]:
    """The sentences of newsgroups and weblogs, without anything else that the file says of them."""
    found = entaug.read(path, repair=True)
    return [Sentence(s.tokens, s.mentions) for s in found if (s.id or "").startswith(NEWS)]


def outputs(method: str, sentences: Sequence[Sentence], **params: Any) -> tuple[list[Sentence], list[Sentence], str]:
    """The outputs of a method without and with the guard, from one training.

    Args:
        method: the name of the method.
        sentences: the training sentences.
        params: parameters of the method.

    Returns:
        The first draft of each sentence, the sentences that pass the guard, and the yields as JSON.
    """
    augmenter = create_augmenter(method, **params).fit(sentences)
    first: dict[tuple[str, ...], Sentence] = {}
    drafts: Counter[str] = Counter()
    inner = augmenter.draft

    def draft(requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        results = inner(requests)
        for request, result in zip(requests, results, strict=True):
            drafts["all"] += 1
            if not isinstance(result, Rejection):
                drafts["usable"] += 1
                first.setdefault(request.sentence.tokens, result)
        return results

    augmenter.draft = draft  # type: ignore[method-assign]
    accepted = list(augmenter.augment(sentences))
    statistics = augmenter.statistics_
    counts = {
        "requested": statistics.requested,
        "accepted": statistics.accepted,
        "drafts": drafts["all"],
        "usable": drafts["usable"],
        "refused": dict(statistics.rejected.most_common()),
    }
    return list(first.values()), accepted, json.dumps(counts)


def write_sheets(
    corpus: str, methods: Sequence[str], folder: Path, count: int, shown: int, draw: int | None = None
) -> None:
    """Write the sheet of each method for a corpus.

    Args:
        corpus: a key of `CORPORA`.
        methods: the names of the methods.
        folder: where the sheets, and the models that were trained, are written.
        count: the number of training sentences.
        shown: the number of outputs to be read, without and with the guard.
        draw: see `gold`.
    """
    sentences = gold(corpus, count, draw)
    folder.mkdir(parents=True, exist_ok=True)
    for method in methods:
        begun = time.monotonic()
        trained = {"checkpoint_dir": str(folder / f"{corpus}-{method}")} if method not in ("lm", "bt") else {}
        before, after, counts = outputs(method, sentences, **trained)
        lines = [f"{method} {corpus} counts {counts}"]
        for name, some in (("before", before), ("after", after)):
            lines += [f"{method} {corpus} {name} ? {sentence}" for sentence in some[:shown]]
        (folder / f"{corpus}-{method}.txt").write_text("\n".join(lines) + "\n", "utf-8")
        print(f"{corpus} {method}: {counts} ({time.monotonic() - begun:.0f} s)", flush=True)


def table(folder: Path) -> Iterator[str]:
    """Add up the marks of the sheets.

    Args:
        folder: the sheets.

    Yields:
        The lines of a table.
    """
    yield "| method | corpus | wrong before | wrong after | made | of the drafts | refused |"
    yield "|---|---|---:|---:|---:|---:|---|"
    for path in sorted(folder.glob("*.txt")):
        marks: dict[str, list[str]] = {"before": [], "after": []}
        counts: dict[str, Any] = {}
        for line in path.read_text("utf-8").splitlines():
            method, corpus, kind, rest = line.split(" ", 3)
            if kind == "counts":
                counts = json.loads(rest)
            else:
                marks[kind].append(rest.partition(" ")[0])
        if any("?" in some for some in marks.values()):
            continue  # not read yet
        wrong = [f"{sum(mark != '0' for mark in some)} of {len(some)}" for some in marks.values()]
        made = f"{counts['accepted']} of {counts['requested']}"
        share = f"{counts['accepted'] / max(1, counts['drafts']):.0%}"
        reasons = "; ".join(f"{reason.removeprefix('guard: ')}: {n}" for reason, n in counts["refused"].items())
        yield f"| `{method}` | {corpus} | {wrong[0]} | {wrong[1]} | {made} | {share} | {reasons} |"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="*", choices=[*CORPORA, []])
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--sheets", type=Path)
    parser.add_argument("--sentences", type=int, default=25)
    parser.add_argument("--shown", type=int, default=15)
    parser.add_argument("--draw", type=int)
    parser.add_argument("--count", type=Path)
    args = parser.parse_args()
    for corpus in args.corpora:
        write_sheets(corpus, args.methods, args.sheets, args.sentences, args.shown, args.draw)
    if args.count:
        print(*table(args.count), sep="\n")


if __name__ == "__main__":
    main()
