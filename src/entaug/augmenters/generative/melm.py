"""MELM: words of mentions found anew by a masked language model that has seen their labels (Zhou et al., ACL 2022)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Literal

from entaug.augmenters.base import NO_CANDIDATE, NOT_SEEN, MethodInfo, Rejection, Request
from entaug.augmenters.generative.linearization import as_text, label_token, label_tokens, wrapped
from entaug.augmenters.generative.trainable import TrainableAugmenter
from entaug.backends.protocols import MaskedExample, MaskedLM, TrainableMaskedLM, match_case
from entaug.data import Edit, Sentence
from entaug.errors import ParameterError
from entaug.params import NonNegativeFloat, PositiveInt, PositiveShare, Probability
from entaug.rng import Streams
from entaug.stopwords import StopWords, stop_words

__all__ = ["MaskedEntityLM"]

_NO_FILL = Rejection("no other word fits")


@dataclass(kw_only=True, eq=False)
class MaskedEntityLM(TrainableAugmenter):
    """Replace words of mentions by what a masked language model puts there that has learned the labelled sentences.

    Sentences are linearised: each word of a mention stands between two label tokens, whose meaning starts from the
    words of the label. The model learns to find words of mentions that are hidden, others in each epoch. Then some
    words of a sentence's mentions are hidden, about half, and each is replaced by one of the likeliest, the very
    likeliest left out. Tokens are exchanged one for one, and only whole words of letters come in, so that mentions keep
    their number, their labels and their lengths, and no label token can be left in a sentence. Words that are no words
    of letters (numbers, codes) stay. Several copies are several rounds.

    (The paper hides sub-words; here it is words, because the sub-words put there rarely make one.)

    Args:
        mask_ratio: the mean share of the words of a mention that is hidden; at least one of a sentence is.
        mask_std: by how many words more or fewer, as a standard deviation.
        train_mask_ratio: for learning, the probability of each word of a mention to be hidden.
        min_rank: the rank from which on candidates are taken; the paper leaves the likeliest out.
        max_rank: the rank up to which they are.
        stop_words: a language code; its stop words only come in for stop words (a path to a word list works too; none
            for all).
        masked_lm: a `TrainableMaskedLM`, or the name of one.
        preset: ``"starter"``: our masked language model on MPNet, six epochs at most; ``"paper"``: XLM-R-base, twenty
            epochs at 1e-5. It settles `masked_lm`, `epochs`, `batch` and `rate` unless they are given.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> gold = [Sentence("Ada sings in Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(3, 4)])])]
        >>> [new] = MaskedEntityLM(mask_ratio=1.0, mask_std=0.0, masked_lm=FakeMaskedLM(["Bo", "Oslo"])).fit(gold).augment(gold)
        >>> new.tokens[1:3], new.iob()
        (('sings', 'in'), ['B-PER', 'O', 'O', 'B-LOC'])
    """

    mask_ratio: Probability = 0.5
    mask_std: NonNegativeFloat = 1.0
    train_mask_ratio: PositiveShare = 0.7
    min_rank: PositiveInt = 2
    max_rank: PositiveInt = 5
    stop_words: StopWords | None = "en"
    masked_lm: MaskedLM | str | None = None
    preset: Literal["starter", "paper"] = "starter"
    masked_lm_: MaskedLM = field(init=False, repr=False)

    presets: ClassVar[dict[str, dict[str, object]]] = {
        "starter": {"masked_lm": "mpnet-mlm", "epochs": 6, "batch_size": 8},
        "paper": {"masked_lm": "FacebookAI/xlm-roberta-base", "epochs": 20, "batch_size": 30, "learning_rate": 1e-5},
    }

    info: ClassVar[MethodInfo] = MethodInfo(
        name="melm",
        long_name="masked-entity-language-modeling",
        summary="words of mentions replaced by what a masked language model puts there that has learned the labels",
        paper="Zhou et al. 2022, MELM: Data Augmentation with Masked Entity Language Modeling for Low-Resource NER",
        keeps_length=True,
        keeps_order=True,
        nested=False,
        discontinuous=False,
        needs_fit=True,
        needs_mentions=True,
        needs=("masked_lm",),
        cost="fine-tuning a masked language model (minutes for a hundred sentences on a CPU), then one pass a sentence",
    )

    def _check(self) -> None:
        if self.min_rank > self.max_rank:
            raise ParameterError(f"min_rank must not be above max_rank, as {self.min_rank} is above {self.max_rank}")

    def _load(self) -> None:
        super()._load()
        if not isinstance(self.masked_lm_, TrainableMaskedLM):
            raise ParameterError(
                f"the masked language model {self.masked_lm_.name} cannot learn", remedy="use mpnet-mlm"
            )

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        gold = sorted((s for s in corpus if s.mentions), key=lambda s: s.fingerprint())
        gold = list({s.fingerprint(): s for s in gold}.values())
        labels = {mention.label for s in gold for mention in s.mentions}
        self.markers_ = label_tokens(labels)
        streams = Streams(self.seed, f"{self.info.name} learning")

        def texts(epoch: int) -> list[MaskedExample]:
            return [self._blanked(s, streams.stream(s.fingerprint().hex(), epoch + 1)) for s in gold]

        model = self.masked_lm_
        assert isinstance(model, TrainableMaskedLM)
        told = ([s.fingerprint() for s in gold], self.train_mask_ratio)
        self.learned_: MaskedLM = self._taught(model, texts, told, self.markers_) if gold else model

    def _blanked(self, sentence: Sentence, rng: Random) -> MaskedExample:
        """A linearised sentence with some words of mentions hidden, one at least."""
        inside = [i for i, free in enumerate(sentence.outside_mask()) if not free]
        hidden = {i for i in inside if rng.random() < self.train_mask_ratio} or {rng.choice(inside)}
        stretches: list[tuple[str, bool]] = []
        shown: list[str] = []
        for i, parts in enumerate(wrapped(sentence)):
            if i not in hidden:
                shown += parts
                continue
            before, token, after = parts
            stretches += [(self._text([*shown, before], first=not stretches), False), (f" {token}", True)]
            shown = [after]
        return [*stretches, (self._text(shown, first=not stretches), False)]

    def _text(self, parts: Sequence[str], *, first: bool) -> str:
        return ("" if first else " ") + as_text(parts, self.markers_)

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, asked: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        known = [all(label_token(f"B-{m.label}") in self.markers_ for m in one.sentence.mentions) for one in asked]
        places = [self._places(one.sentence, one.rng) if has else [] for one, has in zip(asked, known, strict=True)]
        work = [i for i, some in enumerate(places) if some]
        texts = [self._gapped(asked[i].sentence, places[i]) for i in work]
        answers = self.learned_.fill(texts, self.max_rank + 1)
        results: list[Sentence | Rejection] = [NO_CANDIDATE if has else NOT_SEEN for has in known]
        for i, offered in zip(work, answers, strict=True):
            results[i] = self._filled(asked[i].sentence, places[i], offered, asked[i].rng)
        return results

    def _places(self, sentence: Sentence, rng: Random) -> list[int]:
        """The words that are hidden, some of each mention."""
        chosen: list[int] = []
        able = [[i for i in mention.positions() if sentence.tokens[i].isalpha()] for mention in sentence.mentions]
        for words in able:
            count = min(len(words), max(0, round(rng.gauss(self.mask_ratio * len(words), self.mask_std))))
            chosen += rng.sample(words, count)
        if not chosen and (some := [i for words in able for i in words]):
            chosen = [some[rng.randrange(len(some))]]
        return sorted(chosen)

    def _gapped(self, sentence: Sentence, places: Sequence[int]) -> list[str | None]:
        """A linearised sentence with gaps."""
        gaps = set(places)
        found: list[str | None] = []
        shown: list[str] = []
        for i, parts in enumerate(wrapped(sentence)):
            if i in gaps:
                # What stands between label tokens is spaced from them; the rest as in print.
                before, _, after = parts
                found += [self._text([*shown, before], first=not found) + " ", None]
                shown = [after]
            else:
                shown += parts
        return [*found, self._text(shown, first=not found)]

    def _filled(
        self, sentence: Sentence, places: Sequence[int], offered: Sequence[Sequence[tuple[str, float]]], rng: Random
    ) -> Sentence | Rejection:
        edits = []
        tokens = list(sentence.tokens)
        for place, candidates in zip(places, offered, strict=False):
            old = sentence.tokens[place]
            # What stands there or beside it already is nothing new, and a word like "of" is rarely a name.
            barred = {token.lower() for token in tokens[max(0, place - 1) : place + 2]}
            barred |= set() if old.lower() in stop_words(self.stop_words) else stop_words(self.stop_words)
            words = [word for word, _ in candidates[self.min_rank - 1 : self.max_rank] if word.lower() not in barred]
            if words:
                tokens[place] = words[rng.randrange(len(words))]
                edits.append(Edit(place, place + 1, tuple(match_case([tokens[place]], old))))
        return sentence.edit(edits) if edits else _NO_FILL
