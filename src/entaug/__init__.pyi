# The public names and where they are; `entaug.__init__` imports each on first use.

from ._version import __version__
from .backends.protocols import RoundTrip
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
from .core.corpus import Corpus, CorpusStream
from .core.data import Sentence
from .core.edits import Edit
from .core.mentions import Mention
from .errors import EntaugError
from .formats import read, stream, write
from .formats.augmented import AugmentedPair, pair_with_sources, read_augmented
from .formats.exchange import from_pandas, from_spacy, to_pandas, to_spacy
from .formats.parquet import from_datasets, to_datasets
from .formats.unlabelled import read_unlabelled
from .methods import METHODS, create_augmenter
from .methods.aclm import ACLM, AttentionMap
from .methods.augment import augment_file
from .methods.backtranslation import Backtranslation
from .methods.base import Augmenter
from .methods.cassi import CASSI
from .methods.combined import CombinedAugmenter, augment, parse_methods
from .methods.constituents import ConstituencyReplacement
from .methods.daga import DAGA
from .methods.dependency_fragments import Crop, Rotate
from .methods.entda import EnTDA
from .methods.gal import GAL
from .methods.masked_lm import MaskedLMReplacement
from .methods.melm import MaskedEntityLM
from .methods.mention_replacement import MentionReplacement
from .methods.mulda import MulDA
from .methods.online import OnlineDataset
from .methods.parts import Part, augment_part, merge_parts
from .methods.rewriting import Rewriting
from .methods.selftraining import SelfTraining
from .methods.shuffling import ShuffleWithinSegments
from .methods.synonyms import SynonymReplacement
from .methods.token_replacement import LabelWiseTokenReplacement
from .metrics.agreement import krippendorff_alpha
from .metrics.bertscore import pairwise_bertscore
from .metrics.consistency import Finding, find_label_errors
from .metrics.likelihood import best_by_likelihood, pseudo_log_likelihood
from .metrics.quality import Quality, measure_quality
from .metrics.significance import Difference, paired_bootstrap
from .metrics.span_f1 import MatchCounts, Scores, score
from .report.attention import draw_attention_map
from .report.markdown import markdown_report
from .study.advise import advise
from .study.auto import auto
from .study.records import read_run_records
from .teacher import Relabeller
from .teacher.audit import ask_teachers
from .teacher.label import filter_by_confidence

__all__ = [
    "ACLM",
    "CASSI",
    "DAGA",
    "GAL",
    "METHODS",
    "AttentionMap",
    "AugmentedPair",
    "Augmenter",
    "Backtranslation",
    "CombinedAugmenter",
    "ConstituencyReplacement",
    "Corpus",
    "CorpusStream",
    "Crop",
    "Difference",
    "Edit",
    "EnTDA",
    "EntaugError",
    "Finding",
    "LabelWiseTokenReplacement",
    "MaskedEntityLM",
    "MaskedLMReplacement",
    "MatchCounts",
    "Mention",
    "MentionReplacement",
    "MulDA",
    "OnlineDataset",
    "Part",
    "Quality",
    "Relabeller",
    "Rewriting",
    "Rotate",
    "RoundTrip",
    "Scores",
    "SelfTraining",
    "Sentence",
    "ShuffleWithinSegments",
    "SynonymReplacement",
    "__version__",
    "advise",
    "ask_teachers",
    "audit",
    "augment",
    "augment_file",
    "augment_part",
    "auto",
    "best_by_likelihood",
    "check",
    "convert",
    "create_augmenter",
    "draw_attention_map",
    "evaluate",
    "example",
    "export",
    "filter",
    "filter_by_confidence",
    "find_label_errors",
    "from_datasets",
    "from_pandas",
    "from_spacy",
    "krippendorff_alpha",
    "markdown_report",
    "measure_quality",
    "mentions",
    "merge_parts",
    "pair_with_sources",
    "paired_bootstrap",
    "pairwise_bertscore",
    "parse_methods",
    "predict",
    "pseudo_log_likelihood",
    "quality",
    "rate",
    "ratings",
    "read",
    "read_augmented",
    "read_run_records",
    "read_unlabelled",
    "relabel",
    "score",
    "stream",
    "subset",
    "suggest",
    "to_datasets",
    "to_pandas",
    "to_spacy",
    "train",
    "write",
    "write_report",
]
