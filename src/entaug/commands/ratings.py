"""``entaug ratings``: merge the ratings of several people: means of methods, and agreement."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from entaug.commands.command import Command
from entaug.commands.options import FORCE
from entaug.commands.output import write_table, written_lines
from entaug.errors import ParameterError
from entaug.files.json_text import json_text
from entaug.files.streams import STDIN
from entaug.formats.file_job import check_apart, check_output, write_text
from entaug.report.ratings.results import (
    RatingSummary,
    ratings_markdown,
    ratings_table,
    read_key,
    read_ratings,
    summarize_ratings,
)


def ratings(
    key: str | Path,
    inputs: Iterable[str | Path],
    output: str | Path = "-",
    *,
    merged: str | Path | None = None,
    samples: int = 1000,
    seed: int = 0,
    as_json: bool = False,
    force: bool = False,
) -> RatingSummary:
    r"""Merge the ratings that raters exported from a page of entaug rate.

    The mean rating of each method on each scale with its 95 % interval, and Krippendorff's alpha, the agreement of the
    raters.

    Args:
        key: the key of the page.
        inputs: the exported files, one of each rater.
        output: the file for the table, or ``"-"`` for standard output. The extension ``.md`` gives Markdown with the
            questions, ``.json`` gives JSON.
        merged: a file for all ratings as JSON lines, with method, texts and rater.
        samples: number of bootstrap samples.
        seed: seed of the resampling.
        as_json: write JSON whatever the extension of `output`.
        force: replace an output that exists.

    Returns:
        The summary.

    Raises:
        InputError: a file is faulty, or of another page.
        ParameterError: no file is given, or `samples` is below 1.
        OutputError: an output exists, is an input, or cannot be written.

    Example:
        >>> import entaug, json, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> gold = [entaug.Sentence("Ada and Bo met in Rome".split(), [entaug.Mention("PER", [(0, 1)])])]
        >>> _ = entaug.write([*gold, *entaug.augment(gold, "sis")], folder / "new.jsonl")
        >>> page = entaug.rate([folder / "new.jsonl"], folder / "rate.html").page
        >>> head = {"entaug": "ratings", "version": 1, "page": page, "rater": "Bo"}
        >>> lines = [json.dumps(line) for line in (head, {"item": 1, "scale": "fluent", "rating": 2})]
        >>> _ = (folder / "bo.jsonl").write_text("\n".join(lines))
        >>> summary = entaug.ratings(folder / "rate.key.json", [folder / "bo.jsonl"], folder / "table.txt")
        >>> summary.methods["sis"]["fluent"].mean
        2.0
    """
    inputs = list(inputs)
    if not inputs:
        raise ParameterError("no file of ratings is given", remedy="name the files that the raters exported")
    outputs = [output, *([merged] if merged is not None else [])]
    for path in outputs:
        check_output(path, STDIN, force=force)
    check_apart(outputs, [key, *inputs])
    given = read_ratings(inputs, read_key(key))
    summary = summarize_ratings(given, samples=samples, seed=seed)
    if merged is not None:
        lines = (json_text(row) + "\n" for row in given.rows())
        write_text("".join(lines), merged, force=force)
    tables = (partial(ratings_markdown, summary), partial(ratings_table, summary))
    write_table(output, summary.to_dict(), *tables, as_json=as_json, force=force)
    return summary


COMMAND = Command(
    ratings,
    {"inputs": {"nargs": "*"}},
    (FORCE,),
    show=lambda args, _: written_lines(args.output, getattr(args, "merged", None)),
)
