"""``entaug train``: train a tagger on a corpus."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from entaug.commands import options, output
from entaug.commands.command import Command
from entaug.errors import ParameterError

if TYPE_CHECKING:
    from entaug.commands.work.train import TrainSummary

__all__ = ["COMMAND"]

_DEFAULT = "linear"
_COMPUTE = ("device", "precision")  # set for all models by the options for computing
_NESTED = ("params", "training")  # tables of an ensemble: the options of its taggers, and those of the training
# What these options say has a meaning with these schedules only.
_SCHEDULES = {
    "gold_share": ("mixed", "staged"),
    "first_stage": ("staged",),
    "gold_learning_rate": ("staged",),
}


def _add_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    from entaug.config.params import parameters
    from entaug.taggers.base import TAGGERS, TaggerTrainingConfig

    parser.add_argument("input", help="the training sentences")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="a new or empty folder for the tagger")
    parser.add_argument(
        "--augmented",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="augmented sentences, with mentions or soft labels, which --schedule joins with the gold ones",
    )
    parser.add_argument("--dev", metavar="FILE", help="dev sentences, for scores and for --checkpoint best")
    parser.add_argument("--tagger", default=_DEFAULT, help=f"one of: {', '.join(TAGGERS)} (default: {_DEFAULT})")
    options.add_json_option(parser)
    name = options.option_in_advance(argv, "--tagger")
    if argv and (name or not {"-h", "--help"} & {*argv}):
        cls = TAGGERS[name or _DEFAULT]
        group = parser.add_argument_group(f"parameters of {name or _DEFAULT}")
        options.add_parameters(group, cls, without=(*_COMPUTE, *_NESTED))
        parser.set_defaults(tagger_class=cls, member_class=None)
        members = [parameter.default for parameter in parameters(cls) if parameter.name == "member"]
        if members:
            member = options.option_in_advance(argv, "--member") or members[0]
            group = parser.add_argument_group(f"parameters of the taggers of the ensemble ({member})")
            options.add_parameters(group, TAGGERS[member], without=_COMPUTE)
            parser.set_defaults(member_class=TAGGERS[member])
        title = "training"
    else:
        title = "training; parameters of a tagger: entaug train --tagger NAME --help"
    options.add_parameters(parser.add_argument_group(title), TaggerTrainingConfig)
    options.add_read_options(parser)
    options.add_compute_options(parser)


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.train import train_file
    from entaug.config.params import construct
    from entaug.taggers.base import TaggerTrainingConfig

    def given(cls: type) -> dict[str, Any]:
        return {name: value for name, value in options.given_parameters(args, cls).items() if name not in _COMPUTE}

    params = given(args.tagger_class)
    if args.member_class is not None:
        params["params"] = given(args.member_class)
    tagger = construct(args.tagger_class, args.tagger, params)
    settings = options.given_parameters(args, TaggerTrainingConfig)
    config = TaggerTrainingConfig(**settings)
    for name, schedules in _SCHEDULES.items():
        if name in settings and config.schedule not in schedules:
            option, remedy = "--" + name.replace("_", "-"), f"add --schedule {' or '.join(schedules)}"
            raise ParameterError(f"{option} has no effect with the schedule {config.schedule}", remedy=remedy)
    with output.show_training_progress() as progress:
        summary = train_file(
            args.input,
            args.output,
            tagger,
            dev=args.dev,
            augmented=args.augmented,
            config=config,
            **options.read_options(args),
            progress=progress,
            report=lambda note: output.print_message(f"note: {note}"),
        )
    if args.json:
        output.print_json(summary.to_dict())
    else:
        _print_summary(args.tagger, summary)
    return output.ExitCode.OK


def _print_summary(name: str, summary: TrainSummary) -> None:
    history = summary.history
    kinds = [f"{summary.augmented} augmented"] if summary.augmented else []
    kinds += [f"{summary.soft_labels} with soft labels"] if summary.soft_labels else []
    of_these = f" ({', '.join(kinds)})" if kinds else ""
    output.print_message(
        f"{name}: {output.quantity(summary.sentences, 'sentence')}{of_these}, "
        f"{output.quantity(len(summary.labels), 'type')}, "
        f"{output.quantity(history.steps, 'step')} ({summary.seconds:.1f} s), loss {history.losses[-1]:.3f}"
    )
    if history.best_epoch:
        output.print_message(
            f"selected epoch {history.best_epoch} of {len(history.dev_f1)}, the best on the dev sentences"
        )
    if summary.dev:
        counts = summary.dev.micro
        output.print_message(
            f"dev: F1 {100 * counts.f1:.1f}, precision {100 * counts.precision:.1f}, recall {100 * counts.recall:.1f}"
        )
    output.print_message(f"wrote {summary.output}")


COMMAND = Command(
    "train a tagger on a corpus",
    _add_options,
    _run,
    description="Train a tagger and save it in a folder. To score it: entaug evaluate GOLD FOLDER",
)
