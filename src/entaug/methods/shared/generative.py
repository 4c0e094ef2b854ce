"""Shared parts of methods that generate text: the base class for generators, and checks of generated text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from entaug.backends.config import DecodingConfig
from entaug.backends.extended_protocols import MultilingualGenerator
from entaug.backends.instruct import InstructModel
from entaug.backends.protocols import Generator
from entaug.config.params import PositiveFloat, PositiveInt, PositiveShare
from entaug.config.presets import ONLY_IF_SET
from entaug.core.alignment import CorpusTokenizer, detokenize
from entaug.core.data import Edit, Mention, Sentence
from entaug.core.provenance import Provenance
from entaug.core.spacing import WIDE, infer_spaces
from entaug.errors import ParameterError
from entaug.methods.shared.mention_matching import UNLISTED, KnownMentions
from entaug.methods.shared.prompting import PromptedAugmenter
from entaug.methods.shared.trainable import TrainableAugmenter
from entaug.methods.types import Rejection, RunStatistics

__all__ = [
    "COPIED",
    "TOO_SIMILAR",
    "UNFINISHED",
    "GeneratedTexts",
    "GenerativeAugmenter",
    "distinct_sentences",
    "replace_tokens",
    "token_similarity",
]

TOO_SIMILAR = Rejection("too similar to its source")
COPIED = Rejection("a copy of a training sentence")
UNFINISHED = Rejection("no text was completed within the limits of the model and of max_new_tokens")

_MANY_COPIES = 0.5  # minimum share of copies among all texts for a warning


@dataclass(kw_only=True, eq=False)
class GenerativeAugmenter(TrainableAugmenter):
    """Base class of methods with a generator.

    Args:
        generator: a `Generator` or its name (starter: smollm2); or, for methods that can ask one by prompts, an
            `entaug.backends.instruct.InstructModel`: ``http://HOST:PORT/v1#MODEL``, a model behind a server with an
            OpenAI-compatible interface, or ``FILE.gguf``.
        max_new_tokens: the maximum number of sub-words of a new sentence; it is also limited to about twice the length
            of the longest training sentence.
        temperature: for sampling; higher values give more variety.
        constrained: whether decoding is constrained: a text must contain all required phrases and no other known
            mention (starter: yes). Small generators often omit phrases or repeat training sentences; the papers drop
            such texts.
        max_similarity: the similarity to the source, as a share of common words, from which on texts are rejected.
        language: the language of sentences without a field ``language``, for a generator that is told the language of
            each text (mBART); none for that of its tokenizer.
    """

    generator: Generator | InstructModel | str | None = None
    max_new_tokens: PositiveInt = 128
    temperature: PositiveFloat = 0.8
    constrained: bool | None = None
    max_similarity: PositiveShare = 0.95
    language: str | None = field(default=None, metadata=ONLY_IF_SET)
    generator_: Any = field(init=False, repr=False)

    _is_language_missing = False

    def _load(self) -> None:
        super()._load()
        if isinstance(self.generator_, InstructModel) and not isinstance(self, PromptedAugmenter):
            raise ParameterError(
                f"{self.name} fine-tunes its generator, which {self.generator_.name} does not allow",
                parameter="generator",
                remedy="use entda, aclm or rewrite, or name a folder or a model on the hub",
            )

    def _decoding(self, strategy: Any, num_beams: int, **options: Any) -> DecodingConfig:
        """Return the parameters of decoding."""
        return DecodingConfig(
            strategy=strategy,
            num_beams=num_beams,
            temperature=float(self.temperature),
            max_new_tokens=self.max_new_tokens,
            **options,
        )

    def _language(self, sentence: Sentence) -> str | None:
        """Return the language of a sentence, if it is known."""
        language = sentence.meta.get("language") or self.language
        return None if language is None else str(language)

    def _languages(self, sentences: Iterable[Sentence]) -> dict[str, Any]:
        """Return the argument ``languages`` for the calls of a generator that takes it."""
        generator = self.generator_
        if not (isinstance(generator, MultilingualGenerator) and generator.languages_.codes):
            return {}
        languages = list(map(self._language, sentences))
        self._is_language_missing = self._is_language_missing or None in languages
        return {"languages": languages}

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        notes = super().notes()
        return [*notes, self._note_on_languages] if self._is_language_missing else notes

    def notes_on_languages(self, sentences: Iterable[Sentence]) -> list[str]:
        """Return the note that a generator, loaded, is told a language that nobody gave for the sentences."""
        return [self._note_on_languages] if None in self._languages(sentences).get("languages", ()) else []

    @property
    def _note_on_languages(self) -> str:
        found = f"{self.generator_.name} is told that the sentences are in {self.generator_.languages_.default}"
        return f"{found}; if they are not, set language"

    def advice(self, statistics: RunStatistics) -> list[str]:
        """See `Augmenter.advice`."""
        texts = statistics.accepted + statistics.rejected.total()
        copied = statistics.rejected[COPIED.reason]
        if texts and copied > _MANY_COPIES * texts:
            found = f"{copied} of {texts} texts were copies of training sentences"
            return [f"{found}: the generator has memorised them; try fewer epochs or a lower learning_rate"]
        return []


class GeneratedTexts:
    """Tokenizes generated texts like the corpus, and checks them."""

    def __init__(
        self, gold: Sequence[Sentence], mention_tokens: Iterable[tuple[str, ...]], known: KnownMentions | None = None
    ) -> None:
        self._tokenizer = CorpusTokenizer(sentence.tokens for sentence in gold)
        self._contents = {detokenize(sentence.tokens) for sentence in gold}
        self.known = known
        corrections: dict[str, dict[tuple[tuple[str, ...], tuple[str, ...]], None]] = {}
        for tokens in dict.fromkeys(mention_tokens):
            text = detokenize(tokens)
            # How a mention is split depends on its context.
            for before, after, num_after in (("", "", 0), ("so ", " so", 1), ("so ", ", so", 2)):
                split = tuple(self._tokenizer(f"{before}{text}{after}"))
                split = split[bool(before) : len(split) - num_after]
                if split != tokens and split:
                    corrections.setdefault(split[0], {})[split, tokens] = None
        self._corrections = {
            first: sorted(pairs, key=lambda pair: -len(pair[0])) for first, pairs in corrections.items()
        }

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Split a text into tokens."""
        split = self._tokenizer(text)
        tokens: list[str] = []
        i = 0
        while i < len(split):
            for wrong, right in self._corrections.get(split[i], ()):
                if tuple(split[i : i + len(wrong)]) == wrong:
                    tokens += right
                    i += len(wrong)
                    break
            else:
                tokens.append(split[i])
                i += 1
        return tuple(tokens)

    def is_copy(self, tokens: Sequence[str]) -> bool:
        """Return whether a text is equal to a training sentence."""
        return detokenize(tokens) in self._contents

    def check(self, tokens: Sequence[str], mentions: Sequence[Mention]) -> Rejection | None:
        """Check a text."""
        if self.is_copy(tokens):
            return COPIED
        labelled = [range(mention.start, mention.end) for mention in mentions]
        for start, end in self.known.find(tokens) if self.known else ():
            if not any(start >= span.start and end <= span.stop for span in labelled):
                return Rejection(UNLISTED)
        return None


def token_similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the share of tokens that two texts have in common, in the same order."""
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def replace_tokens(
    source: Sentence, tokens: Sequence[str], mentions: Sequence[Mention], sources: tuple[str, ...] = (), **details: Any
) -> Sentence:
    """Replace all tokens and mentions of a sentence."""
    spaces = None
    if source.spaces is not None:
        pairs = zip(pairwise(tokens), infer_spaces(tokens), strict=False)
        # Known white space of a script without spaces shows none between words either.
        spaces = tuple("" if WIDE.match(a[-1]) and WIDE.match(b[0]) else space for (a, b), space in pairs)
    new = source.edit([Edit(0, len(source), tuple(tokens), tuple(mentions), spaces)])
    return new.with_(provenance=Provenance(sources=sources, details=details))


def distinct_sentences(corpus: Iterable[Sentence], group: Callable[[Sentence], str] = lambda _: "") -> list[Sentence]:
    """Return the distinct sentences of a corpus, in an order that does not depend on the order of the corpus."""
    in_order = sorted(corpus, key=lambda s: (s.fingerprint(), group(s), s.id or ""))
    return list({(s.fingerprint(), group(s)): s for s in in_order}.values())
