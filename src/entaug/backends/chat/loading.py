"""Loading a generator by name: a model behind a server, a GGUF file, or a model of transformers."""

from __future__ import annotations

from pathlib import Path

from entaug.backends.instruct import InstructModel
from entaug.backends.protocols import Generator

__all__ = ["load_generator"]


def load_generator(name: str) -> Generator | InstructModel:
    """Load a generator.

    Args:
        name: ``http://HOST:PORT/v1#MODEL`` for a model behind a server, ``FILE.gguf`` for a file that llama.cpp serves;
            any other is a folder or a model on the hub, which is fine-tuned.

    Returns:
        The generator.

    Raises:
        MissingModelError: there is no such model.
        ParameterError: the address is not valid.
        ModuleNotFoundError: the library behind it is not installed.
    """
    if name.startswith(("http://", "https://")):
        from entaug.backends.chat.server import ChatServer

        return ChatServer(name)
    if name.lower().endswith(".gguf") and not Path(name).is_dir():
        from entaug.backends.chat.gguf import GGUFModel

        return GGUFModel(name)
    from entaug.backends.transformers.generator import load_generator as load_transformers

    return load_transformers(name)
