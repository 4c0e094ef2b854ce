"""Phrases in text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.phrases import Phrases, known_mentions, unlabelled_places

TOKENS = st.lists(st.sampled_from("abc"), max_size=8)


@given(st.sets(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple)), TOKENS)
def test_all_places_are_found(phrases: set[tuple[str, ...]], tokens: list[str]) -> None:
    spans = ((start, end) for start in range(len(tokens)) for end in range(start + 1, len(tokens) + 1))
    assert list(Phrases(phrases).find(tokens)) == [(a, b) for a, b in spans if tuple(tokens[a:b]) in phrases]


def test_mentions_that_a_corpus_labels_at_most_places() -> None:
    corpus = [
        Sentence("May sang in May".split(), [Mention("PER", [(0, 1)])]),  # as often without a label
        Sentence("Rome and rome and Rome".split(), [Mention("LOC", [(0, 1)]), Mention("LOC", [(4, 5)])]),
        Sentence("left arm and leg".split(), [Mention("BODY", [(0, 1), (3, 4)]), Mention("BODY", [(0, 2)])]),
    ]
    assert list(known_mentions(corpus)) == [("Rome",), ("left", "arm")]
    assert list(known_mentions(corpus, str.casefold)) == [("left", "arm"), ("rome",)]


def test_what_stands_in_a_gap_is_not_within_the_mention() -> None:
    sentence = Sentence("left arm and leg".split(), [Mention("BODY", [(0, 1), (3, 4)])])
    assert list(unlabelled_places(sentence, [(0, 1), (1, 2), (0, 2), (3, 4)])) == [(1, 2), (0, 2)]
