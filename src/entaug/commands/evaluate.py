"""``entaug evaluate``: score predicted mentions against gold ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Unpack

from entaug.backends.language_check import note_on_encoder
from entaug.backends.protocols import Tagger
from entaug.backends.resolve import is_alias, resolve
from entaug.commands.command import Command
from entaug.commands.options import COMPUTING, JSON, READING
from entaug.core.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.formats.exchange import CorpusData, takes_data
from entaug.formats.file_job import FileJob, FileOptions, require_mentions
from entaug.metrics.span_f1 import Scores, score, score_table
from entaug.taggers.base import CONFIG_FILE


@takes_data("gold", "predicted", "train")
def evaluate(
    gold: CorpusData,
    predicted: CorpusData | None = None,
    *,
    tagger: str | None = None,
    train: CorpusData | None = None,
    report: Callable[[str], None] = lambda _: None,
    **files: Unpack[FileOptions],
) -> Scores:
    """Score the predicted mentions of a file or of a tagger against gold mentions.

    Precision, recall and F1 of exact matches of label and spans, in percent: overall, by type, by length, by kind of
    mention (flat, nested, discontinuous), and of mentions seen and unseen in training; and the number of errors of each
    kind: type, boundary, both, missing and spurious mentions.

    Args:
        gold: the file with gold mentions.
        predicted: the same sentences with predicted mentions, in any format and layout; or the folder of a saved
            tagger.
        tagger: in place of `predicted`, the folder of a saved tagger, or a model of another library:
            ``"spacy:en_core_web_sm"``, ``"hf:dslim/bert-base-NER"``, ``"gliner:urchade/gliner_medium-v2.1"``; see
            `entaug.taggers.pretrained.PretrainedTagger`. Unless a map of labels is given, the best one for these
            very sentences is used, so the score is a little too high.
        train: the training sentences, for the scores of seen and unseen mentions.
        report: called with notes on the tagger.
        files: how both files are read, see `FileJob`.

    Returns:
        The scores; see `entaug.metrics.span_f1.score`.

    Raises:
        InputError: a file is invalid, the gold file has no mention, or the files do not hold the same sentences.
        ParameterError: not one of `predicted` and `tagger` is given, or the tagger must be trained first.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "gold.conll")
        >>> _ = entaug.write([entaug.Sentence(["Rome"], [entaug.Mention("LOC", [(0, 1)])])], file)
        >>> evaluate(file, file).micro.f1
        1.0
    """
    if (predicted is None) == (tagger is None):
        message = "give a file of predictions, or a tagger" + ("" if predicted is None else ", not both")
        raise ParameterError(message, remedy="for example `tagger=FOLDER`")
    job = FileJob(gold, **files)
    gold_corpus = job.read_as_input(gold)
    require_mentions(gold_corpus, gold, "to score predictions by")
    training = job.read_as_input(train) if train is not None else None
    if predicted is None or Path(predicted, CONFIG_FILE).is_file():
        name = str(tagger) if predicted is None else str(Path(predicted).absolute())
        predictions: Sequence[Sentence] = load_trained_tagger(name, gold_corpus, report).predict(gold_corpus)
        return score(gold_corpus, predictions, training)
    try:
        predictions = job.read_as_input(predicted)
    except InputError as error:
        if Path(predicted).is_dir():
            error.message += " and holds no tagger"
        raise
    try:
        return score(gold_corpus, predictions, training)
    except InputError as error:
        error.path = str(predicted)
        raise


def load_trained_tagger(name: str, gold: Sequence[Sentence], report: Callable[[str], None]) -> Tagger:
    """Load a tagger that needs no training."""
    tagger: Tagger = resolve("tagger", name)
    if not is_alias("tagger", name):
        for note in note_on_encoder(tagger, gold):
            report(note)
        return tagger
    if not (hasattr(tagger, "label_map_") or hasattr(tagger, "source_names")):
        raise ParameterError(f"the tagger {name} is not trained", remedy=f"run: entaug train --tagger {name}")
    if gold or not hasattr(tagger, "fit_without_gold"):
        tagger.fit(gold)
    else:
        tagger.fit_without_gold()
    for note in getattr(tagger, "notes", ()):
        report(note)
    return tagger


def _show(_: argparse.Namespace, scores: Scores) -> tuple[str, ...]:
    sys.stdout.write(score_table(scores))
    return ()


COMMAND = Command(
    evaluate,
    {"predicted": {"flags": (), "nargs": "?"}, "tagger": {"metavar": "NAME"}},
    (JSON, READING, COMPUTING),
    show=_show,
)
