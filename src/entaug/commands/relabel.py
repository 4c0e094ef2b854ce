"""``entaug relabel``: check and complete the labels of augmented sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from entaug.commands.command import Command, FileSummary
from entaug.commands.options import COMPUTING, FORCE, JSON, LOSSES, READING, WRITING
from entaug.commands.output import rejection_lines, relabelling_lines
from entaug.core.progress import Progress, no_progress
from entaug.errors import ParameterError
from entaug.formats.augmented import PairedFile
from entaug.formats.exchange import CorpusData, takes_data
from entaug.formats.file_job import FileJob, FileOptions
from entaug.methods.statistics import CorpusStatistics
from entaug.metrics.tables import quantity
from entaug.teacher.relabel import Relabeller, count_changes, create_relabeller

_WINDOW = 64  # sentences between two reports of progress


@dataclass(kw_only=True)
class RelabelSummary(FileSummary):
    """Result of `relabel`."""

    teacher: str
    gold: int = 0
    augmented: int = 0
    kept: int = 0
    changed: int = 0
    relabelled: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    before: CorpusStatistics = field(default_factory=CorpusStatistics)
    after: CorpusStatistics = field(default_factory=CorpusStatistics)

    def count_lines(self) -> Iterator[str]:
        changed = f"labels of {self.changed:,} of {quantity(self.augmented, 'augmented sentence')} changed"
        gold = f", {quantity(self.gold, 'gold sentence')} unchanged" if self.gold else ""
        yield f"{changed}{gold}: {self.after.sentences:,} written"
        yield from relabelling_lines(self.relabelled)
        yield from rejection_lines(self.rejected)


@takes_data("input", "gold")
def relabel(
    input: CorpusData,
    output: str | Path,
    teacher: str | Relabeller = "ensemble",
    *,
    gold: CorpusData | None = None,
    rejected: str | Path | None = None,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> RelabelSummary:
    """Check and complete the labels of the augmented sentences of a file; gold sentences stay as they are.

    A teacher, by default an ensemble of taggers trained on the gold sentences, adds mentions that it is sure of, and
    softens labels that it finds improbable.

    Args:
        input: augmented sentences, with or without the gold ones; or ``"-"``.
        output: the file for the sentences, or ``"-"`` for standard output.
        teacher: a tagger trained on the gold sentences, or the folder of a trained one, that checks and completes the
            labels: ``NAME:PARAMETER=VALUE,...`` with the parameters ``labels``, ``add_threshold``, ``doubt_threshold``
            and ``improbable``, or another form that `entaug.teacher.relabel.create_relabeller` accepts.
        gold: the corpus that was augmented; required if the input holds augmented sentences only, or no provenance.
        rejected: a JSON Lines file for the rejected sentences, with the reason in ``entaug.rejected``.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.

    Returns:
        A summary with counts.

    Raises:
        ParameterError: no teacher is given, or it cannot do what is asked.
        InputError: the input is invalid, or holds no augmented sentence.
        LossError: the output's format cannot store some content, for example probabilities of tags.
        OutputError: an output exists or cannot be written; then none is written.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> from entaug import Mention, Sentence
        >>> from entaug.backends.fakes import FakeTagger
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> gold = Sentence("Ada left Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])])
        >>> _ = entaug.write([gold], folder / "gold.jsonl")
        >>> _ = entaug.write([gold.with_(mentions=gold.mentions[:1])], folder / "new.jsonl")
        >>> teacher = Relabeller(tagger=FakeTagger())
        >>> new, out = folder / "new.jsonl", folder / "out.jsonl"
        >>> summary = relabel(new, out, teacher, gold=folder / "gold.jsonl")
        >>> dict(summary.relabelled)
        {'added: LOC': 1}
    """
    relabeller = create_relabeller(teacher)
    if relabeller is None:
        raise ParameterError("no teacher is given", remedy="name one, for example `teacher=ensemble`")
    summary = RelabelSummary(input=str(input), output=str(output), teacher="")
    job = FileJob(input, output, **files)
    rejected_path = job.check([gold], rejected=rejected)
    relabeller.load()
    with PairedFile.open(job, gold, progress) as file:
        progress("training the teacher", 0, None)
        relabeller.fit(file.gold)
        sentences = list(file.sentences)
        reasons = [None if pair is None else pair.rejection for pair in file.pairs]  # rejections by an earlier run stay
        pending = [i for i, pair in enumerate(file.pairs) if pair is not None and reasons[i] is None]
        for start in range(0, len(pending), _WINDOW):
            window = pending[start : start + _WINDOW]
            for i, result in zip(window, relabeller.relabel([sentences[i] for i in window]), strict=True):
                sentences[i], reasons[i] = result
            progress("relabelling", start + len(window), len(pending))
        summary.lost = file.write(sentences, reasons, rejected_path)
    summary.from_format, summary.to_format = file.source.dialect.describe(), file.target_file.dialect.describe()
    summary.teacher = relabeller.signature
    summary.gold = file.pairs.count(None)
    summary.augmented = len(file.pairs) - summary.gold
    summary.rejected.update(reason for reason in reasons if reason is not None)
    summary.kept = summary.augmented - summary.rejected.total()
    kept = [sentence for sentence, reason in zip(sentences, reasons, strict=True) if reason is None]
    for i in pending:
        if reasons[i] is None:
            changes = count_changes(sentences[i])
            summary.relabelled.update(changes)
            summary.changed += bool(changes)
    summary.before, summary.after = CorpusStatistics.of(file.sentences), CorpusStatistics.of(kept)
    return summary.finish(file.reading, relabeller.model_notes())


COMMAND = Command(
    relabel,
    {"teacher": {"nargs": "?", "const": "ensemble"}},
    (FORCE, LOSSES, JSON, READING, WRITING, COMPUTING),
)
