"""Options that several commands share: reading, writing, computing, requests, filters, unlabelled text."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from entaug.backends.chat.settings import RequestSettings
from entaug.backends.compute import ComputeSettings
from entaug.commands.command import OptionGroup, add_parameters, parameter_help, split_names
from entaug.config.params import parameters
from entaug.core.corpus import UnlabelledText
from entaug.core.data import Sentence
from entaug.errors import ParameterError
from entaug.files.streams import STDIN
from entaug.filters import Filter, create_filters
from entaug.formats.file_job import LOSS_KINDS, FileJob, check_apart
from entaug.formats.files import find_format

# Options of formats with an option of their own: the format that describes it, and its name there. All others are set
# with --layout and --to-layout.
READ_OPTIONS = {
    "tag_column": ("conll", "tag_column"),
    "scheme": ("conll", "scheme"),
    "token_column": ("conll", "token_column"),
    "tag_columns": ("conll", "tag_columns"),
    "separator": ("conll", "separator"),
    "text_language": ("brat", "language"),
    "split_sentences": ("brat", "split"),
    "misaligned": ("brat", "misaligned"),
}
WRITE_OPTIONS = {
    "provenance": ("conll", "provenance"),
    "to_scheme": ("conll", "scheme"),
    "to_tag_columns": ("conll", "tag_columns"),
    "to_separator": ("conll", "separator"),
    "overlap": ("conll", "overlap"),
}
_FORMAT_TITLES = {"conll": "CoNLL", "brat": "plain-text formats"}


def option_in_advance(argv: Sequence[str], *flags: str) -> str | None:
    """Return the value of an option that other options depend on, before the arguments are parsed."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument(*flags, dest="value")
    try:
        value: str | None = parser.parse_known_args(argv)[0].value
    except argparse.ArgumentError:
        return None
    return value


# -------------------------------------------------------------------------------------------------- reading and writing


def _add_read_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading (by default format and layout are detected)")
    _add_format_options(group, "from", READ_OPTIONS, "layout")
    group.add_argument("--repair", action="store_true", help="repair invalid tag sequences, and count the repairs")


def _add_write_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("writing (by default as the input)")
    _add_format_options(group, "to", WRITE_OPTIONS, "to_layout")


def _add_format_options(group: Any, name: str, options: dict[str, tuple[str, str]], layout: str) -> None:
    text = "the format; see entaug list formats"
    group.add_argument(f"--{name}", dest=f"{name}_format", metavar="FORMAT", help=text)
    for option, (format_name, own_name) in options.items():
        dialect: Any = type(find_format(format_name).dialect())
        [parameter] = [p for p in parameters(dialect) if p.name == own_name]
        keywords: dict[str, Any] = {"metavar": own_name.upper()}
        if parameter.is_flag:
            keywords = {"action": "store_const", "const": True}
        text = f"{_FORMAT_TITLES[format_name]}: {parameter_help(parameter).replace('%', '%%')}"
        group.add_argument("--" + option.replace("_", "-"), help=text, **keywords)
    text = "any other option of the format; may be repeated; see entaug list formats FORMAT"
    keywords = {"action": "append", "type": _assignment, "metavar": "NAME=VALUE", "default": []}
    group.add_argument("--" + layout.replace("_", "-"), help=text, **keywords)


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def _given(args: argparse.Namespace, options: dict[str, tuple[str, str]], layout: str) -> dict[str, Any]:
    own = {name: getattr(args, option) for option, (_, name) in options.items()}
    return {name: value for name, value in own.items() if value is not None} | dict(getattr(args, layout))


def read_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a `FileJob` for reading."""
    layout = _given(args, READ_OPTIONS, "layout")
    return {"repair": args.repair, "from_format": args.from_format, "read_options": layout}


def _read_augmented_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `read_augmented`."""
    return {"format": args.from_format, "repair": args.repair, **read_options(args)["read_options"]}


def _write_options(args: argparse.Namespace) -> dict[str, Any]:
    return {"to_format": args.to_format, "write_options": _given(args, WRITE_OPTIONS, "to_layout")}


def _add_loss_option(parser: argparse.ArgumentParser) -> None:
    text = f"kinds of content to drop if the output format cannot store them: {', '.join(LOSS_KINDS)}; or all"
    parser.add_argument("--allow-loss", type=split_names, metavar="KINDS", default=(), help=text)


def _flag(name: str, text: str) -> OptionGroup:
    return OptionGroup(lambda parser: parser.add_argument(f"--{name}", action="store_true", help=text))


def _settings(title: str, cls: type) -> OptionGroup:
    """Options for settings that hold for the whole program, which `main` takes from the arguments."""
    return OptionGroup(lambda parser: add_parameters(parser.add_argument_group(title), cls, is_argument=True))


FORCE = OptionGroup(_flag("force", "replace an output that exists").add, lambda args: {"force": args.force})
JSON = _flag("json", "print the summary as JSON on standard output")
QUIET = _flag("quiet", "print only errors")
READING = OptionGroup(_add_read_options, read_options)
WRITING = OptionGroup(_add_write_options, _write_options)
READING_AUGMENTED = OptionGroup(_add_read_options, _read_augmented_options)
LOSSES = OptionGroup(_add_loss_option, lambda args: {"allow_loss": args.allow_loss})
COMPUTING = _settings("computing with models (by default on the best available device)", ComputeSettings)
REQUESTS = _settings("language models behind a server (with --generator URL)", RequestSettings)


# ------------------------------------------------------------------------------------------ filters, held-out sentences


def add_held_out_option(parser: Any, text: str) -> None:
    """Add ``--held-out``."""
    keywords: dict[str, Any] = {"action": "append", "default": [], "metavar": "FILE"}
    parser.add_argument("--held-out", help=f"dev or test sentences, {text}", **keywords)


def held_out_sentences(args: argparse.Namespace) -> Iterator[Sentence]:
    """Read the dev and test sentences that were given as an option."""
    for corpus in FileJob(**read_options(args)).read(*args.held_out):
        yield from corpus


def _add_filter_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filters (by default none)")
    keywords: dict[str, Any] = {"dest": "filters", "action": "append", "default": []}
    metavar = "NAME[:PARAMETER=VALUE,...]"
    text = "a filter, or several joined by +; may be repeated; see entaug list filters"
    group.add_argument("--filter", "--filters", metavar=metavar, help=text, **keywords)
    add_held_out_option(group, "which the leakage filter, unlabelled text and lists are compared with")


def named_filters(args: argparse.Namespace) -> list[Filter]:
    """Return the filters that were given as options, with the held-out sentences for those that need them."""
    check_apart([args.output, getattr(args, "rejected", None)], [*args.held_out, *getattr(args, "unlabelled", ())])
    held_out = list(held_out_sentences(args)) if args.held_out else None
    filters = create_filters(args.filters, held_out)
    others = [getattr(args, "unlabelled", None), hasattr(args, "mentions"), "mentions=" in getattr(args, "method", "")]
    if held_out is not None and not any(others) and not any(filter_.name == "leakage" for filter_ in filters):
        raise ParameterError(
            "--held-out has nothing to be compared with", remedy="add --filter leakage, --unlabelled or --mentions"
        )
    return filters


FILTERS = OptionGroup(_add_filter_options)


# ------------------------------------------------------------------------------------------------------ unlabelled text


def add_unlabelled_options(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the options for reading unlabelled text."""
    group = parser.add_argument_group("unlabelled text" if required else "unlabelled text (for selftrain)")
    text = (
        "text without labels: plain text, a folder of .txt files, one token a line, JSON lines with text or tokens, or "
        "a file in any format, whose labels are dropped"
    )
    keywords: dict[str, Any] = {"action": "extend", "nargs": "+", "default": [], "required": required}
    group.add_argument("--unlabelled", metavar="FILE", help=text, **keywords)
    text = "leave out sentences of the text that are in a file given with --held-out, which is an error otherwise"
    group.add_argument("--drop-held-out", action="store_true", help=text)


def read_unlabelled_options(args: argparse.Namespace) -> UnlabelledText:
    """Read the unlabelled text, which is tokenised as the gold file is."""
    from entaug.formats.unlabelled import read_unlabelled

    if args.input == STDIN:
        message = "unlabelled text is tokenised as the training file, which cannot be standard input then"
        raise ParameterError(message, remedy="save it to a file")
    job = FileJob(**read_options(args))
    corpus = job.read_as_input(args.input)
    held_out: dict[str, Any] = {"held_out": args.held_out, "drop_held_out": args.drop_held_out}
    return read_unlabelled(args.unlabelled, corpus, **held_out, language=job.read_options.get("language"))
