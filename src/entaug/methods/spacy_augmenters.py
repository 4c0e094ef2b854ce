"""Every method as an augmenter of spaCy, for ``[corpora.train.augmenter]`` in the config of ``spacy train``.

``@augmenters = "entaug.mr.v1"`` takes the parameters of ``mr``, and two more: ``train``, the DocBin or the folder of
them that the method is fitted to, and ``spans_key``, the group of spans that holds the mentions, where there are
several. spaCy finds the names by the entry points of this package, each of which is an attribute of this module.
"""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from entaug.config.params import REQUIRED, construct, parameters
from entaug.core.data import Provenance, Sentence
from entaug.errors import EntaugError, InputError, InputWarning, MissingExtraError, ParameterError
from entaug.formats.base import ReadReport, note_lines
from entaug.formats.docbin import doc_of_sentence, sentence_of_doc
from entaug.formats.files import open_file
from entaug.methods import METHODS
from entaug.methods.base import Augmenter
from entaug.methods.online import OnlineDataset

# What was fitted last: spaCy makes an augmenter to initialize a pipeline, and another one to train it.
_latest: dict[Any, tuple[Augmenter, str | None]] = {}


class SpacyAugmenter:
    """An augmenter of spaCy: yields each example of a training corpus, followed by new versions of it."""

    # spaCy does not say when an epoch begins, so an example that comes again counts as one of the next epoch: its new
    # versions are those of an `OnlineDataset` in that epoch. By default spaCy reads the corpus once and trains on the
    # same examples in all epochs; with ``max_epochs = -1`` it reads it anew in each.

    def __init__(self, augmenter: Augmenter, group: str | None = None) -> None:
        _check_method(augmenter)
        self._augmenter = augmenter
        self._group = group
        self._seen: Counter[str] = Counter()
        self._has_warned = False

    def __call__(self, nlp: Any, example: Any) -> Iterator[Any]:
        """Yield an example and its new versions."""
        yield example
        sentence = self._sentence(example.reference)
        if sentence is None:
            return
        key, name = sentence.key, self._augmenter.name
        versions = OnlineDataset([sentence], self._augmenter, keep_gold=False, epoch=self._seen[key])
        self._seen[key] += 1
        for copy, new in enumerate(versions, start=1):
            if new is not sentence:  # which stands for a version that could not be made
                made = new.provenance if new.provenance is not sentence.provenance else None
                sources = (key, *made.sources) if made else (key,)
                id_ = f"{key}{self._augmenter.id_infix}{versions.epoch}-{copy}"
                signed = new.signed(id_, sentence.meta, {}, Provenance(name, sources=sources, copy=copy))
                yield _new_example(nlp, example, doc_of_sentence(signed, nlp.vocab, self._group))

    def _sentence(self, doc: Any) -> Sentence | None:
        """The sentence of a document; None if it has no words, or entities that are not known."""
        if self._group is not None or doc.has_annotation("ENT_IOB", require_complete=True):
            return sentence_of_doc(doc, self._group)
        if not self._has_warned:
            self._has_warned = True
            message = "examples of which not all entities are known are not augmented"
            warnings.warn(message, InputWarning, stacklevel=3)
        return None


def _new_example(nlp: Any, source: Any, reference: Any) -> Any:
    """An example whose predicted tokens come from where those of its source come from: spaCy's tokenizer, or gold."""
    from spacy.tokens import Doc
    from spacy.training import Example

    is_gold = reference.has_unknown_spaces or _words(source.predicted) != _words(nlp.make_doc(source.reference.text))
    if not is_gold:
        return Example(nlp.make_doc(reference.text), reference)
    spaces = [bool(token.whitespace_) for token in reference]
    return Example(Doc(nlp.vocab, words=_words(reference), spaces=spaces), reference)


def _words(doc: Any) -> list[str]:
    return [token.text for token in doc]


def _check_method(method: Augmenter | type[Augmenter]) -> None:
    """Refuse a method that does not rewrite sentences one by one, differently each time."""
    if method.info.unconditioned or not method.info.draws:
        name = method.name
        why = "makes sentences from no other" if method.info.unconditioned else "makes the same sentences every time"
        remedy = f"augment the file before: entaug augment train.spacy -m {name} -o bigger.spacy"
        raise ParameterError(f"{name} {why}, so it is no augmenter of spaCy", remedy=remedy)


def _create(name: str, train: Any, spans_key: Any, arguments: dict[str, Any]) -> SpacyAugmenter:
    """Create an augmenter of spaCy; `train` and `spans_key` are checked here, the others by the method."""
    _check_method(METHODS[name])
    augmenter = construct(METHODS[name], name, arguments)
    for given, what in ((train, "train"), (spans_key, "spans_key")):
        if not isinstance(given, str | Path) and (given is not None or what == "train"):
            remedy = "write train = ${paths.train}" if what == "train" else "name a group of spans"
            raise ParameterError(f"{what} must be a string, not {given!r}", parameter=what, remedy=remedy)
    files = _files(Path(train))
    stats = [(file, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    key = (name, repr(arguments), spans_key, repr(stats))
    if key not in _latest:
        sentences, group = _read(files, spans_key)
        augmenter.fit(sentences)
        _latest.clear()
        _latest[key] = augmenter, group
    return SpacyAugmenter(*_latest[key])


def _files(train: Path) -> list[Path]:
    """The files that spaCy reads: one, or those of a folder and the folders in it."""
    if not train.is_dir():
        if not train.is_file():
            raise InputError("no such file or folder", path=str(train), remedy="set paths.train")
        return [train]
    files = sorted(file for file in train.rglob("*.spacy") if file.is_file())
    if not files:
        raise InputError("has no files that end in .spacy", path=str(train), remedy="spacy convert makes them")
    return files


def _read(files: list[Path], spans_key: str | None) -> tuple[list[Sentence], str | None]:
    """The sentences of files, and the group of spans that holds their mentions."""
    options = {} if spans_key is None else {"mentions": "spans", "spans_key": spans_key}
    reading = ReadReport()
    sentences: list[Sentence] = []
    group = spans_key
    for file in files:
        opened = open_file(file, "docbin", **options)
        group = group or getattr(opened.dialect, "group", None)
        sentences += opened.sentences(reading)
    for line in note_lines(reading.notes):
        warnings.warn(f"{files[0].parent if len(files) > 1 else files[0]}: {line}", InputWarning, stacklevel=2)
    return sentences, group


def _factory(name: str) -> Callable[..., SpacyAugmenter]:
    """The function that spaCy registers for a method; spaCy takes its arguments from its signature."""

    def create(*, train: Any, spans_key: Any = None, **arguments: Any) -> SpacyAugmenter:
        try:
            return _create(name, train, spans_key, arguments)
        except EntaugError as error:
            raise _config_error(name, error) from error

    keyword, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    given = {"train": empty, "spans_key": None}
    given |= {p.name: empty if p.default is REQUIRED else p.default for p in parameters(METHODS[name])}
    own = [inspect.Parameter(one, keyword, default=default) for one, default in given.items()]
    create.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    create.__name__ = name
    return create


def _config_error(name: str, error: EntaugError) -> Exception:
    """An error of ours as one of spaCy's configs, which its commands print without a traceback."""
    try:
        from thinc.api import ConfigValidationError
    except ImportError:
        return MissingExtraError("spacy", "spacy")
    place = [f"entaug.{name}.v1", *filter(None, [getattr(error, "parameter", None)])]
    return ConfigValidationError(errors=[{"loc": place, "msg": str(error)}])


def __getattr__(name: str) -> Callable[..., SpacyAugmenter]:
    """Return the factory of a method, which an entry point names."""
    if name.startswith("_") or name not in METHODS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _factory(name)
