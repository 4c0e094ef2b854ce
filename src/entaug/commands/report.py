"""``entaug report``: show results of experiments and augmented sentences, as Markdown or HTML."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from entaug.commands.command import Command, Summary
from entaug.commands.options import COMPUTING, FORCE, JSON, READING_AUGMENTED
from entaug.core.progress import Progress, no_progress
from entaug.errors import InputError, ParameterError
from entaug.files.streams import STDIN, read_beginning
from entaug.formats.augmented import AugmentedCorpus, read_augmented
from entaug.formats.file_job import check_apart, check_output, write_text
from entaug.metrics.quality import Quality, measure_corpus
from entaug.metrics.span_f1 import SENTENCE_LENGTHS
from entaug.metrics.tables import quantity
from entaug.report.html.page import notes_on_examples, render_html_report
from entaug.report.markdown import markdown_report, missing_runs
from entaug.study.planned import PLAN_FILE, RunCount, read_known_plan
from entaug.study.records import RECORDS_FILE, is_run_record, read_run_records


@dataclass
class ReportSummary(Summary):
    """Result of `write_report`."""

    output: str
    pairs: int = 0
    methods: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    plan: RunCount | None = None
    missing: list[str] | None = None
    notes: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield from (f"note: {note}" for note in self.notes)
        content = [str(self.plan) if self.plan else quantity(self.runs, "run")] if self.runs else []
        if self.methods:
            content.append(f"{quantity(self.pairs, 'augmented sentence')} of {quantity(len(self.methods), 'method')}")
        if self.output != "-":
            yield f"wrote {self.output}{': ' if content else ''}{' and '.join(content)}"


def classify_inputs(inputs: Iterable[str | Path]) -> tuple[list[str], list[str], list[str]]:
    """Separate results of experiments from files of sentences by their content; return them with notes."""
    runs: list[str] = []
    augmented: list[str] = []
    notes: list[str] = []
    for given in map(str, inputs):
        path = Path(given)
        if not path.exists():
            raise InputError("no such file or folder", path=given, remedy="check the path")
        if path.suffix == ".toml":
            raise InputError("is a plan, and has no results", path=given, remedy="name its output folder")
        file = path / RECORDS_FILE if path.is_dir() else path
        is_run = file.name == RECORDS_FILE
        if path.is_dir() and not file.is_file() and not (path / PLAN_FILE).is_file():
            augmented.append(given)  # a folder of a format
        elif file.is_file() and (start := read_beginning(file, 1 << 20).lstrip()):
            (runs if is_run or _has_records(start) else augmented).append(given)
        else:
            notes.append(f"{given} {'holds no record of a run yet' if is_run else 'is empty'}")
    return runs, augmented, notes


def _has_records(start: bytes) -> bool:
    try:
        return is_run_record(orjson.loads(start.partition(b"\n")[0]))
    except orjson.JSONDecodeError:
        return False


def write_report(
    inputs: str | Path | Iterable[str | Path],
    output: str | Path = "-",
    *,
    gold: str | Path | None = None,
    models: bool = True,
    title: str | None = None,
    by_type: bool = False,
    by_length: Sequence[int] = (),
    errors: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    **options: Any,
) -> ReportSummary:
    """Write a report on experiments as Markdown, or on experiments and augmented files as one page of HTML.

    The page has results, measures and plots, and the augmented sentences for review. Of more than 20,000, as many drawn
    at random are shown as examples; counts, measures and plots are of all.

    Args:
        inputs: folders of experiments or their ``runs.jsonl``; for HTML also augmented files in any format, and those
            of rejected sentences. Their kind is detected from the content.
        output: the file to write: HTML for ``.html``, else Markdown; ``"-"`` for standard output.
        gold: HTML: the file that was augmented; required if the inputs hold augmented sentences only.
        models: HTML: measures that need language models and encoders (perplexity, similarity ...).
        title: HTML: the title of the page.
        by_type: add tables of F1 by entity type.
        by_length: add tables of F1 by number of tokens of the sentence: the last length of each bin but the last.
        errors: add tables of F1 on mentions seen and unseen in training, and of errors by kind.
        force: replace an output that exists.
        progress: called with the stage, the number of finished texts and their total.
        options: options for reading augmented files; see `entaug.formats.read_augmented`.

    Returns:
        A summary.

    Raises:
        InputError: an input is missing or invalid.
        MissingExtraError: a library that the report needs is not installed.
        OutputError: the output exists, is an input, or cannot be written.
        ParameterError: an input is not a path.

    Example:
        >>> import entaug, tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> gold = [entaug.Sentence("a b c d e".split())]
        >>> _ = entaug.write([*gold, *entaug.create_augmenter("sis").augment(gold)], folder / "new.jsonl")
        >>> write_report([folder / "new.jsonl"], folder / "report.html", models=False).methods
        {'sis': 1}
    """
    paths = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    if not all(isinstance(path, str | Path) for path in paths):
        raise ParameterError(
            "inputs must be paths of files", remedy="write the sentences to a file first: entaug.write"
        )
    runs, augmented, notes = [*map(str, paths)], list[str](), list[str]()
    if is_page := str(output).lower().endswith((".html", ".htm")):
        runs, augmented, notes = classify_inputs(paths)
        # Check before measuring, which takes minutes. A report may be in an experiment's folder, but not in a corpus's.
        check_output(output, STDIN, force=force)
        for path in (*augmented, *(path for path in runs if Path(path).is_file()), *([gold] if gold else [])):
            check_output(output, path, force=force)
        progress("reading", 0, None)
    else:
        _, sentences, _ = classify_inputs(path for path in paths if Path(path).is_file())
        if sentences or gold is not None or title is not None:
            message = "sentences, `gold` and `title` are for HTML only"
            raise InputError(message, path=next(iter(sentences), None), remedy="name an output that ends in .html")
        check_apart([output], (Path(path, RECORDS_FILE) if Path(path).is_dir() else path for path in paths))
    records, plan = read_run_records(runs), read_known_plan(runs)
    shown: dict[str, Any] = {"by_type": by_type, "by_length": by_length, "errors": errors, "plan": plan}
    corpus, qualities = AugmentedCorpus(), list[Quality]()
    if augmented or gold is not None:
        corpus = read_augmented(augmented, gold, **options)
    if any(corpus.methods.values()):
        without: dict[str, Any] = {} if models else {"causal_lm": None, "encoder": None}
        qualities = measure_corpus(corpus, progress=progress, **without)
    if is_page:
        names = [Path(path).stem for path in augmented]
        title = title or ("Augmented sentences" + (f": {', '.join(names)}" if 0 < len(names) < 4 else ""))
        text = render_html_report(corpus, records, qualities=qualities, title=title, notes=notes, **shown)
    else:
        text = markdown_report(records, **shown)
    write_text(text, output, force=force)
    notes += [f"the plan of {plan.unknown} is not known"] if plan.unknown else []
    notes += [*corpus.notes, *notes_on_examples(corpus), *(note for one in qualities[:1] for note in one.notes)]
    return ReportSummary(
        output=str(output),
        pairs=sum(map(len, corpus.methods.values())),
        methods={name: sum(pair.rejection is None for pair in pairs) for name, pairs in corpus.methods.items()},
        runs=len(records),
        plan=plan.count,
        missing=missing_runs(plan),
        notes=list(dict.fromkeys(notes)),
    )


def _lengths(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    lengths = tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()
    if not lengths or lengths[0] < 1 or any(a >= b for a, b in pairwise(lengths)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of increasing lengths, such as 10,20,30")
    return lengths


COMMAND = Command(
    write_report,
    {
        "inputs": {"nargs": "+", "metavar": "INPUT"},
        "models": {"flags": ("--no-models",), "action": "store_false", "help": "HTML: leave out measures with models"},
        "by_length": {
            "action": "store",
            "nargs": "?",
            "type": _lengths,
            "const": SENTENCE_LENGTHS,
            "metavar": "LENGTHS",
        },
    },
    (FORCE, JSON, READING_AUGMENTED, COMPUTING),
)
