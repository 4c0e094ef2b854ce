"""Scores beside seqeval's, by hand where seqeval cannot go, and the significance test where the answer is known."""

from __future__ import annotations

import warnings
from pathlib import Path
from random import Random
from typing import Any

import nervaluate
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import classification_report
from seqeval.scheme import IOB2

import entaug
from conftest import EXAMPLE
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import InputError, ParameterError
from entaug.metrics.significance import Difference, paired_bootstrap
from entaug.metrics.span_f1 import MatchCounts, Scores, score, score_table
from entaug.metrics.tables import Table
from helpers.strategies import sentences


def with_mentions(sentence: Sentence, mentions: Any) -> Sentence:
    return Sentence(sentence.tokens, mentions)


def agree_with_seqeval(gold: list[Sentence], predicted: list[Sentence]) -> None:
    scores = score(gold, predicted)
    if not scores.by_type:  # seqeval cannot sum up nothing
        assert scores.micro == MatchCounts()
        assert scores.macro == 0
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = classification_report(
            [s.iob() for s in gold],
            [s.iob() for s in predicted],
            mode="strict",
            scheme=IOB2,
            output_dict=True,
            zero_division=0,
        )
    of_types = {k: v for k, v in found.items() if not k.endswith(" avg")}
    assert of_types.keys() == scores.by_type.keys()
    for name, counts in [*scores.by_type.items(), ("micro avg", scores.micro)]:
        of = found[name]
        assert (counts.precision, counts.recall, counts.f1, counts.gold) == pytest.approx(
            (of["precision"], of["recall"], of["f1-score"], of["support"])
        )
    assert scores.macro == pytest.approx(found["macro avg"]["f1-score"])


@pytest.mark.corpora
@pytest.mark.parametrize("name", ["wnut17/emerging.test.annotated", "crossner/ai/test.txt", "ncbi-disease/devel.tsv"])
def test_equals_seqeval_on_real_corpora(corpora: Path, name: str) -> None:
    gold = list(entaug.read(corpora / name))
    rng = Random(4)
    labels = [*entaug.read(corpora / name).labels, "NEW"]

    def worse(mention: Mention, n: int) -> Mention | None:
        draw = rng.random()
        if draw < 0.2:
            return None
        if draw < 0.4:
            return Mention(rng.choice(labels), mention.spans)
        if draw < 0.5 and mention.end - mention.start > 1:
            return Mention(mention.label, [(mention.start + 1, mention.end)])
        return mention

    predicted = []
    for s in gold:
        kept = [m for m in (worse(m, len(s)) for m in s.mentions) if m is not None]
        if rng.random() < 0.1:
            i = rng.randrange(len(s))
            if s.outside_mask()[i]:
                kept.append(Mention(rng.choice(labels), [(i, i + 1)]))
        predicted.append(with_mentions(s, kept))
    assert 0 < score(gold, predicted).micro.f1 < 1
    agree_with_seqeval(gold, predicted)


@given(st.lists(sentences(flat=True), max_size=5), st.randoms(use_true_random=False))
def test_equals_seqeval_on_any_flat_sentences(gold: list[Sentence], rng: Random) -> None:
    predicted = [
        with_mentions(s, [Mention(rng.choice(["PER", m.label]), m.spans) for m in s.mentions if rng.random() < 0.7])
        for s in gold
    ]
    agree_with_seqeval(gold, predicted)
    agree_with_seqeval(predicted, gold)


def agree_with_nervaluate(gold: list[Sentence], predicted: list[Sentence]) -> None:
    """All four evaluations follow from the correct mentions and the errors."""
    as_dicts = [
        [[{"label": m.label, "start": m.start, "end": m.end - 1} for m in s.mentions] for s in some]
        for some in (gold, predicted)
    ]
    labels = sorted({m.label for s in (*gold, *predicted) for m in s.mentions})
    found = nervaluate.Evaluator(*as_dicts, tags=labels, loader="dict").evaluate()["overall"]
    scores = score(gold, predicted)
    right, errors = scores.micro.correct, scores.errors
    kind, boundary, both = errors["type"], errors["boundary"], errors["type and boundary"]
    expected = {
        "strict": (right, kind + boundary + both, 0),
        "exact": (right + kind, boundary + both, 0),
        "ent_type": (right + boundary, kind + both, 0),
        "partial": (right + kind, 0, boundary + both),
    }
    for name, (correct, incorrect, partial) in expected.items():
        of = found[name]
        assert (of.correct, of.incorrect, of.partial) == (correct, incorrect, partial), name
        assert (of.missed, of.spurious) == (errors["missing"], errors["spurious"]), name


def overlaps_once(gold: Sentence, predicted: Sentence) -> bool:
    """Whether no mention overlaps two others; else what nervaluate counts depends on the order of the mentions."""
    touching = [
        (one, other)
        for one in gold.mentions
        for other in predicted.mentions
        if one.start < other.end and other.start < one.end
    ]
    return len({one for one, _ in touching}) == len({other for _, other in touching}) == len(touching)


def disturbed(sentence: Sentence, rng: Random) -> Sentence:
    """A flat sentence with errors of all kinds."""
    mentions = []
    for mention in sentence.mentions:
        start, end = mention.start, mention.end
        label = rng.choice([mention.label, mention.label, "NEW"])
        start += end - start > 1 and rng.random() < 0.3
        end -= end - start > 1 and rng.random() < 0.3
        if rng.random() < 0.8:
            mentions.append(Mention(label, [(start, end)]))
    free = [i for i, outside in enumerate(sentence.outside_mask()) if outside]
    mentions += [Mention("NEW", [(i, i + 1)]) for i in free if rng.random() < 0.1]
    return with_mentions(sentence, mentions)


@pytest.mark.corpora
@pytest.mark.parametrize("name", ["wnut17/emerging.test.annotated", "crossner/ai/test.txt", "ncbi-disease/devel.tsv"])
def test_errors_equal_nervaluate_on_real_corpora(corpora: Path, name: str) -> None:
    gold = [s for s in entaug.read(corpora / name) if s.is_flat]
    rng = Random(7)
    predicted = [disturbed(s, rng) for s in gold]
    assert all(map(overlaps_once, gold, predicted))
    assert all(score(gold, predicted).errors.values())
    agree_with_nervaluate(gold, predicted)


@given(st.lists(st.tuples(sentences(flat=True), st.randoms(use_true_random=False)), max_size=5))
def test_errors_equal_nervaluate_on_any_flat_sentences(drawn: list[tuple[Sentence, Random]]) -> None:
    gold = [s for s, _ in drawn]
    predicted = [disturbed(s, rng) for s, rng in drawn]
    if any(s.mentions for s in (*gold, *predicted)):
        agree_with_nervaluate(gold, predicted)


def test_errors_by_hand() -> None:
    tokens = "the New York Times of New York met Ada".split()
    times, inner, city, ada = (
        Mention("ORG", [(1, 4)]),
        Mention("LOC", [(1, 3)]),
        Mention("LOC", [(5, 7)]),
        Mention("PER", [(8, 9)]),
    )
    gold = Sentence(tokens, [times, inner, city, ada])

    def errors(*mentions: Mention) -> dict[str, int]:
        return {kind: n for kind, n in score([gold], [Sentence(tokens, mentions)]).errors.items() if n}

    assert errors(times, inner, city, ada) == {}
    assert errors(times, city, ada) == {"missing": 1}, "the inner one, though it lies in a correct one"
    assert errors(times, inner, Mention("ORG", [(5, 7)]), ada) == {"type": 1}
    assert errors(Mention("ORG", [(0, 4)]), inner, city, ada) == {"boundary": 1}
    assert errors(times, inner, Mention("PER", [(4, 7)]), ada) == {"type and boundary": 1}
    assert errors(times, inner, city, ada, Mention("PER", [(7, 8)])) == {"spurious": 1}
    # The same words come first, then the same label, whatever the order of the mentions.
    assert errors(Mention("LOC", [(1, 4)]), city, ada) == {"type": 1, "missing": 1}
    assert errors(Mention("ORG", [(1, 2)]), Mention("LOC", [(1, 2)]), city, ada) == {"boundary": 2}
    # Parts of a discontinuous mention count by their tokens.
    assert errors(times, inner, city, Mention("PER", [(0, 1), (8, 9)])) == {"boundary": 1}
    total = score([gold], [gold]) + score([gold], [Sentence(tokens)])
    assert total.errors["missing"] == 4


def test_seen_and_unseen_mentions() -> None:
    gold = Sentence(
        "Ada met Bo in Rome".split(), [Mention("PER", [(0, 1)]), Mention("PER", [(2, 3)]), Mention("LOC", [(4, 5)])]
    )
    predicted = with_mentions(gold, [Mention("PER", [(0, 1)]), Mention("PER", [(4, 5)])])
    training = [Sentence(["ADA"], [Mention("PER", [(0, 1)])]), Sentence(["Bo"], [Mention("LOC", [(0, 1)])])]
    assert score([gold], [predicted], training).by_novelty == {
        "seen": MatchCounts(1, 1, 1),
        "unseen": MatchCounts(0, 1, 2),  # a name with another label has not been seen
    }
    assert score([gold], [predicted]).by_novelty == {}


@given(st.lists(st.tuples(sentences(), st.randoms(use_true_random=False)), max_size=5))
def test_every_part_adds_up_to_the_whole(drawn: list[tuple[Sentence, Random]]) -> None:
    gold = [s for s, _ in drawn]
    predicted = [with_mentions(s, [m for m in s.mentions if rng.random() < 0.6]) for s, rng in drawn]
    scores = score(gold, predicted)
    assert len(scores.sentences) == len(gold)
    assert scores.micro == sum(scores.sentences, MatchCounts())
    assert scores.micro.precision in (0.0, 1.0)
    assert scores.errors["missing"] == scores.micro.gold - scores.micro.correct
    assert sum(scores.errors.values()) == scores.errors["missing"]
    scores = score(gold, predicted, gold[:1])
    for part in (scores.by_mention_length, scores.by_sentence_length, scores.by_kind, scores.by_novelty):
        assert sum(part.values(), MatchCounts()) == scores.micro
    written = orjson.loads(orjson.dumps([scores.to_dict(), scores.sentence_counts()]))
    assert Scores.from_dict(*written) == scores
    assert Scores.from_dict(written[0]).micro == scores.micro
    assert score(gold, gold).micro.f1 == (1.0 if any(s.mentions for s in gold) else 0.0)


def test_nested_and_discontinuous_by_hand() -> None:
    tokens = "left and right atrium of the New York heart".split()
    left = Mention("BODY", [(0, 1), (3, 4)])
    right = Mention("BODY", [(2, 4)])
    place, whole = Mention("LOC", [(6, 8)]), Mention("ORG", [(6, 9)])
    gold = Sentence(tokens, [left, right, place, whole])
    # Found: right and place. Wrong: the place with a word too few, inside another wrong one; the right label is missing
    # of the whole.
    too_few, odd = Mention("LOC", [(7, 8)]), Mention("LOC", [(6, 9)])
    scores = score([gold], [Sentence(tokens, [right, place, too_few, odd])])
    assert scores.micro == MatchCounts(2, 4, 4)
    assert scores.by_type == {"BODY": MatchCounts(1, 1, 2), "LOC": MatchCounts(1, 3, 1), "ORG": MatchCounts(0, 0, 1)}
    # F1: BODY 2/3, LOC 1/2, ORG 0.
    assert scores.macro == pytest.approx((2 / 3 + 1 / 2) / 3)
    assert scores.by_kind == {
        "flat": MatchCounts(1, 1, 1),  # right: beside the discontinuous one, not in it
        "outer": MatchCounts(0, 1, 1),  # odd; whole
        "inner": MatchCounts(1, 2, 1),  # place, too_few; place
        "discontinuous": MatchCounts(0, 0, 1),
    }
    assert scores.by_mention_length == {"1": MatchCounts(0, 1, 0), "2": MatchCounts(2, 2, 3), "3": MatchCounts(0, 1, 1)}
    assert scores.by_sentence_length == {"1-10": MatchCounts(2, 4, 4)}


def test_a_right_mention_has_the_kind_it_has_in_gold() -> None:
    tokens = "a b c".split()
    inner, outer = Mention("X", [(0, 1)]), Mention("X", [(0, 2)])
    alone = score([Sentence(tokens, [inner, outer])], [Sentence(tokens, [inner])])
    assert alone.by_kind == {"outer": MatchCounts(0, 0, 1), "inner": MatchCounts(1, 1, 1)}
    # Two labels on the same tokens are not inside one another.
    twice = [Sentence(tokens, [Mention("X", [(0, 2)]), Mention("Y", [(0, 2)])])]
    assert score(twice, twice).by_kind == {"flat": MatchCounts(2, 2, 2)}
    # In a piece of a discontinuous mention is inside; in its gap is not.
    gap = Mention("Z", [(0, 1), (2, 3)])
    assert set(score([Sentence(tokens, [inner, gap])], [Sentence(tokens)]).by_kind) == {"inner", "discontinuous"}
    between = Sentence(tokens, [Mention("X", [(1, 2)]), gap])
    assert set(score([between], [between]).by_kind) == {"flat", "discontinuous"}


@pytest.mark.parametrize(
    ("tokens", "name"), [(1, "1-10"), (10, "1-10"), (11, "11-20"), (30, "21-30"), (50, "31-50"), (51, "51+")]
)
def test_bins_of_length(tokens: int, name: str) -> None:
    s = Sentence(["x"] * tokens, [Mention("X", [(0, tokens)])])
    scores = score([s], [Sentence(s.tokens)])
    assert scores.by_sentence_length == {name: MatchCounts(0, 0, 1)}
    assert scores.by_mention_length == {"1" if tokens == 1 else "5+": MatchCounts(0, 0, 1)}


def test_other_sentences_are_refused_and_named() -> None:
    a, b = Sentence(["a"]), Sentence(["a", "b"])
    with pytest.raises(InputError, match=r"sentence 2 has other tokens .* 1 and 2 of them"):
        score([a, a], [a, b])
    with pytest.raises(InputError, match="token 1 is 'a' and 'c'"):
        score([a], [Sentence(["c"])])
    with pytest.raises(InputError, match="the predicted sentences end after 1, there are more gold ones"):
        score([a, a], [a])
    with pytest.raises(InputError, match="the gold sentences end after 0"):
        score([], [a])


def test_faulty_scores_are_refused() -> None:
    s = Sentence(["a"], [Mention("X", [(0, 1)])])
    good = score([s], [s])
    whole = good.to_dict()
    with pytest.raises(InputError, match="scores need by_type"):
        Scores.from_dict({**whole, "by_kind": {"flat": {"correct": 1}}})
    with pytest.raises(InputError, match="equally long lists"):
        Scores.from_dict(whole, {"correct": [1], "predicted": [1, 1], "gold": [1]})
    with pytest.raises(InputError, match="do not add up"):
        Scores.from_dict(whole, {"correct": [1], "predicted": [1], "gold": [1], "tokens": [1, 1]})
    with pytest.raises(InputError, match="do not add up"):
        Scores.from_dict(whole, {"correct": [1, 1], "predicted": [1, 1], "gold": [1, 1]})
    for count in ("1", -1, 1.5, None, True):
        with pytest.raises(InputError, match="counts from 0"):
            Scores.from_dict({**whole, "by_kind": {"flat": {"correct": count, "predicted": 1, "gold": 1}}})
    with pytest.raises(InputError, match="counts from 0"):
        Scores.from_dict(whole, "counts")  # type: ignore[arg-type]


def test_the_table_shows_every_part() -> None:
    s = Sentence(["New", "York"], [Mention("LOC", [(0, 2)])])
    rows = [line.split() for line in score_table(score([s, s], [s, Sentence(s.tokens)])).splitlines()]
    assert ["micro", "100.0", "50.0", "66.7", "2", "1", "1"] in rows
    assert ["macro", "66.7"] in rows
    for name in ("LOC", "2", "1-10", "flat"):
        assert [name, "100.0", "50.0", "66.7", "2", "1", "1"] in rows
    assert ["missing", "1"] in rows
    assert ["spurious", "0"] in rows


# -------------------------------------------------------------------------------------------------------- significance

RIGHT, WRONG, MISSED = MatchCounts(1, 1, 1), MatchCounts(0, 1, 1), MatchCounts(0, 0, 1)


def test_the_same_system_twice_shows_no_difference() -> None:
    runs = [[RIGHT, WRONG, MISSED] * 10, [RIGHT, RIGHT, MISSED] * 10]
    found = paired_bootstrap(runs, runs)
    assert (found.gain, found.low, found.high) == (0, 0, 0)
    assert found.verdict == "no difference seen"
    assert (found.seeds, found.caution) == (2, "2 seeds only")


def test_where_every_sentence_is_alike_only_seeds_vary() -> None:
    # F1 of 1 and 0: gains of 1 and 0 in the two seeds, whatever sentences are drawn. Their variance is 1/2, that of
    # their mean 1/4; with one degree of freedom Student's quantile is 12.7, and no gain is more than 1.
    found = paired_bootstrap([[RIGHT] * 9, [WRONG] * 9], [[WRONG] * 9] * 2, samples=2000)
    assert (found.gain, found.low, found.high) == (0.5, -1, 1)
    # Gains of 1, 1 and 0 with three seeds: variance 1/3, that of the mean 1/9, two degrees of freedom.
    all_, none = [RIGHT] * 9, [WRONG] * 9
    found = paired_bootstrap([all_, all_, none], [none] * 3)
    assert found.gain == pytest.approx(2 / 3)
    assert found.low == pytest.approx(2 / 3 - 4.302653 / 3)
    assert found.verdict == "no difference seen"
    # Three seeds with equal gains: no spread at all.
    sure = paired_bootstrap([[RIGHT] * 9] * 3, [[WRONG] * 9] * 3)
    assert (sure.low, sure.high, sure.verdict, sure.caution) == (1, 1, "helps", "")
    assert paired_bootstrap([[WRONG] * 9] * 3, [[RIGHT] * 9] * 3).verdict == "hurts"


def test_one_sentence_in_two_by_hand() -> None:
    # Better on one sentence of two. Drawn twice: 1/4 none of it (gain 0), 1/2 once (1/2), 1/4 twice (1).
    found = paired_bootstrap([[RIGHT, WRONG]], [[WRONG, WRONG]], samples=4000)
    assert found.gain == 0.5
    assert (found.low, found.high) == (0, 1)
    assert found.caution == "1 seed, so without the variance of training"
    # Even a clear gain is no verdict on one training.
    sure = paired_bootstrap([[RIGHT] * 9], [[WRONG] * 9])
    assert (sure.low, sure.verdict) == (1, "one seed: run three")


def test_the_bootstrap_depends_on_its_seed_alone_and_takes_counts_in_any_form() -> None:
    rng = Random(1)
    gold = [Sentence(["a", "b"], [Mention("X", [(0, 1)])]) for _ in range(60)]
    runs = [score(gold, [g if rng.random() < p else Sentence(g.tokens) for g in gold]) for p in (0.7, 0.6, 0.5, 0.4)]
    one = paired_bootstrap(runs[:2], runs[2:], seed=3)
    assert one == paired_bootstrap(runs[:2], runs[2:], seed=3)
    assert one != paired_bootstrap(runs[:2], runs[2:], seed=4)
    assert one == paired_bootstrap([r.sentences for r in runs[:2]], [r.sentence_counts() for r in runs[2:]], seed=3)
    mirrored = paired_bootstrap(runs[2:], runs[:2], seed=3)
    assert mirrored.gain == pytest.approx(-one.gain)
    assert (mirrored.low, mirrored.high) == pytest.approx((-one.high, -one.low), abs=0.03)


def simulated(rng: np.random.Generator, seeds: int, spread: float, n: int = 300) -> Difference:
    """Two systems that are equally good: sentences differ in difficulty, trainings by `spread`."""
    hard = rng.normal(size=n)

    def one() -> dict[str, Any]:
        p = 1 / (1 + np.exp(-(hard + spread * rng.normal())))
        return {"correct": rng.binomial(2, p), "predicted": np.full(n, 2), "gold": np.full(n, 2)}

    first, second = [one() for _ in range(seeds)], [one() for _ in range(seeds)]
    return paired_bootstrap(first, second, samples=300, seed=int(rng.integers(1 << 30)))


@pytest.mark.parametrize(("seeds", "spread"), [(1, 0.0), (2, 0.1), (3, 0.0), (3, 0.1), (3, 0.5), (5, 0.5)])
def test_equally_good_systems_are_told_apart_about_once_in_twenty(seeds: int, spread: float) -> None:
    rng = np.random.default_rng(7)
    held = np.mean([(d := simulated(rng, seeds, spread)).low <= 0 <= d.high for _ in range(300)])
    assert 0.88 <= held <= 1


def test_seeds_of_one_draw_are_averaged_first() -> None:
    all_, none = [RIGHT] * 9, [WRONG] * 9
    three = paired_bootstrap([all_, all_, none], [none] * 3)
    nine = paired_bootstrap([one for one in (all_, all_, none) for _ in range(3)], [none] * 9, draws=list("aaabbbccc"))
    assert (nine.gain, nine.low, nine.high) == pytest.approx((three.gain, three.low, three.high))
    assert (nine.seeds, nine.unit, three.unit) == (3, "draws", "seeds")
    assert paired_bootstrap([all_, none] * 2, [none] * 4, draws=[1, 1, 2, 2]).caution == "2 draws only"
    # With one seed a draw, or one draw, nothing changes.
    assert paired_bootstrap([all_, all_, none], [none] * 3, draws=[1, 2, 3]) == three
    assert paired_bootstrap([all_, all_, none], [none] * 3, draws=[None] * 3) == three


def test_what_cannot_be_paired_is_refused() -> None:
    with pytest.raises(ParameterError, match="2 draws for 1 seeds"):
        paired_bootstrap([[RIGHT]], [[RIGHT]], draws=[1, 2])
    with pytest.raises(ParameterError, match="1 and 2 seeds"):
        paired_bootstrap([[RIGHT]], [[RIGHT]] * 2)
    with pytest.raises(ParameterError, match="0 and 0 seeds"):
        paired_bootstrap([], [])
    with pytest.raises(ParameterError, match="other test sentences"):
        paired_bootstrap([[RIGHT, RIGHT]], [[RIGHT]])
    with pytest.raises(ParameterError, match="other test sentences"):
        paired_bootstrap([[RIGHT]], [[MatchCounts(1, 1, 2)]])
    with pytest.raises(ParameterError, match="no test sentence"):
        paired_bootstrap([[]], [[]])
    with pytest.raises(ParameterError, match="samples"):
        paired_bootstrap([[RIGHT]], [[RIGHT]], samples=0)


# -------------------------------------------------------------------------------------------------------- command line


def test_evaluate_prints_a_table_or_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = EXAMPLE / "test.conll"
    corpus = entaug.read(gold)
    predicted = [with_mentions(s, s.mentions[1:]) for s in corpus]
    entaug.write(predicted, tmp_path / "p.jsonl")
    assert main(["evaluate", str(gold), str(tmp_path / "p.jsonl")]) == 0
    scores = score(corpus, predicted)
    assert 0 < scores.micro.recall < 1
    assert capsys.readouterr().out == score_table(scores)
    assert main(["evaluate", str(gold), str(tmp_path / "p.jsonl"), "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out) == scores.to_dict()
    train = EXAMPLE / "train.conll"
    assert main(["evaluate", str(gold), str(tmp_path / "p.jsonl"), "--train", str(train), "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out) == score(corpus, predicted, entaug.read(train)).to_dict()
    assert main(["evaluate", str(gold), str(EXAMPLE / "dev.conll")]) == 2
    assert "dev.conll: sentence 1 has other tokens in gold than predicted" in capsys.readouterr().err


def test_p_values_and_intervals_agree() -> None:
    rng = Random(1)
    for seeds in (1, 2, 3, 5):
        for gain in (0.0, 0.1, 0.3):
            base = [[RIGHT if rng.random() < 0.5 else WRONG for _ in range(60)] for _ in range(seeds)]
            other = [[RIGHT if one == RIGHT or rng.random() < gain else WRONG for one in run] for run in base]
            found = paired_bootstrap(other, base)
            assert found.p_value is not None
            assert 0 <= found.p_value <= 1
            assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0) or abs(found.p_value - 0.05) < 0.01
    assert paired_bootstrap([[RIGHT] * 9] * 3, [[RIGHT] * 9] * 3).p_value == 1
    assert paired_bootstrap([[RIGHT] * 9] * 3, [[WRONG] * 9] * 3).p_value == 0


def test_p_values_of_equal_systems_are_uniform() -> None:
    rng = Random(3)
    values = []
    for _ in range(200):
        runs = [[RIGHT if rng.random() < 0.5 else WRONG for _ in range(80)] for _ in range(6)]
        p_value = paired_bootstrap(runs[:3], runs[3:], samples=100).p_value
        assert p_value is not None
        values.append(p_value)
    assert 0.01 <= sum(p < 0.1 for p in values) / len(values) <= 0.17
    assert 0.35 <= sum(p < 0.5 for p in values) / len(values) <= 0.65


def test_columns_of_tables_stand_below_one_another_also_of_wide_characters() -> None:
    lines = Table(["", "人名"], [["机构名", "1"], ["LOC", "12"]]).as_text().splitlines()
    assert lines == ["        人名", "机构名     1", "LOC       12"]
    one, other = (Mention(label, [(0, 1)]) for label in ("地名", "LOC"))
    gold = [Sentence(["a"], [one]), Sentence(["a"], [other])]
    rows = [line for line in score_table(score(gold, gold)).splitlines() if "地名" in line or "LOC" in line]
    assert len({len(row) + row.count("地") + row.count("名") for row in rows}) == 1
