"""The presets of papers: what they set, what they leave to the user, and what they do to small models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

import transformers

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.backends.compute import use_compute_settings
from entaug.backends.config import TrainingConfig
from entaug.backends.protocols import MultilingualGenerator, RoundTrip
from entaug.backends.resolve import resolve
from entaug.backends.transformers.generator import Seq2SeqGenerator
from entaug.commands.main import main
from entaug.config.params import parameters
from entaug.config.presets import Preset, preset_rows
from entaug.core.data import split_fields
from entaug.core.words import stop_words
from entaug.errors import MissingModelError, ParameterError, UnknownNameError
from entaug.methods import (
    ACLM,
    DAGA,
    METHODS,
    EnTDA,
    MaskedEntityLM,
    MaskedLMReplacement,
    MulDA,
    SynonymReplacement,
    create_augmenter,
)
from entaug.methods.shared.generated_text import INVALID_LABELS
from helpers import tiny
from helpers.fakes import (
    FakeConstituencyParser,
    FakeDependencyParser,
    FakeEncoder,
    FakeGenerator,
    FakeLexicon,
    FakeMaskedLM,
    FakeTagger,
    FakeTokenLM,
    FakeTranslator,
)

WITH_PAPER = "aclm bt cassi cr crop daga entda lm melm mr mulda rotate sr".split()
PAPER = pytest.mark.parametrize("name", WITH_PAPER)


def created(name: str, **params: Any) -> Any:
    return create_augmenter(name, **params)


def paper_of(name: str) -> Preset:
    preset = METHODS[name].presets["paper"]
    assert isinstance(preset, Preset)
    return preset


# ----------------------------------------------------------------------------------------------------------- the tables


def test_the_methods_of_papers_have_their_presets() -> None:
    assert [name for name in METHODS if "paper" in METHODS[name].presets] == WITH_PAPER


@PAPER
def test_every_setting_is_a_parameter_with_a_valid_value_and_a_source(name: str) -> None:
    preset = paper_of(name)
    method = created(name, preset="paper")
    known = {parameter.name: parameter for parameter in parameters(METHODS[name])}
    assert preset.paper
    for field, setting in preset.settings.items():
        known[field].check(setting.value)
        assert getattr(method, field) == setting.value, field
        assert setting.source, f"{field} has no source"
    for difference in preset.differences:
        assert all((difference.topic, difference.source, difference.comment))
    assert preset.get("guard") is False, "no paper has the label guard"
    assert [row.parameter for row in preset_rows(METHODS[name], "paper")] == [n for n in known if n in preset]


@pytest.mark.parametrize("name", ["aclm", "entda", "melm", "mulda"])
def test_models_of_papers_are_fine_tuned_whole_and_for_all_epochs(name: str) -> None:
    method = created(name, preset="paper")
    assert (method.adapters, method.validation_fraction) == (False, 0.0)
    usual = created(name)
    assert (usual.adapters, usual.validation_fraction, usual.patience) == (None, 0.1, 2)


def test_what_is_given_is_kept_even_if_it_is_the_default() -> None:
    usual = ACLM()
    assert (usual.temperature, usual.stop_words) == (0.8, "en")
    method = ACLM(preset="paper", temperature=0.8, stop_words=None, epochs=2, num_neighbors=5)
    assert (method.temperature, method.stop_words, method.epochs, method.num_neighbors) == (0.8, None, 2, 5)
    # None means "not given" where it is the default.
    assert ACLM(preset="paper", guard=None, top_k=3).get_params() == ACLM(preset="paper", top_k=3).get_params()
    assert ACLM(preset="paper").temperature == 1.0
    assert ACLM(preset="paper", num_beams=1).num_beams == 1


def test_the_presets_hold_what_the_papers_say() -> None:
    # By hand, from the papers.
    aclm = ACLM(preset="paper")
    assert (aclm.copies, aclm.generator, aclm.epochs, aclm.batch_size, aclm.learning_rate) == (
        5,
        "facebook/mbart-large-50",
        10,
        32,
        1e-5,
    )
    assert (aclm.keyword_ratio, aclm.num_attention_layers, aclm.mask_ratio, aclm.mentions) == (0.3, 4, 0.5, "labelled")
    entda = EnTDA(preset="paper")
    assert (entda.generator, entda.epochs, entda.batch_size, entda.num_beams) == ("google-t5/t5-base", 3, 5, 3)
    assert (entda.diversity_penalty, entda.unlisted_mentions, entda.copies, entda.max_new_tokens) == (
        10,
        "keep",
        3,
        512,
    )
    lm = MaskedLMReplacement(preset="paper")
    assert (lm.masked_lm, lm.min_p, lm.guard) == ("allenai/scibert_scivocab_uncased", 0, False)
    bt = created("bt", preset="paper")
    assert (bt.translator, bt.min_tokens, bt.check_translations) == (
        "facebook/wmt19-en-de>facebook/wmt19-de-en",
        3,
        False,
    )
    cr = created("cr", preset="paper")
    assert (cr.constituency_parser, cr.allow_whole_sentence, cr.normalize_boundaries) == ("stanza:en", True, False)
    cassi = created("cassi", preset="paper")
    assert (cassi.top_k, cassi.exact, cassi.encoder_layer) == (5, True, 9)
    melm = MaskedEntityLM(preset="paper")
    assert (melm.train_mask_ratio, melm.mask_ratio, melm.epochs, melm.learning_rate) == (0.7, 1.0, 20, 1e-5)
    daga = DAGA(preset="paper")
    assert (daga.unknown_tokens, daga.unlisted_mentions, daga.epochs) == ("keep", "keep", 30)


def test_signatures_name_new_parameters_only_where_they_are_set() -> None:
    gold = [Sentence("Ada sings well".split(), [Mention("PER", [(0, 1)])])]
    parser = {"dependency_parser": FakeDependencyParser()}
    assert "preset" not in created("crop", **parser).fit(gold).signature
    assert "|preset=paper" in created("crop", preset="paper", **parser).fit(gold).signature
    usual, patient = (created("daga", token_lm=FakeTokenLM(), **more).fit(gold) for more in ({}, {"patience": 5}))
    assert "patience" not in usual.signature
    assert "|patience=5|" in patient.signature


@PAPER
def test_a_preset_is_printed_with_its_sources(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods", name, "--preset", "paper"]) == 0
    printed = capsys.readouterr().out
    for field, setting in paper_of(name).settings.items():
        assert re.search(
            rf"^  {field} = {re.escape(repr(setting.value))}.*{re.escape(setting.source)}", printed, re.MULTILINE
        )
    assert f"--preset paper ({paper_of(name).paper})" in printed
    assert printed.count("different on purpose: ") == len(paper_of(name).differences)


def test_unknown_presets_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods", "aclm", "--preset", "papr"]) != 0
    assert "unknown preset of aclm 'papr'; did you mean 'paper'?" in capsys.readouterr().err
    assert main(["list", "methods", "--preset", "paper"]) != 0
    assert "--preset needs a method; for example" in capsys.readouterr().err
    assert main(["list", "methods", "sis", "--preset", "paper"]) != 0
    assert "unknown preset of sis 'paper'; there are none" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------- missing models


@pytest.mark.parametrize(
    ("name", "given", "missing"),
    [
        ("aclm", {}, ["generator", "tagger", "encoder"]),
        ("aclm", {"generator": FakeGenerator(), "encoder": FakeEncoder()}, ["tagger"]),
        ("bt", {}, ["translator"]),
        ("cassi", {}, ["encoder", "masked_lm", "dependency_parser"]),
        ("entda", {}, ["generator"]),
        ("lm", {}, ["masked_lm"]),
        ("melm", {}, ["filters"]),
        ("melm", {"filters": "none"}, ["masked_lm"]),
        ("mulda", {}, ["generator"]),
    ],
)
def test_missing_models_are_named_with_the_parameters_that_replace_them(
    name: str, given: dict[str, Any], missing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    method = created(name, preset="paper", **given)
    with use_compute_settings(offline=True), pytest.raises(MissingModelError) as caught:
        method.load()
    error = str(caught.value)
    assert "\n" not in error
    assert f"the preset 'paper' of {name} needs what is not on this machine: " in error
    assert error.endswith("`preset='paper'` " + " ".join(f"`{option}=NAME`" for option in missing))
    for option in missing:
        assert str(getattr(method, option)) in error


def test_a_model_that_was_given_is_the_user_s_own_affair() -> None:
    with use_compute_settings(offline=True), pytest.raises(MissingModelError) as caught:
        EnTDA(preset="paper", generator="nobody/nothing").load()
    assert "preset" not in str(caught.value)


# ------------------------------------------------------------------------------------------- presets with small models


@PAPER
def test_a_preset_runs_with_other_models(name: str) -> None:
    fakes: dict[str, dict[str, Any]] = {
        "aclm": {"generator": FakeGenerator(["here"]), "tagger": FakeTagger(), "encoder": FakeEncoder()},
        "bt": {
            "translator": RoundTrip(FakeTranslator({"the": "o", "in": "em"}), FakeTranslator({"o": "that", "em": "at"}))
        },
        "cassi": {"encoder": FakeEncoder(), "masked_lm": FakeMaskedLM(), "dependency_parser": FakeDependencyParser()},
        "cr": {"constituency_parser": FakeConstituencyParser()},
        "crop": {"dependency_parser": FakeDependencyParser()},
        "daga": {"token_lm": FakeTokenLM()},
        "entda": {"generator": FakeGenerator(["here"])},
        "lm": {"masked_lm": FakeMaskedLM()},
        "melm": {"masked_lm": FakeMaskedLM(["Bo", "Oslo", "Acme"]), "filters": "none"},
        "mulda": {"generator": FakeGenerator(["here"])},
        "rotate": {"dependency_parser": FakeDependencyParser()},
        "sr": {"lexicon": AnySense({"city": ["big town"], "week": ["hebdomad"], "opened": ["undo"]})},
    }
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:12]
    method = created(name, preset="paper", **fakes.get(name, {})).fit(gold)
    made = list(method.augment(gold))
    assert made
    assert all("preset=paper" in s.fields["entaug"]["signature"] for s in made)


class AnySense(FakeLexicon):
    """A lexicon whose synonyms are those of any sense."""

    def synonyms_of_any_sense(self, word: str) -> tuple[tuple[str, ...], ...]:
        return self.synonyms(word)


def gold_of(*languages: str) -> list[Sentence]:
    return [
        Sentence(f"Ada{i} sings in Rome".split(), [Mention("PER", [(0, 1)])], **split_fields({"language": language}))
        for i, language in enumerate(languages)
    ]


def test_all_weights_are_trained_on_a_cpu(tmp_path: Path) -> None:
    tiny.save(tmp_path / "t5", "t5")
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:12]
    method = EnTDA(preset="paper", generator=str(tmp_path / "t5"), epochs=1, max_new_tokens=8).fit(gold)
    trained = method.trained_
    assert isinstance(trained, Seq2SeqGenerator)
    assert trained.adapters is False
    assert not any("lora" in name for name in trained._weights)
    assert [loss for _, loss in trained.losses] == [None], "no sentence is held out"
    small = EnTDA(candidates=1, generator=str(tmp_path / "t5"), epochs=1, max_new_tokens=8).fit(gold).trained_
    assert isinstance(small, Seq2SeqGenerator)
    assert any("lora" in name for name in small._weights)
    assert small.losses[0][1] is not None


class Recorder(FakeGenerator):
    """Records the hyperparameters of its training."""

    def fit(self, pairs: Any, config: TrainingConfig = TrainingConfig(), **options: Any) -> Any:  # noqa: B008
        trained = super().fit(pairs, config, **options)
        trained.config = config  # type: ignore[attr-defined]
        return trained


def test_training_gets_the_hyperparameters() -> None:
    gold = gold_of("en", "en")
    config = EnTDA(preset="paper", generator=Recorder(), patience=7, seed=4).fit(gold).trained_.config  # type: ignore[union-attr]
    assert config == TrainingConfig(
        epochs=3, batch_size=5, learning_rate=5e-5, validation_fraction=0.0, patience=7, adapters=False, seed=4
    )
    config = EnTDA(candidates=1, generator=Recorder()).fit(gold).trained_.config  # type: ignore[union-attr]
    assert config == TrainingConfig(epochs=10, batch_size=8)


# ----------------------------------------------------------------------------------------- F4: languages of generators


@pytest.fixture(scope="module")
def mbarts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    hf: Any = transformers
    words = [(f"▁{word}", -1.0 - i) for i, word in enumerate("Ada0 Ada1 Ada2 sings in Rome B PER < > - en de".split())]
    words += [(c, -9.0) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789<>-▁"]
    sizes = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in tiny._SIDE.items()}
    folders = {}
    for name, kind, first in (("mbart50", "MBart50Tokenizer", ["<unk>"]), ("mbart25", "MBartTokenizer", [])):
        special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
        vocabulary = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *words] if first else [*special, *words]
        tokenizer = getattr(hf, kind)(vocab=vocabulary)
        config = hf.MBartConfig(
            vocab_size=len(tokenizer),
            d_model=32,
            max_position_embeddings=64,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=tokenizer.eos_token_id,
            forced_bos_token_id=None,
            **sizes,
        )
        folders[name] = tmp_path_factory.mktemp(name)
        hf.MBartForConditionalGeneration(config).save_pretrained(folders[name])
        tokenizer.save_pretrained(folders[name])
    return folders


@pytest.mark.parametrize("name", ["mbart50", "mbart25"])
def test_texts_are_marked_by_their_language(mbarts: dict[str, Path], name: str) -> None:
    generator = Seq2SeqGenerator(mbarts[name], device="cpu", precision="fp32")
    assert isinstance(generator, MultilingualGenerator)
    assert generator.languages_.default == "en_XX"
    id_of = generator.tokenizer.convert_tokens_to_ids
    by_library = {}
    for language, code in (("de", "de_DE"), ("hi_IN", "hi_IN"), (None, "en_XX")):
        generator.tokenizer.src_lang = code
        by_library[language] = generator.tokenizer("Ada0 sings")["input_ids"]
        source, target = generator._row(("Ada0 sings", "Ada0", language))
        assert source == by_library[language]
        assert id_of(code) in target
        begins = generator._decoder_options([language])["decoder_input_ids"].tolist()[0]
        assert begins[-1] == id_of(code), "the first token that is forced"
        # As in training, where transformers shifts the labels to the right.
        shifted = generator.model.prepare_decoder_input_ids_from_labels(labels=transformers_tensor([target]))
        assert shifted[0, : len(begins)].tolist() == begins
    assert len({tuple(row) for row in by_library.values()}) == 3
    with pytest.raises(ParameterError, match="does not know the language 'qq'; it knows"):
        generator.languages_.around("qq")


def transformers_tensor(rows: Sequence[Sequence[int]]) -> Any:
    import torch

    return torch.tensor(rows)


class Multilingual(FakeGenerator):
    """Records the languages that it is told."""

    told: tuple[list[Any], list[Any]] = ([], [])

    class _Languages:
        codes = ("de_DE", "en_XX")
        default = "en_XX"

    languages_ = _Languages()

    def fit(self, pairs: Any, config: Any = TrainingConfig(), *, languages: Any = None, **options: Any) -> Any:  # noqa: B008
        self.told[0].extend(languages)
        trained = super().fit(pairs, config, **options)
        assert len(languages) == len(pairs(0) if callable(pairs) else pairs)
        return trained

    def generate(self, inputs: Any, *args: Any, languages: Any = None, **options: Any) -> Any:
        self.told[1].extend(languages)
        assert len(inputs) == len(languages)
        return super().generate(inputs, *args, **options)


@pytest.mark.parametrize("name", ["aclm", "entda", "mulda"])
def test_every_sentence_is_generated_in_its_language(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Multilingual, "told", ([], []))
    others: dict[str, Any] = {"tagger": FakeTagger(), "encoder": FakeEncoder()} if name == "aclm" else {}
    if name == "entda":
        others["context_size"] = 0
    gold = [*gold_of("de", "hi"), Sentence("Ada2 sings in Rome".split(), [Mention("PER", [(0, 1)])])]
    method = created(name, candidates=1, generator=Multilingual(), max_attempts=1, guard=False, language="de", **others)
    list(method.fit(gold).augment(gold))
    of_training, of_texts = Multilingual.told
    assert sorted(of_training) == ["de", "de", "hi"]
    assert of_texts == ["de", "hi", "de"]
    assert not [note for note in method.notes() if "is told that the sentences are in" in note]
    assert "|language=de|" in method.signature


def test_a_generator_that_is_told_no_language_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Multilingual, "told", ([], []))
    gold = [Sentence("Ada2 sings in Rome".split(), [Mention("PER", [(0, 1)])])]
    method = EnTDA(candidates=1, generator=Multilingual()).fit(gold)
    assert "fake is told that the sentences are in en_XX; if they are not, set language" in method.notes()
    assert Multilingual.told[0] == [None]
    assert not EnTDA(candidates=1, generator=FakeGenerator(), guard=False).fit(gold).notes()
    loaded = EnTDA(candidates=1, generator=Multilingual()).load()  # experiments ask before any run
    assert loaded.notes_on_languages(gold) == method.notes()[-1:]
    assert loaded.notes_on_languages(gold_of("de", "hi")) == []


def test_mulda_on_mbart(mbarts: dict[str, Path]) -> None:
    gold = gold_of("de", "en")
    method = MulDA(preset="paper", generator=str(mbarts["mbart50"]), epochs=1, batch_size=2).fit(gold)
    assert isinstance(method.trained_, Seq2SeqGenerator)
    list(method.augment(gold))
    with pytest.raises(ParameterError, match="does not know the language 'xx'"):
        MulDA(preset="paper", generator=str(mbarts["mbart50"]), epochs=1).fit(gold_of("xx", "en"))


# ------------------------------------------------------------------------------------------- F5: mentions of ACLM texts


@pytest.mark.parametrize(
    ("text", "exact", "labelled"),
    [
        ("a star <B-GRP> Oasis <B-GRP> was born", "a mention of the template is missing or changed", ["B-GRP"]),
        (
            "<B-GRP> Suede <B-GRP> and <B-LOC> Leeds <B-LOC>",
            "a mention that is not in the template",
            ["B-GRP", "B-LOC"],
        ),
        ("a star was born", "a mention of the template is missing or changed", []),
        ("<B-GRP> Suede <B-GRP> and Pulp played", "a known mention that is not in the list", ["B-GRP"]),
        ("<B-GRP> Suede <B-GRP> <I-LOC> Leeds <I-LOC>", INVALID_LABELS, []),
        ("<B-GRP> Suede was born", INVALID_LABELS, []),
    ],
)
def test_aclm_keeps_well_formed_labelled_mentions(text: str, exact: str, labelled: list[str]) -> None:
    class Says(FakeGenerator):
        def generate(self, inputs: Any, *_: Any, **__: Any) -> list[list[str]]:
            return [[text] for _ in inputs]

    gold = [
        Sentence("the band Suede split in May".split(), [Mention("GRP", [(2, 3)])]),
        Sentence("Pulp played in Leeds".split(), [Mention("GRP", [(0, 1)]), Mention("LOC", [(3, 4)])]),
    ]
    options: dict[str, Any] = {"generator": Says(), "tagger": FakeTagger(), "encoder": FakeEncoder(), "copies": 1}
    strict = ACLM(candidates=1, **options, guard=False, max_attempts=1, mixner_probability=0.0)
    assert not list(strict.fit(gold).augment(gold[:1]))
    [reason] = strict.statistics_.missing
    assert reason == exact or "known mention" in exact
    free = ACLM(candidates=1, **options, preset="paper", mixner_probability=0.0)
    made = list(free.fit(gold).augment(gold[:1]))
    assert [tag for s in made for tag in s.iob() if tag != "O"] == labelled


# ---------------------------------------------------------------------------------------------- F3, F8: other settings


def test_stop_words_of_several_languages_are_joined() -> None:
    assert {"the", "und"} <= stop_words("en+de")
    with pytest.raises(ParameterError, match=r"no stop words for 'en\+xx'"):
        stop_words("en+xx")
    assert ACLM(candidates=1, stop_words="en+de").stop_words == "en+de"
    assert stop_words(str(paper_of("aclm")["stop_words"]))


def test_synonyms_of_any_sense_replace_any_word() -> None:
    lexicon = AnySense({"bank": ["shore"], "a": ["angstrom"], "can": ["tin", "lavatory"], "apple": ["tree"]})
    gold = [Sentence("Go to Bank , a can".split(), [Mention("ORG", [(2, 3)])])]
    usual = SynonymReplacement(p=1.0, lexicon=lexicon, dependency_parser=None, skip_headlines=False).fit(gold)
    assert [s.tokens[2] for s in usual.augment(gold)] == ["Bank"], "it looks like a name"
    free = SynonymReplacement(p=1.0, lexicon=lexicon, senses="any", dependency_parser=None, skip_headlines=False).fit(
        gold
    )
    [new] = free.augment(gold)
    assert new.tokens[2].lower() == "shore"
    assert new.tokens[4] == "angstrom"
    assert new.iob()[2] == "B-ORG"
    with pytest.raises(ParameterError, match="does not list synonyms of any sense; use senses=usual, or the lexicon"):
        SynonymReplacement(lexicon=FakeLexicon({}), senses="any").load()


# ------------------------------------------------------------------------------------------------ taggers by text form


def test_taggers_have_parameters_of_their_own_and_of_their_training() -> None:
    tagger = resolve("tagger", "linear:encoder=mpnet;epochs=7;learning_rate=1e-4;dropout=0.2")
    assert (tagger.tagger.encoder, tagger.tagger.dropout) == ("mpnet", 0.2)
    assert (tagger.config.epochs, tagger.config.learning_rate) == (7, 1e-4)
    assert tagger.name == "linear:encoder=mpnet;epochs=7;learning_rate=1e-4;dropout=0.2"
    assert resolve("tagger", "bilstm-crf:hidden=0").tagger.hidden == 0
    with pytest.raises(UnknownNameError, match="unknown parameter of linear: 'epoch'; did you mean 'epochs'"):
        resolve("tagger", "linear:epoch=3")
    with pytest.raises(ParameterError, match="linear: 'epochs' is not of the form PARAMETER=VALUE"):
        resolve("tagger", "linear:epochs")
    with pytest.raises(ParameterError, match="epochs must be"):
        resolve("tagger", "linear:epochs=0")


def test_keywords_and_consistency_by_a_tagger_of_any_encoder_and_training(tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "bert", "bert")
    text = f"linear:encoder={folder};steps=3;batch_size=4"
    gold = list(entaug.read(EXAMPLE / "train.conll"))[:8]
    method = ACLM(
        candidates=1,
        generator=FakeGenerator(["here"]),
        encoder=FakeEncoder(),
        tagger=text,
        num_attention_layers=1,
        guard=False,
        filters=f"consistency:tagger={text},min_confidence=0.0",
    )
    made = list(method.fit(gold).augment(gold))
    assert made
    assert method.tagger_.history_.steps == 3  # type: ignore[attr-defined]
    assert f"tagger={text}" in made[0].fields["entaug"]["signature"]
    [consistency] = method.filters_
    assert consistency._trained.history_.steps == 3  # type: ignore[attr-defined]
