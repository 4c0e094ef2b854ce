# The public names of `entaug.formats` and where they are; `__init__` imports each on first use.

from .augmented import AugmentedPair, pair_with_sources, read_augmented
from .exchange import as_corpus, from_pandas, from_spacy, to_pandas, to_spacy
from .files import FORMATS, read, stream, write
from .parquet import from_datasets, to_datasets
from .unlabelled import read_unlabelled

__all__ = [
    "FORMATS",
    "AugmentedPair",
    "as_corpus",
    "from_datasets",
    "from_pandas",
    "from_spacy",
    "pair_with_sources",
    "read",
    "read_augmented",
    "read_unlabelled",
    "stream",
    "to_datasets",
    "to_pandas",
    "to_spacy",
    "write",
]
