# The public names and where they are; `entaug.__init__` imports each on first use.

from ._version import __version__
from .augmented import AugmentedPair, pair_with_sources, read_augmented
from .augmenters import METHODS, create_augmenter
from .augmenters.backtranslation import Backtranslation
from .augmenters.base import Augmenter
from .augmenters.cassi.method import CASSI
from .augmenters.combined import CombinedAugmenter, augment, parse_methods
from .augmenters.generative.aclm import ACLM
from .augmenters.generative.daga import DAGA, MulDA
from .augmenters.generative.entda import EnTDA
from .augmenters.generative.gal import GAL
from .augmenters.generative.melm import MaskedEntityLM
from .augmenters.generative.rewriting import Rewriting
from .augmenters.generative.templates import AttentionMap
from .augmenters.masked_lm import MaskedLMReplacement
from .augmenters.online import OnlineDataset
from .augmenters.replacement import LabelWiseTokenReplacement, MentionReplacement
from .augmenters.selftraining import SelfTraining
from .augmenters.shuffling import ShuffleWithinSegments
from .augmenters.synonyms import SynonymReplacement
from .augmenters.syntax.constituents import ConstituencyReplacement
from .augmenters.syntax.dependency_fragments import Crop, Rotate
from .backends.protocols import RoundTrip
from .confidence import filter_by_confidence
from .corpus import Corpus, CorpusStream
from .data import Edit, Mention, Sentence
from .errors import EntaugError
from .experiment.records import read_run_records
from .formats import read, stream, write
from .formats.huggingface.datasets import from_datasets, to_datasets
from .quality import Quality, measure_quality
from .recipes.runner import auto
from .relabelling import Relabeller
from .report.attention import draw_attention_map
from .report.markdown import markdown_report
from .scoring.agreement import krippendorff_alpha
from .scoring.bertscore import pairwise_bertscore
from .scoring.likelihood import best_by_likelihood, pseudo_log_likelihood
from .scoring.significance import Difference, paired_bootstrap
from .scoring.span_f1 import MatchCounts, Scores, score
from .workflows.augment import augment_file
from .workflows.check import check_file
from .workflows.convert import convert_file
from .workflows.evaluate import evaluate_files
from .workflows.filter import filter_file
from .workflows.fitted import load_augmenter, save_augmenter
from .workflows.mentions import mentions_file
from .workflows.predict import predict_file
from .workflows.ratings import merge_ratings, write_rating_page
from .workflows.relabel import relabel_file
from .workflows.report import write_html_report
from .workflows.shard_files import Shard
from .workflows.shards import augment_shard, merge_shards
from .workflows.subset import subset_file
from .workflows.suggest import suggest_file
from .workflows.unlabelled import read_unlabelled

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
    "LabelWiseTokenReplacement",
    "MaskedEntityLM",
    "MaskedLMReplacement",
    "MatchCounts",
    "Mention",
    "MentionReplacement",
    "MulDA",
    "OnlineDataset",
    "Quality",
    "Relabeller",
    "Rewriting",
    "Rotate",
    "RoundTrip",
    "Scores",
    "SelfTraining",
    "Sentence",
    "Shard",
    "ShuffleWithinSegments",
    "SynonymReplacement",
    "__version__",
    "augment",
    "augment_file",
    "augment_shard",
    "auto",
    "best_by_likelihood",
    "check_file",
    "convert_file",
    "create_augmenter",
    "draw_attention_map",
    "evaluate_files",
    "filter_by_confidence",
    "filter_file",
    "from_datasets",
    "krippendorff_alpha",
    "load_augmenter",
    "markdown_report",
    "measure_quality",
    "mentions_file",
    "merge_ratings",
    "merge_shards",
    "pair_with_sources",
    "paired_bootstrap",
    "pairwise_bertscore",
    "parse_methods",
    "predict_file",
    "pseudo_log_likelihood",
    "read",
    "read_augmented",
    "read_run_records",
    "read_unlabelled",
    "relabel_file",
    "save_augmenter",
    "score",
    "stream",
    "subset_file",
    "suggest_file",
    "to_datasets",
    "write",
    "write_html_report",
    "write_rating_page",
]
