"""Augmentation methods: the names of `METHODS`, and the class of each.

Example:
    >>> from entaug.methods import MentionReplacement
    >>> MentionReplacement(p=0.5).copies
    1
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
