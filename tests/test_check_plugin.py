"""`check_plugin`: every rule catches a plug-in that breaks it, and what entaug has keeps them all."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

import entaug
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, LossError, ParameterError
from entaug.filters import Filter
from entaug.formats.base import ReadReport
from entaug.formats.files import FORMATS, find_format
from entaug.formats.jsonl import Jsonl
from entaug.methods.base import NO_CANDIDATE, Augmenter, MethodInfo, Rejection, Request
from helpers.sentences import sentence

pytestmark = pytest.mark.usefixtures("one_other_process")

GOLD = [
    sentence("Ada Byron met Bo in old Rome .", ("PER", 0, 2), ("PER", 3, 4), ("LOC", 6, 7), id="s0"),
    sentence("Cy left Oslo and went to Bonn today .", ("PER", 0, 1), ("LOC", 2, 3), ("LOC", 6, 7), id="s1"),
    sentence("Di saw the sea near Lima .", ("PER", 0, 1), ("LOC", 5, 6), id="s2"),
]
NAMED = r"the method faulty \(test_check_plugin\.Faulty\)"
FACTS = ("keeps_length", "keeps_words", "keeps_mentions", "keeps_mention_words", "keeps_order")


@dataclass(kw_only=True, eq=False)
class Faulty(Augmenter):
    """Replace a word outside mentions, with the fault that a test wants.

    Args:
        fault: the fault.
        p: a number.
    """

    fault: str = ""
    p: float = 0.5
    info: ClassVar[MethodInfo] = MethodInfo("faulty", "faulty-one", "of a test", "none", needs_fit=True)
    objects: ClassVar[int] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.words: list[str] = []
        self.calls = 0
        if self.fault == "parameter":
            self.p /= 2
        if self.fault == "lock":
            self.lock = threading.Lock()
        facts: dict[str, Any] = {self.fault: self.fault in FACTS} if self.fault in (*FACTS, "needs_fit") else {}
        self.info = replace(self.info, **facts)  # type: ignore[misc]

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        words = sorted({token for sentence in corpus for token in sentence.tokens})
        self.words = self.words * (self.fault == "refit") + words
        if self.fault == "own":
            self.p = 0.25
        if self.fault == "class":
            Faulty.objects += 1
            self.words = self.words[Faulty.objects :]

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        if self.fault == "batch":
            return [self.replaced(request.sentence, len(requests)) for request in requests]
        return super()._rewrite_batch(requests)

    def replaced(self, sentence: Sentence, number: int) -> Sentence:
        i = sentence.outside_mask().index(True)
        return sentence.edit([Edit(i, i + 1, (f"word{number}",))])

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        self.calls += 1
        number = rng.randrange(10**6) + 1 // len(self.words)
        changed: dict[str, Any] = {
            "none": lambda: NO_CANDIDATE,
            "input": lambda: sentence.meta.update(seen=True) or NO_CANDIDATE,  # type: ignore[attr-defined]
            "global": lambda: self.replaced(sentence, random.randrange(10**6)),
            "call": lambda: self.replaced(sentence, self.calls),
            "refit": lambda: self.replaced(sentence, len(self.words)),
            "class": lambda: self.replaced(sentence, len(self.words)),
            "set": lambda: self.replaced(sentence, int("".join({str(n) for n in range(50)}))),
            "seed": lambda: self.replaced(sentence, 1),
            "keeps_length": lambda: sentence.edit([Edit(len(sentence), len(sentence), ("new", f"{number}"))]),
            "keeps_mentions": lambda: sentence.with_(mentions=sentence.mentions[1:]),
            "keeps_mention_words": lambda: sentence.edit([Edit(0, 1, (f"word{number}",))]),
            "keeps_order": lambda: sentence.reorder(list(range(len(sentence)))[::-1]),
            "label": lambda: self.replaced(sentence, number).with_(mentions=[Mention("NEW", [(0, 1)])]),
        }
        made: Sentence | Rejection = changed.get(self.fault, lambda: self.replaced(sentence, number))()
        return made


class Undeclared(Faulty):
    """A subclass that declares a parameter without the decorator."""

    q: float = 0.5


class Taken(Faulty):
    info: ClassVar[MethodInfo] = MethodInfo("mr", "taken-one", "of a test", "none")


METHOD_FAULTS = {
    "parameter": "its parameter p is 0.25, and 0.125 in another object that is given the same; leave parameters as",
    "lock": r"cannot be sent to other processes \(TypeError: cannot pickle '_thread.lock' object\); define",
    "input": "sentence s0 .*: changes a sentence that it is given; make a new one",
    "own": "its parameter p is 0.5, and 0.25 afterwards",
    "global": "draws global random numbers; draw from the `rng`",
    "class": "sentence s0 .*: something else comes of it of another object with the same parameters",
    "call": "sentence s0 .*: something else comes of it in a second call .*word4.* for .*word1",
    "batch": r"sentence s0 \(\[Ada Byron\]PER met .*: something else comes of it without the others .*word1.*word3",
    "refit": "sentence s0 .*: something else comes of it after a second fit .*; let `_fit` forget",
    "set": "sentence s0 .*: something else comes of it in another process .*; sort sets",
    "none": "makes no sentence of this corpus; give sentences",
    "label": "sentence s0 .*: the label 'NEW' is none of the corpus",
    "seed": "another seed gives the same sentences; draw from `rng`, or say draws=False",
    "needs_fit": r"fails without fit \(ZeroDivisionError: .*\); say needs_fit=True",
    **{fact: f"sentence s0 .*: {fact} does not hold of .*; correct it, or say {fact}=False" for fact in FACTS},
}


@pytest.mark.parametrize("fault", METHOD_FAULTS)
def test_a_faulty_method_is_refused(fault: str) -> None:
    with pytest.raises(EntaugError, match=f"^{NAMED}.*{METHOD_FAULTS[fault]}"):
        entaug.check_plugin(Faulty(fault=fault), [one.with_(meta={}) for one in GOLD])


def test_a_method_without_a_fault_is_not() -> None:
    entaug.check_plugin(Faulty(), GOLD)
    entaug.check_plugin(Faulty(copies=3))


def test_declarations_are_checked() -> None:
    with pytest.raises(
        EntaugError, match=r"Undeclared\): cannot be used \(TypeError: 'q' is no parameter: write @data"
    ):
        entaug.check_plugin(Undeclared())
    with pytest.raises(EntaugError, match=r"Taken.*: entaug has a method of that name, which is used instead; name it"):
        entaug.check_plugin(Taken())
    with pytest.raises(ParameterError, match=r"^expected a method, a filter or a format, not .*Faulty.*Faulty\(\)\)$"):
        entaug.check_plugin(Faulty)  # type: ignore[arg-type]


def test_what_other_processes_cannot_import_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    here = type("Here", (Faulty,), {"__module__": "only_here", "__annotations__": {}})
    monkeypatch.setitem(sys.modules, "only_here", SimpleNamespace(Here=here))
    with pytest.raises(EntaugError, match=r"fails in another process \(ModuleNotFoundError: .*; define its class"):
        entaug.check_plugin(here(), GOLD)


@dataclass(kw_only=True, eq=False)
class FaultyFilter(Filter):
    """Refuse sentences with a certain word, with the fault that a test wants.

    Args:
        fault: the fault.
    """

    fault: str = ""
    name: ClassVar[str] = "faulty"
    summary: ClassVar[str] = "of a test"
    reasons: ClassVar[tuple[str, ...]] = ("bad",)

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> list[str | None]:
        if self.fault == "company":
            return ["bad" if len(sentences) > 1 else None for _ in sentences]
        if self.fault == "source":
            return ["bad" if len(source) > 99 else None for source in sources]  # type: ignore[arg-type]
        return [("worse" if self.fault == "reason" else "bad") if "Ada" in s.tokens else None for s in sentences]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("company", r"sentence s0 .*: something else comes of it without the others \(None for 'bad'\)"),
        ("reason", "sentence s0 .*: the reason 'worse' is none of its `reasons`; add it there"),
        ("source", r"fails where a sentence has no source \(TypeError: .*\); let its property `needs_source`"),
    ],
)
def test_a_faulty_filter_is_refused(fault: str, message: str) -> None:
    with pytest.raises(EntaugError, match=rf"^the filter faulty \(test_check_plugin\.FaultyFilter\).*{message}"):
        entaug.check_plugin(FaultyFilter(fault=fault), GOLD)
    entaug.check_plugin(FaultyFilter(), GOLD)


class Lines(Jsonl):
    """JSON lines with another name."""

    name = "lines"
    title = "lines"
    extensions = (".lines",)  # type: ignore[assignment]


class Failing(Lines):
    def dump(self, sentence: Sentence, dialect: Any) -> str:
        raise KeyError(sentence.id)


class Refusing(Lines):
    def dump(self, sentence: Sentence, dialect: Any) -> str:
        raise LossError("no", remedy="none")


class Counting(Lines):
    count = 0

    def dump(self, sentence: Sentence, dialect: Any) -> str:
        self.count += 1
        return super().dump(sentence.with_(id=str(self.count)), dialect)


class Shy(Lines):
    def recognises(self, path: Path) -> bool:
        return False


class Forgetful(Lines):
    def dump(self, sentence: Sentence, dialect: Any) -> str:
        return super().dump(sentence.with_(mentions=()), dialect)


class Short(Lines):
    def dump(self, sentence: Sentence, dialect: Any) -> str:
        return "" if sentence.id == "s3" else super().dump(sentence, dialect)


class Whole(Lines):
    def read(self, path: Path, dialect: Any, reading: ReadReport, *_: Any) -> Iterator[Sentence]:
        return super().read(path, dialect, reading)


class Silent(Lines):
    def dump(self, sentence: Sentence, dialect: Any) -> str:
        return super().dump(sentence.with_(meta={}), dialect)


class Careless(Lines):
    def read(self, path: Path, *more: Any) -> Iterator[Sentence]:
        assert all(json.loads(line) for line in path.read_text().splitlines())
        return super().read(path, *more)


class Vague(Lines):
    carries = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (Failing, r"sentence s1 .*: cannot be written \(KeyError: 's1'\); raise a LossError"),
        (Refusing, "refuses every sentence of this corpus"),
        (Counting, "sentence s1 .*: something else comes of it in a second call"),
        (Shy, "does not recognise what it has written"),
        (Forgetful, r"sentence s1 .*: is read back as 'Ada Byron met"),
        (Short, "of 3 sentences 2 are read back; correct"),
        (Whole, "of 1 sentences 3 are read back from byte 0 to [0-9]+; read from `start` to `stop`"),
        (Silent, "sentence s1 .*: field 'page' is not read back, and `lost` does not name it"),
        (Careless, r"a damaged file ends with an error .* \(JSONDecodeError: .*\); raise an InputError"),
        (Vague, r"cannot be used \(TypeError: it has no class attribute `carries`"),
    ],
)
def test_a_faulty_format_is_refused(cls: type[Lines], message: str) -> None:
    with pytest.raises(EntaugError, match=rf"^the format lines \(test_check_plugin\.{cls.__name__}\).*{message}"):
        entaug.check_plugin(cls(), GOLD)


def test_a_format_without_a_fault_is_not() -> None:
    entaug.check_plugin(Lines())


LIBRARIES = {"bioc": "spacy", "brat": "spacy", "chat": "spacy", "cas": "cassis", "docbin": "spacy", "pubtator": "spacy"}
LIBRARIES |= {"parquet": "pyarrow", "datasets": "pyarrow"}


@pytest.mark.parametrize("name", FORMATS)
def test_our_formats_keep_the_rules(name: str) -> None:
    if name in LIBRARIES:
        pytest.importorskip(LIBRARIES[name])
    entaug.check_plugin(find_format(name), GOLD if name == "chat" else None)  # which does not keep tokens such as 3-1
