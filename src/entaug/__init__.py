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
    from entaug.augmenters.aclm import ACLM
    from entaug.augmenters.backtranslation import Backtranslation
    from entaug.augmenters.base import Augmenter
    from entaug.augmenters.cassi import CASSI
    from entaug.augmenters.constituency import ConstituencyReplacement
    from entaug.augmenters.daga import DAGA, MulDA
    from entaug.augmenters.entda import EnTDA
    from entaug.augmenters.fragments import Crop, Rotate
    from entaug.augmenters.masked_lm import MaskedLMReplacement
    from entaug.augmenters.melm import MaskedEntityLM
    from entaug.augmenters.online import OnlineDataset
    from entaug.augmenters.replacement import (
        LabelWiseTokenReplacement,
        MentionReplacement,
        SynonymReplacement,
    )
    from entaug.augmenters.shuffling import ShuffleWithinSegments
    from entaug.backends.protocols import RoundTrip
    from entaug.data import Corpus, CorpusStream, Edit, Mention, Sentence
    from entaug.errors import EntaugError
    from entaug.evaluation import evaluate_files, subset_file
    from entaug.filtering import filter_file
    from entaug.formats import read, stream, write
    from entaug.formats.hf import from_datasets, to_datasets
    from entaug.jobs import augment_file, check_file, convert_file
    from entaug.likelihood import best_by_likelihood, pseudo_log_likelihood
    from entaug.page import report_page
    from entaug.pairs import Pair, read_made
    from entaug.quality import Quality, measure_quality
    from entaug.registry import METHODS, create, method
    from entaug.report import read_runs, report_on
    from entaug.scoring import Counts, Difference, Scores, paired_bootstrap, score
    from entaug.similarity import pairwise_bertscore

# Public names and where they are: loaded when first used, so that `import entaug` stays quick.
_WHERE = {
    "ACLM": "entaug.augmenters.aclm",
    "Augmenter": "entaug.augmenters.base",
    "Backtranslation": "entaug.augmenters.backtranslation",
    "CASSI": "entaug.augmenters.cassi",
    "ConstituencyReplacement": "entaug.augmenters.constituency",
    "Corpus": "entaug.data",
    "CorpusStream": "entaug.data",
    "Counts": "entaug.scoring",
    "Crop": "entaug.augmenters.fragments",
    "DAGA": "entaug.augmenters.daga",
    "Difference": "entaug.scoring",
    "Edit": "entaug.data",
    "EnTDA": "entaug.augmenters.entda",
    "EntaugError": "entaug.errors",
    "LabelWiseTokenReplacement": "entaug.augmenters.replacement",
    "METHODS": "entaug.registry",
    "MaskedEntityLM": "entaug.augmenters.melm",
    "MaskedLMReplacement": "entaug.augmenters.masked_lm",
    "Mention": "entaug.data",
    "MentionReplacement": "entaug.augmenters.replacement",
    "MulDA": "entaug.augmenters.daga",
    "OnlineDataset": "entaug.augmenters.online",
    "Rotate": "entaug.augmenters.fragments",
    "Pair": "entaug.pairs",
    "Quality": "entaug.quality",
    "RoundTrip": "entaug.backends.protocols",
    "Scores": "entaug.scoring",
    "Sentence": "entaug.data",
    "ShuffleWithinSegments": "entaug.augmenters.shuffling",
    "SynonymReplacement": "entaug.augmenters.replacement",
    "augment_file": "entaug.jobs",
    "best_by_likelihood": "entaug.likelihood",
    "check_file": "entaug.jobs",
    "convert_file": "entaug.jobs",
    "create": "entaug.registry",
    "evaluate_files": "entaug.evaluation",
    "filter_file": "entaug.filtering",
    "from_datasets": "entaug.formats.hf",
    "measure_quality": "entaug.quality",
    "method": "entaug.registry",
    "paired_bootstrap": "entaug.scoring",
    "pairwise_bertscore": "entaug.similarity",
    "pseudo_log_likelihood": "entaug.likelihood",
    "read": "entaug.formats",
    "read_made": "entaug.pairs",
    "read_runs": "entaug.report",
    "report_on": "entaug.report",
    "report_page": "entaug.page",
    "score": "entaug.scoring",
    "stream": "entaug.formats",
    "subset_file": "entaug.evaluation",
    "to_datasets": "entaug.formats.hf",
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
