"""entaug: data augmentation for named-entity recognition, flat, nested and discontinuous.

Example:
    >>> import entaug
    >>> from entaug import Mention, Sentence
    >>> gold = [
    ...     Sentence(["Ada", "left", "Rome"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])]),
    ...     Sentence(["Bo", "likes", "Oslo"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])]),
    ... ]
    >>> new = entaug.methods.MentionReplacement(p=1.0, seed=13).fit(gold).augment(gold)
    >>> [" ".join(sentence.tokens) for sentence in new]
    ['Bo left Oslo', 'Ada likes Rome']
"""

import lazy_loader

from entaug._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
