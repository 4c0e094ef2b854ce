"""A tagger by its text form, with parameters of its own and of its training: ``linear:encoder=mpnet;epochs=20``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from entaug.backends.config import TrainingProgress
from entaug.config.params import construct, parameters
from entaug.core.data import Sentence
from entaug.errors import ParameterError, UnknownNameError
from entaug.taggers.base import TAGGERS, TaggerTrainingConfig, TrainableTagger, create_tagger

__all__ = ["ConfiguredTagger", "configure_tagger"]


class ConfiguredTagger:
    """A tagger that is trained with hyperparameters of its own; all else is that of the tagger."""

    def __init__(self, name: str, tagger: TrainableTagger, config: TaggerTrainingConfig) -> None:
        self.name, self.tagger, self.config = name, tagger, config

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the tagger."""
        if name == "tagger":  # in a copy that is not complete yet
            raise AttributeError(name)
        return getattr(self.tagger, name)

    def fit(
        self,
        train: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        config: TaggerTrainingConfig | None = None,
        progress: TrainingProgress | None = None,
        augmented: Iterable[Sentence] = (),
    ) -> Self:
        """See `TrainableTagger.fit`."""
        self.tagger.fit(train, dev, config or self.config, progress, augmented)
        return self


def configure_tagger(name: str, text: str) -> ConfiguredTagger:
    """Create a tagger from its text form."""
    own = {parameter.name: parameter for parameter in parameters(TAGGERS[name])}
    of_training = {parameter.name: parameter for parameter in parameters(TaggerTrainingConfig)}
    values: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for assignment in filter(None, map(str.strip, text.split(";"))):
        key, equals, value = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise ParameterError(
                f"{name}: {assignment!r} is not of the form PARAMETER=VALUE",
                parameter="tagger",
                remedy=f"for example {name}:epochs=20;learning_rate=5e-5",
            )
        if key not in own and key not in of_training:
            raise UnknownNameError(f"parameter of {name}:", key, [*own, *of_training])
        if key in own:
            values[0][key] = own[key].parse(value)
        else:
            values[1][key] = of_training[key].parse(value)
    config = construct(TaggerTrainingConfig, f"the training of {name}", values[1])
    return ConfiguredTagger(f"{name}:{text}", create_tagger(name, **values[0]), config)
