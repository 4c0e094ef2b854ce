"""GLiNER models as taggers: they find mentions of any labels that they are asked for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from entaug.backends.compute import compute_settings
from entaug.backends.transformers.base import card_languages, choose_device, find_model, model_name, quiet
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.core.words import label_in_words
from entaug.errors import MissingExtraError, MissingModelError
from entaug.taggers.pretrained import PretrainedTagger, ScoredMention

_THRESHOLD = 0.5


class GLiNERTagger(PretrainedTagger):
    """A GLiNER model (Zaratiana et al. 2024), over the words of the corpus."""

    # It is asked for the labels on the left of the map, or for those of the corpus in words (see `label_in_words`). The
    # probability of a mention is that of the model. Mentions are flat.

    prefix = "gliner"

    def _load(self, model: str) -> None:
        try:
            from gliner import GLiNER  # an extra that "all" does not contain
        except ModuleNotFoundError as error:
            if error.name != "gliner":
                raise
            raise MissingExtraError("gliner", "gliner") from None
        folder = find_model(model)
        try:
            with quiet():
                # Some models lack a tokenizer of their own and use that of the model that they were made from.
                is_offline = bool(compute_settings().offline)
                self._model: Any = GLiNER.from_pretrained(str(folder), local_files_only=is_offline)
        except Exception as error:  # noqa: BLE001 (whatever the library raises for a folder of another kind)
            reason = " ".join(str(error).split())[:200]
            raise MissingModelError(
                f"is no GLiNER model ({reason})",
                path=str(folder),
                remedy="name one, for example urchade/gliner_small-v2.1",
            ) from None
        self._model = self._model.to(choose_device()[0]).eval()
        self.name = f"gliner:{model_name(folder)}"
        self.languages = card_languages(folder)
        self._asked = sorted(self._given_map or ())

    def _choose_labels(self, gold_labels: Sequence[str]) -> None:
        if not self._given_map:
            self._asked = sorted(set(map(label_in_words, gold_labels)))

    def _own_map(self, labels: Sequence[str] = ()) -> Mapping[str, str]:
        return super()._own_map() or {label_in_words(label): label for label in labels}

    def _predict(self, sentences: Sequence[Sentence]) -> list[list[ScoredMention]]:
        return [self._predict_one(sentence.tokens) for sentence in sentences]

    def _predict_one(self, tokens: Sequence[str]) -> list[ScoredMention]:
        """Predict the mentions of a sentence, alone: what a model rounds must not depend on other sentences."""
        starts, ends, length = {}, {}, 0
        for position, token in enumerate(tokens):
            starts.update(dict.fromkeys(range(length, length + len(token) + 1), position))
            ends.update(dict.fromkeys(range(length, length + len(token) + 1), position + 1))
            length += len(token) + 1
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self._model.predict_entities(" ".join(tokens), self._asked, flat_ner=True, threshold=_THRESHOLD)
        mentions: list[ScoredMention] = []
        taken: set[int] = set()
        for one in sorted(found, key=lambda one: (-one["score"], one["start"], one["end"])):
            # The library splits words by rules of its own: a mention of part of a word counts for the word.
            start, end = starts[one["start"]], ends[max(one["start"], one["end"] - 1)]
            if taken.isdisjoint(range(start, end)):
                taken.update(range(start, end))
                mentions.append(ScoredMention(Mention(one["label"], [(start, end)]), float(one["score"])))
        return sorted(mentions, key=lambda one: one.mention.start)
