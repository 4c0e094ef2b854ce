"""The commands around experiments: parsing and printing, as in `entaug.cli.main`, of which this is the second half."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entaug.cli import filter_commands
from entaug.cli.main import (
    OK,
    _n,
    _progress,
    _say_line,
    _say_lost,
    _say_notes,
    _say_repairs,
    print_json,
)
from entaug.cli.options import Once, add_computing, add_reading, reading
from entaug.errors import InputError, ParameterError

if TYPE_CHECKING:
    from entaug.experiment import State

__all__ = ["add"]


def add(commands: Any) -> None:
    """Add the commands to those of `entaug.cli.main`."""
    filter_commands.add(commands)

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
    add_reading(subset)
    subset.set_defaults(run=_subset)

    train = commands.add_parser(
        "train",
        help="train a tagger on a corpus",
        description="Train a tagger and save it in a folder; test it with: entaug evaluate GOLD FOLDER",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    train.add_argument("input", help="the sentences to learn from, gold or gold and augmented")
    train.add_argument("-o", "--output", required=True, help="a folder that is new or empty")
    train.add_argument("--dev", help="sentences to be scored on, and to choose the best epoch by with --keep best")
    train.add_argument("--tagger", default="linear", help="linear, bilstm-crf, static-bilstm-crf or w2ner")
    train.add_argument(
        "--encoder", help="an alias of the starter set, a folder, or a name on the hub (default: minilm)"
    )
    train.add_argument("--vectors", help="word vectors of static-bilstm-crf (default: glove)")
    train.add_argument(
        "--overlap",
        choices=["error", "outermost", "innermost"],
        help="which mentions a tagger of flat ones learns where they overlap (default: error)",
    )
    for name, kind, text in _TRAINING:
        train.add_argument("--" + name.replace("_", "-"), type=kind, metavar=name.upper(), help=text)
    add_reading(train)
    add_computing(train)
    train.set_defaults(run=_train)

    experiment = commands.add_parser(
        "experiment",
        help="find out whether augmentation helps",
        description="Do the runs of a plan: corpora x subset sizes x methods x amounts x taggers x seeds.\n"
        "Run it again after an interruption: finished runs are not repeated.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    experiment.add_argument("plan", help="a TOML file: see the README")
    experiment.add_argument("--jobs", type=int, help="runs at a time (default: by cores and threads, four at most)")
    experiment.add_argument("--check", action="store_true", help="check the plan and count its runs, and do none")
    add_computing(experiment)
    experiment.set_defaults(run=_experiment)

    evaluate = commands.add_parser(
        "evaluate",
        help="score predicted mentions against gold ones",
        description="Exact match of label and spans, in points: in all, by type, by length and by kind of mention.",
    )
    evaluate.add_argument("gold", help="the annotated file")
    evaluate.add_argument("predicted", help="the same sentences with predicted mentions, or the folder of a tagger")
    add_reading(evaluate)
    add_computing(evaluate)
    evaluate.set_defaults(run=_evaluate)

    report = commands.add_parser(
        "report",
        help="what augmentation made and whether it helped: Markdown, or a page of HTML with examples",
        description="Write what runs have shown, as Markdown; or, to a file that ends in .html, a page: that, with\n"
        "what methods made (measures, plots), and the sentences to look through, to accept and to reject.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="folders with a runs.jsonl, such files; page: also augmented files",
    )
    report.add_argument("-o", "--output", default="-", help="where to write (default: - for standard output)")
    report.add_argument("--force", action="store_true", help="replace an output that exists")
    report.add_argument("--by-type", action="store_true", help="Markdown: tables of F1 by entity type too")
    report.add_argument(
        "--gold", action=Once, metavar="FILE", help="page: the file that was augmented, where the others lack it"
    )
    report.add_argument(
        "--no-models", dest="models", action="store_false", help="page: only measures that need no model"
    )
    report.add_argument("--title", help="page: its title")
    add_reading(report)
    add_computing(report)
    report.set_defaults(run=_report)
    _add_quality(commands)


def _add_quality(commands: Any) -> None:
    quality = commands.add_parser(
        "quality",
        help="measure what methods have made, without training",
        description="Fluency, novelty, diversity, labels and length of new sentences, a method a column, beside gold.\n"
        "JSON lines know method and source of a sentence; of other formats all that is not in the gold file was made.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    quality.add_argument("files", nargs="*", metavar="FILE", help="augmented files, of one method or several")
    quality.add_argument(
        "--gold", action=Once, help="the file that was augmented, where FILE holds new sentences alone"
    )
    quality.add_argument("--measures", metavar="NAMES", help="which, with commas (default: all that the models allow)")
    quality.add_argument("--list", action="store_true", help="say what each measure means, and measure nothing")
    for option, usual in _ASKED.items():
        what = option.replace("_lm", " language model").replace("_", " ")
        quality.add_argument(
            f"--{option.replace('_', '-')}",
            metavar="MODEL",
            help=f"{what}: an alias, a folder, or a name on the hub (default: {usual or 'none, which leaves it out'})",
        )
    quality.add_argument("--no-models", action="store_true", help="leave out all that needs a model")
    quality.add_argument(
        "-o",
        "--output",
        default="-",
        help="where to write: a table, Markdown to .md, JSON to .json (default: - for standard output)",
    )
    quality.add_argument("--force", action="store_true", help="replace an output that exists")
    add_reading(quality)
    add_computing(quality)
    quality.set_defaults(run=_quality)


def _subset(args: argparse.Namespace) -> int:
    from entaug.workflows.evaluate import subset_file

    with _progress() as progress:
        summary = subset_file(
            args.input,
            args.output,
            [_size(text) for text in args.sizes.split(",")],
            how=args.how,
            seed=args.seed,
            with_rest=args.rest,
            force=args.force,
            **reading(args),
            progress=progress,
        )
    if args.json:
        print_json(summary)
        return OK
    _say_repairs(summary.repaired)
    _say_notes(summary.notes)
    _say_lost(summary.lost)
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
    from entaug.scoring.span_f1 import score_table
    from entaug.workflows.evaluate import evaluate_files

    scores = evaluate_files(args.gold, args.predicted, **reading(args))
    if args.json:
        print_json(scores.to_dict())
    else:
        sys.stdout.write(score_table(scores))
    return OK


_ASKED = {"causal_lm": "smollm2", "masked_lm": None, "encoder": "minilm"}
"""`entaug.quality.DEFAULT_MODELS`, which is not imported for the help alone."""


def _quality(args: argparse.Namespace) -> int:
    from entaug.backends.resolve import resolve
    from entaug.quality.tables import list_measures
    from entaug.workflows.quality import measure_files

    if args.list:
        sys.stdout.write(list_measures())
        return OK
    if not args.files:
        raise ParameterError("there is no file to measure", remedy="name augmented files, or see --list")
    named = {kind: getattr(args, kind) for kind in _ASKED if getattr(args, kind)}
    if named and args.no_models:
        raise ParameterError(f"--no-models and --{next(iter(named)).replace('_', '-')} contradict each other")
    # A model that is named must be on this machine; a default one may be missing.
    models = dict.fromkeys(_ASKED) if args.no_models else {k: resolve(k, name) for k, name in named.items()}
    given = reading(args)
    measures = [name.strip() for name in args.measures.split(",") if name.strip()] if args.measures else None
    with _progress() as progress:
        measure_files(
            args.files,
            args.output,
            gold=args.gold,
            measures=measures,
            **models,
            as_json=args.json,
            force=args.force,
            progress=progress,
            format=given["from_format"],
            repair=given["repair"],
            **given["read_options"],
        )
    if args.output != "-":
        _say_line(f"wrote {args.output}")
    return OK


def _report(args: argparse.Namespace) -> int:
    from entaug.report.comparison import markdown_report, read_run_records
    from entaug.report.html import sort_inputs, write_html_report
    from entaug.workflows.common import check_apart
    from entaug.workflows.evaluate import write_text

    if not args.output.lower().endswith((".html", ".htm")):
        _refuse_page_options(args, sort_inputs(path for path in args.inputs if Path(path).is_file()).augmented)
        records = (Path(path, "runs.jsonl") if Path(path).is_dir() else path for path in args.inputs)
        check_apart([args.output], records)
        write_text(markdown_report(read_run_records(args.inputs), by_type=args.by_type), args.output, force=args.force)
        if args.json and args.output != "-":
            print_json({"output": args.output})
        elif args.output != "-":
            _say_line(f"wrote {args.output}")
        return OK
    given = reading(args)
    layout = {name: value for name, value in given["read_options"].items() if value is not None}
    with _progress() as progress:
        summary = write_html_report(
            args.inputs,
            args.output,
            gold=args.gold,
            models=args.models,
            title=args.title,
            by_type=args.by_type,
            force=args.force,
            progress=progress,
            format=given["from_format"],
            repair=given["repair"],
            **layout,
        )
    if args.json:
        print_json(summary)
        return OK
    for note in summary.notes:
        _say_line(f"note: {note}")
    about = [_n(summary.runs, "run")] if summary.runs else []
    about += [f"{_n(summary.pairs, 'example')} of {_n(len(summary.methods), 'method')}"] if summary.methods else []
    _say_line(f"wrote {summary.output}: {' and '.join(about) or 'nothing to show'}")
    return OK


def _refuse_page_options(args: argparse.Namespace, augmented: Sequence[str]) -> None:
    """Say at once what only a page can have."""
    remedy = "let the output end in .html: -o report.html"
    if augmented:
        what = "holds no records of an experiment, and sentences are for a page"
        raise InputError(what, path=augmented[0], remedy=remedy)
    for name in ("gold", "title"):
        if getattr(args, name) is not None:
            raise ParameterError(f"--{name} is for a page", remedy=remedy)


_TRAINING: list[tuple[str, Any, str]] = [
    ("epochs", int, "passes over the sentences (default: 30)"),
    ("steps", int, "optimiser steps, in place of epochs"),
    ("batch_size", int, "sentences of a step (default: 16)"),
    ("learning_rate", float, "highest learning rate of the encoder (default: 2e-4)"),
    ("head_learning_rate", float, "highest learning rate of what is new (default: 1e-3)"),
    ("checkpoint", str, 'which weights to keep: "last", or "best" on dev (default: last)'),
    ("seed", int, "of the training (default: 0)"),
]


def _train(args: argparse.Namespace) -> int:
    from entaug.taggers.base import TaggerTrainingConfig, create_tagger
    from entaug.workflows.evaluate import train_file

    given = {name: getattr(args, name) for name in ("encoder", "vectors", "overlap")}
    tagger = create_tagger(args.tagger, **{name: value for name, value in given.items() if value is not None})
    own = {name: getattr(args, name) for name, _, _ in _TRAINING}
    config = TaggerTrainingConfig(**{name: value for name, value in own.items() if value is not None})
    with _steps() as progress:
        summary = train_file(
            args.input,
            args.output,
            tagger,
            dev=args.dev,
            config=config,
            **reading(args),
            progress=progress,
        )
    if args.json:
        print_json(
            {
                "input": summary.input,
                "output": summary.output,
                "sentences": summary.sentences,
                "labels": summary.labels,
                "steps": summary.history.steps,
                "losses": summary.history.losses,
                "dev_by_epoch": summary.history.dev_f1,
                "kept_epoch": summary.history.best_epoch,
                "dev": summary.dev.to_dict() if summary.dev else None,
                "seconds": round(summary.seconds, 2),
            }
        )
        return OK
    say = sys.stderr.write
    say(f"{args.tagger}: {_n(summary.sentences, 'sentence')}, {_n(len(summary.labels), 'type')}, ")
    say(f"{_n(summary.history.steps, 'step')} ({summary.seconds:.1f} s), loss {summary.history.losses[-1]:.3f}\n")
    if summary.history.best_epoch:
        say(f"kept epoch {summary.history.best_epoch} of {len(summary.history.dev_f1)}, the best on dev\n")
    if summary.dev:
        counts = summary.dev.micro
        say(
            f"dev: F1 {100 * counts.f1:.1f}, precision {100 * counts.precision:.1f}, recall {100 * counts.recall:.1f}\n"
        )
    say(f"wrote {summary.output}\n")
    return OK


def _experiment(args: argparse.Namespace) -> int:
    from entaug.errors import ParameterError
    from entaug.experiment import run_experiment
    from entaug.experiment.plan import read_plan

    if args.jobs is not None and args.jobs < 1:
        raise ParameterError(f"--jobs must be at least 1, not {args.jobs}")
    plan = read_plan(args.plan)
    say = sys.stderr.write
    if args.check:
        state = run_experiment(plan, check_only=True)
        _say_leaks(state)
        say(f"{args.plan}: good; {_n(state.total, 'run')} of {_n(state.steps_left, 'step')} in all\n")
        return OK
    with _table() as watch:
        waiting = f"waiting: another process is at {plan.output}"
        state = run_experiment(plan, jobs=args.jobs, watch=watch, waiting=lambda: _say_line(waiting))
    _say_leaks(state)
    say(f"{_n(state.done, 'run')} done, {state.earlier:,} of them earlier: {plan.output}\n")
    say(f"see: entaug report {plan.output}\n")
    return OK


def _say_leaks(state: State) -> None:
    for leak in state.leaks:
        _say_line(f"leak: {leak}")


@contextlib.contextmanager
def _steps() -> Iterator[Callable[[int, int, float], None] | None]:
    """One bar with the loss and the time left on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} steps, loss {task.fields[loss]:.3f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1, loss=0.0)
        yield lambda done, total, loss: bar.update(task, completed=done, total=total, loss=loss)


@contextlib.contextmanager
def _table() -> Iterator[Callable[[State], None]]:
    """A live table on a terminal; a line for each finished run in a pipe."""
    if not sys.stderr.isatty():
        seen = [0]

        def line(state: State) -> None:
            if state.done > seen[0]:
                seen[0] = state.done
                sys.stderr.write(f"{state.done} of {state.total} runs{_left(state)}\n")

        yield line
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=2) as live:
        yield lambda state: live.update(_rows(state))


def _left(state: State) -> str:
    if state.seconds_left is None or state.done == state.total:
        return ""
    minutes, seconds = divmod(round(state.seconds_left), 60)
    return f", about {minutes // 60}:{minutes % 60:02}:{seconds:02} left"


def _rows(state: State) -> Any:
    from rich.table import Table

    table = Table(
        "corpus", "size", "tagger", "runs", "gold F1", caption=f"{state.done} of {state.total} runs{_left(state)}"
    )
    for (corpus, size, tagger), row in state.rows.items():
        means = {arm: sum(found) / len(found) for arm, found in row["arms"].items()}
        gold = next((f"{100 * mean:.1f}" for (arm, _), mean in means.items() if arm == "gold"), "")
        table.add_row(corpus, f"{size:,}", tagger, f"{row['done']} of {row['total']}", gold)
    return table
