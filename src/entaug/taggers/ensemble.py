"""An ensemble of taggers, whose probabilities are averaged: the teacher of self-training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from entaug import _version
from entaug.backends.config import TrainingProgress
from entaug.backends.soft_labels import TagProbabilities, label_confidence, tags_of
from entaug.config.params import Configurable, PositiveInt, construct, parameters
from entaug.core.data import Sentence
from entaug.errors import ParameterError
from entaug.files.atomic import atomic_folder
from entaug.taggers.base import (
    TAGGERS,
    TaggerTrainingConfig,
    TrainableTagger,
    TrainingHistory,
    create_tagger,
    load_tagger,
    write_config,
)
from entaug.taggers.relations import RelationProbabilities


@dataclass(kw_only=True, eq=False)
class EnsembleTagger(Configurable):
    """Several taggers that differ by the seed of their training; their probabilities are averaged.

    The probabilities are those of tags, or those of relations between words if the taggers are ``"w2ner"``.

    Args:
        member: name of the tagger.
        size: number of taggers; they are trained with the seed of the configuration and those that follow it.
        params: parameters of the taggers.
        training: hyperparameters by name (the fields of `TaggerTrainingConfig`) for `fit` without a configuration.

    Attributes:
        members_: the trained taggers, set by `fit`.
    """

    name: ClassVar[str] = "ensemble"

    member: str = "linear"
    size: PositiveInt = 3
    params: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    members_: list[Any] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.member == self.name:
            raise ParameterError("an ensemble cannot consist of ensembles", parameter="member")
        if not getattr(TAGGERS[self.member], "gives_probabilities", True):
            raise ParameterError(
                f"an ensemble averages probabilities of tags or relations, and {self.member} gives none",
                parameter="member",
                remedy="use linear, bilstm-crf or w2ner",
            )
        self._new_member()
        self._training_config()

    @classmethod
    def of(cls, members: Iterable[TrainableTagger]) -> Self:
        """An ensemble of taggers that are trained already."""
        members = list(members)
        ensemble = cls(size=len(members))
        ensemble.members_ = members
        return ensemble

    @property
    def labels_(self) -> list[str]:
        """The labels of the mentions."""
        return sorted({label for member in self.members_ for label in member.labels_})

    @property
    def history_(self) -> TrainingHistory:
        """The course of the training of all taggers, one after the other."""
        histories = [member.history_ for member in self.members_]
        losses, dev_f1 = ([x for one in histories for x in getattr(one, name)] for name in ("losses", "dev_f1"))
        return TrainingHistory(sum(history.steps for history in histories), losses, dev_f1)

    @property
    def typical_member(self) -> TrainableTagger:
        """One of the taggers, or an untrained one like them."""
        member: TrainableTagger = self.members_[0] if self.members_ else self._new_member()
        return member

    def _new_member(self) -> TrainableTagger:
        return create_tagger(self.member, **self.params)

    def _training_config(self) -> TaggerTrainingConfig:
        return construct(TaggerTrainingConfig, "the training of an ensemble", self.training)

    def check_requirements(self) -> None:
        self.typical_member.check_requirements()

    def get_params(self) -> dict[str, Any]:
        """The parameters by name; they create the same ensemble."""
        return {parameter.name: getattr(self, parameter.name) for parameter in parameters(EnsembleTagger)}

    def fit(
        self,
        train: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        config: TaggerTrainingConfig | None = None,
        progress: TrainingProgress | None = None,
        augmented: Iterable[Sentence] = (),
    ) -> Self:
        config = config or self._training_config()
        train, augmented, dev = list(train), list(augmented), None if dev is None else list(dev)
        self.members_ = []
        members: list[TrainableTagger] = []
        for number in range(self.size):

            def share(step: int, total: int, loss: float, before: int = number) -> None:
                if progress is not None:
                    progress(before * total + step, self.size * total, loss)

            member_config = replace(config, seed=config.seed + number)
            members.append(self._new_member().fit(train, dev, member_config, share, augmented))
        self.members_ = members
        return self

    def tag_probabilities(self, sentences: Iterable[Sentence]) -> list[TagProbabilities]:
        self._check_fitted()
        sentences = list(sentences)
        names = tags_of(self.labels_)
        by_member = [member.tag_probabilities(sentences) for member in self.members_]
        return [
            TagProbabilities(names, np.mean([one.aligned(names) for one in several], axis=0))
            for several in zip(*by_member, strict=True)
        ]

    def relation_probabilities(self, sentences: Iterable[Sentence]) -> list[RelationProbabilities]:
        self._check_fitted()
        if not self._has_relations:
            raise ParameterError("taggers of flat mentions have no relations", remedy="use tag_probabilities")
        sentences = list(sentences)
        by_member = [member.relation_probabilities(sentences) for member in self.members_]
        return [RelationProbabilities.mean(several) for several in zip(*by_member, strict=True)]

    @property
    def _has_relations(self) -> bool:
        return all(hasattr(member, "relation_probabilities") for member in self.members_)

    def predict(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        self._check_fitted()
        sentences = list(sentences)
        compute: Any = self.relation_probabilities if self._has_relations else self.tag_probabilities
        return [
            sentence.with_(mentions=probabilities.mentions())
            for sentence, probabilities in zip(sentences, compute(sentences), strict=True)
        ]

    def confidences(self, sentences: Iterable[Sentence]) -> list[float]:
        sentences = list(sentences)
        return list(map(label_confidence, sentences, self.tag_probabilities(sentences)))

    def _check_fitted(self) -> None:
        if not self.members_:
            raise ParameterError("this ensemble is not trained", remedy="call fit, or use load_tagger")

    def save(self, folder: str | Path) -> None:
        self._check_fitted()
        with atomic_folder(Path(folder)) as new:
            for number, member in enumerate(self.members_, start=1):
                member.save(new / f"member-{number}")
            params = {**self.get_params(), "params": dict(self.params), "training": dict(self.training)}
            config = {"tagger": self.name, "params": params, "version": _version.__version__}
            write_config(new, config)

    def restore(self, folder: Path) -> Self:
        self.members_ = [load_tagger(folder / f"member-{number}") for number in range(1, self.size + 1)]
        return self
