"""``entaug export``: give a trained tagger the form of another library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from entaug.commands.command import Command, FileSummary
from entaug.commands.options import COMPUTING, JSON
from entaug.config.params import check_arguments
from entaug.core.languages import LanguageProfile
from entaug.files.atomic import atomic_folder, check_new_folder
from entaug.formats import read
from entaug.formats.unlabelled import running_text_language
from entaug.report.cards import AutoResult, TrainingData, data_card, model_card
from entaug.taggers.base import load_tagger, read_config


@dataclass(kw_only=True)
class ExportSummary(FileSummary):
    """Result of `export`."""

    labels: list[str] = field(default_factory=list)

    def count_lines(self) -> Iterator[str]:
        yield f"labels: {', '.join(self.labels)}"


def export(
    input: str | Path,
    output: str | Path,
    *,
    to: Literal["huggingface", "onnx", "spacy"] = "huggingface",
    language: str | None = None,
    train: str | Path | None = None,
    license: str | None = None,
) -> ExportSummary:
    """Give a trained tagger the form of another library, with cards of the model and of its data.

    Exported are ``linear`` taggers, ``bilstm-crf`` taggers without LSTM (``hidden=0``), and to spaCy all taggers.

    Args:
        input: the folder of a trained tagger, or the folder that `entaug.auto` wrote.
        output: a new or empty folder.
        to: ``"huggingface"``: a token classifier of transformers, for ``pipeline("token-classification")``;
            ``"onnx"``: a model for ONNX Runtime, in fp32 and in int8; ``"spacy"``: a pipeline with the tagger as a
            component, which needs entaug where it is loaded.
        language: the code of the language, for the card and the pipeline of spaCy; None for that of the training
            sentences or, without these, English.
        train: the training sentences, for the counts of the card; those of a result of `entaug.auto` are known.
        license: the licence of the model, for the card.

    Returns:
        A summary with the labels.

    Raises:
        ParameterError: the other library has no counterpart of the tagger.
        InputError: the folder holds no tagger.
        OutputError: the output exists or cannot be written.

    Example:
        >>> export("no-tagger", "model")
        Traceback (most recent call last):
        ...
        entaug.errors.InputError: no-tagger: no such folder; check the path
    """
    check_arguments(export, {"to": to})
    folder, output = Path(input), Path(output)
    auto = AutoResult.read(folder)
    if auto is not None:
        folder, train = folder / "tagger", train or auto.train
    check_new_folder(output)
    tagger = load_tagger(folder)
    gold = [] if train is None else list(read(train))
    data = None if train is None else TrainingData.of(gold)
    notes = []
    if language is None and not gold:
        notes.append("the language is taken to be English: name another (`language`), or the training file (`train`)")
    if language is None:  # the pipeline needs one that spaCy has the rules of
        found = running_text_language(gold) if to == "spacy" else LanguageProfile(gold).language
        language = found or "en"
    from entaug.taggers.export import EXPORTS

    with atomic_folder(output) as new:  # the cards first, because a sum of all files is stored with an ONNX model
        card = model_card(read_config(folder), to, language, data=data, auto=auto, license=license)
        (new / "README.md").write_text(card, encoding="utf-8")
        if data is not None:
            (new / "DATA.md").write_text(data_card(data, language, auto=auto, license=license), encoding="utf-8")
        EXPORTS[to](tagger, new, **({"language": language} if to == "spacy" else {}))
    summary = ExportSummary(input=str(input), output=str(output), to_format=to)
    summary.labels = list(getattr(tagger, "labels_", ()))
    return summary.finish(notes=notes)


COMMAND = Command(export, {}, (JSON, COMPUTING))
