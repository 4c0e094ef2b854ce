"""Whether another word fits into a sentence in place of one of its own, by a parser and a language model."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from entaug.backends.component import Component
from entaug.backends.dependency_trees import base_relations
from entaug.backends.protocols import CausalLM, DependencyParser, MaskedText, Parse
from entaug.backends.resolve import STARTERS, preparing_command, resolve_starter
from entaug.core.alignment import detokenize, detokenize_with_gaps
from entaug.core.words import AUTO, takes_an
from entaug.metrics.likelihood import variant_log_probs

CONTENT_TAGS = frozenset({"NOUN", "VERB", "ADJ", "ADV"})
"""Universal tags of words that others can stand for; adverbs in part."""

MAX_GAIN = 2.0
"""Nats of a gain that count: a word may be unlikely because it says much."""

NUM_EXPECTED = 200
"""How many predictions to ask for where the masked model does not see the original."""

_MIN_EXPECTED = -6.5  # their log-probability
_FIXED = frozenset({"compound", "flat", "fixed", "goeswith", "prt", "nk", "pnc"})
_COMPLEMENTS = frozenset(
    {"xcomp", "ccomp", "acomp", "oprd", "prt", "dative", "iobj", "expl", "oc", "svp", "pcomp", "attr"}
)
_VERBS = frozenset({"VERB", "AUX"})
_DIGITS = 3  # of a log-likelihood: kernels may round further ones differently for other batches
_BEFORE, _AFTER = 40, 15  # words of a sentence by which another one is judged
_SHORT = 5  # letters of a word of which one other letter makes another word
_JOINTS = frozenset("-/\N{HYPHEN}\N{NON-BREAKING HYPHEN}")
_ENDING = 3  # letters of an ending
_STEM = 3  # letters of a word that may have one
_LONG_STEM = 6  # letters of a stem with which words may have different ones


def load_starter(kind: str, language: str | None) -> Any:
    """Return the starter model for a language if there is one that is ready to use."""
    return resolve_starter(kind) if language == "en" else None


def missing_starters(method: Component, language: str | None) -> list[str]:
    """Return notes on the starter models that a method goes without."""
    if language != "en":
        return []
    return [
        f"without a {kind.replace('_', ' ').replace(' lm', ' LM')}, which makes sentences better: run: "
        f"{preparing_command(kind)}"
        for kind in STARTERS
        if getattr(method, kind, None) == AUTO and getattr(method, f"{kind}_") is None
    ]


def replaceable_words(parse: Parse) -> list[int]:
    """The words that are part of no compound, particle verb or the like, and verbs without clauses as complements."""
    names = base_relations(parse)
    fixed = {i for i, name in enumerate(names) if name in _FIXED}
    for i, head in enumerate(parse.heads):
        if (names[i] in _COMPLEMENTS and parse.tags[head] in _VERBS) or (
            names[i] == "compound" and parse.tags[i] == "ADP"
        ):
            fixed.add(head)
    return [i for i in range(len(names)) if i not in fixed]


def fits_article(tokens: Sequence[str], position: int, word: str) -> bool:
    """Whether an English word can stand at a position as far as "a" or "an" before it tells."""
    article = tokens[position - 1].lower() if position else ""
    return article not in ("a", "an") or takes_an(word) == (article == "an")


def is_same_word(one: str, other: str) -> bool:
    """Whether two words differ in spelling or in endings alone: "colour", "color"; "inhibits", "inhibition"."""
    from rapidfuzz.distance import Levenshtein, Prefix

    one, other = sorted((_letters(one), _letters(other)), key=len)
    if len(one) < _STEM:
        return one == other
    stem = Prefix.similarity(one, other)
    if (stem == len(one) or stem >= _LONG_STEM) and len(other) - stem <= _ENDING:
        return True
    allowed = 0 if len(one) < _SHORT - 1 else 1 if len(one) <= _SHORT else 2
    return Levenshtein.distance(one, other) <= allowed


def is_repeated(tokens: Iterable[str], word: str) -> bool:
    """Whether a sentence has a word already, in whatever form."""
    return any(is_same_word(token, word) for token in tokens if len(token) > 1)


def is_joined(tokens: Sequence[str], position: int) -> bool:
    """Whether a word is part of a compound whose hyphens or slashes are tokens, as in ``plus - maze``."""
    return any(
        token in _JOINTS for token in (*tokens[max(0, position - 1) : position], *tokens[position + 1 : position + 2])
    )


def _letters(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if c.isalnum())


def text_with_source(tokens: Sequence[str], gaps: Sequence[int], spaces: Sequence[str] | None) -> MaskedText:
    """Return the text of a sentence, and the text again with gaps, in which a model then puts words of near sense."""
    # Qiang et al. 2020, Lexical Simplification with Pretrained Encoders
    return (f"{detokenize(tokens, spaces)} ", *detokenize_with_gaps(tokens, gaps, spaces))


def expected_words(predicted: Iterable[tuple[str, float]], minimum: float = _MIN_EXPECTED) -> frozenset[str]:
    """Return the words, in lower case, that a masked language model expects."""
    # The default is for sentences without the sight of the original. With it the model also predicts words that are
    # near the original, but not likely where they stand.
    return frozenset(word.lower() for word, score in predicted if score >= minimum)


def keeping_structure(
    parser: DependencyParser, tokens: Sequence[str], position: int, words: Iterable[str]
) -> list[str]:
    """Return the words that have the part of speech, the form and the place in the tree of the one they replace."""
    words = list(words)
    if not words:
        return []
    before, *parses = parser.parse(
        [[*tokens[:position], word, *tokens[position + 1 :]] for word in (tokens[position], *words)]
    )
    return [word for word, parse in zip(words, parses, strict=True) if is_alike_in_tree(before, parse, position)]


def is_alike_in_tree(before: Parse, after: Parse, position: int) -> bool:
    """Whether another word at a position has the part of speech, the form and the place in the tree of the first."""
    return (
        before.tags == after.tags
        and before.heads[position] == after.heads[position]
        and before.relations[position] == after.relations[position]
        and (not before.features or before.features[position] == after.features[position])
    )


def likelihood_gains(
    model: CausalLM, tokens: Sequence[str], spaces: Sequence[str] | None, position: int, words: Sequence[str]
) -> list[float]:
    """Return by how many nats the log-likelihood of a sentence rises with each word at a position."""
    if not words:
        return []
    start, end = max(0, position - _BEFORE), position + 1 + _AFTER
    seen = None if spaces is None else spaces[start:end]
    texts = [
        detokenize([*tokens[start:position], word, *tokens[position + 1 : end]], seen)
        for word in (tokens[position], *words)
    ]
    before, *after = [float(values.sum()) for values in variant_log_probs(texts, model)]
    return [round(value - before, _DIGITS) for value in after]


def draw_index(draw: float, weights: Sequence[float]) -> int:
    """Return the place that a number in [0, 1) falls on, by weights."""
    sums = list(accumulate(weights))
    return next(i for i, total in enumerate(sums) if draw * sums[-1] < total or i == len(sums) - 1)
