"""Random sentences through random methods, parameters, filters and formats, judged by code of its own.

The oracle reads and writes JSON lines with the library of Python, and counts in the plainest way. It uses nothing of
entaug but what it judges.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

import entaug
from chaos.tools import Counts, Tools, check
from entaug.backends.compute import use_compute_settings
from entaug.config.params import REQUIRED, Parameter, parameters
from entaug.core.data import Sentence
from entaug.errors import EntaugError, InputError, LossError, ParameterError
from entaug.formats.base import ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.files import FORMATS, find_format, target
from entaug.methods import METHODS
from entaug.methods.augment import AugmentSummary, augment_file
from entaug.methods.base import Augmenter
from helpers import strategies
from helpers.faked_methods import make

__all__ = ["drawn_corpus", "trial"]

Spans = tuple[tuple[int, int], ...]


class Plain(NamedTuple):
    """A sentence as the oracle sees it."""

    tokens: tuple[str, ...]
    mentions: frozenset[tuple[str, Spans]]

    def words(self) -> list[tuple[str, tuple[str, ...]]]:
        """The label and the words of each mention, in an order of its own."""
        found = []
        for label, spans in self.mentions:
            found.append((label, tuple(self.tokens[i] for start, end in spans for i in range(start, end))))
        return sorted(found)


def drawn_corpus(rng: Random, *, flat: bool, gaps: bool, size: int = 8) -> list[Sentence]:
    """Sentences drawn from the strategies of the property tests; each once."""
    words = rng.choice([strategies.WORDS, strategies.TEXT, st.one_of(strategies.WORDS, strategies.TEXT)])
    labels = rng.choice([strategies.LABELS, ("X",), ("a b", "é", "B-PER", "O")])
    drawn: list[list[Sentence]] = []

    @hypothesis.seed(rng.randrange(2**31))
    @hypothesis.settings(
        max_examples=6, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @hypothesis.given(
        st.lists(
            strategies.sentences(words, flat=flat, gaps=gaps, labels=labels),
            min_size=1,
            max_size=size,
            unique_by=lambda s: (s.tokens, s.mentions),
        )
    )
    def draw(corpus: list[Sentence]) -> None:
        drawn.append(corpus)

    draw()
    corpus = rng.choice(drawn) if rng.random() < 0.3 else max(drawn, key=lambda c: sum(len(s.mentions) for s in c))
    if rng.random() < 0.5:
        corpus = [s.with_(id=f"{rng.choice(['s', 'doc/1 ', 'é#'])}{i}") for i, s in enumerate(corpus)]
    return corpus


def plain(sentence: Sentence) -> Plain:
    """A sentence of entaug, without its methods."""
    return Plain(tuple(sentence.tokens), frozenset((m.label, tuple(m.spans)) for m in sentence.mentions))


def write_lines(corpus: list[Sentence], path: Path) -> None:
    """JSON lines as the documentation describes them."""
    with path.open("w", encoding="utf-8") as out:
        for sentence in corpus:
            entities: list[dict[str, Any]] = []
            for label, spans in sorted(plain(sentence).mentions):
                if len(spans) == 1:
                    entities.append({"start": spans[0][0], "end": spans[0][1], "type": label})
                else:
                    entities.append({"spans": spans, "type": label})
            record = {"tokens": list(sentence.tokens), "entities": entities}
            if sentence.id is not None:
                record["id"] = sentence.id
            out.write(json.dumps(record) + "\n")


def read_lines(path: Path) -> list[tuple[Plain, dict[str, Any]]]:
    """Each sentence of a file of JSON lines, and its provenance."""
    found = []
    for line in path.read_bytes().decode().split("\n"):
        if line:
            record = json.loads(line)
            mentions = [
                (e["type"], tuple(map(tuple, e["spans"])) if "spans" in e else ((e["start"], e["end"]),))
                for e in record["entities"]
            ]
            check(len(set(mentions)) == len(mentions), f"a mention twice in {line}")
            found.append((Plain(tuple(record["tokens"]), frozenset(mentions)), record.get("entaug") or {}))
    return found


def drawn_value(parameter: Parameter, rng: Random) -> Any:
    """A valid value of a parameter, or its default where only texts are valid."""
    chosen = rng.choice(parameter.alternatives)
    if parameter.optional and rng.random() < 0.2:
        return None
    if chosen.choices:
        return rng.choice(chosen.choices)
    bounds = chosen.bounds
    if chosen.type is bool:
        return rng.random() < 0.5
    if chosen.type is int:
        low = int(bounds.get("ge", 0))
        return rng.randint(low, min(int(bounds.get("le", low + 5)), low + 5))
    if chosen.type is float:
        least, most = bounds.get("ge", bounds.get("gt", 0.0)), bounds.get("le", bounds.get("lt", 3.0))
        value = rng.choice([least, most, rng.uniform(least, most), rng.uniform(least, most)])
        return min(math.nextafter(most, least) if "lt" in bounds else most, value)
    return parameter.default


WITHOUT_TOKENS = ("bioc", "brat", "chat", "pubtator")  # formats of texts alone, which are cut anew
_NOT_DRAWN = ("filters", "teacher", "guard", "preset", "checkpoint_dir", "epochs", "num_examples")


def drawn_parameters(name: str, rng: Random) -> dict[str, Any]:
    """Random parameters of a method, which it may refuse together."""
    given: dict[str, Any] = {}
    for parameter in parameters(METHODS[name]):
        if parameter.name not in _NOT_DRAWN and rng.random() < 0.4:
            value = drawn_value(parameter, rng)
            if value is not REQUIRED and value != parameter.default:
                given[parameter.name] = value
    given["copies"] = 1 if name == "selftrain" else rng.choice([1, 1, 2, 3])
    filters = rng.sample(
        ["validity", "duplicates", "duplicates:threshold=0.8", "mentions", "similarity:metric=tokens"],
        rng.choice([0, 0, 1, 2]),
    )
    if filters:
        given["filters"] = "+".join(filters)
    return given


def trial(rng: Random, folder: Path, tools: Tools) -> Counts:
    """One corpus through one method, into JSON lines twice and into another format."""
    del tools
    counts: Counts = Counter()
    name = rng.choice(sorted(METHODS))
    info = METHODS[name].info
    corpus = drawn_corpus(rng, flat=not info.nested, gaps=info.discontinuous)
    gold_file = folder / "gold.jsonl"
    write_lines(corpus, gold_file)
    given = drawn_parameters(name, rng)
    only_new = rng.random() < 0.3
    options: dict[str, Any] = {"only_new": only_new, "allow_empty": True}
    with use_compute_settings(any_language=True):
        try:
            method = make(name, **given)
            summary = augment_file(gold_file, folder / "new.jsonl", method, **options)
        except (InputError, ParameterError) as error:
            # Nothing in such a corpus that the method needs, or parameters that do not go together.
            check({p.name for p in folder.iterdir()} == {"gold.jsonl"}, "a refused run left something")
            counts["corpora refused" if isinstance(error, InputError) else "parameters refused"] += 1
            return counts
        gold = {s.key: plain(s) for s in corpus}
        new = judge(gold, read_lines(folder / "new.jsonl"), summary, method, only_new=only_new)
        counts["new sentences"] += new
        counts[f"method {name}"] += 1
        again = make(name, **given)
        again.window_size = rng.choice([1, 3, 7, 1000])  # type: ignore[misc]
        augment_file(gold_file, folder / "again.jsonl", again, **options)
        check(
            (folder / "again.jsonl").read_bytes() == (folder / "new.jsonl").read_bytes(),
            "other bytes with another size of the windows",
        )
        counts.update(in_format(rng, folder, method, options))
    return counts


def judge(
    keyed: dict[str, Plain],
    written: list[tuple[Plain, dict[str, Any]]],
    summary: AugmentSummary,
    method: Augmenter,
    *,
    only_new: bool,
) -> int:
    """Compare what was written with what the method promises and with what the summary says."""
    info, copies = method.info, method.copies
    gold, numbers = list(keyed.values()), {key: i for i, key in enumerate(keyed)}
    begin = 0 if only_new else len(gold)
    check([s for s, _ in written[:begin]] == gold[:begin], "the gold sentences are not at the beginning, unchanged")
    made = written[begin:]
    check(all(not proof for _, proof in written[:begin]), "a gold sentence has provenance")
    check(all(proof for _, proof in made), "an augmented sentence without provenance")
    labels = {label for s in gold for label, _ in s.mentions}
    by_label = {label: {tuple(w.casefold() for w in words) for s in gold for n, words in s.words() if n == label}
                for label in labels}  # fmt: skip
    by_source: Counter[int] = Counter()
    seen: set[Plain] = set()
    order = -1
    for sentence, proof in made:
        check(sentence not in seen, f"made twice: {sentence}")
        seen.add(sentence)
        number = numbers[proof["sources"][0]]
        check(number >= order, "the sentences are not in the order of their sources")
        order = number
        by_source[number] += 1
        valid(sentence, labels)
        if not info.unconditioned:
            check(sentence != gold[number], f"equal to its source: {sentence}")
            promised(gold[number], sentence, method)
        if info.name == "mr" and method.get_params().get("mention_list") is None:
            for label, words in sentence.words():
                folded = tuple(w.casefold() for w in words)
                known = folded in by_label[label] or len(gold[number].mentions) > 1
                check(known, f"{words} is no mention of {label}")
    check(all(n <= copies for n in by_source.values()), "more sentences of a source than copies")
    tally = summary.statistics
    check(tally.accepted == len(made), f"{tally.accepted} accepted, {len(made)} written")
    check(tally.sources == len(gold), f"{tally.sources} sources of {len(gold)}")
    check(
        tally.accepted + sum(tally.missing.values()) == tally.requested, "accepted and missing are not what was asked"
    )
    if info.name != "selftrain":  # gives each source what it gets from the text
        check(tally.requested == copies * len(gold), f"{tally.requested} requested")
    for what, counted, own in (("before", summary.before, gold), ("after", summary.after, [s for s, _ in written])):
        mentions = Counter(label for s in own for label, _ in s.mentions)
        check(
            (counted.sentences, counted.tokens, +counted.mentions)
            == (len(own), sum(len(s.tokens) for s in own), mentions),
            f"wrong counts {what}: {counted}",
        )
        gaps = sum(len(spans) > 1 for s in own for _, spans in s.mentions)
        overlapping = sum(any(places(a) & places(b) for b in s.mentions if b is not a) for s in own for a in s.mentions)
        check((counted.discontinuous, counted.nested) == (gaps, overlapping), f"wrong counts of overlaps {what}")
    return len(made)


def places(mention: tuple[str, Spans]) -> set[int]:
    """The positions of a mention."""
    return {i for start, end in mention[1] for i in range(start, end)}


def valid(sentence: Plain, labels: set[str]) -> None:
    """Whether spans lie within the sentence, in order, and labels are known."""
    check(sentence.tokens, "no tokens")
    check(all(sentence.tokens), "an empty token")
    for label, spans in sentence.mentions:
        check(label in labels, f"the label {label} is new")
        edges = [edge for span in spans for edge in span]
        inner = itertools.pairwise(edges)
        check(edges[0] >= 0 and edges[-1] <= len(sentence.tokens), f"{spans} leave the sentence")
        check(all(a < b for a, b in inner), f"{spans} are not in order, or touch")


def promised(source: Plain, new: Plain, method: Augmenter) -> None:
    """What `MethodInfo` promises, and the filters."""
    info = method.info
    told = f"{source} became {new}"
    if info.keeps_length:
        check(len(new.tokens) == len(source.tokens), f"another length: {told}")
    if info.keeps_words:
        check(sorted(new.tokens) == sorted(source.tokens), f"other words: {told}")
    if info.keeps_mentions:
        check(sorted(n for n, _ in new.words()) == sorted(n for n, _ in source.words()), f"other labels: {told}")
    if info.keeps_mention_words:
        own, kept = ([(n, sorted(words)) for n, words in s.words()] for s in (source, new))
        check(sorted(own) == sorted(kept), f"other words in mentions: {told}")
    filters = str(method.get_params().get("filters") or "")
    if "duplicates" in filters:
        check(
            [w.casefold() for w in new.tokens] != [w.casefold() for w in source.tokens], f"a duplicate passed: {told}"
        )
    if "mentions" in filters:
        own_words, new_words = (
            Counter((n, tuple(w.casefold() for w in ws)) for n, ws in s.words()) for s in (source, new)
        )
        check(not own_words - new_words, f"a mention is missing: {told}")
    if "validity" in filters:
        check(0.1 * len(source.tokens) <= len(new.tokens) <= 3 * len(source.tokens), f"too short or long: {told}")


def in_format(rng: Random, folder: Path, method: Augmenter, options: dict[str, Any]) -> Counts:
    """The same run into another format; what is read there again is what JSON lines hold."""
    counts: Counts = Counter()
    name = rng.choice(sorted(FORMATS))
    format_: Any = find_format(name)
    folded = isinstance(format_, BufferedFormat) and format_.folder
    out = folder / f"out{'' if folded or not format_.extensions else format_.extensions[0]}"
    try:
        summary = augment_file(folder / "gold.jsonl", out, method, to_format=name, **options)
    except (LossError, InputError) as error:
        check(not out.exists(), f"refused ({error}), and {out.name} is there")
        left = {p.name for p in folder.iterdir()} - {"gold.jsonl", "new.jsonl", "again.jsonl"}
        check(not left, f"refused, and {left} is left")
        counts[f"refused by {name}"] += 1
        return counts
    wanted = [s for s, _ in read_lines(folder / "new.jsonl")]
    to = target(out, name)
    opened = format_.detect_dialect(out) if isinstance(format_, BufferedFormat) else to.dialect
    if not wanted:
        return counts
    try:
        got = [plain(s) for s in format_.read(out, opened, ReadReport())]
    except InputError as error:  # a text has no tokens, and an odd one is cut otherwise
        check(
            name in WITHOUT_TOKENS and "within the token" in str(error), f"{name} does not read what it wrote: {error}"
        )
        counts[f"cut otherwise by {name}"] += 1
        return counts
    if summary.statistics.missing["the output format cannot store it"]:
        check(Counter(got) <= Counter(wanted) or name in WITHOUT_TOKENS, f"{name} holds what JSON lines do not")
    elif name in (*WITHOUT_TOKENS, "i2b2"):  # the text is cut anew: what counts are labels and letters
        check(letters(got) == letters(wanted), f"{name} gives other mentions: {letters(got)} not {letters(wanted)}")
    else:
        check(
            sorted(map(repr, map(ordered, got))) == sorted(map(repr, map(ordered, wanted))),
            f"{name} gives other sentences: {got} not {wanted}",
        )
    counts[f"through {name}"] += 1
    try:
        faults = entaug.check(out, from_format=name).errors
    except EntaugError as error:
        faults = [str(error)]
    if name != "conll":  # columns are found by looking, which a few odd rows can mislead
        check(not faults, f"check finds faults in what was written as {name}: {faults}")
    return counts


def ordered(sentence: Plain) -> tuple[Any, ...]:
    """A sentence with its mentions in a fixed order."""
    return sentence.tokens, sorted(sentence.mentions)


def letters(corpus: list[Plain]) -> list[tuple[str, str]]:
    """Labels and letters of all mentions."""
    return sorted((n, "".join("".join(words).split())) for s in corpus for n, words in s.words())
