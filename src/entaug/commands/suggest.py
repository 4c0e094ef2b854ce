"""``entaug suggest``: which sentences of unlabelled text to annotate next."""

from __future__ import annotations

import argparse
import typing
from collections.abc import Sequence

from entaug.commands import options, output, unlabelled
from entaug.commands.command import Command

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    from entaug.commands.work.suggest import Strategy
    from entaug.teacher.train import TeacherParameters

    parser.add_argument("input", help="the training sentences")
    options.add_output_options(parser)
    parser.add_argument("--number", type=int, default=100, help="how many sentences (default: 100)")
    parser.add_argument(
        "--strategy",
        choices=typing.get_args(Strategy),
        default="uncertainty",
        help="uncertainty: lowest confidence (default); entropy: highest mean entropy of a word; margin: a word with "
        "two tags that are nearly as likely; random",
    )
    parser.add_argument(
        "--max-similarity",
        type=float,
        default=0.6,
        help="maximum similarity of two suggested sentences, from 0 to 1 (default: 0.6)",
    )
    parser.add_argument("--min-tokens", type=int, default=4, help="shorter sentences are left out (default: 4)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    options.add_json_option(parser)
    unlabelled.add_options(parser, required=True)
    parser.add_argument(
        "--held-out",
        action="append",
        default=[],
        metavar="FILE",
        help="dev or test sentences, which must not be in the text; may be repeated",
    )
    options.add_parameters(parser.add_argument_group("teacher"), TeacherParameters)
    options.add_read_options(parser)
    options.add_write_options(parser)
    options.add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.suggest import suggest_file
    from entaug.files.streams import is_stdout
    from entaug.formats.file_job import check_apart
    from entaug.teacher.train import TeacherParameters

    check_apart([args.output], [*args.held_out, *args.unlabelled])
    with output.show_progress() as progress:
        summary = suggest_file(
            args.input,
            unlabelled.read(args, args.input),
            args.output,
            number=args.number,
            strategy=args.strategy,
            max_similarity=args.max_similarity,
            min_tokens=args.min_tokens,
            teacher=TeacherParameters(**options.given_parameters(args, TeacherParameters)),
            seed=args.seed,
            force=args.force,
            **options.read_options(args),
            **options.write_options(args),
            progress=progress,
        )
    if args.json:
        output.print_json(summary, to_stderr=is_stdout(args.output))
        return output.ExitCode.OK
    output.print_file_notes(summary)
    text = f"{summary.suggested:,} of {output.quantity(summary.text, 'sentence')} suggested"
    skipped = f", {summary.skipped:,} passed over as similar to others" if summary.skipped else ""
    output.print_message(f"{text}{skipped} ({summary.seconds:.1f} s)")
    output.print_label_counts(summary.mentions)
    output.print_message(f"wrote {output.shown_path(summary.output)}: {summary.to_format}")
    return output.ExitCode.OK


COMMAND = Command(
    "select sentences of unlabelled text to annotate next",
    _add_options,
    _run,
    description="Write the sentences that a teacher, trained on the training sentences, is least sure of, with its "
    "labels;\nno two of them are nearly alike. For example: --to label-studio, --to doccano, --to prodigy",
)
