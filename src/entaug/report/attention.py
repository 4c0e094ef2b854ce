"""Pictures of the attention by which ACLM selects its keywords."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from entaug.errors import MissingExtraError, ParameterError
from entaug.files.atomic import atomic_file
from entaug.files.streams import as_path
from entaug.methods.aclm import AttentionMap

# No time in it.
_METADATA: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}


def draw_attention_map(attention: AttentionMap, path: str | Path) -> None:
    """Draw how much the words of the mentions attend to each word, as a heat map with the keywords in bold.

    Args:
        attention: the attention of a sentence with mentions, from `entaug.methods.ACLM.attention_map`.
        path: the file; its name ends in ``.svg``, ``.png`` or ``.pdf``. An existing file is replaced.

    Raises:
        ParameterError: the name ends otherwise, or the sentence has no mentions.
        MissingExtraError: matplotlib is not installed.
        OutputError: the file cannot be written.

    Example:
        >>> import entaug, numpy, pathlib, tempfile
        >>> gold = entaug.Sentence("the band Suede split".split(), [entaug.Mention("GRP", [(2, 3)])])
        >>> file = pathlib.Path(tempfile.mkdtemp(), "attention.svg")
        >>> draw_attention_map(entaug.methods.AttentionMap(gold, numpy.eye(4, dtype="float32"), (1,)), file)
        >>> file.read_text().count("Suede")
        2
    """
    path = as_path(path)
    if path.suffix not in _METADATA:
        raise ParameterError(f"{path.name} is no name of a picture", remedy=f"end it in {', '.join(_METADATA)}")
    sentence = attention.sentence
    if not sentence.mentions:
        raise ParameterError("the sentence has no mentions, so no word is a keyword")
    rows = [(i, mention.label) for mention in sentence.mentions for i in mention.positions()]
    width = len(sentence.tokens)
    with _figure(2 + 0.3 * width, 1.4 + 0.3 * len(rows)) as axes:
        picture = axes.imshow(attention.weights[[i for i, _ in rows]], cmap="Blues", vmin=0, aspect="auto")
        axes.set_yticks(range(len(rows)), [f"{sentence.tokens[i]} ({label})" for i, label in rows])
        axes.set_xticks(range(width), sentence.tokens, rotation=90)
        for i in attention.keywords:
            axes.get_xticklabels()[i].set_fontweight("bold")
        axes.figure.colorbar(picture, label="attention")
        with atomic_file(path) as out:
            axes.figure.savefig(out, format=path.suffix[1:], metadata=_METADATA[path.suffix])


@contextlib.contextmanager
def _figure(width: float, height: float) -> Iterator[Any]:
    """The axes of a figure that does not depend on the settings of the user; text stays text."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report") from None
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        parameters: Any = {"svg.fonttype": "none", "text.parse_math": False, "svg.hashsalt": "attention"}
        mpl.rcParams.update(parameters)
        warnings.filterwarnings("ignore", "Glyph")  # letters that matplotlib's font lacks
        drawn = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(drawn)  # measures text
        yield drawn.add_subplot()
