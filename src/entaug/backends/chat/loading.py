"""Loading a generator by name: a model behind a server, a GGUF file, or a model of transformers."""

from __future__ import annotations

from pathlib import Path

from entaug.backends.instruct import InstructModel
from entaug.backends.protocols import Generator

__all__ = ["load_generator"]


def load_generator(name: str) -> Generator | InstructModel:
    """Load a generator."""
    if name.startswith(("http://", "https://")):
        from entaug.backends.chat.server import ChatServer

        return ChatServer(name)
    if name.lower().endswith(".gguf") and not Path(name).is_dir():
        from entaug.backends.chat.gguf import GGUFModel

        return GGUFModel(name)
    from entaug.backends.transformers.generator import load_generator as load_transformers

    return load_transformers(name)
