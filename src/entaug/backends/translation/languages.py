"""The languages of a translation model and how it is given the target language: by a first token or an instruction."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from entaug.core.languages import LANGUAGE_NAMES
from entaug.errors import MissingExtraError, ParameterError

__all__ = [
    "TargetLanguage",
    "find_code",
    "is_first_token",
    "language_tokens",
    "missing_tokenizer_error",
    "set_languages",
]

_NLLB_CODE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
_MARIAN_CODE = re.compile(r">>(.+)<<")


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
    near = [code for code in codes if code.lower().startswith(plain[:2])]
    near += [code for code in difflib.get_close_matches(plain, codes, n=5, cutoff=0.4) if code not in near]
    shown = codes if len(codes) <= 12 else near[:8] or codes[:8]
    more = f"; {len(codes)} in all" if len(shown) < len(codes) else ""
    raise ParameterError(f"the model does not know the language {given!r}", remedy=f"it knows {', '.join(shown)}{more}")


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


def missing_tokenizer_error(error: ImportError) -> MissingExtraError:
    """The error for a package that a tokenizer of transformers needs; that of FSMT names it only in its message."""
    if "sacremoses" in str(error):
        return MissingExtraError("sacremoses", "translate")
    return MissingExtraError(error.name or "sentencepiece", "models")
