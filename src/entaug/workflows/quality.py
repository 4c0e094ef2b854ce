"""The function behind ``entaug quality``: measure augmented files and write the result. It prints nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from entaug.augmented import read_augmented
from entaug.files.json_text import json_text
from entaug.files.streams import STDIN
from entaug.progress import Progress, no_progress
from entaug.quality import ComputeMeasures, Quality, compute_measure, measure_corpus
from entaug.quality.tables import quality_markdown, quality_table
from entaug.workflows.common import check_apart, check_output, write_text
from entaug.workflows.processes import Workers, number_of_processes

__all__ = ["measure_files"]


def measure_files(
    inputs: Iterable[str | Path],
    output: str | Path = "-",
    *,
    gold: str | Path | None = None,
    measures: Sequence[str] | None = None,
    models: Mapping[str, Any] = MappingProxyType({}),
    as_json: bool = False,
    force: bool = False,
    jobs: int | None = 1,
    progress: Progress = no_progress,
    **options: Any,
) -> list[Quality]:
    """Measure the augmented sentences of files and write a table; see `entaug.measure_quality`."""
    inputs = list(inputs)
    check_output(output, STDIN, force=force)  # check before the computation
    check_apart([output], [gold, *inputs])
    jobs = number_of_processes(jobs, sum(Path(path).stat().st_size for path in inputs if Path(path).is_file()))
    corpus = read_augmented(inputs, gold, **options)
    with contextlib.ExitStack() as stack:
        compute: ComputeMeasures | None = None
        if jobs > 1:
            compute = partial(stack.enter_context(Workers.start(jobs)).map, compute_measure)
        qualities = measure_corpus(corpus, measures=measures, compute=compute, progress=progress, **models)
    if as_json or str(output).endswith(".json"):
        text = json_text([quality.to_dict() for quality in qualities], indent=True) + "\n"
    elif str(output).endswith(".md"):
        text = quality_markdown(qualities)
    else:
        text = quality_table(qualities)
    write_text(text, output, force=force)
    return qualities
