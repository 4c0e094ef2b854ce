"""The functions behind ``entaug rate`` and ``entaug ratings``. They print nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from entaug.errors import ParameterError
from entaug.files.json_text import json_text
from entaug.files.streams import STDIN, is_stdout
from entaug.formats.augmented import read_augmented
from entaug.formats.file_job import check_apart, check_output, write_text
from entaug.report.ratings.page import (
    DEFAULT_SCALES,
    Scale,
    check_scales,
    packaged_scales,
    render_rating_page,
    sample_items,
)
from entaug.report.ratings.results import (
    RatingSummary,
    key_text,
    ratings_markdown,
    ratings_table,
    read_key,
    read_ratings,
    summarize_ratings,
)

__all__ = ["RatingPageSummary", "merge_ratings", "write_rating_page"]


@dataclass(frozen=True)
class RatingPageSummary:
    """Summary of a page for raters."""

    output: str
    key: str
    page: str
    items: dict[str, int]
    ratings: int
    notes: list[str] = field(default_factory=list)


def write_rating_page(
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

    Args:
        inputs: augmented files in any format, of one method or several.
        output: the page.
        key: the file that says which method each text is from; by default `output` with ``.key.json`` for its
            extension.
        gold: the file that was augmented; required if the inputs hold augmented sentences only.
        scales: the scales; by default ``fluent``, ``right`` and ``diverse``.
        sample: the number of texts of each method.
        with_gold: whether to mix in gold sentences. They are not rated on scales that compare texts.
        seed: the random seed of the sample and its order.
        title: the title of the page, which should name no method.
        force: replace existing files.
        options: options for reading; see `entaug.read_augmented`.

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
        >>> entaug.write_rating_page([folder / "new.jsonl"], folder / "rate.html", sample=1).items
        {'sis': 1}
    """
    inputs = list(inputs)
    if sample < 1:
        raise ParameterError(f"sample must be at least 1, not {sample}", parameter="sample")
    if is_stdout(output) or (key is not None and is_stdout(key)):
        raise ParameterError("the page and its key are two files", remedy="name a file with --output")
    key = Path(output).with_suffix(".key.json") if key is None else Path(key)
    if key.resolve() == Path(output).resolve():
        raise ParameterError("the page and its key have the same name", remedy="name another file with --key")
    for path in (output, key):
        check_output(path, STDIN, force=force)
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


def merge_ratings(
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
    r"""Merge the ratings that raters exported from a page, and write the means of the methods and the agreement.

    Args:
        key: the key of the page.
        inputs: the exported files, one of each rater.
        output: the file for the table, or ``"-"`` for standard output. The extension ``.md`` gives Markdown with the
            questions, ``.json`` gives JSON.
        merged: a file for all ratings as JSON lines, with method, texts and rater.
        samples: number of bootstrap samples.
        seed: seed of the resampling.
        as_json: write JSON whatever the extension of `output`.
        force: replace existing files.

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
        >>> page = entaug.write_rating_page([folder / "new.jsonl"], folder / "rate.html").page
        >>> head = {"entaug": "ratings", "version": 1, "page": page, "rater": "Bo"}
        >>> lines = [json.dumps(line) for line in (head, {"item": 1, "scale": "fluent", "rating": 2})]
        >>> _ = (folder / "bo.jsonl").write_text("\n".join(lines))
        >>> summary = entaug.merge_ratings(folder / "rate.key.json", [folder / "bo.jsonl"], folder / "table.txt")
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
    ratings = read_ratings(inputs, read_key(key))
    summary = summarize_ratings(ratings, samples=samples, seed=seed)
    if as_json or str(output).endswith(".json"):
        text = json_text(summary.to_dict(), indent=True) + "\n"
    else:
        text = ratings_markdown(summary) if str(output).endswith(".md") else ratings_table(summary)
    if merged is not None:
        lines = (json_text(row) + "\n" for row in ratings.rows())
        write_text("".join(lines), merged, force=force)
    write_text(text, output, force=force)
    return summary
