"""Replacement of words by synonyms: SR (Dai and Adel 2020, aclanthology.org/2020.coling-main.343)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

from entaug.augmenters.base import Augmenter, MethodInfo, Rejection
from entaug.backends.protocols import Lexicon
from entaug.data import Edit, Mention, Sentence
from entaug.params import Probability
from entaug.rng import sample_positions
from entaug.stopwords import StopWords, stop_words

__all__ = ["SynonymReplacement"]

_NO_SYNONYM = Rejection("no word with a suitable synonym", final=True)
# In the English corpora tested, 3.6 to 7.1 % of the lower-case words outside mentions have a synonym in WordNet's
# table; in German, Spanish, Dutch, Turkish, Russian and Croatian ones at most 1.2 %.
_FEW, _ENOUGH_WORDS, _MANY_WORDS = 0.02, 500, 20_000


@dataclass(kw_only=True, eq=False)
class SynonymReplacement(Augmenter):
    """Replace tokens by synonyms from a lexicon.

    A synonym of several words extends the mention around it. The reference code uses synonyms of any sense and part of
    speech; here the lexicon selects them (see `entaug.backends.lexicon.wordnet`). Words that look like names are not
    replaced: in English, capitalised words inside a mention or within the sentence.

    Args:
        p: the probability of replacing each token that has a synonym; at least one is replaced.
        lexicon: a `Lexicon` or its name.
        stop_words: words that are not replaced: a language code, or a path to a word list. Lexicons usually have no
            synonyms for function words in any case.
        inside_mentions: whether tokens of mentions are replaced.

    Example:
        >>> from entaug.backends.fakes import FakeLexicon
        >>> gold = [Sentence("a fine film".split(), [Mention("WORK", [(2, 3)])])]
        >>> [new] = SynonymReplacement(p=1.0, lexicon=FakeLexicon({"film": ["motion picture"]})).augment(gold)
        >>> new.tokens, new.iob()
        (('a', 'fine', 'motion', 'picture'), ['O', 'O', 'B-WORK', 'I-WORK'])
    """

    p: Probability = 0.3
    lexicon: Lexicon | str = "wordnet"
    stop_words: StopWords | None = None
    inside_mentions: bool = True
    lexicon_: Lexicon = field(init=False, repr=False)

    _words = _known = 0

    info: ClassVar[MethodInfo] = MethodInfo(
        name="sr",
        long_name="synonym-replacement",
        summary="English words replaced by synonyms in the same form",
        paper="Dai and Adel 2020, An Analysis of Simple Data Augmentation for Named Entity Recognition",
        keeps_order=True,
        needs=("lexicon",),
    )

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        """Count known words, to detect a corpus in another language than the lexicon's."""
        self._words = self._known = 0
        for sentence in corpus:
            for token, free in zip(sentence.tokens, sentence.outside_mask(), strict=True):
                if free and token[0].isalpha() and token == token.lower():
                    self._words += 1
                    self._known += bool(self.lexicon_.synonyms(token))
            if self._words >= _MANY_WORDS:
                break

    def notes(self) -> list[str]:
        """See `Augmenter.notes`."""
        if self._words < _ENOUGH_WORDS or self._known >= _FEW * self._words:
            return []
        share, name, language = f"{self._known / self._words:.1%}", self.lexicon_.name, self.lexicon_.language
        return [f"only {share} of the words have a synonym in {name}: is the corpus in its language, {language}?"]

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        lookup, stop = self.lexicon_.synonyms, stop_words(self.stop_words)
        tokens = sentence.tokens
        choices = [
            (i, synonyms) for i, token in enumerate(tokens) if (synonyms := lookup(token)) and token.lower() not in stop
        ]
        if choices and sentence.mentions:
            free = sentence.outside_mask()
            if self.inside_mentions:
                choices = [(i, synonyms) for i, synonyms in choices if free[i] or not tokens[i][:1].isupper()]
            else:
                choices = [(i, synonyms) for i, synonyms in choices if free[i]]
        if self.lexicon_.language == "en":
            choices = [(i, fit) for i, synonyms in choices if (fit := _fitting_synonyms(tokens, i, synonyms))]
        if not choices:
            return _NO_SYNONYM
        edits = []
        for k in sample_positions(rng, len(choices), self.p):
            i, synonyms = choices[k]
            words = synonyms[int(rng.random() * len(synonyms))]
            if len(words) == 1:
                edits.append(Edit(i, i + 1, words))
            else:
                # A mention of only this token is replaced as a whole, so the edit must include it.
                whole = [Mention(m.label, ((0, len(words)),)) for m in sentence.mentions if m.spans == ((i, i + 1),)]
                edits.append(Edit(i, i + 1, words, whole))
        return sentence.edit(edits)


def _fitting_synonyms(
    tokens: tuple[str, ...], i: int, synonyms: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the synonyms that fit a position of an English sentence: none for names, "an" only before vowels."""
    if tokens[i][:1].isupper() and (i or tokens[i].isupper()):
        return ()
    article = tokens[i - 1].lower() if i else ""
    if article not in ("a", "an"):
        return synonyms
    return tuple(words for words in synonyms if _takes_an(words[0]) == (article == "an"))


def _takes_an(word: str) -> bool:
    word = word.lower()
    if word.startswith(("hour", "honest", "honor", "honour", "heir")):
        return True
    return word[0] in "aeiou" and not word.startswith(("uni", "use", "usu", "uti", "ura", "eu", "ewe", "one", "once"))
