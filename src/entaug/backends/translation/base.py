"""What all translators share: splitting long texts, chains, and the languages of multilingual models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from entaug.backends.protocols import Translator
from entaug.core.languages import LANGUAGE_NAMES
from entaug.errors import ParameterError

# Where to split, the best place first: after a sentence, after a clause, between words.
_BOUNDARIES = (
    re.compile(r"(?<=[.!?…。！？])\s+|(?<=[.!?…][\"'”’»)\]])\s+"),  # noqa: RUF001
    re.compile(r"(?<=[;:,–—])\s+"),  # noqa: RUF001
    re.compile(r"\s+"),
)
_NLLB_CODE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
_MARIAN_CODE = re.compile(r">>(.+)<<")


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
        translated = list(texts)
        for translator in self.translators:
            translated = translator.translate(translated, seeds)
        return translated


class TextPart(NamedTuple):
    """A text, or a part of one, that is translated at once."""

    text: str
    seed: int | None
    number: int


def translate_in_parts(
    texts: Sequence[str],
    seeds: Sequence[int] | None,
    lengths: Callable[[Sequence[str]], Sequence[int]],
    max_length: int,
    translate: Callable[[list[TextPart]], Sequence[str]],
) -> list[str]:
    """Translate each distinct text once, and those that are too long in parts."""
    # White space counts as one space; a blank text is returned unchanged.
    requests = [(" ".join(text.split()), seeds[i] if seeds else None) for i, text in enumerate(texts)]
    distinct = list(dict.fromkeys(text for text, _ in requests if text))
    pieces_of = {
        text: [text] if length <= max_length else split_text(text, lambda part: lengths([part])[0] <= max_length)
        for text, length in zip(distinct, lengths(distinct), strict=True)
    }
    parts = [
        TextPart(piece, seed, number)
        for text, seed in dict.fromkeys(requests)
        if text
        for number, piece in enumerate(pieces_of[text])
    ]
    translation_of = dict(zip(parts, translate(parts) if parts else (), strict=True))
    translations = []
    for original, (text, seed) in zip(texts, requests, strict=True):
        pieces = [translation_of[TextPart(piece, seed, n)] for n, piece in enumerate(pieces_of.get(text, ()))]
        translations.append(" ".join(filter(None, pieces)) if text else original)
    return translations


def split_text(text: str, fits: Callable[[str], bool], level: int = 0) -> list[str]:
    """Split a text into as few parts as fit."""
    # A text is split at sentence ends, and pieces are joined again from the left as long as they fit. A sentence that
    # does not fit is split after commas and the like in the same way, then between words, and a word into halves.
    if len(text) < 2 or fits(text):
        return [text]
    if level == len(_BOUNDARIES):
        half = len(text) // 2
        return split_text(text[:half], fits, level) + split_text(text[half:], fits, level)
    parts: list[str] = []
    is_extensible = False
    for piece in filter(None, _BOUNDARIES[level].split(text)):
        if is_extensible and fits(f"{parts[-1]} {piece}"):
            parts[-1] += f" {piece}"
            continue
        smaller = [piece] if fits(piece) else split_text(piece, fits, level + 1)
        parts += smaller
        is_extensible = len(smaller) == 1
    return parts


class TargetLanguage(NamedTuple):
    """Ways to give a model the target language."""

    prefix: str = ""
    token: str | None = None
    is_start: bool = False
    language_tokens: frozenset[str] = frozenset()


def set_languages(
    name: str, tokenizer: Any, pair: tuple[str, str] | None, task_params: Any = None, model_type: str = ""
) -> TargetLanguage:
    """Set the source language of a tokenizer, and find how the model is given the target language."""
    codes = language_tokens(tokenizer)
    if codes:
        source, target = (find_code(code, codes) for code in _required_pair(name, pair, codes))
        tokenizer.src_lang = source
        language_set = frozenset(codes.values())
        return TargetLanguage(token=codes[target], is_start=is_first_token(tokenizer), language_tokens=language_set)
    if model_type in ("t5", "mt5", "umt5", "longt5") or type(tokenizer).__name__ == "T5Tokenizer":
        return TargetLanguage(prefix=_instruction(name, pair, task_params or {}))
    marian = getattr(tokenizer, "supported_language_codes", None) or []
    targets = {match[1]: code for code in marian if (match := _MARIAN_CODE.fullmatch(code))}
    if len(targets) > 1 or (targets and pair):
        _, target = _required_pair(name, pair, targets)
        return TargetLanguage(prefix=f"{targets[find_code(target, targets)]} ")
    if pair:
        raise ParameterError(
            f"the model {name!r} translates one pair of languages only", remedy=f"leave out @{pair[0]}:{pair[1]}"
        )
    return TargetLanguage()


def is_first_token(tokenizer: Any) -> bool:
    """Whether the decoder of a multilingual model starts with the token of the language."""
    return type(tokenizer).__name__.removesuffix("Fast") == "MBartTokenizer"


def language_tokens(tokenizer: Any) -> dict[str, str]:
    """The token of each language of a multilingual model: mBART, M2M100, NLLB."""
    codes = getattr(tokenizer, "lang_code_to_id", None)
    if codes and hasattr(tokenizer, "get_lang_token"):
        return {code: tokenizer.get_lang_token(code) for code in codes}
    if codes:
        return {code: code for code in codes}
    if not hasattr(tokenizer, "src_lang"):
        return {}
    return {str(token): str(token) for token in tokenizer.extra_special_tokens if _NLLB_CODE.fullmatch(str(token))}


def _required_pair(name: str, pair: tuple[str, str] | None, codes: Iterable[str]) -> tuple[str, str]:
    if pair:
        return pair
    known = sorted(codes)
    example = f"{known[0]}:{known[1]}" if len(known) > 1 else f"SRC:{known[0]}"
    raise ParameterError(
        f"the model {name!r} is multilingual",
        remedy=f"give the source and the target language: {name}@SRC:TGT, for example {name}@{example}",
    )


def find_code(given: str, known: Iterable[str]) -> str:
    """The model's own code of a language: ``en`` is ``en_XX`` in mBART."""
    codes = sorted(known)
    plain = given.replace("-", "_").lower()
    if given in codes:
        return given
    spelled_alike = [code for code in codes if code.lower() == plain]
    same_language = [code for code in codes if code.lower().split("_")[0] == plain]
    for matches in (spelled_alike, same_language):
        if len(matches) == 1:
            return matches[0]
    near = [code for code in codes if code.lower().startswith(plain[:2])] or codes
    raise ParameterError(f"the model does not know the language {given!r}", remedy=f"it knows {', '.join(near)}")


def _instruction(name: str, pair: tuple[str, str] | None, task_params: dict[str, Any]) -> str:
    """The instruction of T5 before a text."""
    tasks = {key.removeprefix("translation_").replace("_to_", ":"): value for key, value in task_params.items()}
    prefixes = {key: value["prefix"] for key, value in tasks.items() if ":" in key and "prefix" in value}
    source, target = _required_pair(name, pair, ("en", "de"))
    if not prefixes:
        names = LANGUAGE_NAMES
        return f"translate {names[find_code(source, names)]} to {names[find_code(target, names)]}: "
    if f"{source}:{target}" not in prefixes:
        raise ParameterError(
            f"the model {name!r} was not trained for {source}:{target}",
            remedy=f"it knows {', '.join(sorted(prefixes))}",
        )
    return str(prefixes[f"{source}:{target}"])
