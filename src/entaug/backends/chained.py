"""Translation through several languages."""

from __future__ import annotations

from collections.abc import Sequence

from entaug.backends.protocols import Translator
from entaug.errors import ParameterError

__all__ = ["ChainedTranslator"]


class ChainedTranslator:
    """Several translators one after the other, for example from English into German and on into French."""

    def __init__(self, translators: Sequence[Translator]) -> None:
        if not translators:
            raise ParameterError("a chain needs at least one translator")
        self.translators = tuple(translators)

    @property
    def name(self) -> str:
        """The names of the translators, joined by ``>``."""
        return ">".join(translator.name for translator in self.translators)

    @property
    def can_sample(self) -> bool:
        """Whether one of the translators can sample."""
        return any(translator.can_sample for translator in self.translators)

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        """See `entaug.backends.protocols.Translator.translate`."""
        translated = list(texts)
        for translator in self.translators:
            translated = translator.translate(translated, seeds)
        return translated
