"""The language of a corpus, by its script and by lists of stop words, and whether it is among given languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import cached_property, lru_cache

from entaug.core.data import Sentence
from entaug.core.words import listed_languages, script_of, stop_words

_MIN_LETTERS = 20  # fewer letters show no script
_MIN_SCRIPT = 0.3  # share of letters in scripts of the given languages
_MIN_OCCURRENCES = 10  # of stop words of another language, fewer may be names and loan words
_MIN_DISTINCT = 3  # different ones of these; of fewer, one may be part of a name that recurs
_MIN_SHARE = 0.04  # share of these among all words
_MIN_RATIO = 2.5  # how much more frequent they are than those of the given languages
_MIN_LISTED = 0.02  # share of stop words by which a language is named

LANGUAGE_NAMES = dict(
    pair.split("=")
    for pair in (
        "af=Afrikaans ar=Arabic bg=Bulgarian bn=Bengali br=Breton ca=Catalan cs=Czech da=Danish de=German el=Greek "
        "en=English eo=Esperanto es=Spanish et=Estonian eu=Basque fa=Persian fi=Finnish fr=French ga=Irish "
        "gl=Galician gu=Gujarati ha=Hausa he=Hebrew hi=Hindi hr=Croatian hu=Hungarian hy=Armenian id=Indonesian "
        "it=Italian ja=Japanese ko=Korean ku=Kurdish la=Latin lt=Lithuanian lv=Latvian mr=Marathi ms=Malay nl=Dutch "
        "no=Norwegian pl=Polish pt=Portuguese ro=Romanian ru=Russian sk=Slovak sl=Slovenian so=Somali st=Sotho "
        "sv=Swedish sw=Swahili th=Thai tl=Tagalog tr=Turkish uk=Ukrainian ur=Urdu vi=Vietnamese yo=Yoruba "
        "zh=Chinese zu=Zulu"
    ).split()
)
"""The English names of languages by ISO 639-1 code."""


def language_name(code: str) -> str:
    """Return the English name of a language."""
    return LANGUAGE_NAMES.get(code, code)


class LanguageProfile:
    """The words and scripts of sentences, by which their language is recognised."""

    def __init__(self, sentences: Iterable[Sentence] = ()) -> None:
        self.words: Counter[str] = Counter()
        for sentence in sentences:
            self.add(sentence)

    def add(self, sentence: Sentence) -> None:
        """Count the words of a sentence."""
        self.words.update(token.casefold() for token in sentence.tokens if token[:1].isalpha())
        for name in ("num_words", "scripts", "language", "_listed"):
            self.__dict__.pop(name, None)

    @cached_property
    def num_words(self) -> int:
        """The number of words."""
        return self.words.total()

    @cached_property
    def scripts(self) -> Counter[str]:
        """The number of letters of each script, named as in Unicode (``LATIN``), see `entaug.core.words.script_of`."""
        letters: Counter[str] = Counter()
        for word, count in self.words.items():
            for letter in word:
                if letter.isalpha():
                    letters[letter] += count
        scripts: Counter[str] = Counter()
        for letter, count in letters.items():
            scripts[script_of(letter) or ""] += count
        return scripts

    @property
    def script(self) -> str:
        """The script of most letters; empty if there are none."""
        return max(self.scripts, key=lambda name: self.scripts[name], default="")

    def script_share(self, scripts: Collection[str]) -> float:
        """Return the share of letters in some scripts."""
        return sum(self.scripts[name] for name in scripts) / max(1, self.scripts.total())

    def share(self, words: Collection[str]) -> float:
        """Return the share of words that are among given ones."""
        return self._count(words) / max(1, self.num_words)

    @cached_property
    def _listed(self) -> frozenset[str]:
        """The words that are stop words of some language."""
        return frozenset(_num_owners().keys() & self.words.keys())

    def _count(self, words: Collection[str]) -> int:
        return sum(self.words[word] for word in words if word in self.words)

    @cached_property
    def language(self) -> str | None:
        """The ISO 639-1 code of the language whose stop words are the most frequent; None if hardly any occur."""
        shares = {
            code: self._weighted_share(code)
            for code in listed_languages()
            if self.script in _scripts_of(code) and self.share(stop_words(code) & self._listed) >= _MIN_LISTED
        }
        return max(sorted(shares), key=lambda code: shares[code], default=None)

    def _weighted_share(self, code: str) -> float:
        """The share of stop words of a language, each divided among the languages that have it."""
        owners = _num_owners()
        return sum(self.words[word] / owners[word] for word in sorted(stop_words(code) & self._listed))

    def mismatch(self, languages: Collection[str]) -> str | None:
        """Return why the sentences are in none of some languages."""
        # Text is taken for another language only on clear evidence: most letters are of scripts that none of the
        # languages has, or stop words of another language are by far more frequent than theirs. So short, mixed and
        # noisy text passes.
        codes = {code.lower() for code in languages}
        if not codes or not codes <= listed_languages():
            return None
        names = ", ".join(map(language_name, sorted(codes))) if len(codes) <= 3 else "these languages"
        served = frozenset().union(*map(_scripts_of, codes))
        letters = self.script_share(served)
        if self.scripts.total() >= _MIN_LETTERS and letters < _MIN_SCRIPT:
            looks = f"looks {language_name(self.language)}" if self.language else "is in another script"
            share = self.script_share([self.script])
            return f"{looks} ({share:.0%} of its letters are {self.script.title()})"
        known = frozenset().union(*map(stop_words, codes))
        other = self._other_language(codes, known)
        if other is None:
            return None
        theirs, ours = self.share(stop_words(other)), self.share(known)
        name = language_name(other)
        return f"looks {name} ({theirs:.0%} of its words are stop words of {name}, {ours:.0%} of {names})"

    def _other_language(self, codes: Collection[str], known: frozenset[str]) -> str | None:
        """The language whose stop words are by far more frequent, apart from common ones; None if there is none."""
        best, most = None, max(_MIN_OCCURRENCES, _MIN_SHARE * self.num_words)
        for code in sorted(listed_languages() - set(codes)):
            theirs = stop_words(code)
            distinct = (self._listed & theirs) - known
            count = self._count(distinct)
            ours = self._count((self._listed & known) - theirs)
            if len(distinct) >= _MIN_DISTINCT and count >= max(most, _MIN_RATIO * ours):
                best, most = code, count + 1
        return best


@lru_cache(maxsize=128)
def _scripts_of(code: str) -> frozenset[str]:
    """The scripts in which a language is written, by its stop words."""
    scripts = Counter(script for word in stop_words(code) if (script := script_of(word)))
    return frozenset(name for name, count in scripts.items() if count > 0.1 * scripts.total())


@lru_cache(maxsize=1)
def _num_owners() -> Counter[str]:
    """The number of languages that have each stop word."""
    return Counter(word for code in listed_languages() for word in stop_words(code))
