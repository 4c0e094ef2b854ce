"""Public names and where they are; `entaug.__init__` imports each on first use."""

from ._version import __version__ as __version__
from .augmented import (
    AugmentedPair as AugmentedPair,
)
from .augmented import (
    read_augmented as read_augmented,
)
from .augmenters import (
    METHODS as METHODS,
)
from .augmenters import (
    create_augmenter as create_augmenter,
)
from .augmenters.backtranslation import (
    Backtranslation as Backtranslation,
)
from .augmenters.base import (
    Augmenter as Augmenter,
)
from .augmenters.cassi.method import (
    CASSI as CASSI,
)
from .augmenters.generative.aclm import (
    ACLM as ACLM,
)
from .augmenters.generative.daga import (
    DAGA as DAGA,
)
from .augmenters.generative.daga import (
    MulDA as MulDA,
)
from .augmenters.generative.entda import (
    EnTDA as EnTDA,
)
from .augmenters.generative.melm import (
    MaskedEntityLM as MaskedEntityLM,
)
from .augmenters.masked_lm import (
    MaskedLMReplacement as MaskedLMReplacement,
)
from .augmenters.online import (
    OnlineDataset as OnlineDataset,
)
from .augmenters.replacement import (
    LabelWiseTokenReplacement as LabelWiseTokenReplacement,
)
from .augmenters.replacement import (
    MentionReplacement as MentionReplacement,
)
from .augmenters.replacement import (
    SynonymReplacement as SynonymReplacement,
)
from .augmenters.shuffling import (
    ShuffleWithinSegments as ShuffleWithinSegments,
)
from .augmenters.syntax.constituents import (
    ConstituencyReplacement as ConstituencyReplacement,
)
from .augmenters.syntax.dependency_fragments import (
    Crop as Crop,
)
from .augmenters.syntax.dependency_fragments import (
    Rotate as Rotate,
)
from .backends.protocols import (
    RoundTrip as RoundTrip,
)
from .corpus import (
    Corpus as Corpus,
)
from .corpus import (
    CorpusStream as CorpusStream,
)
from .data import (
    Edit as Edit,
)
from .data import (
    Mention as Mention,
)
from .data import (
    Sentence as Sentence,
)
from .errors import (
    EntaugError as EntaugError,
)
from .formats import (
    read as read,
)
from .formats import (
    stream as stream,
)
from .formats import (
    write as write,
)
from .formats.huggingface.format import (
    from_datasets as from_datasets,
)
from .formats.huggingface.format import (
    to_datasets as to_datasets,
)
from .quality import (
    Quality as Quality,
)
from .quality import (
    measure_quality as measure_quality,
)
from .report.comparison import (
    markdown_report as markdown_report,
)
from .report.comparison import (
    read_run_records as read_run_records,
)
from .report.html import (
    write_html_report as write_html_report,
)
from .scoring.bertscore import (
    pairwise_bertscore as pairwise_bertscore,
)
from .scoring.likelihood import (
    best_by_likelihood as best_by_likelihood,
)
from .scoring.likelihood import (
    pseudo_log_likelihood as pseudo_log_likelihood,
)
from .scoring.significance import (
    Difference as Difference,
)
from .scoring.significance import (
    paired_bootstrap as paired_bootstrap,
)
from .scoring.span_f1 import (
    MatchCounts as MatchCounts,
)
from .scoring.span_f1 import (
    Scores as Scores,
)
from .scoring.span_f1 import (
    score as score,
)
from .workflows.augment import (
    augment_file as augment_file,
)
from .workflows.augment import (
    check_file as check_file,
)
from .workflows.augment import (
    convert_file as convert_file,
)
from .workflows.evaluate import (
    evaluate_files as evaluate_files,
)
from .workflows.evaluate import (
    subset_file as subset_file,
)
from .workflows.filter import (
    filter_file as filter_file,
)

__all__ = [
    "ACLM",
    "CASSI",
    "DAGA",
    "METHODS",
    "AugmentedPair",
    "Augmenter",
    "Backtranslation",
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
    "Rotate",
    "RoundTrip",
    "Scores",
    "Sentence",
    "ShuffleWithinSegments",
    "SynonymReplacement",
    "__version__",
    "augment_file",
    "best_by_likelihood",
    "check_file",
    "convert_file",
    "create_augmenter",
    "evaluate_files",
    "filter_file",
    "from_datasets",
    "markdown_report",
    "measure_quality",
    "paired_bootstrap",
    "pairwise_bertscore",
    "pseudo_log_likelihood",
    "read",
    "read_augmented",
    "read_run_records",
    "score",
    "stream",
    "subset_file",
    "to_datasets",
    "write",
    "write_html_report",
]
