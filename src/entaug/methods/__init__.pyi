# The public names of `entaug.methods` and where they are; `__init__` imports each on first use.

from .aclm import ACLM, AttentionMap
from .backtranslation import Backtranslation
from .base import Augmenter
from .cassi import CASSI
from .combined import CombinedAugmenter, parse_methods
from .constituents import ConstituencyReplacement
from .daga import DAGA
from .dependency_fragments import Crop, Rotate
from .entda import EnTDA
from .gal import GAL
from .masked_lm import MaskedLMReplacement
from .melm import MaskedEntityLM
from .mention_replacement import MentionReplacement
from .mulda import MulDA
from .names import METHODS, create_augmenter
from .parts import Part, augment_part, merge_parts
from .rewriting import Rewriting
from .selftraining import SelfTraining
from .shuffling import ShuffleWithinSegments
from .synonyms import SynonymReplacement
from .token_replacement import LabelWiseTokenReplacement

__all__ = [
    "ACLM",
    "CASSI",
    "DAGA",
    "GAL",
    "METHODS",
    "AttentionMap",
    "Augmenter",
    "Backtranslation",
    "CombinedAugmenter",
    "ConstituencyReplacement",
    "Crop",
    "EnTDA",
    "LabelWiseTokenReplacement",
    "MaskedEntityLM",
    "MaskedLMReplacement",
    "MentionReplacement",
    "MulDA",
    "Part",
    "Rewriting",
    "Rotate",
    "SelfTraining",
    "ShuffleWithinSegments",
    "SynonymReplacement",
    "augment_part",
    "create_augmenter",
    "merge_parts",
    "parse_methods",
]
