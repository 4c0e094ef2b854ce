"""The cards of an exported tagger: what it is, what it was trained on, what it gained, and how to repeat that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import orjson

from entaug.core.data import Sentence
from entaug.methods.statistics import CorpusStatistics

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
        try:
            summary = orjson.loads((folder / "summary.json").read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return None
        return cls(summary, folder / "train.jsonl") if isinstance(summary, dict) and "recipe" in summary else None

    def lines(self) -> list[str]:
        """Return the results as Markdown, and how to repeat them."""
        results = [str(line).strip() for line in self.summary["text"] if not str(line).startswith("next:")]
        return [*results, "", "To repeat it: `entaug auto plan.toml -o NEW-FOLDER`, with the plan of the result."]


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

    def lines(self) -> list[str]:
        """Return the counts as Markdown."""
        counts, new = self.counts, self.methods.total()
        lines = [
            f"- {counts.sentences:,} sentences with {counts.tokens:,} tokens, of which {new:,} were made from others",
            *(f"- {number:,} by the method `{method}`" for method, number in self.methods.most_common()),
            f"- {counts.nested:,} nested and {counts.discontinuous:,} discontinuous mentions",
            "",
            "| label | mentions |",
            "| --- | ---: |",
        ]
        return [*lines, *(f"| {label} | {number:,} |" for label, number in counts.mentions.most_common())]


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
    history = config.get("history") or {}
    library = {"huggingface": "transformers"}.get(form, form)
    front = [
        "---",
        f"language: {language}",
        *([f"license: {license}"] if license else []),
        f"library_name: {library}",
        "pipeline_tag: token-classification",
        "tags: [named-entity-recognition, entaug]",
        "---",
    ]
    kind = f"A `{config['tagger']}` tagger of entaug {config['version']} with the encoder {config['encoder']}"
    lines = [
        *front,
        "",
        "# Tagger of named entities",
        "",
        f"Finds {', '.join(config['labels'])}. {kind}, trained for {history.get('steps', 0):,} steps.",
        "",
        "```python",
        _USE[form].format(folder="FOLDER"),
        "```",
        "",
        "## Results",
        "",
        *(auto.lines() if auto else ["Not known: the tagger was exported without a result of `entaug auto`."]),
        "",
        "## Training data",
        "",
        *(data.lines() if data else ["Not known: name the file with `entaug export --train FILE`."]),
        "",
        "## Licence",
        "",
        license or "Not stated. It depends on those of the encoder and of the training sentences.",
    ]
    return "\n".join(lines) + "\n"


def data_card(data: TrainingData, language: str, *, auto: AutoResult | None, license: str | None) -> str:
    """Write the card of the training sentences."""
    lines = [
        "---",
        f"language: {language}",
        *([f"license: {license}"] if license else []),
        "task_categories: [token-classification]",
        "---",
        "",
        "# Training sentences with named entities",
        "",
        *data.lines(),
        "",
        "## What they bring",
        "",
        *(auto.lines() if auto else ["Not measured: `entaug auto` does."]),
    ]
    return "\n".join(lines) + "\n"
