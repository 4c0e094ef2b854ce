"""``entaug subset``: draw low-resource subsets of a corpus."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command
from entaug.errors import ParameterError

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("input", help="the file, or - for standard input")
    parser.add_argument("--sizes", required=True, help="numbers of sentences: 100,200 (with --how fraction also 0.1)")
    parser.add_argument(
        "--how",
        default="progressive",
        help="the sampling strategy: progressive (default), first, fraction or stratified",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the folder for the subsets")
    parser.add_argument("--rest", action="store_true", help="also write the sentences that are in no subset")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    options.add_json_option(parser)
    options.add_read_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.subset import subset_file

    with output.show_progress() as progress:
        summary = subset_file(
            args.input,
            args.output,
            [_size(text) for text in options.split_names(args.sizes)],
            how=args.how,
            seed=args.seed,
            with_rest=args.rest,
            force=args.force,
            **options.read_options(args),
            progress=progress,
        )
    if args.json:
        output.print_json(summary)
        return output.ExitCode.OK
    output.print_file_notes(summary)
    for file in summary.files:
        counts = file.counts
        content = (
            f"{output.quantity(counts.sentences, 'sentence')}, {output.quantity(counts.mentions.total(), 'mention')}"
        )
        output.print_message(f"wrote {file.path}: {content} of {output.quantity(len(counts.mentions), 'type')}")
    return output.ExitCode.OK


def _size(text: str) -> float:
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        message = f"--sizes: {text!r} is not a number"
        raise ParameterError(message, remedy="give numbers separated by commas: 100,200") from None


COMMAND = Command(
    "draw low-resource subsets of a corpus",
    _add_options,
    _run,
    description="Write subsets in the format and layout of the input: FOLDER/train.100.conll ...",
)
