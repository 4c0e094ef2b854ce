"""Whether the forecasts of `entaug advise` come true: 70 % of the sentences are held back, then used.

Of a pool of at most 700 sentences of each corpus, 30 % are known. From trainings on parts of these, F1 at twice their
number is forecast, exactly as `entaug advise` does it with three folds and four sizes. Then taggers are trained on
twice as many sentences, those held back included, and tested twice: on the same held-out folds of the known sentences,
and on sentences of the test set, which nothing else uses. Both are compared with the forecast. The prior of the curve
was estimated on the development corpora, which are reported apart. Finished trainings are kept, and records are
enough to compute the page again. Run, from the project's root:

    python benchmarks/forecasts.py run --seeds 1 2 3         # hours; may be interrupted and repeated
    python benchmarks/forecasts.py run --seeds 1 --whole     # ... and at the size of the whole pool
    python benchmarks/forecasts.py page
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import shutil
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import orjson

from entaug import __version__
from entaug.core.data import Sentence
from entaug.formats import read
from entaug.metrics.learning_curve import CurvePrior, Estimate, LearningCurve, fit_learning_curve
from entaug.metrics.tables import Block, Heading, Table, as_markdown
from entaug.study.curves import CurvePart, CurveRuns, CurveTagger, curve_parts, curve_sizes
from entaug.study.subsets import content_key

RESULTS = Path("benchmarks/results")
RECORDS = RESULTS / "forecasts" / "forecasts.jsonl"
POOL = 700
KNOWN = 0.3
FOLDS = 3
MAX_TEST = 500
TAGGER = CurveTagger()


class Data(NamedTuple):
    """The files of a corpus."""

    train: Sequence[str]
    test: str
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


def _crossner(domain: str) -> Data:
    return Data([f"crossner/{domain}/train.txt", f"crossner/{domain}/dev.txt"], f"crossner/{domain}/test.txt")


DEVELOPMENT = ("crossner-ai", "wnut17", "crossner-politics")
"""The corpora that the prior was estimated on."""
CORPORA = {
    "crossner-ai": _crossner("ai"),
    "ncbi-disease": Data(["ncbi-disease/train.tsv"], "ncbi-disease/test.tsv"),
    "wnut17": Data(["wnut17/wnut17train.conll"], "wnut17/emerging.test.annotated"),
    "multiconer-en": Data(["multiconer-v1/1000/en_sample_train.conll"], "multiconer-v1/15000/en_dev.conll"),
    "crossner-politics": _crossner("politics"),
    "tdmsci": Data(["tdmsci/train_1500_v2.conll"], "tdmsci/test_500_v2.conll"),
    "uner-en-ewt": Data(["uner/en_ewt/en_ewt-ud-dev.iob2"], "uner/en_ewt/en_ewt-ud-test.iob2"),
    "bc2gm": Data(["bc2gm/train.tsv"], "bc2gm/test.tsv"),
    "crossner-music": _crossner("music"),
    "genia-flat": Data(["genia/nested-jsonl/train.jsonl"], "genia/nested-jsonl/test.jsonl"),
    "uner-da-ddt": Data(["uner/da_ddt/da_ddt-ud-train.iob2"], "uner/da_ddt/da_ddt-ud-test.iob2"),
    "crossner-science": _crossner("science"),
    "uner-hr-set": Data(["uner/hr_set/hr_set-ud-train.iob2"], "uner/hr_set/hr_set-ud-test.iob2"),
    "crossner-literature": _crossner("literature"),
    "danplus": Data(["danplus/da_news_train.tsv"], "danplus/da_news_test.tsv"),
}
