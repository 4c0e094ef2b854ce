"""What languages a model serves: what its card says, and what its vocabulary can read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from entaug.backends.models.catalogue import MODELS, cache_dir
from entaug.core.spacing import is_unspaced_script

__all__ = ["card_languages", "unread_share"]

_MIN_VOCABULARY = 1000  # smaller ones consist of bytes or characters, which read everything
_MIN_LETTERS = 100
_SPELLED_OUT = 0.9  # tokens for each letter, in a script with spaces; models that know a language need less than half


def card_languages(folder: Path) -> frozenset[str] | None:
    """Return the languages that a model serves, as the list of starter models or its card (``README.md``) says."""
    if folder.parent == cache_dir() and folder.name in MODELS:
        return frozenset(MODELS[folder.name].languages) or None
    card = folder / "README.md"
    if not card.is_file():
        return None
    import yaml
    from huggingface_hub import metadata_load

    try:
        language = (metadata_load(card) or {}).get("language")
    except (OSError, ValueError, AttributeError, yaml.YAMLError):  # a card that was written by hand
        return None
    entries = [language] if isinstance(language, str) else language if isinstance(language, list) else []
    # YAML reads the code of Norwegian, no, as a truth value.
    codes = {"no" if entry is False else str(entry).lower().replace("_", "-").split("-")[0] for entry in entries}
    return None if "multilingual" in codes else frozenset(codes) or None


def unread_share(tokenizer: Any, texts: Iterable[str]) -> float:
    """Measure how much of some texts a vocabulary does not know."""
    texts = list(texts)
    letters = sum(character.isalpha() for text in texts for character in text)
    if len(tokenizer) < _MIN_VOCABULARY or letters < _MIN_LETTERS:
        return 0.0
    rows = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    ids = [token for row in rows for token in row]
    if not is_unspaced_script("".join(texts[:10])) and len(ids) > _SPELLED_OUT * letters:
        return 1.0
    unknown = {token for token in set(ids) if token == tokenizer.unk_token_id or "\ufffd" in tokenizer.decode([token])}
    return sum(token in unknown for token in ids) / max(1, len(ids))
