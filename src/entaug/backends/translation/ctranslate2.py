"""Translation with models converted for CTranslate2, which runs them fast and quantised on CPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ctranslate2

from entaug.backends.compute import compute_settings
from entaug.backends.models.catalogue import digest
from entaug.backends.translation.base import (
    TargetLanguage,
    TextPart,
    missing_tokenizer_error,
    set_languages,
    translate_in_parts,
)
from entaug.errors import EntaugError, MissingModelError, ParameterError, one_line

_MAX_LENGTH = 512
_WIDTH_STEP = 8
_BUDGET = 2048
_MAX_WORKERS = 8
_CONTENT = (".bin", ".json", ".model", ".spm", ".txt")  # weights, configuration and vocabularies
_TOKENIZER_FILES = "tokenizer_config.json and the tokenizer's other files"


class _Tokenizer(NamedTuple):
    """Tokenizer: text to tokens and back."""

    encode: Callable[[Sequence[str]], list[list[str]]]
    decode: Callable[[list[str]], str]
    max_length: int
    target: TargetLanguage


class CTranslate2Translator:
    """A folder with a converted model and its tokenizer, as a `entaug.backends.protocols.Translator`."""

    # Beam search only: CTranslate2 samples from the random streams of its threads, so draws cannot be reproduced. A
    # text longer than the model takes is translated in parts (`num_split` counts such texts).

    can_sample = False

    def __init__(
        self, name: str | Path, pair: tuple[str, str] | None = None, *, num_beams: int = 4, device: str | None = None
    ) -> None:
        folder = Path(name)
        self._tokenizer = _load_tokenizer(folder, pair)
        device = device or compute_settings().device or "auto"
        try:
            self._model: Any = ctranslate2.Translator(str(folder), device=device, **_threads(device))
        except (RuntimeError, ValueError) as error:
            raise MissingModelError(
                f"cannot be loaded ({one_line(error)})",
                path=str(folder),
                remedy="convert it anew, or give another device",
            ) from None
        self.num_beams = num_beams
        self.name = (
            f"{folder.resolve().name}@{digest(sorted(file for file in folder.iterdir() if file.suffix in _CONTENT))}"
        )
        if pair:
            self.name += f"@{pair[0]}:{pair[1]}"
        self.num_split = 0

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        """See `entaug.backends.protocols.Translator.translate`; seeds are ignored."""
        del seeds
        tokenizer = self._tokenizer
        translations, num_split = translate_in_parts(
            texts, None, lambda some: list(map(len, tokenizer.encode(some))), tokenizer.max_length, self._translate
        )
        self.num_split += num_split
        return translations

    def _translate(self, parts: list[TextPart]) -> list[str]:
        tokenizer = self._tokenizer
        rows = tokenizer.encode([part.text for part in parts])
        by_width: dict[int, list[int]] = {}
        for i, row in enumerate(rows):
            by_width.setdefault(-(-len(row) // _WIDTH_STEP) * _WIDTH_STEP, []).append(i)
        # All batches are submitted before any is waited for, so that workers never idle.
        submitted = [
            (batch, self._submit([rows[i] for i in batch], width)) for width, batch in sorted(by_width.items())
        ]
        translations = [""] * len(parts)
        for batch, results in submitted:
            for i, result in zip(batch, results, strict=True):
                try:
                    tokens = result.result().hypotheses[0]
                except (RuntimeError, ValueError) as error:
                    raise EntaugError(
                        f"CTranslate2 failed ({one_line(error)})", remedy="convert the model anew"
                    ) from None
                words = [token for token in tokens if token not in tokenizer.target.language_tokens]
                translations[i] = " ".join(tokenizer.decode(words).split())
        return translations

    def _submit(self, rows: list[list[str]], width: int) -> list[Any]:
        tokenizer = self._tokenizer
        results: list[Any] = self._model.translate_batch(
            rows,
            target_prefix=None if tokenizer.target.token is None else [[tokenizer.target.token]] * len(rows),
            beam_size=self.num_beams,
            max_batch_size=max(_BUDGET, width),
            batch_type="tokens",
            max_input_length=0,
            # The same limit for all texts of a width, so that it depends on the text alone; never more than the
            # positions.
            max_decoding_length=min(2 * width + 20, tokenizer.max_length),
            asynchronous=True,
        )
        return results


def _threads(device: str) -> dict[str, int]:
    """Workers with a batch each: threads that share one wait for each other at every step."""
    if device == "cuda" or (device == "auto" and ctranslate2.get_cuda_device_count()):
        return {}
    cores = os.cpu_count() or 1
    workers = min(cores, _MAX_WORKERS)
    return {"inter_threads": workers, "intra_threads": cores // workers}


def _load_tokenizer(folder: Path, pair: tuple[str, str] | None) -> _Tokenizer:
    if (folder / "tokenizer_config.json").is_file():
        return _transformers_tokenizer(folder, pair)
    return _sentencepiece_tokenizer(folder, pair)


def _transformers_tokenizer(folder: Path, pair: tuple[str, str] | None) -> _Tokenizer:
    # Imported here, as models with SentencePiece alone need neither transformers nor torch.
    from entaug.backends.transformers.base import load_tokenizer

    try:
        tokenizer = load_tokenizer(folder)
    except ImportError as error:
        raise missing_tokenizer_error(error) from None
    target = set_languages(str(folder), tokenizer, pair)

    def encode(texts: Sequence[str]) -> list[list[str]]:
        if not texts:
            return []
        rows = tokenizer([target.prefix + text for text in texts], split_special_tokens=True, verbose=False)[
            "input_ids"
        ]
        return [tokenizer.convert_ids_to_tokens(row) for row in rows]

    def decode(tokens: list[str]) -> str:
        return str(tokenizer.decode(tokenizer.convert_tokens_to_ids(tokens), skip_special_tokens=True))

    return _Tokenizer(encode, decode, min(_MAX_LENGTH, int(tokenizer.model_max_length)), target)


def _sentencepiece_tokenizer(folder: Path, pair: tuple[str, str] | None) -> _Tokenizer:
    files = sorted([*folder.glob("*.spm"), *folder.glob("*.model")])
    both = [folder / "source.spm", folder / "target.spm"]
    if len(files) == 1:
        both = files * 2
    elif not all(file in files for file in both):
        raise MissingModelError(
            "holds neither a tokenizer of transformers nor one model of SentencePiece or source.spm and target.spm",
            path=str(folder),
            remedy=f"copy {_TOKENIZER_FILES} from the model that was converted",
        )
    if pair:
        raise ParameterError(
            f"{str(folder)!r} lacks the list of its languages",
            remedy=f"leave out the languages, or copy {_TOKENIZER_FILES} into it",
        )
    import sentencepiece

    try:
        source, target = (sentencepiece.SentencePieceProcessor(model_file=str(file)) for file in both)
    except (OSError, RuntimeError) as error:
        raise MissingModelError(
            f"is no model of SentencePiece ({one_line(error)})", path=str(folder), remedy="copy it anew"
        ) from None

    def encode(texts: Sequence[str]) -> list[list[str]]:
        rows: list[list[str]] = source.encode(list(texts), out_type=str)
        return rows

    return _Tokenizer(encode, lambda tokens: str(target.decode(tokens)), _MAX_LENGTH, TargetLanguage())
