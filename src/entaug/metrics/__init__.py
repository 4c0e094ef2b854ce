"""Scores of predictions (span F1, significance) and of sentences (likelihood, similarity, labels that look wrong).

Example:
    >>> from entaug.metrics import score
    >>> from entaug import Mention, Sentence
    >>> gold = Sentence(["Ada", "left", "Rome"], [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])])
    >>> score([gold], [Sentence(gold.tokens, gold.mentions[:1])]).micro.recall
    0.5
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
