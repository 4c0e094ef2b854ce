"""``entaug quality``: measure augmented sentences, without training."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command, add_jobs_option
from entaug.errors import ParameterError

__all__ = ["COMMAND"]

_MODELS = {"causal_lm": "smollm2", "masked_lm": None, "encoder": "minilm"}
"""`entaug.metrics.quality.DEFAULT_MODELS`, which is not imported for the help alone."""


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="augmented files, of one method or several")
    parser.set_defaults(several_inputs="files")
    options.add_gold_option(parser, "the gold file; required if the other files lack its sentences")
    parser.add_argument(
        "--measures",
        type=options.split_names,
        metavar="NAMES",
        help="measures (default: all whose models are available)",
    )
    parser.add_argument("--list", action="store_true", help="list the measures and exit")
    for kind, default in _MODELS.items():
        parser.add_argument(
            f"--{kind.replace('_', '-')}",
            metavar="MODEL",
            help=f"{kind.replace('_lm', ' language model').replace('_', ' ')}: a starter model, a folder, or a name "
            f"on the hub (default: {default or 'none; its measures are then left out'})",
        )
    parser.add_argument("--no-models", action="store_true", help="leave out all measures that need a model")
    options.add_output_options(
        parser,
        help="the output file: Markdown for .md, JSON for .json, else a table (default: - for standard output)",
    )
    options.add_json_option(parser, "write JSON")
    options.add_read_options(parser)
    add_jobs_option(parser, default=1)
    options.add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.backends.resolve import resolve
    from entaug.commands.work.quality import measure_files
    from entaug.metrics.quality import list_measures

    if args.list:
        sys.stdout.write(list_measures())
        return output.ExitCode.OK
    if not args.files:
        raise ParameterError("no file is given", remedy="name augmented files, or see --list")
    named = {kind: getattr(args, kind) for kind in _MODELS if getattr(args, kind)}
    if named and args.no_models:
        raise ParameterError(
            f"--no-models and --{next(iter(named)).replace('_', '-')} exclude each other; give one of them"
        )
    # A model that the user names must be available; a default model may be missing.
    models = dict.fromkeys(_MODELS) if args.no_models else {kind: resolve(kind, name) for kind, name in named.items()}
    given = options.read_options(args)
    with output.show_progress() as progress:
        measure_files(
            args.files,
            args.output,
            gold=args.gold,
            measures=args.measures,
            models=models,
            as_json=args.json,
            force=args.force,
            jobs=args.jobs,
            progress=progress,
            format=given["from_format"],
            repair=given["repair"],
            **given["read_options"],
        )
    if args.output != "-":
        output.print_message(f"wrote {args.output}")
    return output.ExitCode.OK


COMMAND = Command(
    "measure augmented sentences, without training",
    _add_options,
    _run,
    description="Measure fluency, novelty, diversity, labels and length, with one column per method and one\n"
    "for gold. JSON Lines files store the method and source of each sentence; in other formats every sentence that is\n"
    "not in the gold file counts as augmented.",
)
