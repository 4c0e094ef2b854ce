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
    from entaug.augmenters.masked_lm import MaskedLMReplacement
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
    from entaug.formats import read, stream, write
    from entaug.jobs import augment_file, check_file, convert_file
    from entaug.likelihood import best_by_likelihood, pseudo_log_likelihood
    from entaug.registry import METHODS, create, method
    from entaug.similarity import pairwise_bertscore

# Public names and where they are: loaded when first used, so that `import entaug` stays quick.
_WHERE = {
    "Augmenter": "entaug.augmenters.base",
    "Backtranslation": "entaug.augmenters.backtranslation",
    "Corpus": "entaug.data",
    "CorpusStream": "entaug.data",
    "Edit": "entaug.data",
    "EntaugError": "entaug.errors",
    "LabelWiseTokenReplacement": "entaug.augmenters.replacement",
    "METHODS": "entaug.registry",
    "MaskedLMReplacement": "entaug.augmenters.masked_lm",
    "Mention": "entaug.data",
    "MentionReplacement": "entaug.augmenters.replacement",
    "OnlineDataset": "entaug.augmenters.online",
    "RoundTrip": "entaug.backends.protocols",
    "Sentence": "entaug.data",
    "ShuffleWithinSegments": "entaug.augmenters.shuffling",
    "SynonymReplacement": "entaug.augmenters.replacement",
    "augment_file": "entaug.jobs",
    "best_by_likelihood": "entaug.likelihood",
    "check_file": "entaug.jobs",
    "convert_file": "entaug.jobs",
    "create": "entaug.registry",
    "method": "entaug.registry",
    "pairwise_bertscore": "entaug.similarity",
    "pseudo_log_likelihood": "entaug.likelihood",
    "read": "entaug.formats",
    "stream": "entaug.formats",
    "write": "entaug.formats",
}

__all__ = [
    "METHODS",
    "Augmenter",
    "Backtranslation",
    "Corpus",
    "CorpusStream",
    "Edit",
    "EntaugError",
    "LabelWiseTokenReplacement",
    "MaskedLMReplacement",
    "Mention",
    "MentionReplacement",
    "OnlineDataset",
    "RoundTrip",
    "Sentence",
    "ShuffleWithinSegments",
    "SynonymReplacement",
    "__version__",
    "augment_file",
    "best_by_likelihood",
    "check_file",
    "convert_file",
    "create",
    "method",
    "pairwise_bertscore",
    "pseudo_log_likelihood",
    "read",
    "stream",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'entaug' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
