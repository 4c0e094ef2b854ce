"""Taggers of other libraries: maps of labels, and the models of spaCy, Hugging Face and GLiNER."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

import entaug
from entaug.backends.resolve import check_name, resolve
from entaug.backends.soft_labels import TagProbabilities
from entaug.commands.main import main
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.words import label_in_words
from entaug.errors import InputError, MissingModelError, ParameterError
from entaug.filters import create_filters
from entaug.methods import create_augmenter
from entaug.taggers.pretrained import PretrainedTagger, ScoredMention, parse_label_map, propose_label_map, split_name
from entaug.teacher.relabel import MentionOpinion, Relabeller, create_relabeller
from helpers import tiny
from helpers.command_line import fails

LABELS = ["PER", "LOC", "ORG"]


def sentence(text: str) -> Sentence:
    """Words with labels: ``Ada/PER left``."""
    words = [word.partition("/")[::2] for word in text.split()]
    mentions = [Mention(label, [(i, i + 1)]) for i, (_, label) in enumerate(words) if label]
    return Sentence([word for word, _ in words], mentions)


GOLD = [
    sentence(text)
    for text in (
        "Ada/PER left the old city of Rome/LOC for the sea",
        "Bo/PER is in Oslo/LOC and he will stay there for a week",
        "they said that Ada/PER and Bo/PER were not in Paris/LOC",
        "the people of Oslo/LOC went to see Rome/LOC and Paris/LOC",
    )
]


class Lookup(PretrainedTagger):
    """A tagger that knows words."""

    prefix = "lookup"
    scores: float | None = None
    known: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("Ada", "Bo"), "PERSON"),
        **dict.fromkeys(("Rome", "Oslo", "Paris"), "GPE"),
        "week": "DATE",
        "sea": "X",
    }

    def _load(self, model: str) -> None:
        self.name = f"lookup:{model}"

    @property
    def own_labels(self) -> list[str] | None:
        return sorted(set(self.known.values()))

    def _predict(self, sentences: Sequence[Sentence]) -> list[list[ScoredMention]]:
        return [
            [
                ScoredMention(Mention(self.known[w], [(i, i + 1)]), self.scores)
                for i, w in enumerate(s.tokens)
                if w in self.known
            ]
            for s in sentences
        ]


# ------------------------------------------------------------------------------------------------------ maps of labels


def test_a_map_is_measured_on_gold() -> None:
    tagger = Lookup("a").fit(GOLD)
    assert tagger.label_map_ is not None
    assert dict(tagger.label_map_.labels) == {"GPE": "LOC", "PERSON": "PER"}
    # By hand: 4 of 4 persons, 6 of 6 places; 10 gold mentions.
    assert tagger.notes == [
        (
            "lookup:a: measured labels GPE=LOC (6 of 6 right), PERSON=PER (4 of 4 right), left out: DATE (1), X (1); "
            "F1 100% on 4 gold sentences"
        )
    ]
    assert [s.mentions for s in tagger.predict(GOLD)] == [s.mentions for s in GOLD]


def test_a_label_that_lowers_f1_is_left_out() -> None:
    gold = [sentence("Ada/PER Bo/PER Rome/LOC a b c d e")]
    predicted = [[Mention("P" if i < 2 else "L", [(i, i + 1)]) for i in range(8)]]
    # With P alone F1 is 4/5; with L, right once in six, 6/11.
    assert dict(propose_label_map(gold, predicted).labels) == {"P": "PER"}
    assert dict(propose_label_map(gold, predicted, {"L": "LOC", "P": ""}).labels) == {"L": "LOC"}


@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=5), min_size=1, max_size=6))
def test_no_other_choice_of_labels_is_better(rows: list[list[tuple[str, int]]]) -> None:
    predicted = [[Mention(label, [(i, i + 1)]) for label, i in sorted(set(row))] for row in rows]
    gold = [sentence("u/X v/Y w x/X y") for _ in rows]
    try:
        chosen = propose_label_map(gold, predicted)
    except ParameterError:
        chosen = None
    best = chosen.f1 if chosen else 0.0
    for label in "abc":
        for target in "XY":
            assert propose_label_map(gold, predicted, {label: target}).f1 <= best + 1e-9


def test_texts_of_maps() -> None:
    assert parse_label_map(" PERSON=PER; GPE = LOC,DATE=none,X=") == {
        "PERSON": "PER",
        "GPE": "LOC",
        "DATE": "",
        "X": "",
    }
    assert split_name("a/b@rev") == ("a/b@rev", None)
    assert split_name("C:/x@A=B") == ("C:/x", {"A": "B"})
    for text in ("PERSON", "=PER", "A=B,A=C", ",;"):
        with pytest.raises(ParameterError):
            parse_label_map(text)


def test_given_maps_are_checked() -> None:
    tagger = Lookup("a@PERSON=PER;GPE=").fit(GOLD)
    assert tagger.known_labels == ["PER"]
    assert tagger.name == "lookup:a@GPE=;PERSON=PER"
    assert "no label stands for LOC" in tagger.notes[1]
    with pytest.raises(ParameterError, match=r"no label 'HUMAN'; it has: DATE, GPE, PERSON, X"):
        Lookup("a@HUMAN=PER")
    with pytest.raises(ParameterError, match=r"names MISC, which the corpus does not have; the corpus has: LOC, PER"):
        Lookup("a@PERSON=MISC").fit(GOLD)
    with pytest.raises(ParameterError, match=r"gives no label of the tagger one of the corpus; the corpus has: LOC"):
        Lookup("a@PERSON=none").fit(GOLD)
    with pytest.raises(ParameterError, match=r"no label of the tagger stands for one of the corpus"):
        Lookup("a").fit([sentence("nothing/DRUG is here")])
    with pytest.raises(ParameterError, match="no map of labels yet"):
        Lookup("a").predict(GOLD)


def test_a_tagger_cannot_be_trained_further_and_serves_its_language() -> None:
    with pytest.raises(ParameterError, match="cannot be trained further"):
        Lookup("a").fit(GOLD, augmented=GOLD)
    tagger = Lookup("a")
    tagger.languages = ["de"]
    with pytest.raises(InputError, match=r"tagger lookup:a serves German, and the text looks English"):
        tagger.fit(GOLD * 3)


def test_the_confidence_of_hard_labels_is_measured() -> None:
    tagger = Lookup("a").fit(GOLD)
    [soft] = tagger.tag_probabilities(GOLD[:1])
    assert soft.tags == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    np.testing.assert_allclose(soft.values.sum(axis=1), 1, atol=1e-6)
    # By hand: 4 of 4 persons right is (4 + 1) / (4 + 2); of 31 words outside all are outside in gold.
    assert soft.values[0, 3] == pytest.approx(5 / 6)
    outside = sum(len(s) for s in GOLD) - 10
    assert soft.values[1, 0] == pytest.approx((outside + 1) / (outside + 2), abs=1e-5)
    wrong = GOLD[0].with_(mentions=[Mention("PER", [(1, 2)])])
    right, worse = tagger.confidences([GOLD[0], wrong])
    assert 1 > right > worse > 0
    assert tagger.confidences([GOLD[0].with_(mentions=[Mention("DRUG", [(0, 1)])])]) == [0]
    tagger.scores = 0.75
    assert tagger.tag_probabilities(GOLD[:1])[0].values[0, 3] == pytest.approx(0.75)


def test_components_take_them() -> None:
    unlabelled = [Sentence("the sea is near Rome and Ada".split()), Sentence("nobody".split())]
    method = create_augmenter("selftrain", unlabelled=unlabelled, tagger=Lookup("a")).fit(GOLD)
    assert {str(new) for new in method.augment(GOLD)} == {"the sea is near [Rome]LOC and [Ada]PER", "nobody"}
    from entaug.filters.models import Consistency

    wrong = GOLD[0].with_(mentions=GOLD[0].mentions[:1])
    judge = Consistency(tagger=Lookup("a")).fit(GOLD)
    assert judge.judge([GOLD[0], wrong], [None, None]) == [None, "the tagger predicts other mentions"]
    assert "measured labels" in judge.model_notes()[0]
    partial = Consistency(tagger=Lookup("a@PERSON=PER")).fit(GOLD)
    assert partial.judge([GOLD[0], wrong], [None, None]) == [None, None], "nothing is known of LOC"


def test_labels_without_a_counterpart_stay_as_they_are() -> None:
    gold = [*GOLD, sentence("Ada/PER likes the Odyssey/BOOK and the sea")]
    text = sentence("Ada/LOC saw Rome and the Odyssey/BOOK of Bo/BOOK")
    saw_rome = sentence("Ada/LOC saw Rome/LOC and the Odyssey/BOOK of Bo/BOOK")
    for values, expected in (
        ({"add_threshold": 0.5}, saw_rome),
        ({"labels": "mean", "add_threshold": 0.5}, saw_rome),
        ({"labels": "teacher"}, sentence("Ada/PER saw Rome/LOC and the Odyssey/BOOK of Bo/BOOK")),
    ):
        teacher = Relabeller(tagger=Lookup("a"), doubt_threshold=0.2, **values).fit(gold)
        [result] = teacher.relabel([text])
        assert result.sentence.mentions == expected.mentions, values
        soft = TagProbabilities.from_sentence(result.sentence)
        assert soft is not None
        for position in (5, 7):  # the words of the books have no other label, with any probability
            assert soft.values[position, soft.tags.index("B-BOOK")] == 1
    assert "no label stands for BOOK" in teacher.model_notes()[1]
    hard = MentionOpinion([Mention("PER", [(0, 1)])], is_flat=True, unjudged=[Mention("BOOK", [(0, 2)])])
    assert hard.mentions == (Mention("BOOK", [(0, 2)]),)
    tagger = Lookup("a").fit(gold)
    assert tagger.confidences([gold[-1]])[0] > 0.8
    assert tagger.confidences([sentence("Ada likes the Odyssey/BOOK and the sea")])[0] < 0.8
    with pytest.raises(ParameterError, match="no label of the tagger stands for one of the corpus"):
        Relabeller(tagger=Lookup("a")).fit([sentence("the Odyssey/BOOK is here and they like it")])


# -------------------------------------------------------------------------------------------------------------- models


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nlp = spacy.blank("en")
    patterns = [("PERSON", "Ada"), ("PERSON", "Bo"), ("GPE", "Rome"), ("GPE", "Oslo"), ("DATE", "week")]
    ruler: Any = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": label, "pattern": word} for label, word in patterns])
    folder = tmp_path_factory.mktemp("pipeline")
    nlp.to_disk(folder)
    return folder


def test_spacy(pipeline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tagger = resolve("tagger", f"spacy:{pipeline}").fit(GOLD)
    assert dict(tagger.label_map_.labels) == {"GPE": "LOC", "PERSON": "PER"}
    assert tagger.languages == {"en"}
    [new] = tagger.predict([Sentence(["-", "Rome", "\u200d", "Ada", "Lovelace"])])
    assert [(m.label, m.spans) for m in new.mentions] == [("LOC", ((1, 2),)), ("PER", ((3, 4),))]
    gold = tmp_path / "gold.conll"
    entaug.write(GOLD, gold)
    assert main(["evaluate", str(gold), "--tagger", f"spacy:{pipeline}@PERSON=PER,GPE=LOC"]) == 0
    out, err = capsys.readouterr()
    assert "100.0     80.0     88.9" in out, "Paris is missing, twice of 10"
    assert "given labels GPE=LOC (4 of 4 right)" in err
    assert "no label 'HUMAN'" in fails(capsys, 2, "evaluate", str(gold), "--tagger", f"spacy:{pipeline}@HUMAN=PER")
    assert "is not trained" in fails(capsys, 2, "evaluate", str(gold), "--tagger", "linear")
    assert "a file of predictions, or a tagger" in fails(capsys, 2, "evaluate", str(gold))


def test_the_command_line_prints_the_map(pipeline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, text, out = tmp_path / "gold.jsonl", tmp_path / "text.txt", tmp_path / "out.jsonl"
    entaug.write(GOLD, gold)
    text.write_text("Ada came to Rome .\nNobody went to Oslo .\n", encoding="utf-8")
    tagger = f"spacy:{pipeline}"
    options = ["--method", "selftrain", "--unlabelled", str(text), "--tagger", tagger, "--only-new", "-o", str(out)]
    assert main(["augment", str(gold), *options]) == 0
    assert "measured labels GPE=LOC" in capsys.readouterr().err
    assert sorted(map(str, entaug.read(out))) == ["Nobody went to [Oslo]LOC .", "[Ada]PER came to [Rome]LOC ."]
    wrong = tmp_path / "wrong.jsonl"
    entaug.write([s.with_(mentions=s.mentions[:1]) for s in GOLD], wrong)
    again = ["relabel", str(wrong), "--gold", str(gold), "--teacher", f"{tagger}:add_threshold=0.6", "-o"]
    assert main([*again, str(tmp_path / "right.jsonl")]) == 0
    assert "measured labels GPE=LOC" in capsys.readouterr().err
    fixed = [s for s in entaug.read(tmp_path / "right.jsonl") if "Rome" in s.tokens]
    assert all("[Rome]LOC" in str(s) for s in fixed)
    assert create_relabeller(f"{tagger}@PERSON=PER;GPE=LOC").tagger == f"{tagger}@PERSON=PER;GPE=LOC"  # type: ignore[union-attr]
    [judge] = create_filters(f"consistency:tagger={tagger}@PERSON=PER;GPE=LOC")
    assert judge.fit(GOLD).judge(GOLD[:1], [None]) == [None]


def test_pipelines_that_predict_nothing(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path)
    with pytest.raises(MissingModelError, match="predicts no entities"):
        resolve("tagger", f"spacy:{tmp_path}")
    with pytest.raises(MissingModelError, match="neither a folder nor an installed pipeline"):
        resolve("tagger", "spacy:xx_nothing_sm")
    for name in ("spacy", "hf:", "gliner"):
        with pytest.raises(ParameterError, match="names no model"):
            check_name("tagger", name)


@pytest.mark.models
def test_the_starter_pipeline() -> None:
    tagger = resolve("tagger", "spacy:en_core_web_sm")
    gold = [sentence("Barack/PER lives in London/LOC with his dog ."), sentence("Angela/PER went to Berlin/LOC .")]
    assert dict(tagger.fit(gold).label_map_.labels) == {"GPE": "LOC", "PERSON": "PER"}


@pytest.mark.parametrize(
    "tags",
    [
        ["O", "B-GPE", "I-GPE", "B-PERSON", "I-PERSON"],
        ["O", "I-GPE", "B-GPE", "I-PERSON"],
        ["GPE", "PERSON", "O"],
        ["U-GPE", "U-PERSON", "O", "L-GPE"],
    ],
)
def test_token_classifiers(tags: list[str], tmp_path: Path) -> None:
    def tag(label: str) -> int:
        names = {"LOC": "GPE", "PER": "PERSON"}
        return next(i for i, t in enumerate(tags) if (t.endswith(names[label]) if label else t == "O"))

    answers = [
        [tag(next((m.label for m in s.mentions if i in m.positions()), "")) for i in range(len(s))] for s in GOLD
    ]
    folder = tiny.token_classifier(tmp_path, tags, [s.tokens for s in GOLD], answers)
    tagger = resolve("tagger", f"hf:{folder}").fit(GOLD)
    assert dict(tagger.label_map_.labels) == {"GPE": "LOC", "PERSON": "PER"}
    assert [s.mentions for s in tagger.predict(GOLD)] == [s.mentions for s in GOLD]
    long = Sentence(GOLD[0].tokens * 9)
    together = tagger.tag_probabilities([*GOLD, long, Sentence(["\u200d", "x" * 500])])
    alone = [tagger.tag_probabilities([s])[0] for s in [*GOLD, long]]
    for a, b in zip(together, alone, strict=False):
        np.testing.assert_allclose(a.values.sum(axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(a.values, b.values, atol=1e-4)
    assert all(0 <= c <= 1 for c in tagger.confidences(GOLD))


def test_models_that_classify_no_tokens(tmp_path: Path) -> None:
    tiny.save(tmp_path / "masked", "bert")
    with pytest.raises(MissingModelError, match=r"is no trained token classifier \(classifier"):
        resolve("tagger", f"hf:{tmp_path / 'masked'}")
    tiny.token_classifier(tmp_path / "unnamed", ["LABEL_0", "LABEL_1"], [s.tokens for s in GOLD])
    with pytest.raises(MissingModelError, match="its tags have no names"):
        resolve("tagger", f"hf:{tmp_path / 'unnamed'}")


def test_gliner(tmp_path: Path) -> None:
    pytest.importorskip("gliner", reason="the extra gliner is not installed")
    folder = tiny.gliner(tmp_path)
    tagger = resolve("tagger", f"gliner:{folder}@person=PER;city=LOC")
    for words in (["Ada", "left"], ["\u200d", "a", "\u0645"], ["word"] * 90):
        for one in tagger._predict([Sentence(words)])[0]:
            assert one.mention.label in ("person", "city")
            assert one.score is not None
            assert 0.5 <= one.score <= 1
    again = resolve("tagger", f"gliner:{folder}@person=PER;city=LOC")
    assert again._predict(GOLD) == tagger._predict(GOLD)
    assert again._predict(GOLD[1:2]) == tagger._predict(GOLD)[1:2]
    tagger._predict = lambda some: [[ScoredMention(Mention("person", m.spans), 0.9) for m in s.mentions] for s in some]
    assert tagger.fit(GOLD).known_labels == ["LOC", "PER"]
    assert [label_in_words(label) for label in ("PER", "creative-work", "_")] == ["person", "creative work", "_"]
    with pytest.raises(MissingModelError, match="is no GLiNER model"):
        resolve("tagger", f"gliner:{tiny.save(tmp_path / 'bert', 'bert')}")
