"""Methods that read and write sentences with their labels: MELM, DAGA and MulDA, by hand-computed cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import mean, pstdev
from typing import Any

import pytest

pytest.importorskip("torch")

from entaug import Mention, Sentence
from entaug.backends.config import TrainingConfig
from entaug.backends.protocols import MaskedText
from entaug.backends.transformers.lstm import LSTMTokenLM
from entaug.core.tags import SCHEMES
from entaug.errors import EntaugError, InputError, OutputError, ParameterError
from entaug.methods import DAGA, MaskedEntityLM, MulDA
from entaug.methods.base import Augmenter, Rejection, Request
from entaug.methods.shared.generated_text import label_tokens, parse_tagged, tag_tokens
from helpers.fakes import FakeGenerator, FakeMaskedLM, FakeTokenLM

ANA = Sentence("Ana Byron saw 12 men in Rome .".split(), [Mention("PER", [(0, 2)]), Mention("LOC", [(6, 7)])], id="ana")
BO = Sentence("Bo saw Oslo 3 times".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], id="bo")


# -------------------------------------------------------------------------------------------------------- linearising


@pytest.mark.parametrize("scheme", SCHEMES)
def test_any_scheme_is_read_back(scheme: str) -> None:
    adjacent = Sentence("a b c d e".split(), [Mention("X", [(0, 2)]), Mention("X", [(2, 3)]), Mention("Y", [(3, 4)])])
    for sentence in (ANA, BO, adjacent, Sentence(["bare"])):
        parts = [part for parts in tag_tokens(sentence, scheme) for part in parts]
        known = {part for part in parts if part.startswith("<")}
        assert parse_tagged(parts, known, scheme) == (sentence.tokens, sentence.mentions)


def test_labels_that_do_not_go_together_are_refused() -> None:
    known = ["<B-X>", "<I-X>", "<I-Y>"]
    assert parse_tagged("<B-X> a <I-Y> b".split(), known) is None
    assert parse_tagged("<I-X> a".split(), known) is None
    assert parse_tagged("a <B-X>".split(), known) is None
    assert parse_tagged("<B-X> <B-X> a".split(), known) is None


# --------------------------------------------------------------------------------------------------------------- MELM


class Ranked(FakeMaskedLM):
    """A masked language model with the same candidates for every gap; it notes what it was asked."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(words)
        self.asked: list[MaskedText] = []

    def fill(
        self, texts: Sequence[MaskedText], top: int, *, first_only: bool = False
    ) -> list[list[list[tuple[str, float]]]]:
        del first_only
        self.asked += texts
        return [[[(w, -1.0 - i) for i, w in enumerate(self._words)][:top] for p in text if p is None] for text in texts]


def melm(words: Sequence[str] = ("Best", "Kyiv", "Lima", "Cork", "Oulu", "Sixth"), **options: Any) -> MaskedEntityLM:
    method = MaskedEntityLM(candidates=1, masked_lm=FakeMaskedLM(), guard=False, **options)
    method.fit([ANA, BO])
    method.trained_ = Ranked(words)
    return method


def test_melm_takes_ranks_two_to_five_and_no_other() -> None:
    seen: set[str] = set()
    for seed in range(60):
        for made in melm(mask_ratio=1.0, mask_std=0.0, seed=seed).augment([ANA, BO]):
            source = ANA if made.tokens[1] != "saw" else BO
            assert made.mentions == source.mentions, "number, labels and places stay"
            seen |= {w.lower() for m in made.mentions for w in made.mention_tokens(m)}
            free = [i for i, is_free in enumerate(source.outside_mask()) if is_free]
            assert [made.tokens[i] for i in free] == [source.tokens[i] for i in free]
    assert seen == {"kyiv", "lima", "cork", "oulu"}


def test_melm_shows_the_labels_around_the_gaps() -> None:
    method = melm(mask_ratio=1.0, mask_std=0.0)
    list(method.augment([ANA]))
    model = method.trained_
    assert isinstance(model, Ranked)
    assert model.asked[0] == [
        "<B-PER> ",
        None,
        " <B-PER> <I-PER> ",
        None,
        " <I-PER> saw 12 men in <B-LOC> ",
        None,
        " <B-LOC> .",
    ]


def test_melm_learns_words_of_mentions_others_in_each_epoch() -> None:
    lm = FakeMaskedLM()
    made = MaskedEntityLM(candidates=1, masked_lm=lm, epochs=400, train_mask_ratio=0.7)
    made.fit([ANA])
    assert isinstance(made.trained_, FakeMaskedLM)
    texts = made.trained_.learned
    assert len(texts) == 400
    hidden = [[piece for piece, is_hidden in text if is_hidden] for text in texts]
    assert {piece for some in hidden for piece in some} == {" Ana", " Byron", " Rome"}
    assert all(hidden), "one at least"
    # Of three words each with 0.7, and one where it was none: 2.1 + 0.027.
    assert mean(map(len, hidden)) == pytest.approx(2.127, abs=0.15)
    whole = {"".join(piece for piece, _ in text) for text in texts}
    assert whole == {"<B-PER> Ana <B-PER> <I-PER> Byron <I-PER> saw 12 men in <B-LOC> Rome <B-LOC> ."}


def test_melm_hides_about_half() -> None:
    long = Sentence("a b c d e f g h i j k".split(), [Mention("X", [(0, 10)])])
    method = melm(mask_ratio=0.5, mask_std=1.0)
    counts = [len(method._sample_positions(long, Random(seed))) for seed in range(2000)]
    assert mean(counts) == pytest.approx(5, abs=0.15)
    assert pstdev(counts) == pytest.approx(1.04, abs=0.1), "one word, and rounding"
    single = Sentence(["a", "b"], [Mention("X", [(0, 1)])])
    assert all(method._sample_positions(single, Random(seed)) == [0] for seed in range(50)), "one at least"


def test_melm_guards_what_comes_in() -> None:
    # Not what stands there or beside it, no stop word for a name, and no word for a number or a code.
    code = Sentence("p53 binds Ana Byron".split(), [Mention("GENE", [(0, 1)]), Mention("PER", [(2, 4)])])
    method = MaskedEntityLM(candidates=1, masked_lm=FakeMaskedLM(), mask_ratio=1.0, mask_std=0.0, guard=False).fit(
        [code]
    )
    method.trained_ = Ranked(["first", "Ana", "binds", "of", "Eve"])
    [made] = method.augment([code])
    assert made.tokens[:3] == ("p53", "binds", "Eve")
    assert made.tokens[3] in {"Ana", "Binds"}, "beside Eve no second one"
    method.fit([code]).trained_ = Ranked(["first", "Ana", "Byron", "of", "the"])
    assert list(method.augment([code])) == []
    assert method.statistics_.missing == {"no suitable other word": 1}
    numbers = Sentence(["1", "2"], [Mention("X", [(0, 1)])])
    assert list(method.augment([numbers])) == []


def test_melm_refusals() -> None:
    class Deaf:
        name = "deaf"

        def fill(self, *_: Any, **__: Any) -> Any: ...
        def token_log_probs(self, _: Any) -> Any: ...
        def token_offsets(self, _: Any) -> Any: ...

    with pytest.raises(ParameterError, match=r"deaf cannot be trained.*mpnet-mlm"):
        MaskedEntityLM(candidates=1, masked_lm=Deaf()).load()
    odd: list[dict[str, Any]] = [
        {"train_mask_ratio": 0},
        {"min_rank": 6},
        {"min_rank": 0},
        {"mask_std": -1},
        {"epochs": 0},
        {"learning_rate": 2},
    ]
    for options in odd:
        with pytest.raises(ParameterError):
            MaskedEntityLM(candidates=1, masked_lm=FakeMaskedLM(), **options)


# --------------------------------------------------------------------------------------------------------------- DAGA


class Written(FakeTokenLM):
    """A language model that gives what it is told to."""

    def __init__(self, *rows: str) -> None:
        super().__init__([row.split() for row in rows])

    def sample(
        self, seeds: Sequence[int], *, max_new_tokens: int = 128, temperature: float = 1.0
    ) -> list[tuple[str, ...] | None]:
        del max_new_tokens, temperature
        return [tuple(self._rows[seed % len(self._rows)]) or None for seed in seeds]


def judged(method: DAGA, *row: str) -> Sentence | str:
    method.trained_ = Written(" ".join(row))
    [made] = method._rewrite_batch([Request(ANA, Random(1))])
    return made.reason if isinstance(made, Rejection) else made


def test_daga_learns_tags_before_words_and_placeholders() -> None:
    kept: list[list[str]] = []

    class Noting(FakeTokenLM):
        def fit(self, rows: Any, *args: Any, **options: Any) -> Any:
            kept.extend(map(list, rows))
            return super().fit(rows, *args, **options)

    DAGA(token_lm=Noting()).fit([ANA, BO, ANA.with_(id="again")])
    assert sorted(" ".join(row) for row in kept) == [
        "<B-PER> <unk>^ <I-PER> <unk>^ saw <num> <unk> <unk> <B-LOC> <unk>^ <unk>",
        "<B-PER> <unk>^ saw <B-LOC> <unk>^ <num> <unk>",
    ], "a sentence once; numbers and what was seen once stand as placeholders"


def test_daga_fills_placeholders_under_their_tag() -> None:
    method = DAGA(token_lm=FakeTokenLM()).fit([ANA, BO])
    made = judged(method, "<B-LOC>", "<unk>^", "saw", "<num>", "<unk>")
    assert isinstance(made, Sentence)
    assert made.mentions == (Mention("LOC", [(0, 1)]),)
    assert made.tokens[0] in {"Rome", "Oslo"}
    assert made.tokens[2] in {"12", "3"}
    assert made.tokens[3] in {"men", "in", ".", "times"}
    assert made.fields["entaug"] == {"unconditioned": True}
    keeps = DAGA(token_lm=FakeTokenLM(), unknown_tokens="keep").fit([ANA, BO])
    assert isinstance(keeps.trained_, FakeTokenLM)
    assert {token for row in keeps.trained_._rows for token in row if "unk" in token} == {"<unk>"}
    kept = judged(keeps, "<B-LOC>", "<unk>", "saw")
    assert isinstance(kept, Sentence)
    assert kept.tokens == ("<unk>", "saw")
    assert judged(keeps, "<B-LOC>", "<unk>", "<num>") == "a word unknown to the model"
    dropped = judged(DAGA(token_lm=FakeTokenLM(), unknown_tokens="drop").fit([ANA, BO]), "<B-LOC>", "<unk>", "saw")
    assert dropped == "a word unknown to the model"


def test_daga_keeps_what_is_valid_and_new() -> None:
    method = DAGA(token_lm=FakeTokenLM()).fit([ANA, BO])
    assert judged(method, "saw", "saw") == "no mention"
    assert judged(method, "<I-PER>", "saw") == "inconsistent label tokens"
    assert judged(method, "<B-PER>") == "inconsistent label tokens"
    assert judged(method, "<B-PER>", "saw", "Rome") == "a known mention that is not in the list"
    again = judged(method, "<B-PER>", "Bo", "saw", "<B-LOC>", "Oslo", "3", "times")
    assert again == "a copy of a training sentence"
    open_ = DAGA(token_lm=FakeTokenLM(), unlisted_mentions="keep").fit([ANA, BO])
    assert isinstance(judged(open_, "<B-PER>", "saw", "Rome"), Sentence)


def test_what_looks_like_a_label_is_not_learned_from() -> None:
    odd = [
        Sentence("the <B-PER> tag marks Ada".split(), [Mention("PER", [(4, 5)])]),
        Sentence("<num> of <unk> marks Ada".split(), [Mention("PER", [(4, 5)])]),
    ]
    method = DAGA(token_lm=FakeTokenLM(), guard=False).fit([ANA, BO, *odd])
    assert isinstance(method.trained_, FakeTokenLM)
    assert len(method.trained_._rows) == 2
    assert method.notes() == ["2 sentences contain tokens that look like label tokens and are not used for training"]
    made = MulDA(generator=FakeGenerator()).fit([ANA, BO, *odd])
    assert isinstance(made.trained_, FakeGenerator)
    assert len(made.trained_.learned) == 2
    replaced = melm(mask_ratio=1.0, mask_std=0.0)
    [other] = replaced.augment([odd[0]])
    assert other.tokens[:4] == odd[0].tokens[:4], "no label token of the text is taken for one of ours"
    unseen = Sentence("IBM and Ana".split(), [Mention("ORG", [(0, 1)]), Mention("PER", [(2, 3)])])
    assert list(replaced.augment([unseen])) == []
    assert replaced.statistics_.missing == {"not a sentence of the fitted corpus": 1}


@pytest.mark.parametrize("cls", [DAGA, MulDA, MaskedEntityLM])
def test_nothing_is_learned_where_there_is_no_mention(cls: Any, tmp_path: Path) -> None:
    backend: dict[Any, dict[str, Any]] = {
        DAGA: {"token_lm": LSTMTokenLM(4, 4)},
        MulDA: {"generator": FakeGenerator()},
        MaskedEntityLM: {"masked_lm": FakeMaskedLM()},
    }
    for gold in ([], [Sentence(["a", "b"])]):
        with pytest.raises(InputError, match="the corpus has no mentions"):
            cls(checkpoint_dir=str(tmp_path / "kept"), **(backend[cls])).fit(gold)
    cls(checkpoint_dir=str(tmp_path / "kept"), **backend[cls], epochs=1).fit([ANA, BO])  # the folder is as good as new


def test_daga_refusals() -> None:
    odd = (
        {"unknown_tokens": "x"},
        {"tag_scheme": "IOBX"},
        {"temperature": 0},
        {"max_new_tokens": 0},
        {"unlisted_mentions": "label"},
        {"batch_size": 0},
    )
    for options in odd:
        with pytest.raises(EntaugError):
            DAGA(token_lm=FakeTokenLM(), **options)


@pytest.fixture(scope="module")
def learned() -> LSTMTokenLM:
    rows = [["<B-PER>", name, verb, "<B-LOC>", town] for name in "abcd" for verb in "xyz" for town in "pqr"]
    return LSTMTokenLM(embedding=16, hidden=32, dropout=0.1).fit(
        rows, TrainingConfig(epochs=30, batch_size=8, learning_rate=2e-2)
    )


def test_the_lstm_learns_the_grammar(learned: LSTMTokenLM) -> None:
    rows = learned.sample(range(200))
    assert sum(row is not None and len(row) == 5 and row[0] == "<B-PER>" and row[3] == "<B-LOC>" for row in rows) > 190
    assert len(set(rows)) > 25, "of 36 that there are"
    assert learned.losses[-1][0] < learned.losses[0][0]


def test_what_the_lstm_draws_depends_on_its_seed_alone(learned: LSTMTokenLM) -> None:
    rows = learned.sample(range(100))
    assert [learned.sample([seed])[0] for seed in range(100)] == rows
    assert learned.sample(list(range(100))[::-1]) == rows[::-1]
    assert learned.sample([1, 2], max_new_tokens=3) == [None, None], "what comes to no end is none"


def test_the_lstm_is_saved_and_read_again(learned: LSTMTokenLM, tmp_path: Path) -> None:
    learned.save(tmp_path / "kept")
    size: dict[str, Any] = {"embedding": 16, "hidden": 32, "dropout": 0.1}
    again = LSTMTokenLM(**size).restore(tmp_path / "kept")
    assert again.sample(range(20)) == learned.sample(range(20))
    with pytest.raises(OutputError, match="is there already"):
        learned.save(tmp_path / "kept")
    with pytest.raises(InputError, match=r"was trained from lstm-16-32-0\.1, and this is lstm-300-512-0\.5"):
        LSTMTokenLM().restore(tmp_path / "kept")
    with pytest.raises(InputError, match="holds no trained model"):
        LSTMTokenLM(**size).restore(tmp_path)
    with pytest.raises(ParameterError, match="is not trained"):
        LSTMTokenLM().sample([1])
    with pytest.raises(ParameterError, match="is not trained"):
        LSTMTokenLM().save(tmp_path / "other")


def test_learning_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    rows = [["a", "b", "c"], ["a", "c"], ["b"]] * 4
    small = LSTMTokenLM(embedding=8, hidden=8)
    tuning = TrainingConfig(epochs=6, batch_size=4, patience=9)
    whole = small.fit(rows, tuning)

    class EnoughError(Exception):
        pass

    def stop(step: int, *_: object) -> None:
        if step == 8:
            raise EnoughError

    with pytest.raises(EnoughError):
        small.fit(rows, tuning, checkpoint_dir=tmp_path / "state", progress=stop)
    resumed = small.fit(rows, tuning, checkpoint_dir=tmp_path / "state")
    assert resumed.losses == whole.losses
    assert resumed.sample(range(9)) == whole.sample(range(9))


# -------------------------------------------------------------------------------------------------------------- MulDA


def test_mulda_learns_all_languages_together_and_writes_that_of_the_source() -> None:
    ida = Sentence(
        "Ida sieht Bonn".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], meta={"language": "de"}
    )
    generator = FakeGenerator()
    method = MulDA(generator=generator, constrained=False).fit([ANA, ida])
    assert isinstance(method.trained_, FakeGenerator)
    assert sorted(method.trained_.learned) == [
        ("de", "<B-PER> Ida sieht <B-LOC> Bonn"),
        ("en", "<B-PER> Ana <I-PER> Byron saw 12 men in <B-LOC> Rome."),
    ]
    assert set(label_tokens(["PER", "LOC"])) == set(method._markers)
    inputs: list[str] = []

    class Noting(FakeGenerator):
        def generate(self, texts: Any, *args: Any, **options: Any) -> Any:  # type: ignore[override]
            del args, options
            inputs.extend(texts)
            return [["<B-PER> Eva <I-PER> Byron, sings."]] * len(texts)

    method.trained_ = Noting()  # type: ignore[assignment]
    made = list(method.augment([ANA, ida]))
    assert inputs[:2] == ["en", "de"]
    assert made[0].tokens == ("Eva", "Byron", ",", "sings", ".")
    assert made[0].mentions == (Mention("PER", [(0, 2)]),)


def test_mulda_draws_mentions_and_takes_no_others() -> None:
    bonn = Sentence(
        "Ida sieht Bonn .".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], meta={"language": "de"}
    )
    odd = Sentence("-LRB- Bo -RRB- sat".split(), [Mention("PER", [(0, 3)])])
    method = MulDA(generator=FakeGenerator(), guard=False, max_attempts=1).fit([ANA, BO, odd, bonn])
    calls: list[Any] = []
    answers = ["<B-PER> Ida sang.", "<B-PER> ( <I-PER> Bo <I-PER> ) went off.", "<B-PER> Eva sang in <B-LOC> Bonn."]

    class Noting(FakeGenerator):
        def generate(self, *given: Any) -> Any:
            texts, config, seeds, required, forbidden = given
            assert not config.marker_rules
            assert len(texts) == len(seeds) == len(required)
            calls.extend(zip(texts, required, strict=True))
            assert {"<B-PER>", "<I-PER>", "inside", "begin", "Ida"} <= set(forbidden)
            return [[answer] for answer in answers[: len(texts)]]

    method.trained_ = Noting()
    sources = [bonn, odd, ANA, Sentence("Ute".split(), [Mention("PER", [(0, 1)])], meta={"language": "xx"})]
    made = list(method.augment(sources))
    assert [" ".join(s.tokens) for s in made] == ["Ida sang .", "-LRB- Bo -RRB- went off ."]
    assert made[1].mentions == (Mention("PER", [(0, 3)]),)
    assert method.statistics_.missing == {
        "a mention that the training sentences do not have": 1,
        "nothing that the method can change": 1,
    }
    for language, required in calls:  # the mentions are of the language, and not drawn twice
        texts = [text for [text] in required]
        own = {"<B-PER> Ida", "<B-LOC> Bonn"}
        assert set(texts) == own if language == "de" else own.isdisjoint(texts)
        assert len(set(texts)) == len(texts) > 0


def test_mulda_refusals() -> None:
    for options in ({"unlisted_mentions": "label"}, {"temperature": -1}, {"max_new_tokens": 0}):
        with pytest.raises(ParameterError):
            MulDA(generator=FakeGenerator(), **options)


# ---------------------------------------------------------------------------------------------------------------- all


@pytest.mark.parametrize(
    "method",
    [
        MaskedEntityLM(candidates=1, masked_lm=FakeMaskedLM(["Eve", "Kyiv", "Lima"]), min_rank=1),
        DAGA(token_lm=FakeTokenLM(), unknown_tokens="keep", unlisted_mentions="keep"),
    ],
    ids=lambda method: method.info.name,
)
def test_what_was_kept_is_used_again(method: Augmenter, tmp_path: Path) -> None:
    method.checkpoint_dir = str(tmp_path / "kept")  # type: ignore[attr-defined]
    method.fit([ANA, BO])
    assert (tmp_path / "kept" / "learned").is_dir()
    method.fit([BO, ANA])
    with pytest.raises(InputError, match="trained on other sentences"):
        method.fit([BO])
