"""A tagger that joins the labels of several sources to soft labels, with gold sentences as the anchor."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from entaug.backends.config import TrainingProgress
from entaug.backends.protocols import Tagger
from entaug.backends.resolve import check_name, is_alias, resolve
from entaug.backends.soft_labels import TagProbabilities, label_confidence
from entaug.config.toml_lines import read_toml
from entaug.core.data import Sentence
from entaug.core.folds import partition
from entaug.core.mentions import Mention
from entaug.core.tags import flatten
from entaug.errors import InputError, InputWarning, ParameterError
from entaug.files.mention_lists import mention_lists, relative_to_folder
from entaug.files.streams import read_bytes
from entaug.metrics.span_f1 import MatchCounts
from entaug.taggers.pretrained import PretrainedTagger
from entaug.taggers.sources import SourceTagger
from entaug.taggers.sources.joining import Joiner, labels_of
from entaug.taggers.sources.lists import FileTagger
from entaug.taggers.sources.prompted import PromptedTagger

_FOLDS = 3
_KEYS = ("sources", "labels")
_Said = list[list[Mention] | None]

NO_GOLD = (
    "no gold sentence has a mention: how often each source is right is guessed from how often they agree, and what all "
    "of them do wrong stays wrong; label some sentences, entaug suggest finds the most useful ones"
)


class JoinedTagger:
    """Several sources of labels as one `entaug.backends.protocols.Tagger`, of flat mentions."""

    # Sources are names of taggers or taggers, or the path of a TOML file that names them; a tagger that is given as an
    # object is used as it is. `fit` trains nothing but sources that are taggers to be trained, which label the gold
    # sentences out of fold. `tag_probabilities` estimates how each source errs from the gold sentences and from all
    # sentences of the call together (see `joining.py`), so that the whole text belongs into one call.

    labels_whole_text = True
    languages: Collection[str] | None = None

    def __init__(
        self, sources: str | Path | Sequence[str | Tagger], descriptions: Mapping[str, str] | None = None
    ) -> None:
        if isinstance(sources, (str, Path)):
            sources, described = read_sources(Path(sources))
            descriptions = {**described, **(descriptions or {})}
        if not sources:
            raise ParameterError("no source of labels is named", remedy='for example sources = ["lists:names.txt=PER"]')
        self._given = list(sources)
        self._descriptions = dict(descriptions or {})
        self._taggers: list[Any] = [resolve("tagger", source) for source in self._given]
        for tagger in self._taggers:
            if isinstance(tagger, JoinedTagger):
                raise ParameterError("a source cannot be joined sources itself", parameter="sources")
            if isinstance(tagger, PromptedTagger):
                tagger.descriptions = self._descriptions
        self._is_new = [
            isinstance(source, str) and is_alias("tagger", source) and not isinstance(tagger, PretrainedTagger)
            for source, tagger in zip(self._given, self._taggers, strict=True)
        ]
        digest = blake2b(repr(sorted(self._descriptions.items())).encode(), digest_size=4).hexdigest()
        self.name = f"joined:{'+'.join(self.source_names)}" + (f"@{digest}" if self._descriptions else "")
        self.notes: list[str] = []
        self._gold: list[Sentence] | None = None
        self._last: tuple[list[tuple[str, ...]], list[TagProbabilities]] = [], []

    @property
    def source_names(self) -> list[str]:
        """The names of the sources."""
        return [str(getattr(tagger, "name", type(tagger).__name__)) for tagger in self._taggers]

    def check_requirements(self) -> None:
        """Check that what new taggers need is available."""
        for tagger in self._taggers:
            getattr(tagger, "check_requirements", lambda: None)()

    # -------------------------------------------------------------------------------------------------------- fitting

    def fit(
        self,
        train: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        config: Any = None,
        progress: TrainingProgress | None = None,
        augmented: Iterable[Sentence] = (),
    ) -> Self:
        """Let the sources label the gold sentences; none of these need have a mention, or be there at all."""
        if list(augmented):
            raise ParameterError("joined sources cannot be trained further", remedy="use rounds=1, or another tagger")
        gold = sorted(train, key=lambda sentence: sentence.fingerprint())
        if not all(sentence.is_flat for sentence in gold):
            remedy = "leave nested and discontinuous mentions out, or use another teacher"
            raise InputError("sources of labels are joined for flat mentions only", remedy=remedy)
        # Sentences without any mention would say that there are none.
        self._gold = gold if any(sentence.mentions for sentence in gold) else []
        self._last = [], []
        self.notes = []
        if not self._gold:
            warnings.warn(NO_GOLD, InputWarning, stacklevel=2)
            self.notes.append(NO_GOLD)
        self._on_gold = [self._fit_source(number) for number in range(len(self._taggers))]
        for name, said in zip(self.source_names, self._on_gold, strict=True):
            if self._gold and all(one is None for one in said):
                self.notes.append(
                    f"{name}: has none of the gold sentences; its errors are estimated from the text alone"
                )
            elif self._gold:
                self.notes.append(f"{name}: {_agreement(said, [s.mentions for s in self._gold], 'gold')}")
        return self

    def _fit_source(self, number: int) -> _Said:
        """Fit a source, and return what it says of the gold sentences."""
        tagger, gold = self._taggers[number], self._gold or []
        if isinstance(tagger, PretrainedTagger):
            if not gold:
                tagger.fit_without_gold(sorted(self._descriptions))
                return []
            tagger.fit(gold)
        if not self._is_new[number]:
            return _opinions(tagger, gold)
        name = str(self._given[number])
        if len(gold) < _FOLDS:
            remedy = "leave it out, or label more sentences"
            raise InputError(
                f"the source {name} is trained on gold sentences, and there are {len(gold)}", remedy=remedy
            )
        said: _Said = [None] * len(gold)
        for fold in partition(gold, _FOLDS, 0):
            inside = set(fold)
            trained = resolve("tagger", name).fit([s for i, s in enumerate(gold) if i not in inside])
            for place, mentions in zip(fold, _opinions(trained, [gold[i] for i in fold]), strict=True):
                said[place] = mentions
        self._taggers[number] = tagger.fit(gold)
        return said

    # ------------------------------------------------------------------------------------------------------- labelling

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        sentences = list(sentences)
        if self._gold is None:
            raise ParameterError("these sources were not compared with gold sentences yet", remedy="call fit(gold)")
        tokens = [sentence.tokens for sentence in sentences]
        if not sentences or tokens == self._last[0]:
            return list(self._last[1]) if sentences else []
        gold = self._gold
        for tagger in self._taggers:
            if isinstance(tagger, FileTagger):
                tagger.check_known(sentences)
        on_text = [_opinions(tagger, sentences) for tagger in self._taggers]
        said = [[*on_gold, *more] for on_gold, more in zip(self._on_gold, on_text, strict=True)]
        labels = labels_of(gold, said)
        if not labels:
            raise InputError("no source finds a mention in the text", remedy="name other sources, or another text")
        lengths = [len(sentence) for sentence in (*gold, *sentences)]
        known: list[Sequence[Mention] | None] = [*(s.mentions for s in gold), *[None] * len(sentences)]
        joined = Joiner(labels).join(said, lengths, known)[len(gold) :]
        mentions = [soft.mentions() for soft in joined]
        told = [note for note in self.notes if "joined labels" not in note]
        for name, one in zip(self.source_names, on_text, strict=True):
            told.append(f"{name}: {_agreement(one, mentions, 'joined labels')}")
        more = [note for tagger in self._taggers for note in getattr(tagger, "notes", ()) if note not in told]
        self.notes = [*told, *more]
        self._last = tokens, joined
        return list(joined)

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        sentences = list(sentences)
        pairs = zip(self.tag_probabilities(sentences), sentences, strict=True)
        return [sentence.with_(mentions=soft.mentions()) for soft, sentence in pairs]

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        sentences = list(sentences)
        return list(map(label_confidence, sentences, self.tag_probabilities(sentences)))


def _opinions(tagger: Any, sentences: Sequence[Sentence]) -> _Said:
    """The flat mentions that a source finds."""
    plain = [sentence.with_(mentions=()) for sentence in sentences]
    if isinstance(tagger, SourceTagger):
        return tagger.opinions(plain)
    return [flatten(sentence.mentions, "outermost") for sentence in tagger.predict(plain)]


def _agreement(said: _Said, right: Sequence[Sequence[Mention]], what: str) -> str:
    pairs = [(set(one), set(other)) for one, other in zip(said, right, strict=True) if one is not None]
    sums = [sum(map(len, part)) for part in ([a & b for a, b in pairs], [a for a, _ in pairs], [b for _, b in pairs])]
    counts = MatchCounts(*sums)
    figures = f"precision {counts.precision:.0%}, recall {counts.recall:.0%}, F1 {counts.f1:.0%}"
    return f"{figures} against {what} of {len(pairs):,} sentences"


# -------------------------------------------------------------------------------------------------------- the TOML file


def read_sources(path: Path) -> tuple[list[str], dict[str, str]]:
    """Read the names of sources, with paths relative to the file, and the descriptions of labels."""
    table, lines = read_toml(path, 'write sources = ["lists:names.txt=PER", "spacy:en_core_web_sm"]')
    for key in table:
        if key not in _KEYS:
            raise InputError(
                f"has the unknown key {key!r}", path=str(path), line=lines.line_of("", 0, key), remedy="write sources"
            )
    sources, labels = table.get("sources"), table.get("labels", {})
    with lines.at("", key="sources"):
        if not isinstance(sources, list) or not sources or not all(isinstance(one, str) for one in sources):
            raise InputError("sources must be a list of names of taggers", remedy='write sources = ["lists:..."]')
        for name in sources:
            check_name("tagger", name)
    with lines.at("labels", key=""):
        if not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
            raise InputError("labels must be a table of descriptions", remedy='write [labels] and PER = "people"')
    return [_beside(name, path.parent) for name in sources], labels


def sources_identity(path: Path) -> list[Any]:
    """The content that the labels of the sources of a file depend on, as far as it can be told without their models."""
    names, descriptions = read_sources(path)
    files = [Path(name.partition(":")[2]) for name in names if name.startswith("file:")]
    lists = [mention_lists(name.partition(":")[2]) for name in names if name.startswith("lists:")]
    digests = [[one.digest for one in some] for some in lists]
    digests += [[blake2b(read_bytes(file), digest_size=8).hexdigest()] for file in files]
    own = [name for name in names if not name.startswith(("file:", "lists:"))]
    return [own, digests, descriptions]


def _beside(name: str, folder: Path) -> str:
    """The name of a source whose files are those beside the TOML file."""
    alias, colon, argument = name.partition(":")
    if alias == "lists":
        return f"lists:{';'.join(map(str, relative_to_folder(argument, folder)))}"  # type: ignore[call-overload]
    if alias == "file" or (colon and (folder / argument.partition("@")[0]).exists()):
        return f"{alias}:{folder / argument}"
    return str(folder / name) if (folder / name).is_dir() else name
