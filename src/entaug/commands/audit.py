"""``entaug audit``: find labels of a corpus that are probably wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Unpack

from annotated_types import Ge

from entaug.backends.protocols import Tagger
from entaug.commands.command import Command, FileSummary
from entaug.commands.options import COMPUTING, FORCE, JSON, LOSSES, READING, WRITING
from entaug.commands.output import label_lines
from entaug.config.params import PositiveInt, Probability, check_arguments
from entaug.core.changes import Change
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.core.spacing import joined
from entaug.errors import InputError, ParameterError
from entaug.files.review import Correction, read_review
from entaug.files.streams import is_stdout
from entaug.formats.base import ReadReport
from entaug.formats.bookkeeping import without_bookkeeping
from entaug.formats.corpus_file import CorpusFile
from entaug.formats.exchange import CorpusData, takes_data
from entaug.formats.file_job import FileJob, FileOptions, locate_losses, read_sentences, require_mentions, write_text
from entaug.metrics.consistency import SUSPICIOUS, Finding, find_label_errors, hull
from entaug.metrics.tables import quantity
from entaug.report.html.audit import render_audit_page
from entaug.report.html.page import template_environment
from entaug.taggers.base import default_tagger
from entaug.teacher.audit import ask_teachers
from entaug.teacher.corrections import correct, described, log_lines
from entaug.teacher.train import TeacherParameters

_SHOWN, _AROUND = 10, 8  # findings that are printed, each with so many words before and after it


@dataclass(kw_only=True)
class AuditSummary(FileSummary):
    """Result of `audit`."""

    sentences: int = 0
    mentions: int = 0
    suspicious: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    first: list[str] = field(default_factory=list)
    page: str = ""

    def count_lines(self) -> Iterator[str]:
        found, sentences = quantity(self.findings.total(), "suspicious label"), quantity(self.sentences, "sentence")
        yield f"{found} in {self.suspicious:,} of {sentences} with {self.mentions:,} mentions"
        yield from label_lines(self.findings)
        yield from self.first
        if self.page:
            yield f"wrote {self.page}: open it in a browser to accept or reject each suggestion"


@dataclass(kw_only=True)
class CorrectionSummary(FileSummary):
    """Result of `audit` with the decisions of a reviewer."""

    sentences: int = 0
    corrected: int = 0
    corrections: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    log: str = ""

    def count_lines(self) -> Iterator[str]:
        made, sentences = quantity(self.corrections.total(), "label"), quantity(self.sentences, "sentence")
        yield f"{made} corrected in {self.corrected:,} of {sentences}, {quantity(self.rejected, 'suggestion')} rejected"
        yield from label_lines(self.corrections)
        if self.log:
            yield f"wrote {self.log}: what was changed"


@takes_data("input")
def audit(
    input: CorpusData,
    output: str | Path,
    *,
    html: str | Path | None = None,
    teacher: str | Tagger = "auto",
    folds: Annotated[int, Ge(2)] = 5,
    min_score: Probability = SUSPICIOUS,
    number: PositiveInt | None = None,
    review: str | Path | None = None,
    log: str | Path | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> AuditSummary | CorrectionSummary:
    r"""Write the sentences of a corpus whose labels are probably wrong, the most suspicious first, with suggestions.

    A label is compared with how the same words are labelled elsewhere in the corpus, and with the opinion of a teacher
    that was trained on other folds of it. The field audit of a sentence has its findings. In Label Studio the labels
    are the annotation of a task, and the suggestions its prediction.

    With --html the findings are also a page for a reviewer, whose exported decisions --apply-review applies: the output
    is then the whole corpus with the suggestions that were accepted, and the labels that were corrected by hand.

    Args:
        input: the corpus, which stays as it is.
        output: the file to write, or ``"-"`` for standard output: JSON lines where the corpus is in a format without
            further fields, unless the format is named.
        html: the page to write.
        teacher: a tagger that is trained on each set of folds: ``"linear"``, ``"linear:encoder=mpnet;steps=500"``,
            ``"ensemble"`` ..., or the folder of a tagger that is trained on other sentences; ``"auto"`` for
            ``"linear"``, or ``"w2ner"`` if mentions are nested or have gaps; ``"none"`` to compare labels only, which
            takes seconds.
        folds: the number of folds, and of trainings.
        min_score: the lowest score of a suspicious label: one minus the share of the evidence that is in favour of it.
        number: the maximum number of suspicious labels; none for all.
        review: decisions exported from the page: write the corrected corpus.
        log: with the decisions: the file for the corrections, JSON lines; by default the name of the output with
            ``.changes.jsonl``.
        seed: the random seed of the folds, and of the ensemble.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.

    Returns:
        A summary with counts.

    Raises:
        ParameterError: options contradict one another.
        InputError: the corpus is invalid, has no mention or too few sentences, or the decisions are damaged.
        LossError: the output's format cannot store some content, for example the findings.
        OutputError: an output exists or cannot be written; then none is written.
        MissingExtraError: a library that the teacher or the page needs is not installed.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> tags = [["B-LOC", "O"], ["B-LOC", "O"], ["B-LOC", "O"], ["B-PER", "O"]]
        >>> corpus = [Sentence.from_iob(["Rome", word], tags[i]) for i, word in enumerate(("is", "was", "has", "had"))]
        >>> _ = entaug.write(corpus, folder / "train.conll")
        >>> summary = audit(folder / "train.conll", folder / "tasks.jsonl", teacher="none")
        >>> print(summary.first[0])
        0.78 type: [Rome]PER had -> LOC; "Rome" is labelled LOC 3 times elsewhere, and 0 times labelled PER
    """
    check_arguments(audit, {"folds": folds, "min_score": min_score, "number": number})
    job = FileJob(input, output, **files)
    if review is not None:
        if html is not None:
            raise ParameterError("a page is made before the decisions", remedy="leave out `html`")
        return _correct(job, review, log, progress)
    if log is not None:
        raise ParameterError("corrections are logged when decisions are applied", remedy="add `review=FILE`")
    job.check()
    if html is not None:
        job.check_beside(html)
        template_environment()  # what the page needs is missed before any training
    summary = AuditSummary(input=str(input), output=str(output), page="" if html is None else str(html))
    with job.open_input() as source:
        if job.to_format is None and is_stdout(output) and not source.format.carries.fields:
            job = replace(job, to_format="jsonl")
        target_file = job.open_output(source)
        reading = ReadReport(repair=job.repair)
        corpus: list[Sentence] = []
        with locate_losses(source, reading):
            for sentence in read_sentences(source, reading, progress=progress):
                corpus.append(sentence)
                task = _task(sentence, [], 1, target_file)
                summary.lost.update(target_file.lost(task))
                if not sentence.is_flat:  # a format that cannot store such mentions says so before any training
                    target_file.encode(task)
        require_mentions(corpus, input, "to compare")
        summary.from_format, summary.to_format = source.dialect.describe(), target_file.dialect.describe()
        notes = job.settle_losses(summary.lost, target_file)
        judges = None
        if teacher != "none":
            named = teacher if teacher != "auto" else default_tagger(corpus)
            parameters = TeacherParameters(tagger=named)
            judges, told = ask_teachers(
                corpus, lambda: parameters.create_teacher(seed), folds=folds, seed=seed, progress=progress
            )
            notes += told
        findings = find_label_errors(corpus, judges, min_score=min_score)[:number]
        by_place: dict[int, list[Finding]] = {}
        for finding in findings:
            by_place.setdefault(finding.place, []).append(finding)
        with target_file.writer(force=job.force) as writer:
            for rank, (place, own) in enumerate(by_place.items(), start=1):
                writer.write(_task(corpus[place], own, rank, target_file))
    if html is not None:
        title = f"Suspicious labels: {Path(input).stem}"
        write_text(render_audit_page(corpus, findings, title=title), html, force=job.force)
    summary.sentences, summary.suspicious = len(corpus), len(by_place)
    summary.mentions = sum(len(sentence.mentions) for sentence in corpus)
    summary.findings.update(finding.kind for finding in findings)
    summary.first = [_line(corpus[finding.place], finding) for finding in findings[:_SHOWN]]
    return summary.finish(reading, notes)


def _task(sentence: Sentence, findings: Sequence[Finding], rank: int, target_file: CorpusFile) -> Sentence:
    """A sentence with its findings, by itself: what its document says besides stays there."""
    plain = without_bookkeeping(sentence)
    told = [
        {
            "kind": one.kind,
            "given": described(sentence, one.given),
            "suggested": described(sentence, one.suggested),
            "score": round(one.score, 4),
            "support": round(one.support, 4),
            "reason": one.reason,
        }
        for one in findings
    ]
    score = max((round(one.score, 4) for one in findings), default=0.0)
    new = plain.with_(meta={**plain.meta, "audit": {"rank": rank, "score": score, "findings": told}})
    if target_file.format.name == "label-studio":
        from entaug.formats.label_studio import with_predictions

        changes = [Change(one.given, one.suggested) for one in findings]
        suggested = _corrected(plain, [Correction(0, None, (change,)) for change in changes])[0]
        dialect: Any = target_file.dialect
        return with_predictions(new, suggested, score, dialect)
    return new


def _line(sentence: Sentence, finding: Finding) -> str:
    """A finding in one line: the words around it, with the label that is suspicious alone."""
    given, new = finding.given, finding.suggested
    start, end = hull(Change(given, new))
    start, end = max(0, start - _AROUND), min(len(sentence), end + _AROUND)
    part = Sentence(sentence.tokens[start:end], [] if given is None else [given.shift(-start)])
    shown = f"{'... ' if start else ''}{part}{' ...' if end < len(sentence) else ''}"
    suggestion = "no mention"
    if new is not None:
        words = joined(sentence.mention_tokens(new))
        suggestion = new.label if finding.kind == "type" else f"[{words}]{new.label}"
    return f"{finding.score:.2f} {finding.kind}: {shown} -> {suggestion}; {finding.reason}"


# --------------------------------------------------------------------------------------------------------- corrections


def _correct(job: FileJob, review: str | Path, log: str | Path | None, progress: Progress) -> CorrectionSummary:
    """Write the corpus with the corrections that a reviewer accepted."""
    job.check([review])
    log_path = job.check_log(log, [review])
    read = read_review(review)
    if not read.corrections:
        remedy = "export it from the page that entaug audit --html wrote"
        raise InputError("holds no decision about a suspicious label", path=str(review), remedy=remedy)
    wanted: dict[int, list[Correction]] = {}
    for correction in read.corrections:
        if correction.is_accepted:
            wanted.setdefault(correction.fingerprint, []).append(correction)
    summary = CorrectionSummary(input=str(job.input), output=str(job.output), log=log_path)
    summary.rejected = sum(not correction.is_accepted for correction in read.corrections)
    lines: list[str] = []
    used: set[Correction] = set()
    conflicts = 0
    with job.open() as (source, target_file):
        reading = ReadReport(repair=job.repair)
        summary.from_format, summary.to_format = source.dialect.describe(), target_file.dialect.describe()
        with target_file.writer(force=job.force) as writer:
            for number, sentence in enumerate(read_sentences(source, reading, progress=progress), start=1):
                own = [c for c in wanted.get(sentence.fingerprint_number(), ()) if c.id in (None, sentence.id)]
                own.sort(key=lambda correction: not correction.by_hand)  # what a reviewer wrote goes first
                used.update(own)
                new, made, left_out = _corrected(sentence, own)
                conflicts += left_out
                summary.sentences += 1
                summary.corrected += bool(made)
                summary.corrections.update(change.kind for change in made)
                lines += log_lines(number, sentence, made)
                summary.lost.update(target_file.lost(new))
                writer.write(new)
            notes = job.settle_losses(summary.lost, target_file)
    if log_path:
        write_text("".join(lines), log_path, force=job.force)
    missing = sum(len(some) for some in wanted.values()) - len(used)
    if missing:
        notes.append(
            f"{quantity(missing, 'accepted correction')} of sentences that are not in this file, or not any more"
        )
    if conflicts:
        notes.append(
            f"{quantity(conflicts, 'accepted correction')} contradicting an earlier one, or its sentence, left out"
        )
    return summary.finish(reading, notes)


def _corrected(sentence: Sentence, corrections: Sequence[Correction]) -> tuple[Sentence, list[Change], int]:
    """The sentence with the corrections that fit together, the first ones first; the changes; and how many fit not."""
    new, made, conflicts = sentence, list[Change](), 0
    for correction in corrections:
        changes = [change for change in correction.changes if change not in made]
        candidate = correct(new, changes) if changes else new
        # A suggestion never makes mentions overlap where none did; what a reviewer wrote is not judged.
        if candidate is None or not (correction.by_hand or candidate.is_flat or not sentence.is_flat):
            conflicts += 1
            continue
        new = candidate
        made += changes
    return new, made, conflicts


COMMAND = Command(
    audit,
    {"html": {"metavar": "PAGE"}, "teacher": {"metavar": "TAGGER"}},
    (FORCE, LOSSES, JSON, READING, WRITING, COMPUTING),
)
