"""What is read of a release, made again from what it holds: page, card, changelog, description for machines, licence."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from itertools import zip_longest
from os.path import commonprefix
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import TemplateError

from empathy_eval.base.errors import Finding, InputError, faults_of
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.parsing import json_value, read_text
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.tabular import check_group_sizes
from empathy_eval.base.version import __version__
from empathy_eval.design.dataset import MANIFEST, TABLES, read_tables
from empathy_eval.releases.assemble.documents import papers
from empathy_eval.reports.explorer import EMBEDDED, FOLDER, FORMAT, HOME, PAGE, draw_sample, explore_page, page_metadata
from empathy_eval.reports.report import Report, page_text, report_from_json, tables_text

# However an element says that it has such an id; of several a browser takes the first.
NAMES_ONE = re.compile(r"\bid\s*=\s*[\"']?(about|sample)\b", re.IGNORECASE)
# The policy, the style and the scripts; what is embedded as JSON is none.
CODE = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>|<style>.*?</style>|<script(?: type="module")?>.*?</script>', re.DOTALL)


def explorer_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Where the page of a release is not the one that this version makes of it: by bytes where this version made it.

    Else its scripts and style are those of a version that is known, the rest of it is what this version writes, and what it says and embeds
    are the release's own: parquet of another version of Arrow has other bytes for the same rows.
    """
    path, facts = folder / PAGE, {name: value for name, value in manifest.items() if name not in ("files", "seal")}
    try:
        told, anew = read_text(path), explore_page(folder, facts)
    except (InputError, ValueError) as error:
        yield from faults_of(error.problems) if isinstance(error, InputError) else [Finding(str(path), f"cannot be read: {error}")]
        return
    if told == anew:
        return
    if manifest["builder"] == __version__ and manifest["software"].get("pyarrow") == pa.__version__:
        at = next((place for place, pair in enumerate(zip(told, anew, strict=False)) if pair[0] != pair[1]), min(len(told), len(anew)))
        yield Finding(str(path), f"differs from the page that this version makes of the release, from character {at:,} on")
        return
    code = code_of(told)
    if code not in known_code():
        yield Finding(str(path), f"has scripts that no known version has (SHA-256 {code[:16]}...)")
    if _shell(told) != _shell(anew):
        yield Finding(str(path), "has other elements than the page that this version makes")
    yield from _held_faults(folder, facts, path)


def known_code() -> dict[str, str]:
    """The versions of this program by the SHA-256 of the scripts and the style of their page."""
    return {digest: version for version, digest in read_yaml(data_folder("release") / FOLDER / "known.yaml", "known_code").items()}


def code_of(page: str) -> str:
    """The SHA-256 of the scripts and the style of a page, with the policy that lets them run, which must be of just these."""
    return digest_bytes("\n".join(found.group() for found in CODE.finditer(page)).encode())


def _shell(page: str) -> str:
    """A page without its scripts, style, and what it says and embeds."""
    return EMBEDDED.sub("", CODE.sub("", page))


def _held_faults(folder: Path, facts: dict[str, Any], path: Path) -> Iterator[Finding]:
    """What a page says of its release and embeds of its texts otherwise than the release does.

    A page of another format is no fault, and is not compared, which is said.
    """
    try:
        held = _held(read_text(path))
        if (its := held["about"].get("format")) != FORMAT:
            what = f"has the format {str(its)[:40]!r}, but this program has {FORMAT}: its content is not compared"
            fix = "verify it with the program that made it, or make the page again with explore"
            yield Finding(str(path), what, fix, "unchecked", "explorer")
            return
        told = {name: pq.ParquetFile(pa.BufferReader(base64.b64decode(one))) for name, one in held["sample"]["files"].items()}
        sample = draw_sample(folder, facts)
        about = page_metadata(folder, facts, sample, HOME)
        other = [name for name in told.keys() | sample.tables.keys() if not _same(path, told.get(name), sample.tables.get(name))]
        changed = [name for name in [*about, *(held["about"].keys() - about.keys())] if held["about"].get(name) != about.get(name)]
    except InputError as error:
        yield from faults_of(error.problems)
        return
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        yield Finding(str(path), f"does not have the content of an explorer page: {error}")
        return
    for name in changed:
        yield Finding(f"{path}: about: {name}", "differs from the release")
    for name in sorted(other):
        yield Finding(f"{path}: sample: {name}", "does not hold the rows of the release")


def _held(page: str) -> dict[str, Any]:
    """What a page says and embeds; a ValueError if a browser could take something else for it."""
    held, around = EMBEDDED.findall(page), html.unescape(EMBEDDED.sub("", page))
    if sorted(name for name, _ in held) != ["about", "sample"] or NAMES_ONE.search(around):
        raise ValueError('it must have one script "about", one script "sample", and no other element with these ids')
    return {name: json_value(text) for name, text in held}


def _same(path: Path, told: pq.ParquetFile | None, rows: pa.Table | None) -> bool:
    """Whether an embedded file holds these rows; one that says it holds more is not read."""
    if told is None or rows is None or told.metadata.num_rows != rows.num_rows:
        return False
    check_group_sizes(path, told.metadata)
    # A thread of Arrow's that lets go of bytes of Python's while the process ends would abort it.
    return bool(told.read(use_threads=False).equals(rows))


REPORT_PAGE = "report/index.html"
# What a template, or what it calls, raises for values of strangers.
UNFIT = (TemplateError, TypeError, ValueError, AttributeError, ArithmeticError, LookupError)
SHOWN = 100


def paper_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Where what is read is not, to the byte, what this version makes of manifest, data and tables.

    The numbers of the tables themselves are held against the data elsewhere.
    """
    path = folder / "report" / TABLES
    try:
        tables = read_tables(folder)
        report = report_from_json(tables)
        wanted = {f"report/{TABLES}": tables_text(tables), **_made_again(folder, manifest, report)}
    except InputError as error:
        yield from faults_of(error.problems)
        return
    except UNFIT as error:
        yield Finding(str(path), f"are not the tables of a report: {error}"[:300])
        return
    for name, text in wanted.items():
        yield from _differing(folder / name, text)
    if manifest["builder"] != __version__:
        what = f'was made by version "{manifest["builder"]}" and this is version {__version__}, which may write page and card otherwise'
        yield Finding(str(folder / MANIFEST), what, "verify it with the version that made it as well", "unchecked", "builder")


def _made_again(folder: Path, manifest: dict[str, Any], report: Report) -> dict[str, str]:
    facts = {name: value for name, value in manifest.items() if name not in ("files", "seal")}
    return {REPORT_PAGE: page_text(report), **papers(folder, facts, report)}


def _differing(path: Path, wanted: str) -> Iterator[Finding]:
    """The first line at which a file says something else."""
    try:
        told = read_text(path)
    except (OSError, ValueError) as error:
        yield Finding(str(path), f"cannot be read: {error}")
        return
    if told != wanted:
        pairs = zip_longest(told.splitlines(), wanted.splitlines())
        one, other = next((pair for pair in pairs if pair[0] != pair[1]), ("other ends of lines", None))
        # Long lines that begin alike are shown from shortly before they differ.
        alike = max(len(commonprefix([one or "", other or ""])) - SHOWN // 4, 0)
        yield Finding(str(path), f"says {_shown(one, alike)} where the release gives {_shown(other, alike)}")


def _shown(part: str | None, start: int) -> str:
    if part is None:
        return "nothing more"
    if len(part) <= SHOWN:
        return f'"{part}"'
    return f'"{"..." if start else ""}{part[start : start + SHOWN]}{"..." if start + SHOWN < len(part) else ""}"'
