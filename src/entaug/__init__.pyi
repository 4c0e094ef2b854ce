# The public names and where they are; `entaug.__init__` imports each on first use.

from ._version import __version__
from .backends.protocols import RoundTrip
from .commands.work.check import check_file
from .commands.work.convert import convert_file
from .commands.work.evaluate import evaluate_files
from .commands.work.filter import filter_file
from .commands.work.mentions import mentions_file
from .commands.work.predict import predict_file
from .commands.work.ratings import merge_ratings, write_rating_page
from .commands.work.relabel import relabel_file
from .commands.work.report import write_html_report
from .commands.work.subset import subset_file
from .commands.work.suggest import suggest_file
from .core.corpus import Corpus, CorpusStream
from .core.data import Edit, Mention, Sentence
from .errors import EntaugError
from .formats import read, stream, write
from .formats.augmented import AugmentedPair, pair_with_sources, read_augmented
from .formats.huggingface.datasets import from_datasets, to_datasets
from .formats.unlabelled_text import read_unlabelled
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
from .methods.fitted import load_augmenter, save_augmenter
from .methods.gal import GAL
from .methods.masked_lm import MaskedLMReplacement
from .methods.melm import MaskedEntityLM
from .methods.mention_replacement import MentionReplacement
from .methods.mulda import MulDA
from .methods.online import OnlineDataset
from .methods.rewriting import Rewriting
from .methods.selftraining import SelfTraining
from .methods.shard_files import Shard
from .methods.shards import augment_shard, merge_shards
from .methods.shuffling import ShuffleWithinSegments
from .methods.synonyms import SynonymReplacement
from .methods.token_replacement import LabelWiseTokenReplacement
from .metrics.agreement import krippendorff_alpha
from .metrics.bertscore import pairwise_bertscore
from .metrics.likelihood import best_by_likelihood, pseudo_log_likelihood
from .metrics.quality import Quality, measure_quality
from .metrics.significance import Difference, paired_bootstrap
from .metrics.span_f1 import MatchCounts, Scores, score
from .report.attention import draw_attention_map
from .report.markdown import markdown_report
from .study.auto.runner import auto
from .study.records import read_run_records
from .teacher import Relabeller
from .teacher.confidence import filter_by_confidence

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
