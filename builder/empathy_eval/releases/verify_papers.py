"""What is read of a release, made again from what it holds: page, card, changelog, description for machines, licence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import zip_longest
from os.path import commonprefix
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.parsing import json_value, text_of
from empathy_eval.base.version import __version__
from empathy_eval.design.dataset import MANIFEST, TABLES, read_tables
from empathy_eval.evaluation.report import Report, page_text, tables_text
from empathy_eval.evaluation.retold import retold
from empathy_eval.metrics.trust import NotRecomputed
from empathy_eval.releases.made_by import is_ours
from empathy_eval.releases.papers import papers
from empathy_eval.releases.verify_rows import RESTORE

PAGE = "report/index.html"
# What a template, or what it calls, raises for values of strangers.
UNFIT = (TemplateError, TypeError, ValueError, AttributeError, ArithmeticError, LookupError)
SHOWN = 100


def paper_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Where what is read is not what this version makes of manifest, data and tables: by bytes where it made the release, else by value.

    The numbers of the tables themselves are held against the data elsewhere.
    """
    path = folder / "report" / TABLES
    try:
        tables = read_tables(folder)
        report = retold(tables)
        wanted = {f"report/{TABLES}": tables_text(tables), **_made_again(folder, manifest, report)}
    except InputError as error:
        yield from error.problems
        return
    except UNFIT as error:
        yield Problem(str(path), f"are not the tables of a report: {error}"[:300], RESTORE)
        return
    for name, text in wanted.items():
        yield from _differing(folder / name, text, exact=is_ours(manifest))
    if not is_ours(manifest):
        what = (
            f'was made by version "{manifest["builder"]}" and this is version {__version__}: page, card and figures are compared by value'
        )
        yield NotRecomputed(str(folder / MANIFEST), what, "verify it with the version that made it as well", "builder")


def _made_again(folder: Path, manifest: dict[str, Any], report: Report) -> dict[str, str]:
    facts = {name: value for name, value in manifest.items() if name not in ("files", "seal")}
    return {PAGE: page_text(report), **papers(folder, facts, report)}


def _differing(path: Path, wanted: str, *, exact: bool) -> Iterator[Problem]:
    """The first place at which a file says something else; white space of a page or between values of JSON counts where ``exact``."""
    try:
        told = text_of(path)
    except (OSError, ValueError) as error:
        yield Problem(str(path), f"cannot be read: {error}", RESTORE)
        return
    if told == wanted:
        return
    parts = str.splitlines if exact else PARTS.get(path.suffix, _lines)
    try:
        pairs = list(zip_longest(parts(told), parts(wanted)))
    except (ValueError, RecursionError) as error:
        yield Problem(str(path), f"cannot be read: {error}", RESTORE)
        return
    one, other = next((pair for pair in pairs if pair[0] != pair[1]), (None, None))
    if exact or one != other:
        # Long lines that begin alike are shown from shortly before they differ.
        alike = max(len(commonprefix([one or "", other or ""])) - SHOWN // 4, 0)
        yield Problem(str(path), f"says {_shown(one, alike)} where the release gives {_shown(other, alike)}", RESTORE)


def _shown(part: str | None, start: int) -> str:
    if part is None:
        return "nothing more"
    if len(part) <= SHOWN:
        return f'"{part}"'
    return f'"{"..." if start else ""}{part[start : start + SHOWN]}{"..." if start + SHOWN < len(part) else ""}"'


def _lines(text: str) -> list[str]:
    """The lines as they are: what is indented, or has an empty line before it, is another thing in YAML and Markdown."""
    return text.replace("\r\n", "\n").split("\n")


def _elements(text: str) -> list[str]:
    """Everything that a page holds, one after the other: elements with their attributes, texts, comments."""
    parser = _Parts()
    parser.feed(text)
    parser.close()
    return parser.parts


def _values(text: str) -> list[str]:
    return _lines(json.dumps(json_value(text), indent=1, sort_keys=True))


PARTS = {".html": _elements, ".json": _values}


class _Parts(HTMLParser):
    """What a page holds, as its start tags, end tags, texts and everything else."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element with its attributes."""
        self.parts.append(f"<{tag} {attrs}>" if attrs else f"<{tag}>")

    def handle_endtag(self, tag: str) -> None:
        """The end of an element."""
        self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """A text; neighbours are one."""
        if words := " ".join(data.split()):
            self.parts.append(words)

    def handle_comment(self, data: str) -> None:
        """A comment, which nobody sees and a program may."""
        self.parts.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        """What a page says it is."""
        self.parts.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        """An instruction."""
        self.parts.append(f"<?{data}>")

    def unknown_decl(self, data: str) -> None:
        """A section of another kind."""
        self.parts.append(f"<![{data}]>")
