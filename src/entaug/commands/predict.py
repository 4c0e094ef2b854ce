"""``entaug predict``: label text with a trained tagger."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from entaug.backends.protocols import Tagger
from entaug.backends.resolve import is_alias
from entaug.commands.command import Command, FileSummary
from entaug.commands.evaluate import load_trained_tagger
from entaug.commands.options import COMPUTING, FORCE, JSON, WRITING
from entaug.commands.output import label_lines
from entaug.core.corpus import Corpus
from entaug.core.data import Sentence
from entaug.core.languages import language_name
from entaug.core.progress import Progress, no_progress
from entaug.core.spacing import is_unspaced_script
from entaug.errors import InputError, ParameterError
from entaug.files.streams import STDIN, as_path, read_beginning, rereadable_path
from entaug.formats import read
from entaug.formats.exchange import CorpusData, takes_data
from entaug.formats.file_job import FileJob, FileOptions
from entaug.formats.unlabelled import (
    Tokenizer,
    UnlabelledReading,
    corpus_tokenizer,
    read_unlabelled_file,
    running_text_language,
    with_distinct_ids,
)
from entaug.metrics.tables import quantity
from entaug.teacher.label import label_sentences
from entaug.teacher.relabel import require_soft_labels

_KNOW_LABELS = ("chat", "file", "joined", "lists")  # taggers whose labels are those of the user
_WINDOW = 256  # sentences that are held in memory; the first ones also show the language of the text


@dataclass(kw_only=True)
class PredictSummary(FileSummary):
    """Result of `predict`."""

    tagger: str
    sentences: int = 0
    tokens: int = 0
    mentions: Counter[str] = field(default_factory=Counter)
    confidence: float = 0.0

    def count_lines(self) -> Iterator[str]:
        sentences, tokens = quantity(self.sentences, "sentence"), quantity(self.tokens, "token")
        mentions = quantity(self.mentions.total(), "mention")
        yield f"{sentences}, {tokens}, {mentions}, mean confidence {self.confidence:.2f}"
        yield from label_lines(self.mentions)


@takes_data("train", "text", texts=["text"])
def predict(
    tagger: str | Path | Tagger,
    text: CorpusData,
    output: str | Path | None = None,
    *,
    train: CorpusData | None = None,
    probabilities: bool = False,
    language: str | None = None,
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> Any:
    r"""Write the sentences of a text with the mentions that a trained tagger predicts.

    For example: entaug predict result/tagger news.txt -o labelled.jsonl

    Every sentence is written, in the order of the text, with its id; sentences of one id, such as those of one text,
    are numbered: ``a``, ``a.2``. Labels and further fields of the text are dropped. The field ``confidence`` of a
    sentence is the geometric mean, over its words, of the probability of the likeliest tag. In Label Studio, the labels
    are predictions of tasks without annotations.

    Args:
        tagger: the folder of a trained tagger; a model of another library, see `entaug.evaluate`; or a trained
            tagger.
        text: a file or several: plain text (one sentence a line, or running text), a folder of it, one token a line,
            JSON lines with ``text`` or ``tokens``, or a file in any labelled format, whose labels are dropped. In
            Python, also sentences or dictionaries, such as ``[{"text": "Ada left Rome."}]``.
        output: the file to write, or ``"-"`` for standard output. In Python, None to return the sentences.
        train: the training file: running text is tokenised as it is, and the labels of a model of another library are
            mapped to its labels; None to tokenise by the rules of spaCy.
        probabilities: also write the probabilities of the tags, which JSON Lines and Parquet store.
        language: the language of running text; None for that of the training sentences or, without these, of the
            text, see `entaug.formats.unlabelled.running_text_language`.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.

    Returns:
        A summary with counts, or the sentences.

    Raises:
        InputError: there is no tagger in the folder, or a file cannot be read or holds no sentence.
        ParameterError: the tagger must be trained first, or needs a training file.
        LossError: the format of the output cannot store the predicted mentions, or the probabilities.
        OutputError: the output exists or cannot be written.

    Example:
        >>> import tempfile
        >>> from entaug.backends.fakes import FakeTagger
        >>> folder = Path(tempfile.mkdtemp())
        >>> gold = [Sentence.from_iob("Ada left Rome .".split(), ["B-PER", "O", "B-LOC", "O"])]
        >>> _ = (folder / "news.txt").write_text("It rained. Ada left Rome.")
        >>> summary = predict(FakeTagger().fit(gold), folder / "news.txt", folder / "labelled.jsonl")
        >>> summary.sentences, sorted(summary.mentions.items())
        (2, [('LOC', 1), ('PER', 1)])
    """
    if output is None:
        options = {"train": train, "probabilities": probabilities, "language": language, "progress": progress}
        return _predicted(tagger, text, **options, **files)
    paths = _paths_of(text)
    name = str(tagger) if isinstance(tagger, (str, Path)) else tagger.name
    is_mapped = ":" in name and is_alias("tagger", name) and name.partition(":")[0] not in _KNOW_LABELS
    if tagger == name and is_mapped and train is None:
        message = f"the labels of {name} must be mapped to yours"
        raise ParameterError(message, remedy="name your training file as `train`")
    job = FileJob(STDIN, output, **files)
    job.check([*paths, train, name if Path(name).is_dir() else None])
    target_file = job.open_output(None, predicted=True)
    if probabilities:
        require_soft_labels(target_file)
    summary = PredictSummary(input=[*map(str, paths)], output=str(output), tagger=name)
    summary.to_format = target_file.dialect.describe()
    notes: list[str] = []
    gold = [] if train is None else list(read(train, repair=True))
    reader = _Reader(gold, language)
    sentences = with_distinct_ids(reader.read(paths))
    window = list(islice(sentences, _WINDOW))
    trained = tagger
    if isinstance(trained, (str, Path)):
        trained = load_trained_tagger(name, gold if is_alias("tagger", name) else window, notes.append)
    window += sentences if getattr(trained, "labels_whole_text", False) else ()
    total = 0.0
    with target_file.writer(force=job.force) as writer:
        while window:
            # The mentions are those of `predict`, which `entaug evaluate` scores too; the likeliest valid tags differ.
            labelled = label_sentences(window, trained)
            for sentence, (soft, confidence) in zip(trained.predict(window), labelled, strict=True):
                layout = soft.layout if probabilities else {}
                meta = {"confidence": round(confidence, 4)}
                written = sentence.with_(layout=layout, meta=meta)
                summary.lost.update(target_file.lost(written))
                writer.write(written)
                summary.mentions.update(mention.label for mention in sentence.mentions)
                summary.tokens += len(sentence)
                total += confidence
            summary.sentences += len(window)
            progress("labelling", summary.sentences, None)
            window = list(islice(sentences, _WINDOW))
    notes += [note for note in getattr(trained, "notes", ()) if note not in notes]  # of sources of labels
    notes += [*reader.reading.layout_notes(), *reader.reading.field_notes()]
    notes += FileJob(allow_loss=["all"]).settle_losses(summary.lost, target_file)
    if reader.languages and not gold:
        names = " and ".join(map(language_name, sorted(reader.languages)))
        note = f"the text was tokenised by the rules of spaCy for {names}"
        notes.append(f"{note}; if your training sentences were tokenised otherwise, name them as `train`")
    summary.confidence = round(total / summary.sentences, 4)
    return summary.finish(notes=notes)


def _predicted(tagger: str | Path | Tagger, text: Any, **options: Any) -> Corpus:
    """The sentences that `predict` would write."""
    with TemporaryDirectory(prefix="entaug-") as folder:
        file = Path(folder, "predicted.jsonl")
        predict(tagger, text, file, **options)
        with warnings.catch_warnings(action="ignore"):  # the file is ours, and may have no mention
            return Corpus(read(file))


def _paths_of(text: Any) -> list[Path]:
    """The files of a text, which are there."""
    paths = [as_path(path) for path in ([text] if text is None or isinstance(text, (str, Path)) else text)]
    if not paths:
        raise ParameterError("no text is given", remedy="name a file")
    if len({str(path) for path in paths}) < len(paths):
        raise ParameterError("a text is named twice", remedy="name each file once")
    for path in paths:
        if str(path) != STDIN and not path.exists():  # before any sentence is labelled
            text_itself = ', or in Python give text itself as [{"text": "..."}]' if " " in str(path) else ""
            raise InputError("no such file", path=str(path), remedy=f"check the path{text_itself}")
    return paths


class _Reader:
    """Reads files, each by the rules of its language where none is given, and records how they were read."""

    def __init__(self, gold: Sequence[Sentence], language: str | None) -> None:
        self._gold = gold
        self._language = language or (running_text_language(gold) if gold else None)
        self._tokenizers: dict[str, Tokenizer] = {}
        self.languages: set[str] = set()  # those whose rules were needed
        self.reading = UnlabelledReading()

    def read(self, paths: Iterable[Path]) -> Iterator[Sentence]:
        """Read the sentences of the files, which have ids of their own in each file only."""
        for path in paths:
            with rereadable_path(path) as file:
                language = self._language or _language_of(file)
                yield from read_unlabelled_file(file, self._tokenizer(language), language, self.reading)

    def _tokenizer(self, language: str) -> Tokenizer:
        if language not in self._tokenizers:
            self._tokenizers[language] = corpus_tokenizer(self._gold, language)
        tokenize = self._tokenizers[language]

        def recorded(text: str) -> Sequence[str]:
            self.languages.add(language)
            return tokenize(text)

        return recorded


def _language_of(file: Path) -> str:
    """The language of the beginning of a text; English for a folder or an empty file."""
    pieces = [] if file.is_dir() else read_beginning(file).decode("utf-8", "replace").split()
    # Scripts without spaces have no words by which it is known, but characters.
    words = [word for piece in pieces for word in (piece if any(map(is_unspaced_script, piece)) else [piece])]
    return running_text_language([Sentence(words)] if words else [])


COMMAND = Command(predict, {"text": {"nargs": "+"}, "language": {"metavar": "CODE"}}, (FORCE, JSON, WRITING, COMPUTING))
