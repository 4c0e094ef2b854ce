"""Which languages a translation model is between, and how it is told: a first token, or words before the text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from entaug.errors import MissingExtraError, ParameterError

__all__ = ["Told", "missing_tokenizer", "told"]

_NLLB_CODE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
_MARIAN_CODE = re.compile(r">>(.+)<<")
# T5 was trained with names of languages in its instructions.
_NAMES = {
    "ar": "Arabic",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "hr": "Croatian",
    "hu": "Hungarian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "zh": "Chinese",
}


class Told(NamedTuple):
    """How a model is told what to translate into.

    Args:
        prefix: words before each text.
        token: the token that each translation begins with; it is not part of it.
        starts: whether that token takes the place of the decoder's usual start.
        languages: all tokens that stand for a language; none is part of a text.
    """

    prefix: str = ""
    token: str | None = None
    starts: bool = False
    languages: frozenset[str] = frozenset()


def told(name: str, tokenizer: Any, pair: tuple[str, str] | None, tasks: Any = None, kind: str = "") -> Told:
    """Set the source language of a tokenizer, and find how the model is told the target language.

    Args:
        name: the model's name, for messages.
        tokenizer: of transformers; its source language is set.
        pair: codes of the source and the target language, as the user gave them.
        tasks: the model's ``task_specific_params``.
        kind: the model's type.

    Raises:
        ParameterError: the model needs a pair of languages and none was given, or the other way round, or it does not
            know one of them.
    """
    codes = _codes(tokenizer)
    if codes:
        source, target = _needed(name, pair, codes)
        source, target = _code(source, codes), _code(target, codes)
        tokenizer.src_lang = source
        # MBart-25 starts with the language; all later ones start with another token, and the language comes next.
        starts = type(tokenizer).__name__ == "MBartTokenizer"
        return Told(token=codes[target], starts=starts, languages=frozenset(codes.values()))
    if kind in ("t5", "mt5", "umt5", "longt5") or type(tokenizer).__name__ == "T5Tokenizer":
        return Told(prefix=_instruction(name, pair, tasks or {}))
    targets = {match[1]: code for code in _marian(tokenizer) if (match := _MARIAN_CODE.fullmatch(code))}
    if len(targets) > 1 or (targets and pair):
        _, target = _needed(name, pair, targets)
        return Told(prefix=f"{targets[_code(target, targets)]} ")
    if pair:
        raise ParameterError(
            f"the model {name!r} translates one pair of languages only", remedy=f"leave out @{pair[0]}:{pair[1]}"
        )
    return Told()


def _codes(tokenizer: Any) -> dict[str, str]:
    """The token of each language of a multilingual model: mBART, M2M100, NLLB."""
    by_code = getattr(tokenizer, "lang_code_to_id", None)
    if by_code and hasattr(tokenizer, "get_lang_token"):
        return {code: tokenizer.get_lang_token(code) for code in by_code}
    if by_code:
        return {code: code for code in by_code}
    if not hasattr(tokenizer, "src_lang"):
        return {}
    return {str(token): str(token) for token in tokenizer.extra_special_tokens if _NLLB_CODE.fullmatch(str(token))}


def _marian(tokenizer: Any) -> list[str]:
    return getattr(tokenizer, "supported_language_codes", None) or []


def _needed(name: str, pair: tuple[str, str] | None, known: Iterable[str]) -> tuple[str, str]:
    if pair:
        return pair
    some = sorted(known)
    example = f"{some[0]}:{some[1]}" if len(some) > 1 else f"SRC:{some[0]}"
    raise ParameterError(
        f"the model {name!r} is multilingual",
        remedy=f"say from which language into which: {name}@SRC:TGT, for example {name}@{example}",
    )


def _code(given: str, known: Iterable[str]) -> str:
    """The model's own code for a language: ``en`` is ``en_XX`` to mBART."""
    codes = sorted(known)
    plain = given.replace("-", "_").lower()
    if given in codes:
        return given
    spelled = [code for code in codes if code.lower() == plain]
    shortened = [code for code in codes if code.lower().split("_")[0] == plain]
    for same in (spelled, shortened):
        if len(same) == 1:
            return same[0]
    near = [code for code in codes if code.lower().startswith(plain[:2])]
    near += [code for code in difflib.get_close_matches(plain, codes, n=5, cutoff=0.4) if code not in near]
    shown = codes if len(codes) <= 12 else near[:8] or codes[:8]
    more = f"; {len(codes)} in all" if len(shown) < len(codes) else ""
    raise ParameterError(f"the model does not know the language {given!r}", remedy=f"it knows {', '.join(shown)}{more}")


def _instruction(name: str, pair: tuple[str, str] | None, tasks: dict[str, Any]) -> str:
    """What T5 is told before a text."""
    known = {key.removeprefix("translation_").replace("_to_", ":"): value for key, value in tasks.items()}
    known = {key: value["prefix"] for key, value in known.items() if ":" in key and "prefix" in value}
    source, target = _needed(name, pair, ("en", "de"))
    if known:
        found = known.get(f"{source}:{target}")
        if found is None:
            raise ParameterError(
                f"the model {name!r} was not trained for {source}:{target}",
                remedy=f"it knows {', '.join(sorted(known))}",
            )
        return str(found)
    return f"translate {_NAMES[_code(source, _NAMES)]} to {_NAMES[_code(target, _NAMES)]}: "


def missing_tokenizer(error: ImportError) -> MissingExtraError:
    """What to raise where a tokenizer of transformers asks for a package: FSMT's, the only one, does so in words."""
    if "sacremoses" in str(error):
        return MissingExtraError("sacremoses", "translate")
    return MissingExtraError(error.name or "sentencepiece", "models")
