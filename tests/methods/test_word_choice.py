"""Whether other words fit into a sentence, with trees by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from entaug.backends.protocols import Parse
from entaug.methods.shared.word_choice import ends_well, replaces_well

_TAGS = {
    "she": "PRON",
    "her": "PRON",
    "sings": "VERB",
    "hums": "VERB",
    "songs": "NOUN",
    "hymns": "NOUN",
    "apples": "NOUN",
    "loud": "ADJ",
    "green": "ADJ",
    "of": "ADP",
    "the": "DET",
    "six": "NUM",
    "Rome": "PROPN",
    ".": "PUNCT",
    ",": "PUNCT",
}


class Trees:
    """A parser that knows some words; the last verb is the root, and all else depends on it."""

    name = "by hand"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        parses = []
        for words in sentences:
            tags = tuple(_TAGS[word] for word in words)
            root = max((i for i, tag in enumerate(tags) if tag == "VERB"), default=0)
            relations = tuple("ROOT" if i == root else "dep" for i in range(len(words)))
            parses.append(Parse((root,) * len(words), relations, tags))
        return parses


@pytest.mark.parametrize(
    ("end", "is_good"),
    [
        ("green hymns .", True),
        ("hymns of the .", False),  # hangs
        ("hymns of Rome .", False),  # a name
        ("six hymns .", False),  # a number, where the source has none
        ("hymns , loud .", False),  # a mark that the source has not
        ("her hymns .", False),  # a pronoun likewise
        ("hymns hums .", False),  # another main verb
    ],
)
def test_new_ends(end: str, is_good: bool) -> None:
    old = "she sings loud songs .".split()
    assert ends_well(Trees(), ["she", "sings", *end.split()], 2, old, 2) == is_good


@pytest.mark.parametrize(
    ("new", "is_good"),
    [
        ("she sings green songs .", True),
        ("she sings loud hymns .", True),
        ("she hums loud songs .", True),
        ("she sings the songs .", False),  # no adjective
        ("she sings loud loud .", False),
        ("she sings loud of songs .", False),  # longer
        ("her sings loud songs .", False),  # no content word
        ("she sings songs songs .", False),  # twice
    ],
)
def test_words_of_the_same_kind(new: str, is_good: bool) -> None:
    assert replaces_well(Trees(), "she sings loud songs .".split(), new.split()) == is_good
