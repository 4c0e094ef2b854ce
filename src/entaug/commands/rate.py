"""``entaug rate``: write a page on which people rate augmented sentences without knowing their methods."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entaug.commands.command import Command, Summary
from entaug.commands.options import FORCE, JSON, READING_AUGMENTED
from entaug.errors import ParameterError
from entaug.files.streams import STDIN, is_stdout
from entaug.formats.augmented import read_augmented
from entaug.formats.file_job import check_apart, check_output, write_text
from entaug.metrics.tables import quantity
from entaug.report.ratings.page import (
    DEFAULT_SCALES,
    Scale,
    check_scales,
    packaged_scales,
    read_scales,
    render_rating_page,
    sample_items,
)
from entaug.report.ratings.results import key_text


@dataclass(frozen=True)
class RatingPageSummary(Summary):
    """Summary of a page for raters."""

    output: str
    key: str
    page: str
    items: dict[str, int]
    ratings: int
    notes: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield from (f"note: {note}" for note in self.notes)
        items = ", ".join(f"{count:,} of {method}" for method, count in self.items.items())
        yield f"wrote {self.output}: {items}; {quantity(self.ratings, 'rating')} for each rater"
        yield f"wrote {self.key}: keep it from the raters; entaug ratings needs it"


def rate(
    inputs: Iterable[str | Path],
    output: str | Path,
    *,
    key: str | Path | None = None,
    gold: str | Path | None = None,
    scales: Sequence[Scale] | None = None,
    sample: int = 50,
    with_gold: bool = False,
    seed: int = 0,
    title: str | None = None,
    force: bool = False,
    **options: Any,
) -> RatingPageSummary:
    """Write a page on which people rate augmented sentences without knowing their methods, and its key.

    Each rater opens the page in a browser, rates a sample from 1 to 5 in random order, and exports a file; entaug
    ratings merges them. The key says which sentence is of which method.

    Args:
        inputs: augmented files in any format, of one method or several.
        output: the page.
        key: the file that says which method each text is from; by default `output` with ``.key.json`` for its
            extension.
        gold: the file that was augmented; required if the inputs hold augmented sentences only.
        scales: the scales; by default ``fluent``, ``right`` and ``diverse``; see ``entaug list scales``.
        sample: the number of texts of each method.
        with_gold: whether to mix in gold sentences. They are not rated on scales that compare texts.
        seed: the random seed of the sample and its order.
        title: the title of the page, which should name no method.
        force: replace an output that exists.
        options: options for reading; see `entaug.formats.read_augmented`.

    Returns:
        What was written.

    Raises:
        InputError: a file is invalid.
        ParameterError: there is nothing to rate, or scales exclude each other.
        OutputError: an output exists, is an input, or cannot be written.

    Example:
        >>> import entaug, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> gold = [entaug.Sentence("Ada and Bo met in Rome".split(), [entaug.Mention("PER", [(0, 1)])])]
        >>> _ = entaug.write([*gold, *entaug.augment(gold, "sis", copies=2)], folder / "new.jsonl")
        >>> entaug.rate([folder / "new.jsonl"], folder / "rate.html", sample=1).items
        {'sis': 1}
    """
    inputs = list(inputs)
    if sample < 1:
        raise ParameterError(f"sample must be at least 1, not {sample}", parameter="sample")
    if is_stdout(output) or (key is not None and is_stdout(key)):
        raise ParameterError("the page and its key are two files", remedy="name a file as `output`")
    check_output(output, STDIN, force=force)
    key = Path(output).with_suffix(".key.json") if key is None else Path(key)
    if key.resolve() == Path(output).resolve():
        raise ParameterError("the page and its key have the same name", remedy="name another file as `key`")
    check_output(key, STDIN, force=force)
    check_apart([output, key], [gold, *inputs])
    packaged = packaged_scales()
    chosen = check_scales([packaged[name] for name in DEFAULT_SCALES] if scales is None else scales)
    corpus = read_augmented(inputs, gold, **options)
    items, notes = sample_items(corpus, chosen, sample=sample, with_gold=with_gold, seed=seed)
    page = render_rating_page(items, chosen, **({} if title is None else {"title": title}))
    # The key first: a page without its key would be of no use.
    write_text(key_text(page.digest, chosen, items, seed), key, force=force)
    write_text(page.html, output, force=force)
    return RatingPageSummary(
        output=str(output),
        key=str(key),
        page=page.digest,
        items=dict(sorted(Counter(item.method for item in items).items())),
        ratings=sum(len(item.scales) for item in items),
        notes=[*corpus.notes, *notes],
    )


def _values(args: argparse.Namespace) -> dict[str, Any]:
    if not args.inputs or args.output is None:
        what, remedy = ("output", "name the page: -o rate.html") if args.inputs else ("file", "name augmented files")
        raise ParameterError(f"no {what} is given", remedy=remedy)
    return {"scales": read_scales(args.scales)} if "scales" in args else {}


COMMAND = Command(
    rate,
    {
        "inputs": {"nargs": "*"},
        "output": {"default": None, "metavar": "FILE"},
        "scales": {"action": "store", "nargs": None},
    },
    (FORCE, JSON, READING_AUGMENTED),
    values=_values,
)
