"""The workflow behind ``entaug evaluate``: score predicted mentions against gold ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from entaug.backends.language_check import note_on_encoder
from entaug.backends.protocols import Tagger
from entaug.backends.resolve import is_alias, resolve
from entaug.core.data import Sentence
from entaug.errors import InputError, ParameterError
from entaug.formats import read
from entaug.formats.file_job import Options, require_mentions
from entaug.metrics.span_f1 import Scores, score
from entaug.taggers.base import load_tagger

__all__ = ["evaluate_files", "load_trained_tagger"]


def evaluate_files(
    gold: str | Path,
    predicted: str | Path | None = None,
    *,
    tagger: str | None = None,
    repair: bool = False,
    from_format: str | None = None,
    read_options: Options = None,
    report: Callable[[str], None] = lambda _: None,
) -> Scores:
    """Score the predicted mentions of a file or of a tagger against gold mentions.

    Args:
        gold: the file with gold mentions.
        predicted: the same sentences with predicted mentions, in any format and layout; or the folder of a saved
            tagger.
        tagger: in place of `predicted`, the folder of a saved tagger, or a model of another library:
            ``"spacy:en_core_web_sm"``, ``"hf:dslim/bert-base-NER"``, ``"gliner:urchade/gliner_medium-v2.1"``; see
            `entaug.taggers.pretrained.PretrainedTagger`. Unless a map of labels is given, the best one for these
            very sentences is used, so the score is a little too high.
        repair: repair invalid tag sequences.
        from_format: the format of both files; None to detect it.
        read_options: options of the format of both.
        report: called with notes on the tagger.

    Returns:
        The scores; see `entaug.metrics.span_f1.score`.

    Raises:
        InputError: a file is invalid, the gold file has no mention, or the files do not hold the same sentences.
        ParameterError: not one of `predicted` and `tagger` is given, or the tagger must be trained first.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "gold.conll")
        >>> _ = entaug.write([entaug.Sentence(["Rome"], [entaug.Mention("LOC", [(0, 1)])])], file)
        >>> evaluate_files(file, file).micro.f1
        1.0
    """
    if (predicted is None) == (tagger is None):
        raise ParameterError("give a file of predictions, or a tagger", remedy="for example --tagger FOLDER")
    options = read_options or {}
    gold_corpus = read(gold, from_format, repair=repair, **options)
    require_mentions(gold_corpus, gold, "to score predictions by")
    if predicted is not None and Path(predicted).is_dir():
        saved = load_tagger(predicted)
        for note in note_on_encoder(saved, gold_corpus):
            report(note)
        return score(gold_corpus, saved.predict(gold_corpus))
    if predicted is None:
        return score(gold_corpus, load_trained_tagger(str(tagger), gold_corpus, report).predict(gold_corpus))
    predictions = read(predicted, from_format, repair=repair, **options)
    try:
        return score(gold_corpus, predictions)
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
    if not hasattr(tagger, "label_map_"):
        raise ParameterError(f"the tagger {name} is not trained", remedy=f"run: entaug train --tagger {name}")
    tagger.fit(gold)
    for note in getattr(tagger, "notes", ()):
        report(note)
    return tagger
