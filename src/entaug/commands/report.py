"""``entaug report``: results of experiments and examples of augmented sentences, as Markdown or HTML."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from entaug.commands import options, output
from entaug.commands.command import Command
from entaug.errors import InputError, ParameterError

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    from entaug.metrics.span_f1 import SENTENCE_LENGTHS

    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="folders of experiments or their runs.jsonl; HTML: also augmented files",
    )
    parser.set_defaults(several_inputs="inputs")
    options.add_output_options(parser)
    parser.add_argument("--by-type", action="store_true", help="also write tables of F1 by entity type")
    parser.add_argument(
        "--by-length",
        nargs="?",
        type=_parse_lengths,
        const=SENTENCE_LENGTHS,
        default=(),
        metavar="LENGTHS",
        help="also write tables of F1 by number of tokens of the sentence: the last length of each bin but the last, "
        f"joined by commas (without a value: {','.join(map(str, SENTENCE_LENGTHS))})",
    )
    options.add_gold_option(parser, "HTML: the gold file; required if the other files lack its sentences")
    parser.add_argument(
        "--no-models", dest="models", action="store_false", help="HTML: only measures that need no model"
    )
    parser.add_argument("--title", help="HTML: the title of the page")
    options.add_json_option(parser)
    options.add_read_options(parser)
    options.add_compute_options(parser)


def _parse_lengths(text: str) -> tuple[int, ...]:
    lengths = tuple(int(part) for part in text.split(",")) if text.replace(",", "").isdecimal() else ()
    if not lengths or lengths[0] < 1 or any(a >= b for a, b in pairwise(lengths)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of increasing lengths, such as 10,20,30")
    return lengths


def _run(args: argparse.Namespace) -> int:
    if args.output.lower().endswith((".html", ".htm")):
        return _write_html(args)
    from entaug.commands.work.report import classify_inputs, write_markdown_report

    _check_markdown_options(args, classify_inputs(path for path in args.inputs if Path(path).is_file()).augmented)
    write_markdown_report(args.inputs, args.output, by_type=args.by_type, by_length=args.by_length, force=args.force)
    if args.json and args.output != "-":
        output.print_json({"output": args.output})
    elif args.output != "-":
        output.print_message(f"wrote {args.output}")
    return output.ExitCode.OK


def _check_markdown_options(args: argparse.Namespace, augmented: Sequence[str]) -> None:
    """Raise an error for inputs and options that only HTML supports."""
    remedy = "choose an output that ends in .html: -o report.html"
    if augmented:
        message = "holds no records of an experiment; sentences are only shown in HTML"
        raise InputError(message, path=augmented[0], remedy=remedy)
    for name in ("gold", "title"):
        if getattr(args, name) is not None:
            raise ParameterError(f"--{name} is only valid for HTML", remedy=remedy)


def _write_html(args: argparse.Namespace) -> int:
    from entaug.commands.work.report import write_html_report

    given = options.read_options(args)
    layout = {name: value for name, value in given["read_options"].items() if value is not None}
    with output.show_progress() as progress:
        summary = write_html_report(
            args.inputs,
            args.output,
            gold=args.gold,
            models=args.models,
            title=args.title,
            by_type=args.by_type,
            by_length=args.by_length,
            force=args.force,
            progress=progress,
            format=given["from_format"],
            repair=given["repair"],
            **layout,
        )
    if args.json:
        output.print_json(summary)
        return output.ExitCode.OK
    for note in summary.notes:
        output.print_message(f"note: {note}")
    content = [output.quantity(summary.runs, "run")] if summary.runs else []
    if summary.methods:
        sentences = output.quantity(summary.pairs, "augmented sentence")
        content.append(f"{sentences} of {output.quantity(len(summary.methods), 'method')}")
    output.print_message(f"wrote {summary.output}: {' and '.join(content) or 'nothing to show'}")
    return output.ExitCode.OK


COMMAND = Command(
    "show results of experiments and augmented sentences, as Markdown or HTML",
    _add_options,
    _run,
    description="Write the results of experiments as Markdown. If the output ends in .html, write a page with the\n"
    "results, measures and plots of the augmented sentences, and the sentences for review.",
)
