"""MELM: words of mentions replaced by a masked language model with label tokens (Zhou et al., ACL 2022)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from random import Random
from typing import ClassVar, Literal

from entaug.backends.protocols import MaskedExample, MaskedLM, MaskedText, TrainableMaskedLM
from entaug.config.params import NonNegativeFloat, PositiveInt, PositiveShare, Probability
from entaug.config.presets import read_presets
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Mention
from entaug.core.rng import Streams
from entaug.core.words import StopWords, is_word, may_replace, stop_words
from entaug.errors import ParameterError
from entaug.filters.label_guard import is_beginning, name_evidence
from entaug.methods.base import NO_CANDIDATE, NOT_SEEN, MethodInfo, Rejection, Request
from entaug.methods.shared.generated_text import distinct_sentences, join_parts, label_token, label_tokens, wrap_tokens
from entaug.methods.shared.generative import TrainableAugmenter

_NO_FILL = Rejection("no suitable other word")
_DOUBTFUL = Rejection("a changed mention is not known to be one of its type")
_MORE = 10  # multiple of `max_rank` that is predicted if words must fit the type
_KEPT = 5000  # texts whose predictions are kept, some kilobytes each


@dataclass(kw_only=True, eq=False)
class MaskedEntityLM(TrainableAugmenter):
    """Replace words of mentions by predictions of a masked language model trained on the labelled sentences.

    Sentences are linearized: each word of a mention is surrounded by two label tokens, whose embeddings are initialised
    from the words of the label. The model is trained to predict masked words of mentions, different ones in each epoch.
    For augmentation, about half of the words of a sentence's mentions are masked, and each is replaced by one of the
    most likely predictions except the first. Words are replaced by whole alphabetic words only.
    Mentions therefore keep their number, labels and lengths, and no label token remains in a sentence. Words with
    other characters than letters (numbers, codes) are not replaced. Several copies correspond to several rounds of the
    paper.

    With the label guard a changed mention must be one of its type as a whole. The words of a mention are replaced from
    left to right, each in the sight of those before it, by words that mentions of the type have in the same place and
    as the same part of speech (a head by a head), or a name by a name, and that no other mention of the sentence has. A
    changed mention of several words must be a mention of the corpus, or a recogniser must see it as it sees most
    mentions of the type; otherwise it keeps its words.

    (The paper masks sub-words. Here whole words are masked, because predicted sub-words rarely form a word.)

    Args:
        mask_ratio: the mean share of the words of a mention that are masked; at least one per sentence.
        mask_std: the standard deviation of their number, in words.
        train_mask_ratio: for training, the probability of masking each word of a mention.
        min_rank: the rank of the first prediction that is used; the paper skips the most likely one.
        max_rank: the rank of the last prediction that is used.
        stop_words: stop words, which can only replace stop words: a language code, or a path to a word list; none for
            no stop words.
        candidates: see `Augmenter`; sentences that are drawn for each, of which the best is kept.
        masked_lm: a `TrainableMaskedLM` or its name.
        preset: ``"starter"``: MPNet, at most 6 epochs; ``"paper"``: all settings of the paper, among them XLM-R-base,
            20 epochs and a filter (``entaug list methods melm``), unless they are given.

    Example:
        >>> from entaug import Mention
        >>> from entaug.backends.fakes import FakeMaskedLM
        >>> gold = [Sentence("Ada sings in Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(3, 4)])])]
        >>> options = {"mask_ratio": 1.0, "mask_std": 0.0, "candidates": 1, "guard": False}
        >>> method = MaskedEntityLM(masked_lm=FakeMaskedLM(["Bo", "Oslo"]), **options)
        >>> [new] = method.fit(gold).augment(gold)
        >>> new.tokens[1:3], new.iob()
        (('sings', 'in'), ['B-PER', 'O', 'O', 'B-LOC'])
    """

    candidates: PositiveInt = 4
    mask_ratio: Probability = 0.5
    mask_std: NonNegativeFloat = 1.0
    train_mask_ratio: PositiveShare = 0.7
    min_rank: PositiveInt = 2
    max_rank: PositiveInt = 5
    stop_words: StopWords | None = "en"
    masked_lm: MaskedLM | str = "mpnet-mlm"
    epochs: PositiveInt = 6
    preset: Literal["starter", "paper"] = "starter"
    masked_lm_: MaskedLM = field(init=False, repr=False)

    presets = read_presets("melm")

    info: ClassVar[MethodInfo] = MethodInfo(
        name="melm",
        long_name="masked-entity-language-modeling",
        summary="words of mentions replaced by a masked language model trained on the labelled sentences",
        paper="Zhou et al. 2022, MELM: Data Augmentation with Masked Entity Language Modeling for Low-Resource NER",
        keeps_length=True,
        keeps_order=True,
        nested=False,
        discontinuous=False,
        needs_fit=True,
        needs_mentions=True,
        writes_words=True,
        wrong_labels=(3, 30),
        needs=("masked_lm",),
        cost="fine-tuning a masked language model (minutes per hundred sentences on a CPU), then seconds per sentence",
    )

    def _check(self) -> None:
        if self.min_rank > self.max_rank:
            raise ParameterError(f"min_rank must not be above max_rank, but {self.min_rank} is above {self.max_rank}")

    def _load(self) -> None:
        super()._load()
        if not isinstance(self.masked_lm_, TrainableMaskedLM):
            raise ParameterError(
                f"the masked language model {self.masked_lm_.name} cannot be trained", remedy="use mpnet-mlm"
            )

    # --------------------------------------------------------------------------------------------------------- fitting

    def _fit(self, corpus: Iterable[Sentence]) -> None:
        corpus = list(corpus)
        self._name_evidence = name_evidence(self.guard_, corpus)
        gold = distinct_sentences(sentence for sentence in corpus if sentence.mentions)
        self.markers_ = label_tokens(mention.label for sentence in gold for mention in sentence.mentions)
        streams = Streams(self.seed, f"{self.name} learning")

        def texts(epoch: int) -> list[MaskedExample]:
            return [self._training_text(s, streams.stream(s.fingerprint().hex(), epoch + 1)) for s in gold]

        model = self.masked_lm_
        assert isinstance(model, TrainableMaskedLM)
        key = ([s.fingerprint() for s in gold], self.train_mask_ratio)
        self._predicted: dict[tuple[int | str | None, ...], list[list[tuple[str, float]]]] = {}
        self.trained_: MaskedLM = self._train(model, texts, key, self.markers_) if gold else model

    def _training_text(self, sentence: Sentence, rng: Random) -> MaskedExample:
        """Linearize a sentence and mask some words of mentions, at least one."""
        inside = [i for i, outside in enumerate(sentence.outside_mask()) if not outside]
        masked = sorted({i for i in inside if rng.random() < self.train_mask_ratio} or {rng.choice(inside)})
        first, *rest = self._texts_between(sentence, masked)
        parts = [(first, False)]
        for i, text in zip(masked, rest, strict=True):
            parts += [(f" {sentence.tokens[i]}", True), (text, False)]
        return parts

    def _texts_between(self, sentence: Sentence, positions: Collection[int]) -> list[str]:
        """Return the texts of a linearized sentence before, between and after some positions within mentions."""
        texts: list[list[str]] = [[]]
        for i, wrapped in enumerate(wrap_tokens(sentence)):
            if i in positions:
                before, _, after = wrapped
                texts[-1].append(before)
                texts.append([after])
            else:
                texts[-1] += wrapped
        return [" " * bool(n) + join_parts(parts, self.markers_) for n, parts in enumerate(texts)]

    # ------------------------------------------------------------------------------------------------------- augmenting

    def _rewrite_batch(self, requests: Sequence[Request]) -> Sequence[Sentence | Rejection]:
        known = [all(label_token(f"B-{m.label}") in self.markers_ for m in r.sentence.mentions) for r in requests]
        masked = [self._sample_positions(r.sentence, r.rng) if k else [] for r, k in zip(requests, known, strict=True)]
        filled = self._fill(requests, [list(positions) for positions in masked])
        results: list[Sentence | Rejection] = []
        for request, is_known, positions, new in zip(requests, known, masked, filled, strict=True):
            source = request.sentence
            if new.tokens == source.tokens:
                results.append(_NO_FILL if positions else NO_CANDIDATE if is_known else NOT_SEEN)
                continue
            doubtful = [m for m in new.mentions if self.uses_guard and self._is_doubtful(m, new, source)]
            kept = new.edit([Edit(m.start, m.end, source.tokens[m.start : m.end]) for m in doubtful])
            results.append(_DOUBTFUL if kept.tokens == source.tokens else kept)
        return results

    def _fill(self, requests: Sequence[Request], pending: list[list[int]]) -> list[Sentence]:
        """Fill the masked positions: all at once, or with the guard those of a mention one by one, so that they fit."""
        current = [request.sentence for request in requests]
        while unfinished := [i for i, positions in enumerate(pending) if positions]:
            texts = [self._gapped(current[i], pending[i]) for i in unfinished]
            for i, of_sentence in zip(unfinished, self._predict(texts), strict=True):
                positions, pending[i] = pending[i], []
                begun: set[Mention] = set()
                for position, candidates in zip(positions, of_sentence, strict=True):
                    mention = next(m for m in current[i].mentions if m.start <= position < m.end)
                    if self.uses_guard and mention in begun:
                        pending[i].append(position)
                    else:
                        begun.add(mention)
                        current[i] = self._replace(current[i], mention, position, candidates, requests[i].rng)
        return current

    def _predict(self, texts: list[MaskedText]) -> list[list[list[tuple[str, float]]]]:
        """Predictions for each gap of each text; the same few words of a sentence are often masked again."""
        num_predictions = self.max_rank * (_MORE if self.uses_guard else 1) + 1
        predicted, keys = self._predicted, [(num_predictions, *text) for text in texts]
        if len(predicted) > _KEPT:
            predicted.clear()
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in predicted}
        predicted.update(zip(new, self.trained_.fill(list(new.values()), num_predictions), strict=True))
        return [predicted[key] for key in keys]

    def _sample_positions(self, sentence: Sentence, rng: Random) -> list[int]:
        """Sample the positions to mask, some of each mention."""
        sampled: list[int] = []
        candidates = [[i for i in mention.positions() if is_word(sentence.tokens[i])] for mention in sentence.mentions]
        for positions in candidates:
            count = min(len(positions), max(0, round(rng.gauss(self.mask_ratio * len(positions), self.mask_std))))
            sampled += rng.sample(positions, count)
        if not sampled and (all_positions := [i for positions in candidates for i in positions]):
            sampled = [all_positions[rng.randrange(len(all_positions))]]
        return sorted(sampled)

    def _gapped(self, sentence: Sentence, positions: Sequence[int]) -> MaskedText:
        """Return a linearized sentence with gaps at some positions."""
        *before, last = self._texts_between(sentence, positions)
        # Label tokens and words are separated by spaces; the rest is detokenized.
        return [*(part for text in before for part in (text + " ", None)), last]

    def _replace(
        self, sentence: Sentence, mention: Mention, i: int, candidates: Sequence[tuple[str, float]], rng: Random
    ) -> Sentence:
        """Replace a word of a mention by one of the candidates, if one is suitable."""
        stop, tokens, original = stop_words(self.stop_words), sentence.tokens, sentence.tokens[i]
        # Exclude the original, the neighbouring words, and stop words, which are rarely names.
        excluded = {token.lower() for token in tokens[max(0, i - 1) : i + 2]}
        excluded |= set() if original.lower() in stop else stop
        if self.uses_guard:  # words of other mentions as well, which may be filled at the same time
            excluded |= {tokens[j].lower() for mention in sentence.mentions for j in mention.positions()}
            words = tokens[mention.start : mention.end]
            keeps_type = partial(self._name_evidence.keeps_type, words, i - mention.start, label=mention.label)
            candidates = list(islice((c for c in candidates if keeps_type(new=c[0])), self.max_rank))
        in_ranks = candidates[self.min_rank - 1 : self.max_rank]
        fills = [word for word, _ in in_ranks if word.lower() not in excluded and may_replace(word, original)]
        if not fills:
            return sentence
        word = self._name_evidence.cased(fills[rng.randrange(len(fills))], original, is_first=is_beginning(tokens, i))
        return sentence.edit([Edit(i, i + 1, (word,))])

    def _is_doubtful(self, mention: Mention, new: Sentence, source: Sentence) -> bool:
        """Whether neither the corpus nor a recogniser knows a changed mention of several words as one of its type."""
        words, names = new.mention_tokens(mention), self._name_evidence
        return (
            len(words) > 1
            and words != source.tokens[mention.start : mention.end]
            and not names.is_known(words, mention.label)
            and not names.is_recognized(words, mention.label)
        )
