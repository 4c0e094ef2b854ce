"""Provenance in words: what was changed in which sentence, by which method."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from entaug.core.changes import CORRECTED
from entaug.core.corpus import SentenceKeys, is_made_key
from entaug.core.data import Provenance, Sentence
from entaug.core.mentions import Mention, Span
from entaug.core.spacing import joined
from entaug.errors import EntaugError

_SHOWN = 4  # changes that are named one by one
_LONGEST = 60  # characters of a quotation
_MIN_KEPT = 0.25  # the share of kept words outside of mentions below which a text counts as written anew


WordEdit = tuple[Span, Span]
"""A range of words of a sentence, and the range in its place."""


def word_edits(source: Sentence, sentence: Sentence) -> list[WordEdit]:
    """Return the ranges of words in which two sentences differ."""
    codes = SequenceMatcher(None, source.tokens, sentence.tokens, autojunk=False).get_opcodes()
    return [((i1, i2), (j1, j2)) for code, i1, i2, j1, j2 in codes if code != "equal"]


class Origins:
    """Where the sentences and mentions of a corpus are."""

    def __init__(self, corpus: Iterable[Sentence]) -> None:
        self._numbers: dict[str, int] = {}
        self._named: list[tuple[int, Sentence]] = []
        self._mentions: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
        keys = SentenceKeys()
        for number, sentence in enumerate(corpus, start=1):
            key = keys.assign(sentence)
            if sentence.id is None:
                self._numbers[key] = number
            else:  # formats may have given it an id since it was named
                self._named.append((number, sentence))
            for mention in sentence.mentions:
                self._mentions.setdefault(_content(sentence, mention), {})[key] = None

    def name(self, key: str) -> str:
        """Return the name of the sentence with a key: its id or its number."""
        if not is_made_key(key):
            return f"sentence {key}"
        if key not in self._numbers:
            while self._named:
                number, sentence = self._named.pop()
                self._numbers.setdefault(sentence.fingerprint().hex(), number)
        return f"sentence {self._numbers[key]}" if key in self._numbers else "a sentence without an id"

    def of(self, sentence: Sentence, mention: Mention, but: Collection[str]) -> list[str]:
        """Return the keys of the sentences that have the same mention."""
        return [key for key in self._mentions.get(_content(sentence, mention), ()) if key not in but]


def _content(sentence: Sentence, mention: Mention) -> tuple[str, tuple[str, ...]]:
    return mention.label, tuple(word.lower() for word in sentence.mention_tokens(mention))


_NOWHERE = Origins(())


def explain(
    sentence: Sentence,
    source: Sentence | None = None,
    others: Sequence[Sentence] = (),
    *,
    origins: Origins = _NOWHERE,
    edits: Sequence[WordEdit] | None = None,
    without: Collection[str] = (),
) -> str:
    """Return the provenance of an augmented sentence in words; empty where it has none."""
    # `edits` are those of `word_edits` where they are known, `without` names details that are shown elsewhere.
    provenance = sentence.provenance or Provenance()
    phrases: list[str] = []
    if source is not None and not provenance.details.get("unconditioned"):
        phrases += _exchanges(provenance, source, others, origins) or _edits(
            sentence, source, provenance, origins, word_edits(source, sentence) if edits is None else edits
        )
    phrases += _details(sentence, provenance, without)
    if provenance.sources:
        first, *rest = dict.fromkeys(map(origins.name, provenance.sources))
        with_others = f" with {_listed(rest)}" if rest else ""
        place = "at the place of" if provenance.details.get("unconditioned") else "from"
        phrases.append(f"{place} {first}{with_others}")
    if provenance.copy > 1:
        phrases.append(f"copy {provenance.copy}")
    if seed := _seed(provenance.signature):
        phrases.append(f"seed {seed}")
    if not phrases:
        return provenance.method
    return f"{provenance.method or 'unknown method'}: {'; '.join(phrases)}"


@lru_cache(maxsize=64)
def _seed(signature: str) -> str:
    found = re.search(r"\|seed=(\d+)", signature)
    return found[1] if found else ""


def quote(words: Sequence[str]) -> str:
    """Return words in quotation marks, shortened in the middle where they are many."""
    text = joined(words)
    return f"'{text if len(text) <= _LONGEST else f'{text[: _LONGEST - 20]} … {text[-16:]}'}'"


def _listed(names: Sequence[str]) -> str:
    """Names as in a sentence; of many the first ones."""
    if len(names) > _SHOWN:
        return f"{', '.join(names[: _SHOWN - 1])} and {len(names) - _SHOWN + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


# -------------------------------------------------------------------------------------------- what was changed in words


def _exchanges(provenance: Provenance, source: Sentence, others: Sequence[Sentence], origins: Origins) -> list[str]:
    """Exchanges of parts between sentences, as the provenance of ``cassi`` and ``cr`` tells them."""
    details = provenance.details
    keys = provenance.sources
    known = dict(zip(keys[1:], others, strict=False))
    if details.get("frame") in (0, 1) and others and len(keys) > 1:
        sides = [(keys[0], source), (keys[1], others[0])]
        (_, frame), (key, donor) = sides if details["frame"] == 0 else sides[::-1]
        role = details["role"] if isinstance(details.get("role"), str) else ""
        return _exchange(role, details, frame, donor, origins.name(key))
    phrases = []
    grafts = details.get("grafts")
    for graft in grafts if isinstance(grafts, list) else ():
        if isinstance(graft, Mapping):
            key, kind = str(graft.get("from")), graft.get("category")
            role = kind if isinstance(kind, str) else ""
            phrases += _exchange(role, graft, source, known.get(key), origins.name(key))
    return phrases


def _exchange(role: str, values: Mapping[str, Any], frame: Sentence, donor: Sentence | None, place: str) -> list[str]:
    try:
        (start, end), (first, last) = values["out"], values["into"]
        removed = frame.tokens[start:end]
        taken = [] if donor is None else donor.tokens[first:last]
    except (KeyError, TypeError, ValueError):  # a file that was edited by hand
        return []
    new = quote(taken) if taken else "words"
    return [f"{new}{f' ({role})' if role else ''} of {place} in place of {quote(removed)}"]


def _edits(
    sentence: Sentence, source: Sentence, provenance: Provenance, origins: Origins, edits: Sequence[WordEdit]
) -> list[str]:
    """Replaced mentions and other words."""
    if not edits:
        return [] if sentence.mentions == source.mentions else ["the words of its source with other labels"]
    lost = [word.lower() for (start, end), _ in edits for word in source.tokens[start:end]]
    if sorted(lost) == sorted([word.lower() for _, (start, end) in edits for word in sentence.tokens[start:end]]):
        return ["the words of its source in another order"]
    phrases: list[str] = []
    old_words, new_words = set[int](), set[int]()
    if [mention.label for mention in sentence.mentions] == [mention.label for mention in source.mentions]:
        for was, new in zip(source.mentions, sentence.mentions, strict=True):
            before, after = source.mention_tokens(was), sentence.mention_tokens(new)
            if before != after:
                told = f"{quote(after)} ({new.label}) in place of {quote(before)}"
                phrases.append(told + _donor(sentence, new, provenance, origins))
            old_words.update(range(was.start, was.end))
            new_words.update(range(new.start, new.end))
    written = 0
    for (i1, i2), (j1, j2) in edits:
        left = [source.tokens[i] for i in range(i1, i2) if i not in old_words]
        right = [sentence.tokens[j] for j in range(j1, j2) if j not in new_words]
        written += len(right)
        if left and right:
            phrases.append(f"{quote(right)} in place of {quote(left)}")
        elif left or right:
            phrases.append(f"{quote(right)} added" if right else f"{quote(left)} left out")
    if written > max(_SHOWN, (1 - _MIN_KEPT) * (len(sentence) - len(new_words))):
        return ["written anew"]
    if len(phrases) > _SHOWN:
        phrases[_SHOWN - 1 :] = [f"{len(phrases) - _SHOWN + 1} more changes"]
    return phrases


def _donor(sentence: Sentence, mention: Mention, provenance: Provenance, origins: Origins) -> str:
    """Where the words of a new mention come from."""
    text = " ".join(sentence.mention_tokens(mention)).lower()
    lists = provenance.details.get("lists")
    for one in lists if isinstance(lists, list) else ():
        if isinstance(one, Mapping) and str(one.get("mention")).lower() == text:
            return f", from the list {one.get('list')}"
    donors = origins.of(sentence, mention, provenance.sources)
    more = f" and {len(donors) - 1} more" if len(donors) > 1 else ""
    return f", as in {origins.name(donors[0])}{more}" if donors else ""


# ------------------------------------------------------------------------------------------------------------- details

_EXCHANGES = ("frame", "role", "out", "into", "graft", "grafts", "lists")  # they are told with the words
_PHRASES: Mapping[str, Callable[[Any], str]] = {
    "unconditioned": lambda value: "written without a source" if value else "",
    "fallback": lambda value: f"by {value}, as no exchange was possible",
    "candidates": lambda value: f"the best of {value} candidates" if value != 1 else "",
    "confidence": lambda value: f"the tagger is sure to {value}",
    "text": lambda value: f"of the text {value}",
    "style": lambda value: f"in the style {quote([str(value)])}",
    "template": lambda value: f"for the template {quote([str(value)])}",
    "list": lambda value: f"for the list {quote([str(value)])}",
}


def _details(sentence: Sentence, provenance: Provenance, without: Collection[str]) -> Iterator[str]:
    """Yield a phrase for each detail that a method recorded; one without words of its own is named as it is."""
    for name, value in provenance.details.items():
        if name in without or name in _EXCHANGES or value is None:
            continue
        if name == CORRECTED:
            yield from _corrections(value)
        elif name == "relabelled":
            yield from _of_teacher(sentence, value)
        elif name in _PHRASES:
            yield from filter(None, [_PHRASES[name](value)])
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield f"{name.replace('_', ' ')} {text if len(text) <= 2 * _LONGEST else text[: 2 * _LONGEST] + ' …'}"


def _corrections(value: Any) -> Iterator[str]:
    for change in value if isinstance(value, list) else ():
        try:
            old, new = change["given"], change["suggested"]
            told = new or old
            words = quote([told["text"]])
            if old and new:
                what = f"{quote([old['text']])} {old['label']} is {words} {new['label']}"
            else:
                what = f"{words} {told['label']} {'added' if new else 'removed'}"
        except (KeyError, TypeError):  # a file that was edited by hand
            continue
        yield f"corrected in review: {what}"


def _of_teacher(sentence: Sentence, value: Any) -> Iterator[str]:
    for change, mentions in value.items() if isinstance(value, Mapping) else ():
        for one in mentions if isinstance(mentions, list) else ():
            try:
                mention = Mention(one["label"], one["spans"])
                words = quote(sentence.mention_tokens(mention))
            except (AttributeError, EntaugError, LookupError, TypeError, ValueError):  # a file that was edited by hand
                continue
            yield f"{words} {mention.label} {change} by the teacher"
