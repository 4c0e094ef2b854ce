# The public names of `entaug.metrics` and where they are; `__init__` imports each on first use.

from .agreement import krippendorff_alpha
from .bertscore import pairwise_bertscore
from .consistency import Finding, find_label_errors
from .likelihood import best_by_likelihood, pseudo_log_likelihood
from .quality import Quality, measure_quality
from .significance import Difference, paired_bootstrap
from .span_f1 import MatchCounts, Scores, score

__all__ = [
    "Difference",
    "Finding",
    "MatchCounts",
    "Quality",
    "Scores",
    "best_by_likelihood",
    "find_label_errors",
    "krippendorff_alpha",
    "measure_quality",
    "paired_bootstrap",
    "pairwise_bertscore",
    "pseudo_log_likelihood",
    "score",
]
