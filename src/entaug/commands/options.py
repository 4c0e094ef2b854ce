"""Options that several commands share: reading, writing, computing, filters, and the parameters of a class."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from entaug.backends.compute import ComputeSettings
from entaug.config.params import REQUIRED, Parameter, parameters
from entaug.errors import ParameterError

if TYPE_CHECKING:
    from entaug.core.data import Sentence
    from entaug.filters import Filter

__all__ = [
    "add_compute_options",
    "add_filter_options",
    "add_gold_option",
    "add_json_option",
    "add_loss_option",
    "add_output_options",
    "add_parameters",
    "add_read_options",
    "add_review_option",
    "add_write_options",
    "compute_options",
    "given_parameters",
    "held_out_sentences",
    "named_filters",
    "option_in_advance",
    "parameter_help",
    "read_options",
    "split_names",
    "write_options",
]

# Format options with a command-line option of their own: the option, the format that describes it, its name there. All
# other format options are set with --layout and --to-layout.
_READ_OPTIONS = (
    ("token_column", "conll", "token_column"),
    ("tag_column", "conll", "tag_column"),
    ("tag_columns", "conll", "tag_columns"),
    ("scheme", "conll", "scheme"),
    ("separator", "conll", "separator"),
    ("text_language", "brat", "language"),
    ("sentences", "brat", "split"),
    ("misaligned", "brat", "misaligned"),
)
_WRITE_OPTIONS = (
    ("to_scheme", "conll", "scheme"),
    ("to_tag_columns", "conll", "tag_columns"),
    ("to_separator", "conll", "separator"),
    ("overlap", "conll", "overlap"),
    ("entities", "jsonl", "entities"),
)
_SEPARATORS = {"separator": ("tab", "space", "runs"), "to_separator": ("tab", "space")}
_FORMAT_TITLES = {"conll": "CoNLL", "brat": "plain-text formats", "jsonl": "JSON lines"}


class _Once(argparse.Action):
    """An option that must not be given twice."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        """Store the value."""
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option} is given twice; give one file")
        setattr(namespace, self.dest, values)


def split_names(text: str) -> list[str]:
    """Return the names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def option_in_advance(argv: Sequence[str], *flags: str) -> str | None:
    """Return the value of an option that other options depend on, before the arguments are parsed."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument(*flags, dest="value")
    try:
        value: str | None = parser.parse_known_args(argv)[0].value
    except argparse.ArgumentError:
        return None
    return value


def add_gold_option(parser: argparse.ArgumentParser, help: str) -> None:
    """Add ``--gold``."""
    parser.add_argument("--gold", action=_Once, metavar="FILE", help=help)


# ------------------------------------------------------------------------------------------------ parameters of classes


def parameter_help(parameter: Parameter, *, with_default: bool = True) -> str:
    """Return the description, valid values and default of a parameter."""
    default = f" (default: {parameter.default})"
    default = "" if not with_default or parameter.default in (None, REQUIRED, ()) else default
    expected = "" if parameter.is_flag else f": {parameter.expected}"
    return f"{parameter.description.rstrip('.').replace('`', '')}{expected}{default}"


def add_parameters(group: Any, cls: type, *, without: Collection[str] = ()) -> None:
    """Add an option for each parameter of a class; options that are not given are absent from the parsed arguments."""
    computing = {parameter.name for parameter in parameters(ComputeSettings)}  # options of their own
    for parameter in parameters(cls):
        if parameter.name in computing or parameter.name in without or "given" in parameter.metadata:
            continue
        option = "--" + parameter.name.replace("_", "-")
        text = parameter_help(parameter).replace("%", "%%")
        if parameter.is_flag:
            group.add_argument(option, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=text)
        else:
            metavar, action = parameter.name.upper(), "append" if parameter.metadata.get("repeatable") else "store"
            group.add_argument(
                option, action=action, type=_converter(parameter), default=argparse.SUPPRESS, metavar=metavar, help=text
            )


def given_parameters(args: argparse.Namespace, cls: type) -> dict[str, Any]:
    """Return the parameters of a class that were given as options."""
    return {p.name: vars(args)[p.name] for p in parameters(cls) if p.name in args and "given" not in p.metadata}


def _converter(parameter: Parameter) -> Any:
    def convert(text: str) -> Any:
        try:
            return parameter.parse(text)
        except ParameterError as error:
            raise argparse.ArgumentTypeError(error.message) from None

    return convert


# -------------------------------------------------------------------------------------------------- reading and writing


def add_read_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading a corpus; see `read_options`."""
    from entaug.formats import FORMATS

    group = parser.add_argument_group("reading (by default format and layout are detected)")
    group.add_argument("--from", dest="from_format", metavar="FORMAT", help=f"one of: {', '.join(FORMATS)}")
    _add_format_options(group, _READ_OPTIONS)
    _add_layout_option(group, "--layout", "layout")
    group.add_argument("--repair", action="store_true", help="repair invalid tag sequences, and count the repairs")


def add_write_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for writing a corpus; see `write_options`."""
    from entaug.formats import FORMATS

    group = parser.add_argument_group("writing (by default as the input)")
    group.add_argument("--to", dest="to_format", metavar="FORMAT", help=f"one of: {', '.join(FORMATS)}")
    group.add_argument("--provenance", action="store_true", help="CoNLL: write provenance as comment lines")
    _add_format_options(group, _WRITE_OPTIONS)
    _add_layout_option(group, "--to-layout", "to_layout")


def _add_format_options(group: Any, options: Sequence[tuple[str, str, str]]) -> None:
    from entaug.formats import find_format

    for option, format_name, name in options:
        dialect: Any = type(find_format(format_name).dialect())
        [parameter] = [p for p in parameters(dialect) if p.name == name]
        if option in _SEPARATORS:
            choices: tuple[str, ...] | None = _SEPARATORS[option]
            text, metavar = "CoNLL: the column separator", None
        else:
            choices, metavar = None, name.upper()
            text = f"{_FORMAT_TITLES[format_name]}: {parameter_help(parameter)}".replace("%", "%%")
        group.add_argument("--" + option.replace("_", "-"), choices=choices, metavar=metavar, help=text)


def _add_layout_option(group: Any, option: str, name: str) -> None:
    group.add_argument(
        option,
        dest=name,
        action="append",
        type=_assignment,
        metavar="NAME=VALUE",
        default=[],
        help="any other option of the format; may be repeated; see entaug formats NAME",
    )


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def read_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a workflow for reading."""
    layout = {name: getattr(args, option) for option, _, name in _READ_OPTIONS} | dict(args.layout)
    return {"repair": args.repair, "from_format": args.from_format, "read_options": layout}


def write_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a workflow for writing."""
    layout = {name: getattr(args, option) for option, _, name in _WRITE_OPTIONS} | dict(args.to_layout)
    if args.provenance:
        layout["provenance"] = True
    return {"to_format": args.to_format, "write_options": layout}


def add_output_options(parser: argparse.ArgumentParser, **more: Any) -> None:
    """Add ``--output`` and ``--force``."""
    usual: dict[str, Any] = {"default": "-", "help": "the output file (default: - for standard output)"}
    parser.add_argument("-o", "--output", **(usual | more))
    parser.add_argument("--force", action="store_true", help="replace an output that exists")


def add_json_option(
    parser: argparse.ArgumentParser, what: str = "print the summary as JSON on standard output"
) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help=what)


def add_loss_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--allow-loss``."""
    parser.add_argument(
        "--allow-loss",
        type=split_names,
        default=[],
        metavar="KINDS",
        help="kinds of content to drop if the output format cannot store them: id, text, column, field ..., or all",
    )


# ------------------------------------------------------------------------------------------ computing, filters, reviews


def add_compute_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for computing with models; see `compute_options`."""
    group = parser.add_argument_group("computing with models (by default on the best available device)")
    for parameter in parameters(ComputeSettings):
        usual: dict[str, Any] = {"default": argparse.SUPPRESS, "help": parameter.description.replace("%", "%%")}
        option = f"--{parameter.name.replace('_', '-')}"
        if parameter.is_flag:
            group.add_argument(option, action="store_true", **usual)
        else:
            group.add_argument(option, type=_converter(parameter), metavar=parameter.name.upper(), **usual)


def compute_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the compute settings that were given as options of any command."""
    return given_parameters(args, ComputeSettings)


def add_review_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--apply-review``."""
    parser.add_argument(
        "--apply-review",
        action=_Once,
        metavar="FILE",
        help="leave out sentences that were rejected in a report; FILE is the review exported from its page",
    )


def add_filter_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select filters; see `named_filters`."""
    group = parser.add_argument_group("filters (by default none)")
    group.add_argument(
        "--filter",
        "--filters",
        dest="filters",
        action="append",
        default=[],
        metavar="NAME[:PARAMETER=VALUE,...]",
        help="a filter, or several joined by +; may be repeated; see entaug filters",
    )
    group.add_argument(
        "--held-out",
        action="append",
        default=[],
        metavar="FILE",
        help="dev or test sentences, which the leakage filter, unlabelled text and lists are compared with",
    )


def named_filters(args: argparse.Namespace) -> list[Filter]:
    """Return the filters that were given as options, with the held-out sentences for those that need them."""
    from entaug.filters import create_filters

    held_out = list(held_out_sentences(args)) if args.held_out else None
    filters = create_filters(args.filters, held_out)
    others = [getattr(args, "unlabelled", None), hasattr(args, "mentions"), "mentions=" in getattr(args, "method", "")]
    if held_out is not None and not any(others) and not any(filter_.name == "leakage" for filter_ in filters):
        raise ParameterError(
            "--held-out has nothing to be compared with", remedy="add --filter leakage, --unlabelled or --mentions"
        )
    return filters


def held_out_sentences(args: argparse.Namespace) -> Iterator[Sentence]:
    """Read the dev and test sentences that were given as an option."""
    from entaug.formats import read_each

    files, given = args.held_out, read_options(args)
    for corpus in read_each(files, given["from_format"], repair=given["repair"], beside=True, **given["read_options"]):
        yield from corpus
