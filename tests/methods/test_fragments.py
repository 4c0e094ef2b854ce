"""Crop and rotate, by hand-computed cases: those of the paper, then those that grammar allows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entaug import Mention, Sentence
from entaug.backends.protocols import Parse
from entaug.errors import ParameterError
from entaug.methods import Crop, Rotate
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
    found = all_of(Crop(copies=20, drop="roles", dependency_parser=TREES), ANA)
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
    assert len(all_of(Crop(copies=20, drop="roles", min_roles=2, dependency_parser=TREES), ANA)) == 4


def test_rotate_makes_every_order() -> None:
    found = all_of(Rotate(copies=50, dependency_parser=TREES), ANA)
    assert len(found) == 23, "four parts: all orders but that of the source"
    one = found["in Rome has not given Bo the book Ana Byron ."]
    assert one.iob() == ["O", "B-LOC", "O", "O", "O", "B-PER", "O", "O", "B-PER", "I-PER", "O"]
    assert all(words.endswith(".") and " has not given " in f" {words}" for words in found)


def test_no_mention_is_cut() -> None:
    # One that goes over the end of a subtree, and one in two parts.
    across = ANA.with_(mentions=(Mention("X", [(4, 6)]),))
    cropped = all_of(Crop(copies=20, drop="roles", dependency_parser=TREES), across)
    assert len(cropped) == 4
    assert all("given Bo" in words for words in cropped), "never its verb alone"
    for one in all_of(Rotate(copies=50, dependency_parser=TREES), across).values():
        assert one.mention_tokens(one.mentions[0]) == ("given", "Bo")
    parts = ANA.with_(mentions=(Mention("X", [(1, 2), (7, 8)]),))
    made = all_of(Crop(copies=20, drop="roles", dependency_parser=TREES), parts)
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
    assert len(list(Crop(copies=40, drop="roles", dependency_parser=trees).augment([many]))) == 40


def test_crop_refuses_impossible_parameters() -> None:
    for roles in (0, -1, "x"):
        with pytest.raises(ParameterError, match="roles must be"):
            Crop(min_roles=roles, dependency_parser=TREES)  # type: ignore[arg-type]


def test_brackets_are_closed() -> None:
    bare = Sentence("Ana ( a poet ) met Bo".split(), [Mention("PER", [(0, 1)])])
    tags = "PROPN PUNCT DET NOUN PUNCT VERB PROPN"
    trees = Trees({bare: ((5, 5, 3, 5, 5, 5, 5), "nsubj punct det dobj punct ROOT dobj", tags)})
    for method in (Crop(copies=20, drop="roles", dependency_parser=trees), Rotate(copies=20, dependency_parser=trees)):
        found = all_of(method, bare)
        assert found
        for words in found:
            assert words.count("(") == words.count(")"), words


def test_sentences_without_a_verb_at_the_root_are_left_out() -> None:
    bare = Sentence("Rome , city of light".split(), [Mention("LOC", [(0, 1)])])
    trees = Trees({bare: ((0, 0, 0, 2, 3), "ROOT punct appos prep pobj", "PROPN PUNCT NOUN ADP NOUN")})
    for method in (Crop(drop="roles", dependency_parser=trees), Rotate(dependency_parser=trees)):
        assert list(method.augment([bare])) == []
        assert method.statistics_.missing == {"the root is not a verb with subjects or objects": 1}


# --------------------------------------------------------------------------------------------- what grammar allows


class EnglishTrees(Trees):
    """Trees of sentences written as ``word|relation|head|tag|features``; the parser says that it is English."""

    languages = frozenset({"en"})

    def __init__(self, *rows: str) -> None:
        super().__init__({})
        for row in rows:
            words, names, heads, tags, *features = zip(*(word.split("|") for word in row.split()), strict=True)
            self._trees[words] = Parse(tuple(map(int, heads)), names, tags, *features)


def sentence(row: str, *mentions: Mention) -> Sentence:
    return Sentence([word.split("|")[0] for word in row.split()], mentions)


def cropped(row: str, *mentions: Mention, english: bool = True) -> set[str]:
    """The words of all crops of a sentence."""
    parser: Trees = EnglishTrees(row)
    if not english:
        parser.languages = None  # type: ignore[attr-defined]
    return set(all_of(Crop(copies=50, dependency_parser=parser), sentence(row, *mentions)))


def rotated(row: str, *mentions: Mention) -> set[str]:
    """The words of all rotations of an English sentence."""
    return set(all_of(Rotate(copies=50, dependency_parser=EnglishTrees(row)), sentence(row, *mentions)))


RELATIVE = (
    "In|prep|10|ADP 1999|pobj|0|NUM ,|punct|10|PUNCT Ana|compound|4|PROPN Byron|nsubj|10|PROPN ,|punct|4|PUNCT "
    "who|nsubj|7|PRON wrote|relcl|4|VERB novels|dobj|7|NOUN ,|punct|4|PUNCT gave|ROOT|10|VERB Bo|dative|10|PROPN "
    "the|det|13|DET book|dobj|10|NOUN in|prep|13|ADP Rome|pobj|14|PROPN .|punct|10|PUNCT"
)
BRACKETS = (
    "The|det|1|DET mayor|nsubj|8|NOUN of|prep|1|ADP Oslo|pobj|2|PROPN (|punct|1|PUNCT a|det|6|DET lawyer|appos|1|NOUN "
    ")|punct|1|PUNCT praised|ROOT|8|VERB the|det|10|DET poem|dobj|8|NOUN ,|punct|8|PUNCT but|cc|8|CCONJ "
    "the|det|14|DET jury|nsubj|15|NOUN rejected|conj|8|VERB it|dobj|15|PRON .|punct|15|PUNCT"
)
SHARED = (
    "Ana|nsubj|1|PROPN cloned|ROOT|1|VERB and|cc|1|CCONJ sequenced|conj|1|VERB the|det|5|DET gene|dobj|3|NOUN "
    ".|punct|1|PUNCT"
)
APPOSITION = (
    "The|det|1|DET guests|nsubj|2|NOUN admired|ROOT|2|VERB Ana|dobj|2|PROPN ,|punct|3|PUNCT a|det|6|DET "
    "poet|appos|3|NOUN of|prep|6|ADP the|det|9|DET north|pobj|7|NOUN ,|punct|2|PUNCT because|mark|13|SCONJ "
    "she|nsubj|13|PRON sang|advcl|2|VERB so|advmod|15|ADV well|advmod|13|ADV .|punct|2|PUNCT"
)
LIST = (
    "Ana|nsubj|1|PROPN met|ROOT|1|VERB Bo|dobj|1|PROPN ,|punct|2|PUNCT Cy|appos|2|PROPN ,|punct|2|PUNCT and|cc|2|CCONJ "
    "Di|conj|2|PROPN .|punct|1|PUNCT"
)
TIMES = (
    "The|det|1|DET choir|nsubj|2|NOUN sang|ROOT|2|VERB songs|dobj|2|NOUN in|prep|2|ADP Rome|pobj|4|PROPN in|prep|2|ADP "
    "May|pobj|6|PROPN .|punct|2|PUNCT"
)
CONNECTIVE = (
    "However|advmod|4|ADV ,|punct|4|PUNCT the|det|3|DET choir|nsubj|4|NOUN left|ROOT|4|VERB Rome|dobj|4|PROPN "
    ".|punct|4|PUNCT"
)
EQUATION = (
    "Bo|nsubj|1|PROPN is|ROOT|1|AUX the|det|3|DET mayor|attr|1|NOUN of|prep|3|ADP Oslo|pobj|4|PROPN .|punct|1|PUNCT"
)
LEADING = (
    "After|mark|3|SCONJ the|det|2|DET guests|nsubj|3|NOUN left|advcl|6|VERB ,|punct|6|PUNCT Ana|nsubj|6|PROPN "
    "opened|ROOT|6|VERB the|det|8|DET letter|dobj|6|NOUN .|punct|6|PUNCT"
)
PRONOUN = (
    "She|nsubj|1|PRON opened|ROOT|1|VERB the|det|3|DET letter|dobj|1|NOUN after|mark|6|SCONJ Ana|nsubj|6|PROPN "
    "left|advcl|1|VERB .|punct|1|PUNCT"
)
COORDINATION = (
    "The|det|1|DET doctors|nsubj|6|NOUN and|cc|1|CCONJ nurses|conj|1|NOUN of|prep|1|ADP Oslo|pobj|4|PROPN "
    "praised|ROOT|6|VERB Ana|dobj|6|PROPN and|cc|7|CCONJ Bo|conj|7|PROPN .|punct|6|PUNCT"
)
TITLE = (
    "Regional|amod|1|ADJ|_ mapping|nsubj|5|NOUN|Number=Sing of|prep|1|ADP|_ the|det|4|DET|_ lactate|pobj|2|NOUN|_ "
    "oxidase|ROOT|5|VERB|Tense=Pres|VerbForm=Fin gene|dobj|5|NOUN|_ during|prep|5|ADP|_ spring|pobj|7|NOUN|_ "
    ".|punct|5|PUNCT|_"
)


def test_crop_drops_what_commas_set_off() -> None:
    assert cropped(RELATIVE, Mention("PER", [(3, 5)])) == {
        "In 1999 , Ana Byron gave Bo the book in Rome .",
        "Ana Byron , who wrote novels , gave Bo the book in Rome .",
        "Ana Byron gave Bo the book in Rome .",
    }
    assert cropped(APPOSITION) == {
        "The guests admired Ana , because she sang so well .",
        "The guests admired Ana , a poet of the north .",
        "The guests admired Ana .",
    }


def test_crop_drops_nothing_that_joins_what_stands_beside_it() -> None:
    clauses = (
        "Values|nsubj|1|NOUN rose|ROOT|1|VERB ,|punct|1|PUNCT however|advmod|1|ADV ,|punct|1|PUNCT such|amod|6|ADJ "
        "rates|nsubj|7|NOUN fell|conj|1|VERB .|punct|1|PUNCT"
    )
    assert cropped(clauses) == set()
    enumeration = (
        "Ana|nsubj|1|PROPN studied|ROOT|1|VERB texts|dobj|1|NOUN ,|punct|1|PUNCT using|advcl|1|VERB Greek|dobj|4|PROPN "
        "as|prep|4|ADP source|pobj|6|NOUN ,|punct|1|PUNCT and|cc|1|CCONJ Latin|conj|1|PROPN as|prep|10|ADP "
        "target|pobj|11|NOUN .|punct|1|PUNCT"
    )
    assert cropped(enumeration) == set()


def test_crop_drops_brackets_and_second_clauses() -> None:
    assert cropped(BRACKETS) == {
        "The mayor of Oslo praised the poem , but the jury rejected it .",
        "The mayor of Oslo ( a lawyer ) praised the poem .",
        "The mayor of Oslo praised the poem .",
    }
    assert cropped(SHARED) == set(), "the object belongs to both verbs"
    assert cropped(LIST) == set(), "members of an enumeration are no appositions"


def test_crop_keeps_a_phrase_behind_the_verb() -> None:
    assert cropped(TIMES) == {"The choir sang songs in Rome ."}
    alone = (
        "The|det|1|DET house|nsubjpass|3|NOUN was|auxpass|3|AUX built|ROOT|3|VERB in|prep|3|ADP 1999|pobj|4|NUM "
        ".|punct|3|PUNCT"
    )
    assert cropped(alone) == set()


def test_crop_keeps_at_least_one_mention() -> None:
    only = Mention("PER", [(8, 9)])  # in the relative clause
    assert cropped(RELATIVE, only) == {"Ana Byron , who wrote novels , gave Bo the book in Rome ."}
    in_brackets = Sentence((*sentence(BRACKETS).tokens[:11], "."), [Mention("JOB", [(6, 7)])])
    words = [*BRACKETS.split()[:11], ".|punct|8|PUNCT"]
    method = Crop(dependency_parser=EnglishTrees(" ".join(words)))
    assert list(method.augment([in_brackets])) == []
    assert method.statistics_.missing == {"no variant that keeps a mention": 1}


def test_crop_of_other_languages_leaves_phrases_alone_that_a_verb_may_demand() -> None:
    arguments = (
        "Ana|nsubj|1|PROPN geeft|root|1|VERB Bo|obj|1|PROPN het|det|4|DET boek|obj|1|NOUN op|case|6|ADP "
        "tafels|RELATION|1|NOUN .|punct|1|PUNCT"
    )
    assert cropped(arguments.replace("RELATION", "obl:arg"), english=False) == set()
    assert cropped(arguments.replace("RELATION", "obl"), english=False) == {"Ana geeft Bo het boek ."}


def test_crop_drops_second_clauses_with_a_conjunction_below_their_verb() -> None:
    clause = "Ana|nsubj|1|PROPN canta|root|1|VERB y|cc|4|CCONJ Bo|nsubj|4|PROPN baila|conj|1|VERB .|punct|1|PUNCT"
    assert cropped(clause, english=False) == {"Ana canta ."}
    verb = "Ana|nsubj|1|PROPN canta|root|1|VERB canciones|obj|1|NOUN y|cc|4|CCONJ baila|conj|1|VERB .|punct|1|PUNCT"
    assert cropped(verb, english=False) == {"Ana canta canciones ."}
    assert cropped(verb.replace("y|cc|4|CCONJ", "hoy|advmod|1|ADV"), english=False) == set(), "no conjunction"
    comma = verb.replace("y|cc|4|CCONJ", ",|punct|4|PUNCT")
    assert cropped(comma, english=False) == {"Ana canta canciones ."}


def test_rotate_moves_adjuncts_with_their_commas_and_capitals() -> None:
    assert rotated(TIMES) == {"In May , the choir sang songs in Rome .", "The choir sang songs in May in Rome ."}
    assert rotated(LEADING) == {"Ana opened the letter after the guests left ."}
    assert rotated(PRONOUN) == set(), "she may be Ana"
    back = "Ana opened the letter after the guests left ."
    row = (
        "Ana|nsubj|1|PROPN opened|ROOT|1|VERB the|det|3|DET letter|dobj|1|NOUN after|mark|7|SCONJ the|det|6|DET "
        "guests|nsubj|7|NOUN left|advcl|1|VERB .|punct|1|PUNCT"
    )
    assert sentence(row).tokens == tuple(back.split())
    name = Mention("PER", [(0, 1)])
    # The case of a name within the sentence is known from the corpus.
    method = Rotate(dependency_parser=EnglishTrees(row))
    gold = [sentence(row, name), *(Sentence(f"we saw Ana {i} .".split(), [Mention("PER", [(2, 3)])]) for i in range(9))]
    [new] = method.fit(gold).augment(gold[:1])
    assert " ".join(new.tokens) == "After the guests left , Ana opened the letter ."
    assert new.mention_tokens(new.mentions[0]) == ("Ana",)


def test_rotate_writes_no_capitals_where_the_sentence_has_none() -> None:
    lower = TIMES.replace("The", "the")
    assert "in May , the choir sang songs in Rome ." in rotated(lower)


def test_rotate_refuses_words_whose_case_is_not_known() -> None:
    row = TIMES.replace("The|det|1|DET choir|nsubj", "Rosy|amod|1|ADJ choirs|nsubj")
    assert rotated(row) == {"Rosy choirs sang songs in May in Rome ."}
    gold = [Sentence(f"a rosy face {i} .".split()) for i in range(9)]
    method = Rotate(copies=9, dependency_parser=EnglishTrees(row)).fit([*gold, sentence(row)])
    assert "In May , rosy choirs sang songs in Rome ." in all_of(method, sentence(row))


def test_rotate_leaves_a_phrase_behind_its_noun_that_only_looks_like_means() -> None:
    row = (
        "The|det|1|DET drug|nsubj|2|NOUN boosts|ROOT|2|VERB the|det|4|DET activation|dobj|2|NOUN by|prep|2|ADP "
        "binding|pcomp|5|VERB factors|dobj|6|NOUN .|punct|2|PUNCT"
    )
    assert rotated(row) == {"By binding factors , the drug boosts the activation ."}
    assert rotated(row, Mention("X", [(6, 8)])) == set(), "a part of a name"


def test_rotate_moves_connectives_and_exchanges_equations() -> None:
    there = "The choir , however , left Rome ."
    assert rotated(CONNECTIVE) == {there}
    row = (
        "The|det|1|DET choir|nsubj|5|NOUN ,|punct|5|PUNCT however|advmod|5|ADV ,|punct|5|PUNCT left|ROOT|5|VERB "
        "Rome|dobj|5|PROPN .|punct|5|PUNCT"
    )
    assert rotated(row) == {"However , the choir left Rome ."}
    lower = EQUATION.replace("Bo", "bo")
    assert rotated(lower) == {"the mayor of Oslo is bo ."}
    assert rotated(EQUATION.replace("is|ROOT", "likes|ROOT")) == set()


PASSIVE = (
    "12|nummod|1|NUM songs|nsubjpass|3|NOUN were|auxpass|3|AUX sung|ROOT|3|VERB in|prep|3|ADP Rome|pobj|4|PROPN "
    "by|agent|3|ADP Ana|pobj|6|PROPN in|prep|3|ADP May|pobj|8|PROPN .|punct|3|PUNCT"
)
MEANS = (
    "We|nsubj|1|PRON cleaned|ROOT|1|VERB it|dobj|1|PRON by|prep|1|ADP heating|pcomp|3|VERB water|dobj|4|NOUN "
    ".|punct|1|PUNCT"
)


def test_rotate_exchanges_the_doer_the_place_and_the_time() -> None:
    assert rotated(PASSIVE) == {
        "In May , 12 songs were sung in Rome by Ana .",
        "12 songs were sung by Ana in Rome in May .",
        "12 songs were sung in Rome in May by Ana .",
    }
    assert rotated(MEANS) == {"By heating water , we cleaned it ."}
    assert rotated(MEANS.replace("it|dobj", "up|advmod")) == set(), "the verb may demand it"


@pytest.mark.parametrize(("corpus", "begins"), [("We saw Ana .", "In"), ("we saw ana .", "in")])
def test_a_sentence_that_begins_with_a_figure_has_a_capital_where_others_have(corpus: str, begins: str) -> None:
    row = PASSIVE
    if corpus.islower():
        row = " ".join("|".join((word.lower(), *rest)) for word, *rest in (part.split("|") for part in PASSIVE.split()))
    gold = [sentence(row), *(Sentence([*corpus.split()[:-1], str(i), "."]) for i in range(9))]
    made = all_of(Rotate(copies=9, dependency_parser=EnglishTrees(row)).fit(gold), gold[0])
    assert sum(text.startswith(f"{begins} ") for text in made) == 1


def test_rotate_exchanges_members_of_coordinations() -> None:
    people = (Mention("PER", [(7, 8)]), Mention("PER", [(9, 10)]))
    assert rotated(COORDINATION, *people) == {"The doctors and nurses of Oslo praised Bo and Ana ."}
    assert rotated(COORDINATION) == set(), "two names may be one"
    title = Mention("WORK", [(7, 10)])
    assert rotated(COORDINATION, title) == set(), "never the words of a mention"
    bare = COORDINATION.replace(" of|prep|1|ADP Oslo|pobj|4|PROPN", "").replace("|6|", "|4|").replace("|7|", "|5|")
    assert "The nurses and doctors praised Ana and Bo ." in rotated(bare)


WRONG_TREE = (
    "We|nsubj|1|PRON met|ROOT|1|VERB Ana|dep|1|PROPN and|dep|1|CCONJ Bo|dep|1|PROPN Ek|dep|1|PROPN in|prep|1|ADP "
    "Rome|pobj|6|PROPN .|punct|1|PUNCT"
)


def test_rotate_exchanges_joined_mentions_whatever_the_tree() -> None:
    ana, bo = Mention("PER", [(2, 3)]), Mention("PER", [(4, 6)])
    assert rotated(WRONG_TREE, ana, bo) == {"We met Bo Ek and Ana in Rome ."}
    assert rotated(WRONG_TREE.replace("nsubj", "dep"), ana, bo) == {"We met Bo Ek and Ana in Rome ."}
    assert rotated(WRONG_TREE, ana, Mention("ORG", [(4, 6)])) == set(), "of two types"
    assert rotated(WRONG_TREE) == set(), "nobody tells where they end"
    for word, other in (
        ("met|ROOT|1|VERB", "saw|ROOT|1|DET"),  # an article of the first
        ("in|prep|1|ADP", "of|prep|1|ADP"),
        ("in|prep|1|ADP", "trains|prep|1|NOUN"),
        ("Ek|", "3|"),
        ("and|", "or|"),
        (" .|", " respectively|"),
    ):
        assert word in WRONG_TREE
        assert rotated(WRONG_TREE.replace(word, other), ana, bo) == set(), other


def test_a_new_comma_has_the_white_space_of_print() -> None:
    tokens = sentence(TIMES).tokens
    spaced = Sentence(tokens, spaces=(" ",) * 7 + ("", ""))
    made = all_of(Rotate(copies=9, dependency_parser=EnglishTrees(TIMES)), spaced)
    one = made["In May , the choir sang songs in Rome ."]
    assert one.spaces is not None
    text = "".join(token + space for token, space in zip(one.tokens, one.spaces, strict=True))
    assert text == "In May, the choir sang songs in Rome."


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (TIMES.replace(" .|", " ?|"), "not one statement with a subject and a finite verb"),
        (TIMES.replace("nsubj", "dep"), "not one statement with a subject and a finite verb"),
        (
            TITLE.replace("Tense=Pres|VerbForm", "Tense=Pres,VerbForm"),
            "not one statement with a subject and a finite verb",
        ),
        ("12|nummod|1|NUM 7|ROOT|1|NUM 4|nummod|1|NUM", "a headline or a table row, which is left alone"),
    ],
    ids=["question", "no subject", "verb that does not agree", "table"],
)
def test_what_is_no_statement_is_left_alone(row: str, reason: str) -> None:
    for method in (Crop(dependency_parser=EnglishTrees(row)), Rotate(dependency_parser=EnglishTrees(row))):
        assert list(method.augment([sentence(row)])) == []
        assert method.statistics_.missing == {reason: 1}


def test_sentences_without_a_full_stop_are_left_alone_where_others_have_one() -> None:
    row = TIMES.removesuffix(" .|punct|2|PUNCT")
    assert rotated(row), "the corpus is not known"
    gold = [Sentence(f"he saw {i} of them .".split()) for i in range(3)]
    method = Rotate(dependency_parser=EnglishTrees(row)).fit([sentence(row), *gold])
    assert list(method.augment([sentence(row)])) == []


def test_the_order_is_free_unless_the_parser_is_english() -> None:
    trees = EnglishTrees(TIMES)
    free = set(all_of(Rotate(copies=99, order="free", dependency_parser=trees), sentence(TIMES)))
    assert "songs sang The choir in Rome in May ." in free
    assert free != rotated(TIMES)
    trees.languages = frozenset({"en", "de"})
    assert set(all_of(Rotate(copies=99, dependency_parser=trees), sentence(TIMES))) == free
    assert set(all_of(Rotate(copies=99, order="fixed", dependency_parser=trees), sentence(TIMES))) == rotated(TIMES)


WORDS = 'Ana we the in at May 1999 who and or , , ( ) . . " to however is although said'.split()
RELATIONS = (
    "nsubj dobj prep pobj punct advcl relcl appos conj cc det amod attr aux advmod npadvmod agent mark ccomp obl obj"
).split()
TAGS = "NOUN PROPN VERB AUX DET ADP PRON ADV PUNCT CCONJ SCONJ NUM ADJ".split()


@st.composite
def trees(draw: st.DrawFn) -> tuple[Sentence, Parse]:
    """A sentence of few words with any tree of one root, which is a verb with a subject."""
    n = draw(st.integers(2, 12))
    words = draw(st.lists(st.sampled_from(WORDS), min_size=n, max_size=n))
    root = draw(st.integers(1, n - 1))
    # Towards the root, so that there is no cycle; often without gaps.
    heads = [
        draw(st.integers(i + 1, root)) if i < root else draw(st.integers(root, max(root, i - 1))) for i in range(n)
    ]
    heads[0] = root
    names = ["nsubj", *draw(st.lists(st.sampled_from(RELATIONS), min_size=n - 1, max_size=n - 1))]
    tags = draw(st.lists(st.sampled_from(TAGS), min_size=n, max_size=n))
    names[root], tags[root] = "ROOT", "VERB"
    start = draw(st.integers(0, n - 1))
    mentions = draw(st.sampled_from([(), (Mention("X", [(start, draw(st.integers(start + 1, n)))]),)]))
    return Sentence(words, mentions), Parse(tuple(heads), tuple(names), tuple(tags))


@settings(max_examples=300, deadline=None)
@given(trees(), st.booleans())
def test_any_tree_gives_sentences_of_its_words(tree: tuple[Sentence, Parse], is_english: bool) -> None:
    source, parse = tree
    parser = Trees({})
    parser._trees[source.tokens] = parse
    parser.languages = frozenset({"en" if is_english else "de"})  # type: ignore[attr-defined]
    lower = [word.lower() for word in source.tokens]
    labels = [tuple(word.lower() for word in source.mention_tokens(mention)) for mention in source.mentions]
    for new in Crop(copies=30, dependency_parser=parser).augment([source]):
        rest = iter(lower)
        assert all(word.lower() in rest for word in new.tokens), "the words in their order"
        assert len(new) < len(source)
        assert len(new.mentions) == len(source.mentions), "the only one is kept"
        assert [tuple(map(str.lower, new.mention_tokens(m))) for m in new.mentions] == labels
    for new in Rotate(copies=30, order="fixed", dependency_parser=parser).augment([source]):
        words = [[word.lower() for word in tokens if word != ","] for tokens in (source.tokens, new.tokens)]
        assert sorted(words[0]) == sorted(words[1])
        assert [tuple(map(str.lower, new.mention_tokens(m))) for m in new.mentions] == labels
