"""Augmentation while training: sentences drawn anew each epoch, as Dai and Adel (2020) do for LwTR, SR, MR and SiS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from entaug.augmenters.base import Augmenter, Rejection, Request
from entaug.data import Sentence
from entaug.errors import ParameterError
from entaug.rng import Streams

__all__ = ["OnlineDataset"]


class OnlineDataset(Sequence[Sentence]):
    """Gold sentences followed by augmented ones that differ from epoch to epoch.

    It has a length and takes indices, so a torch ``DataLoader`` takes it as it is. Its length never changes: where
    no new version of a sentence can be drawn, the gold sentence itself stands in. Draws depend on (seed, sentence,
    epoch, copy) alone, so workers, shuffling and restarts do not change them.

    Args:
        corpus: the gold training sentences.
        augmenter: fitted, if it needs to be; its ``copies`` augmented sentences stand for each gold one.
        keep_gold: whether the gold sentences are in it too.
        epoch: the epoch to begin with.

    Example:
        >>> from entaug.augmenters.shuffling import ShuffleWithinSegments
        >>> data = OnlineDataset([Sentence("so many words to shuffle".split())], ShuffleWithinSegments(p=1.0))
        >>> epochs = [data.set_epoch(e)[1].tokens for e in range(5)]
        >>> len(data), len(set(epochs)) > 1, data.set_epoch(3)[1].tokens == epochs[3]
        (2, True, True)
    """

    def __init__(
        self, corpus: Sequence[Sentence], augmenter: Augmenter, *, keep_gold: bool = True, epoch: int = 0
    ) -> None:
        if not isinstance(augmenter, Augmenter):
            raise ParameterError(
                f"an augmenter is wanted, not {augmenter!r}", remedy="make one: entaug.create_augmenter(name)"
            )
        if not isinstance(corpus, Sequence):
            raise ParameterError("the corpus must lie in memory", remedy="read it with entaug.read, not entaug.stream")
        if not augmenter.info.draws:
            name = augmenter.info.name
            raise ParameterError(
                f"{name} makes the same in every epoch",
                remedy="augment once, before training: augmenter.augment(corpus)",
            )
        augmenter.run()  # checks parameters, fitting and backends before the first epoch
        self._corpus = corpus
        self._augmenter = augmenter
        self._streams = Streams(augmenter.seed, augmenter.info.name)
        self._gold = len(corpus) if keep_gold else 0
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int) -> OnlineDataset:
        """Draw from this epoch from now on; to be called before each epoch, as with distributed samplers.

        Returns:
            The dataset itself.
        """
        if type(epoch) is not int or epoch < 0:
            raise ParameterError(f"epoch must be a whole number of at least 0, not {epoch!r}")
        self.epoch = epoch
        return self

    def __len__(self) -> int:
        """Gold sentences (if kept) and augmented ones."""
        return self._gold + len(self._corpus) * self._augmenter.copies

    @overload
    def __getitem__(self, index: int) -> Sentence: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sentence]: ...
    def __getitem__(self, index: int | slice) -> Sentence | list[Sentence]:
        """The sentence at a position, in the present epoch."""
        if isinstance(index, slice):
            return self.__getitems__(list(range(*index.indices(len(self)))))
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Sentence]:
        """The sentences at some positions, drawn together: a ``DataLoader`` asks for its batches this way."""
        for index in indices:
            if not -len(self) <= index < len(self):
                raise IndexError(index)
        places = [index % len(self) for index in indices]
        wanted = [divmod(place - self._gold, len(self._corpus)) for place in places if place >= self._gold]
        drawn = iter(self._draw([(self._corpus[i], copy) for copy, i in wanted]))
        return [self._corpus[place] if place < self._gold else next(drawn) for place in places]

    def __iter__(self) -> Iterator[Sentence]:
        """All sentences of the present epoch."""
        window = self._augmenter._window  # noqa: SLF001
        for start in range(0, len(self), window):
            yield from self[start : start + window]

    def _draw(self, wanted: Sequence[tuple[Sentence, int]]) -> list[Sentence]:
        """New versions of sentences, drawn in one call of the method; the sentence itself where there is none."""
        found = [source for source, _ in wanted]
        copies = self._augmenter.copies
        pending = []
        for place, (source, copy) in enumerate(wanted):
            number = self.epoch * copies + copy
            pending.append((place, Request(source, self._streams.stream(f"{source.key}@epoch", number), number + 1)))
        for attempt in range(self._augmenter.max_attempts):
            if not pending:
                break
            results = self._augmenter._rewrite_many([one._replace(attempt=attempt) for _, one in pending])  # noqa: SLF001
            results = self._augmenter.judged(results, [one.sentence for _, one in pending])
            again = []
            for one, result in zip(pending, results, strict=True):
                place, (source, *_) = one
                if isinstance(result, Rejection):
                    if not result.final:
                        again.append(one)
                elif (result.tokens, result.mentions) == (source.tokens, source.mentions):
                    again.append(one)
                else:
                    found[place] = result
            pending = again
        return found
