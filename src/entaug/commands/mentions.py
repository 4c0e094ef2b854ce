"""``entaug mentions``: new mentions by an instruct model, as a list for the method ``mr``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from entaug.commands import options, output
from entaug.commands.command import Command
from entaug.commands.requests import add_request_options

__all__ = ["COMMAND"]


def _add_options(parser: argparse.ArgumentParser, _argv: Sequence[str]) -> None:
    parser.add_argument("input", help="the training sentences")
    options.add_output_options(parser)
    parser.add_argument(
        "--generator",
        required=True,
        help="an instruct model: http://HOST:PORT/v1#MODEL for one behind a server, or FILE.gguf",
    )
    parser.add_argument(
        "--label", action="append", default=[], metavar="TYPE", help="a type; may be repeated (default: all)"
    )
    parser.add_argument("--number", type=int, default=100, help="how many mentions of each type (default: 100)")
    parser.add_argument("--rounds", type=int, default=5, help="how often missing ones are asked for (default: 5)")
    parser.add_argument("--temperature", type=float, default=0.8, help="temperature of sampling (default: 0.8)")
    parser.add_argument("--prompt", metavar="FILE", help="a file with the prompt; see entaug prompts mentions")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument(
        "--held-out",
        action="append",
        default=[],
        metavar="FILE",
        help="dev or test sentences, mentions of which are left out; may be repeated",
    )
    options.add_json_option(parser)
    options.add_read_options(parser)
    add_request_options(parser)
    parser.add_argument("--offline", action="store_true", default=argparse.SUPPRESS, help="use no other machine")


def _run(args: argparse.Namespace) -> int:
    from entaug.commands.work.mentions import mentions_file
    from entaug.files.streams import is_stdout
    from entaug.formats.file_job import check_apart

    check_apart([args.output], [*args.held_out, args.prompt])
    with output.show_progress() as progress:
        summary = mentions_file(
            args.input,
            args.output,
            args.generator,
            labels=args.label,
            number=args.number,
            rounds=args.rounds,
            temperature=args.temperature,
            seed=args.seed,
            prompt=args.prompt,
            held_out=options.held_out_sentences(args) if args.held_out else (),
            force=args.force,
            **options.read_options(args),
            progress=progress,
        )
    if args.json:
        output.print_json(summary, to_stderr=is_stdout(args.output))
        return output.ExitCode.OK
    output.print_file_notes(summary)
    for label, count in summary.written.items():
        missing = summary.missing.get(label, 0)
        short = f"; {missing:,} of {count + missing:,} are missing" if missing else ""
        output.print_message(f"  {label:<20} {output.quantity(count, 'new mention')}{short}")
    for what, counts in (("line not accepted", summary.rejected), ("request without an answer", summary.failed)):
        for reason, count in sorted(counts.items()):
            output.print_message(f"  {what}: {count:,} ({reason})")
    output.print_message(f"wrote {output.shown_path(summary.output)} ({summary.seconds:.1f} s)")
    return output.ExitCode.OK


COMMAND = Command(
    "let an instruct model write new mentions of the types of a corpus",
    _add_options,
    _run,
    description="Write new mentions of each type, in the form of lists for: entaug augment -m mr --mentions FILE.\n"
    "Whether a mention is of its type only a reader knows: look through the list before it is used.",
)
