"""The workflow behind ``entaug evaluate``: score predicted mentions against gold ones."""

from __future__ import annotations

from pathlib import Path

from entaug.errors import InputError
from entaug.formats import read
from entaug.scoring.span_f1 import Scores, score
from entaug.taggers.base import load_tagger
from entaug.workflows.common import Options

__all__ = ["evaluate_files"]


def evaluate_files(
    gold: str | Path,
    predicted: str | Path,
    *,
    repair: bool = False,
    from_format: str | None = None,
    read_options: Options = None,
) -> Scores:
    """Score the predicted mentions of a file or of a tagger against gold mentions.

    Args:
        gold: the file with gold mentions.
        predicted: the same sentences with predicted mentions, in any format and layout; or the folder of a saved
            tagger.
        repair: repair invalid tag sequences.
        from_format: the format of both files; None to detect it.
        read_options: options of the format of both.

    Returns:
        The scores; see `entaug.scoring.span_f1.score`.

    Raises:
        InputError: a file is invalid, or the files do not hold the same sentences.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "gold.conll")
        >>> _ = entaug.write([entaug.Sentence(["Rome"], [entaug.Mention("LOC", [(0, 1)])])], file)
        >>> evaluate_files(file, file).micro.f1
        1.0
    """
    options = read_options or {}
    gold_corpus = read(gold, from_format, repair=repair, **options)
    if Path(predicted).is_dir():
        return score(gold_corpus, load_tagger(predicted).predict(gold_corpus))
    predictions = read(predicted, from_format, repair=repair, **options)
    try:
        return score(gold_corpus, predictions)
    except InputError as error:
        error.path = str(predicted)
        raise
