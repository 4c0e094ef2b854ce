"""Taggers in the form of other libraries: the library itself loads them, and predicts the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import spacy
import torch
import transformers

import entaug
from conftest import EXAMPLE
from entaug.core.data import Sentence
from entaug.errors import ParameterError
from entaug.taggers import spacy_component
from entaug.taggers.base import TaggerTrainingConfig, create_tagger, load_tagger, read_config
from entaug.taggers.export import export_huggingface, export_onnx, export_spacy
from entaug.teacher.relabel import Relabeller

pytestmark = pytest.mark.usefixtures("one_thread")

GOLD = list(entaug.read(EXAMPLE / "train.conll"))[:30]
MORE = [s.with_(mentions=()) for name in ("train", "dev", "test") for s in entaug.read(EXAMPLE / f"{name}.conll")]
CONFIG = TaggerTrainingConfig(steps=240, batch_size=8, learning_rate=2e-3, head_learning_rate=5e-3)


@pytest.fixture(scope="module")
def trained(tiny_model: Callable[[str], Path]) -> Callable[..., Any]:
    """A tagger that has learned, with an encoder of a kind; tests share it and leave it as it is."""

    @cache
    def get(name: str, kind: str = "bert", **params: Any) -> Any:
        tagger = create_tagger(name, encoder=str(tiny_model(kind)), device="cpu", precision="fp32", **params)
        return tagger.fit(GOLD, config=CONFIG)

    return get


@pytest.fixture(scope="module")
def onnx(trained: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of a trained tagger in ONNX."""
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")

    @cache
    def get(name: str, **params: Any) -> Path:
        folder = tmp_path_factory.mktemp("onnx")
        export_onnx(trained(name, **params), folder)
        return folder

    return get


def argmax_tags(folder: Path, sentences: list[Sentence]) -> list[list[str]]:
    """The likeliest tag of the first sub-word of each word, by transformers alone."""
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if not getattr(tokenizer, "add_prefix_space", True):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    results = []
    for sentence in sentences:
        encoded = tokenizer([list(sentence.tokens)], is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            ids = model(**encoded).logits[0].argmax(-1).tolist()
        first: dict[int, str] = {}
        for word, tag in zip(encoded.word_ids(0), ids, strict=True):
            if word is not None:
                first.setdefault(word, model.config.id2label[tag])
        results.append([first[word] for word in range(len(sentence))])
    return results


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta", "mpnet", "deberta-v2"])
def test_transformers_loads_the_folder_and_predicts_the_same(
    kind: str, trained: Callable[..., Any], tmp_path: Path
) -> None:
    linear = trained("linear", kind)
    export_huggingface(linear, tmp_path / "hf")
    short = [s for s in MORE if len(linear._encoder.prepare(s.tokens).rows) == 1]
    tags = argmax_tags(tmp_path / "hf", short)
    valid = [
        i
        for i, row in enumerate(tags)
        if all(t[:2] != "I-" or before[2:] == t[2:] for before, t in zip(["O", *row], row, strict=False))
    ]
    assert len(valid) > 10
    own = linear.predict([short[i] for i in valid])
    assert [sentence.iob() for sentence in own] == [tags[i] for i in valid]
    assert any(sentence.mentions for sentence in own)


def test_the_pipeline_of_transformers_runs(trained: Callable[..., Any], tmp_path: Path) -> None:
    tagger = trained("linear")
    export_huggingface(tagger, tmp_path / "hf")
    pipe = transformers.pipeline("token-classification", str(tmp_path / "hf"), aggregation_strategy="first")
    sentence = GOLD[0]
    found = {(part["entity_group"], part["word"].lower().replace(" ", "")) for part in pipe(" ".join(sentence.tokens))}
    assert found
    assert {label for label, _ in found} <= set(tagger.labels_)


def test_a_crf_without_lstm_is_exported_and_with_one_refused(
    trained: Callable[..., Any], bert: Path, tmp_path: Path
) -> None:
    crf = trained("bilstm-crf", hidden=0)
    export_huggingface(crf, tmp_path / "hf")
    short = [s for s in MORE if len(crf._encoder.prepare(s.tokens).rows) == 1]
    # The transitions are left out: the tags are the likeliest ones by the scores of words alone.
    for sentence, tags in zip(short[:20], argmax_tags(tmp_path / "hf", short[:20]), strict=True):
        with torch.inference_mode():
            scores = crf._decoder.linear(crf._encoder([crf._encoder.prepare(sentence.tokens)]))[0]
        assert [crf._decoder.tags[i] for i in scores.argmax(-1)] == tags
    for name in ("bilstm-crf", "w2ner"):
        other: Any = create_tagger(name, encoder=str(bert), device="cpu", precision="fp32")
        other.fit(GOLD, config=TaggerTrainingConfig(steps=1))
        with pytest.raises(ParameterError, match=f"no counterpart of this {name} tagger"):
            export_huggingface(other, tmp_path / "other")


@pytest.mark.parametrize(("name", "params"), [("linear", {}), ("bilstm-crf", {"hidden": 0})])
def test_onnx_predicts_the_same_and_int8_nearly(
    name: str, params: Any, trained: Callable[..., Any], onnx: Callable[..., Path], tmp_path: Path
) -> None:
    tagger, folder = trained(name, **params), onnx(name, **params)
    int8: Any = load_tagger(folder)
    assert int8.quantized
    fp32 = type(int8)(**{**int8.get_params(), "quantized": False}).restore(folder)
    own = tagger.predict(MORE)
    assert fp32.predict(MORE) == own
    for one, other in zip(fp32.tag_probabilities(MORE), tagger.tag_probabilities(MORE), strict=True):
        assert np.allclose(one.values, other.values, atol=1e-4)
    same = [one.mentions == other.mentions for one, other in zip(int8.predict(MORE), own, strict=True)]
    assert np.mean(same) > 0.8
    assert (folder / "model.int8.onnx").stat().st_size < (folder / "model.onnx").stat().st_size
    assert int8.device == "cpu", "where the scores are, also on a machine with a GPU"
    with pytest.raises(ParameterError, match="an exported tagger is not trained"):
        int8.fit(GOLD)
    with pytest.raises(ParameterError, match="an exported tagger is not saved"):
        int8.save(tmp_path / "x")
    with pytest.raises(ParameterError, match="an exported tagger has no attentions"):
        int8.attentions([["Ada", "left"]], layers=1)


def test_an_exported_tagger_is_a_teacher(onnx: Callable[..., Path]) -> None:
    folder = onnx("linear")
    for given in (str(folder), load_tagger(folder)):
        teacher = Relabeller(tagger=given).fit(GOLD)
        assert len(teacher.relabel(GOLD[:2])) == 2
        assert f"@{read_config(folder)['sum'][:12]}:" in teacher.signature


def test_spacy_loads_the_pipeline(trained: Callable[..., Any], tmp_path: Path) -> None:
    tagger = trained("linear")
    export_spacy(tagger, tmp_path / "pipeline", "en")
    nlp: Any = spacy.load(tmp_path / "pipeline")
    docs = [spacy.tokens.Doc(nlp.vocab, words=list(s.tokens)) for s in MORE]
    for doc, sentence in zip(nlp.pipe(docs), tagger.predict(MORE), strict=True):
        assert [(e.label_, (e.start, e.end)) for e in doc.ents] == [(m.label, m.spans[0]) for m in sentence.mentions]
    assert not nlp("").ents
    assert nlp("  \n ").text.isspace()
    # White space is no word; the spans are those of the document.
    words = list(GOLD[0].tokens)
    doc = nlp(spacy.tokens.Doc(nlp.vocab, words=[words[0], "\n", *words[1:]]))
    [plain] = tagger.predict([GOLD[0].with_(mentions=())])
    assert [e.label_ for e in doc.ents] == [m.label for m in plain.mentions]
    assert [e.text.replace("\n ", "") for e in doc.ents] == [" ".join(words[m.start : m.end]) for m in plain.mentions]
    assert spacy_component.create(nlp, "x", None).labels == ()
    with pytest.raises(ParameterError, match="has no tagger"):
        spacy.blank("en").add_pipe("entaug_ner")(docs[0])


@pytest.mark.slow
def test_spacy_finds_the_component_by_itself(trained: Callable[..., Any], tmp_path: Path) -> None:
    export_spacy(trained("linear"), tmp_path / "pipeline", "en")
    code = f"import spacy; print(spacy.load({str(tmp_path / 'pipeline')!r}).pipe_names)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['entaug_ner']", done.stderr[-500:]
