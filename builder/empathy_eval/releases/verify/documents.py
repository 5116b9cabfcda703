"""What is read of a release, made again from what it holds: page, card, changelog, description for machines, licence, and figures."""

from __future__ import annotations

import base64
import html
import io
import re
import struct
import tempfile
from collections.abc import Callable, Iterator
from itertools import zip_longest
from os.path import commonprefix
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import TemplateError
from PIL import Image

from empathy_eval.base.errors import Finding, InputError, faults_of
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.parsing import json_value, read_text
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.tabular import check_group_sizes
from empathy_eval.base.version import __version__
from empathy_eval.design.dataset import MANIFEST, TABLES, read_tables
from empathy_eval.reports.documents import release_documents
from empathy_eval.reports.explorer import EMBEDDED, FOLDER, FORMAT, PAGE, explore_page
from empathy_eval.reports.report import Report, draw, page_text, report_from_json, tables_text

# However an element says that it has such an id; of several a browser takes the first.
NAMES_ONE = re.compile(r"\bid\s*=\s*[\"']?(about|sample)\b", re.IGNORECASE)
# The policy, the style and the scripts; what is embedded as JSON is none.
CODE = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>|<style>.*?</style>|<script(?: type="module")?>.*?</script>', re.DOTALL)


def explorer_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Where the page of a release is not the one that this version makes of it: by bytes where this version made it.

    Else its scripts and style are those of a version that is known, the rest of it is what this version writes, and what it says and embeds
    are the release's own: parquet of another version of Arrow has other bytes for the same rows. A page of another format is no fault, and
    what it holds is not compared, which is said.
    """
    path = folder / PAGE
    try:
        told, anew = read_text(path), explore_page(folder, _facts(manifest))
    except (InputError, ValueError) as error:
        yield from faults_of(error.problems) if isinstance(error, InputError) else [Finding(str(path), f"cannot be read: {error}")]
        return
    if told == anew:
        return
    if manifest["builder"] == __version__ and manifest["software"].get("pyarrow") == pa.__version__:
        at = len(commonprefix([told, anew]))
        yield Finding(str(path), f"differs from the page that this version makes of the release, from character {at:,} on")
        return
    if (code := code_of(told)) not in known_code():
        yield Finding(str(path), f"has scripts that no known version has (SHA-256 {code[:16]}...)")
    if _shell(told) != _shell(anew):
        yield Finding(str(path), "has other elements than the page that this version makes")
    try:
        its, ours = _held(told), _held(anew)
        if (form := its["about"].get("format")) != FORMAT:
            what = f"has the format {str(form)[:40]!r}, but this program has {FORMAT}: its content is not compared"
            fix = "verify it with the program that made it, or make the page again with explore"
            yield Finding(str(path), what, fix, "unchecked", "explorer")
            return
        changed = _differ(its["about"], ours["about"], lambda one, two: one == two)
        others = _differ(its["sample"]["files"], ours["sample"]["files"], lambda one, two: _same_rows(path, one, two))
    except InputError as error:
        yield from faults_of(error.problems)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        yield Finding(str(path), f"does not have the content of an explorer page: {error}")
    else:
        yield from (Finding(f"{path}: about: {name}", "differs from the release") for name in changed)
        yield from (Finding(f"{path}: sample: {name}", "does not hold the rows of the release") for name in others)


def _facts(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest as it is known while a release is written."""
    return {name: value for name, value in manifest.items() if name not in ("files", "seal")}


def _differ(told: dict[str, Any], anew: dict[str, Any], same: Callable[[Any, Any], bool]) -> list[str]:
    """The keys under which two objects are not the same."""
    return [name for name in {**anew, **told} if name not in told or name not in anew or not same(told[name], anew[name])]


def known_code() -> dict[str, str]:
    """The versions of this program by the SHA-256 of the scripts and the style of their page."""
    return {digest: version for version, digest in read_yaml(data_folder("release") / FOLDER / "known.yaml", "known_code").items()}


def code_of(page: str) -> str:
    """The SHA-256 of the scripts and the style of a page, with the policy that lets them run, which must be of just these."""
    return digest_bytes("\n".join(found.group() for found in CODE.finditer(page)).encode())


def _shell(page: str) -> str:
    """A page without its scripts, style, and what it says and embeds."""
    return EMBEDDED.sub("", CODE.sub("", page))


def _held(page: str) -> dict[str, Any]:
    """What a page says and embeds; a ValueError if a browser could take something else for it."""
    held, around = EMBEDDED.findall(page), html.unescape(EMBEDDED.sub("", page))
    if sorted(name for name, _ in held) != ["about", "sample"] or NAMES_ONE.search(around):
        raise ValueError('it must have one script "about", one script "sample", and no other element with these ids')
    return {name: json_value(text) for name, text in held}


def _same_rows(path: Path, told: str, anew: str) -> bool:
    """Whether two embedded files hold the same rows; one that says it holds more is not read."""
    one, other = (pq.ParquetFile(pa.BufferReader(base64.b64decode(text))) for text in (told, anew))
    if one.metadata.num_rows != other.metadata.num_rows:
        return False
    check_group_sizes(path, one.metadata)
    # A thread of Arrow's that lets go of bytes of Python's while the process ends would abort it.
    return bool(one.read(use_threads=False).equals(other.read(use_threads=False)))


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
        made = release_documents(folder, _facts(manifest), report)
        wanted = {f"report/{TABLES}": tables_text(tables), "report/index.html": page_text(report), **made}
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


FIGURES = "report/figures"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# What a picture of ours has in it.
CHUNKS = [b"IHDR", b"pHYs", b"IDAT", b"IEND"]
# A shape is named by what it is made of, to the last digit.
NAMED = re.compile(r"\b[mp][0-9a-f]{10}\b")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
# What a drawing says, and what it is made of: its elements and their attributes.
WORDS, MARKS = re.compile(r"<!--.*?-->|>[^<>]*[^<>\s][^<>]*<", re.DOTALL), re.compile(r"<[!?/]?[\w:-]*|[\w:-]+\s*=")
# On another machine something may be elsewhere by so much of a point of type; a colour is another one from a shade on, in so many points.
NEAR, SHADE, STRAY = 0.02, 48, 60


def figure_faults(folder: Path, manifest: dict[str, Any], report: Report) -> Iterator[Finding]:
    """Figures that are not those of the tables: by bytes, and where these differ by what is drawn.

    Another matplotlib sets things elsewhere: of what it drew, the words and the kinds of elements are compared, and that it is said.
    """
    by = manifest["software"].get("matplotlib")
    ours = by == matplotlib.__version__
    with tempfile.TemporaryDirectory() as place:
        draw(report, Path(place))
        drawn = {path.name: path.read_bytes() for path in Path(place).iterdir()}
    told = {path.name: path for path in (folder / FIGURES).glob("*")}
    for name in sorted(told.keys() ^ drawn.keys()):
        yield Finding(str(folder / FIGURES / name), "is not a figure of this report" if name in told else "is missing")
    others = [name for name in sorted(told.keys() & drawn.keys()) if told[name].stat().st_size > 2 * len(drawn[name])]
    yield from (Finding(str(told[name]), f"has more than twice the {len(drawn[name]):,} bytes that the tables give") for name in others)
    for name in sorted((told.keys() & drawn.keys()) - set(others)):
        if (its := told[name].read_bytes()) != drawn[name]:
            others.append(name)
            alike = _same_drawing if name.endswith(".svg") else _same_picture
            if not alike(its, drawn[name], ours):
                yield Finding(str(told[name]), "is not the figure that the tables give")
    if others and not ours:
        what = f"figures were drawn by matplotlib {by or 'of an unnamed version'}, but {matplotlib.__version__} is installed"
        fix = "make the report again with `report`, and compare"
        what = f"{what}: places and colours in {len(others)} of them are not compared"
        yield Finding(str(folder / MANIFEST), what, fix, "unchecked", "figures")


def _same_drawing(told: bytes, drawn: bytes, ours: bool) -> bool:
    """Whether an SVG is another one but for noise in its numbers; of another matplotlib's whether it says the same by the same means."""
    one, other = (text.decode(errors="replace") for text in (told, drawn))
    if not ours:
        return WORDS.findall(one) == WORDS.findall(other) and set(MARKS.findall(one)) <= set(MARKS.findall(other))
    one, other = _named_in_order(one), _named_in_order(other)
    if NUMBER.split(one) != NUMBER.split(other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(abs(float(its) - float(mine)) <= NEAR for its, mine in pairs)


def _named_in_order(text: str) -> str:
    names = dict[str, str]()
    return NAMED.sub(lambda found: names.setdefault(found[0], f"({'i' * len(names)})"), text)


def _same_picture(told: bytes, drawn: bytes, ours: bool) -> bool:
    """Whether a PNG has the parts of another one, and its colours within what machines differ by; of another matplotlib's whether it is
    a picture at all."""
    if list(dict.fromkeys(_chunks(told))) != CHUNKS:
        return False
    try:
        one, other = (_colours(picture) for picture in (told, drawn))
    except (OSError, ValueError, SyntaxError):
        return False
    if not ours:
        return bool(np.ptp(one, axis=(0, 1)).max() > SHADE)
    return one.shape == other.shape and int((np.abs(one - other) > SHADE).any(axis=2).sum()) <= STRAY


def _chunks(picture: bytes) -> list[bytes]:
    """The names of the parts of a PNG in their order; none of what is no PNG, or has something behind it."""
    at, found = len(SIGNATURE), list[bytes]()
    while picture.startswith(SIGNATURE) and at + 8 <= len(picture):
        length, name = struct.unpack(">I4s", picture[at : at + 8])
        found.append(name)
        at += 12 + length
    return found if at == len(picture) else []


def _colours(picture: bytes) -> Any:
    with Image.open(io.BytesIO(picture), formats=("PNG",)) as opened:
        return np.asarray(opened.convert("RGBA"), dtype=np.int16)
