"""What methods share that fine-tune a generator on the gold sentences and write new ones with it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import ClassVar

from entaug.align import CorpusTokenizer, running_text, spacing
from entaug.augmenters.base import Augmenter, Rejection, Tally
from entaug.backends.protocols import Generator, Pairs, Tuning
from entaug.backends.resolve import resolve
from entaug.data import Edit, Mention, Sentence
from entaug.errors import InputError, OutputError, ParameterError

__all__ = ["ALIKE", "COPIED", "UNFINISHED", "Generative", "Words", "likeness", "rewritten"]

ALIKE = Rejection("too much like its source")
COPIED = Rejection("a sentence of the corpus again")
UNFINISHED = Rejection("no text that came to an end within the limits of the model and of longest")

_KEY = "key.txt"
_MANY = 0.5  # share of what was written that is copies, from which on a user is told


@dataclass(kw_only=True, eq=False)
class Generative(Augmenter):
    """Base of the methods with a generator.

    Args:
        generator: a `Generator`, or the name of one (starter: smollm2).
        epochs: passes over the gold sentences at most; it stops before when those held out are not learned any better.
        batch: sentences of a step.
        rate: learning rate at its highest; none for what suits the generator.
        longest: how many sub-words a new sentence may have; never more than about twice those of the longest learned.
        temperature: for sampling, above 1 for more variety, below for less.
        insist: whether a text may not end before all that it must hold stands in it, nor hold known mentions besides
            (constrained decoding; starter: yes). A small generator forgets much and brings in what it learned; the
            papers drop such texts.
        alike: a text whose words agree with its source's by this share or more is dropped.
        keep: a folder for the fine-tuned generator. What was learned there from the same sentences is used again, and
            a fine-tuning that was interrupted goes on; none to learn each time.
    """

    generator: Generator | str | None = None
    epochs: int | None = None
    batch: int | None = None
    rate: float | None = None
    longest: int = 128
    temperature: float = 0.8
    insist: bool | None = None
    alike: float = 0.95
    keep: str | None = field(default=None, metadata={"local": True})
    max_attempts: int = 4

    _window: ClassVar[int] = 64

    def _check(self) -> None:
        for name in ("epochs", "batch", "longest"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ParameterError(f"{name} must be a whole number of at least 1, not {value!r}")
        if not (isinstance(self.alike, int | float) and 0 < self.alike <= 1):
            raise ParameterError(f"alike must be a share above 0, at most 1, not {self.alike!r}")
        if not isinstance(self.insist, bool):
            raise ParameterError(f"insist must be true or false, not {self.insist!r}")
        if not (isinstance(self.temperature, int | float) and self.temperature > 0):
            raise ParameterError(f"temperature must be a number above 0, not {self.temperature!r}")
        if self.rate is not None and not (isinstance(self.rate, int | float) and 0 < self.rate < 1):
            raise ParameterError(f"rate must be a number between 0 and 1, not {self.rate!r}")

    def _load(self) -> None:
        self.generator_: Generator = resolve("generator", self.generator)

    def _tuned(self, pairs: Pairs, told: object, markers: Mapping[str, str] | None = None) -> Generator:
        """The generator when it has learned.

        Args:
            pairs: what it learns.
            told: what these depend on besides the parameters: what is kept for other sentences is not used.
            markers: see `Generator.fit`.
        """
        tuning = Tuning(epochs=self.epochs or 1, batch=self.batch or 1, rate=self.rate, seed=self.seed)
        fit: Callable[..., Generator] = self.generator_.fit
        if self.keep is None:
            return fit(pairs, tuning, markers=markers, progress=self.progress)
        folder = Path(self.keep)
        how = getattr(self.generator_, "adapters", None)
        key = hashlib.sha256(repr((self.generator_.name, how, tuning, told, markers)).encode()).hexdigest()
        try:
            if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / _KEY).exists())):
                raise OutputError("holds something else", path=str(folder), remedy="name a new folder")
            folder.mkdir(parents=True, exist_ok=True)
            begun = (folder / "generator").exists() or (folder / "state").exists()
            if begun and (folder / _KEY).read_text().strip() != key:
                raise InputError(
                    "holds a generator that learned from other sentences or in another way",
                    path=str(folder),
                    remedy="name a new folder",
                )
            (folder / _KEY).write_text(key + "\n")
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"cannot be used ({reason})", path=str(folder), remedy="name another folder") from None
        if (folder / "generator").exists():
            return self.generator_.restore(folder / "generator")
        made = fit(pairs, tuning, markers=markers, folder=folder / "state", progress=self.progress)
        made.save(folder / "generator")
        shutil.rmtree(folder / "state", ignore_errors=True)
        return made

    def advice(self, tally: Tally) -> list[str]:
        """See `Augmenter.advice`."""
        written = tally.made + tally.rejected.total()
        copied = tally.rejected[COPIED.reason]
        if written and copied > _MANY * written:
            told = f"{copied} of {written} texts were sentences of the corpus again"
            return [f"{told}: the generator has learned them by heart; try fewer epochs or a lower rate"]
        return []


class Words:
    """Texts from the sentences of a corpus, and back: tokens as the corpus has them.

    Where the corpus tokenises the words of a mention in a way that its habits do not tell, they are put right.

    Args:
        gold: the corpus.
        mentioned: runs of tokens that stand in mentions.
    """

    def __init__(self, gold: Sequence[Sentence], mentioned: Sequence[tuple[str, ...]]) -> None:
        self._tokenizer = CorpusTokenizer(sentence.tokens for sentence in gold)
        self._right: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for words in dict.fromkeys(mentioned):
            text = running_text(words)
            # How they are split depends on what stands around them.
            for before, after, around in (("", "", 0), ("so ", " so", 1), ("so ", ", so", 2)):
                split = tuple(self._tokenizer(f"{before}{text}{after}"))
                split = split[bool(before) : len(split) - around]
                if split != words and split:
                    self._right.setdefault(split[0], []).append((split, words))
        for first, found in self._right.items():
            self._right[first] = sorted(dict.fromkeys(found), key=lambda pair: -len(pair[0]))
        self._contents = {running_text(sentence.tokens) for sentence in gold}

    def tokens(self, text: str) -> tuple[str, ...]:
        """The tokens of a text."""
        split = self._tokenizer(text)
        made: list[str] = []
        place = 0
        while place < len(split):
            for wrong, words in self._right.get(split[place], ()):
                if tuple(split[place : place + len(wrong)]) == wrong:
                    made += words
                    place += len(wrong)
                    break
            else:
                made.append(split[place])
                place += 1
        return tuple(made)

    def holds(self, tokens: tuple[str, ...]) -> bool:
        """Whether a sentence of the corpus reads exactly so."""
        return running_text(tokens) in self._contents


def likeness(one: Sequence[str], other: Sequence[str]) -> float:
    """The share of words that two texts have in the same order: 1 where they are the same.

    Example:
        >>> likeness("a b c d".split(), "a b c e".split())
        0.75
    """
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def rewritten(
    source: Sentence, tokens: Sequence[str], mentions: Sequence[Mention], told: Mapping[str, object]
) -> Sentence:
    """A source with all its tokens replaced."""
    spaces = None if source.spaces is None else spacing(tokens)[:-1]
    made = source.edit([Edit(0, len(source), tuple(tokens), tuple(mentions), spaces)])
    return made.with_(meta={"entaug": dict(told)})
