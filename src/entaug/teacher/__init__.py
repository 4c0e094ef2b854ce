"""Where a tagger labels sentences, or checks the labels they have, and how sure it is of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
