"""Lists of names as a source of labels, and files in which the text is labelled already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.tags import flatten
from entaug.errors import InputError
from entaug.files.mention_lists import mention_lists
from entaug.formats import read
from entaug.taggers.sources import SourceTagger

_MOST_TOKENS = 20  # of a name


class ListTagger(SourceTagger):
    """Lists of names: each place where one of them stands, the longest first."""

    # Names are compared without white space, so that they are found however text is tokenised. Case counts, unless the
    # sentence has none: "US" is not "us". A name that several lists have gets the label of the first one.

    prefix = "lists"

    def _load(self, model: str) -> None:
        lists = mention_lists(model)
        self.name = "lists:" + "+".join(f"{one.name}@{one.digest}" for one in lists)
        self._label_of: dict[str, str] = {}
        for one in lists:
            for label, texts in one.texts.items():
                for text in texts:
                    self._label_of.setdefault("".join(text.split()), label)
        self._caseless: dict[str, str] = {}
        for text, label in self._label_of.items():
            self._caseless.setdefault(text.casefold(), label)
        self._longest = max(map(len, self._label_of))

    @property
    def own_labels(self) -> list[str] | None:
        return sorted(set(self._label_of.values()))

    def opinions(self, sentences: Sequence[Sentence]) -> list[list[Mention] | None]:
        return [self._find(sentence.tokens) for sentence in sentences]

    def _find(self, tokens: Sequence[str]) -> list[Mention]:
        text = "".join(tokens)
        is_caseless = text in (text.lower(), text.upper())
        known: Mapping[str, str] = self._caseless if is_caseless else self._label_of
        if is_caseless:
            tokens = [token.casefold() for token in tokens]
        mentions: list[Mention] = []
        start = 0
        while start < len(tokens):
            found, key = None, ""
            for end in range(start, min(len(tokens), start + _MOST_TOKENS)):
                key += tokens[end]
                if len(key) > 2 * self._longest:  # folding may lengthen a name
                    break
                if key in known:
                    found = Mention(known[key], [(start, end + 1)])
            if found is not None:
                mentions.append(found)
            start = start + 1 if found is None else found.end
        return mentions


class FileTagger(SourceTagger):
    """A file in which sentences are labelled already, by people or a model; of others it says nothing."""

    prefix = "file"

    def _load(self, model: str) -> None:
        self._known = {s.tokens: flatten(s.mentions, "outermost") for s in read(model, repair=True)}
        digest = blake2b(digest_size=4)
        for tokens, mentions in sorted(self._known.items()):
            digest.update(repr((tokens, mentions)).encode("utf-8", "surrogatepass"))
        self.name = f"file:{Path(model).name}@{digest.hexdigest()}"
        self._path = model

    @property
    def own_labels(self) -> list[str] | None:
        return sorted({mention.label for mentions in self._known.values() for mention in mentions})

    def opinions(self, sentences: Sequence[Sentence]) -> list[list[Mention] | None]:
        return [self._known.get(sentence.tokens) for sentence in sentences]

    def check_known(self, text: Sequence[Sentence]) -> None:
        """Refuse a text of which the file has no sentence; it need not have gold ones."""
        if len(text) > 1 and not any(sentence.tokens in self._known for sentence in text):
            remedy = "name a file with labels of the same text, split into the same words"
            raise InputError(f"has none of the {len(text):,} sentences to label", path=self._path, remedy=remedy)

    def _mapped(self, sentences: Sequence[Sentence]) -> list[list[tuple[Mention, float]]]:
        self.check_known(sentences)
        return super()._mapped(sentences)
