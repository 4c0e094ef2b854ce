"""A check for the tests of plug-ins: whether a method, a filter or a format keeps the rules of entaug."""

from __future__ import annotations

import os
import pickle
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from entaug.backends.component import Component, name_of_part
from entaug.backends.processes import process_pool, with_plain_errors
from entaug.commands.example import example
from entaug.config.params import parameters
from entaug.config.registry import Registry
from entaug.core.data import Sentence
from entaug.errors import EntaugError, LossError, ParameterError, one_line
from entaug.filters import FILTERS, Filter
from entaug.formats import FORMATS
from entaug.formats.base import BaseFormat, ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.corpus_file import CorpusFile
from entaug.formats.exchange import as_corpus
from entaug.methods import METHODS
from entaug.methods.base import Augmenter, MethodInfo, Run
from entaug.methods.combined import augment
from entaug.methods.types import Accepted

__all__ = ["check_plugin"]

_DAMAGED_FILES = 40

Results = dict[str, Any]
"""What comes of each sentence, by its key."""


def check_plugin(part: Augmenter | Filter | BaseFormat, corpus: Iterable[Any] | None = None) -> None:
    """Check that a method, a filter or a format keeps the rules of entaug, which are not checked while it works.

    All: it is declared as a plug-in must be, and its name is free; another object with its parameters has the same
    parameters; it changes neither these nor sentences; what comes of a sentence is the same in a second call, for the
    sentence alone, after a second ``fit``, for another object, and in another process, where sets have another order;
    it draws no global random numbers.

    A method: it makes sentences; what its `MethodInfo` says that it keeps is kept; labels are those of the corpus;
    another seed gives other sentences, unless ``draws=False``; it works without ``fit``, unless ``needs_fit=True``.

    A filter: its reasons are in `Filter.reasons`; it works without a source, unless `Filter.needs_source`.

    A format: it recognises what it writes, and reads it back as `BaseFormat.as_stored` says, whole and in parts; what a
    sentence has besides is read back or named by `BaseFormat.lost`; what it cannot write is a `LossError`, and a
    damaged file an `InputError`.

    Args:
        part: the method, the filter or the format, with the parameters that are to be checked; it is not fitted.
        corpus: sentences to check it with, in any form that `entaug.formats.as_corpus` takes; by default the example
            corpus of entaug, English sentences with nested and discontinuous mentions among them.

    Raises:
        EntaugError: a rule is not kept; the error names the rule, the sentence and a remedy.
        ParameterError: `part` is none of these, for example a class.

    Example:
        >>> from entaug.methods import ShuffleWithinSegments
        >>> check_plugin(ShuffleWithinSegments(p=0.3))
        >>> check_plugin(ShuffleWithinSegments(p=0.0))
        Traceback (most recent call last):
        ...
        entaug.errors.EntaugError: the method sis (entaug.methods.shuffling.ShuffleWithinSegments): makes no sentence...
    """
    kind = _kind_of(part)
    if kind is None:
        hint = f"{part.__name__}()" if isinstance(part, type) else "Mine(p=0.5)"
        remedy = f"give an object: check_plugin({hint})"
        raise ParameterError(f"expected a method, a filter or a format, not {part!r}", remedy=remedy)
    sentences = [*example(), *example("nested")] if corpus is None else as_corpus(corpus)
    gold = list({sentence.key: sentence for sentence in sentences}.values())
    _check_declaration(part, kind.registry)
    items = kind.items(gold)
    kind.check(part, gold, items, _check_repeated(part, kind, gold, items))


# ----------------------------------------------------------------------------------------------------------- all kinds


class _Kind(NamedTuple):
    """A kind of plug-in: what it is given, what it makes of it, and its own rules."""

    registry: Registry[Any]
    items: Callable[[Sequence[Sentence]], Sequence[Any]]
    results: Callable[[Any, Sequence[Any]], Results]
    check: Callable[[Any, Sequence[Sentence], Sequence[Any], Results], None]


def _kind_of(part: Any) -> _Kind | None:
    return next((kind for base, kind in _KINDS.items() if isinstance(part, base)), None)


def _broken(part: Any, what: str, remedy: str, sentence: Sentence | None = None) -> EntaugError:
    """The error for a rule that is not kept."""
    kind = _kind_of(part)
    assert kind is not None
    where = "" if sentence is None else f", sentence {sentence.key} ({one_line(sentence)[:60]})"
    return EntaugError(f"{name_of_part(part, kind.registry.kind)}{where}: {what}", remedy=remedy)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(error)}"


def _check_declaration(part: Any, registry: Registry[Any]) -> None:
    """Check what is checked of an installed plug-in."""
    name, cls = str(getattr(part, "name", "")), type(part)
    if name in registry.built_in and registry[name] is cls:
        return
    try:
        registry.check(name, cls)
    except Exception as error:
        raise _broken(part, f"cannot be used ({_told(error)})", "correct its class") from error
    if name in registry.built_in:
        raise _broken(part, f"entaug has a {registry.kind} of that name, which is used instead", "name it otherwise")


def _values_of(part: Any) -> dict[str, Any]:
    """The parameters as they are, by name."""
    cls: Any = type(part)
    return {one.name: getattr(part, one.name) for one in parameters(cls)} if isinstance(part, Component) else {}


def _check_same_values(part: Any, values: dict[str, Any], other: Any, when: str) -> None:
    for name, value in _values_of(other).items():
        if value is not values[name] and value != values[name]:
            what = f"its parameter {name} is {values[name]!r}, and {value!r} {when}"
            raise _broken(part, what, "leave parameters as they are given, and keep other values in other attributes")


def _fitted(part: Any, gold: Sequence[Sentence]) -> Any:
    return part.fit(gold) if isinstance(part, Augmenter | Filter) else part


def _check_repeated(part: Any, kind: _Kind, gold: Sequence[Sentence], items: Sequence[Any]) -> Results:
    """Return what comes of the sentences, which must be the same however often and wherever it is made."""
    values = _values_of(part)
    first, second = (type(part)(**values) for _ in range(2))
    _check_same_values(part, values, first, "in another object that is given the same")
    try:
        packed = pickle.dumps((first, kind.results, gold, items))
    except Exception as error:
        remedy = "define its class in a module, and let `_load` or `_fit` make what cannot be pickled"
        raise _broken(part, f"cannot be sent to other processes ({_told(error)})", remedy) from error
    texts = [*map(repr, gold)]
    results = kind.results(_fitted(first, gold), items)
    for sentence, text in zip(gold, texts, strict=True):
        if repr(sentence) != text:
            raise _broken(part, "changes a sentence that it is given", "make a new one: `sentence.edit`", sentence)
    _check_same_values(part, values, first, "afterwards")

    def compare(where: str, others: Results, remedy: str) -> None:
        for sentence in map(_sentence_of, items):
            one, other = results[sentence.key], others[sentence.key]
            if one != other:
                what = f"something else comes of it {where} ({_shown(other)} for {_shown(one)})"
                raise _broken(part, what, remedy, sentence)

    states = _global_states()  # importing a library may change them
    of_second = kind.results(_fitted(second, gold), items)
    if _global_states() != states:
        raise _broken(part, "draws global random numbers", "draw from the `rng` that it is given")
    alone = "let it depend on the sentence, its `rng`, the parameters and what `_fit` learned alone"
    compare("of another object with the same parameters", of_second, alone)
    compare("in a second call", kind.results(first, items), alone)
    one_by_one = [kind.results(first, [item]) for item in reversed(items)]
    compare("without the others", {key: one for made in one_by_one for key, one in made.items()}, alone)
    compare("after a second fit", kind.results(_fitted(first, gold), items), "let `_fit` forget the former corpus")
    try:
        elsewhere = _results_elsewhere(packed)
    except EntaugError:
        raise
    except Exception as error:
        remedy = "define its class in a module that can be imported"
        raise _broken(part, f"fails in another process ({_told(error)})", remedy) from error
    compare("in another process", elsewhere, f"sort sets before you draw from them, and {alone}")
    return results


def _sentence_of(item: Any) -> Sentence:
    sentence: Sentence = item if isinstance(item, Sentence) else item[0]
    return sentence


def _shown(result: Any) -> str:
    shown = [str(one) for one in result] if isinstance(result, list) else result
    return f"{shown!r:.200}"


def _global_states() -> list[Any]:
    """The states of the global generators of random numbers."""
    numpy = sys.modules.get("numpy")
    return [random.getstate(), repr(numpy.random.get_state()) if numpy else ""]


def _results_elsewhere(packed: bytes) -> Results:
    """The results of another process, in which sets have another order."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    with patch.dict(os.environ, PYTHONHASHSEED=seed), process_pool(1) as pool:
        return pool.submit(with_plain_errors, _unpacked_results, packed).result()


def _unpacked_results(packed: bytes) -> Results:
    part, results, gold, items = pickle.loads(packed)  # noqa: S301 - packed above
    made: Results = results(_fitted(part, gold), items)
    return made


# ------------------------------------------------------------------------------------------------------------- methods


def _sentences_made(method: Augmenter, sources: Sequence[Sentence]) -> Results:
    method.check_ready()
    drawn = Run([method]).results(sources, [source.key for source in sources])
    return {source.key: [one.sentence for one in made if isinstance(one, Accepted)] for source, _, made in drawn}


def broken_promise(info: MethodInfo, source: Sentence, new: Sentence) -> str | None:
    """The first of the facts of a method that does not hold for a sentence and its source."""
    labels, new_labels = ([mention.label for mention in one.mentions] for one in (source, new))
    words, new_words = (sorted((m.label, sorted(s.mention_tokens(m))) for m in s.mentions) for s in (source, new))
    holds = {
        "keeps_length": len(new) == len(source),
        "keeps_words": Counter(new.tokens) == Counter(source.tokens),
        "keeps_mentions": sorted(new_labels) == sorted(labels),
        "keeps_mention_words": new_words == words,
        "keeps_order": new_labels == labels or not info.keeps_mentions,
    }
    return next((fact for fact, is_kept in holds.items() if getattr(info, fact) and not is_kept), None)


def _check_method(method: Augmenter, gold: Sequence[Sentence], _: Sequence[Any], results: Results) -> None:
    if not any(results.values()):
        remedy = "give sentences that it can change: check_plugin(method, sentences)"
        raise _broken(method, "makes no sentence of this corpus", remedy)
    labels = {mention.label for sentence in gold for mention in sentence.mentions}
    for source in gold:
        for new in results[source.key] if method.teacher is None else ():  # which would change mentions
            for mention in new.mentions:
                if mention.label not in labels:
                    what = f"the label {mention.label!r} is none of the corpus"
                    raise _broken(method, what, "give new mentions the labels of those of the corpus", source)
            if fact := broken_promise(method.info, source, new):
                remedy = f"correct it, or say {fact}=False in its MethodInfo"
                raise _broken(method, f"{fact} does not hold of {str(new)[:100]!r}", remedy, source)
    values = _values_of(method)
    if method.info.draws:
        other = type(method)(**{**values, "seed": method.seed + 1}).fit(gold)
        one, two = ([*map(str, chain.from_iterable(made.values()))] for made in (results, _sentences_made(other, gold)))
        if one == two:
            remedy = "draw from `rng`, or say draws=False in its MethodInfo"
            raise _broken(method, "another seed gives the same sentences", remedy)
    if not (method.info.needs_fit or method.filters or method.teacher or method.uses_guard):
        try:
            _sentences_made(type(method)(**values), gold)
        except Exception as error:
            remedy = "say needs_fit=True in its MethodInfo"
            raise _broken(method, f"fails without fit ({_told(error)})", remedy) from error


# ------------------------------------------------------------------------------------------------------------- filters


def _pairs(gold: Sequence[Sentence]) -> list[tuple[Sentence, Sentence]]:
    """Sentences to judge, good ones and bad ones, with their sources."""
    sources = {sentence.key: sentence for sentence in gold}
    made = augment(gold, "lwtr+mr+sis", seed=1)
    return [*zip(gold, gold, strict=True), *((s, sources[s.provenance.sources[0]]) for s in made if s.provenance)]


def _decisions(filter_: Filter, pairs: Sequence[tuple[Sentence, Sentence]]) -> Results:
    reasons = filter_.judge([new for new, _ in pairs], [source for _, source in pairs])
    return {new.key: reason for (new, _), reason in zip(pairs, reasons, strict=True)}


def _check_filter(
    filter_: Filter, gold: Sequence[Sentence], pairs: Sequence[tuple[Sentence, Sentence]], results: Results
) -> None:
    for new, _ in pairs:
        if (reason := results[new.key]) is not None and reason not in filter_.reasons:
            raise _broken(filter_, f"the reason {reason!r} is none of its `reasons`", "add it there", new)
    fitted = type(filter_)(**_values_of(filter_)).fit(gold)
    if not fitted.needs_source:
        try:
            fitted.judge([new for new, _ in pairs], [None] * len(pairs))
        except Exception as error:
            remedy = "let its property `needs_source` return True, or judge such sentences, too"
            raise _broken(filter_, f"fails where a sentence has no source ({_told(error)})", remedy) from error


# ------------------------------------------------------------------------------------------------------------- formats


def _plain(gold: Sequence[Sentence]) -> list[Sentence]:
    """Sentences of which nothing but words, mentions and an id is to be written."""
    return [Sentence(sentence.tokens, sentence.mentions, id=f"s{n}") for n, sentence in enumerate(gold, start=1)]


def _texts(format_: BaseFormat, sentences: Sequence[Sentence]) -> Results:
    """The text of each sentence; None for one that is refused."""
    dialect = format_.dialect()
    texts: Results = {}
    for sentence in sentences:
        try:
            texts[sentence.key] = format_.dump(sentence, dialect)
        except LossError:
            texts[sentence.key] = None
        except Exception as error:
            remedy = "raise a LossError for what the format cannot store"
            raise _broken(format_, f"cannot be written ({_told(error)})", remedy, sentence) from error
    return texts


def _check_format(format_: BaseFormat, _: Sequence[Sentence], sentences: Sequence[Sentence], results: Results) -> None:
    kept = [sentence for sentence in sentences if results[sentence.key] is not None]
    if not kept:
        raise _broken(format_, "refuses every sentence of this corpus", "give others: check_plugin(format, sentences)")
    with tempfile.TemporaryDirectory(prefix="entaug-") as folder:
        file = CorpusFile(_path_in(Path(folder), format_), format_, format_.dialect())
        file.write(kept)
        if format_.recognises(file.path) is not True:
            raise _broken(format_, "does not recognise what it has written", "correct `recognises`")
        _check_read(file, kept, list(_read(file)), "")
        if not isinstance(format_, BufferedFormat):
            half = len(kept) // 2
            size = len((file.heading + "".join(results[one.key] for one in kept[:half])).encode())
            for part, start, stop in ((kept[:half], 0, size), (kept[half:], size, file.size)):
                _check_read(file, part, list(file.read_draft(file.path, start, stop)), f" from byte {start} to {stop}")
        small = CorpusFile(_path_in(Path(folder, "small"), format_), format_, file.dialect)
        small.path.parent.mkdir()
        _check_besides(small, kept[0])
        _check_damaged(small)


def _path_in(folder: Path, format_: BaseFormat) -> Path:
    return folder / f"file{'' if format_.folder or not format_.extensions else format_.extensions[0]}"


def _read(file: CorpusFile) -> Iterable[Sentence]:
    return file.format.read(file.path, file.format.detect_dialect(file.path), ReadReport())


def _check_read(file: CorpusFile, wanted: Sequence[Sentence], got: Sequence[Sentence], where: str) -> None:
    for one, sentence in zip(wanted, got, strict=False):
        stored = file.as_stored(one)
        if (sentence.tokens, sentence.mentions) != (stored.tokens, stored.mentions):
            what = f"is read back{where} as {str(sentence)[:100]!r}"
            remedy = "correct `dump`, `read` or `as_stored`, or give sentences with other tokens"
            raise _broken(file.format, what, remedy, one)
    if len(got) != len(wanted):
        what = f"of {len(wanted)} sentences {len(got)} are read back{where}"
        raise _broken(file.format, what, "read from `start` to `stop`" if where else "correct `dump` or `read`")


def _check_besides(file: CorpusFile, sentence: Sentence) -> None:
    """Check that what a sentence has besides its mentions is read back, or named where it is lost."""
    spaces = ("  ", *(" " for _ in sentence.tokens))[: len(sentence) - 1]
    full = sentence.with_(columns={"1": sentence.tokens}, spaces=(*spaces, ""), meta={"page": "3"})
    file.write([full])
    [got] = _read(file)
    lost = file.lost(full)
    for name, is_kept in {
        "column '1'": [*got.columns] == ["1"] and (*got.columns["1"],) == full.tokens,
        "field 'page'": got.meta.get("page") == "3",
        "text": got.text.strip() == full.text,
    }.items():
        if not is_kept and name not in lost:
            what = f"{name} is not read back, and `lost` does not name it"
            raise _broken(file.format, what, "say in `carries` what is lost", full)


def _check_damaged(file: CorpusFile) -> None:
    """Check that damaged files are read, or refused with an error of entaug."""
    for seed in range(_DAMAGED_FILES):
        rng = random.Random(seed)
        path = rng.choice(sorted(file.format.files(file.path)))
        whole = path.read_bytes()
        start, stop = sorted(rng.randrange(len(whole) + 1) for _ in range(2))
        noise = rng.choice([b"", b"", b"\xff\0", b'"', b"[", b"\t", b"\n", b" 9"])
        path.write_bytes(b"" if seed == 0 else whole[:start] + noise + whole[rng.choice([start, stop, len(whole)]) :])
        try:
            file.format.recognises(file.path)
            list(_read(file))
        except EntaugError:
            pass
        except Exception as error:
            what = f"a damaged file ends with an error that names neither file nor line ({_told(error)})"
            raise _broken(file.format, what, "raise an InputError") from error
        path.write_bytes(whole)


_KINDS: dict[type, _Kind] = {
    Augmenter: _Kind(METHODS, list, _sentences_made, _check_method),
    Filter: _Kind(FILTERS, _pairs, _decisions, _check_filter),
    BaseFormat: _Kind(FORMATS, _plain, _texts, _check_format),
}
