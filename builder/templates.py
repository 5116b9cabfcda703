"""Jinja templates: an unknown variable is an error, never an empty text."""

from __future__ import annotations

from pathlib import Path

import jinja2


def environment(folder: Path) -> jinja2.Environment:
    """An environment over a folder. Only ``*.html.j2`` is escaped: prompts and cards are plain text and Markdown."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        autoescape=jinja2.select_autoescape(["html.j2"], default_for_string=False, default=False),
        trim_blocks=True,
        lstrip_blocks=True,
    )
