"""entaug: data augmentation for named-entity recognition, flat, nested and discontinuous.

Example:
    >>> import entaug
    >>> from entaug import Mention, Sentence
    >>> gold = [
    ...     Sentence(["Ada", "left", "Rome"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])]),
    ...     Sentence(["Bo", "likes", "Oslo"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])]),
    ... ]
    >>> new = entaug.MentionReplacement(p=1.0, seed=13).fit(gold).augment(gold)
    >>> [" ".join(sentence.tokens) for sentence in new]
    ['Bo left Oslo', 'Ada likes Rome']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from entaug._version import __version__

if TYPE_CHECKING:
    from entaug.augmenters.backtranslation import Backtranslation
    from entaug.augmenters.base import Augmenter
    from entaug.augmenters.cassi.method import CASSI
    from entaug.augmenters.generative.aclm import ACLM
    from entaug.augmenters.generative.daga import DAGA, MulDA
    from entaug.augmenters.generative.entda import EnTDA
    from entaug.augmenters.generative.melm import MaskedEntityLM
    from entaug.augmenters.masked_lm import MaskedLMReplacement
    from entaug.augmenters.online import OnlineDataset
    from entaug.augmenters.replacement import (
        LabelWiseTokenReplacement,
        MentionReplacement,
        SynonymReplacement,
    )
    from entaug.augmenters.shuffling import ShuffleWithinSegments
    from entaug.augmenters.syntax.constituents import ConstituencyReplacement
    from entaug.augmenters.syntax.dependency_fragments import Crop, Rotate
    from entaug.backends.protocols import RoundTrip
    from entaug.data import Corpus, CorpusStream, Edit, Mention, Sentence
    from entaug.errors import EntaugError
    from entaug.formats import read, stream, write
    from entaug.formats.huggingface.format import from_datasets, to_datasets
    from entaug.quality import Quality, measure_quality
    from entaug.registry import METHODS, create, method
    from entaug.report.comparison import read_runs, report_on
    from entaug.report.html import report_page
    from entaug.scoring.bertscore import pairwise_bertscore
    from entaug.scoring.likelihood import best_by_likelihood, pseudo_log_likelihood
    from entaug.scoring.span_f1 import Counts, Difference, Scores, paired_bootstrap, score
    from entaug.workflows.augment import augment_file, check_file, convert_file
    from entaug.workflows.evaluate import evaluate_files, subset_file
    from entaug.workflows.filter import filter_file
    from entaug.workflows.pairs import Pair, read_made

# Public names and where they are: loaded when first used, so that `import entaug` stays quick.
_WHERE = {
    "ACLM": "entaug.augmenters.generative.aclm",
    "Augmenter": "entaug.augmenters.base",
    "Backtranslation": "entaug.augmenters.backtranslation",
    "CASSI": "entaug.augmenters.cassi.method",
    "ConstituencyReplacement": "entaug.augmenters.syntax.constituents",
    "Corpus": "entaug.data",
    "CorpusStream": "entaug.data",
    "Counts": "entaug.scoring.span_f1",
    "Crop": "entaug.augmenters.syntax.dependency_fragments",
    "DAGA": "entaug.augmenters.generative.daga",
    "Difference": "entaug.scoring.span_f1",
    "Edit": "entaug.data",
    "EnTDA": "entaug.augmenters.generative.entda",
    "EntaugError": "entaug.errors",
    "LabelWiseTokenReplacement": "entaug.augmenters.replacement",
    "METHODS": "entaug.registry",
    "MaskedEntityLM": "entaug.augmenters.generative.melm",
    "MaskedLMReplacement": "entaug.augmenters.masked_lm",
    "Mention": "entaug.data",
    "MentionReplacement": "entaug.augmenters.replacement",
    "MulDA": "entaug.augmenters.generative.daga",
    "OnlineDataset": "entaug.augmenters.online",
    "Rotate": "entaug.augmenters.syntax.dependency_fragments",
    "Pair": "entaug.workflows.pairs",
    "Quality": "entaug.quality",
    "RoundTrip": "entaug.backends.protocols",
    "Scores": "entaug.scoring.span_f1",
    "Sentence": "entaug.data",
    "ShuffleWithinSegments": "entaug.augmenters.shuffling",
    "SynonymReplacement": "entaug.augmenters.replacement",
    "augment_file": "entaug.workflows.augment",
    "best_by_likelihood": "entaug.scoring.likelihood",
    "check_file": "entaug.workflows.augment",
    "convert_file": "entaug.workflows.augment",
    "create": "entaug.registry",
    "evaluate_files": "entaug.workflows.evaluate",
    "filter_file": "entaug.workflows.filter",
    "from_datasets": "entaug.formats.huggingface.format",
    "measure_quality": "entaug.quality",
    "method": "entaug.registry",
    "paired_bootstrap": "entaug.scoring.span_f1",
    "pairwise_bertscore": "entaug.scoring.bertscore",
    "pseudo_log_likelihood": "entaug.scoring.likelihood",
    "read": "entaug.formats",
    "read_made": "entaug.workflows.pairs",
    "read_runs": "entaug.report.comparison",
    "report_on": "entaug.report.comparison",
    "report_page": "entaug.report.html",
    "score": "entaug.scoring.span_f1",
    "stream": "entaug.formats",
    "subset_file": "entaug.workflows.evaluate",
    "to_datasets": "entaug.formats.huggingface.format",
    "write": "entaug.formats",
}

__all__ = [
    "ACLM",
    "CASSI",
    "DAGA",
    "METHODS",
    "Augmenter",
    "Backtranslation",
    "ConstituencyReplacement",
    "Corpus",
    "CorpusStream",
    "Counts",
    "Crop",
    "Difference",
    "Edit",
    "EnTDA",
    "EntaugError",
    "LabelWiseTokenReplacement",
    "MaskedEntityLM",
    "MaskedLMReplacement",
    "Mention",
    "MentionReplacement",
    "MulDA",
    "OnlineDataset",
    "Pair",
    "Quality",
    "Rotate",
    "RoundTrip",
    "Scores",
    "Sentence",
    "ShuffleWithinSegments",
    "SynonymReplacement",
    "__version__",
    "augment_file",
    "best_by_likelihood",
    "check_file",
    "convert_file",
    "create",
    "evaluate_files",
    "filter_file",
    "from_datasets",
    "measure_quality",
    "method",
    "paired_bootstrap",
    "pairwise_bertscore",
    "pseudo_log_likelihood",
    "read",
    "read_made",
    "read_runs",
    "report_on",
    "report_page",
    "score",
    "stream",
    "subset_file",
    "to_datasets",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'entaug' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
