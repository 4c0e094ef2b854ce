"""Crop and rotate, by hand-computed cases."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from entaug import Crop, Mention, Rotate, Sentence
from entaug.backends.protocols import Parse
from entaug.errors import ParameterError
from entaug.methods.base import Augmenter


class Trees:
    """A parser that has the tree of each sentence written down."""

    name = "trees"

    def __init__(self, trees: dict[Sentence, tuple[Sequence[int], str, str]]) -> None:
        self._trees = {
            sentence.tokens: Parse(tuple(heads), tuple(names.split()), tuple(tags.split()))
            for sentence, (heads, names, tags) in trees.items()
        }

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        return [self._trees[tuple(words)] for words in sentences]


def all_of(method: Augmenter, sentence: Sentence) -> dict[str, Sentence]:
    """Everything that a method makes of a sentence, by its words."""
    made = list(method.augment([sentence]))
    found = {" ".join(one.tokens): one for one in made}
    assert len(found) == len(made), "nothing twice"
    return found


ANA = Sentence(
    "Ana Byron has not given Bo the book in Rome .".split(),
    [Mention("PER", [(0, 2)]), Mention("PER", [(5, 6)]), Mention("LOC", [(9, 10)])],
)
TREES = Trees(
    {
        ANA: (
            (1, 4, 4, 4, 4, 4, 7, 4, 4, 8, 4),
            "compound nsubj aux neg ROOT dative det dobj prep pobj punct",
            "PROPN PROPN AUX PART VERB PROPN DET NOUN ADP PROPN PUNCT",
        )
    }
)


def test_crop_keeps_the_verb_and_every_choice_of_roles() -> None:
    found = all_of(Crop(copies=20, dependency_parser=TREES), ANA)
    assert set(found) == {
        "Ana Byron has not given .",
        "has not given Bo .",
        "has not given the book .",
        "Ana Byron has not given Bo .",
        "Ana Byron has not given the book .",
        "has not given Bo the book .",
        "Ana Byron has not given Bo the book .",
    }
    assert found["Ana Byron has not given ."].iob() == ["B-PER", "I-PER", "O", "O", "O", "O"]
    assert found["has not given the book ."].mentions == (), "mentions are kept or dropped whole"
    assert len(all_of(Crop(copies=20, min_roles=2, dependency_parser=TREES), ANA)) == 4


def test_rotate_makes_every_order() -> None:
    found = all_of(Rotate(copies=50, dependency_parser=TREES), ANA)
    assert len(found) == 23, "four parts: all orders but that of the source"
    one = found["in Rome has not given Bo the book Ana Byron ."]
    assert one.iob() == ["O", "B-LOC", "O", "O", "O", "B-PER", "O", "O", "B-PER", "I-PER", "O"]
    assert all(words.endswith(".") and " has not given " in f" {words}" for words in found)


def test_no_mention_is_cut() -> None:
    # One that goes over the end of a subtree, and one in two parts.
    across = ANA.with_(mentions=(Mention("X", [(4, 6)]),))
    cropped = all_of(Crop(copies=20, dependency_parser=TREES), across)
    assert len(cropped) == 4
    assert all("given Bo" in words for words in cropped), "never its verb alone"
    for one in all_of(Rotate(copies=50, dependency_parser=TREES), across).values():
        assert one.mention_tokens(one.mentions[0]) == ("given", "Bo")
    parts = ANA.with_(mentions=(Mention("X", [(1, 2), (7, 8)]),))
    made = all_of(Crop(copies=20, dependency_parser=TREES), parts)
    assert {words: [one.mention_tokens(m) for m in one.mentions] for words, one in made.items()} == {
        "Ana Byron has not given the book .": [("Byron", "book")],
        "Ana Byron has not given Bo the book .": [("Byron", "book")],
        "has not given Bo .": [],
    }
    for one in all_of(Rotate(copies=50, dependency_parser=TREES), parts).values():
        assert sorted(one.mention_tokens(one.mentions[0])) == ["Byron", "book"]


def test_words_of_a_mention_keep_their_order() -> None:
    title = ANA.with_(mentions=(Mention("WORK", [(5, 8)]),))  # "Bo the book", two parts
    found = all_of(Rotate(copies=50, dependency_parser=TREES), title)
    assert found
    assert all(one.mention_tokens(one.mentions[0]) == ("Bo", "the", "book") for one in found.values())


def test_many_roles_are_sampled() -> None:
    words = ["we", "saw", *(f"w{i}" for i in range(30))]
    many = Sentence(words)
    trees = Trees({many: ([1] * 32, "nsubj ROOT " + "dobj " * 30, "PRON VERB " + "NOUN " * 30)})
    assert len(list(Crop(copies=40, dependency_parser=trees).augment([many]))) == 40


def test_crop_refuses_impossible_parameters() -> None:
    for roles in (0, -1, "x"):
        with pytest.raises(ParameterError, match="roles must be"):
            Crop(min_roles=roles, dependency_parser=TREES)  # type: ignore[arg-type]


def test_brackets_are_closed() -> None:
    bare = Sentence("Ana ( a poet ) met Bo".split(), [Mention("PER", [(0, 1)])])
    tags = "PROPN PUNCT DET NOUN PUNCT VERB PROPN"
    trees = Trees({bare: ((5, 5, 3, 5, 5, 5, 5), "nsubj punct det dobj punct ROOT dobj", tags)})
    for method in (Crop(copies=20, dependency_parser=trees), Rotate(copies=20, dependency_parser=trees)):
        for words in all_of(method, bare):
            assert words.count("(") == words.count(")"), words


def test_sentences_without_a_verb_at_the_root_are_left_out() -> None:
    bare = Sentence("Rome , city of light".split(), [Mention("LOC", [(0, 1)])])
    trees = Trees({bare: ((0, 0, 0, 2, 3), "ROOT punct appos prep pobj", "PROPN PUNCT NOUN ADP NOUN")})
    for method in (Crop(dependency_parser=trees), Rotate(dependency_parser=trees)):
        assert list(method.augment([bare])) == []
        assert method.statistics_.missing == {"the root is not a verb with subjects or objects": 1}
