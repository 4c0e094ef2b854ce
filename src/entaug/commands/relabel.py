"""``entaug relabel``: a teacher checks and completes the labels of augmented sentences."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command

__all__ = ["COMMAND", "add_teacher_option"]


def add_teacher_option(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Add ``--teacher``."""
    usual = f" (default: {default})" if default else " (without a name: ensemble)"
    parser.add_argument(
        "--teacher",
        nargs="?",
        const="ensemble",
        default=argparse.SUPPRESS if default is None else default,
        metavar="NAME[:PARAMETER=VALUE,...]",
        help="a tagger trained on the gold sentences, or the folder of a trained one, that checks and completes the "
        f"labels{usual}; parameters: labels, add_threshold, doubt_threshold, improbable",
    )


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("input", help="augmented sentences, or - for standard input")
    options.add_output_options(parser)
    options.add_gold_option(
        parser, "the gold file; required if the input lacks the gold sentences or has no provenance"
    )
    add_teacher_option(parser, default="ensemble")
    parser.add_argument(
        "--rejected", metavar="FILE", help="write rejected sentences with their reasons to this JSON Lines file"
    )
    options.add_loss_option(parser)
    options.add_json_option(parser)
    options.add_read_options(parser)
    options.add_write_options(parser)
    options.add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.relabel import relabel_file
    from entaug.files.streams import is_stdout

    with output.show_progress() as progress:
        summary = relabel_file(
            args.input,
            args.output,
            args.teacher,
            gold=args.gold,
            rejected=args.rejected,
            allow_loss=args.allow_loss,
            force=args.force,
            **options.read_options(args),
            **options.write_options(args),
            progress=progress,
        )
    if args.json:
        output.print_json(summary, to_stderr=is_stdout(args.output))
        return output.ExitCode.OK
    output.print_file_notes(summary)
    changed = f"labels of {summary.changed:,} of {output.quantity(summary.augmented, 'augmented sentence')} changed"
    gold = f", {output.quantity(summary.gold, 'gold sentence')} unchanged" if summary.gold else ""
    output.print_message(f"{changed}{gold}: {summary.after.sentences:,} written ({summary.seconds:.1f} s)")
    output.print_relabelling(summary.relabelled)
    output.print_rejections(summary.rejected)
    for path in filter(None, (args.rejected, args.output)):
        output.print_message(f"wrote {output.shown_path(path)}")
    return output.ExitCode.OK


COMMAND = Command(
    "check and complete the labels of augmented sentences",
    _add_options,
    _run,
    description="A teacher, by default an ensemble of taggers trained on the gold sentences, adds mentions that it is\n"
    "sure of, and softens labels that it finds improbable. Gold sentences stay as they are.",
)
