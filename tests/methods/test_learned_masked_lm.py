"""Masked language models that learn: saved, read again, gone on with after a kill; the first stays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch")

from entaug import Mention, Sentence
from entaug.backends.config import TrainingConfig
from entaug.backends.protocols import MaskedExample, MaskedText, TrainableMaskedLM
from entaug.backends.transformers.masked_lm import TransformersMaskedLM
from entaug.errors import InputError, OutputError
from entaug.methods import MaskedEntityLM
from helpers import tiny

KINDS = ("bert", "roberta", "xlm-roberta")
TUNING = TrainingConfig(epochs=3, learning_rate=1e-2)
MARKERS = {"<B-X>": "begin x", "<I-X>": "inside x"}
WORDS = "office spring full Monday new last".split()
PLAIN: list[MaskedText] = [["The ", None, " opened."], [None, " rained on ", None]]
MARKED: list[MaskedText] = [["The <B-X> ", None, " <B-X> opened."]]


def blanked(epoch: int) -> list[MaskedExample]:
    """Another word of each text hidden in each epoch."""
    made: list[MaskedExample] = []
    for i, word in enumerate(WORDS * 4):
        other = WORDS[(i + epoch) % len(WORDS)]
        made.append([("The <B-X>", False), (f" {word}", True), (f" <B-X> was {other} .", False)])
    return made


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: tiny.save(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


def opened(folders: dict[str, Path], kind: str, *, adapters: bool = True) -> TransformersMaskedLM:
    return TransformersMaskedLM(folders[kind], device="cpu", precision="fp32", adapters=adapters)


@pytest.mark.parametrize("adapters", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_learns_beside_the_first_and_is_read_back(
    folders: dict[str, Path], kind: str, adapters: bool, tmp_path: Path
) -> None:
    plain = opened(folders, kind, adapters=adapters)
    assert isinstance(plain, TrainableMaskedLM)
    before = plain.fill(PLAIN, 4)
    likely = plain.token_log_probs([("The new office opened.", None)])
    learned = plain.fit(blanked, TUNING, new_tokens=MARKERS)
    assert learned.losses[-1][0] < learned.losses[0][0]
    answers = learned.fill(MARKED, 4)
    assert answers != plain.fill(MARKED, 4)
    assert not any("<" in word for of_text in answers for of_gap in of_text for word, _ in of_gap)
    # Both answer in turn, each as itself.
    for _ in range(2):
        assert plain.fill(PLAIN, 4) == before
        assert (plain.token_log_probs([("The new office opened.", None)])[0] == likely[0]).all()
        assert learned.fill(MARKED, 4) == answers
    learned.save(tmp_path / "kept")
    again = opened(folders, kind, adapters=adapters).restore(tmp_path / "kept")
    assert again.fill(MARKED, 4) == answers
    assert plain.restore(tmp_path / "kept").fill(MARKED, 4) == answers, "one that has answered before, too"
    assert plain.fill(PLAIN, 4) == before
    assert (again.losses, again.best_epoch, again.new_tokens) == (
        learned.losses,
        learned.best_epoch,
        learned.new_tokens,
    )
    with pytest.raises(OutputError, match="is there already"):
        learned.save(tmp_path / "kept")
    with pytest.raises(InputError, match="was trained from"):
        opened(folders, next(k for k in KINDS if k != kind)).restore(tmp_path / "kept")


def test_no_answer_of_what_has_learned_depends_on_company(folders: dict[str, Path]) -> None:
    learned = opened(folders, "roberta").fit(blanked, TUNING, new_tokens=MARKERS)
    texts: list[MaskedText] = [*MARKED, ["A <B-X> ", None, " <B-X> <I-X> ", None, " <I-X> and much more of the same"]]

    def words(answers: Sequence[Sequence[Sequence[tuple[str, float]]]]) -> list[list[list[str]]]:
        return [[[word for word, _ in of_gap] for of_gap in of_text] for of_text in answers]

    together = words(learned.fill(texts, 4))
    assert [len(of_text) for of_text in together] == [1, 2]
    assert together == [words(learned.fill([text], 4))[0] for text in texts]


def test_goes_on_after_a_kill(folders: dict[str, Path], tmp_path: Path) -> None:
    model = opened(folders, "roberta")
    whole = model.fit(blanked, TUNING, new_tokens=MARKERS)

    class KilledError(Exception):
        pass

    def kill(done: int, total: int, loss: float) -> None:
        del loss
        if done > 2 * total / 3:  # in the third epoch
            raise KilledError

    with pytest.raises(KilledError):
        model.fit(blanked, TUNING, new_tokens=MARKERS, checkpoint_dir=tmp_path, progress=kill)
    steps: list[int] = []
    resumed = model.fit(
        blanked,
        TUNING,
        new_tokens=MARKERS,
        checkpoint_dir=tmp_path,
        progress=lambda done, total, loss: steps.append(done),
    )
    assert steps[0] > 1
    assert resumed.losses == whole.losses
    assert resumed.fill(MARKED, 6) == whole.fill(MARKED, 6)


def test_melm_keeps_what_it_learned(folders: dict[str, Path], tmp_path: Path) -> None:
    gold = [
        Sentence(["The", word, "was", other, "."], [Mention("X", [(1, 2)])])
        for word in ("office", "spring", "Monday", "Lisbon")
        for other in ("new", "full", "last")
    ]

    def made(checkpoint_dir: str | None = None) -> list[tuple[str, ...]]:
        model = opened(folders, "roberta")
        method = MaskedEntityLM(
            candidates=1,
            masked_lm=model,
            epochs=2,
            batch_size=4,
            learning_rate=1e-2,
            max_rank=40,
            checkpoint_dir=checkpoint_dir,
            guard=False,  # it finds nothing that an untrained model likes
        )
        return [s.tokens for s in method.fit(gold).augment(gold)]

    first = made()
    assert first
    assert made(checkpoint_dir=str(tmp_path / "kept")) == first
    (tmp_path / "kept" / "state").mkdir()  # killed after the model was saved
    assert made(checkpoint_dir=str(tmp_path / "kept")) == first
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["key.txt", "learned"]
    assert (tmp_path / "kept" / "learned").is_dir()
    assert made(checkpoint_dir=str(tmp_path / "kept")) == first
