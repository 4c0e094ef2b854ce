"""Constituency parsers, and CR: phrases exchanged for phrases of their category, by hand-computed cases."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from numpy import array, float32
from numpy.typing import NDArray

from entaug import Mention, Sentence
from entaug.backends.parsers.projection import project_constituents
from entaug.backends.protocols import Constituent, Parse
from entaug.backends.resolve import resolve
from entaug.errors import MissingModelError, ParameterError, UnknownNameError
from entaug.methods import ConstituencyReplacement
from entaug.methods.choice import CandidateScorer
from helpers.fakes import FakeCausalLM, FakeEncoder


def constituents_of(text: str, heads: Sequence[int], relations: str, tags: str) -> set[str]:
    """The phrases projected from a tree, each as its category and its words."""
    words = text.split()
    found = project_constituents(words, Parse(tuple(heads), tuple(relations.split()), tuple(tags.split())))
    return {f"{c.category} {' '.join(words[c.start : c.end])}" for c in found}


class TestProjection:
    """Phrases read off dependency trees."""

    def test_a_preposition_as_the_head(self) -> None:
        # As spaCy's English has it.
        found = constituents_of(
            "She has really lived in old Rome .",
            [3, 3, 3, 3, 3, 6, 4, 3],
            "nsubj aux advmod ROOT prep amod pobj punct",
            "PRON AUX ADV VERB ADP ADJ PROPN PUNCT",
        )
        assert found == {
            "NP She",
            "VP has really lived in old Rome",
            "VP lived in old Rome",
            "ADVP really",
            "PP in old Rome",
            "NP old Rome",
        }

    def test_a_preposition_below_its_noun(self) -> None:
        # As Universal Dependencies have it; and a copula.
        found = constituents_of(
            "The king of France is very old",
            [1, 6, 3, 1, 6, 6, 6],
            "det nsubj case nmod cop advmod root",
            "DET NOUN ADP PROPN AUX ADV ADJ",
        )
        assert found == {
            "NP The king of France",
            "NP The king",
            "PP of France",
            "NP France",
            "VP is very old",
            "ADJP very old",
        }

    def test_what_is_joined(self) -> None:
        found = constituents_of(
            "Ana and Bo sing but Cy left",
            [3, 0, 0, 3, 3, 6, 3],
            "nsubj cc conj ROOT cc nsubj conj",
            "PROPN CCONJ PROPN VERB CCONJ PROPN VERB",
        )
        assert {"NP Ana and Bo", "NP Ana", "NP Bo", "VP sing", "VP left", "NP Cy"} <= found
        assert "VP sing but Cy left" not in found, "another clause with a subject of its own"

    def test_no_two_cross(self) -> None:
        rng = Random(1)
        names = ["nsubj", "obj", "prep", "pobj", "aux", "cop", "cc", "conj", "case", "amod", "advmod", "punct", "det"]
        kinds = ["NOUN", "VERB", "ADP", "ADJ", "ADV", "AUX", "PROPN", "PUNCT", "DET"]
        for _ in range(500):
            n = rng.randint(1, 12)
            root = rng.randrange(n)
            order = rng.sample(range(n), n)
            order.remove(root)
            heads = [root] * n
            placed = [root]
            for token in order:
                heads[token] = rng.choice(placed)
                placed.append(token)
            parse = Parse(tuple(heads), tuple(rng.choices(names, k=n)), tuple(rng.choices(kinds, k=n)))
            found = project_constituents(["w"] * n, parse)
            for one in found:
                assert 0 <= one.start < one.end <= n
                for other in found:
                    assert not one.start < other.start < one.end < other.end
            assert list(found) == sorted(found, key=lambda c: (c.start, -c.end)), "outer before inner"


def test_unknown_parsers_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="projected, stanza"):
        resolve("constituency_parser", "charniak")


class TestStanza:
    """Trees of Stanza; its models cannot be had everywhere, its trees can."""

    def test_phrases_of_a_tree(self) -> None:
        pytest.importorskip("stanza", reason="stanza is not installed")
        from stanza.models.constituency.tree_reader import read_trees

        from entaug.backends.parsers.stanza import StanzaParser, constituents_of

        [tree] = read_trees("(ROOT (S (NP-SBJ (PRP She)) (VP (VBZ lives) (PP (IN in) (NP (NNP Rome)))) (. .)))")
        wanted = (
            Constituent("S", 0, 5),
            Constituent("NP", 0, 1),
            Constituent("VP", 1, 4),
            Constituent("PP", 2, 4),
            Constituent("NP", 3, 4),
        )
        assert constituents_of(tree, 5) == wanted
        assert constituents_of(tree, 4) == (), "a tree over other tokens"

        class Pipeline:
            def __call__(self, asked: list[list[str]]) -> object:
                sentences = [type("One", (), {"constituency": tree})() for _ in asked]
                return type("Document", (), {"sentences": sentences})()

        parser = StanzaParser("en", pipeline=Pipeline())
        words = "She lives in Rome .".split()
        assert parser.parse([words, ["Oh"], words]) == [wanted, (), wanted]

    def test_models_that_are_missing_are_named(self, tmp_path: object) -> None:
        pytest.importorskip("stanza", reason="stanza is not installed")
        (tmp_path / "en").mkdir()  # type: ignore[operator]
        with pytest.raises(MissingModelError, match=r"no constituency parser.*stanza\.download"):
            resolve("constituency_parser", f"stanza:{tmp_path}/en")


# ---------------------------------------------------------------------------------------------------------------- CR


class Given:
    """A constituency parser that has the phrases of each sentence written down."""

    name = "given"

    def __init__(self, *known: str) -> None:
        self._known: dict[tuple[str, ...], tuple[Constituent, ...]] = {}
        for text in known:
            words: list[str] = []
            opened: list[tuple[str, int, int]] = []
            found: list[tuple[int, Constituent]] = []
            for order, part in enumerate(text.replace("]", " ] ").split()):
                if part.startswith("["):
                    opened.append((part[1:], len(words), order))
                elif part == "]":
                    category, start, place = opened.pop()
                    found.append((place, Constituent(category, start, len(words))))
                else:
                    words.append(part)
            self._known[tuple(words)] = tuple(one for _, one in sorted(found))

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        return [self._known.get(tuple(words), ()) for words in sentences]


ANY: dict[str, Any] = {"same_form": False, "min_similarity": 0, "candidates": 1}
"""Any phrase of the category is inserted, as in the paper."""


def made(gold: list[Sentence], parser: Given, **options: object) -> list[set[str]]:
    """All that can become of each sentence, over many seeds."""
    found: list[set[str]] = [set() for _ in gold]
    for seed in range(40):
        method = ConstituencyReplacement(seed=seed, constituency_parser=parser, **{**ANY, **options})
        for one in method.fit(gold).augment(gold):
            at = [s.key for s in gold].index(one.fields["entaug"]["sources"][0])
            found[at].add(" ".join(one.tokens) + " | " + " ".join(one.iob()))
    return found


class TestReplacement:
    """CR, each fault of the public code as a case that it gets right."""

    ana = Sentence("Ana lives in Rome now".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(3, 4)])], id="ana")
    bo = Sentence("yesterday he flew to Oslo".split(), [Mention("LOC", [(4, 5)])], id="bo")
    parser = Given(
        "[NP Ana] [VP lives [PP in [NP Rome]] [ADVP now]]", "[ADVP yesterday] [NP he] [VP flew [PP to [NP Oslo]]]"
    )

    def test_worked_case(self) -> None:
        # A PP with a mention goes, the only other PP comes, mention and all.
        [of_ana, of_bo] = made([self.ana, self.bo], self.parser, categories="PP")
        assert of_ana == {"Ana lives to Oslo now | B-PER O O B-LOC O"}
        assert of_bo == {"yesterday he flew in Rome | O O O O B-LOC"}

    def test_categories_are_whole_names(self) -> None:
        # The public code asks whether "VP" is in the name: "ADVP" holds it too.
        [of_ana, of_bo] = made([self.ana, self.bo], self.parser, categories="VP")
        assert of_ana == {"Ana flew to Oslo | B-PER O O B-LOC"}
        assert of_bo == {"yesterday he lives in Rome now | O O O O B-LOC O"}

    def test_spaces_around_categories_are_no_part_of_them(self) -> None:
        spaced = made([self.ana, self.bo], self.parser, categories=" VP + PP ")
        assert spaced == made([self.ana, self.bo], self.parser, categories="VP+PP")
        assert all(spaced)

    def test_the_phrase_drawn_is_the_one_that_comes(self) -> None:
        # The public code takes any phrase of the sentence that it drew; and single tokens at the ends get lost.
        [of_ana, _] = made([self.ana, self.bo], self.parser, categories="NP")
        assert of_ana == {
            "He lives in Rome now | O O O B-LOC O",  # with the capital of a beginning
            "Oslo lives in Rome now | B-LOC O O B-LOC O",
            "Ana lives in he now | B-PER O O O O",
            "Ana lives in Oslo now | B-PER O O B-LOC O",
        }

    def test_labelled_donors_alone(self) -> None:
        [of_ana, of_bo] = made([self.ana, self.bo], self.parser, categories="NP", require_mention=True)
        assert of_ana == {"Oslo lives in Rome now | B-LOC O O B-LOC O", "Ana lives in Oslo now | B-PER O O B-LOC O"}
        assert of_bo == {"yesterday he flew to Ana | O O O O B-PER", "yesterday he flew to Rome | O O O O B-LOC"}

    def test_several_at_once_do_not_overlap(self) -> None:
        [of_ana, _] = made(
            [self.ana, self.bo], self.parser, num_replacements=3, require_mention=True, categories="NP+VP+PP"
        )
        assert "Oslo flew to Oslo | B-LOC O O B-LOC" in of_ana
        assert all(len(text.split(" | ")[0].split()) in (4, 5) for text in of_ana)

    def test_tokens_with_slashes_and_adjacent_mentions(self) -> None:
        gold = [
            Sentence("and/or B/C here".split(), [Mention("X", [(0, 1)]), Mention("X", [(1, 2)])], id="a"),
            Sentence("see D/E F".split(), [Mention("X", [(1, 2)]), Mention("Y", [(2, 3)])], id="b"),
        ]
        parser = Given("[NP and/or B/C] [ADVP here]", "[VP see [NP D/E F]]")
        [of_a, of_b] = made(gold, parser, categories="NP")
        assert of_a == {"D/E F here | B-X B-Y O"}
        assert of_b == {"see and/or B/C | O B-X B-X"}, "adjacent mentions stay two"

    def test_no_donor_that_says_the_same(self) -> None:
        gold = [
            Sentence("Rome burns".split(), [Mention("LOC", [(0, 1)])], id="a"),
            Sentence("rome fell".split(), [Mention("LOC", [(0, 1)])], id="b"),
        ]
        method = ConstituencyReplacement(
            constituency_parser=Given("[NP Rome] burns", "[NP rome] fell"), categories="NP", **ANY
        )
        assert list(method.fit(gold).augment(gold)) == []
        assert method.statistics_.missing == {"no replaceable phrase with a mention": 2}

    def test_phrases_that_cut_a_mention_stay_on_either_side(self) -> None:
        gold = [
            Sentence("the City Hall Museum opened".split(), [Mention("ORG", [(1, 4)])], id="a"),
            Sentence("old towns in Peru grew".split(), [Mention("LOC", [(3, 4)])], id="b"),
        ]
        parser = Given("[NP the City Hall] [NP Museum] opened", "[NP old towns [PP in [NP Peru]]] grew")
        assert made(gold, parser, categories="NP") == [set(), set()], "nothing to exchange with"

    def test_nested_and_discontinuous_mentions_move_whole(self) -> None:
        deep = Mention("SYM", [(1, 2), (3, 4)])
        gold = [
            Sentence(
                "severe joint and muscle pain eased".split(),
                [Mention("SYM", [(1, 2), (4, 5)]), Mention("SYM", [(3, 5)])],
                id="a",
            ),
            Sentence("his arm also hurts today".split(), [deep], id="b"),
        ]
        parser = Given("[NP severe joint and muscle pain] eased", "[NP his arm also hurts] today")
        method = ConstituencyReplacement(constituency_parser=parser, categories="NP", **ANY).fit(gold)
        one, other = method.augment(gold)
        assert one.tokens == ("his", "arm", "also", "hurts", "eased")
        assert one.mentions == (deep,)
        assert other.mentions == gold[0].mentions
        # A phrase with one part of it is no phrase.
        parser = Given("[NP severe joint] and muscle pain eased", "[NP his arm] also hurts today")
        method = ConstituencyReplacement(constituency_parser=parser, categories="NP", **ANY).fit(gold)
        assert list(method.augment(gold)) == []

    def test_whole_sentences_and_open_brackets_stay(self) -> None:
        gold = [
            Sentence("Rome burns .".split(), [Mention("LOC", [(0, 1)])], id="a"),
            Sentence("Oslo ( Norway fell".split(), [Mention("LOC", [(0, 1)])], id="b"),
        ]
        parser = Given("[VP [NP Rome] burns] .", "[VP [NP Oslo ( Norway] fell]")
        assert made(gold, parser, categories="VP+NP") == [set(), set()]
        loose = made(gold, parser, categories="NP", normalize_boundaries=False)
        assert loose[0] == {"Oslo ( Norway burns . | B-LOC O O O O"}
        assert made(gold, parser, categories="VP", allow_whole_sentence=True, normalize_boundaries=False)[1] == {
            "Rome burns | B-LOC O"
        }

    def test_the_best_of_the_candidates(self) -> None:
        towns = ["Oslo", "Bonn", "Kyiv", "Lima", "Baku"]
        gold = [
            Sentence("we saw Rome today".split(), [Mention("LOC", [(2, 3)])], id="rome"),
            *(Sentence([town, "fell"], [Mention("LOC", [(0, 1)])], id=town) for town in towns),
        ]
        parser = Given("we saw [NP Rome] today", *(f"[NP {town}] fell" for town in towns))
        choice = CandidateScorer(nearness=0, causal_lm=FakeCausalLM())
        options = {**ANY, "candidates": 5, "choice": choice, "max_attempts": 60}
        [one] = ConstituencyReplacement(constituency_parser=parser, **options).fit(gold).augment(gold[:1])

        def score(text: str) -> float:
            return float(FakeCausalLM().token_log_probs([text])[0].mean())

        texts = [f"we saw {town} today" for town in towns]
        assert " ".join(one.tokens) == max(texts, key=score), "all five are drawn among sixty"
        assert one.fields["entaug"]["candidates"] == 5

    def test_phrases_of_the_same_form_fit(self) -> None:
        # Only phrases with mentions of the same labels are inserted, none that is much longer, none that repeats a
        # mention of the sentence, and none that is or has an abbreviation in brackets.
        gold = [
            Sentence("Rome met Ada".split(), [Mention("LOC", [(0, 1)]), Mention("PER", [(2, 3)])], id="frame"),
            Sentence("ada left".split(), [Mention("PER", [(0, 1)])], id="repeated"),
            Sentence("Oslo grew".split(), [Mention("LOC", [(0, 1)])], id="place"),
            Sentence("Bo left".split(), [Mention("PER", [(0, 1)])], id="person"),
            Sentence("the old but very wise Cy left".split(), [Mention("PER", [(5, 6)])], id="long"),
            Sentence("Di ( D ) left".split(), [Mention("PER", [(0, 1)]), Mention("PER", [(2, 3)])], id="short"),
        ]
        parser = Given(
            "Rome met [NP Ada]",
            "[NP ada] left",
            "[NP Oslo] grew",
            "[NP Bo] left",
            "[NP the old but very wise Cy] left",
            "[NP Di] ( [NP D] ) left",
        )
        [of_frame, *_] = made(gold, parser, categories="NP", same_form=True)
        assert of_frame == {"Rome met Bo | B-LOC O B-PER"}
        twice = Sentence("Ada saw Ada".split(), [Mention("PER", [(0, 1)]), Mention("PER", [(2, 3)])], id="twice")
        also = Given("[NP Bo] left", "[NP Ada] saw Ada")
        assert made([twice, gold[3]], also, categories="NP", same_form=True)[0] == set(), "who is Ada then?"
        [of_frame, *_] = made(gold, parser, categories="NP")
        assert len(of_frame) == 5, "all but what says the same"

    def test_the_most_similar_phrase_is_inserted(self) -> None:
        class Vectors(FakeEncoder):
            """The vectors of some texts: cosines with that of Rome of 1, .9, .5 and 0."""

            def sentence_vectors(self, texts: Sequence[str]) -> NDArray[float32]:
                known = {"Rome": (1.0, 0.0), "Oslo": (0.9, 0.436), "Bonn": (0.5, 0.866), "Gas": (0.0, 1.0)}
                return array([known[text] for text in texts])

        names = ["Oslo", "Bonn", "Gas"]

        def result(*others: str, min_similarity: float) -> set[str]:
            gold = [
                Sentence("we saw Rome".split(), [Mention("LOC", [(2, 3)])], id="rome"),
                *(Sentence([name, "fell"], [Mention("LOC", [(0, 1)])], id=name) for name in others),
            ]
            parser = Given("we saw [NP Rome]", *(f"[NP {name}] fell" for name in others))
            [of_rome, *_] = made(gold, parser, categories="NP", min_similarity=min_similarity, encoder=Vectors())
            return {text.split(" | ")[0] for text in of_rome}

        assert "we saw Oslo" in result(*names, min_similarity=0.4)
        assert "we saw Gas" not in result(*names, min_similarity=0.4), "unlike"
        assert result("Bonn", "Gas", min_similarity=0.6) == set(), "none is similar enough"
        many = ["Gas"] * 30 + ["Oslo"]
        assert "we saw Oslo" in result(*many, min_similarity=0.4), "a draw of some donors is not the last"

    def test_refusals(self) -> None:
        for options in (
            {"num_replacements": 0},
            {"min_similarity": 2},
            {"categories": "NP+XP"},
            {"categories": ""},
            {"normalize_boundaries": 1},
        ):
            with pytest.raises(ParameterError):
                ConstituencyReplacement(**options)
