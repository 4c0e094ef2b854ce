"""Methods as augmenters of spaCy; tests/commands/test_installed.py has them in ``spacy train``."""

from __future__ import annotations

import inspect
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("spacy")

import spacy
from spacy.tokens import DocBin, Span
from spacy.training import Corpus, Example
from spacy.util import registry
from thinc.api import Config, ConfigValidationError

import entaug
from conftest import EXAMPLE, ROOT
from entaug import Mention, OnlineDataset, Sentence, create_augmenter
from entaug.config.params import REQUIRED, parameters
from entaug.errors import InputWarning, ParameterError
from entaug.formats.docbin import doc_of_sentence, sentence_of_doc
from entaug.methods import METHODS, spacy_augmenters
from entaug.methods.spacy_augmenters import SpacyAugmenter
from helpers.faked_methods import corpus_of, make

REFUSED = {"cassi", "daga", "gal", "mulda", "selftrain"}
GOLD = list(entaug.read(EXAMPLE / "train.conll"))[:30]


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spacy_augmenters, "_latest", {})


@pytest.fixture
def train(tmp_path: Path) -> Path:
    entaug.write(GOLD, tmp_path / "train.spacy")
    return tmp_path / "train.spacy"


def of(name: str, **arguments: Any) -> SpacyAugmenter:
    """The augmenter that spaCy gets for the block of a config."""
    factory = getattr(spacy_augmenters, name)
    augmenter: SpacyAugmenter = factory(**arguments)
    return augmenter


def sentences(examples: Any, group: str | None = None) -> list[Any]:
    """What a component learns from: tokens and mentions."""
    read = [sentence_of_doc(example.reference, group) for example in examples]
    return [(sentence.tokens, sentence.mentions) for sentence in read if sentence is not None]


# ------------------------------------------------------------------------------------------------------------- registry


def test_every_method_has_an_entry_point_and_its_parameters() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    places = {f"entaug.{name}.v1": f"entaug.methods.spacy_augmenters:{name}" for name in METHODS._built_in}
    assert declared["spacy_augmenters"] == places
    for name in METHODS._built_in:
        taken = inspect.signature(getattr(spacy_augmenters, name)).parameters
        assert [*taken] == ["train", "spans_key", *(p.name for p in parameters(METHODS[name]))]
    with pytest.raises(AttributeError, match="nomethod"):
        _ = spacy_augmenters.nomethod


@pytest.mark.parametrize("name", [*METHODS._built_in])
def test_a_method_rewrites_example_by_example_or_says_why_not(name: str) -> None:
    if name in REFUSED:
        with pytest.raises(ParameterError, match=f"{name} makes .*; augment the file before: entaug augment"):
            SpacyAugmenter(make(name))
        needed: dict[str, list[str]] = {p.name: [] for p in parameters(METHODS[name]) if p.default is REQUIRED}
        with pytest.raises(ConfigValidationError, match="augment the file before"):
            of(name, train="train.spacy", **needed)
        return
    gold = [sentence for sentence in corpus_of(name) if all(m.is_contiguous for m in sentence.mentions)][-40:]
    group = None if all(sentence.is_flat for sentence in gold) else "sc"
    augmenter, nlp = SpacyAugmenter(make(name).fit(gold), group), spacy.blank("en")
    docs = [doc_of_sentence(sentence, nlp.vocab, group) for sentence in gold]
    found = [list(augmenter(nlp, Example(nlp.make_doc(doc.text), doc))) for doc in docs]
    assert [examples[0].reference for examples in found] == docs
    new = [sentence for examples in found for sentence in sentences(examples[1:], group)]
    assert new
    assert not set(new) & {(sentence.tokens, sentence.mentions) for sentence in gold}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"p": 3}, r"entaug.mr.v1 -> p\s+p must be a number from 0 to 1, not 3"),
        ({"donors": "similr"}, "did you mean 'similar'"),
        ({"spans_key": 1}, "spans_key must be a string, not 1; name a group of spans"),
        ({"train": None}, r"train must be a string, not None; write train = \${paths.train}"),
        ({"train": "none.spacy"}, "none.spacy: no such file or folder; set paths.train"),
        ({"train": "empty"}, "empty: has no files that end in .spacy"),
        ({"spans_key": "other"}, "other"),
        ({"q": 1}, "q"),
    ],
)
def test_a_mistake_is_one_error_of_the_config(
    train: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(train.parent)
    (train.parent / "empty").mkdir()
    nlp = spacy.blank("en")
    doc = doc_of_sentence(GOLD[0], nlp.vocab, "sc")
    if "spans_key" in arguments:
        DocBin(docs=[doc]).to_disk(train)
    registry.augmenters.register("entaug.mr.test", func=spacy_augmenters.mr)
    block = {"@augmenters": "entaug.mr.test", "train": "train.spacy", **arguments}
    with pytest.raises(ConfigValidationError, match=message) as caught:
        registry.resolve(Config({"augmenter": block}))
    assert len(list(caught.value.errors)) == 1


# ------------------------------------------------------------------------------------------------------------ examples


def test_a_worked_example() -> None:
    gold = [Sentence(text.split(), [Mention("PER", [(0, 1)])]) for text in ("Ada sings .", "Bo rests .")]
    augmenter, nlp = SpacyAugmenter(create_augmenter("mr", p=1.0).fit(gold)), spacy.blank("en")
    doc = doc_of_sentence(gold[0].with_(spaces=(" ", "", "\n")), nlp.vocab)
    first, second = augmenter(nlp, Example(nlp.make_doc(doc.text), doc))
    assert first.reference is doc
    assert (second.text, second.reference.ents[0].text) == ("Bo sings.\n", "Bo")
    assert second.get_aligned_ner() == ["U-PER", "O", "O", "O"]
    assert second.reference.user_data["entaug"]["method"] == "mr"
    assert second.reference.user_data["entaug"]["sources"] == (gold[0].key,)


def test_passes_are_the_epochs_of_an_online_dataset(train: Path) -> None:
    corpus, nlp = Corpus(train, augmenter=of("mr", train=train, p=0.5, copies=2, seed=7)), spacy.blank("en")
    online = OnlineDataset(GOLD, create_augmenter("mr", p=0.5, copies=2, seed=7).fit(GOLD), keep_gold=False)
    contents = [(sentence.tokens, sentence.mentions) for sentence in GOLD]
    passes = []
    for epoch in range(3):
        drawn = [(new.tokens, new.mentions) for new in online.set_epoch(epoch)]
        expected = []
        for i, gold in enumerate(contents):
            expected += [gold, *(new for new in drawn[i :: len(GOLD)] if new != gold)]
        passes.append(sentences(corpus(nlp)))
        assert passes[-1] == expected
    assert passes[0] != passes[1] != passes[2] != passes[0]
    again = Corpus(train, augmenter=of("mr", train=train, p=0.5, copies=2, seed=7))
    assert sentences(again(nlp)) == passes[0]


def test_predicted_tokens_come_from_where_those_of_the_source_come_from(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    words, spaces = ["Mr", ".", "Ada", "can", "not", "sing"], ["", " ", " ", "", " ", ""]  # spaCy: Mr. Ada can not sing
    names = [Sentence(words, [Mention("PER", [(2, 3)])], spaces=spaces)]
    names.append(Sentence(["Bo", "can", "not"], [Mention("PER", [(0, 1)])], spaces=[" ", "", ""]))
    path = tmp_path / "train.spacy"
    entaug.write(names, path)
    for gold, expected in (
        (False, ["Mr.", "Bo", "can", "not", "sing"]),
        (True, ["Mr", ".", "Bo", "can", "not", "sing"]),
    ):
        corpus = Corpus(path, gold_preproc=gold, augmenter=of("mr", train=path, p=1.0))
        _, new, *_ = corpus(nlp)
        assert [token.text for token in new.predicted] == expected
        assert [token.text for token in new.reference] == ["Mr", ".", "Bo", *words[3:]]
        assert [ent.text for ent in new.reference.ents] == ["Bo"]
    entaug.write([sentence.with_(spaces=None) for sentence in names], path)
    _, new, *_ = Corpus(path, augmenter=of("mr", train=path, p=1.0))(nlp)
    assert [token.text for token in new.predicted] == ["Mr", ".", "Bo", *words[3:]]


def test_nested_mentions_are_read_from_their_group_of_spans(tmp_path: Path) -> None:
    path, nlp = tmp_path / "train.spacy", spacy.blank("en")
    nested = [s for s in entaug.read(EXAMPLE / "nested.jsonl") if all(m.is_contiguous for m in s.mentions)]
    entaug.write(nested, path, format="docbin", mentions="spans", spans_key="parts")
    for arguments in ({}, {"spans_key": "parts"}):
        examples = list(Corpus(path, augmenter=of("mr", train=path, p=1.0, **arguments))(nlp))
        new = [example for example in examples if "entaug" in example.reference.user_data]
        assert len(new) > len(nested) // 2
        labels = [sorted(span.label_ for span in example.reference.spans["parts"]) for example in new]
        sources = {s.key: sorted(m.label for m in s.mentions) for s in nested}
        keys = [example.reference.user_data["entaug"]["sources"][0] for example in new]
        assert any(len(own) > 1 for own in labels)
        assert labels == [sources[key] for key in keys]


def test_other_annotation_is_kept_where_it_holds() -> None:
    nlp = spacy.blank("en")
    gold = [Sentence(text.split(), [Mention("PER", [(0, 1)])]) for text in ("Ada sings", "Bo rests")]
    doc = doc_of_sentence(gold[0], nlp.vocab)
    doc.ents = [Span(doc, 0, 1, "PER", kb_id="Q7259")]
    doc.cats = {"music": 1.0}
    for token, tag, head, dep in zip(doc, ("NNP", "VBZ"), (1, 1), ("nsubj", "ROOT"), strict=True):
        token.tag_, token.head, token.dep_ = tag, doc[head], dep
    augmenter = SpacyAugmenter(create_augmenter("mr", p=1.0).fit(gold))
    _, new = augmenter(nlp, Example(nlp.make_doc(doc.text), doc))
    reference = new.reference
    assert [(ent.text, ent.kb_id_) for ent in reference.ents] == [("Bo", "")]  # Bo is not who Ada is
    assert reference.cats == {"music": 1.0}
    assert [token.tag_ for token in reference] == ["", "VBZ"]
    assert not reference.has_annotation("DEP")  # the tree was Ada's
    assert doc.has_annotation("DEP")


def test_what_is_not_known_to_be_no_entity_is_not_said_to_be_none() -> None:
    nlp = spacy.blank("en")
    gold = [Sentence(text.split(), [Mention("PER", [(0, 1)])]) for text in ("Ada sings", "Bo rests")]
    augmenter = SpacyAugmenter(create_augmenter("mr", p=1.0).fit(gold))
    doc = nlp("Ada sings")
    doc.set_ents([Span(doc, 0, 1, "PER")], default="missing")
    with pytest.warns(InputWarning, match="examples of which not all entities are known are not augmented"):
        assert len(list(augmenter(nlp, Example(nlp("Ada sings"), doc)))) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert len(list(augmenter(nlp, Example(nlp("Ada sings"), doc)))) == 1


def test_a_method_is_fitted_once_to_the_files_that_spacy_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "parts" / "deeper"
    folder.mkdir(parents=True)
    entaug.write(GOLD[:10], folder / "b.spacy")
    entaug.write(GOLD[10:], folder.parent / "a.spacy")
    fitted: list[int] = []

    def fit(self: Any, corpus: Any) -> Any:
        fitted.append(len(corpus))
        return real(self, corpus)

    real = entaug.methods.MentionReplacement.fit
    monkeypatch.setattr(entaug.methods.MentionReplacement, "fit", fit)
    for _ in range(2):  # to initialize, and to train
        of("mr", train=str(tmp_path / "parts"))
    assert fitted == [30]
    of("mr", train=str(tmp_path / "parts"), p=0.5)
    assert fitted == [30, 30]
    entaug.write(GOLD[10:20], folder.parent / "a.spacy")
    of("mr", train=str(tmp_path / "parts"), p=0.5)
    assert fitted == [30, 30, 20]
