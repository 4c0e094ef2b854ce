"""Measures of quality, each against a case computed by hand; language models are scripted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import entaug
from entaug.backends.fakes import FakeMaskedLM
from entaug.commands.main import main
from entaug.core.alignment import detokenize
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import MissingModelError, ParameterError, UnknownNameError
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair
from entaug.metrics.measures import MAX_SENTENCES, NEAR_DUPLICATE, context
from entaug.metrics.quality import MEASURES, Quality, measure_corpus, measure_quality, quality_markdown, quality_table
from helpers.fakes import FakeCausalLM, FakeEncoder
from helpers.sentences import sentence

NO_MODELS: dict[str, Any] = {"causal_lm": None, "encoder": None}
BY_SENTENCE = ("perplexity", "lm_score", "source_lm_difference", "similarity", "new_words", "length_difference")


SOURCE = sentence("Ada Byron met Bo in Rome .", ("PER", 0, 2), ("PER", 3, 4), ("LOC", 5, 6))
OTHER = sentence("Oslo is cold .", ("LOC", 0, 1))
GOLD = [SOURCE, OTHER]
MADE = sentence("Ada Lovelace has met Bo in old Oslo .", ("PER", 0, 2), ("PER", 4, 5), ("LOC", 7, 8))
SAME = sentence("oslo IS cold .", ("LOC", 0, 1))
PAIRS = [AugmentedPair(MADE, SOURCE), AugmentedPair(SAME, OTHER)]


class Scripted(FakeCausalLM):
    """A causal language model that likes each word as it is told to, and counts what it is asked."""

    def __init__(self, likes: Mapping[str, float], otherwise: float = -1.0) -> None:
        super().__init__()
        self.likes, self.otherwise = likes, otherwise
        self.asked: list[str] = []

    def token_log_probs(self, texts: Sequence[str]) -> list[Any]:
        self.asked += texts
        return [np.array([self.likes.get(word, self.otherwise) for word in text.split()]) for text in texts]


def of(name: str, pairs: Sequence[AugmentedPair] = PAIRS, gold: Sequence[Sentence] = GOLD, **models: Any) -> Any:
    found = measure_quality(pairs, gold, measures=[name], **{**NO_MODELS, **models})
    return found.values[name], [v if v is None else round(v, 9) for v in found.by_sentence.get(name, ())]


# ------------------------------------------------------------------------------------------------------------- fluency


def test_perplexity_is_over_all_sub_words_together_and_of_each_sentence_alone() -> None:
    lm = Scripted({"good": math.log(1 / 2), "bad": math.log(1 / 8)})
    pairs = [AugmentedPair(Sentence(text.split())) for text in ("good good good", "bad")]
    value, rows = of("perplexity", pairs, causal_lm=lm)
    assert value == pytest.approx(2 ** ((3 * 1 + 3) / 4))  # six bits by four words; the mean of 2 and 8 would be 5
    assert rows == [pytest.approx(2), pytest.approx(8)]


def test_scores_are_by_words_that_are_not_punctuation() -> None:
    # "Well, no." is read as two pieces here, and has two words of four tokens.
    lm = Scripted({"Well,": -3.0, "no.": -2.0, "Yes": -4.0})
    pairs = [AugmentedPair(Sentence("Well , no .".split()), Sentence(["Yes"])), AugmentedPair(Sentence(["Yes"]))]
    assert of("lm_score", pairs, causal_lm=lm) == (-3.25, [-2.5, -4.0])
    assert of("source_lm_difference", pairs, causal_lm=lm) == (1.5, [1.5, None])


def test_the_masked_score_is_the_pseudo_log_likelihood_by_words() -> None:
    class Masked(FakeMaskedLM):
        def token_log_probs(self, asked: Any) -> list[Any]:
            return [np.array([-2.0 if word == "bad" else -1.0 for word in text.split()]) for text, _ in asked]

    pairs = [AugmentedPair(Sentence("a bad bad day".split())), AugmentedPair(Sentence(["bad"]))]
    assert of("masked_lm_score", pairs, masked_lm=Masked()) == (-1.75, [-1.5, -2.0])


def test_equal_texts_are_asked_once_and_order_changes_nothing() -> None:
    rng = Random(5)
    texts = [[rng.choice("abcdefgh") for _ in range(rng.randint(1, 6))] for _ in range(40)]
    gold = [sentence(" ".join(text).capitalize(), (rng.choice("XY"), 0, 1)) for text in texts]
    pairs = [AugmentedPair(rng.choice(gold), rng.choice(gold)) for _ in range(700)]
    lm = Scripted({"a": -2.0})
    models: dict[str, Any] = {"causal_lm": lm, "masked_lm": FakeMaskedLM(), "encoder": FakeEncoder()}
    whole = measure_quality(pairs, gold, **models)
    assert len(lm.asked) == len(set(lm.asked)) <= 40
    order = list(range(len(pairs)))
    rng.shuffle(order)
    shuffled = measure_quality([pairs[i] for i in order], gold, **models)
    assert len(whole.values) == len(MEASURES)
    for name, value in whole.values.items():
        assert value is not None, name
        if name != "near_others":
            assert shuffled.values[name] == value, name
            rows = whole.by_sentence.get(name)
            assert rows is None or list(shuffled.by_sentence[name]) == [rows[i] for i in order], name
    # Of 700 sentences all but the first of each kind are near an earlier one.
    kinds = len({pair.augmented.tokens for pair in pairs})
    assert whole.values["near_others"] == pytest.approx(1 - kinds / 700)


def test_many_texts_go_to_the_model_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Counted(Scripted):
        def token_log_probs(self, texts: Sequence[str]) -> list[Any]:
            sizes.append(len(texts))
            return super().token_log_probs(texts)

    told: list[tuple[str, int, int | None]] = []
    pairs = [AugmentedPair(Sentence([f"w{i}"])) for i in range(600)]
    found = measure_quality(
        pairs, (), measures=["perplexity"], causal_lm=Counted({}), progress=lambda *state: told.append(state)
    )
    assert sizes == [256, 256, 88]
    assert told == [("scoring", 256, 600), ("scoring", 512, 600), ("scoring", 600, 600)]
    assert found.values["perplexity"] == pytest.approx(math.e)


# ------------------------------------------------------------------------------------------------------------- novelty


def test_what_is_new_against_the_source() -> None:
    # MADE: ada lovelace has met bo in old oslo; new are lovelace, has, old and oslo, of eight words.
    assert of("new_words") == (0.25, [0.5, 0.0])
    # Of mentions: ada lovelace bo oslo against ada byron bo rome; of others: has met in old against met in.
    assert of("diversity_e") == (0.25, [0.5, 0.0])
    assert of("diversity_n") == (0.25, [0.5, 0.0])
    assert of("diversity_l") == (1.0, [2.0, 0.0])
    assert of("diversity_l", [AugmentedPair(SOURCE, MADE)]) == (2.0, [2.0])
    assert of("length_difference", [AugmentedPair(SOURCE, MADE)]) == (-2.0, [-2.0])
    # ada, met, bo, in and the full stop stay, of 9 and 7 tokens.
    assert of("similarity") == (0.8125, [0.625, 1.0])


def test_a_word_that_leaves_its_mention_is_new_among_the_others() -> None:
    made = sentence("Rome met Ada", ("PER", 0, 1))
    source = sentence("Rome met Ada", ("PER", 2, 3))
    assert of("diversity_e", [AugmentedPair(made, source)]) == (1.0, [1.0])
    assert of("diversity_n", [AugmentedPair(made, source)]) == (0.5, [0.5])
    assert of("new_words", [AugmentedPair(made, source)]) == (0.0, [0.0])


def test_unseen_mentions_are_those_gold_has_not_with_that_label() -> None:
    made = sentence("ada BYRON Oslo Oslo Bo", ("PER", 0, 2), ("PER", 2, 3), ("PER", 3, 4), ("LOC", 4, 5))
    # Ada Byron is known whatever its case; Oslo is no PER and Bo no LOC in gold.
    assert of("unseen_mentions", [AugmentedPair(made), AugmentedPair(OTHER), AugmentedPair(Sentence(["x"]))]) == (
        0.6,
        [0.75, 0.0, None],
    )
    assert (
        of("unseen_mentions_distinct", [AugmentedPair(made), AugmentedPair(OTHER)])[0] == 0.5
    )  # PER Oslo, LOC Bo; PER Ada, LOC Oslo


def test_a_mention_in_place_of_another_stands_where_that_stood() -> None:
    other_names = sentence("Bo met Ada Byron in New York .", ("PER", 0, 1), ("PER", 2, 4), ("LOC", 5, 7))
    assert of("unseen_contexts", [AugmentedPair(other_names)]) == (0.0, [0.0])
    # "has" and "old" are new near three mentions, the last of which has "in old" before it.
    assert of("unseen_contexts") == (0.75, [1.0, 0.0])
    assert of("unseen_contexts_distinct")[0] == 0.75


def test_contexts_of_nested_and_discontinuous_mentions() -> None:
    s = Sentence(
        "the left and right knee hurt".split(),
        [Mention("A", [(1, 2), (4, 5)]), Mention("A", [(3, 5)]), Mention("B", [(1, 5)])],
    )
    found = {m.spans: context(s, m) for m in s.mentions}
    assert found[(1, 5),] == ("B", "", "the", "", "hurt")
    assert found[(1, 2), (4, 5)] == ("A", "<B>", "<B><A>", "", "the", "", "hurt")
    assert found[(3, 5),] == ("A", "", "<A><B>", "<B>", "", "hurt")  # in the order of mentions


def test_near_duplicates_begin_at_one_token_of_ten() -> None:
    words = "a b c d e f g h i j".split()
    gold = Sentence(words)
    near, far = Sentence([*words[:9], "x"]), Sentence([*words[:8], "x", "y"])
    pairs = [AugmentedPair(near, gold), AugmentedPair(far, gold), AugmentedPair(far, near), AugmentedPair(gold)]
    assert NEAR_DUPLICATE == 0.9
    assert of("near_source", pairs, [gold]) == (pytest.approx(2 / 3), [1.0, 0.0, 1.0, None])
    assert of("near_gold", pairs, [gold]) == (0.5, [1.0, 0.0, 0.0, 1.0])
    assert of("near_others", pairs, [gold]) == (0.75, [0.0, 1.0, 1.0, 1.0])


# ----------------------------------------------------------------------------------------------------------- diversity


def test_variety_of_words() -> None:
    pairs = [AugmentedPair(Sentence("A b a , c".split())), AugmentedPair(Sentence("b c !".split()))]
    assert of("type_token_ratio", pairs) == (0.875, [0.75, 1.0])
    assert of("distinct_1", pairs)[0] == 0.5  # a b c of a b a c b c
    assert of("distinct_2", pairs)[0] == 1.0  # ab ba ac, bc: punctuation parts nothing
    assert of("distinct_2", [*pairs, AugmentedPair(Sentence("b c".split()))])[0] == 0.8


def test_self_bertscore_is_the_mean_of_pairs() -> None:
    class Axes(FakeEncoder):
        """Each word a direction of its own."""

        def token_vectors(self, texts: Sequence[str], layer: int | None = None) -> list[Any]:
            return [np.array([np.eye(4)["abcd".index(word)] for word in text.split()]) for text in texts]

    pairs = [AugmentedPair(Sentence(text.split())) for text in ("a b", "a c", "d")]
    assert of("self_bertscore", pairs, encoder=Axes()) == (pytest.approx(0.5 / 3), [])  # 0.5, 0 and 0
    assert of("self_bertscore", [*pairs, pairs[2]], encoder=Axes())[0] == pytest.approx(1.5 / 6)
    # With the gold sentences "d" and "b": of ten pairs, a b and a c are half alike, a b and b by 2/3, d and d wholly.
    gold = [Sentence(["d"]), Sentence(["b"])]
    found = measure_quality(pairs, gold, measures=["self_bertscore_with_gold"], encoder=Axes())
    assert found.values["self_bertscore_with_gold"] == pytest.approx((1 / 2 + 2 / 3 + 1) / 10)
    found = measure_quality(pairs, (), measures=["self_bertscore_with_gold"], encoder=Axes())
    assert found.values["self_bertscore_with_gold"] == pytest.approx(0.5 / 3)
    found = measure_quality(pairs[:1], (), measures=["self_bertscore"], encoder=Axes())
    assert found.values == {"self_bertscore": None}
    assert "no two sentences" in found.notes[0]


def test_self_bertscore_of_many_is_of_a_sample_and_says_so() -> None:
    pairs = [AugmentedPair(Sentence([f"w{i}", f"v{i % 7}"])) for i in range(MAX_SENTENCES + 50)]
    found = measure_quality(pairs, (), measures=["self_bertscore"], encoder=FakeEncoder())
    assert found.notes == (f"self_bertscore: of {MAX_SENTENCES} sentences drawn with seed 0",)
    again = measure_quality(pairs[::-1], (), measures=["self_bertscore"], encoder=FakeEncoder())
    assert again.values == found.values
    all_of_them = entaug.metrics.pairwise_bertscore([" ".join(p.augmented.tokens) for p in pairs], FakeEncoder())
    n = len(pairs)
    mean = (all_of_them.sum() - n) / (n * (n - 1))
    assert found.values["self_bertscore"] == pytest.approx(mean, abs=0.02)


# --------------------------------------------------------------------------------------------------- labels and length


def test_unlabelled_mentions_are_places_of_names_of_gold_without_a_label() -> None:
    gold = [
        sentence("Rome and Boston", ("LOC", 0, 1), ("LOC", 2, 3)),
        sentence("at Boston University", ("ORG", 1, 3)),
        sentence("May sang", ("PER", 0, 1)),
        Sentence("in May".split()),
    ]
    made = [
        sentence("Rome saw Rome and Boston University", ("LOC", 0, 1)),  # Rome, Boston University and Boston
        sentence("Rome in May", ("ORG", 0, 1)),  # another label is a label; half of the places of May have none
        Sentence("nothing".split()),
    ]
    assert of("unlabelled_mentions", [AugmentedPair(one) for one in made], gold) == (0.6, [0.75, 0.0, None])
    own = measure_corpus(
        AugmentedCorpus([gold[0], gold[0], Sentence(["Rome"])]), measures=["unlabelled_mentions"], **NO_MODELS
    )
    assert own[0].values == {"unlabelled_mentions": 0.2}


def test_shift_of_labels() -> None:
    gold = [sentence("a b", ("X", 0, 1), ("Y", 1, 2))]
    made = [AugmentedPair(sentence("a b", ("X", 0, 1))), AugmentedPair(sentence("a b", ("X", 1, 2)))]
    # (1, 0) and (1/2, 1/2), with (3/4, 1/4) between them.
    divergence = (math.log2(1 / 0.75) + 0.5 * math.log2(0.5 / 0.75) + 0.5 * math.log2(0.5 / 0.25)) / 2
    assert of("label_distance", made, gold)[0] == pytest.approx(math.sqrt(divergence))
    assert of("label_variation", made, gold)[0] == 0.5
    assert of("label_distance", [AugmentedPair(gold[0])], gold)[0] == 0
    assert of("mentions", [*made, AugmentedPair(gold[0])]) == (pytest.approx(4 / 3), [1.0, 1.0, 2.0])
    assert of("length") == (6.5, [9.0, 4.0])


# ------------------------------------------------------------------------------------------------------------- results


def test_rejected_sentences_are_not_measured() -> None:
    found = measure_quality([*PAIRS, AugmentedPair(SAME, OTHER, rejection="made before")], GOLD, name="x", **NO_MODELS)
    assert found.sentences == 2
    assert found.values == measure_quality(PAIRS, GOLD, **NO_MODELS).values
    assert "1 rejected sentences are not measured" in found.notes


def test_nothing_one_sentence_no_mentions_and_no_source_have_notes_where_they_have_no_values() -> None:
    models: dict[str, Any] = {"causal_lm": FakeCausalLM(), "masked_lm": FakeMaskedLM(), "encoder": FakeEncoder()}
    nothing = measure_quality([], GOLD, name="none", **models)
    assert nothing.sentences == 0
    assert set(nothing.values) == set(MEASURES)
    assert set(nothing.values.values()) == {None}
    assert nothing.by_sentence == {}
    assert nothing.notes == (f"undefined because there are no sentences: {', '.join(MEASURES)}",)
    lone = measure_quality([AugmentedPair(Sentence(["one", "two"]))], [Sentence(["one"])], **models)
    undefined = {name for name, value in lone.values.items() if value is None}
    assert undefined == {
        *("source_lm_difference", "diversity_e", "diversity_n", "diversity_l", "new_words", "similarity"),
        *("near_source", "length_difference", "self_bertscore", "label_distance", "label_variation"),
        *("unseen_mentions", "unseen_mentions_distinct", "unseen_contexts", "unseen_contexts_distinct"),
        "unlabelled_mentions",
    }
    told = " ".join(lone.notes)
    assert all(name in told for name in undefined)
    for reason in ("source of no sentence is known", "no two sentences", "no mentions"):
        assert reason in told
    both = measure_quality([AugmentedPair(Sentence(["one"])), PAIRS[0]], GOLD, **models)
    assert both.by_sentence["new_words"] == [None, 0.5]
    assert "the source of 1 of 2 sentences is unknown" in both.notes
    for found in (lone, both):
        for name in BY_SENTENCE:
            assert name not in found.by_sentence or len(found.by_sentence[name]) == found.sentences
    assert set(BY_SENTENCE) <= set(both.by_sentence)


def test_a_missing_model_is_an_error_where_it_was_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ENTAUG_CACHE", str(tmp_path))
    found = measure_quality(PAIRS, GOLD)
    assert "perplexity" not in found.values
    assert "self_bertscore" not in found.values
    assert found.values["new_words"] == 0.25
    notes = [note for note in found.notes if note.startswith("not measured")]
    assert len(notes) == 2
    assert "entaug models prepare smollm2" in notes[0]
    assert "entaug models prepare minilm" in notes[1]
    for asked in ({"measures": ["perplexity"]}, {"masked_lm": "mpnet-mlm"}, {"encoder": "mpnet"}):
        with pytest.raises(MissingModelError, match="entaug models prepare"):
            measure_quality(PAIRS, GOLD, **{**NO_MODELS, "causal_lm": "smollm2", **asked})
    with pytest.raises(ParameterError, match="masked_lm is None"):
        measure_quality(PAIRS, GOLD, measures=["masked_lm_score"])
    with pytest.raises(UnknownNameError, match="did you mean 'perplexity'"):
        measure_quality(PAIRS, GOLD, measures=["perplexty"])
    assert "perplexity" not in measure_quality(PAIRS, GOLD, **NO_MODELS).values


def test_gold_is_the_first_row_and_shared_texts_are_computed_once() -> None:
    lm = Scripted({})
    made = AugmentedCorpus(list(GOLD), {"one": PAIRS, "two": [AugmentedPair(MADE, SOURCE)], "none": []}, ["a note"])
    found = measure_corpus(made, causal_lm=lm, encoder=None)
    assert [(one.name, one.sentences) for one in found] == [("gold", 2), ("one", 2), ("two", 1), ("none", 0)]
    assert len(lm.asked) == len(set(lm.asked)) == 4
    assert found[0].notes == (
        "a note",
        "distinct-1 and distinct-2 decrease with the number of sentences: compare columns of equal size",
    )
    assert found[0].values["unseen_mentions"] is None
    assert found[1] == measure_quality(PAIRS, GOLD, name="one", causal_lm=Scripted({}), encoder=None)
    assert found[3].values["length"] is None
    assert measure_corpus(AugmentedCorpus(), **NO_MODELS) == []


def test_tables_show_shares_in_percent_and_what_is_missing_as_a_dash() -> None:
    found = [
        Quality("gold", 1000, {"perplexity": 1234.5, "new_words": None, "self_bertscore": 0.5}),
        Quality("a|b", 2, {"perplexity": 12.34, "new_words": 0.125, "self_bertscore": 0.25}, notes=("odd",)),
    ]
    assert quality_table(found).splitlines() == [
        "                 gold    a|b",
        "sentences       1,000      2",
        "Perplexity      1,234   12.3",
        "New words           -  12.5%",
        "Self-BERTScore  0.500  0.250",
        "note: a|b: odd",
    ]
    text = quality_markdown(found)
    assert "|  | gold | a\\|b |" in text
    assert "- a|b: odd" in text
    definition = "Share of words that do not occur in the source, mean over sentences. Higher: further from the source."
    assert f"- New words (`new_words`): {definition}" in text


def test_a_result_is_plain_json() -> None:
    found = measure_quality(PAIRS, GOLD, name="x", causal_lm=FakeCausalLM(), encoder=FakeEncoder())
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["values"]["length"] == 6.5
    assert told["by_sentence"]["length"] == [9.0, 4.0]


# -------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    gold, new = tmp_path / "gold.conll", tmp_path / "new.jsonl"
    entaug.write(GOLD, gold)
    entaug.write(list(entaug.create_augmenter("mr", p=1.0).fit(GOLD).augment(GOLD)), new)
    return str(gold), str(new)


def test_the_command_line(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, new = files
    before = Path(new).read_bytes()
    assert main(["quality", new, "--gold", gold, "--no-models"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["gold", "mr"]
    assert "Unseen contexts" in out
    assert "Perplexity" not in out
    to = tmp_path / "q.md"
    run = ["quality", new, "--gold", gold, "--measures", "length, new_words", "-o", str(to)]
    assert main(run) == 0
    assert to.read_text().startswith("# Quality of augmented sentences")
    assert main(run) == 3
    assert "--force" in capsys.readouterr().err
    assert main([*run, "--force"]) == 0
    capsys.readouterr()
    assert main([*run[:-2], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["name"], list(one["values"])) for one in told] == [
        (n, ["length", "new_words"]) for n in ("gold", "mr")
    ]
    assert main([*run[:-1], str(tmp_path / "q.json")]) == 0
    assert json.loads((tmp_path / "q.json").read_text()) == told
    assert Path(new).read_bytes() == before


def test_the_command_line_refuses_in_one_line(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gold, new = files
    monkeypatch.setenv("ENTAUG_CACHE", str(tmp_path / "cache"))
    for argv, told in (
        ([], "no file is given"),
        ([new, "--no-models", "--encoder", "minilm"], "--no-models and --encoder exclude"),
        ([new, "--gold", gold, "--causal-lm", "smollm2"], "entaug models prepare smollm2"),
        ([new, "--measures", "ttr"], "unknown measure 'ttr'"),
        ([new, "--no-models", "--measures", "perplexity"], "--causal-lm"),
    ):
        assert main(["quality", *argv]) == 2, argv
        err = capsys.readouterr().err
        assert told in err, argv
        assert err.count("\n") == 1, argv


def test_the_list_names_every_measure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "measures"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[::2]] == list(MEASURES)
    assert "needs a causal LM" in out


# --------------------------------------------------------------------------------------------------------- real models


@pytest.mark.models
def test_perplexity_is_that_of_a_plain_loop(example: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from entaug.backends.models.catalogue import model_path
    from entaug.backends.transformers.causal_lm import TransformersCausalLM

    folder = model_path("smollm2")
    gold = [s for s in entaug.read(example / "train.conll") if len(s) > 4][:6]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.eval()
    total, count, own = 0.0, 0, []
    for one in gold:
        ids = tokenizer(detokenize(one.tokens, one.spaces), add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([[0, *ids]])).logits[0]  # 0 is what texts began with in training
        lines = torch.log_softmax(logits[:-1].double(), -1)
        score = sum(float(lines[i, id_]) for i, id_ in enumerate(ids))
        total, count = total + score, count + len(ids)
        own.append(math.exp(-score / len(ids)))
    lm = TransformersCausalLM(folder, device="cpu", precision="fp32")
    found = measure_quality([AugmentedPair(s) for s in gold], (), measures=["perplexity"], causal_lm=lm)
    assert found.values["perplexity"] == pytest.approx(math.exp(-total / count), rel=1e-4)
    assert found.by_sentence["perplexity"] == pytest.approx(own, rel=1e-4)


@pytest.mark.models
def test_self_bertscore_is_that_of_the_bert_score_package(example: Path) -> None:
    bert_score = pytest.importorskip("bert_score", reason="bert-score comes with the dev extra")
    from entaug.backends.models.catalogue import model_path
    from entaug.backends.transformers.encoder import TransformersEncoder

    folder = model_path("minilm")
    gold = [s for s in entaug.read(example / "train.conll") if len(s) > 4][:8]
    texts = [detokenize(s.tokens, s.spaces) for s in gold]
    pairs = [(a, b) for i, a in enumerate(texts) for b in texts[i + 1 :]]
    scorer = bert_score.BERTScorer(model_type=str(folder), num_layers=6, idf=False, device="cpu")
    f1 = scorer.score([a for a, _ in pairs], [b for _, b in pairs], batch_size=1)[2]
    encoder = TransformersEncoder(folder, device="cpu", precision="fp32")
    found = measure_quality([AugmentedPair(s) for s in gold], (), measures=["self_bertscore"], encoder=encoder)
    assert found.values["self_bertscore"] == pytest.approx(float(f1.mean()), abs=1e-4)


def test_sentences_alone_find_their_sources_by_provenance() -> None:
    gold = [Sentence("a b c d e".split()), Sentence("f g h".split())]
    new = list(entaug.create_augmenter("sis", p=1.0).augment(gold))
    found = measure_quality(
        [*new[:1], AugmentedPair(new[1], gold[1])], gold, measures=["length_difference", "near_gold"]
    )
    assert found.by_sentence["length_difference"] == [0, 0]
    lone = measure_quality([Sentence(["x", "y"])], gold, measures=["new_words"])
    assert lone.by_sentence.get("new_words", [None]) == [None]
