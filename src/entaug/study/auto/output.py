"""The folder of the result of a choice."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from entaug.core.corpus import with_keys
from entaug.core.data import Sentence
from entaug.files.atomic import atomic_folder
from entaug.formats import write
from entaug.formats.augmented import read_augmented
from entaug.metrics.quality import measure_corpus
from entaug.report.html.assembly import render_html_report
from entaug.study.auto.inputs import AutoInputs
from entaug.study.auto.plan_file import to_plan_text
from entaug.study.auto.summary import AutoSummary

__all__ = ["write_output"]


def write_output(
    output: Path,
    inputs: AutoInputs,
    augmented: Sequence[Sentence],
    tagger: Path,
    summary: AutoSummary,
    arguments: Mapping[str, Any],
) -> None:
    """Write the folder of a result; it appears when it is complete."""
    with atomic_folder(output) as folder:
        gold = with_keys(inputs.gold) if augmented else inputs.gold  # provenance names them
        write([*gold, *augmented], folder / "train.jsonl")
        if augmented:
            write(augmented, folder / "augmented.jsonl")
        shutil.copytree(tagger, folder / "tagger")
        corpus = read_augmented([folder / "train.jsonl"])
        qualities = measure_corpus(corpus, causal_lm=None, encoder=None) if corpus.methods else []
        page = render_html_report(
            corpus,
            qualities=qualities,
            title=f"Augmentation of {Path(summary.input).name}",
            notes=[line.strip() for line in [*summary.lines(), *summary.notes]],
        )
        (folder / "report.html").write_text(page, encoding="utf-8")
        plan = to_plan_text(arguments, inputs.digests, output, summary.recipe)
        (folder / "plan.toml").write_text(plan, encoding="utf-8")
        text = orjson.dumps(summary.to_dict(), option=orjson.OPT_INDENT_2)
        (folder / "summary.json").write_bytes(text + b"\n")
