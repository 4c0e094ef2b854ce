"""Relabelling by a teacher: verdicts worked by hand, invariants, and the same result by every way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Self

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.backends.soft_labels import TagProbabilities
from entaug.commands.main import main
from entaug.core.data import Provenance
from entaug.core.edits import Edit
from entaug.errors import InputError, LossError, ParameterError, UnknownNameError
from entaug.methods import METHODS
from entaug.methods.augment import augment_file
from entaug.methods.base import NO_CANDIDATE, Augmenter, MethodInfo, Rejection
from entaug.methods.combined import parse_methods
from entaug.methods.types import Rejected
from entaug.teacher.relabel import SOFT_LABELS, Relabeller, TagOpinion, count_changes, create_relabeller
from helpers.command_line import interrupt_after
from helpers.fakes import FakeTagger
from helpers.strategies import sentences

LABELS = ("PER", "ORG", "LOC-x")
GOLD = [
    Sentence("Ada Byron met Bo in May".split(), [Mention("PER", [(0, 2)]), Mention("PER", [(3, 4)])], id="g1"),
    Sentence("Rome is far".split(), [Mention("LOC-x", [(0, 1)])], id="g2"),
    Sentence("Acme hires Bo".split(), [Mention("ORG", [(0, 1)]), Mention("PER", [(2, 3)])], id="g3"),
]


class NameTagger(FakeTagger):
    """A tagger that finds the names of its training sentences, each with the same probability.

    Args:
        sure: the probability of the tags that it predicts.
    """

    def __init__(self, sure: float = 0.95) -> None:
        super().__init__()
        self.sure = sure
        self.fits = 0
        self._names: dict[str, str] = {}

    def fit(self, train: Iterable[Sentence], **options: Any) -> Self:
        self.fits += 1
        train = list(train)
        mentions = [(s.tokens[m.start : m.end], m.label) for s in train for m in s.mentions]
        self._names = {word: label for words, label in mentions for word in words}
        self._pairs = {pair for words, _ in mentions for pair in pairwise(words)}
        return self

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        return [
            s.with_(mentions=p.mentions()) for s, p in zip(sentences, self.tag_probabilities(sentences), strict=True)
        ]

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        labels = sorted(set(self._names.values()))
        tags = ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]
        results = []
        for sentence in sentences:
            best = []
            for before, token in pairwise(("", *sentence.tokens)):
                prefix = "I" if (before, token) in self._pairs else "B"
                best.append(f"{prefix}-{self._names[token]}" if token in self._names else "O")
            rest = (1 - self.sure) / (len(tags) - 1)
            results.append(TagProbabilities(tags, [[self.sure if t == b else rest for t in tags] for b in best]))
        return results


class MentionTagger(NameTagger):
    """The same without probabilities, as ``w2ner``; it finds nested mentions of its training sentences."""

    def fit(self, train: Iterable[Sentence], **options: Any) -> Self:
        self._nested = {(s.tokens[m.start : m.end], m.label) for s in train for m in s.mentions}
        return self

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        results = []
        for s in sentences:
            ranges = [(i, j) for i in range(len(s)) for j in range(i + 1, len(s) + 1)]
            found = [
                Mention(label, [r]) for r in ranges for t, label in sorted(self._nested) if s.tokens[slice(*r)] == t
            ]
            results.append(s.with_(mentions=found))
        return results

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        raise ParameterError("gives no probabilities to tags")


@dataclass(kw_only=True, eq=False)
class Forgetful(Augmenter):
    """A method that replaces words outside mentions by a known name and does not label it, as ``lm`` may."""

    info: ClassVar[MethodInfo] = MethodInfo("forgetful", "forgetful-replacement", "", "")

    def _rewrite(self, sentence: Sentence, rng: Random) -> Sentence | Rejection:
        outside = [i for i, is_outside in enumerate(sentence.outside_mask()) if is_outside]
        if not outside:
            return NO_CANDIDATE
        at = rng.choice(outside)
        return sentence.edit([Edit(at, at + 1, (rng.choice(["Rome", "Acme", "so"]),))])


def teacher(sure: float = 0.95, gold: Sequence[Sentence] = GOLD, **params: Any) -> Relabeller:
    return Relabeller(tagger=NameTagger(sure), **params).fit(gold)


def details(sentence: Sentence) -> dict[str, Any]:
    assert sentence.provenance
    found: dict[str, Any] = sentence.provenance.details["relabelled"]
    return found


# ------------------------------------------------------------------------------------------------------ worked by hand


def test_a_name_without_label_is_added_if_the_teacher_is_sure() -> None:
    new = Sentence("Bo left Rome".split(), [Mention("PER", [(0, 1)])])
    sure, unsure = teacher().relabel([new])[0].sentence, teacher(0.85).relabel([new])[0].sentence
    assert sure.mentions == (Mention("PER", [(0, 1)]), Mention("LOC-x", [(2, 3)]))
    assert details(sure)["added"] == [{"label": "LOC-x", "spans": [[2, 3]], "probability": 0.95}]
    assert details(sure)["disagreement"] == pytest.approx(1 - 0.05 / 6, abs=1e-4)
    assert count_changes(sure) == {"added: LOC-x": 1}
    assert SOFT_LABELS not in sure.layout, "hard labels stay hard"
    assert unsure.mentions == new.mentions
    assert set(details(unsure)) == {"disagreement"}
    [none] = teacher(add_threshold=None).relabel([new])
    assert none.sentence.mentions == new.mentions


def test_an_improbable_label_is_softened_and_only_there() -> None:
    new = Sentence("Rome hires so".split(), [Mention("PER", [(0, 1)])])
    [(soft, rejection)] = teacher().relabel([new])
    assert rejection is None
    assert soft.mentions == new.mentions, "nothing is added where a mention is"
    assert count_changes(soft) == {"softened: PER": 1}
    probabilities = TagProbabilities.from_sentence(soft)
    assert probabilities is not None
    row = dict(zip(probabilities.tags, probabilities.values[0].tolist(), strict=True))
    assert row["B-PER"] == pytest.approx((1 + 0.05 / 6) / 2, abs=1e-4)
    assert row["B-LOC-x"] == pytest.approx(0.95 / 2, abs=1e-4)
    assert probabilities.values[1:, probabilities.tags.index("O")].tolist() == [1, 1]
    [(same, none)] = teacher(doubt_threshold=None).relabel([new])
    assert none is None
    assert SOFT_LABELS not in same.layout
    [(rejected, reason)] = teacher(improbable="reject").relabel([new])
    assert reason == "teacher: a mention is unlikely"
    assert [m["label"] for m in details(rejected)["disputed"]] == ["PER"]


def test_a_wrong_boundary_softens_the_words_of_both_mentions() -> None:
    gold = [Sentence("New York is far".split(), [Mention("LOC-x", [(0, 2)])]), *GOLD]
    new = Sentence("in New York".split(), [Mention("LOC-x", [(1, 2)])])
    [(soft, _)] = teacher(gold=gold).relabel([new])
    probabilities = TagProbabilities.from_sentence(soft)
    assert probabilities is not None
    inside = probabilities.tags.index("I-LOC-x")
    assert probabilities.values[:, inside].tolist() == pytest.approx([0, 0.004, 0.475], abs=1e-3)


def test_mean_and_teacher() -> None:
    new = Sentence("Bo in Rome".split(), [Mention("ORG", [(0, 1)])])
    [(mean, _)] = teacher(labels="mean").relabel([new])
    assert mean.mentions == (Mention("ORG", [(0, 1)]), Mention("LOC-x", [(2, 3)]))
    probabilities = TagProbabilities.from_sentence(mean)
    assert probabilities is not None
    assert probabilities.values.max(axis=1).tolist() == pytest.approx([0.504, 0.975, 0.975], abs=1e-3)
    [(taught, _)] = teacher(0.6, labels="teacher").relabel([new])
    assert taught.mentions == (Mention("PER", [(0, 1)]), Mention("LOC-x", [(2, 3)]))
    assert count_changes(taught) == {"added: PER": 1, "added: LOC-x": 1, "removed: ORG": 1}
    probabilities = TagProbabilities.from_sentence(taught)
    assert probabilities is not None
    assert probabilities.confidences.tolist() == pytest.approx([0.6] * 3, abs=1e-3)


def test_soft_labels_and_weights_that_a_sentence_has_are_joined_with() -> None:
    values = [[0.2, 0.8], [1.0, 0.0], [1.0, 0.0]]
    own = TagProbabilities(["O", "B-PER"], values, [1, 0, 1])
    new = own.attach_to(Sentence("Bo in Rome".split(), [Mention("PER", [(0, 1)])]))
    [(hard, _)] = teacher().relabel([new])
    [(mean, _)] = teacher(labels="mean").relabel([new])
    kept, joined = TagProbabilities.from_sentence(hard), TagProbabilities.from_sentence(mean)
    assert kept is not None
    assert joined is not None
    place, person = kept.tags.index("B-LOC-x"), kept.tags.index("B-PER")
    assert kept.values[2, place] == 1
    assert kept.values[0, person] == pytest.approx(0.8)
    assert joined.values[0, person] == pytest.approx((0.8 + 0.95) / 2, abs=1e-3)
    assert kept.weights is not None
    assert kept.weights.tolist() == [1, 0, 1]


def test_nested_mentions_are_compared_as_wholes() -> None:
    gold = [
        Sentence("University of Rome".split(), [Mention("ORG", [(0, 3)]), Mention("LOC", [(2, 3)])]),
        Sentence("Ada left".split(), [Mention("PER", [(0, 1)])]),
    ]
    new = Sentence("Ada likes University of Rome".split(), [Mention("PER", [(0, 1)]), Mention("PER", [(1, 2)])])
    relabeller = Relabeller(tagger=MentionTagger()).fit(gold)
    [(result, _)] = relabeller.relabel([new])
    assert result.mentions == (*new.mentions, Mention("ORG", [(2, 5)]), Mention("LOC", [(4, 5)]))
    assert count_changes(result) == {"added: ORG": 1, "added: LOC": 1, "disputed: PER": 1}
    assert SOFT_LABELS not in result.layout
    [(taught, _)] = Relabeller(tagger=MentionTagger(), labels="teacher").fit(gold).relabel([new])
    assert count_changes(taught) == {"added: ORG": 1, "added: LOC": 1, "removed: PER": 1}
    with pytest.raises(ParameterError, match="labels=mean needs probabilities of tags, which the teacher fake"):
        Relabeller(tagger=MentionTagger(), labels="mean").fit(gold)
    with pytest.raises(InputError, match="the teacher fake labels flat ones only; use the teacher w2ner"):
        Relabeller(tagger=NameTagger()).fit(gold)
    # Where gold mentions are flat, those of two that overlap are not both added.
    flat = [Sentence(["Rome"], [Mention("LOC", [(0, 1)])]), Sentence("of Rome".split(), [Mention("ORG", [(0, 2)])])]
    [(result, _)] = Relabeller(tagger=MentionTagger()).fit(flat).relabel([Sentence("of Rome !".split())])
    assert result.mentions == (Mention("ORG", [(0, 2)]),)


# ---------------------------------------------------------------------------------------------------------- invariants

WORDS = st.sampled_from("Ada Byron Bo Rome Acme met so far".split())


@settings(deadline=None, max_examples=150)
@given(
    st.lists(sentences(words=WORDS, flat=True), min_size=1, max_size=4),
    st.sampled_from(["method", "mean", "teacher"]),
    st.sampled_from([0.5, 0.8, 0.95, 0.99]),
    st.sampled_from([None, 0.0, 0.05, 0.3]),
    st.sampled_from([None, 0.0, 0.7, 0.9]),
)
def test_whatever_it_is_given(
    made: list[Sentence], labels: Any, sure: float, doubt: float | None, add: float | None
) -> None:
    relabeller = teacher(sure, labels=labels, doubt_threshold=doubt, add_threshold=add)
    results = relabeller.relabel(made)
    for before, (after, rejection) in zip(made, results, strict=True):
        assert rejection is None
        assert after.tokens == before.tokens
        assert after.is_flat
        found = TagProbabilities.from_sentence(after)
        if found is not None:
            assert found.values.sum(axis=1).tolist() == pytest.approx([1] * len(after), abs=1e-3)
        assert (found is not None) >= (labels != "method")
        changes = count_changes(after)
        added = Counter({k.split(": ")[1]: n for k, n in changes.items() if k.startswith("added")})
        removed = Counter({k.split(": ")[1]: n for k, n in changes.items() if k.startswith("removed")})
        count = Counter(m.label for m in before.mentions)
        count.update(added)
        count.subtract(removed)
        assert +count == Counter(m.label for m in after.mentions), "no count is lost"
        if labels != "teacher":
            assert set(before.mentions) <= set(after.mentions)
            assert not removed
        assert 0 <= details(after)["disagreement"] <= 1
        assert before.provenance is None, "what is given stays as it is"
    assert [relabeller.relabel([one])[0] for one in made] == results, "company changes nothing"


@settings(deadline=None, max_examples=60)
@given(st.data(), sentences(words=WORDS, flat=True))
def test_the_probability_of_a_mention_is_the_lowest_of_its_tags(data: Any, sentence: Sentence) -> None:
    tags = ["O", *(f"{prefix}-{label}" for label in LABELS for prefix in "BI")]
    rows = data.draw(
        st.lists(st.lists(st.floats(0.01, 1), min_size=7, max_size=7), min_size=len(sentence), max_size=len(sentence))
    )
    probabilities = TagProbabilities(tags, rows)
    opinion = TagOpinion(probabilities, tags)
    for mention in sentence.mentions:
        column = {tag: probabilities.values[:, i] for i, tag in enumerate(tags)}
        wanted = [column[f"B-{mention.label}"][mention.start]]
        wanted += [column[f"I-{mention.label}"][i] for i in range(mention.start + 1, mention.end)]
        wanted += [1 - column[f"I-{mention.label}"][mention.end]] if mention.end < len(sentence) else []
        assert opinion.probability(mention) == pytest.approx(min(map(float, wanted)), abs=1e-6)


def test_one_field_two_names() -> None:
    assert TagProbabilities.field == SOFT_LABELS


# ------------------------------------------------------------------------------------------------------- within methods


@pytest.fixture(autouse=True)
def with_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS._built_in, "forgetful", "test_relabelling:Forgetful")


def test_a_method_that_forgets_a_label_is_cured() -> None:
    plain = entaug.augment(GOLD, "forgetful", copies=3)
    names = {"Rome": "LOC-x", "Acme": "ORG"}

    def missing(made: Iterable[Sentence]) -> int:
        labelled = [(s, {i for m in s.mentions for i in m.positions()}) for s in made]
        return sum(token in names and i not in known for s, known in labelled for i, token in enumerate(s.tokens))

    assert missing(plain) > 2
    augmenter = Forgetful(copies=3, teacher=Relabeller(tagger=NameTagger())).fit(GOLD)
    cured = list(augmenter.augment(GOLD))
    assert missing(cured) == 0
    assert len(cured) == len(plain)
    counted = augmenter.statistics_.relabelled
    assert counted == sum((count_changes(s) for s in cured), Counter())
    assert counted.total() >= missing(plain)
    assert all("teacher=fake:labels=method" in s.fields["entaug"]["signature"] for s in cured)
    assert "teacher" not in plain[0].fields["entaug"]["signature"]


def test_rejected_drafts_are_drawn_again_and_counted() -> None:
    # No mention is made that the teacher does not know, so the labels of lwtr, which mixes words, are what is doubted.
    gold = [*GOLD, Sentence("Ada so".split(), [Mention("PER", [(0, 2)])])]
    relabeller = Relabeller(tagger=NameTagger(0.99), improbable="reject")
    augmenter = entaug.create_augmenter("lwtr", p=1.0, copies=3, teacher=relabeller, filters="validity").fit(gold)
    outcomes = [o for _, _, some in augmenter.run().results(gold, [sentence.key for sentence in gold]) for o in some]
    refused = [o for o in outcomes if isinstance(o, Rejected) and o.reason == "teacher: a mention is unlikely"]
    assert refused
    for outcome in refused:
        assert outcome.sentence is not None
        assert outcome.sentence.provenance is not None
        assert outcome.sentence.provenance.rejected == outcome.reason


def test_one_teacher_for_several_methods_is_trained_once() -> None:
    tagger = NameTagger()
    made = entaug.augment(GOLD, "mr+sis+forgetful", teacher=Relabeller(tagger=tagger))
    assert tagger.fits == 1
    assert {s.fields["entaug"]["method"] for s in made} >= {"sis", "forgetful"}
    named = parse_methods("mr+sis", teacher="ensemble:labels=mean")
    first, second = named.augmenters
    assert first.teacher is second.teacher
    relabeller = Relabeller(tagger=NameTagger()).fit(GOLD)
    relabeller.fit(GOLD[:2])
    assert relabeller.tagger.fits == 2, "other sentences train it anew"  # type: ignore[union-attr]


def test_soft_labels_of_the_source_are_not_those_of_the_draft() -> None:
    own = TagProbabilities(["O", "B-PER"], [[1, 0]] * 6)
    gold = [own.attach_to(GOLD[0]).with_(provenance=Provenance("older", details={"note": 1})), *GOLD[1:]]
    for params in ({}, {"teacher": Relabeller(tagger=NameTagger())}):
        made = list(entaug.augment(gold, "forgetful", **params))
        assert made
        for new in made:
            assert SOFT_LABELS not in new.layout
            assert "note" not in new.fields["entaug"]


# -------------------------------------------------------------------------------------------------- files and commands


def train_file(folder: Path) -> Path:
    path = folder / "train.jsonl"
    entaug.write(GOLD * 1, path)
    return path


def test_augment_relabel_and_python_agree(tmp_path: Path) -> None:
    gold = train_file(tmp_path)
    relabeller: dict[str, Any] = {"tagger": NameTagger(), "labels": "mean"}
    whole = augment_file(
        gold, tmp_path / "1.jsonl", Forgetful(copies=3, teacher=Relabeller(**relabeller)), only_new=True
    )
    augment_file(gold, tmp_path / "plain.jsonl", Forgetful(copies=3), only_new=True)
    after = entaug.relabel(tmp_path / "plain.jsonl", tmp_path / "2.jsonl", Relabeller(**relabeller), gold=gold)
    in_memory = Forgetful(copies=3, teacher=Relabeller(**relabeller)).fit(GOLD).augment(GOLD)

    def content(made: Iterable[Sentence]) -> list[Any]:
        return [(s.id, s.tokens, s.mentions, s.layout, details(s)) for s in made]

    first = content(entaug.read(tmp_path / "1.jsonl"))
    assert first == content(entaug.read(tmp_path / "2.jsonl")) == content(in_memory)
    assert whole.statistics.relabelled == after.relabelled
    assert after.relabelled.total() > 0
    assert after.kept == after.augmented == len(first)
    added = sum(count for change, count in after.relabelled.items() if change.startswith("added"))
    assert sum(after.after.mentions.values()) == sum(after.before.mentions.values()) + added


@pytest.mark.parametrize("labels", ["method", "mean"])
def test_an_interrupted_run_gives_the_same_bytes(tmp_path: Path, labels: Any) -> None:
    gold = [Sentence((*s.tokens, f"w{n}"), s.mentions, id=f"{s.id}-{n}") for n in range(90) for s in GOLD]
    train = tmp_path / "train.jsonl"
    entaug.write(gold, train)

    def run(name: str, progress: Any = None) -> Any:
        augmenter = Forgetful(teacher=Relabeller(tagger=NameTagger(), labels=labels))
        options = {"progress": progress} if progress else {}
        return augment_file(train, tmp_path / name, augmenter, **options)

    whole = run("whole.jsonl")
    with pytest.raises(KeyboardInterrupt):
        run("part.jsonl", interrupt_after(201))
    resumed = run("part.jsonl")
    assert (tmp_path / "part.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert resumed.statistics.to_dict() == whole.statistics.to_dict()
    assert whole.statistics.relabelled.total() > 20


def test_formats_without_soft_labels(tmp_path: Path) -> None:
    entaug.write([s.with_(id=None) for s in GOLD], tmp_path / "train.conll")
    new = [Sentence("Rome hires so".split(), [Mention("PER", [(0, 1)])])]
    entaug.write(new, tmp_path / "new.conll")
    method = Forgetful(teacher=Relabeller(tagger=NameTagger(), labels="mean"))
    with pytest.raises(LossError, match=r"cannot store probabilities of tags.*write JSON lines"):
        augment_file(tmp_path / "train.conll", tmp_path / "out.conll", method)
    gold = tmp_path / "train.conll"
    with pytest.raises(LossError, match="tag_probabilities"):
        entaug.relabel(tmp_path / "new.conll", tmp_path / "out.conll", Relabeller(tagger=NameTagger()), gold=gold)
    assert not (tmp_path / "out.conll").exists()
    told = entaug.relabel(
        tmp_path / "new.conll", tmp_path / "out.conll", Relabeller(tagger=NameTagger()), gold=gold, allow_loss=["field"]
    )
    assert told.relabelled == {"softened: PER": 1}
    assert told.lost == {"field 'tag_probabilities'": 1}
    method = Forgetful(copies=2, teacher=Relabeller(tagger=NameTagger(), doubt_threshold=0.96))  # doubts everything
    summary = augment_file(gold, tmp_path / "soft.conll", method)
    assert any("softened mentions keep their labels; write JSON lines" in note for note in summary.notes)


def test_hostile_input(tmp_path: Path) -> None:
    relabeller = teacher()
    with pytest.raises(InputError, match="the label X of the sentence odd is not among those of the training"):
        relabeller.relabel([Sentence(["a"], [Mention("X", [(0, 1)])], id="odd")])
    with pytest.raises(InputError, match="the sentence n has nested or discontinuous mentions"):
        relabeller.relabel([Sentence("a b".split(), [Mention("PER", [(0, 2)]), Mention("PER", [(0, 1)])], id="n")])
    with pytest.raises(ParameterError, match="the teacher is not fitted"):
        Relabeller(tagger=NameTagger()).relabel([])
    with pytest.raises(ParameterError, match="forgetful is not fitted"):
        list(Forgetful(teacher=Relabeller(tagger=NameTagger())).augment(GOLD))
    with pytest.raises(InputError, match="no mentions, which a teacher needs"):
        Relabeller(tagger=NameTagger()).fit([Sentence(["a"])])
    trained = NameTagger().fit(GOLD[1:2])
    trained.labels_ = ["LOC-x"]  # type: ignore[attr-defined]
    trained.save = lambda folder: Path(folder).mkdir()  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="the teacher does not know the label ORG of the training sentences"):
        Relabeller(tagger=trained).fit(GOLD)
    for text, error, message in (
        ("linaer", UnknownNameError, "did you mean 'linear'"),
        ("linear:labels=soft", ParameterError, "labels must be one of"),
        ("linear:label=mean", UnknownNameError, "did you mean 'labels'"),
        ("linear:add_threshold=2", ParameterError, "add_threshold must be"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            create_relabeller(text)
        with pytest.raises(error, match=re.escape(message)):
            entaug.create_augmenter("mr", teacher=text)
    assert create_relabeller("none") is None
    for tagger in ("linear:encoder=mpnet", "linear:encoder=mpnet;steps=5"):
        for text, labels in ((tagger, "method"), (f"{tagger}:labels=mean", "mean")):
            made = create_relabeller(text)
            assert (made.tagger, made.labels) == (tagger, labels)  # type: ignore[union-attr]
    assert create_relabeller("labels=mean").spec.startswith("ensemble:labels=mean")  # type: ignore[union-attr]
    with pytest.raises(InputError, match="holds no tagger"):
        Relabeller(tagger=str(tmp_path)).load()


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from entaug.backends.resolve import BACKENDS

    monkeypatch.setitem(BACKENDS["tagger"].registry._built_in, "ensemble", "test_relabelling:NameTagger")
    gold = train_file(tmp_path)
    out, better = tmp_path / "out.jsonl", tmp_path / "better.jsonl"
    assert main(["augment", str(gold), "-m", "forgetful", "--copies", "3", "-o", str(out), "--teacher"]) == 0
    told = capsys.readouterr().err
    counts = sum((count_changes(s) for s in entaug.read(out)), Counter())
    assert f"added by the teacher: {counts.total()} mentions (" in told
    assert len({change.partition(":")[0] for change in counts}) == 1
    assert main(["augment", str(gold), "-m", "forgetful", "--copies", "3", "-o", str(out), "--force"]) == 0
    assert "teacher" not in capsys.readouterr().err
    assert main(["relabel", str(out), "-o", str(better), "--json"]) == 0
    summary = orjson.loads(capsys.readouterr().out)
    assert summary["relabelled"] == counts
    assert summary["gold"] == len(GOLD)
    assert main(["relabel", str(out), "-o", str(better), "--force", "--teacher", "ensemble:labels=teacher"]) == 0
    assert "augmented sentences changed, 3 gold sentences unchanged" in capsys.readouterr().err
    assert main(["relabel", str(out), "-o", str(better), "--force", "--teacher", "none"]) == 2
    assert "no teacher is given" in capsys.readouterr().err
    assert main(["relabel", str(gold), "-o", str(better), "--force"]) == 2
    assert "holds no augmented sentence" in capsys.readouterr().err
    rejected = tmp_path / "rejected.jsonl"
    doubt = "ensemble:doubt_threshold=1,improbable=reject"
    assert (
        main(["relabel", str(out), "-o", str(better), "--force", "--teacher", doubt, "--rejected", str(rejected)]) == 0
    )
    assert f"rejected by teacher: {len(entaug.read(rejected))} (a mention is unlikely" in capsys.readouterr().err
    assert [s.id for s in entaug.read(better)][:3] == ["g1", "g2", "g3"]


def test_the_example_corpus_has_nothing_to_add_to_itself() -> None:
    gold = list(entaug.read(EXAMPLE / "train.conll"))
    results = Relabeller(tagger=FakeTagger()).fit(gold).relabel(gold)
    assert not any(count_changes(sentence) for sentence, _ in results)
    assert max(details(sentence)["disagreement"] for sentence, _ in results) < 0.1
