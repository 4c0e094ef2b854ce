"""Online augmentation: new sentences in each epoch, as Dai and Adel (2020) do for LwTR, SR, MR and SiS."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.context import get_spawning_popen
from typing import Any, overload

from entaug.core.corpus import CorpusStream
from entaug.core.data import Sentence
from entaug.core.rng import Streams
from entaug.errors import ParameterError
from entaug.formats.exchange import as_corpus
from entaug.methods.base import Augmenter, Draft, draw


class OnlineDataset(Sequence[Sentence]):
    """Training sentences followed by augmented ones that differ from epoch to epoch.

    It is a map-style dataset for a torch ``DataLoader``. Its length is constant: if no new version of a sentence can be
    generated, the sentence itself is used. The sentences depend only on seed, source, epoch and copy, not on workers,
    shuffling or restarts. Worker processes share the epoch, also those that outlive it (``persistent_workers``).

    Args:
        corpus: the training sentences, in any form that `entaug.formats.as_corpus` takes.
        augmenter: an augmenter, fitted if it needs fitting; it generates ``copies`` sentences for each source.
        keep_gold: whether the training sentences are included.
        epoch: the first epoch.

    Raises:
        ParameterError: the augmenter is not fitted, or has no other sentences for further epochs.

    Example:
        >>> from entaug.methods.shuffling import ShuffleWithinSegments
        >>> data = OnlineDataset([Sentence("so many words to shuffle".split())], ShuffleWithinSegments(p=1.0))
        >>> epochs = [data.set_epoch(e)[1].tokens for e in range(5)]
        >>> len(data), len(set(epochs)) > 1, data.set_epoch(3)[1].tokens == epochs[3]
        (2, True, True)
    """

    def __init__(self, corpus: Iterable[Any], augmenter: Augmenter, *, keep_gold: bool = True, epoch: int = 0) -> None:
        if not isinstance(augmenter, Augmenter):
            raise ParameterError(
                f"expected an augmenter, not {augmenter!r}", remedy="create one: entaug.create_augmenter(name)"
            )
        if isinstance(corpus, (CorpusStream, Iterator)):
            raise ParameterError("the corpus must be in memory", remedy="read it with entaug.read, not entaug.stream")
        if not augmenter.info.draws:
            raise ParameterError(
                f"{augmenter.name} generates the same sentences in every epoch",
                remedy="augment once, before training: augmenter.augment(corpus)",
            )
        if hasattr(augmenter, "unlabelled"):  # a text that is soon at its end
            raise ParameterError(
                f"{augmenter.name} takes each sentence of the unlabelled text once, so it has none for further epochs",
                remedy="augment once, before training: augmenter.augment(corpus)",
            )
        augmenter.check_ready()
        self._corpus = as_corpus(corpus)
        self._augmenter = augmenter
        self._streams = Streams(augmenter.seed, augmenter.name)
        self._gold = len(self._corpus) if keep_gold else 0
        self._epoch: Any = multiprocessing.RawValue("q")
        self.set_epoch(epoch)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state; the epoch is shared with worker processes, and a number for anybody else."""
        if get_spawning_popen() is None:
            return {**vars(self), "_epoch": self.epoch}
        return vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        vars(self).update(state)
        if isinstance(self._epoch, int):
            self._epoch = multiprocessing.RawValue("q", self._epoch)

    @property
    def epoch(self) -> int:
        """The number of the epoch."""
        return int(self._epoch.value)

    def set_epoch(self, epoch: int) -> OnlineDataset:
        """Set the epoch; call it before each epoch, as for distributed samplers.

        Args:
            epoch: the number of the epoch, from 0.

        Returns:
            The dataset itself.

        Raises:
            ParameterError: the number is negative, or 2^63 or more.
        """
        if type(epoch) is not int or not 0 <= epoch < 2**63:
            raise ParameterError(f"epoch must be an integer of at least 0 and below 2^63, not {epoch!r}")
        self._epoch.value = epoch
        return self

    def __len__(self) -> int:
        """Return the number of training sentences (if included) and augmented sentences."""
        return self._gold + len(self._corpus) * self._augmenter.copies

    @overload
    def __getitem__(self, index: int) -> Sentence: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sentence]: ...
    def __getitem__(self, index: int | slice) -> Sentence | list[Sentence]:
        """Return the sentence at a position, in the current epoch."""
        if isinstance(index, slice):
            return self.__getitems__(list(range(*index.indices(len(self)))))
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Sentence]:
        """Return the sentences at some positions, generated together; a ``DataLoader`` fetches batches this way."""
        for index in indices:
            if not -len(self) <= index < len(self):
                raise IndexError(index)
        positions = [index % len(self) for index in indices]
        wanted = [divmod(position - self._gold, len(self._corpus)) for position in positions if position >= self._gold]
        drafts = [self._draft(self._corpus[i], copy) for copy, i in wanted]
        draw(self._augmenter, drafts)
        drawn = (draft.sentence or draft.source for draft in drafts)
        return [self._corpus[position] if position < self._gold else next(drawn) for position in positions]

    def _draft(self, source: Sentence, copy: int) -> Draft:
        number = self.epoch * self._augmenter.copies + copy
        return Draft(
            source,
            self._streams.stream(f"{source.key}@epoch", number),
            number + 1,
            set(),
            self._augmenter.gold_fingerprints,
        )

    def __iter__(self) -> Iterator[Sentence]:
        """Iterate over all sentences of the current epoch."""
        window = self._augmenter.window_size
        for start in range(0, len(self), window):
            yield from self[start : start + window]
