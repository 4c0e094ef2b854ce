"""Corpora in memory: data frames, documents, dictionaries and tuples, for functions that read files too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("spacy")

import pandas as pd
import spacy

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.backends.fakes import FakeTagger
from entaug.errors import InputError, InputWarning, LossError, ParameterError
from entaug.formats.exchange import as_corpus, from_pandas, from_spacy, to_pandas, to_spacy
from entaug.taggers.base import TaggerTrainingConfig
from entaug.taggers.flat import BiLSTMCRFTagger
from entaug.teacher import Relabeller
from helpers import tiny

FLAT = list(entaug.read(EXAMPLE / "train.conll"))
NESTED = list(entaug.read(EXAMPLE / "nested.jsonl"))


@pytest.mark.parametrize("sentences", [FLAT, NESTED, [Sentence(["a"], id="x", meta={"doc": 3}), Sentence(["b"])]])
def test_frames_hold_everything(sentences: list[Sentence]) -> None:
    frame = to_pandas(sentences)
    assert len(frame) == len(sentences)
    assert list(from_pandas(frame)) == sentences


def test_frames_of_users_are_read() -> None:
    wanted = (Mention("PER", [(0, 1)]),)
    lists = pd.DataFrame({"tokens": [["Ada", "sang"], ["Bo"]], "ner_tags": [["B-PER", "O"], ["B-PER"]]})
    assert [s.mentions for s in from_pandas(lists)] == [wanted, wanted]
    arrays = pd.DataFrame({"tokens": [np.array(["Ada", "sang"])], "ner_tags": [np.array(["B-PER", "O"])]})
    assert from_pandas(arrays)[0].mentions == wanted
    tokens = pd.DataFrame({"Sentence #": [1, 1, 2], "Word": ["Ada", "sang", "Bo"], "Tag": ["B-PER", "O", "B-PER"]})
    assert [s.mentions for s in from_pandas(tokens)] == [wanted, wanted]


def test_errors_name_the_frame() -> None:
    frame = pd.DataFrame({"tokens": [["Ada", "sang"]], "ner_tags": [["B-PER"]]})
    with pytest.raises(InputError, match=r"^the data frame:1: "):
        from_pandas(frame)
    with pytest.raises(ParameterError, match="a data frame of pandas is wanted, not list"):
        from_pandas([{"tokens": ["Ada"]}])
    with pytest.raises(ParameterError, match="documents of spaCy are wanted, not Sentence"):
        from_spacy(FLAT[:1])


def test_documents_of_spacy_and_back() -> None:
    docs = to_spacy(FLAT)
    assert all(isinstance(doc, spacy.tokens.Doc) for doc in docs)
    assert [[(e.label_, (e.start, e.end)) for e in doc.ents] for doc in docs] == [
        [(m.label, m.spans[0]) for m in sentence.mentions] for sentence in FLAT
    ]
    assert [(s.tokens, s.mentions) for s in from_spacy(docs)] == [(s.tokens, s.mentions) for s in FLAT]
    nested = [s for s in NESTED if all(m.is_contiguous for m in s.mentions)]
    assert [s.mentions for s in from_spacy(to_spacy(nested, spacy.blank("de")))] == [s.mentions for s in nested]
    with pytest.raises(LossError):
        to_spacy(NESTED)


# ------------------------------------------------------------------------------------------------------- of any form

ADA = Sentence(["Ada", "sang"], [Mention("PER", [(0, 1)])])
FORMS = {
    "corpus": entaug.Corpus([ADA]),
    "sentences": [ADA],
    "generator": (s for s in [ADA]),
    "frame": pd.DataFrame({"tokens": [["Ada", "sang"]], "ner_tags": [["B-PER", "O"]]}),
    "documents": to_spacy([ADA]),
    "tuples of tags": [(["Ada", "sang"], ["B-PER", "O"])],
    "tuples of arrays": [(np.array(["Ada", "sang"]), np.array(["B-PER", "O"]))],
    "tuples of spans": [("Ada sang", [(0, 3, "PER")])],
    "training data of spaCy": [("Ada sang", {"entities": [(0, 3, "PER")]})],
    "dictionaries": [{"tokens": ["Ada", "sang"], "tags": ["B-PER", "O"]}],
    "own dictionaries": [{"tokens": ["Ada", "sang"], "entities": [{"start": 0, "end": 1, "type": "PER"}]}],
    "dictionaries with texts": [{"text": "Ada sang", "label": [[0, 3, "PER"]]}],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_corpus_in_memory_has_any_form(form: str) -> None:
    [sentence] = as_corpus(FORMS[form])
    assert (sentence.tokens, sentence.mentions) == (ADA.tokens, ADA.mentions)


def test_a_dataset_is_a_corpus() -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"tokens": [["Ada", "sang"]], "ner_tags": [["B-PER", "O"]]}
    assert as_corpus(datasets.Dataset.from_dict(rows))[0].mentions == ADA.mentions


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "sentences, dictionaries, tuples of tokens and tags, .* are wanted, not 5"),
        ("train.conll", "not 'train.conll'; read files with entaug.read"),
        ([ADA, ["Ada", "Bo", "Cy"]], "item 1 is Sentence"),
        ([("Ada", "PER")], r"item 1 is \('Ada', 'PER'\)"),
        ([(["Ada"], ["O"]), {"Ada"}], "item 2 is {'Ada'}"),
        ([(["Ada"], ["O"]), ADA], "all of one kind; item 2 is Sentence"),
        ([(["Ada"], ["O"]), ("Ada sang", [5])], r"item 2 is \('Ada sang', \[5\]\)"),
        ({"train": [ADA], "test": [ADA]}, r"not a dict; give one of its parts \(train, test\)"),
        ({ADA}, "are wanted, not {Sentence"),
        (spacy.blank("en")("Ada sang"), "not Token; give a list of documents"),
    ],
)
def test_other_data_is_refused(data: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        as_corpus(data)  # type: ignore[arg-type]


def test_a_dataset_of_several_parts_is_refused() -> None:
    datasets = pytest.importorskip("datasets")
    parts = datasets.DatasetDict({"train": datasets.Dataset.from_dict({"text": ["Ada sang"]})})
    for use in (as_corpus, entaug.check, lambda data: entaug.predict(FakeTagger().fit([ADA]), data)):
        with pytest.raises(ParameterError, match=r"not a DatasetDict; give one of its parts \(train\)"):
            use(parts)


def test_nothing_and_lists_of_texts_are_no_files() -> None:
    with pytest.raises(InputError, match=r"^input: no sentence in it"):
        entaug.check([])
    for use in (entaug.check, lambda data: entaug.audit(data, "x.jsonl", teacher="none")):
        with pytest.raises(ParameterError, match="item 1 is 'Ada sang'"):
            use(["Ada sang"])
    with pytest.raises(ParameterError, match="not None; name a file or a folder"):
        entaug.predict(FakeTagger().fit([ADA]), None)
    with pytest.raises(ParameterError, match="are wanted, not 5"):
        entaug.predict(FakeTagger().fit([ADA]), 5)


def test_notes_on_data_in_memory_name_no_temporary_file() -> None:
    with pytest.warns(InputWarning) as told:
        from_spacy([spacy.blank("en")("Ada sang")])
    assert all(str(one.message).startswith("the documents: ") for one in told)


def test_notes_on_datasets_are_kept() -> None:
    datasets = pytest.importorskip("datasets")
    bytes_too = {"tokens": [["Ada", "sang"]], "ner_tags": [["B-PER", "O"]], "raw": [b"x"]}
    assert as_corpus(datasets.Dataset.from_dict(bytes_too)).notes == ("column 'raw' of binary left out",)


def test_errors_name_the_item() -> None:
    with pytest.raises(InputError, match=r"^the data:2: "):
        as_corpus([(["Ada"], ["O"]), (["Ada", "sang"], ["B-PER"])])


def test_values_without_a_json_form_are_named_by_their_item() -> None:
    columns = {"tokens": [["Ada"], ["sang"]], "ner_tags": [["O"], ["O"]], "day": [None, pd.Timestamp("2024-05-01")]}
    with pytest.raises(InputError, match=r"^item 2 cannot be written as JSON \(.*Timestamp\); make it text"):
        from_pandas(pd.DataFrame(columns, dtype=object))
    with pytest.raises(InputError, match=r"^item 1 cannot be written as JSON \(.*complex\)"):
        as_corpus([{"tokens": ["Ada"], "entities": [], "x": 1j}])


def test_functions_of_files_take_what_is_in_memory() -> None:
    rows = [([*s.tokens], s.iob()) for s in FLAT]
    checked = entaug.check(rows)
    assert (checked.input, checked.counts.sentences) == ("input", len(FLAT))
    with pytest.raises(InputError, match=r"^the data:1: "):
        entaug.check([(["Ada", "sang"], ["B-PER"])])
    with pytest.raises(ParameterError, match="from_format is for files, and input is none; read the files"):
        entaug.check(rows, from_format="conll")
    assert (
        entaug.evaluate(FLAT, pd.DataFrame({"tokens": [r[0] for r in rows], "tags": [r[1] for r in rows]})).micro.f1
        == 1
    )
    assert list(entaug.augment(rows, "mr", seed=1)) == list(
        entaug.augment([s.with_(id=None) for s in FLAT], "mr", seed=1)
    )


def test_sentences_in_memory_are_filtered(tmp_path: Path) -> None:
    new = entaug.augment(FLAT, "lwtr")
    entaug.write(new, tmp_path / "new.jsonl")
    texts = "similarity:min_similarity=0.55"
    wanted = entaug.filter(tmp_path / "new.jsonl", tmp_path / "a.jsonl", texts, gold=EXAMPLE / "train.conll")
    assert 0 < entaug.filter(new, tmp_path / "b.jsonl", texts, gold=FLAT).kept == wanted.kept
    assert (tmp_path / "b.jsonl").read_text() == (tmp_path / "a.jsonl").read_text()
    relabelled = entaug.relabel(new, tmp_path / "c.jsonl", Relabeller(tagger=FakeTagger()), gold=FLAT)
    assert (relabelled.input, relabelled.after.sentences) == ("input", len(new))


def test_functions_of_files_alone_say_so(tmp_path: Path) -> None:
    corpus: Any = entaug.example()
    with pytest.raises(ParameterError, match=r"^a path must be a string or a Path, not <Corpus of"):
        entaug.convert(corpus, tmp_path / "a.jsonl")
    with pytest.raises(ParameterError, match=r"^a path must be a string or a Path, not <Corpus of"):
        entaug.augment_file(corpus, tmp_path / "a.jsonl", entaug.create_augmenter("sis"))


def test_a_notebook_trains_and_predicts(tmp_path: Path) -> None:
    tagger = tmp_path / "tagger"
    encoder = str(tiny.save(tmp_path / "bert", "bert"))
    network = BiLSTMCRFTagger(encoder=encoder, hidden=8)
    trained = entaug.train(FLAT, tagger, network, dev=FLAT[:9], config=TaggerTrainingConfig(steps=2))
    assert (trained.sentences, trained.dev is not None) == (len(FLAT), True)
    [labelled] = entaug.predict(tagger, [{"text": " ".join(FLAT[0].tokens)}], train=FLAT)
    assert labelled.tokens == FLAT[0].tokens
    assert [s.tokens for s in entaug.predict(tagger, FLAT[:2])] == [s.tokens for s in FLAT[:2]]
    frame = pd.DataFrame({"text": ["Ada sang .", "It rained ."]})
    assert len(entaug.predict(tagger, frame)) == len(entaug.predict(tagger, frame.text)) == 2
