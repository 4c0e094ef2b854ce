"""``entaug evaluate``: score predicted mentions against gold ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("gold", help="the file with gold mentions")
    parser.add_argument(
        "predicted",
        nargs="?",
        help="the same sentences with predicted mentions, or the folder of a trained tagger",
    )
    parser.add_argument(
        "--tagger",
        metavar="NAME",
        help="instead of predictions, the folder of a trained tagger, or a model of another library: spacy:NAME, "
        "hf:NAME or gliner:NAME, with an optional map of labels: spacy:en_core_web_sm@PERSON=PER;GPE=LOC (in quotes)",
    )
    options.add_json_option(parser)
    options.add_read_options(parser)
    options.add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.evaluate import evaluate_files
    from entaug.metrics.span_f1 import score_table

    scores = evaluate_files(
        args.gold,
        args.predicted,
        tagger=args.tagger,
        **options.read_options(args),
        report=lambda note: output.print_message(f"note: {note}"),
    )
    if args.json:
        output.print_json(scores.to_dict())
    else:
        sys.stdout.write(score_table(scores))
    return output.ExitCode.OK


COMMAND = Command(
    "score predicted mentions against gold ones",
    _add_options,
    _run,
    description="Precision, recall and F1 of exact matches of label and spans, in percent: overall, by type, by length "
    "and by kind of mention (flat, nested, discontinuous).",
)
