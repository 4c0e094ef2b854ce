"""``entaug quality``: measure augmented sentences, without training."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from entaug.backends.resolve import resolve
from entaug.commands.command import Command
from entaug.commands.options import COMPUTING, FORCE, READING_AUGMENTED
from entaug.commands.output import write_table, written_lines
from entaug.core.progress import Progress, no_progress
from entaug.errors import ParameterError
from entaug.files.streams import STDIN
from entaug.formats.augmented import read_augmented
from entaug.formats.file_job import check_apart, check_output
from entaug.metrics.quality import DEFAULT_MODELS, Quality, measure_corpus, quality_markdown, quality_table


def quality(
    inputs: Iterable[str | Path],
    output: str | Path = "-",
    *,
    gold: str | Path | None = None,
    measures: Sequence[str] | None = None,
    models: Mapping[str, Any] = MappingProxyType({}),
    as_json: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    **options: Any,
) -> list[Quality]:
    """Measure fluency, novelty, diversity, labels and length: a column for each method, and one for gold.

    JSON Lines files store the method and source of each sentence; in other formats every sentence that is not in the
    gold file counts as augmented. For sentences in memory: `entaug.metrics.measure_quality`.

    Args:
        inputs: augmented files, of one method or several.
        output: the file to write: Markdown for ``.md``, JSON for ``.json``, else a table; ``"-"`` for standard output.
        gold: the gold file; required if the other files lack its sentences.
        measures: names of measures; None for all whose models are available.
        models: models by kind (``causal_lm``, ``masked_lm``, ``encoder``); None for a kind leaves its measures out.
        as_json: write JSON.
        force: replace an output that exists.
        progress: the progress callback.
        options: options for reading; see `entaug.formats.read_augmented`.

    Returns:
        The measures of each method, and of gold.

    Raises:
        InputError: a file is invalid.
        OutputError: the output exists or cannot be written.

    Example:
        >>> import entaug, tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> gold = [entaug.Sentence("a b c d e".split())]
        >>> _ = entaug.write([*gold, *entaug.augment(gold, "sis")], folder / "new.jsonl")
        >>> [one.name for one in quality([folder / "new.jsonl"], folder / "table.md", measures=["new_words"])]
        ['gold', 'sis']
    """
    inputs = list(inputs)
    check_output(output, STDIN, force=force)  # check before the computation
    check_apart([output], [gold, *inputs])
    qualities = measure_corpus(read_augmented(inputs, gold, **options), measures=measures, progress=progress, **models)
    record = [quality.to_dict() for quality in qualities]
    tables = (partial(quality_markdown, qualities), partial(quality_table, qualities))
    write_table(output, record, *tables, as_json=as_json, force=force)
    return qualities


def _add_options(parser: argparse.ArgumentParser, _: Sequence[str]) -> None:
    group = parser.add_argument_group("models: each a starter model, a folder, or a name on the hub")
    for kind, default in DEFAULT_MODELS.items():
        what = kind.replace("_lm", " language model").replace("_", " ")
        text = f"{what} (default: {default or 'none; its measures are then left out'})"
        group.add_argument(f"--{kind.replace('_', '-')}", metavar="MODEL", help=text)
    group.add_argument("--no-models", action="store_true", help="leave out all measures that need a model")


def _values(args: argparse.Namespace) -> dict[str, Any]:
    if not args.inputs:
        raise ParameterError("no file is given", remedy="name augmented files; for the measures: entaug list measures")
    named = {kind: getattr(args, kind) for kind in DEFAULT_MODELS if getattr(args, kind)}
    if named and args.no_models:
        option = f"--{next(iter(named)).replace('_', '-')}"
        raise ParameterError(f"--no-models and {option} exclude each other; give one of them")
    # A model that the user names must be available; a default model may be missing.
    models = dict.fromkeys(DEFAULT_MODELS) if args.no_models else {k: resolve(k, name) for k, name in named.items()}
    return {"models": models}


COMMAND = Command(
    quality,
    {"inputs": {"nargs": "*"}, "models": None},
    (FORCE, READING_AUGMENTED, COMPUTING),
    more=_add_options,
    values=_values,
    show=lambda args, _: written_lines(args.output),
)
