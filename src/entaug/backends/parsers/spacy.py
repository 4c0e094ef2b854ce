"""Dependency parsing by a pipeline of spaCy, over the tokens of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from entaug.backends.protocols import Parse
from entaug.errors import MissingExtraError, MissingModelError
from entaug.spacing import infer_spaces

try:
    import spacy
    from spacy.tokens import Doc
except ImportError as error:
    raise MissingExtraError(error.name or "spacy", "spacy") from None

__all__ = ["SpacyParser"]

# Components of released pipelines that say nothing about trees or parts of speech. Those that find sentence ends must
# go too: a parser may not draw an arc across one, and here a sentence is what it is.
_UNUSED = (
    "ner",
    "lemmatizer",
    "trainable_lemmatizer",
    "senter",
    "sentencizer",
    "entity_ruler",
    "span_ruler",
    "entity_linker",
    "textcat",
    "textcat_multilabel",
    "spancat",
)
_BATCH = 128
_NO_WORD = "_"  # stands for an empty token, which spaCy does not take


class SpacyParser:
    """A `entaug.backends.protocols.DependencyParser` of spaCy.

    Sentences are not tokenised or cut again: a tree is over exactly the tokens given. It may have several roots. The
    parser is told which tokens a space follows, as in print, because pipelines are trained on running text.

    Args:
        name: a folder with a pipeline, or the name of an installed one.

    Raises:
        MissingModelError: there is no such pipeline, this spaCy cannot load it, or it has no parser.
    """

    def __init__(self, name: str | Path) -> None:
        self._nlp = _load(name)
        meta = self._nlp.meta
        self.name = f"{meta['lang']}_{meta['name']}-{meta['version']}"

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[Parse]:
        """See `entaug.backends.protocols.DependencyParser.parse`."""
        wanted = [tuple(sentence) for sentence in sentences]
        # Longest first: batches of like length waste less on padding, and what may fail for memory fails at once.
        todo = sorted(set(wanted), key=lambda words: (-len(words), words))
        found: dict[tuple[str, ...], Parse] = {}
        # New words are forgotten after the call, or a long run over many texts would gather all of them.
        with self._nlp.memory_zone():
            docs = self._nlp.pipe((self._doc(words) for words in todo), batch_size=_BATCH)
            for words, doc in zip(todo, docs, strict=True):
                found[words] = Parse(
                    tuple(token.head.i for token in doc),
                    tuple(token.dep_ or "dep" for token in doc),
                    tuple(token.pos_ or "X" for token in doc),
                )
        return [found[words] for words in wanted]

    def _doc(self, words: tuple[str, ...]) -> Any:
        return Doc(
            self._nlp.vocab, words=[word or _NO_WORD for word in words], spaces=list(map(bool, infer_spaces(words)))
        )


def _load(name: str | Path) -> Any:
    """The pipeline, without what is not needed."""
    folder = Path(name)
    if folder.is_dir():
        # An unpacked package has the pipeline in a folder below.
        inner = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
        folder = next((path for path in inner if (path / "config.cfg").is_file()), folder)
        source: str | Path = folder
        remedy = "name a folder with a pipeline of spaCy (config.cfg, meta.json ...)"
    elif spacy.util.is_package(str(name)):
        source = str(name)
        remedy = f"install it again: python -m spacy download {name}"
    else:
        ours = " run: entaug models prepare en_core_web_sm, or" if str(name) == "en_core_web_sm" else ""
        raise MissingModelError(
            f"{str(name)!r} is neither a folder nor an installed pipeline of spaCy",
            remedy=f"{ours} run: python -m spacy download {name}".lstrip(),
        )
    try:
        nlp = spacy.load(source, exclude=list(_UNUSED))
    except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise MissingModelError(f"cannot be loaded ({reason})", path=str(source), remedy=remedy) from None
    if not any("token.dep" in nlp.get_pipe_meta(pipe).assigns for pipe in nlp.pipe_names):
        raise MissingModelError(
            f"the pipeline has no parser (it has: {', '.join(nlp.pipe_names) or 'nothing'})",
            path=str(source),
            remedy="use one that has, for example en_core_web_sm",
        )
    return nlp
