"""Translation with models that were converted for CTranslate2, which runs them fast and quantised on processors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from entaug.backends.translation.languages import Told, missing_tokenizer, told
from entaug.backends.translation.splitting import Part, in_parts
from entaug.errors import EntaugError, MissingExtraError, MissingModelError, ParameterError
from entaug.models.digests import digest

try:
    import ctranslate2
except ImportError as error:
    raise MissingExtraError(error.name or "ctranslate2", "translate") from None

__all__ = ["CTranslate2Translator"]

_LONGEST = 512
_STEP = 8
_BUDGET = 2048
_WORKERS = 8
_COPY = "tokenizer_config.json and the tokenizer's other files"


class _SubWords(NamedTuple):
    """How text becomes sub-words and back.

    Args:
        split: the sub-words of each text, special ones included.
        join: the text of sub-words.
        room: how many sub-words a text may have.
        told: how the model is told its languages.
    """

    split: Callable[[Sequence[str]], list[list[str]]]
    join: Callable[[list[str]], str]
    room: int
    told: Told


class CTranslate2Translator:
    """A folder with a converted model and its tokenizer, as a `entaug.backends.protocols.Translator`.

    Beam search only: CTranslate2 draws from streams of its threads, so draws could not be had again. A text longer than
    the model can take is translated in parts (see `entaug.backends.translation.splitting`; `shortened` counts such texts).

    Args:
        name: a folder as ``ct2-transformers-converter --copy_files`` and its like make it: ``model.bin``, and either
            the files of a tokenizer of transformers or the models of SentencePiece (``source.spm`` and ``target.spm``,
            or one for both).
        pair: codes of the source and the target language, for a model of several.
        beams: how many candidates the search keeps.
        device: ``"cpu"`` or ``"cuda"``; by default ``$ENTAUG_DEVICE``, else CUDA where there is.

    Raises:
        MissingModelError: the folder lacks something, or is damaged.
        ParameterError: the pair of languages is one that it cannot have.
    """

    samples = False

    def __init__(
        self, name: str | Path, pair: tuple[str, str] | None = None, *, beams: int = 4, device: str | None = None
    ) -> None:
        folder = Path(name)
        self._sub_words = _sub_words(folder, pair)
        device = device or os.environ.get("ENTAUG_DEVICE") or "auto"
        try:
            self._model: Any = ctranslate2.Translator(str(folder), device=device, **_threads(device))
        except (RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise MissingModelError(
                f"cannot be loaded ({reason})", path=str(folder), remedy="convert it anew, or give another device"
            ) from None
        self.beams = beams
        self.name = f"{folder.resolve().name}@{digest([folder / 'model.bin'])}"
        if pair:
            self.name += f"@{pair[0]}:{pair[1]}"
        self.shortened = 0

    def translate(self, texts: Sequence[str], seeds: Sequence[int] | None = None) -> list[str]:
        """See `entaug.backends.protocols.Translator.translate`; seeds are ignored."""
        del seeds
        ours = self._sub_words
        found, cut = in_parts(texts, None, lambda some: list(map(len, ours.split(some))), ours.room, self._translate)
        self.shortened += cut
        return found

    def _translate(self, asked: list[Part]) -> list[str]:
        ours = self._sub_words
        rows = ours.split([part.text for part in asked])
        by_width: dict[int, list[int]] = {}
        for i, row in enumerate(rows):
            by_width.setdefault(-(-len(row) // _STEP) * _STEP, []).append(i)
        # All are asked for before any is waited for, so that workers never idle.
        begun = [(batch, self._begin([rows[i] for i in batch], width)) for width, batch in sorted(by_width.items())]
        done = [""] * len(asked)
        for batch, results in begun:
            for i, result in zip(batch, results, strict=True):
                try:
                    tokens = result.result().hypotheses[0]
                except (RuntimeError, ValueError) as error:
                    reason = " ".join(str(error).split())[:200]
                    raise EntaugError(f"CTranslate2 failed ({reason})", remedy="convert the model anew") from None
                words = [token for token in tokens if token not in ours.told.languages]
                done[i] = " ".join(ours.join(words).split())
        return done

    def _begin(self, rows: list[list[str]], width: int) -> list[Any]:
        ours = self._sub_words
        results: list[Any] = self._model.translate_batch(
            rows,
            target_prefix=None if ours.told.token is None else [[ours.told.token]] * len(rows),
            beam_size=self.beams,
            max_batch_size=max(_BUDGET, width),
            batch_type="tokens",
            max_input_length=0,
            # One bound for all of a width: so it depends on the text alone. Beyond `room` there may be no positions.
            max_decoding_length=min(2 * width + 20, ours.room),
            asynchronous=True,
        )
        return results


def _threads(device: str) -> dict[str, int]:
    """Workers with a batch each; threads that share one wait for each other at every step, long on a busy machine."""
    if device == "cuda" or (device == "auto" and ctranslate2.get_cuda_device_count()):
        return {}
    cores = os.cpu_count() or 1
    workers = min(cores, _WORKERS)
    return {"inter_threads": workers, "intra_threads": cores // workers}


def _sub_words(folder: Path, pair: tuple[str, str] | None) -> _SubWords:
    if (folder / "tokenizer_config.json").is_file():
        return _of_transformers(folder, pair)
    return _of_sentencepiece(folder, pair)


def _of_transformers(folder: Path, pair: tuple[str, str] | None) -> _SubWords:
    # Only here, because models with SentencePiece alone need neither transformers nor torch.
    from entaug.backends.transformers.base import load, transformers

    try:
        tokenizer = load(transformers.AutoTokenizer, folder)
    except ImportError as error:
        raise missing_tokenizer(error) from None
    how = told(str(folder), tokenizer, pair)

    def split(texts: Sequence[str]) -> list[list[str]]:
        if not texts:
            return []
        rows = tokenizer([how.prefix + text for text in texts], split_special_tokens=True, verbose=False)["input_ids"]
        return [tokenizer.convert_ids_to_tokens(row) for row in rows]

    def join(tokens: list[str]) -> str:
        return str(tokenizer.decode(tokenizer.convert_tokens_to_ids(tokens), skip_special_tokens=True))

    return _SubWords(split, join, min(_LONGEST, int(tokenizer.model_max_length)), how)


def _of_sentencepiece(folder: Path, pair: tuple[str, str] | None) -> _SubWords:
    files = sorted([*folder.glob("*.spm"), *folder.glob("*.model")])
    both = [folder / "source.spm", folder / "target.spm"]
    if len(files) == 1:
        both = files * 2
    elif not all(file in files for file in both):
        raise MissingModelError(
            "holds neither a tokenizer of transformers nor one model of SentencePiece or source.spm and target.spm",
            path=str(folder),
            remedy=f"copy {_COPY} from the model that was converted",
        )
    if pair:
        raise ParameterError(
            f"{str(folder)!r} lacks the list of its languages",
            remedy=f"leave out the languages, or copy {_COPY} into it",
        )
    try:
        import sentencepiece
    except ImportError as error:
        raise MissingExtraError(error.name or "sentencepiece", "models") from None
    try:
        source, target = (sentencepiece.SentencePieceProcessor(model_file=str(file)) for file in both)
    except (OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise MissingModelError(
            f"is no model of SentencePiece ({reason})", path=str(folder), remedy="copy it anew"
        ) from None

    def split(texts: Sequence[str]) -> list[list[str]]:
        rows: list[list[str]] = source.encode(list(texts), out_type=str)
        return rows

    return _SubWords(split, lambda tokens: str(target.decode(tokens)), _LONGEST, Told())
