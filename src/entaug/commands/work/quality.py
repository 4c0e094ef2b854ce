"""The function behind ``entaug quality``: measure augmented files and write the result. It prints nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from entaug.backends.processes import Workers, number_of_processes
from entaug.core.progress import Progress, no_progress
from entaug.files.json_text import json_text
from entaug.files.streams import STDIN
from entaug.formats.augmented import read_augmented
from entaug.formats.file_job import check_apart, check_output, write_text
from entaug.metrics.quality import (
    ComputeMeasures,
    Quality,
    compute_measure,
    measure_corpus,
    quality_markdown,
    quality_table,
)

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
