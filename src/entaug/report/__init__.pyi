# The public names of `entaug.report` and where they are; `__init__` imports each on first use.

from .attention import draw_attention_map
from .markdown import markdown_report

__all__ = ["draw_attention_map", "markdown_report"]
