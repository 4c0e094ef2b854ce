"""What the commands have in common on the command line: options of reading, writing, computing, and of methods."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from entaug.errors import ParameterError
from entaug.formats import FORMATS
from entaug.params import Parameter, parameters

if TYPE_CHECKING:
    from entaug.augmenters.base import Augmenter
    from entaug.filters import Filter

__all__ = [
    "Once",
    "add_computing",
    "add_filters",
    "add_method_options",
    "add_reading",
    "add_review",
    "add_writing",
    "field_texts",
    "filters_given",
    "reading",
    "writing",
]


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add what says how the input is read; see `reading`."""
    group = parser.add_argument_group("how the input is read (found by looking, unless given)")
    group.add_argument("--from", dest="from_format", metavar="FORMAT", help=f"one of: {', '.join(FORMATS)}")
    group.add_argument("--token-column", type=int, metavar="N", help="CoNLL: the token's column, counted from 0")
    group.add_argument(
        "--tag-column", type=int, metavar="N", help="CoNLL: the tag's column, counted from 0; -1 is the last"
    )
    group.add_argument("--tag-columns", metavar="N,N", help="CoNLL: tag columns of nested mentions, outermost first")
    group.add_argument("--scheme", help="CoNLL: IOB1, IOB2, IOBES, BILOU or BMES")
    group.add_argument("--separator", choices=("tab", "space", "runs"), help="CoNLL: what stands between columns")
    group.add_argument(
        "--text-language", metavar="CODE", help="formats of plain text: whose rules tokenise it (default: en)"
    )
    group.add_argument(
        "--split",
        choices=("none", "lines", "sentences"),
        help="formats of plain text: how texts are cut into sentences",
    )
    group.add_argument(
        "--misaligned",
        choices=("error", "skip", "cut"),
        help="formats of plain text: what to do with a mention that begins or ends within a token (default: error)",
    )
    group.add_argument(
        "--layout",
        action="append",
        type=_pair,
        metavar="NAME=VALUE",
        default=[],
        help="any other option of the format, several times if need be: see entaug formats NAME",
    )
    group.add_argument("--repair", action="store_true", help="mend broken tag sequences, and count them")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON on standard output")


def add_writing(parser: argparse.ArgumentParser) -> None:
    """Add what says how the output is written; see `writing`."""
    group = parser.add_argument_group("how the output is written (as the input, unless given)")
    group.add_argument("--to", dest="to_format", metavar="FORMAT", help=f"one of: {', '.join(FORMATS)}")
    group.add_argument("--provenance", action="store_true", help="CoNLL: write provenance as comment lines")
    group.add_argument("--to-scheme", metavar="SCHEME", help="CoNLL: IOB1, IOB2, IOBES, BILOU or BMES")
    group.add_argument("--to-tag-columns", metavar="N,N", help="CoNLL: tag columns, those of outer mentions first")
    group.add_argument("--to-separator", choices=("tab", "space"), help="CoNLL: what to put between columns")
    group.add_argument(
        "--overlap", choices=("error", "outermost", "innermost"), help="CoNLL: what to keep of nested mentions"
    )
    group.add_argument(
        "--entities", choices=("offsets", "spans", "mixed"), help="JSON lines: how to write a mention's place"
    )
    group.add_argument(
        "--to-layout",
        action="append",
        type=_pair,
        metavar="NAME=VALUE",
        default=[],
        help="any other option of the format, several times if need be: see entaug formats NAME",
    )


def add_review(parser: argparse.ArgumentParser) -> None:
    """Add what a person decided in a report."""
    parser.add_argument(
        "--apply-review",
        action=Once,
        metavar="FILE",
        help="leave out what was rejected in a report; FILE is what it exported",
    )


def _pair(text: str) -> tuple[str, bool | int | str]:
    """An option of a format, as ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    if value in ("true", "false"):
        return name, value == "true"
    return name, int(value) if value.isdecimal() else value


class Once(argparse.Action):
    """An option that has one value, and is not silently given another."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        """Take the value."""
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option} is given twice, and takes one file")
        setattr(namespace, self.dest, values)


def add_computing(parser: argparse.ArgumentParser) -> None:
    """Add the options of `entaug.backends.compute.ComputeSettings`."""
    group = parser.add_argument_group("how models compute (the best there is, unless given)")
    group.add_argument("--device", help="cpu, cuda, cuda:1 ...")
    group.add_argument("--precision", choices=("fp32", "bf16", "fp16"), help="of language models and encoders")
    group.add_argument("--offline", action="store_true", help="fetch no model from the hub")


def _method_class(argv: Sequence[str]) -> type[Augmenter] | None:
    early = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    early.add_argument("-m", "--method")
    with contextlib.suppress(argparse.ArgumentError):
        name = early.parse_known_args(argv)[0].method
        if name:
            from entaug.augmenters import METHODS

            return METHODS[name]
    return None


def add_method_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """The fields of the chosen method become options, so no method has code here."""
    chosen = _method_class(argv)
    if chosen is None:  # those of every method, for the help
        from entaug.augmenters.base import Augmenter

        cls: type[Augmenter] = Augmenter
        name = "options of every method; those of one: entaug augment --method NAME --help"
    else:
        cls, name = chosen, f"options of {chosen.info.name} ({chosen.info.long_name})"
    group = parser.add_argument_group(name)
    for parameter in parameters(cls):
        if parameter.name == "filters":  # several times if need be, so with an option of its own
            continue
        default = parameter.default
        option = "--" + parameter.name.replace("_", "-")
        usual = "" if default is None else f" (default: {default})"
        text = f"{parameter.description}{usual}".strip().replace("%", "%%")
        if parameter.is_flag:
            group.add_argument(option, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=text)
        else:
            metavar = parameter.name.upper()
            kind = _reader(parameter)
            group.add_argument(option, type=kind, default=argparse.SUPPRESS, metavar=metavar, help=text)
    add_filters(parser)
    parser.set_defaults(method_class=cls, method_fields=[parameter.name for parameter in parameters(cls)])


def _reader(parameter: Parameter) -> Callable[[str], Any]:
    """The function that argparse converts the text of a parameter with."""

    def read(text: str) -> Any:
        try:
            return parameter.parse(text)
        except ParameterError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add what says which sentences are kept; see `filters_given`."""
    group = parser.add_argument_group("which new sentences are kept (all, unless given)")
    group.add_argument(
        "--filter",
        "--filters",
        dest="filters",
        action="append",
        default=[],
        metavar="NAME[:PARAMETER=VALUE,...]",
        help="a filter, several times if need be, or several joined by +: see entaug filters",
    )
    group.add_argument(
        "--held-out",
        action="append",
        default=[],
        metavar="FILE",
        help="dev or test sentences that leakage compares with, several times if need be",
    )


def filters_given(args: argparse.Namespace) -> list[Filter]:
    """The filters asked for, with the held-out sentences read for those that want them.

    Raises:
        UnknownNameError: there is no such filter.
        ParameterError: a parameter that cannot be, or held-out files and no filter that looks at them.
        InputError: a held-out file is faulty.
    """
    from entaug.filters import Leakage, create_filters
    from entaug.formats import read_each

    held_out = None
    if args.held_out:
        told = reading(args)
        options = {"repair": told["repair"], "beside": True, **told["read_options"]}
        held_out = [s for corpus in read_each(args.held_out, told["from_format"], **options) for s in corpus]
    found = create_filters(args.filters, held_out)
    if held_out is not None and not any(isinstance(one, Leakage) for one in found):
        raise ParameterError("--held-out goes with the leakage filter alone", remedy="add --filter leakage")
    return found


def field_texts(cls: type) -> dict[str, str]:
    """The lines of the Args sections of a class and its bases, by argument."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        _, _, section = (base.__doc__ or "").partition("Args:\n")
        last = ""
        for line in section.split("\n"):
            name, colon, text = line.strip().partition(": ")
            if not line.strip():
                break
            if colon and name.isidentifier() and not line.startswith(" " * 10):
                last = name
                texts[last] = text
            elif last:
                texts[last] += " " + line.strip()
    return texts


_LAYOUT = ("token_column", "tag_column", "tag_columns", "scheme", "separator", "split", "misaligned")


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """What a job wants to know of how to read."""
    layout = {name: getattr(args, name) for name in _LAYOUT} | {"language": args.text_language, **dict(args.layout)}
    return {"repair": args.repair, "from_format": args.from_format, "read_options": layout}


def writing(args: argparse.Namespace) -> dict[str, Any]:
    """What a job wants to know of how to write."""
    layout = {
        "scheme": args.to_scheme,
        "tag_columns": args.to_tag_columns,
        "separator": args.to_separator,
        "overlap": args.overlap,
        "entities": args.entities,
        "provenance": args.provenance or None,
        **dict(args.to_layout),
    }
    return {"to_format": args.to_format, "write_options": layout}
