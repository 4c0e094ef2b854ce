"""Data frames of pandas and documents of spaCy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("spacy")

import pandas as pd
import spacy

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.errors import InputError, LossError, ParameterError
from entaug.formats.exchange import from_pandas, from_spacy, to_pandas, to_spacy

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
