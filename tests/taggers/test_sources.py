"""Sources of labels: joined by the hidden Markov model, and each of them alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from entaug.backends.fakes import FakeInstructModel, FakeTagger
from entaug.backends.instruct import Answer, ChatRequest
from entaug.backends.resolve import BACKENDS, check_name
from entaug.backends.soft_labels import TagProbabilities
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import flatten
from entaug.errors import EntaugError, InputError, InputWarning, ParameterError
from entaug.taggers.pretrained import PretrainedTagger
from entaug.taggers.sources.joined import JoinedTagger, read_sources, sources_identity
from entaug.taggers.sources.joining import Joiner
from entaug.taggers.sources.lists import FileTagger, ListTagger
from entaug.taggers.sources.prompted import NO_LINE, NOT_THERE, PromptedTagger
from helpers.scripted_server import Reply, last_line, serving

LABELS = ("LOC", "PER")
Mentions = list[Mention]


@st.composite
def flat(draw: st.DrawFn, length: int) -> Mentions:
    mentions, start = [], 0
    while start < length:
        end = start + draw(st.integers(1, 3))
        if end <= length and draw(st.booleans()):
            mentions.append(Mention(draw(st.sampled_from(LABELS)), [(start, end)]))
        start = end
    return mentions


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[Mentions | None]], list[int], list[Mentions | None]]:
    """What sources say, lengths, and gold mentions of some sentences."""
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=6))
    number = draw(st.integers(1, 4))
    said = [[draw(st.none() | flat(n)) for n in lengths] for _ in range(number)]
    return said, lengths, [draw(st.none() | flat(n)) for n in lengths]


def values_of(joined: Sequence[TagProbabilities]) -> list[list[list[float]]]:
    return [one.values.tolist() for one in joined]


# --------------------------------------------------------------------------------------------------------- the model


@settings(deadline=None, max_examples=60)
@given(cases())
def test_probabilities_are_normalised_and_gold_is_kept(case: Any) -> None:
    said, lengths, gold = case
    joined = Joiner(LABELS).join(said, lengths, gold)
    assert list(map(len, joined)) == lengths
    for soft, known, n in zip(joined, gold, lengths, strict=True):
        assert np.isfinite(soft.values).all()
        assert soft.values.sum(1) == pytest.approx(np.ones(n), abs=1e-5)
        if known is not None:
            words = Sentence(["w"] * n, known)
            assert soft.best_tags() == words.iob()
            assert soft.confidences == pytest.approx(np.ones(n), abs=1e-5)


@settings(deadline=None, max_examples=30)
@given(cases(), st.randoms(use_true_random=False))
def test_neither_the_order_of_sources_nor_that_of_sentences_matters(case: Any, rng: Random) -> None:
    said, lengths, gold = case
    first = Joiner(LABELS).join(said, lengths, gold)
    assert values_of(first) == values_of(Joiner(LABELS).join(said, lengths, gold))
    shuffled = rng.sample(said, len(said))
    order = rng.sample(range(len(lengths)), len(lengths))
    second = Joiner(LABELS).join(
        [[one[i] for i in order] for one in shuffled], [lengths[i] for i in order], [gold[i] for i in order]
    )
    for place, i in enumerate(order):
        assert second[place].values == pytest.approx(first[i].values, abs=1e-4)


@settings(deadline=None, max_examples=30)
@given(cases())
def test_posteriors_are_those_of_all_sequences_one_by_one(case: Any) -> None:
    """Forward and backward passes over padded blocks against the sum over every sequence of states."""
    said, lengths, gold = case
    short = [i for i, n in enumerate(lengths) if n <= 3]
    if not short:
        return
    joiner = Joiner(LABELS[:1], text=0.3, rounds=0)
    plain = [[None if one is None else [Mention("LOC", m.spans) for m in one] for one in source] for source in said]
    known = [None if one is None else [Mention("LOC", m.spans) for m in one] for one in gold]
    joined = joiner.join(plain, lengths, known)
    tables = [joiner._emissions(table) for table in joiner.tables_]
    for i in short:
        n = lengths[i]
        right = None if known[i] is None else joiner._states(known[i] or [], n).tolist()
        totals = np.zeros((n, joiner._num_states))
        for states in itertools.product(range(joiner._num_states), repeat=n):
            if states[-1] == 2 or (right is not None and list(states) != right):  # nothing comes before a mention
                continue
            p = joiner._initial[states[0]]
            for a, b in itertools.pairwise(states):
                p *= joiner._transitions[a, b]
            for source, table, weight in zip(plain, tables, joiner.weights_, strict=True):
                if (said_here := source[i]) is not None:
                    symbols = joiner._alphabet.encode(said_here, joiner.labels, n)
                    p *= np.exp(weight * table[symbols, states].sum())
            for t, state in enumerate(states):
                totals[t, state] += p
        totals /= totals.sum(1, keepdims=True)
        expected = np.concatenate([totals[:, :3].sum(1, keepdims=True), totals[:, 3:]], 1)
        assert joined[i].values == pytest.approx(expected, abs=1e-5)


def text(number: int, seed: int) -> list[Sentence]:
    """Sentences with mentions of one to three words."""
    rng, result = Random(seed), []
    for i in range(number):
        mentions, start = [], rng.randrange(3)
        while start < 12:
            end = min(12, start + rng.randint(1, 3))
            mentions.append(Mention(rng.choice(LABELS), [(start, end)]))
            start = end + rng.randint(1, 5)
        result.append(Sentence([f"w{i}-{j}" for j in range(12)], mentions))
    return result


def noisy(sentences: Sequence[Sentence], rate: float, seed: int) -> list[Mentions]:
    """Mentions of which a share is missing, of the other type, or a word too long."""
    rng, result = Random(seed), []
    for sentence in sentences:
        kept = []
        for mention in sentence.mentions:
            if rng.random() >= rate:
                kept.append(mention)
                continue
            kind = rng.randrange(3)
            if kind == 1:
                kept.append(Mention(LABELS[1 - LABELS.index(mention.label)], mention.spans))
            elif kind == 2 and mention.start and all(m.end < mention.start for m in kept[-1:]):
                kept.append(Mention(mention.label, [(mention.start - 1, mention.end)]))
        result.append(kept)
    return result


def f1(sentences: Sequence[Sentence], mentions: Iterable[Sequence[Mention]]) -> float:
    pairs = zip(sentences, mentions, strict=True)
    return entaug.score(sentences, [s.with_(mentions=ms) for s, ms in pairs]).micro.f1


@pytest.mark.parametrize("with_gold", [True, False])
def test_joined_labels_are_better_than_each_source(with_gold: bool) -> None:
    sentences = text(200, 1)
    said: list[list[Mentions | None]] = [list(noisy(sentences, rate, i)) for i, rate in enumerate((0.2, 0.3, 0.4))]
    gold = [s.mentions if with_gold and i < 30 else None for i, s in enumerate(sentences)]
    joined = Joiner(LABELS).join(said, [12] * 200, gold)[30:]
    of_sources = [f1(sentences[30:], [one or [] for one in source[30:]]) for source in said]
    assert f1(sentences[30:], [one.mentions() for one in joined]) > max(of_sources) + 0.05


def test_a_source_that_is_always_right_wins_against_two_that_agree() -> None:
    sentences = text(200, 2)
    wrong: list[Mentions | None] = list(noisy(sentences, 0.5, 3))
    said: list[list[Mentions | None]] = [wrong, [list(s.mentions) for s in sentences], wrong]
    gold = [s.mentions if i < 60 else None for i, s in enumerate(sentences)]
    joined = Joiner(LABELS).join(said, [12] * 200, gold)[60:]
    assert f1(sentences[60:], [one.mentions() for one in joined]) > 0.99


def test_a_long_mention_counts_as_much_as_a_short_one() -> None:
    """One source has a mention, two have none: six words are one error of somebody, not six."""
    sentences = text(100, 4)
    said: list[list[Mentions | None]] = [list(noisy(sentences, 0.2, i)) for i in range(3)]
    confidences = []
    for length in (1, 6):
        for i, one in enumerate(said):
            one[99] = [Mention("PER", [(2, 2 + length)])] if i == 0 else []
        gold = [s.mentions if i < 50 else None for i, s in enumerate(sentences)]
        soft = Joiner(LABELS).join(said, [12] * 100, gold)[99]
        confidences.append(float(soft.values[2, soft.tags.index("B-PER")]))
    assert confidences[1] == pytest.approx(confidences[0], abs=0.25)


def test_where_no_source_says_anything_nothing_is_sure() -> None:
    sentences = text(30, 5)
    said: list[list[Mentions | None]] = [[None if i == 29 else list(s.mentions) for i, s in enumerate(sentences)]] * 2
    soft = Joiner(LABELS).join(said, [12] * 30, [s.mentions for s in sentences[:29]] + [None])[29]
    assert soft.mentions() == ()
    assert 0.05 < float(1 - soft.values[6, 0]) < 0.9


# -------------------------------------------------------------------------------------------------- lists and files


def test_lists_find_the_longest_name_whatever_the_tokens(tmp_path: Path) -> None:
    (tmp_path / "places.txt").write_text("New York\nYork\nU.S.\n")
    (tmp_path / "people.txt").write_text("York\nO'Hara\n")
    tagger = ListTagger(f"{tmp_path}/places.txt=LOC; {tmp_path}/people.txt=PER")
    sentences = [
        Sentence("In New York or York".split()),
        Sentence(["the", "U.S", ".", "and", "O", "'", "Hara"]),
        Sentence("new york is not York".split()),
        Sentence("i love new york".split()),
    ]
    assert [[(m.label, *m.spans[0]) for m in one or []] for one in tagger.opinions(sentences)] == [
        [("LOC", 1, 3), ("LOC", 4, 5)],  # the first list has York
        [("LOC", 1, 3), ("PER", 4, 7)],
        [("LOC", 4, 5)],
        [("LOC", 2, 4)],  # without case
    ]
    again = ListTagger(f"{tmp_path}/places.txt=LOC; {tmp_path}/people.txt=PER")
    assert tagger.name == again.name
    assert check_name("tagger", "lists:names.txt=PER")


def test_a_file_says_nothing_of_other_sentences(tmp_path: Path) -> None:
    sentences = [Sentence(["Ada", "left"], [Mention("PER", [(0, 1)])]), Sentence(["Bo"], [Mention("PER", [(0, 1)])])]
    entaug.write(sentences, tmp_path / "labels.jsonl")
    tagger = FileTagger(str(tmp_path / "labels.jsonl"))
    bare = [Sentence(["Ada", "left"]), Sentence(["Eve"])]
    assert tagger.opinions(bare) == [[Mention("PER", [(0, 1)])], None]
    others = [Sentence(["Eve"]), Sentence(["Ian"])]
    assert tagger.opinions(others) == [None, None]
    with pytest.raises(InputError, match="has none of the 2 sentences"):
        tagger.fit(sentences).predict(others)
    with pytest.raises(InputError, match="has none of the 2 sentences"):
        JoinedTagger([tagger]).fit(sentences).predict(others)


def test_overlapping_mentions_are_left_out_the_shorter_ones() -> None:
    mentions = [Mention("A", [(0, 1)]), Mention("B", [(0, 3)]), Mention("C", [(3, 4)]), Mention("D", [(4, 5), (6, 7)])]
    assert flatten(mentions, "outermost") == mentions[1:3]


# --------------------------------------------------------------------------------------------------- instruct models

GOLD = [
    Sentence("Ada left Rome yesterday".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])]),
    Sentence("It rained in Oslo".split(), [Mention("LOC", [(3, 4)])]),
    Sentence("nothing ever happens".split()),
]


def prompted(answer: Any, descriptions: dict[str, str] | None = None) -> tuple[PromptedTagger, FakeInstructModel]:
    model = FakeInstructModel(answer=answer)
    tagger = PromptedTagger(model)
    tagger.descriptions = descriptions or {}
    return tagger.fit(GOLD), model


def is_second(request: ChatRequest) -> bool:
    return "Words: " in request.messages[-1].text


def test_only_exact_words_of_the_sentence_count() -> None:
    lines = "Bo Li | PER\n- New York | LOC\nBo | per\nNew Yor | LOC\nyork | LOC\nsome words\nNONE"
    tagger, _ = prompted(lambda request: "NONE" if is_second(request) else lines)
    tagger.rejected.clear()
    [found] = tagger.opinions([Sentence("Bo Li left New York , Bo".split())])
    assert [(m.label, *m.spans[0]) for m in found or []] == [("PER", 0, 2), ("LOC", 3, 5), ("PER", 6, 7)]
    assert tagger.rejected == {NOT_THERE: 2, NO_LINE: 1}
    assert any(NOT_THERE in note for note in tagger.notes)


def test_numbers_quotes_and_full_stops_may_belong_to_a_name() -> None:
    lines = "2. Bo | PER\n3. Liga | ORG\n's-Hertogenbosch | LOC\n“Rome” | LOC"
    tagger, _ = prompted(lambda request: "NONE" if is_second(request) else lines, {"Org.": "clubs and leagues"})
    [found] = tagger.opinions([Sentence("Bo left the 3. Liga for 's-Hertogenbosch and Rome".split())])
    expected = [("PER", 0, 1), ("Org.", 3, 5), ("LOC", 6, 7), ("LOC", 8, 9)]
    assert [(m.label, *m.spans[0]) for m in found or []] == expected
    tagger, _ = prompted(lambda request: "NONE" if is_second(request) else '"Rome" | LOC')
    [found] = tagger.opinions([Sentence('He said " Rome " there'.split())])
    assert found == [Mention("LOC", [(3, 4)])]


def test_what_was_measured_is_told_after_each_answer() -> None:
    tagger, _ = prompted(lambda _: "NONE")
    [measured] = [note for note in tagger.notes if "measured labels" in note]
    tagger.opinions([Sentence(["Bo"])])
    assert measured in tagger.notes


def test_a_second_question_decides_where_the_model_is_unsure() -> None:
    asked: list[str] = []

    def answer(request: ChatRequest) -> str:
        if not is_second(request):
            return "Bo | PER ?\nRome | PER\nEve | ROBOT\nIan | PER\nIan | LOC\nUna | LOC"
        words = request.messages[-1].text.split("Words: ")[1].split("\n")[0]
        asked.append(words)
        return {"Bo": "NONE", "Rome": "LOC.", "Eve": "PER", "Ian": "what?"}[words]

    tagger, model = prompted(answer)
    asked.clear()
    [found] = tagger.opinions([Sentence("Bo Rome Eve Ian Una".split())])
    assert asked == ["Bo", "Rome", "Eve", "Ian"]  # unsure, otherwise in gold, no type, two types
    assert [(m.label, m.start) for m in found or []] == [("LOC", 1), ("PER", 2), ("LOC", 4)]
    assert model.usage.requests == len(GOLD) + 1 + 1 + 4, "one second question while it is fitted"
    assert tagger.asked_again == 1 + 4


def test_the_prompt_has_descriptions_and_the_nearest_other_gold_sentences() -> None:
    tagger, model = prompted(lambda _: "NONE", {"LOC": "cities and countries"})
    model.requests.clear()
    tagger.opinions([Sentence("It rained in Rome".split()), GOLD[1].with_(mentions=())])
    first, own = model.requests
    assert "LOC: cities and countries\nPER: person" in first.messages[0].text
    # The most similar sentence comes last, right before the question.
    assert first.messages[1].text.endswith("Sentence: It rained in Oslo\nOslo | LOC\n\nSentence: It rained in Rome")
    assert "Oslo | LOC" not in own.messages[1].text
    assert "Ada | PER" in own.messages[1].text
    assert "{" not in "".join(message.text for request in model.requests for message in request.messages)


def test_a_request_that_failed_says_nothing() -> None:
    def answer(request: ChatRequest) -> str | Answer:
        return Answer("", "the server failed (500)") if "Una" in request.messages[-1].text else "NONE"

    tagger, _ = prompted(answer)
    assert tagger.opinions([Sentence(["Una"]), Sentence(["Bo"])]) == [None, []]


def test_a_server_is_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httpx")
    monkeypatch.setenv("ENTAUG_CACHE", str(tmp_path))

    def respond(body: dict[str, Any], _: int) -> Reply:
        return Reply("Rome | LOC" if "Rome" in last_line(body) else "NONE")

    with serving(respond) as server:
        tagger = JoinedTagger([f"chat:{server.url}#tiny"], {"LOC": "cities"}).fit(GOLD)
        [sentence] = tagger.predict([Sentence("she saw Rome".split())])
    assert sentence.mentions == (Mention("LOC", [(2, 3)]),)
    with pytest.raises(ParameterError, match="names no model"):
        check_name("tagger", "chat")


# -------------------------------------------------------------------------------------------------- the joined tagger


class Trained(FakeTagger):
    """A tagger to be trained, which notes on what."""

    fits: ClassVar[list[set[tuple[str, ...]]]] = []

    def fit(self, train: Iterable[Sentence], **options: Any) -> Trained:
        train = list(train)
        Trained.fits.append({s.tokens for s in train})
        return super().fit(train)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> type[Trained]:
    monkeypatch.setitem(BACKENDS["tagger"].registry._built_in, "trained", f"{__name__}:Trained")
    monkeypatch.setattr(Trained, "fits", [])
    return Trained


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Gold sentences, a text, two files with labels of both, and what names them."""
    sentences = [Sentence(s.tokens, s.mentions) for s in text(80, 6)]
    entaug.write(sentences[:30], tmp_path / "gold.jsonl")
    entaug.write([s.with_(mentions=()) for s in sentences[30:]], tmp_path / "text.jsonl")
    for i in range(2):
        said = noisy(sentences, 0.25, i)
        labelled = [s.with_(mentions=ms) for s, ms in zip(sentences, said, strict=True)]
        entaug.write(labelled, tmp_path / f"source-{i}.jsonl")
    (tmp_path / "names.txt").write_text("w40-0\nw41-1\n")
    (tmp_path / "sources.toml").write_text(
        'sources = ["file:source-0.jsonl", "file:source-1.jsonl", "lists:names.txt=PER"]\n[labels]\nPER = "people"\n'
    )
    return tmp_path


def test_sources_that_are_trained_label_gold_out_of_fold(trained: type[Trained]) -> None:
    gold = [Sentence([f"w{i}"], [Mention("PER", [(0, 1)])]) for i in range(9)]
    joined = JoinedTagger(["trained", FakeTagger().fit(gold)]).fit(gold)
    *parts, whole = trained.fits
    assert list(map(len, parts)) == [6, 6, 6]
    assert set.union(*parts) == whole == {s.tokens for s in gold}
    # It has learnt every sentence by heart, which out of fold tells nothing: its recall is nought.
    assert any("recall 0%" in note for note in joined.notes)


def test_without_gold_there_is_a_warning_and_a_result(folder: Path) -> None:
    text_ = list(entaug.read(folder / "text.jsonl"))
    for gold in ([], [Sentence(["It", "rains"])]):  # a sentence without mentions does not say that there are none
        with pytest.warns(InputWarning, match="no gold sentence has a mention"):
            joined = JoinedTagger(folder / "sources.toml").fit(gold)
        assert sum(len(s.mentions) for s in joined.predict(text_)) > 50
    assert any("against joined labels of 50 sentences" in note for note in joined.notes)


def test_a_file_need_not_hold_gold_sentences(folder: Path) -> None:
    gold, text_ = list(entaug.read(folder / "gold.jsonl")), list(entaug.read(folder / "text.jsonl"))
    labelled = list(entaug.read(folder / "source-0.jsonl"))[len(gold) :]
    (folder / "source-0.jsonl").unlink()
    entaug.write(labelled, folder / "source-0.jsonl")
    joined = JoinedTagger(folder / "sources.toml").fit(gold)
    assert any("source-0.jsonl" in note and "has none of the gold sentences" in note for note in joined.notes)
    assert sum(len(s.mentions) for s in joined.predict(text_)) > 50


def test_a_file_of_sources_is_read_with_paths_beside_it(folder: Path) -> None:
    names, labels = read_sources(folder / "sources.toml")
    assert names[0] == f"file:{folder / 'source-0.jsonl'}"
    assert names[2] == f"lists:{folder / 'names.txt=PER'}"
    assert labels == {"PER": "people"}
    before = sources_identity(folder / "sources.toml")
    (folder / "names.txt").write_text("w42-0\n")
    assert sources_identity(folder / "sources.toml") != before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sources = []\n", r"sources.toml:1: sources must be a list"),
        ('x = 1\nsources = ["linear"]\n', r"sources.toml:1: has the unknown key 'x'"),
        ('sources = ["linear"]\n\n[labels]\nPER = 1\n', r"sources.toml:3: labels must be a table"),
        ('\nsources = ["lineax"]\n', r"sources.toml:2: unknown tagger 'lineax'"),
        ('sources = ["lists"]\n', r"sources.toml:1: .*names no model"),
        ("sources = [\n", r"is not TOML"),
    ],
)
def test_mistakes_in_a_file_of_sources_are_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "sources.toml").write_text(content)
    with pytest.raises(EntaugError, match=message):
        JoinedTagger(tmp_path / "sources.toml")


def test_what_cannot_be_joined_is_refused(trained: type[Trained]) -> None:
    nested = Sentence(["a", "b"], [Mention("X", [(0, 1)]), Mention("X", [(0, 2)])])
    with pytest.raises(InputError, match="flat mentions only"):
        JoinedTagger([FakeTagger()]).fit([nested])
    with pytest.raises(InputError, match="is trained on gold sentences, and there are 0"):
        JoinedTagger(["trained"]).fit([])
    with pytest.raises(ParameterError, match="no source"):
        JoinedTagger([])
    with pytest.raises(ParameterError, match="fit"):
        JoinedTagger([FakeTagger()]).predict([nested])
    with pytest.raises(ParameterError, match="trained further"):
        JoinedTagger([FakeTagger()]).fit([], augmented=[nested])
    with pytest.raises(InputError, match="no source finds a mention"):
        JoinedTagger([FakeTagger()]).fit([Sentence(["a"])]).predict([Sentence(["b"])])
    assert not trained.fits


def test_pretrained_taggers_without_gold_have_the_labels_of_their_map() -> None:
    class Foreign(PretrainedTagger):
        prefix, name = "foreign", "foreign"

        def _load(self, model: str) -> None:
            del model

        @property
        def own_labels(self) -> list[str] | None:
            return ["GPE", "PERSON"]

        def _predict(self, sentences: Sequence[Sentence]) -> Any:
            raise NotImplementedError

    assert Foreign("a@GPE=LOC;PERSON=").fit_without_gold().known_labels == ["LOC"]
    assert Foreign("a").fit_without_gold().known_labels == ["GPE", "PERSON"]


def test_self_training_takes_joined_labels(folder: Path) -> None:
    gold, unlabelled = (list(entaug.read(folder / f"{name}.jsonl")) for name in ("gold", "text"))
    method = entaug.methods.SelfTraining(unlabelled=unlabelled, tagger=f"joined:{folder / 'sources.toml'}")
    new = list(method.fit(gold).augment(gold))
    assert len(new) == 50
    assert all(TagProbabilities.from_sentence(s) is not None for s in new)
    truth = {s.tokens: s for s in text(80, 6)}
    right = [truth[s.tokens] for s in new]
    assert f1(right, [s.mentions for s in new]) > f1(
        right, [s.mentions for s in FileTagger(str(folder / "source-0.jsonl")).fit(gold).predict(new)]
    )
    assert any("against gold of 30 sentences" in note for note in method.model_notes())


def test_a_source_that_gives_one_label_too_often_does_not_make_it_frequent() -> None:
    """Chosen on gold sentences, the text counts little where the estimates from it would follow such a source."""
    sentences = text(300, 7)
    rng = Random(8)
    often: list[Mentions | None] = []
    for s in sentences:
        first = [] if s.mentions and s.mentions[0].start < 2 else [Mention("LOC", [(0, 1)])]
        often.append([*(first if rng.random() < 0.5 else []), *s.mentions])
    said: list[list[Mentions | None]] = [often, list(noisy(sentences, 0.6, 9))]
    gold = [list(s.mentions) if i < 40 else None for i, s in enumerate(sentences)]
    joiner = Joiner(LABELS)
    joined = joiner.join(said, [12] * 300, gold)
    fixed = Joiner(LABELS, joiner.text_).join(said, [12] * 300, gold)
    assert values_of(joined) == values_of(fixed)
    other = Joiner(LABELS, 0.3).join(said, [12] * 300, gold)
    scores = [f1(sentences[40:], [one.mentions() for one in some[40:]]) for some in (joined, other)]
    assert scores[0] >= scores[1] - 0.01
    assert joiner.text_ in (0.3, 0.2 * 40 / 260)
