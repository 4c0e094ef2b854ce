"""The commands around experiments: parsing and printing, as in `entaug.cli`, of which this is the second half."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from entaug.cli import OK, _add_reading, _n, _print_json, _progress, _reading, _say_line, _say_repairs
from entaug.errors import ParameterError

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the commands to those of `entaug.cli`."""
    subset = commands.add_parser(
        "subset",
        help="draw low-resource subsets of a corpus",
        description="Write subsets beside one another, in the layout of the input: FOLDER/train.100.conll ...",
    )
    subset.add_argument("input", help="the file, or - for standard input")
    subset.add_argument("--sizes", required=True, help="how many sentences, with commas: 100,200 (fraction: also 0.1)")
    subset.add_argument("--how", default="progressive", help="progressive (default), first, fraction or stratified")
    subset.add_argument("--seed", type=int, default=0, help="of the drawing (default: 0)")
    subset.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where the subsets go")
    subset.add_argument("--rest", action="store_true", help="write the sentences that are in no subset too")
    subset.add_argument("--force", action="store_true", help="replace files that exist")
    _add_reading(subset)
    subset.set_defaults(run=_subset)

    evaluate = commands.add_parser(
        "evaluate",
        help="score predicted mentions against gold ones",
        description="Exact match of label and spans, in points: in all, by type, by length and by kind of mention.",
    )
    evaluate.add_argument("gold", help="the annotated file")
    evaluate.add_argument("predicted", help="the same sentences with predicted mentions")
    _add_reading(evaluate)
    evaluate.set_defaults(run=_evaluate)

    report = commands.add_parser(
        "report",
        help="tables and verdicts from the records of experiments",
        description="Write what runs have shown, as Markdown.",
    )
    report.add_argument("runs", nargs="+", help="folders with a runs.jsonl, or such files")
    report.add_argument("-o", "--output", default="-", help="where to write (default: - for standard output)")
    report.add_argument("--force", action="store_true", help="replace an output that exists")
    report.add_argument("--by-type", action="store_true", help="tables of F1 by entity type too")
    report.set_defaults(run=_report)


def _subset(args: argparse.Namespace) -> int:
    from entaug.scoring_jobs import subset_file

    with _progress() as progress:
        summary = subset_file(
            args.input,
            args.output,
            [_size(text) for text in args.sizes.split(",")],
            how=args.how,
            seed=args.seed,
            with_rest=args.rest,
            force=args.force,
            **_reading(args),
            progress=progress,
        )
    if args.json:
        _print_json(summary)
        return OK
    _say_repairs(summary.repaired)
    for file in summary.files:
        counts = file.counts
        about = f"{_n(counts.sentences, 'sentence')}, {_n(counts.mentions.total(), 'mention')}"
        _say_line(f"wrote {file.path}: {about} of {_n(len(counts.mentions), 'type')}")
    return OK


def _size(text: str) -> float:
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        remedy = "give sizes with commas between: 100,200"
        raise ParameterError(f"--sizes: {text!r} is no number", remedy=remedy) from None


def _evaluate(args: argparse.Namespace) -> int:
    from entaug.scoring import table
    from entaug.scoring_jobs import evaluate_files

    scores = evaluate_files(args.gold, args.predicted, **_reading(args))
    if args.json:
        _print_json(scores.as_dict())
    else:
        sys.stdout.write(table(scores))
    return OK


def _report(args: argparse.Namespace) -> int:
    from entaug.report import read_runs, report_on
    from entaug.scoring_jobs import write_text

    write_text(report_on(read_runs(args.runs), by_type=args.by_type), args.output, force=args.force)
    if args.output != "-":
        _say_line(f"wrote {args.output}")
    return OK
