"""The teacher: taggers trained on the gold sentences, whose probabilities of tags label other sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from annotated_types import Ge

from entaug.backends.language_check import note_on_encoder
from entaug.backends.protocols import Tagger
from entaug.backends.resolve import BACKENDS, Backend, is_alias, resolve
from entaug.config.params import Configurable, PositiveInt, parameters
from entaug.core.data import Sentence
from entaug.errors import ParameterError

_ENSEMBLE = "ensemble"


@dataclass(kw_only=True, eq=False)
class TeacherParameters(Configurable):
    """The parameters of a teacher; a base of components that have one.

    Args:
        tagger: the teacher: a `Tagger`, the name of one, or the folder of a trained one. ``"ensemble"`` trains several
            taggers that differ by their seed, and averages their probabilities.
        ensemble_size: the number of taggers of the ensemble.
        ensemble_member: the kind of these taggers, see ``entaug train --help``.
        ensemble_encoder: their pretrained encoder: an alias of the starter set, a folder, or a name on the hub; none
            for the default of the tagger.
        ensemble_steps: the number of optimizer steps of each; none for 50 times the square root of the number of
            training sentences, at least 300.
        ensemble_batch_size: the number of sentences of a step.

    Example:
        >>> TeacherParameters(ensemble_size=5, ensemble_encoder="mpnet").create_teacher(seed=1).tagger.size
        5
    """

    tagger: Annotated[Tagger | str, Backend("tagger")] = _ENSEMBLE
    ensemble_size: Annotated[int, Ge(2)] = 3
    ensemble_member: str = "linear"
    ensemble_encoder: str | None = None
    ensemble_steps: PositiveInt | None = None
    ensemble_batch_size: PositiveInt = 8

    def create_teacher(self, seed: int) -> Teacher:
        """Create the teacher, which is not trained yet."""
        registry = BACKENDS["tagger"].registry
        is_new = isinstance(self.tagger, str) and is_alias("tagger", self.tagger)
        if not is_new or self.tagger != _ENSEMBLE:
            options = [p for p in parameters(TeacherParameters) if p.name.startswith(f"{_ENSEMBLE}_")]
            if given := [p.name for p in options if getattr(self, p.name) != p.default]:
                raise ParameterError(
                    f"the tagger {self.tagger} has no `{given[0]}`, which is a parameter of an ensemble",
                    remedy="pass `tagger=ensemble`, or a tagger with its parameters, as in `tagger=linear:steps=100`",
                )
            is_folder = isinstance(self.tagger, str) and not is_new
            return Teacher(resolve("tagger", self.tagger), is_trained=is_folder)
        tagger = registry[_ENSEMBLE](
            member=self.ensemble_member,
            size=self.ensemble_size,
            params={} if self.ensemble_encoder is None else {"encoder": self.ensemble_encoder},
            training={"seed": seed, "batch_size": self.ensemble_batch_size},
        )
        tagger.check_requirements()
        return Teacher(tagger, self.ensemble_steps, is_ensemble=True)


@dataclass(eq=False)
class Teacher:
    """A tagger that labels sentences."""

    tagger: Any
    steps: int | None = None
    is_ensemble: bool = field(default=False, kw_only=True)
    is_trained: bool = field(default=False, kw_only=True)
    notes: list[str] = field(default_factory=list, init=False)

    @property
    def name(self) -> str:
        """The name of the tagger, for provenance."""
        return str(getattr(self.tagger, "name", type(self.tagger).__name__))

    def fit(
        self,
        gold: Sequence[Sentence],
        augmented: Iterable[Sentence] = (),
        progress: Callable[[int, int, float], None] | None = None,
    ) -> Teacher:
        """Train the tagger from scratch."""
        augmented = list(augmented)
        if self.is_trained and not augmented:
            return self
        self.notes = note_on_encoder(self.tagger, gold)
        if self.is_ensemble:
            from entaug.taggers.base import default_steps

            steps = self.steps or default_steps(len(gold))
            schedule = "staged" if augmented else "shuffled"
            training = {**self.tagger.training, "steps": steps, "schedule": schedule}
            self.tagger = replace(self.tagger, training=training)
        options: dict[str, Any] = {} if progress is None else {"progress": progress}
        if augmented:
            options["augmented"] = augmented
        self.tagger = self.tagger.fit(gold, **options)
        return self
