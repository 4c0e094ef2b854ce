"""lm and bt by hand, with fakes: what is drawn, what is refused, what follows the original."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from numpy import float32
from numpy.typing import NDArray

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.backends.fakes import array
from entaug.backends.protocols import MaskedText, Parse, RoundTrip
from entaug.backends.translation.base import ChainedTranslator
from entaug.core.alignment import CorpusTokenizer, detokenize, detokenize_with_gaps
from entaug.core.spacing import infer_spaces
from entaug.errors import ParameterError, UnknownNameError
from entaug.methods import Backtranslation, MaskedLMReplacement
from helpers.fakes import FakeCausalLM, FakeEncoder, FakeMaskedLM, FakeTranslator, FakeWordVectors, Likes


class Scripted(FakeMaskedLM):
    """A masked LM that offers the same words for every gap, and remembers what it was asked."""

    def __init__(self, offered: Sequence[tuple[str, float]]) -> None:
        super().__init__()
        self.offered = list(offered)
        self.asked: list[list[str | None]] = []

    def fill(
        self, texts: Sequence[MaskedText], top: int, *, first_only: bool = False
    ) -> list[list[list[tuple[str, float]]]]:
        self.asked += [list(text) for text in texts]
        return [[self.offered[:top] for part in text if part is None] for text in texts]


class Says(FakeTranslator):
    """A translator that gives a fixed answer for each text, and remembers what it was asked."""

    def __init__(self, answers: dict[str, str] | None = None, *, can_sample: bool = False) -> None:
        super().__init__(can_sample=can_sample)
        self.answers = answers or {}
        self.asked: list[str] = []

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        self.asked += texts
        return [self.answers.get(text, text) for text in texts]


def by(answers: dict[str, str]) -> RoundTrip:
    return RoundTrip(Says(), Says(answers))


# ------------------------------------------------------------------------------------------------------------------ lm


def unguarded(gold: list[Sentence], **params: Any) -> MaskedLMReplacement:
    """The method on a few words that make no sense, without what judges them, and as many words as it is told."""
    judges = {"guard": False, "stop_words": None, "show_source": False, "dependency_parser": None, "causal_lm": None}
    return MaskedLMReplacement(**{"p": 1.0, "min_p": 0.1, **judges, **params}).fit(gold)


def test_lm_fills_from_left_to_right_and_hides_the_rest() -> None:
    lm = Scripted([("big", -0.1)])
    gold = [Sentence("Ada saw a red car .".split(), [Mention("PER", [(0, 1)])])]
    [new] = unguarded(gold, num_replacements=4, masked_lm=lm).augment(gold)
    assert new.tokens == ("Ada", "big", "big", "big", "big", ".")
    assert lm.asked == [
        ["Ada ", None, " ", None, " ", None, " ", None, "."],
        ["Ada big ", None, " ", None, " ", None, "."],
        ["Ada big big ", None, " ", None, "."],
        ["Ada big big big ", None, "."],
    ]
    lm.asked.clear()
    [joint] = unguarded(gold, num_replacements=4, masked_lm=lm, single_pass=True).augment(gold)
    assert joint.tokens == new.tokens
    assert len(lm.asked) == 1


def test_lm_draws_by_probability_among_the_top_that_differ() -> None:
    # Of "red" (the original, however likely), "blue" (.6), "green" (.3), "old" (.1) and "odd" (not in the top three).
    lm = Scripted([("red", -0.01), ("blue", -0.51), ("green", -1.204), ("old", -2.303), ("odd", -2.4)])
    gold = [Sentence(["Red", "Oslo"], [Mention("LOC", [(1, 2)])], id=str(i)) for i in range(3000)]
    new = unguarded(gold, num_replacements=1, top_k=3, masked_lm=lm).run()
    drawn = Counter(made.tokens[0] for source in gold for made in new.sentences([source]))
    # Equal results of different sources are made once: so the draw itself is looked at.
    assert set(drawn) == {"Blue", "Green", "Old"}
    method = unguarded(gold, num_replacements=1, top_k=3, masked_lm=lm)
    counts: Counter[str] = Counter()
    for source in gold:
        [made] = unguarded([source], num_replacements=1, top_k=3, masked_lm=lm, seed=int(source.id or 0)).augment(
            [source]
        )
        counts[made.tokens[0]] += 1
    assert counts["Blue"] / 3000 == pytest.approx(0.6, abs=0.03)
    assert counts["Old"] / 3000 == pytest.approx(0.1, abs=0.02)
    assert method.info.keeps_length


def test_lm_goes_elsewhere_where_only_the_original_is_plausible() -> None:
    class Sure(FakeMaskedLM):
        def fill(
            self, texts: Sequence[MaskedText], top: int, *, first_only: bool = False
        ) -> list[list[list[tuple[str, float]]]]:
            # Sure of "of", and open to anything else.
            return [
                [
                    [("of", -0.01), ("in", -5.0)] if str(text[i - 1]).endswith("top ") else [("new", -1.0)]
                    for i, part in enumerate(text)
                    if part is None
                ]
                for text in texts
            ]

    gold = [Sentence("top of Oslo here".split(), [Mention("LOC", [(2, 3)])], id=str(i)) for i in range(20)]
    for joint in (False, True):
        method = unguarded(gold, num_replacements=1, masked_lm=Sure(), single_pass=joint)
        made = {new.tokens for one in gold for new in method.augment([one])}
        assert made == {("new", "of", "Oslo", "here"), ("top", "of", "Oslo", "new")}
        any_fill = unguarded(gold, num_replacements=1, masked_lm=Sure(), single_pass=joint, min_p=0)
        assert ("top", "in", "Oslo", "here") in {new.tokens for one in gold for new in any_fill.augment([one])}


def test_lm_chooses_words_outside_mentions_alone() -> None:
    lm = Scripted([("new", -0.1)])
    tokens = "In 1990 Ada 's friend , well-known , left Oslo in 3rd gear .".split()
    gold = [Sentence(tokens, [Mention("PER", [(2, 3)]), Mention("LOC", [(9, 10)])])]
    [made] = unguarded(gold, num_replacements=50, masked_lm=lm).augment(gold)
    assert made.tokens == tuple("New 1990 Ada 's new , new , new Oslo new 3rd new .".split())
    [made] = unguarded(gold, num_replacements=50, masked_lm=lm, stop_words="en").augment(gold)
    assert made.tokens[0] == "In"
    [made] = unguarded(gold, num_replacements=50, masked_lm=lm, replace_punctuation=True).augment(gold)
    assert made.tokens == tuple("New new Ada new new new new new new Oslo new new new new".split())
    # The gap of a discontinuous mention is no mention.
    gapped_ = [Sentence("severe joint and back pain".split(), [Mention("D", [(1, 2), (4, 5)]), Mention("D", [(3, 5)])])]
    [made] = unguarded(gapped_, num_replacements=9, masked_lm=lm).augment(gapped_)
    assert made.tokens == ("new", "joint", "new", "back", "pain")
    assert made.mentions == gapped_[0].mentions


@pytest.mark.parametrize(
    ("tokens", "wanted"),
    [
        ("the DNA of Oslo", "new new new Oslo"),
        ("DNA seen in Oslo", "New new new Oslo"),
        ("THE END OF Oslo", "NEW NEW NEW Oslo"),
        ("The State of Oslo", "New New new Oslo"),
    ],
)
def test_lm_follows_the_casing(tokens: str, wanted: str) -> None:
    gold = [Sentence(tokens.split(), [Mention("LOC", [(3, 4)])])]
    [made] = unguarded(gold, num_replacements=9, masked_lm=Scripted([("new", -0.1)])).augment(gold)
    assert " ".join(made.tokens) == wanted


def test_lm_filtered_takes_near_words_alone() -> None:
    lm = Scripted([("banana", -0.7), ("blue", -0.9)])
    vectors = FakeWordVectors([["red", "blue"], ["banana"]])
    gold = [Sentence(["red", "Oslo"], [Mention("LOC", [(1, 2)])])]
    method = unguarded(gold, num_replacements=1, masked_lm=lm, min_similarity=0.5, word_vectors=vectors)
    assert [made.tokens for made in method.augment(gold)] == [("blue", "Oslo")]
    none = [Sentence(["zzz", "Oslo"], [Mention("LOC", [(1, 2)])])]
    assert list(method.augment(none)) == []
    assert method.statistics_.missing == {"no suitable other word": 1}
    only_mentions = [Sentence(["Oslo"], [Mention("LOC", [(0, 1)])])]
    assert list(method.augment(only_mentions)) == []
    assert method.statistics_.missing == {"no replaceable word outside mentions": 1}


def test_lm_replaces_a_share_of_the_words_up_to_a_maximum() -> None:
    lm = Scripted([("new", -0.1)])
    gold = [Sentence(["Oslo", *"abcdefghijklmnopqrst"], [Mention("LOC", [(0, 1)])])]
    for p, maximum, wanted in ((0.2, 9, 4), (0.2, 3, 3), (0.0, 9, 1), (1.0, 50, 20)):
        [made] = unguarded(gold, p=p, num_replacements=maximum, masked_lm=lm).augment(gold)
        assert made.tokens.count("new") == wanted


def test_lm_keeps_function_words_of_the_language_of_the_corpus() -> None:
    lm = Scripted([("new", -0.1)])
    gold = [Sentence("the cat is in the garden of the king and it sleeps".split())] * 3
    [made, *_] = unguarded(gold, num_replacements=50, masked_lm=lm, stop_words="auto").run().sentences(gold)
    assert made.tokens == tuple("the new is in the new of the new and it new".split())


class Parser:
    """A parser that knows the tags of some words, with their form behind a slash."""

    name = "tags"

    def __init__(self, **tags: str) -> None:
        self.tags = tags

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        parses = []
        for words in sentences:
            tags, features = zip(*(self.tags.get(word.lower(), "X/").split("/") for word in words), strict=True)
            parses.append(Parse((0,) * len(words), ("dep",) * len(words), tags, features))
        return parses


def test_lm_shows_the_source_and_leaves_alone_what_the_model_does_not_know() -> None:
    lm = Scripted([("red", -0.1), ("blue", -2.0), ("far", -9.0), ("reds", -1.0)])
    gold = [Sentence("red xyzzy Oslo".split(), [Mention("LOC", [(2, 3)])])]
    [made] = unguarded(gold, num_replacements=9, masked_lm=lm, show_source=True, min_p=0).augment(gold)
    # "far" is too unlikely where the original is seen, "reds" is the same word.
    assert made.tokens == ("blue", "xyzzy", "Oslo")
    assert lm.asked[0] == ["red xyzzy Oslo ", None, " xyzzy Oslo"]
    assert ["blue xyzzy Oslo ", "blue ", None, " Oslo"] in lm.asked


def test_lm_asks_once_for_all_drafts_of_a_sentence() -> None:
    lm = Scripted([("red", -0.1)])
    gold = [Sentence("red red Oslo".split(), [Mention("LOC", [(2, 3)])])]
    assert list(unguarded(gold, num_replacements=1, masked_lm=lm, show_source=True, copies=5).augment(gold)) == []
    assert len(lm.asked) == len({tuple(text) for text in lm.asked}) == 2


def test_lm_keeps_part_of_speech_and_form() -> None:
    lm = Scripted([("runs", -0.1), ("ran", -0.2), ("fast", -0.3), ("walks", -0.4)])
    parser = Parser(ada="PROPN/", runs="VERB/3s", ran="VERB/past", fast="ADV/", walks="VERB/3s", to="ADP/")
    gold = [Sentence("Ada runs to Oslo".split(), [Mention("LOC", [(3, 4)])])]
    method = unguarded(gold, num_replacements=9, masked_lm=lm, dependency_parser=parser, stop_words="auto")
    [made] = method.augment(gold)
    assert made.tokens == ("Ada", "walks", "to", "Oslo"), "names and prepositions stay"


def test_lm_spends_the_margin_once_for_all_words() -> None:
    lm = Scripted([("worse", -0.1)])
    gold = [Sentence("this that Oslo".split(), [Mention("LOC", [(2, 3)])])]
    for loss, wanted in ((0.4, 2), (0.6, 1), (1.1, 0)):
        model = Likes(worse=-5.0 - loss)
        method = unguarded(gold, num_replacements=2, masked_lm=lm, causal_lm=model, margin=1.0)
        assert [new.tokens.count("worse") for new in method.augment(gold)] == ([wanted] if wanted else [])


@pytest.mark.parametrize(
    "bad",
    [{"num_replacements": 0}, {"top_k": 0}, {"min_similarity": 2}, {"single_pass": 1}, {"replace_punctuation": None}],
)
def test_lm_refuses(bad: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        MaskedLMReplacement(masked_lm=FakeMaskedLM(), **bad)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------------ bt


def translated(tokens: str, answers: dict[str, str], mentions: list[Mention], **options: object) -> list[str]:
    gold = [Sentence(tokens.split(), mentions)]
    params: dict[str, Any] = {"whole_sentence": False, **options}
    method = Backtranslation(translator=by(answers), p=1.0, **params)
    made = list(method.fit(gold).augment(gold))
    for sentence in made:
        assert [sentence.mention_tokens(m) for m in sentence.mentions] == [
            gold[0].mention_tokens(m) for m in gold[0].mentions
        ]
    return [" ".join(sentence.tokens) for sentence in made]


def test_bt_translates_runs_of_three_or_more() -> None:
    ada, oslo = Mention("PER", [(0, 1)]), Mention("LOC", [(5, 6)])
    text = "Ada went by train to Oslo at night ."
    made = translated(text, {"went by train to": "took the train to"}, [ada, oslo])
    assert made == ["Ada took the train to Oslo at night ."]
    # "at night" has two words, and a full stop: three tokens, so it is a candidate as well.
    both = translated(text, {"went by train to": "rode to", "at night": "in the night"}, [ada, oslo])
    assert both == ["Ada rode to Oslo in the night ."]
    assert translated(text, {"at night": "x y"}, [ada, oslo], min_tokens=4) == []


def test_bt_casing_and_punctuation_follow_the_original() -> None:
    oslo = Mention("LOC", [(4, 5)])
    made = translated("\" We all love Oslo and its parks ! ''", {"We all love": "everyone here loves,"}, [oslo])
    assert made == ["\" Everyone here loves Oslo and its parks ! ''"]
    made = translated("\" We all love Oslo and its parks ! ''", {"and its parks": "And the parks."}, [oslo])
    assert made == ["\" We all love Oslo and the parks ! ''"]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "...",
        "we ##ll love",
        "we [MASK] love",
        "we ▁love it",
        "we ' love",
        "we " + "really " * 30 + "love",
        "<unk> a b",
    ],
)
def test_bt_leaves_out_what_cannot_stand(answer: str) -> None:
    assert translated("We all love our Oslo .", {"We all love our": answer}, [Mention("LOC", [(4, 5)])]) == []


def test_bt_keeps_figures_and_leaves_no_foreign_word() -> None:
    oslo = [Mention("LOC", [(0, 1)])]
    kept = translated("Oslo had 5 large parks", {"had 5 large parks": "was home to 5 big parks"}, oslo)
    assert kept == ["Oslo was home to 5 big parks"]
    for lost in ("had large parks", "had 6 large parks", "had 5 5 big parks"):
        assert translated("Oslo had 5 large parks", {"had 5 large parks": lost}, oslo) == []
    assert translated("Oslo saw @ann go by", {"saw @ann go by": "saw ann pass by"}, oslo) == []
    gold = [Sentence("Oslo had very large parks".split(), oslo), Sentence(["total"])]
    for word, count in (("parques", 0), ("total", 1)):
        there = Says({"had very large parks": f"tinha {word}"})
        trip = RoundTrip(there, Says({f"tinha {word}": f"had large {word}"}))
        assert len(list(Backtranslation(whole_sentence=False, translator=trip).fit(gold).augment(gold))) == count


def test_bt_leaves_gaps_of_mentions_alone() -> None:
    mention = Mention("D", [(0, 1), (4, 5)])
    answers = {"of the whole": "x y z", "was seen in him": "was found in him"}
    made = translated("pain of the whole back was seen in him", answers, [mention])
    assert made == ["pain of the whole back was found in him"]


def test_bt_translates_what_repeats_once_and_remembers() -> None:
    trip = by({"it rains a lot": "it often rains"})
    gold = [
        Sentence(f"{name} it rains a lot .".split(), [Mention("LOC", [(0, 1)])]) for name in ("Oslo", "Rome", "Rio")
    ]
    method = Backtranslation(whole_sentence=False, translator=trip, p=1.0, copies=2).fit(gold)
    assert len(list(method.augment(gold))) == 3
    assert trip.forward.asked == ["it rains a lot"]  # type: ignore[attr-defined]
    assert method.statistics_.missing == {"made before": 3}


def test_bt_varies_pivots_and_samples() -> None:
    text = "Ada goes there by train every day .".split()
    gold = [Sentence(text, [Mention("PER", [(0, 1)])])]
    question = "goes there by train every day"
    trips = [by({question: "takes the train daily"}), by({question: "travels there by rail each day"})]
    made = Backtranslation(whole_sentence=False, translator=trips, copies=2, p=1.0).fit(gold).augment(gold)
    assert len({sentence.tokens for sentence in made}) == 2
    sampling = RoundTrip(FakeTranslator(can_sample=True), FakeTranslator())
    drawn = Backtranslation(whole_sentence=False, translator=sampling, do_sample=True, copies=4, p=1.0).fit(gold)
    assert len(list(drawn.augment(gold))) > 2
    assert not [note for note in drawn.notes() if "cannot sample" in note]
    fixed = Backtranslation(whole_sentence=False, translator=by({}), do_sample=True)
    fixed.load()
    assert "cannot sample" in fixed.notes()[-1]


class LikesShort(FakeCausalLM):
    """A language model that likes short texts, and no text with the word ``odd``."""

    def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[float32]]:
        return [array([-float(len(text)) - 100 * ("odd" in text.split())]) for text in texts]


class OddOneOut(FakeEncoder):
    """An encoder that finds texts with the word ``far`` unlike all others, and the others equal."""

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[float32]:
        return array([[1.0 - ("far" in text.split()), 0.0 + ("far" in text.split())] for text in texts])


def changed(tokens: str, answers: dict[str, str], mentions: list[Mention], **options: Any) -> list[str]:
    models = {"encoder": OddOneOut(), "causal_lm": LikesShort(), "dependency_parser": None}
    return translated(tokens, answers, mentions, whole_sentence=True, **{**models, **options})


def test_bt_takes_over_changes_of_whole_sentences() -> None:
    mentions = [Mention("PER", [(0, 2)]), Mention("LOC", [(6, 8)])]
    text = "Ada Byron quickly travelled home via Old Oslo yesterday evening ."
    asked = "Ada Byron quickly travelled home via Old Oslo yesterday evening."
    # Names that the translation spoils stay, and so do the words beside them that changed with them.
    answer = "Adah Byron rapidly went home through Elderly Oslo last night."
    assert changed(text, {asked: answer}, mentions) == ["Ada Byron rapidly went home via Old Oslo last night ."]
    for bad in ("odd", "far"):
        answer = f"Ada Byron {bad} travelled home via Old Oslo last night."
        assert changed(text, {asked: answer}, mentions) == [
            "Ada Byron quickly travelled home via Old Oslo last night ."
        ]
        unchecked = changed(text, {asked: answer}, mentions, check_translations=False)
        assert unchecked == [f"Ada Byron {bad} travelled home via Old Oslo last night ."]
    assert changed(text, {asked: "<unk> Byron fast went home."}, mentions) == []


def test_bt_translates_segments_besides_the_sentence() -> None:
    text, oslo = "yesterday evening we all admired Oslo at noon today", [Mention("LOC", [(5, 6)])]
    answers = {
        text: "yesterday night we all admired Oslo at noon today",
        "yesterday evening we all admired": "Yesterday we all applauded",
        "at noon today": "at midday today",
    }
    assert changed(text, answers, oslo) == ["yesterday night we all admired Oslo at noon today"]
    likes_all = LikesShort()
    likes_all.token_log_probs = lambda texts: [array([0.0]) for _ in texts]  # type: ignore[method-assign]
    assert changed(text, answers, oslo, causal_lm=likes_all) == [
        "yesterday night we all applauded Oslo at midday today"
    ]


def test_bt_shows_names_to_the_translator_by_capitals() -> None:
    text, oslo = "we visited oslo yesterday evening", [Mention("LOC", [(2, 3)])]
    answers = {text: "We visited oslo yesterday", "We visited Oslo yesterday evening": "We toured Oslo yesterday night"}
    assert changed(text, answers, oslo) == ["we toured oslo yesterday night"]


def test_bt_asks_nothing_twice() -> None:
    text = "Ada left home yesterday evening"
    gold = [Sentence(text.split(), [Mention("PER", [(0, 1)])])]
    trip = by({text: "Ada left home yesterday night"})
    method = Backtranslation(translator=trip, check_translations=False, copies=3).fit(gold)
    assert len(list(method.augment(gold))) == 1
    assert method.statistics_.missing == {"all changes of the translation were drawn before": 2}
    assert len(trip.forward.asked) == 2  # type: ignore[attr-defined]  # the sentence and its segment
    nothing = Backtranslation(translator=by({}), check_translations=False).fit(gold)
    assert not list(nothing.augment(gold))
    assert nothing.statistics_.missing == {"the translation changes nothing that may be changed": 1}


def test_bt_judges_a_sentence_anew_that_has_other_spaces() -> None:
    class Asked(FakeCausalLM):
        def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[float32]]:
            asked.update(texts)
            return [array([0.0]) for _ in texts]

    asked: set[str] = set()
    words, mentions = "Oslo saw many trains".split(), [Mention("LOC", [(0, 1)])]
    trip = by({"Oslo saw many trains": "Oslo saw many coaches"})
    judges: dict[str, Any] = {"encoder": OddOneOut(), "causal_lm": Asked(), "dependency_parser": None}
    method = Backtranslation(translator=trip, p=1.0, **judges).fit([Sentence(words, mentions)])
    for spaces in ((" ", " ", " ", ""), (" ", " ", "", "")):
        assert list(method.augment([Sentence(words, mentions, spaces=spaces)]))
    assert asked >= {"Oslo saw many coaches", "Oslo saw manycoaches"}


def test_bt_wants_stop_words_alone_to_gain() -> None:
    class LikesIn(FakeCausalLM):
        gain = 0.0

        def token_log_probs(self, texts: Sequence[str]) -> list[NDArray[float32]]:
            return [array([-5.0, self.gain if "in" in text.split() else 0.0]) for text in texts]

    text, oslo, likes_in = "they saw trains at Oslo", [Mention("LOC", [(4, 5)])], LikesIn()
    for likes_in.gain, count in ((1.9, 0), (2.0, 1)):
        assert len(changed(text, {text: "they saw trains in Oslo"}, oslo, causal_lm=likes_in)) == count
        assert changed(text, {text: "they saw carriages at Oslo"}, oslo, causal_lm=likes_in)


def test_bt_asks_a_parser_what_words_are() -> None:
    text = "Ada left home yesterday evening"

    class Unlike(FakeEncoder):
        """An encoder for which all texts with other words are a little unlike."""

        def sentence_vectors(self, texts: Sequence[str]) -> NDArray[float32]:
            cosine = 0.85
            new = array([[cosine, (1 - cosine**2) ** 0.5]])[0]
            return array(
                [new if "night" in words or "dusk" in words else [1.0, 0.0] for words in map(str.split, texts)]
            )

    tags = {"ada": "PROPN/", "left": "VERB/", "home": "ADV/", "yesterday": "NOUN/s", "evening": "NOUN/s"}

    def made(word: str, parser: Parser | None) -> list[str]:
        answer = {text: f"Ada left home yesterday {word}"}
        options = {"encoder": Unlike(), "dependency_parser": parser}
        return changed(text, answer, [Mention("PER", [(0, 1)])], **options)

    alike = Parser(**tags, night="NOUN/s", dusk="NOUN/p")
    assert made("night", alike) == ["Ada left home yesterday night"]
    assert made("dusk", alike) == [], "another form, so the meaning must be nearer"
    assert made("night", None) == [], "nobody tells what it is"
    near = {"encoder": OddOneOut(), "dependency_parser": Parser(**tags, eve="ADJ/")}
    answers = {text: "Ada left home late"}
    assert changed(text, answers, [Mention("PER", [(0, 1)])], **near) == ["Ada left home late"]

    class Confused(Parser):
        def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
            parses = super().parse(sentences)
            return [
                p._replace(tags=("X", *p.tags[1:])) if "late" in w else p
                for w, p in zip(sentences, parses, strict=True)
            ]

    assert (
        changed(text, answers, [Mention("PER", [(0, 1)])], encoder=OddOneOut(), dependency_parser=Confused(**tags))
        == []
    )


def test_bt_draws_changes() -> None:
    text = "Ada swiftly left her cosy home yesterday evening"
    gold = [Sentence(text.split(), [Mention("PER", [(0, 1)])])]
    trip = by({text: "Ada quickly left her snug home yesterday night"})
    method = Backtranslation(translator=trip, check_translations=False, copies=7, max_attempts=30).fit(gold)
    made = {" ".join(sentence.tokens) for sentence in method.augment(gold)}
    assert all("Ada" in one and one != text for one in made)
    assert len(made) >= 4


def test_bt_needs_its_judges_only_where_they_judge() -> None:
    each: Any = ({"whole_sentence": False}, {"check_translations": False})
    for options in each:
        method = Backtranslation(translator=by({}), **options).load()
        assert not hasattr(method, "encoder_")
        assert method.dependency_parser_ is None
        assert method.kinds_by_default.isdisjoint({"encoder", "causal_lm"})
    assert Backtranslation(translator=by({})).kinds_by_default >= {"translator", "encoder", "causal_lm"}


def test_bt_names() -> None:
    with pytest.raises(ParameterError, match="no translator back"):
        Backtranslation(translator="de").load()
    with pytest.raises(UnknownNameError, match="en-pt"):
        Backtranslation(translator="en-xx>xx-en").load()
    for name in (">", "en-pt>", ">pt-en", "en-pt>>pt-en", ""):
        with pytest.raises(ParameterError, match="no translator back"):
            Backtranslation(translator=name).load()
    with pytest.raises(ParameterError, match="RoundTrip"):
        Backtranslation(translator=[1]).load()  # type: ignore[list-item]


def test_bt_takes_all_translations_if_they_are_not_checked() -> None:
    gold = [Sentence("Ada had 3 big red cars".split(), [Mention("PER", [(0, 1)])])]
    trip = by({"had 3 big red cars": "had 4 large red carros"})
    assert not list(Backtranslation(whole_sentence=False, translator=trip, p=1).fit(gold).augment(gold))
    unchecked = Backtranslation(whole_sentence=False, translator=trip, p=1, check_translations=False)
    [new] = unchecked.fit(gold).augment(gold)
    assert new.tokens == ("Ada", "had", "4", "large", "red", "carros")


def test_bt_through_several_languages() -> None:
    there = ChainedTranslator([Says({"had big": "hatte gross"}), Says({"hatte gross": "avait grand"})])
    trip = RoundTrip(there, Says({"avait grand": "had large"}))
    assert trip.name.count(">") == 2
    assert trip.backward.translate(trip.forward.translate(["had big", "other"])) == ["had large", "other"]
    with pytest.raises(ParameterError, match="at least one translator"):
        ChainedTranslator([])
    sampling = ChainedTranslator([FakeTranslator(), FakeTranslator(can_sample=True)])
    assert sampling.can_sample
    assert not there.can_sample


@pytest.mark.models
def test_bt_through_a_chain_of_names() -> None:
    method = Backtranslation(translator="en-pt>pt-en>en-pt>pt-en")
    method.load()
    [trip] = method.translator_
    assert trip.name.count(">") == 3
    [answer] = trip.backward.translate(trip.forward.translate(["The house is old and small."]))
    assert "house" in answer


# ------------------------------------------------------------------------------------------------------- text, tokens


def test_running_text() -> None:
    assert detokenize("He did n't ( ever ) say `` no '' , right ?".split()) == 'He didn\'t (ever) say "no", right?'
    assert detokenize('" A " and " B " cost $ 5 , 10 % off .'.split()) == '"A" and "B" cost $5, 10% off.'
    assert detokenize(["a", "b"], ["", " "]) == "ab"
    assert infer_spaces([]) == ()
    assert detokenize_with_gaps(["a", "b", "c"], [0, 2]) == [None, " b ", None]
    assert detokenize_with_gaps(["a"], []) == ["a"]


def share_kept(gold: list[Sentence]) -> float:
    """How many tokens of one half come back from running text, tokenised by the habits of the other half."""
    tokenizer = CorpusTokenizer(sentence.tokens for sentence in gold[::2])
    kept = total = 0
    for sentence in gold[1::2]:
        kept += (Counter(tokenizer(detokenize(sentence.tokens))) & Counter(sentence.tokens)).total()
        total += len(sentence)
    return kept / total


def test_text_is_tokenised_as_the_corpus_is() -> None:
    assert share_kept(list(entaug.read(EXAMPLE / "train.conll"))) > 0.99


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("ncbi-disease/train.tsv", 0.99),
        ("bc2gm/train.tsv", 0.99),
        ("crossner/politics/train.txt", 0.99),
        ("wnut17/wnut17train.conll", 0.96),
        ("genia/nested-jsonl/train.jsonl", 0.99),
        ("multiconer-v1/1000/de_sample_train.conll", 0.9),
        *((f"multiconer-v1/1000/{language}_sample_train.conll", 0.9) for language in "hi bn zh ko ru tr".split()),
    ],
)
def test_real_text_is_tokenised_as_its_corpus_is(name: str, least: float, corpora: Path) -> None:
    assert share_kept(list(entaug.read(corpora / name))[:2000]) > least
