# The public names and where they are; `entaug.__init__` imports each on first use. All others are in the submodules.

from . import formats, methods, metrics, report, study, teacher
from ._version import __version__
from .commands.audit import audit
from .commands.check import check
from .commands.convert import convert
from .commands.evaluate import evaluate
from .commands.example import example
from .commands.export import export
from .commands.filter import filter  # noqa: A004
from .commands.mentions import mentions
from .commands.predict import predict
from .commands.quality import quality
from .commands.rate import rate
from .commands.ratings import ratings
from .commands.relabel import relabel
from .commands.report import write_report
from .commands.subset import subset
from .commands.suggest import suggest
from .commands.train import train
from .core.corpus import Corpus
from .core.data import Sentence
from .core.edits import Edit
from .core.mentions import Mention
from .errors import EntaugError
from .formats.exchange import from_pandas, from_spacy, to_pandas, to_spacy
from .formats.files import read, stream, write
from .formats.parquet import from_datasets, to_datasets
from .formats.unlabelled import read_unlabelled
from .methods.augment import augment_file
from .methods.combined import augment
from .methods.names import create_augmenter
from .methods.online import OnlineDataset
from .metrics.span_f1 import score
from .study.advise import advise
from .study.auto import auto
from .testing import check_plugin

__all__ = [
    "Corpus",
    "Edit",
    "EntaugError",
    "Mention",
    "OnlineDataset",
    "Sentence",
    "__version__",
    "advise",
    "audit",
    "augment",
    "augment_file",
    "auto",
    "check",
    "check_plugin",
    "convert",
    "create_augmenter",
    "evaluate",
    "example",
    "export",
    "filter",
    "formats",
    "from_datasets",
    "from_pandas",
    "from_spacy",
    "mentions",
    "methods",
    "metrics",
    "predict",
    "quality",
    "rate",
    "ratings",
    "read",
    "read_unlabelled",
    "relabel",
    "report",
    "score",
    "stream",
    "study",
    "subset",
    "suggest",
    "teacher",
    "to_datasets",
    "to_pandas",
    "to_spacy",
    "train",
    "write",
    "write_report",
]
