"""Configuration of the documentation build: ``make docs``. Its generators are in ``_ext``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from entaug import __version__

project = "entaug"
author = "the entaug maintainers"
project_copyright = "the entaug maintainers, Apache-2.0"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "page_generator",  # ours: pages generated from the registries, and links for names in docstrings
]
exclude_patterns = ["_build", "_ext", "recorded"]
nitpicky = True  # a name without a target is a warning, and warnings are errors
nitpick_ignore_regex = [
    ("py:class", r"NDArray|float32|float64|[-\w.]*numpy.*"),  # NumPy's, imported for types alone
    ("py:class", "TagProbabilities"),  # imported for types alone, because it needs NumPy
    (
        "py:class",
        r"(entaug\.\w+\.)?((Non|Positive)\w+|Cosine|Probability|Check|Seed|StopWords)",
    ),  # types of parameters
]
default_role = "py:obj"  # single backticks in docstrings hold names
root_doc = "index"
smartquotes = False  # quoted text is often code

myst_enable_extensions = ["colon_fence", "attrs_block"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autoclass_content = "class"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
highlight_language = "sh"  # the default: commands
pygments_style = "tango"
pygments_dark_style = "monokai"

html_theme = "furo"
html_title = "entaug"
html_static_path = ["_static"]
html_css_files = ["entaug.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e6e", "color-brand-content": "#0b6e6e"},
    "dark_css_variables": {"color-brand-primary": "#5cc8c2", "color-brand-content": "#5cc8c2"},
}
