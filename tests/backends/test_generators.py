"""Generators on tiny models: every kind learns, is read back, goes on after a kill, and writes as it should."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

pytest.importorskip("torch")

import torch

from entaug import Mention, Sentence
from entaug.backends.config import DecodingConfig, Gap, TrainingConfig
from entaug.backends.protocols import Generator
from entaug.backends.transformers import decoding as processors
from entaug.backends.transformers import training
from entaug.backends.transformers.constraints import Phrase, PhraseConstraint
from entaug.backends.transformers.decoding import DiversityPenalty
from entaug.backends.transformers.generator import (
    CausalGenerator,
    Seq2SeqGenerator,
    TransformersGenerator,
    load_generator,
)
from entaug.backends.transformers.training import IGNORED, TrainingLoop
from entaug.errors import EntaugError, InputError, OutputError, ParameterError
from entaug.methods import ACLM, EnTDA, MulDA
from entaug.methods.shared.generated_text import label_tokens, label_transitions, parse_tagged
from entaug.methods.shared.generative import COPIED
from helpers import tiny
from helpers.fakes import FakeEncoder, FakeGenerator, FakeTagger
from helpers.marks import first_fast

COLOURS = "red blue green black white".split()
PAIRS = [(f"{a} <mask>", f"<B-X> {a} <B-X> {b}") for a in COLOURS for b in COLOURS]
MARKERS = {"<mask>": "blank", "<B-X>": "begin x"}
TUNING = TrainingConfig(epochs=3, learning_rate=1e-2)
KINDS = ("llama", "bart", "t5", "mbart")
EACH_KIND = pytest.mark.parametrize("kind", first_fast(KINDS, 2))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: tiny.save(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


def made(
    folders: dict[str, Path], kind: str, *, adapters: bool = True, precision: str = "fp32"
) -> TransformersGenerator:
    cls = CausalGenerator if kind == "llama" else Seq2SeqGenerator
    return cls(folders[kind], device="cpu", precision=precision, adapters=adapters)


@pytest.mark.parametrize("required", [None, [[["blue"]], [["red"]]]])
def test_the_head_reads_contiguous_vectors(folders: dict[str, Path], required: Any) -> None:
    # Of a slice of three dimensions `matmul` would copy the table of the vocabulary for each row: gigabytes.
    generator = made(folders, "llama")
    for model in (generator, generator.fit(PAIRS, replace(TUNING, epochs=1))):
        seen: list[bool] = []
        head = model.model.get_output_embeddings()
        head.register_forward_pre_hook(lambda _, given, seen=seen: seen.append(given[0].is_contiguous()))
        config = DecodingConfig(strategy="sample", max_new_tokens=2, drop_unfinished=False)
        model.generate(["red <mask>", "blue <mask>"], config, [1, 2], required)
        assert len(seen) >= 2
        assert all(seen)


@pytest.mark.parametrize("adapters", [True, False])
@EACH_KIND
def test_learns_and_is_read_back(folders: dict[str, Path], kind: str, adapters: bool, tmp_path: Path) -> None:
    plain = made(folders, kind, adapters=adapters)
    assert isinstance(plain, Generator)
    short = DecodingConfig(max_new_tokens=8, drop_unfinished=False)
    before = plain.generate(["red <mask>"], short)
    steps: list[tuple[int, int]] = []
    learned = plain.fit(
        PAIRS, TUNING, new_tokens=MARKERS, progress=lambda done, total, loss: steps.append((done, total))
    )
    assert plain.generate(["red <mask>"], short) == before, "the first one stays as it was"
    assert learned.losses[-1][0] < learned.losses[0][0]
    assert steps == [(i + 1, 9) for i in range(3 * len(learned.losses))]  # 22 pairs and 3 held out: 3 steps an epoch
    decoding = DecodingConfig(
        num_return_sequences=2, strategy="sample", num_beams=3, max_new_tokens=12, drop_unfinished=False
    )
    texts = learned.generate(["red <mask>", "blue <mask>"], decoding, [1, 2])
    assert [len(one) for one in texts] == [2, 2]
    learned.save(tmp_path / "kept")
    again = made(folders, kind, adapters=adapters).restore(tmp_path / "kept")
    assert again.generate(["red <mask>", "blue <mask>"], decoding, [1, 2]) == texts
    assert (again.losses, again.best_epoch) == (learned.losses, learned.best_epoch)
    with pytest.raises(OutputError, match="is there already"):
        learned.save(tmp_path / "kept")


@pytest.mark.parametrize("kind", ["llama", "mbart"])
@pytest.mark.parametrize("how", ["beam_search", "diverse_beam_search", "sample"])
def test_no_answer_depends_on_company(folders: dict[str, Path], kind: str, how: Any) -> None:
    generator = made(folders, kind)
    inputs = ["red", "blue and a longer input than the others", "green", "black white"]
    decoding = DecodingConfig(
        num_return_sequences=3, strategy=how, num_beams=3, max_new_tokens=10, drop_unfinished=False
    )
    together = generator.generate(inputs, decoding, [1, 2, 3, 4])
    alone = [generator.generate([text], decoding, [seed])[0] for text, seed in zip(inputs, (1, 2, 3, 4), strict=True)]
    assert together == alone


def test_equal_inputs_are_read_once(folders: dict[str, Path]) -> None:
    generator = made(folders, "llama")
    inputs = ["red blue green"] * 3 + ["black white and a longer input than the other"] * 4 + ["green"]
    decoding = DecodingConfig(strategy="sample", num_beams=1, max_new_tokens=10, drop_unfinished=False)
    alone = [generator.generate([text], decoding, [seed])[0] for seed, text in enumerate(inputs)]
    shapes: list[tuple[int, ...]] = []
    hook = generator.model.base_model.register_forward_pre_hook(
        lambda module, args, options: shapes.append(tuple(options["input_ids"].shape)), with_kwargs=True
    )
    together = generator.generate(inputs, decoding, range(len(inputs)))
    assert together == alone
    assert len({text for [text] in together}) == len(inputs)
    assert shapes[:2] == [(3, 32), (len(inputs), 1)], "each of the three inputs is read once"
    assert {columns for _, columns in shapes[1:]} == {1}
    hook.remove()


def test_sampling_takes_smaller_batches_when_memory_runs_out(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = made(folders, "llama")
    inputs = ["red", "blue and a longer input than the others", "green", "black white"]
    decoding = DecodingConfig(strategy="sample", num_beams=2, max_new_tokens=10, drop_unfinished=False)
    expected = generator.generate(inputs, decoding, range(4))
    logits, most = processors._Batch.logits, [3]

    def limited(batch: processors._Batch) -> Any:
        if len(batch.rows) > most[0]:
            raise torch.OutOfMemoryError("out of memory")
        return logits(batch)

    monkeypatch.setattr(processors._Batch, "logits", limited)
    assert generator.generate(inputs, decoding, range(4)) == expected
    most[0] = 0
    with pytest.raises(EntaugError, match="out of memory for a single text of 32 tokens"):
        generator.generate(inputs, decoding, range(4))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_goes_on_after_a_kill(precision: str, folders: dict[str, Path], tmp_path: Path) -> None:
    generator = made(folders, "llama", precision=precision)
    whole = generator.fit(PAIRS, TUNING, new_tokens=MARKERS)

    class KilledError(Exception):
        pass

    def kill(done: int, total: int, loss: float) -> None:
        if done == 7:  # the first step of the third epoch
            raise KilledError

    with pytest.raises(KilledError):
        generator.fit(PAIRS, TUNING, new_tokens=MARKERS, checkpoint_dir=tmp_path, progress=kill)
    steps: list[int] = []
    resumed = generator.fit(
        PAIRS,
        TUNING,
        new_tokens=MARKERS,
        checkpoint_dir=tmp_path,
        progress=lambda done, total, loss: steps.append(done),
    )
    assert steps == [7, 8, 9]
    assert resumed.losses == whole.losses
    assert resumed.generate(["red <mask>"]) == whole.generate(["red <mask>"])
    # Nor is a state that has changed: the training begins anew, and gives the same.
    [state] = tmp_path.iterdir()
    content = bytearray(state.read_bytes())
    content[-40] ^= 1
    state.write_bytes(content)
    steps.clear()
    anew = generator.fit(
        PAIRS,
        TUNING,
        new_tokens=MARKERS,
        checkpoint_dir=tmp_path,
        progress=lambda done, total, loss: steps.append(done),
    )
    assert steps[0] == 1
    assert anew.losses == whole.losses
    # What was learned from other pairs is not gone on with.
    steps.clear()
    other = generator.fit(
        PAIRS[1:],
        TUNING,
        new_tokens=MARKERS,
        checkpoint_dir=tmp_path,
        progress=lambda done, total, loss: steps.append(done),
    )
    assert steps[0] == 1
    assert other.losses != whole.losses


@pytest.mark.parametrize("name", ["learned.json", "learned.safetensors"])
def test_a_saved_model_that_was_changed_is_refused(folders: dict[str, Path], tmp_path: Path, name: str) -> None:
    generator = made(folders, "llama").fit(PAIRS, replace(TUNING, epochs=1), new_tokens=MARKERS)
    generator.save(tmp_path / "saved")
    file = tmp_path / "saved" / name
    if file.suffix == ".json":
        file.write_text(file.read_text().replace('"best_epoch": 1', '"best_epoch": 2'))
    else:
        content = bytearray(file.read_bytes())
        content[-5] ^= 1
        file.write_bytes(content)
    with pytest.raises(InputError, match="saved: has changed since it was saved; fine-tune it again"):
        made(folders, "llama").restore(tmp_path / "saved")


def test_pairs_drawn_anew_for_each_epoch(folders: dict[str, Path]) -> None:
    seen: list[int] = []

    def pairs(epoch: int) -> list[tuple[str, str]]:
        seen.append(epoch)
        return PAIRS

    drawn = made(folders, "llama").fit(pairs, TUNING, new_tokens=MARKERS)
    assert seen == [0, 1, 2]
    assert drawn.losses == made(folders, "llama").fit(PAIRS, TUNING, new_tokens=MARKERS).losses


def test_stops_when_what_is_held_out_gets_worse(folders: dict[str, Path]) -> None:
    # Outputs that nothing in the inputs tells: what is learned by heart does not help with those held out.
    pairs = [
        (f"{a} {b}", f"{COLOURS[(7 * i) % 5]} {i}") for i, (a, b) in enumerate((a, b) for a in COLOURS for b in COLOURS)
    ]
    learned = made(folders, "llama", adapters=False).fit(
        pairs, TrainingConfig(epochs=60, learning_rate=1e-2, patience=2)
    )
    outside = [loss for _, loss in learned.losses if loss is not None]
    assert len(outside) < 60
    assert learned.best_epoch == outside.index(min(outside)) + 1 == len(outside) - 2


# ---------------------------------------------------------------------------------------------------------- decoding


def log(*shares: float) -> list[float]:
    return [math.log(share) for share in shares]


def test_rank_penalty_on_the_case_of_figure_3() -> None:
    # Two beams, words British 0, German 1, farmer 2, market 3. Beam search takes British farmer and British market;
    # with ranks punished it takes British farmer and German farmer.
    first, never = torch.tensor([log(0.6, 0.3, 0.06, 0.04)]), -1e9
    after = torch.tensor([log(0.02, 0.03, 0.55, 0.40), log(0.06, 0.04, 0.60, 0.30)])
    start = torch.tensor([[9], [9]])
    plain = torch.tensor([[math.log(0.6)], [math.log(0.3)]]) + after
    assert sorted(plain.flatten().argsort(descending=True)[:2].tolist()) == [2, 3]  # both of British
    penalty = 0.7
    processor = DiversityPenalty(num_beams=2, diversity_penalty=penalty)
    scores = processor(start, first.expand(2, -1)) + torch.tensor([[0.0], [never]])
    assert scores[0].tolist() == pytest.approx(
        [math.log(0.6), math.log(0.3) - penalty, math.log(0.06) - 2 * penalty, math.log(0.04) - 3 * penalty]
    )
    running = scores[0, :2]  # British and German, the second lowered by its rank
    lowered = processor(torch.tensor([[9, 0], [9, 1]]), after) + running[:, None]
    # At the second step German's own rank no longer counts, only those of what follows.
    wanted = [
        [
            math.log(0.6 * 0.02) - 3 * penalty,
            math.log(0.6 * 0.03) - 2 * penalty,
            math.log(0.6 * 0.55),
            math.log(0.6 * 0.40) - penalty,
        ],
        [
            math.log(0.3 * 0.06) - 2 * penalty,
            math.log(0.3 * 0.04) - 3 * penalty,
            math.log(0.3 * 0.60),
            math.log(0.3 * 0.30) - penalty,
        ],
    ]
    torch.testing.assert_close(lowered, torch.tensor(wanted), rtol=1e-5, atol=1e-5)
    assert sorted(lowered.flatten().argsort(descending=True)[:2].tolist()) == [2, 4 + 2]


def slow_diverse(generator: Any, prompt: str, beams: int, penalty: float, longest: int) -> list[str]:
    """Equations 4 and 5 straight, one continuation after the other."""
    ids = generator._prompt(prompt)
    running: list[tuple[float, list[int]]] = [(0.0, [])]
    done: list[tuple[float, list[int]]] = []
    for step in range(longest):
        candidates = []
        for total, said in running:
            with torch.inference_mode():
                logits = generator.model(torch.tensor([[*ids, *said]])).logits[0, -1].float()
            values = logits.log_softmax(-1).tolist()
            for rank, token in enumerate(sorted(range(len(values)), key=lambda t: -values[t])[: 4 * beams]):
                candidates.append((total + values[token] - penalty * rank, total + values[token], [*said, token]))
        candidates.sort(key=lambda one: -one[0])
        running = []
        for place, (lowered, total, said) in enumerate(candidates[: 2 * beams]):
            if said[-1] == generator.vocabulary.end_id:
                if place < beams:
                    done.append((lowered / len(said), said))
            elif len(running) < beams:
                running.append((total, said))
                if step == longest - 1:
                    done.append((lowered / len(said), said))
    return [generator._text(said) for _, said in sorted(done, key=lambda one: -one[0])[:beams]]


@pytest.mark.parametrize("penalty", [0.0, 0.5, 10.0])
def test_diverse_beam_search_is_that_of_the_paper(folders: dict[str, Path], penalty: float) -> None:
    generator = made(folders, "llama").fit(
        [(c, f"{c} {c}") for c in COLOURS * 4], TrainingConfig(epochs=4, learning_rate=1e-2)
    )
    decoding = DecodingConfig(
        num_return_sequences=3,
        strategy="diverse_beam_search",
        num_beams=3,
        diversity_penalty=penalty,
        max_new_tokens=6,
        drop_unfinished=False,
    )
    for prompt in COLOURS:
        assert generator.generate([prompt], decoding)[0] == slow_diverse(generator, prompt, 3, penalty, 6)


COMPOUNDS = [["red"], ["blue green"], ["white", "black"]]


def holds(text: str, wanted: list[list[str]]) -> bool:
    """Whether all pieces stand in a text as words, the parts of each in order."""
    return all(re.search(".*".join(rf"(?<!\w){part}(?!\w)" for part in parts), text, re.IGNORECASE) for parts in wanted)


@EACH_KIND
@pytest.mark.parametrize("how", ["beam_search", "diverse_beam_search", "sample"])
def test_constrained_decoding_is_exact(folders: dict[str, Path], kind: str, how: Any) -> None:
    pairs = [(f"{a} {b}", f"a {a} and {b}.") for a in COLOURS for b in COLOURS]
    generator = made(folders, kind, adapters=False).fit(
        pairs, TrainingConfig(epochs=25, learning_rate=1e-2, patience=25)
    )
    decoding = DecodingConfig(num_return_sequences=3, strategy=how, num_beams=3, max_new_tokens=50)
    inputs = ["red white", "blue black", "white"]
    free = generator.generate(inputs, decoding, [1, 2, 3])
    forced = generator.generate(inputs, decoding, [1, 2, 3], [COMPOUNDS] * 3)
    assert not all(holds(text, COMPOUNDS) for texts in free for text in texts)
    assert any(forced), "some came to an end"
    for text in (text for texts in forced for text in texts):
        assert holds(text, COMPOUNDS), text


def test_what_constrained_decoding_allows() -> None:
    # Words are sub-words here: 1 "machine", 2 "learning", 3 "translation", 4 "arm", 5 "hurts", 9 full stop, 8 "s".
    piece = [Phrase((1, 2), (1, 2), (11, 2))]
    longer = [Phrase((1, 2, 3), (1, 2, 3), (11, 2, 3))]
    gap = [Phrase((4,), (4,), (14,)), Phrase((5,), (5,), (15,))]
    insist = PhraseConstraint([[piece, gap]], 1, 1, 0, [0, 9], [8], lambda _: False, boost=1.0)

    def possible(*said: int) -> list[int]:
        scores = insist(torch.tensor([[7, *said]]), torch.zeros(1, 16))
        return [i for i, value in enumerate(scores[0].tolist()) if value > -1e9]

    inner = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15]
    inner.remove(5)  # its second part may not come before its first
    assert possible() == inner, "no end while something is missing"
    assert possible(1) == [2], "what was begun is written to its end"
    assert possible(11) == [2], "a capital at the beginning"
    assert possible(6, 11) == inner, "and only there"
    assert possible(1, 2) == [i for i in inner if i != 8], "and no letter hangs on to it"
    assert possible(1, 2, 6, 1) == [i for i in inner if i != 2], "nothing twice"
    assert possible(1, 2, 4) == [i for i in [*inner[:4], 5, *inner[4:]] if i not in (4, 8)]
    assert possible(1, 2, 4, 6, 5) == [i for i in range(16) if i not in (4, 5, 8)], "then it may end"
    first = PhraseConstraint([[gap, piece]], 1, 1, 0, [0, 9], [8], lambda _: False, is_first=True)
    assert torch.isfinite(first(torch.tensor([[7]]), torch.zeros(1, 16))).nonzero()[:, 1].tolist() == [4]
    assert 6 in torch.isfinite(first(torch.tensor([[7, 4]]), torch.zeros(1, 16))).nonzero()[:, 1].tolist()
    # The longer nothing came, the likelier what is missing.
    assert insist(torch.tensor([[7, 6, 6, 6]]), torch.zeros(1, 16))[0, [1, 4, 6]].tolist() == [3.0, 3.0, 0.0]
    # Two words may stand before a part, and not those that it replaces; letters hang on where they are likeliest.
    after = Phrase((5,), (5,), (15,), max_gap=2, not_before=frozenset({3, 4}))
    limited = PhraseConstraint(
        [[[Phrase((1, 2), (1, 2), (11, 2)), after]]], 1, 1, 0, [0, 9], [8], lambda _: False, pieces=[13], marks=[14]
    )

    def allowed(*said: int, likeliest: int = 6) -> set[int]:
        scores = torch.zeros(1, 16)
        scores[0, likeliest] = 1
        return set(torch.isfinite(limited(torch.tensor([[7, *said]]), scores)).nonzero()[:, 1].tolist())

    assert allowed(1, 2) == {i for i in range(16) if i not in (0, 3, 4, 5, 8, 9, 14)}, "at least one word"
    assert allowed(1, 2, 6, 8) == {i for i in range(16) if i not in (0, 9)}
    assert allowed(1, 2, 6, 8, 4) == {5}
    assert allowed(1, 2, 6, 8, 4, likeliest=8) == {5, 8, 13}
    assert 6 in allowed(1, 2, 6, 8, 13, 13), "pieces of characters are no words"
    # A comma stands at its word; other parts need a space before them.
    for is_attached in (True, False):
        comma = [Phrase((10,), (12,), (12,), is_attached)]
        assert insist.progress([comma], [6, 12]).is_complete is is_attached
        assert insist.progress([comma], [6, 10]).is_complete
    # A piece that begins another one is whole, and may still go on.
    both = PhraseConstraint([[piece, longer]], 1, 0, 0, [0, 9], [8], lambda _: False)
    state = both.progress([piece, longer], [6, 1, 2])
    assert (state.is_complete, set(state.next_ids), set(state.first_ids)) == (True, {3}, {1})
    assert both.progress([piece, longer], [6, 1, 2, 3]).first_ids == {1}, "it was the longer one; the other is missing"
    assert not both.progress([piece, longer], [6, 1, 2, 3, 6, 1, 2]).first_ids


def test_marks_are_attached_to_the_word_before_them(folders: dict[str, Path]) -> None:
    texts = [", red", "'s red", ").", "( red", ".NET red", "red", '"red"', "n't red"]
    vocabulary = load_generator(str(folders["llama"])).vocabulary
    assert [phrase.is_attached for phrase in vocabulary.phrases(texts)] == [True] * 3 + [False] * 5
    # What ends with a gap ends after one to so many words.
    *_, end = vocabulary.parts(["red", Gap(2, ("blue", ","))])
    assert (end.spaced, end.max_gap, vocabulary.is_writable(end)) == ((vocabulary.end_id,), 2, True)
    [blue] = vocabulary.phrases(["blue"])
    assert end.not_before == {blue.spaced[0]}, "no mark, which begins no word anyway"


@EACH_KIND
def test_markers_before_words_can_be_read(folders: dict[str, Path], kind: str) -> None:
    marks = label_tokens(["X", "Y"])
    pairs = [(a, f"<B-X> {a} <I-X> {b} and <B-Y> {c}") for a in COLOURS for b in COLOURS for c in ("red", "blue")]
    learned = made(folders, kind).fit(pairs, TrainingConfig(epochs=8, learning_rate=1e-2), new_tokens=marks)

    def read(rules: dict[str, Any]) -> list[bool]:
        decoding = DecodingConfig(
            num_return_sequences=3,
            strategy="sample",
            num_beams=3,
            max_new_tokens=24,
            drop_unfinished=False,
            temperature=2.0,
            marker_rules=rules,
        )
        texts = [t for of_each in learned.generate(COLOURS * 3, decoding, list(range(15))) for t in of_each]
        assert sum("<B-" in text for text in texts) > 5
        assert any("<I-" in text for text in texts)
        # One that ends where its length did may end with a mark.
        parts = [re.sub("(<[BI]-[XY]>)", r" \1 ", re.sub("(<[BI]-[XY]> *)$", "", text)).split() for text in texts]
        return [parse_tagged(some, marks) is not None for some in parts]

    assert all(read(label_transitions(["X", "Y"])))
    assert not all(read({})), "what has hardly learned does not do so by itself"


@EACH_KIND
def test_the_words_of_a_new_token_are_not_written_in_its_place(folders: dict[str, Path], kind: str) -> None:
    pairs = [(a, f"<B-X> {a} <B-X> {b}") for a in ("red", "blue") for b in ("red", "blue")]
    learned = made(folders, kind).fit(pairs, TUNING, new_tokens={"<B-X>": "green"})
    parts = learned.untrained_ids
    assert parts
    assert set(parts) <= {id_ for row in learned.encode(["green", " green"]) for id_ in row}

    def scores(required: str, *text: int) -> torch.Tensor:
        phrases = [[learned.vocabulary.phrases([required])]]
        [constraint] = learned.vocabulary.constraints(phrases, [], DecodingConfig(), 0)
        return constraint.constrain([text], [0], torch.zeros(1, len(learned.tokenizer)))[0]

    assert scores("red")[parts].isneginf().all()
    [green] = learned.vocabulary.phrases(["green"])
    for i, id_ in enumerate(green.spaced):
        assert scores("green", *green.spaced[:i])[id_].isfinite(), "it may be written where it is required"


@EACH_KIND
def test_a_word_may_stand_behind_a_piece_but_no_letters_may(folders: dict[str, Path], kind: str) -> None:
    generator = made(folders, kind)
    glues = generator.vocabulary.joining
    spaced = {generator.encode([f" {word}"])[0][0] for word in ("red", "white", "and")}
    assert spaced.isdisjoint(glues), "a space in front"
    assert glues, "letters alone"


@EACH_KIND
def test_what_came_to_no_end_is_left_out(folders: dict[str, Path], kind: str) -> None:
    generator = made(folders, kind)  # it has learned nothing, and does not know how to end
    generator.model.generation_config.forced_eos_token_id = 2
    fresh = generator.fit(PAIRS, TrainingConfig(epochs=1, learning_rate=1e-6))
    assert fresh.generate(["red", "blue"], DecodingConfig(num_return_sequences=3, max_new_tokens=5)) == [[], []]
    assert all(
        len(texts) == 3
        for texts in fresh.generate(
            ["red"], DecodingConfig(num_return_sequences=3, max_new_tokens=5, drop_unfinished=False)
        )
    )


def test_a_text_begins_with_what_it_began_with_when_it_was_learned(folders: dict[str, Path]) -> None:
    # mBART's targets begin with a language, a special token that nobody says.
    generator = made(folders, "mbart", adapters=False)
    assert generator.prefix_ids, "a language stands in front"
    pairs = [(colour, f"a {colour} car.") for colour in COLOURS]
    learned = generator.fit(pairs, TrainingConfig(epochs=40, learning_rate=1e-2, patience=40, validation_fraction=0))
    assert [texts[0] for texts in learned.generate(COLOURS, DecodingConfig(max_new_tokens=20))] == [
        said for _, said in pairs
    ]


def test_no_text_is_much_longer_than_what_was_learned(folders: dict[str, Path], tmp_path: Path) -> None:
    generator = made(folders, "llama").fit([("a", "a red car")] * 4, TrainingConfig(epochs=1, learning_rate=1e-6))
    assert generator.max_target_length == len(generator.encode(["a red car"])[0]) + 1
    generator.save(tmp_path / "kept")
    for one in (generator, made(folders, "llama").restore(tmp_path / "kept")):
        asked: list[int] = []
        write = one.model.generate

        def noting(*, max_new_tokens: int, asked: list[int] = asked, write: Any = write, **options: Any) -> Any:
            asked.append(max_new_tokens)
            return write(max_new_tokens=max_new_tokens, **options)

        one.model.generate = noting
        for longest in (60, 6):
            one.generate(["a"], DecodingConfig(max_new_tokens=longest))
        assert asked == [2 * generator.max_target_length + 8, 6]


def test_pieces_that_cannot_be_written_are_not_waited_for(folders: dict[str, Path]) -> None:
    generator = made(folders, "t5")
    unknown = generator.tokenizer.unk_token
    assert generator.tokenizer.unk_token_id in generator.encode(["東京"])[0], unknown
    started = time.monotonic()
    assert generator.generate(["red"], DecodingConfig(max_new_tokens=100), None, [[["東京"]]]) == [[]]
    assert time.monotonic() - started < 5
    assert not generator.vocabulary.is_opening(10**6), "no sub-word"


def test_what_constrained_decoding_does_not_allow() -> None:
    def one(*ids: int) -> Phrase:
        return Phrase(ids, ids, ids)

    # Wanted is 1 2 3; unwanted are 4 by itself, 1 2 5 6 and, where nothing stands before, the last two alone.
    bare = Phrase((10, 11), (7, 11), (7, 11))
    unwanted = [one(4), one(1, 2, 5, 6), one(1, 2), bare]
    marks = (0, [0, 9], [8])
    insist = PhraseConstraint([[[one(1, 2, 3)]]], 1, 0, *marks, lambda id_: id_ == 12, unwanted, boost=1.0)

    def impossible(*said: int) -> list[int]:
        ids = torch.tensor([said], dtype=torch.long)
        return [i for i, value in enumerate(insist(ids, torch.zeros(1, 16))[0].tolist()) if value < -1e9]

    assert impossible() == [0, 4, 9]
    assert impossible(6, 10) == [0, 4, 9, 11], "half of something unwanted is as far as it goes"
    assert impossible(6, 7) == [0, 4, 9]
    assert impossible(6, 12, 7) == [0, 4, 9, 11], "written without a space"
    assert 2 not in impossible(1), "a piece may begin with what is unwanted by itself"
    assert impossible(1, 2, 3) == [4, 8], "and then the text may end"
    assert 2 in impossible(1, 2, 3, 6, 1), "but not be written again"
    # No four sub-words twice.
    assert 14 in impossible(6, 13, 15, 14, 5, 6, 13, 15)
    assert 14 not in impossible(6, 13, 15, 14, 5, 13, 15)

    def likelier(*said: int) -> list[int]:
        ids = torch.tensor([said], dtype=torch.long)
        return [i for i, value in enumerate(insist(ids, torch.zeros(1, 16))[0].tolist()) if value > 0]

    rest = [10, 13, 11, 14, 10, 15, 10, 14, 13, 10]
    assert likelier(1, 2, 3, *rest) == []
    assert likelier(1, 2, 3, *rest, 15) == [0, 9], "ten sub-words later the end becomes likelier"
    assert likelier(1, 2, 3, *rest, 9) == [0], "and behind a full stop that of the text alone"


# ------------------------------------------------------------------------------------------------------------ errors


def test_refusals(folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = made(folders, "llama")
    with pytest.raises(InputError, match="no training example fits"):
        generator.fit([("a", "word " * 80)])
    with pytest.raises(ParameterError, match="not trained"):
        generator.save(tmp_path / "x")
    with pytest.raises(ParameterError, match="seeds"):
        generator.generate(["a"], DecodingConfig(strategy="sample"))
    with pytest.raises(ParameterError, match="strategy must be"):
        generator.generate(["a"], DecodingConfig(strategy="best"))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="num_return_sequences must be"):
        generator.generate(["a"], DecodingConfig(num_return_sequences=4))
    with pytest.raises(ParameterError, match="epochs"):
        generator.fit(PAIRS, TrainingConfig(epochs=0))
    assert generator.generate(["word " * 80, "a"], DecodingConfig(max_new_tokens=4))[0] == [], "too long for the model"
    some = generator.fit([*PAIRS, ("a", "word " * 80)], TrainingConfig(epochs=1))
    with pytest.raises(InputError, match="holds no trained model"):
        generator.restore(tmp_path)
    some.save(tmp_path / "kept")
    with pytest.raises(InputError, match="was trained from"):
        made(folders, "bart").restore(tmp_path / "kept")
    (tmp_path / "kept" / "learned.safetensors").write_bytes(b"rubbish")
    with pytest.raises(InputError, match="kept: has changed since it was saved"):
        generator.restore(tmp_path / "kept")


def test_memory_that_runs_out_makes_steps_smaller(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made(folders, "llama").fit(PAIRS, TrainingConfig(epochs=1, learning_rate=1e-2))
    narrow = made(folders, "llama")
    most = [4]
    plain = narrow._collate

    def batch(rows: Any) -> Any:
        if len(rows) > most[0]:
            raise torch.OutOfMemoryError("out of memory")
        return plain(rows)

    monkeypatch.setattr(CausalGenerator, "_collate", lambda self, rows: batch(rows))
    small = narrow.fit(PAIRS, TrainingConfig(epochs=1, learning_rate=1e-2))
    assert small.losses[0] == pytest.approx(whole.losses[0], rel=0.05)
    most[0] = 0
    with pytest.raises(EntaugError, match="out of memory for a single training example"):
        narrow.fit(PAIRS, TrainingConfig(epochs=1))


def test_training_computes_the_logits_of_predicted_tokens_alone(folders: dict[str, Path]) -> None:
    generator = made(folders, "llama", precision="fp32")
    generator.model = generator._trainable_model(torch.float32)
    rows = [generator._row((source, target, None)) for source, target in PAIRS]
    of_head: list[tuple[int, ...]] = []
    head = generator.model.get_output_embeddings()
    hook = head.register_forward_hook(lambda module, inputs, output: of_head.append(tuple(output.shape)))
    loss = generator._loss(rows)
    hook.remove()
    expected = generator.model(**generator._collate(rows)).loss
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert of_head == [(sum(label != IGNORED for _, labels in rows for label in labels), head.weight.shape[0])]


def test_a_batch_in_parts_has_the_same_gradient(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    generator = made(folders, "llama", precision="fp32")
    config = TrainingConfig(epochs=2, learning_rate=1e-2, batch_size=len(PAIRS), validation_fraction=0)
    whole = generator.fit(PAIRS, config)
    sizes: list[int] = []
    collate = CausalGenerator._collate

    def counting(self: CausalGenerator, rows: Any) -> Any:
        sizes.append(len(rows))
        return collate(self, rows)

    monkeypatch.setattr(CausalGenerator, "_collate", counting)
    monkeypatch.setattr(training, "_MAX_CPU_TOKENS", 1)
    parts = generator.fit(PAIRS, config)
    assert set(sizes) == {1}
    assert [loss for loss, _ in parts.losses] == pytest.approx([loss for loss, _ in whole.losses], rel=1e-4)


def test_a_loss_that_is_no_number_ends_it() -> None:
    model = torch.nn.Linear(1, 1)

    class Broken(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: Any) -> Any:
            return self.inner(x).sum() * float("nan")

    broken = Broken()
    loop = TrainingLoop[int](
        broken,
        dict(broken.named_parameters()),
        TrainingConfig(),
        optimizer_options=lambda *_: (1e-3, 0.0),
        compute_loss=lambda _: broken(torch.ones(1, 1)),
        num_examples=4,
    )
    with pytest.raises(EntaugError, match="not a finite number"):
        loop.run(lambda _: [[1, 2, 3, 4]])


# --------------------------------------------------------------------------------------------- through the public way


def corpus() -> list[Sentence]:
    people, towns = ["Ada", "Bo", "Cy", "Dee"], ["Rome", "Oslo", "Bonn", "Kyiv"]
    return [
        Sentence([a, "likes", b, "."], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], id=f"{a}-{b}")
        for a in people
        for b in towns
    ]


@EACH_KIND
def test_methods_run_on_every_kind(folders: dict[str, Path], kind: str, tmp_path: Path) -> None:
    gold = corpus()
    generator = load_generator(str(folders[kind]))
    assert isinstance(generator, CausalGenerator if kind == "llama" else Seq2SeqGenerator)
    others: dict[str, Any] = {"tagger": FakeTagger(), "encoder": FakeEncoder()}
    for cls, more in ((EnTDA, {}), (ACLM, others), (MulDA, {})):
        settings: dict[str, Any] = {"epochs": 2, "learning_rate": 0.01, "max_new_tokens": 16, "max_attempts": 1, **more}
        kept = tmp_path / f"{cls.__name__}"
        first = cls(generator=generator, checkpoint_dir=str(kept), **settings).fit(gold)
        texts = [(s.tokens, s.mentions) for s in first.augment(gold)]
        tally = first.statistics_
        assert tally.accepted + tally.missing.total() == tally.requested == len(gold)
        # What was kept is used, and gives the same.
        again = cls(generator=generator, checkpoint_dir=str(kept), **settings)
        again.progress = lambda *_: pytest.fail("it learned again")
        assert [(s.tokens, s.mentions) for s in again.fit(gold).augment(gold)] == texts
        with pytest.raises(InputError, match="trained on other sentences"):
            cls(generator=generator, checkpoint_dir=str(kept), **settings).fit(gold[1:])
        assert str(kept) not in first.signature


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(OutputError, match="is not a checkpoint folder"):
        EnTDA(candidates=1, generator=FakeGenerator(), checkpoint_dir=str(tmp_path)).fit(corpus())


def test_a_generator_that_repeats_the_corpus_is_told_of() -> None:
    gold = corpus()

    class Parrot(FakeGenerator):
        def fit(self, *given: Any, **named: Any) -> Self:
            return self

        def generate(self, inputs: Any, *given: Any) -> list[list[str]]:
            return [["Ada likes Rome."] * 3 for _ in inputs]

    method = EnTDA(candidates=1, generator=Parrot(), max_attempts=1).fit(gold)
    assert not list(method.augment(gold))
    assert method.statistics_.rejected[COPIED.reason] == len(gold)
    [told] = method.advice(method.statistics_)
    assert "memorised" in told
