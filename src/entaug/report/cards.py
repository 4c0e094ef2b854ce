"""The cards of an exported tagger: what it is, what it was trained on, what it gained, and how to repeat that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from entaug.core.data import Sentence
from entaug.files.json_text import read_object
from entaug.methods.statistics import CorpusStatistics
from entaug.metrics.tables import Block, Heading, Table, as_markdown

_USE = {
    "huggingface": """from transformers import pipeline

ner = pipeline("token-classification", "{folder}", aggregation_strategy="first")
ner("Ada Lovelace lived in London.")""",
    "onnx": """from entaug.taggers.base import load_tagger  # int8; model.onnx is the same model in fp32

tagger = load_tagger("{folder}")""",
    "spacy": """import spacy

nlp = spacy.load("{folder}")  # entaug must be installed
nlp("Ada Lovelace lived in London.").ents""",
}


@dataclass(frozen=True)
class AutoResult:
    """The summary and the training sentences of a folder that `entaug.auto` wrote."""

    summary: Mapping[str, Any]
    train: Path

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Read the summary of a folder; None if it is not one that `entaug.auto` wrote."""
        summary = read_object(folder / "summary.json")
        return cls(summary, folder / "train.jsonl") if summary and "recipe" in summary else None

    def blocks(self) -> list[Block]:
        """Return the results, and how to repeat them."""
        results = [str(line).strip() for line in self.summary["text"] if not str(line).startswith("next:")]
        repeated = "To repeat it: `entaug auto plan.toml -o NEW-FOLDER`, with the plan of the result."
        return ["\n".join(results), repeated]


@dataclass
class TrainingData:
    """Counts of training sentences, and how many of them each method made."""

    counts: CorpusStatistics = field(default_factory=CorpusStatistics)
    methods: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> Self:
        """Count sentences."""
        methods = Counter(s.provenance.method for s in sentences if s.provenance is not None)
        return cls(CorpusStatistics.of(sentences), methods)

    def blocks(self) -> list[Block]:
        """Return the counts."""
        counts, new = self.counts, self.methods.total()
        facts = [
            f"{counts.sentences:,} sentences with {counts.tokens:,} tokens, of which {new:,} were made from others",
            *(f"{number:,} by the method `{method}`" for method, number in self.methods.most_common()),
            f"{counts.nested:,} nested and {counts.discontinuous:,} discontinuous mentions",
        ]
        rows = [[label, f"{number:,}"] for label, number in counts.mentions.most_common()]
        return [facts, Table(["label", "mentions"], rows)]


def model_card(
    config: Mapping[str, Any],
    form: str,
    language: str,
    *,
    data: TrainingData | None = None,
    auto: AutoResult | None = None,
    license: str | None = None,
) -> str:
    """Write the card of a tagger, whose front matter is that of the hub; what is not known is said to be so."""
    steps = (config.get("history") or {}).get("steps", 0)
    kind = f"A `{config['tagger']}` tagger of entaug {config['version']} with the encoder {config['encoder']}"
    library = {"huggingface": "transformers"}.get(form, form)
    further = ["pipeline_tag: token-classification", "tags: [named-entity-recognition, entaug]"]
    blocks: list[Block] = [
        _front_matter(language, license, f"library_name: {library}", *further),
        Heading("Tagger of named entities", 1),
        f"Finds {', '.join(config['labels'])}. {kind}, trained for {steps:,} steps.",
        f"```python\n{_USE[form].format(folder='FOLDER')}\n```",
        Heading("Results"),
        *(auto.blocks() if auto else ["Not known: the tagger was exported without a result of `entaug auto`."]),
        Heading("Training data"),
        *(data.blocks() if data else ["Not known: name the file with `entaug export --train FILE`."]),
        Heading("Licence"),
        license or "Not stated. It depends on those of the encoder and of the training sentences.",
    ]
    return as_markdown(blocks)


def data_card(data: TrainingData, language: str, *, auto: AutoResult | None, license: str | None) -> str:
    """Write the card of the training sentences."""
    blocks: list[Block] = [
        _front_matter(language, license, "task_categories: [token-classification]"),
        Heading("Training sentences with named entities", 1),
        *data.blocks(),
        Heading("What they bring"),
        *(auto.blocks() if auto else ["Not measured: `entaug auto` does."]),
    ]
    return as_markdown(blocks)


def _front_matter(language: str, license: str | None, *others: str) -> str:
    lines = [f"language: {language}", *([f"license: {license}"] if license else []), *others]
    return "\n".join(["---", *lines, "---"])
