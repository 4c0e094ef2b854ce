"""``entaug suggest``: select sentences of unlabelled text to annotate next."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from entaug.commands.command import Command, FileSummary, OptionGroup, add_parameters, given_parameters
from entaug.commands.options import (
    COMPUTING,
    FORCE,
    JSON,
    READING,
    WRITING,
    add_held_out_option,
    add_unlabelled_options,
    read_unlabelled_options,
)
from entaug.commands.output import label_lines
from entaug.config.params import PositiveInt, Probability, check_arguments
from entaug.core.corpus import UnlabelledText
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError
from entaug.formats.base import ReadReport
from entaug.formats.exchange import CorpusData, takes_data
from entaug.formats.file_job import FileJob, FileOptions, check_apart, read_sentences, require_mentions
from entaug.metrics.tables import quantity
from entaug.teacher.label import PseudoLabelled, Strategy, label_sentences, most_informative
from entaug.teacher.train import Teacher, TeacherParameters

_WITH_PROBABILITIES = ("jsonl", "parquet", "datasets")  # formats in which the probabilities of tags are kept


@dataclass(kw_only=True)
class SuggestSummary(FileSummary):
    """Result of `suggest`."""

    gold: int = 0
    text: int = 0
    suggested: int = 0
    skipped: int = 0
    mentions: Counter[str] = field(default_factory=Counter)

    def count_lines(self) -> Iterator[str]:
        skipped = f", {self.skipped:,} passed over as similar to others" if self.skipped else ""
        yield f"{self.suggested:,} of {quantity(self.text, 'sentence')} suggested{skipped}"
        yield from label_lines(self.mentions)


@takes_data("input")
def suggest(
    input: CorpusData,
    unlabelled: UnlabelledText,
    output: str | Path,
    *,
    number: PositiveInt = 100,
    strategy: Strategy = "uncertainty",
    max_similarity: Probability = 0.6,
    min_tokens: int = 4,
    teacher: TeacherParameters | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> SuggestSummary:
    r"""Write the sentences of unlabelled text that are worth annotating, with the labels of a teacher.

    No two of them are nearly alike. For annotation tools: --to label-studio, --to doccano, --to prodigy. The teacher is
    trained on the training sentences. The field ``suggestion`` of a sentence holds its rank, its
    score, and the confidence of the teacher; its id is that in the text. In Label Studio, the labels of the teacher
    are predictions of tasks without annotations.

    Args:
        input: the training file.
        unlabelled: the text, see `entaug.read_unlabelled`.
        output: the file to write, or ``"-"`` for standard output.
        number: the maximum number of sentences.
        strategy: ``"uncertainty"``: the lowest confidence; ``"entropy"``: the highest mean entropy of a word;
            ``"margin"``: a word with two tags that are nearly as likely; ``"random"``: any.
        max_similarity: the maximum similarity of two suggested sentences, see `entaug.metrics.near_duplicates`.
        min_tokens: shorter sentences are left out; two characters of Chinese or Japanese that are tokens count as one.
        teacher: the parameters of the teacher; None for an ensemble of three taggers.
        seed: the random seed.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.

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
        >>> suggest(folder / "train.conll", text, folder / "tasks.jsonl", teacher=teacher).suggested
        1
    """
    given = {"number": number, "strategy": strategy, "max_similarity": max_similarity, "min_tokens": min_tokens}
    check_arguments(suggest, given)
    summary = SuggestSummary(input=str(input), output=str(output), text=len(unlabelled))
    job = FileJob(input, output, **files)
    job.check(folders=False)
    with job.open_input() as source:
        target_file = job.open_output(source, predicted=True)
        reading = ReadReport(repair=job.repair)
        gold = list(read_sentences(source, reading, progress=progress))
        require_mentions(gold, input)
        trained = (teacher or TeacherParameters()).create_teacher(seed)
        labelled = _label(gold, unlabelled, trained, progress)
        how: dict[str, Any] = {"strategy": strategy, "max_similarity": max_similarity, "min_tokens": min_tokens}
        chosen, summary.skipped = most_informative(labelled, number, **how, seed=seed)
        if not chosen:
            remedy = "name another text, or lower min_tokens"
            raise InputError(f"no sentence of the text has {min_tokens} tokens", path=unlabelled.source, remedy=remedy)
        suggested = [
            _suggestion(one, rank, score, keep=target_file.format.name in _WITH_PROBABILITIES)
            for rank, (one, score) in enumerate(chosen, start=1)
        ]
        with target_file.writer(force=job.force) as writer:
            for sentence in suggested:
                summary.lost.update(target_file.lost(sentence))
                writer.write(sentence)
        notes = FileJob(allow_loss=["all"]).settle_losses(summary.lost, target_file)
    summary.to_format, summary.gold, summary.suggested = target_file.dialect.describe(), len(gold), len(suggested)
    summary.mentions.update(mention.label for sentence in suggested for mention in sentence.mentions)
    return summary.finish(reading, [*unlabelled.notes, *trained.notes, *notes])


def _label(
    gold: Sequence[Sentence], text: Sequence[Sentence], teacher: Teacher, progress: Progress
) -> list[PseudoLabelled]:
    teacher.fit(gold, progress=lambda done, total, loss: progress(f"training, loss {loss:.2f}", done, total))
    progress("labelling", 0, len(text))
    return label_sentences(text, teacher.tagger, is_flat=all(sentence.is_flat for sentence in gold))


def _suggestion(labelled: PseudoLabelled, rank: int, score: float, *, keep: bool) -> Sentence:
    """Return a sentence as it is written: not marked as augmented, because it will be gold when it is annotated."""
    sentence, confidence = labelled
    details = {"rank": rank, "score": round(score, 4), "confidence": round(confidence, 4)}
    layout = sentence.layout if keep else {}
    return sentence.with_(provenance=None, layout=layout, meta={"suggestion": details})


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_unlabelled_options(parser, required=True)
    add_held_out_option(parser, "which must not be in the text; may be repeated")
    add_parameters(parser.add_argument_group("teacher"), TeacherParameters)


def _values(args: argparse.Namespace) -> dict[str, Any]:
    check_apart([args.output], [*args.held_out, *args.unlabelled])
    teacher = TeacherParameters(**given_parameters(args, TeacherParameters))
    return {"unlabelled": read_unlabelled_options(args), "teacher": teacher}


COMMAND = Command(
    suggest,
    {"unlabelled": None, "teacher": None},
    (FORCE, JSON, OptionGroup(_add_options, _values), READING, WRITING, COMPUTING),
)
