"""The function `auto`: choose a recipe for a corpus by cross-validation, and train with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from entaug.backends.language_check import note_on_encoder
from entaug.errors import ParameterError
from entaug.files.atomic import check_new_folder, output_error
from entaug.files.locks import lock
from entaug.files.mention_lists import parse_specification, read_mention_list
from entaug.study.auto.inputs import file_digest, read_inputs
from entaug.study.auto.search import Search
from entaug.study.auto.summary import AutoSummary
from entaug.study.auto.tracking import ProgressCallback
from entaug.study.auto.workspace import Workspace
from entaug.taggers.base import create_tagger

__all__ = ["auto"]


def auto(
    train: str | Path,
    output: str | Path,
    *,
    unlabelled: Sequence[str | Path] = (),
    dev: str | Path | None = None,
    held_out: Sequence[str | Path] = (),
    drop_held_out: bool = False,
    mentions: Sequence[str] = (),
    encoder: str = "minilm",
    teacher_encoder: str | None = None,
    budget: float | None = None,
    tagger: str | None = None,
    recipes: Sequence[str] | None = None,
    folds: int | None = None,
    repeats: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    repair: bool = False,
    from_format: str | None = None,
    read_options: Mapping[str, Any] | None = None,
    force: bool = False,
    progress: ProgressCallback = lambda _: None,
    on_wait: Callable[[], None] = lambda: None,
) -> AutoSummary:
    """Find out which recipe of augmentation helps on a corpus, and train a tagger with it.

    Gains over gold alone are measured by cross-validation on the training sentences, or on `dev`, at equal numbers of
    optimizer steps, by the rule of `entaug.study.auto.selection`. No gain is measured on test sentences; no sentence
    that one is measured on is seen by a teacher or a method, or used as unlabelled text. An interrupted call
    goes on where it was if it is repeated, with the same result.

    Args:
        train: the gold training sentences.
        output: the folder of the result, new or empty: ``tagger``, ``train.jsonl`` (gold and added sentences),
            ``augmented.jsonl`` (the added ones alone), ``report.html``, ``plan.toml`` and ``summary.json``.
        unlabelled: files of further text of the same kind; labels in them are ignored.
        dev: labelled sentences to measure gains on, in place of cross-validation.
        held_out: test files. Nothing is measured on them; unlabelled text must share no sentence with them, and lists
            of mentions are used without theirs.
        drop_held_out: leave unlabelled sentences that are in `dev` or `held_out` out instead of raising an error.
        mentions: lists of mentions for ``mr``: ``FILE=LABEL``, or another form that it reads. In measurements they are
            used without the mentions of the held-out sentences.
        encoder: the pretrained encoder of the tagger: an alias of the starter set, a folder, or a name on the hub.
        teacher_encoder: the encoder of the teacher, for example a larger one, whose knowledge the tagger then learns
            from unlabelled text; None for the mean of three taggers with `encoder`, which are trained anyway.
        budget: the time in minutes. It limits folds, recipes and repetitions in a fixed order, by the duration of a
            first training; None for all.
        tagger: name of the tagger; None for ``"linear"``, or ``"w2ner"`` for nested and discontinuous mentions.
        recipes: names of the recipes to try, see `entaug.study.auto.catalogue.RECIPES`; None for all that
            apply, ``"gal"`` only without unlabelled text.
        folds: number of folds; None to let the budget decide, 0 to measure nothing: then the gains on other corpora
            decide, which is enough for a teacher with a larger encoder.
        repeats: number of repetitions; None to let the budget decide.
        steps: number of optimizer steps of every training; None to derive it from the number of sentences, see
            `entaug.study.auto.folds.default_steps`.
        seed: the random seed.
        repair: repair invalid tag sequences.
        from_format: format of `train` and `dev`; None to detect it.
        read_options: options of this format.
        force: drop what an interrupted call with other arguments left.
        progress: called during each training.
        on_wait: called once if another process works on this output; then it is waited for.

    Returns:
        What was chosen, and which gain to expect.

    Raises:
        InputError: a file is invalid, or unlabelled text holds sentences of `dev` or `held_out`.
        OutputError: the output exists, or cannot be written.
        ParameterError: an argument is invalid.
        MissingModelError: the encoder is not on this machine.
        UnknownNameError: there is no such recipe or tagger.

    Example:
        >>> auto("train.conll", "result", folds=1)
        Traceback (most recent call last):
        ...
        entaug.errors.ParameterError: folds must be an integer of at least 2, or 0, not 1
    """
    begun = time.monotonic()
    output = Path(output)
    _check_numbers(budget=budget, folds=folds, repeats=repeats, steps=steps)
    check_new_folder(output)
    layout = {name: value for name, value in (read_options or {}).items() if value is not None}
    unlabelled = [unlabelled] if isinstance(unlabelled, str | Path) else list(unlabelled)
    held_out = [held_out] if isinstance(held_out, str | Path) else list(held_out)
    if held_out and not unlabelled and not mentions:
        remedy = "give unlabelled text or lists of mentions, or leave it out"
        raise ParameterError("held_out has nothing to be compared with", parameter="held_out", remedy=remedy)
    inputs = read_inputs(
        train,
        unlabelled,
        dev,
        held_out=held_out,
        drop_held_out=drop_held_out,
        repair=repair,
        from_format=from_format,
        read_options=layout,
    )
    mentions = [mentions] if isinstance(mentions, str) else list(mentions)
    for given in mentions:
        read_mention_list(given)  # reports what is wrong with it
        file = parse_specification(given)[0]
        inputs.digests[str(file)] = file_digest(file)
    tagger = tagger or ("linear" if inputs.is_flat else "w2ner")
    for name in filter(None, (encoder, teacher_encoder)):
        created = create_tagger(tagger, encoder=str(name))
        created.check_requirements()
        inputs.notes += note_on_encoder(created, inputs.gold)
    arguments: dict[str, Any] = {
        "train": str(train),
        "unlabelled": [str(path) for path in unlabelled],
        "dev": None if dev is None else str(dev),
        "held_out": [str(path) for path in held_out],
        "drop_held_out": drop_held_out,
        "mentions": mentions,
        "encoder": str(encoder),
        "teacher_encoder": None if teacher_encoder is None else str(teacher_encoder),
        "tagger": tagger,
        "recipes": None if recipes is None else list(recipes),
        "folds": folds,
        "repeats": repeats,
        "steps": steps,
        "seed": seed,
        "repair": repair,
        "from_format": from_format,
        "read_options": layout,
    }
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(output.parent, error) from None
    with lock(Workspace.folder_for(output), on_wait):
        check_new_folder(output)  # another process may have finished it
        choice = Search(arguments, inputs, output, budget=budget, force=force, progress=progress)
        return replace(choice.execute(), seconds=time.monotonic() - begun)


def _check_numbers(**numbers: float | None) -> None:
    for name, value in numbers.items():
        if value is None:
            continue
        if name == "budget":
            is_valid, expected = value > 0, "above 0"
        elif name == "folds":
            is_valid, expected = type(value) is int and value >= 0 and value != 1, "an integer of at least 2, or 0"
        else:
            is_valid, expected = type(value) is int and value >= 1, "an integer of at least 1"
        if not is_valid:
            raise ParameterError(f"{name} must be {expected}, not {value!r}", parameter=name)
