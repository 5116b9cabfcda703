"""Sphinx's settings for the documentation site; ``make docs`` stages the sources and builds them."""

project = "Empathy-Eval"
author = "the authors of Empathy-Eval"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Empathy-Eval"
html_static_path: list[str] = []
html_extra_path = ["extra"]
html_show_copyright = False
html_show_sphinx = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 100
# Blocks of the documents in a language that is none.
suppress_warnings = ["misc.highlighting_failure"]
exclude_patterns = ["extra"]
