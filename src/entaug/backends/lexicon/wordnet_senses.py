"""Compilation of WordNet into tables of synonyms for words whose part of speech is known.

The senses of that part of speech alone count, and synonyms are taken from the first of them only: under the rules of
`entaug.backends.lexicon.wordnet_table`, or where it is by far the usual sense of both words.
"""

from __future__ import annotations

from collections.abc import Iterator

from entaug.backends.lexicon.wordnet_table import (
    LEFT_ALONE,
    UNSEEN,
    UPOS,
    Database,
    inflect,
    is_possible,
    is_variant,
    same_use,
    synonyms_of,
)

__all__ = ["compile_tagged_tables"]

# The share of the uses of a part of speech that the first sense makes up: for other rules than those of words whose
# part of speech is unknown, and with these.
_DOMINANT, _FIRST = 0.7, 0.5
# A synonym is seen this often in this sense, and at least this often for each use of the word in it.
_SEEN, _AS_SEEN = 2, 0.1
# A synonym is seen this often, and at least this often for each use of the word, in any sense.
_USUAL, _AS_USUAL = 3, 0.02


def compile_tagged_tables(data: Database) -> dict[str, dict[str, list[str]]]:
    """From WordNet's files the synonyms of English forms whose part of speech is known, of first senses only."""
    tables: dict[str, dict[str, list[str]]] = {tag: {} for tag in UPOS.values()}
    for form, possible in data.analyses.items():
        lemmas = {form, *(lemma for lemma, _, _ in possible)}
        if not form.isalpha() or lemmas & (LEFT_ALONE | data.left_out):
            continue
        if data.is_name([reading for lemma, pos, _ in possible for reading in data.senses[lemma, pos]]):
            continue
        for pos in {pos for _, pos, _ in possible}:
            of_pos = [(lemma, tags) for lemma, its_pos, tags in possible if its_pos == pos]
            lemma, tags = max(of_pos, key=lambda item: sum(r[3] + UNSEEN for r in data.senses[item[0], pos]))
            found: dict[str, int] = {}
            senses = data.senses[lemma, pos]
            first, seen = data.synsets[pos, senses[0][2]], senses[0][3]
            of_first = {word.lower() for word in first.words}
            usual_ones = (
                (synonym, count)
                for synonym, count in synonyms_of(data, lemma, pos, senses)
                if synonym in of_first and (count >= max(_SEEN, _AS_SEEN * seen) or is_variant(lemma, synonym))
                if seen + UNSEEN >= _FIRST * sum(count + UNSEEN for *_, count in senses)
            )
            for synonym, count in (*usual_ones, *_first_sense_synonyms(data, lemma, pos)):
                inflected = inflect(synonym.split("_"), pos, tags)
                if inflected and form not in inflected.split(" ") and inflected.replace(" ", "").isalpha():
                    found[inflected] = max(count, found.get(inflected, 0))
            if found:
                tables[UPOS[pos]][form] = sorted(found, key=lambda words: -found[words])
    return tables


def _first_sense_synonyms(data: Database, lemma: str, pos: str) -> Iterator[tuple[str, int]]:
    """The words of the first sense of a lemma, whose first sense it is too, each with how often it was seen in it."""
    senses = data.senses[lemma, pos]
    _, _, offset, seen = senses[0]
    total = sum(count + UNSEEN for *_, count in senses)
    if seen < _SEEN or seen + UNSEEN < _DOMINANT * total:
        return
    synset = data.synsets[pos, offset]
    me = [word.lower() for word in synset.words].index(lemma)
    for i, word in enumerate(synset.words):
        if i == me or not is_possible(data, lemma, word, pos) or not same_use(synset, me, i, pos):
            continue
        others = data.senses.get((word, pos), [])
        if not others or others[0][2] != offset or others[0][3] < max(_SEEN, _AS_SEEN * seen):
            continue
        of_first = others[0][3] + UNSEEN
        if of_first < _DOMINANT * sum(count + UNSEEN for *_, count in others):
            continue
        if not is_variant(lemma, word) and data.usual(word) < max(_USUAL, _AS_USUAL * data.usual(lemma)):
            continue
        yield word, others[0][3]
