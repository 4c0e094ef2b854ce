"""The workflow behind ``entaug suggest``: select sentences of unlabelled text that are worth annotating by hand."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from entaug.core.corpus import UnlabelledText
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError, ParameterError
from entaug.files.streams import rereadable_path
from entaug.formats import open_file
from entaug.formats.base import ReadReport, note_lines
from entaug.formats.file_job import Options, as_predictions, check_output, open_target, read_sentences, require_mentions
from entaug.methods.selftraining import PseudoLabelled, label_sentences, ranked
from entaug.metrics.near_duplicates import select_distinct
from entaug.metrics.uncertainty import uncertainty
from entaug.teacher.trained import Teacher, TeacherParameters

__all__ = ["Strategy", "SuggestSummary", "suggest_file"]

Strategy = Literal["uncertainty", "entropy", "margin", "random"]
"""How sentences are selected; see `suggest_file`."""
_WITH_PROBABILITIES = ("jsonl", "parquet", "datasets")  # formats in which the probabilities of tags are kept


@dataclass
class SuggestSummary:
    """Result of `suggest_file`."""

    input: str
    output: str
    to_format: str
    gold: int = 0
    text: int = 0
    suggested: int = 0
    skipped: int = 0
    mentions: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def suggest_file(
    input: str | Path,
    unlabelled: UnlabelledText,
    output: str | Path,
    *,
    number: int = 100,
    strategy: Strategy = "uncertainty",
    max_similarity: float = 0.6,
    min_tokens: int = 4,
    teacher: TeacherParameters | None = None,
    seed: int = 0,
    force: bool = False,
    repair: bool = False,
    from_format: str | None = None,
    to_format: str | None = None,
    read_options: Options = None,
    write_options: Options = None,
    progress: Progress = no_progress,
) -> SuggestSummary:
    r"""Write the sentences of unlabelled text that are worth annotating, with the labels of a teacher.

    The teacher is trained on the training sentences. The field ``suggestion`` of a sentence holds its rank, its
    score, and the confidence of the teacher; its id is that in the text. In Label Studio, the labels of the teacher
    are predictions of tasks without annotations.

    Args:
        input: the training file.
        unlabelled: the text, see `entaug.read_unlabelled`.
        output: the file to write, or ``"-"``.
        number: the maximum number of sentences.
        strategy: ``"uncertainty"``: those with the lowest confidence; ``"entropy"`` or ``"margin"``: see
            `entaug.metrics.uncertainty.uncertainty`; ``"random"``: any.
        max_similarity: the maximum similarity of two sentences (see `entaug.metrics.near_duplicates`).
        min_tokens: shorter sentences are left out.
        teacher: the parameters of the teacher; None for an ensemble of three taggers.
        seed: the random seed.
        force: replace an output that exists.
        repair: repair invalid tag sequences of the training file.
        from_format: the format of the training file; None to detect it.
        to_format: the format of the output; None for that of its extension, or else of the training file.
        read_options: options of the training file's format.
        write_options: options of the output's format.
        progress: the progress callback.

    Returns:
        A summary with counts.

    Raises:
        ParameterError: a number is out of range.
        InputError: the training file is invalid or has no mentions, or no sentence of the text is long enough.
        OutputError: the output exists or cannot be written.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> from entaug.backends.fakes import FakeTagger
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> gold = [Sentence.from_iob("Ada left Rome .".split(), ["B-PER", "O", "B-LOC", "O"])]
        >>> _ = entaug.write(gold, folder / "train.conll")
        >>> text = UnlabelledText([Sentence("So it goes .".split(), id="novel:3")])
        >>> teacher = TeacherParameters(tagger=FakeTagger())
        >>> suggest_file(folder / "train.conll", text, folder / "tasks.jsonl", teacher=teacher).suggested
        1
    """
    begun = time.monotonic()
    if number < 1 or not 0 <= max_similarity <= 1:
        raise ParameterError("number must be at least 1, and max_similarity from 0 to 1")
    check_output(output, input, force=force)
    with rereadable_path(input) as path:
        source = open_file(path, from_format, **(read_options or {}))
        to = as_predictions(open_target(output, to_format, source, write_options, force=force), write_options)
        reading = ReadReport(repair=repair)
        gold = list(read_sentences(source, reading, progress=progress))
        require_mentions(gold, input)
        trained = (teacher or TeacherParameters()).create_teacher(seed)
        labelled = _label(gold, unlabelled, trained, progress)
        candidates = [one for one in labelled if len(one.sentence) >= min_tokens]
        if not candidates:
            remedy = "name another text, or lower min_tokens"
            raise InputError(f"no sentence of the text has {min_tokens} tokens", path=unlabelled.source, remedy=remedy)
        scores = {id(one): _score(one, strategy) for one in candidates}
        ordered = sorted(ranked(candidates, "random", seed), key=lambda one: -scores[id(one)])
        chosen = select_distinct([one.sentence for one in ordered], number, max_similarity=max_similarity)
        suggested = [
            _suggestion(ordered[i], rank, scores[id(ordered[i])], keep=to.format.name in _WITH_PROBABILITIES)
            for rank, i in enumerate(chosen, start=1)
        ]
        with to.writer(force=force) as writer:
            for sentence in suggested:
                writer.write(sentence)
        summary = SuggestSummary(str(input), str(output), to.dialect.describe(), len(gold), len(unlabelled))
        summary.suggested, summary.repaired = len(suggested), reading.repaired
        summary.skipped = chosen[-1] + 1 - len(chosen)
        summary.mentions.update(mention.label for sentence in suggested for mention in sentence.mentions)
        summary.notes = [*unlabelled.notes, *trained.notes, *note_lines(reading.notes)]
        summary.seconds = time.monotonic() - begun
        return summary


def _label(
    gold: Sequence[Sentence], text: Sequence[Sentence], teacher: Teacher, progress: Progress
) -> list[PseudoLabelled]:
    teacher.fit(gold, progress=lambda done, total, loss: progress(f"training, loss {loss:.2f}", done, total))
    progress("labelling", 0, len(text))
    return label_sentences(text, teacher.tagger, is_flat=all(sentence.is_flat for sentence in gold))


def _score(labelled: PseudoLabelled, strategy: Strategy) -> float:
    from entaug.core.soft_labels import TagProbabilities

    if strategy == "random":
        return 0.0
    if strategy == "uncertainty":
        return 1 - labelled.confidence
    probabilities = TagProbabilities.from_sentence(labelled.sentence)
    if probabilities is None:
        raise ParameterError(
            f"{strategy} needs probabilities of tags, which this teacher does not give",
            remedy="choose the strategy uncertainty or random",
        )
    return uncertainty(probabilities, strategy)


def _suggestion(labelled: PseudoLabelled, rank: int, score: float, *, keep: bool) -> Sentence:
    """Return a sentence as it is written: not marked as augmented, because it will be gold when it is annotated."""
    sentence, confidence = labelled
    details = {"rank": rank, "score": round(score, 4), "confidence": round(confidence, 4)}
    layout = sentence.layout if keep else {}
    return sentence.with_(provenance=None, layout=layout, meta={"suggestion": details})
