"""The command line: parsing and printing, nothing else. What it does is in `entaug.workflows.augment`, importable."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from entaug._version import __version__
from entaug.backends.compute import use_compute_settings
from entaug.cli.options import (
    add_computing,
    add_method_options,
    add_reading,
    add_review,
    add_writing,
    field_texts,
    filters_given,
    reading,
    writing,
)
from entaug.errors import EntaugError, OutputError, ParameterError
from entaug.params import construct, parameters

if TYPE_CHECKING:
    from entaug.augmenters.base import Augmenter
    from entaug.augmenters.contracts import MethodInfo
    from entaug.files.sinks import Counts
    from entaug.models.catalogue import StarterModel
    from entaug.workflows.common import Progress

__all__ = ["main"]

_CARRIED = {
    "nested": "nested ones",
    "discontinuous": "ones with gaps",
    "columns": "further columns",
    "fields": "further fields and provenance",
    "spaces": "the spaces between tokens",
}
_NOTES = 20  # notes about the input that are shown
OK, FAULTS, BAD_INPUT, BAD_OUTPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141
_EXIT_CODES = """exit codes:
  0    done
  1    check found faults
  2    wrong usage, bad input, or something is missing
  3    the output exists or cannot be written
  130  interrupted (Ctrl-C); run the same command again to go on
  141  the reader of standard output went away
"""


class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line, and without abbreviations: they would change meaning with the method."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the arguments after the program's name; those of the process by default.

    Returns:
        The exit code.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    with contextlib.suppress(ValueError):  # only the main thread may set handlers
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _interrupt)
    try:
        parser = _parser(argv)
        args = parser.parse_args(argv)
        settings = {name: getattr(args, name, None) for name in ("device", "precision", "offline")}
        with use_compute_settings(**settings):
            code: int = args.run(args)
        sys.stdout.flush()
    except OutputError as error:
        return _fail(error, BAD_OUTPUT)
    except EntaugError as error:
        return _fail(error, BAD_INPUT)
    except KeyboardInterrupt:
        hint = "; run the same command again to go on" if argv[:1] in (["augment"], ["experiment"]) else ""
        sys.stderr.write(f"entaug: interrupted{hint}\n")
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes standard output once more on its way out: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        # Files name themselves in their own errors; what is left has no name and is standard output.
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        what = "standard output: cannot be written" if error.filename is None else f"{error.filename}: cannot be used"
        return _fail(OutputError(f"{what} ({error.strerror})"), BAD_OUTPUT)
    return code


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _fail(error: EntaugError, code: int) -> int:
    sys.stderr.write(f"entaug: error: {error}\n")
    return code


# ------------------------------------------------------------------------------------------------------------- parsing


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="entaug",
        description="Data augmentation for named-entity recognition, labels kept right.",
        epilog=_EXIT_CODES,
        formatter_class=plain,
    )
    parser.add_argument("--version", action="version", version=f"entaug {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)

    augment = commands.add_parser(
        "augment",
        help="make a labelled corpus larger",
        description="Write the gold sentences followed by augmented ones.\n"
        "Options of a method: entaug augment --method NAME --help",
        epilog=_EXIT_CODES,
        formatter_class=plain,
    )
    augment.add_argument("input", help="the gold training file, or - for standard input")
    augment.add_argument("-m", "--method", required=True, help="which method: see entaug methods")
    augment.add_argument("-o", "--output", default="-", help="where to write (default: - for standard output)")
    augment.add_argument("--only-new", action="store_true", help="write the augmented sentences alone")
    augment.add_argument("--force", action="store_true", help="replace an output that exists")
    augment.add_argument("--rejected", metavar="FILE", help="where drafts that filters refused go, as JSON lines")
    add_review(augment)
    add_reading(augment)
    add_writing(augment)
    add_computing(augment)
    if argv[:1] == ["augment"]:
        add_method_options(augment, argv)
    augment.set_defaults(run=_augment)

    methods = commands.add_parser("methods", help="list the methods, or tell about one")
    methods.add_argument("name", nargs="?", help="a method")
    methods.add_argument("--json", action="store_true", help="print JSON")
    methods.set_defaults(run=_methods)

    check = commands.add_parser(
        "check", help="validate a corpus", description="Name every fault of a corpus with its line, and count."
    )
    check.add_argument("input", help="the file, or - for standard input")
    add_reading(check)
    check.set_defaults(run=_check)

    convert = commands.add_parser(
        "convert", help="change the format, layout or tag scheme", epilog=_EXIT_CODES, formatter_class=plain
    )
    convert.add_argument("input", help="the file, or - for standard input")
    convert.add_argument("output", nargs="?", default="-", help="the new file (default: - for standard output)")
    convert.add_argument("--force", action="store_true", help="replace an output that exists")
    convert.add_argument(
        "--lose",
        default="",
        metavar="KINDS",
        help="what may be left out where the new format has no place for it: id, text, column, field ..., or all",
    )
    add_reading(convert)
    add_writing(convert)
    convert.set_defaults(run=_convert)

    formats = commands.add_parser("formats", help="list the formats, or tell about one")
    formats.add_argument("name", nargs="?", help="a format")
    formats.add_argument("--json", action="store_true", help="print JSON")
    formats.set_defaults(run=_formats)

    models = commands.add_parser("models", help="list, prepare and verify word lists and models")
    models.add_argument("action", choices=("list", "prepare", "verify"))
    models.add_argument("names", nargs="*", help="which (default: all that methods use; verify: all that are here)")
    models.add_argument("--for", dest="method", metavar="METHOD", help="prepare: what this method needs")
    models.add_argument("--source", metavar="DIR", help="prepare: take packages or prepared folders from this folder")
    models.add_argument("--offline", action="store_true", help="prepare: fetch nothing")
    models.add_argument("--json", action="store_true", help="list: print JSON")
    models.set_defaults(run=_models)

    from entaug.cli import commands as more  # it takes much of this module, so it comes late

    more.add(commands)
    return parser


# ------------------------------------------------------------------------------------------------------------ commands


def _augment(args: argparse.Namespace) -> int:
    from entaug.workflows.augment import augment_file
    from entaug.workflows.common import STDOUT, check_apart

    check_apart([args.output, args.rejected], args.held_out)
    params = {name: getattr(args, name) for name in args.method_fields if hasattr(args, name)}
    params["filters"] = filters_given(args) or None
    augmenter = construct(args.method_class, args.method, params)
    with _progress() as progress:
        summary = augment_file(
            args.input,
            args.output,
            augmenter,
            only_new=args.only_new,
            force=args.force,
            **reading(args),
            **writing(args),
            rejected=args.rejected,
            review=args.apply_review,
            progress=progress,
        )
    if args.json:
        print_json(summary, to_stderr=args.output in STDOUT)
        return OK
    tally = summary.tally
    say = sys.stderr.write
    say(f"read {'standard input' if args.input == '-' else args.input}: {summary.from_format}\n")
    for note in summary.notes:
        say(f"note: {note}\n")
    _say_repairs(summary.repaired)
    _say_lost(summary.lost)
    if summary.resumed_at:
        say(f"went on after {_n(summary.resumed_at, 'sentence')} of an interrupted run\n")
    say(f"{summary.method}: {_n(summary.before.sentences, 'gold sentence')} in, {tally.accepted:,} new, ")
    say(f"{summary.after.sentences:,} written ({summary.seconds:.1f} s)\n")
    for reason, count in tally.missing.most_common():
        say(f"  not made: {count:,} ({reason})\n")
    filters = dict.fromkeys(one.name for one in augmenter.filters_)
    by_filters = {r: n for f in filters for r, n in tally.rejected.items() if r.startswith(f"{f}: ")}
    say_refusals(by_filters)
    again = {r: n - tally.missing[r] for r, n in tally.rejected.items() if n > tally.missing[r]}
    for reason, count in sorted(again.items()):
        if reason in by_filters:
            continue
        say(f"  rejected and asked again: {count:,} ({reason})\n")
    _say_mentions(summary.before, summary.after)
    say(f"wrote {'standard output' if args.output == '-' else args.output}: {summary.format}\n")
    return OK


def _check(args: argparse.Namespace) -> int:
    from entaug.workflows.augment import check_file

    with _progress() as progress:
        summary = check_file(
            args.input,
            **reading(args),
            on_fault=None if args.json else print,
            progress=progress,
        )
    if args.json:
        print_json(summary)
        return FAULTS if summary.faults else OK
    counts = summary.counts
    say = sys.stderr.write
    if summary.format:
        say(f"{args.input}: {summary.format}\n")
    _say_repairs(summary.repaired)
    _say_notes(summary.notes)
    say(f"{_n(counts.sentences, 'good sentence')}, {_n(counts.tokens, 'token')}, ")
    say(
        f"{_n(counts.mentions.total(), 'mention')} ({counts.nested:,} nested, {counts.discontinuous:,} discontinuous)\n"
    )
    if summary.repeated:
        say(f"{_n(summary.repeated, 'sentence')} repeated from above\n")
    for label, count in sorted(counts.mentions.items()):
        say(f"  {label:<20} {count:>9,}\n")
    say(f"{_n(len(summary.faults), 'fault')}\n" if summary.faults else "no faults\n")
    return FAULTS if summary.faults else OK


def _convert(args: argparse.Namespace) -> int:
    from entaug.workflows.augment import convert_file
    from entaug.workflows.common import STDOUT

    with _progress() as progress:
        summary = convert_file(
            args.input,
            args.output,
            force=args.force,
            **reading(args),
            **writing(args),
            lose=[kind.strip() for kind in args.lose.split(",") if kind.strip()],
            progress=progress,
        )
    if args.json:
        print_json(summary, to_stderr=args.output in STDOUT)
        return OK
    say = sys.stderr.write
    _say_repairs(summary.repaired)
    _say_notes(summary.notes)
    _say_lost(summary.lost)
    say(f"{_n(summary.counts.sentences, 'sentence')}\n  from {summary.from_format}\n  to   {summary.to_format}\n")
    return OK


def _methods(args: argparse.Namespace) -> int:
    from entaug.augmenters import METHODS

    names = [args.name] if args.name else list(METHODS)
    classes = [METHODS[name] for name in names]
    if args.json:
        records = [
            {
                **dataclasses.asdict(cls.info),
                "class": cls.__name__,
                "parameters": {p.name: p.default for p in parameters(cls)},
            }
            for cls in classes
        ]
        print_json(records)
        return OK
    if args.name:
        _print_method(classes[0])
        return OK
    wide = max(len(cls.info.name) for cls in classes)
    for cls in classes:
        print(f"{cls.info.name:<{wide}}  {cls.info.summary}")
        print(f"{'':<{wide}}  {_facts_line(cls)}")
    print("\nMore about one: entaug methods NAME. Its options: entaug augment --method NAME --help")
    return OK


def _facts_line(cls: type[Augmenter]) -> str:
    info = cls.info
    kinds = ["flat"] + ["nested"] * info.nested + ["discontinuous"] * info.discontinuous
    return f"{', '.join(kinds)}; needs {_needs_in_words(info)}; {info.cost}"


def _needs_in_words(info: MethodInfo) -> str:
    """What a method needs, as people say it: ``masked_lm`` is a masked LM."""
    kinds = [kind.replace("_", " ").replace(" lm", " LM") for kind in info.needs]
    needs = ["the corpus first"] * info.needs_fit + [f"{'an' if kind[0] in 'aeo' else 'a'} {kind}" for kind in kinds]
    return " and ".join([", ".join(needs[:-1]), needs[-1]] if len(needs) > 1 else needs) or "nothing"


def _print_method(cls: type[Augmenter]) -> None:
    info = cls.info
    print(f"{info.name}, {info.long_name} (entaug.{cls.__name__}): {info.summary}")
    print(_facts_line(cls))
    kept = [
        f.name[6:].replace("_", " ")
        for f in dataclasses.fields(info)
        if f.name.startswith("keeps_") and getattr(info, f.name)
    ]
    print(f"keeps: {', '.join(kept) or 'labels right, and nothing else'}")
    print(f"paper: {info.paper}\n\n{(cls.__doc__ or '').partition('Args:')[0].strip()}\n\nparameters:")
    for parameter in parameters(cls):
        print(f"  {parameter.name} = {parameter.default!r}: {parameter.description}")


def _formats(args: argparse.Namespace) -> int:
    from entaug.formats import FORMATS, find

    found = [find(name) for name in ([args.name] if args.name else FORMATS)]
    if args.json:
        of_each = [
            {"name": one.name, "title": one.title, "extensions": one.extensions, **dataclasses.asdict(one.carries)}
            for one in found
        ]
        print_json(of_each[0] if args.name else of_each)
        return OK
    for one in found:
        carries = [field.name for field in dataclasses.fields(one.carries) if getattr(one.carries, field.name)]
        held = ", ".join(["flat mentions", *(_CARRIED[name] for name in carries)])
        files = [*one.extensions, *(["a folder"] if getattr(one, "folder", False) else [])]
        print(f"{one.name:<15} {one.title} ({', '.join(files) or 'any extension'})\n{'':<15} carries {held}")
    if args.name:
        dialect = type(found[0].dialect())
        told = field_texts(dialect)
        about = (sys.modules[type(found[0]).__module__].__doc__ or "").strip()
        # What is found by looking and does not count when layouts are compared is nothing to set.
        shown = [field for field in dataclasses.fields(dialect) if field.compare]
        print(f"\n{about}\n\noptions (--layout NAME=VALUE, --to-layout NAME=VALUE):{'' if shown else ' none'}")
        for field in shown:
            print(f"  {field.name} = {field.default!r}: {told.get(field.name, '')}")
    return OK


def _models(args: argparse.Namespace) -> int:
    from entaug.models import catalogue as models
    from entaug.models.preparation import prepare_models, verify_models

    if args.method and args.action != "prepare":
        raise ParameterError("--for goes with prepare alone")
    if args.action == "prepare":
        names = list(args.names)
        if args.method:
            from entaug.augmenters import METHODS

            wanted = METHODS[args.method].info.name
            names += [asset.name for asset in models.list_models() if wanted in _used_by(asset.name)]
            if not names:
                _say_line(f"{wanted}: needs no model")
                return OK
        prepare_models(names, offline=args.offline, source=args.source, report=_say_line)
    elif args.action == "verify":
        verify_models(args.names, report=_say_line)
    else:
        found = models.list_models(args.names)
        if args.json:
            told = ("name", "title", "kind", "licence", "size", "extra", "by_default", "installed")
            print_json([{f: getattr(asset, f) for f in told} | {"used_by": _used_by(asset.name)} for asset in found])
        else:
            _print_models(found)
    return OK


def _print_models(found: list[StarterModel]) -> None:
    rows = [("name", "", "size", "licence", "used by", "what")]
    for asset in found:
        state = "installed" if asset.installed else "not installed"
        used_by = ", ".join(_used_by(asset.name)) or "-"
        rows.append((asset.name, state, asset.size, asset.licence, used_by, asset.title))
    wide = [max(len(row[i]) for row in rows) for i in range(5)]
    for row in rows:
        print("  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, wide, strict=False)), row[-1]]))


# A model of one kind that serves as another: what is fine-tuned is one that is there already, and constituents are
# projected from dependency trees.
_ALSO = {"causal_lm": "generator", "encoder": "tagger", "dependency_parser": "constituency_parser"}


def _used_by(name: str) -> list[str]:
    """The methods that take a model unless they are given another: the first of its kind serves."""
    from entaug.augmenters import METHODS
    from entaug.models import catalogue as models

    of_kind: dict[str, str] = {}
    for asset in models.list_models():
        of_kind.setdefault(asset.kind, asset.name)
    kinds = {kind for kind, first in of_kind.items() if first == name}
    kinds |= {other for kind, other in _ALSO.items() if kind in kinds}
    return [short for short in METHODS if kinds & {*METHODS[short].info.needs, *METHODS[short].info.may_need}]


# ------------------------------------------------------------------------------------------------------------ printing


def _n(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _say_line(text: str) -> None:
    sys.stderr.write(text + "\n")


def _say_repairs(repaired: dict[str, int]) -> None:
    for name, count in sorted(repaired.items()):
        _say_line(f"repaired: {count:,} ({name})")


def _say_notes(notes: dict[str, int]) -> None:
    """What was met when the input was read; the first twenty kinds."""
    for name, count in sorted(notes.items())[:_NOTES]:
        _say_line(f"note: {name}" + (f" ({count:,} times)" if count > 1 else ""))
    if len(notes) > _NOTES:
        _say_line(f"note: and {len(notes) - _NOTES:,} more like these; see --json")


def say_refusals(refused: Mapping[str, int]) -> None:
    """How many each filter has refused, and why, from counts by ``"FILTER: REASON"``."""
    from entaug.augmenters.contracts import REVIEWED

    by_filter: dict[str, dict[str, int]] = {}
    for told, count in refused.items():
        name, colon, reason = told.partition(": ")
        if told == REVIEWED.reason:
            name, reason = "review", "rejected there"
        elif not colon:
            name, reason = "an earlier run", told
        by_filter.setdefault(name, {})[reason] = count
    for name, reasons in by_filter.items():
        each = "; ".join(
            f"{reason}: {count:,}" for reason, count in sorted(reasons.items(), key=lambda r: (-r[1], r[0]))
        )
        _say_line(f"  refused by {name}: {sum(reasons.values()):,} ({each})")


def _say_lost(lost: dict[str, int]) -> None:
    """What the input held and the output has no place for."""
    for name, count in sorted(lost.items()):
        times = "once" if count == 1 else f"{count:,} times"
        _say_line(f"note: left out, as the output has no place for it: {name} ({times})")


def _say_mentions(before: Counts, after: Counts) -> None:
    if after.mentions:
        _say_line(f"  {'mentions':<20} {'before':>9} {'after':>9}")
    for label in sorted({*before.mentions, *after.mentions}):
        _say_line(f"  {label:<20} {before.mentions[label]:>9,} {after.mentions[label]:>9,}")


def print_json(value: Any, *, to_stderr: bool = False) -> None:
    (sys.stderr if to_stderr else sys.stdout).write(as_json(value))


def as_json(value: Any) -> str:
    import orjson

    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


@contextlib.contextmanager
def _progress() -> Iterator[Progress]:
    """One bar on a terminal with rate and time left; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    begun: dict[str, float] = {}
    with Progress(
        TextColumn("{task.description:<11}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} {task.fields[unit]}, {task.fields[rate]:,.1f}/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None, rate=0, unit="")

        def update(what: str, done: int, total: int | None) -> None:
            stage = what.partition(",")[0]  # "learning, loss 1.23" is one stage
            if stage not in begun:
                begun[stage] = time.monotonic()
                unit = "steps" if stage == "learning" else "sentences"
                bar.reset(task, total=total, description=what, rate=0, unit=unit)
            rate = done / max(time.monotonic() - begun[stage], 1e-3)
            bar.update(task, completed=done, total=total, rate=rate, description=what)

        yield update


def _nothing(what: str, done: int, total: int | None) -> None:
    """No bar."""


if __name__ == "__main__":
    sys.exit(main())
