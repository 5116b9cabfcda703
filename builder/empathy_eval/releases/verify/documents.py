"""The documents of a release, made again from its data: report page, card, changelog, Croissant file, licence, explorer and figures."""

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

from empathy_eval.base.errors import Finding, input_errors_as_faults, shortened
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.parsing import json_value
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.tabular import check_group_sizes
from empathy_eval.base.version import __version__
from empathy_eval.design.dataset import MANIFEST, TABLES, read_tables
from empathy_eval.releases.verify.files import read_release_text
from empathy_eval.reports.documents import release_documents
from empathy_eval.reports.explorer import EMBEDDED, FOLDER, FORMAT, PAGE, explore_page
from empathy_eval.reports.report import Report, draw, page_text, report_from_json, tables_text

# However an element has such an id; of several a browser takes the first.
RESERVED_ID = re.compile(r"\bid\s*=\s*[\"']?(about|sample)\b", re.IGNORECASE)
# The policy, the style and the scripts; embedded JSON is no script.
CODE = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>|<style>.*?</style>|<script(?: type="module")?>.*?</script>', re.DOTALL)


@input_errors_as_faults
def explorer_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Differences of the explorer page from the page that this version makes: by bytes if this version made it.

    Otherwise scripts and style must be those of a known version, all other elements those of this version, and the embedded data the
    release's own. They are compared by value: another version of Arrow writes other bytes for the same rows. The content of a page of
    another format is unchecked.
    """
    path = folder / PAGE
    stored, derived = read_release_text(path), explore_page(folder, _unsealed(manifest))
    if stored == derived:
        return
    if manifest["builder"] == __version__ and manifest["software"].get("pyarrow") == pa.__version__:
        at = len(commonprefix([stored, derived]))
        yield Finding(str(path), f"differs from the page that this version makes of the release, from character {at:,} on")
        return
    if (code := code_of(stored)) not in known_code():
        yield Finding(str(path), f"has scripts that no known version has (SHA-256 {code[:16]}...)")
    if len({EMBEDDED.sub("", CODE.sub("", page)) for page in (stored, derived)}) > 1:
        yield Finding(str(path), "has other elements than the page that this version makes")
    try:
        ours, theirs = _embedded(stored), _embedded(derived)
        if (form := ours["about"].get("format")) != FORMAT:
            what = f"has the format {str(form)[:40]!r}, but this program has {FORMAT}: its content is not compared"
            fix = "verify it with the program that made it, or make the page again with explore"
            yield Finding(str(path), what, fix, "unchecked", "explorer")
            return
        keys = _different_keys(ours["about"], theirs["about"], lambda first, second: first == second)
        files = _different_keys(ours["sample"]["files"], theirs["sample"]["files"], lambda first, second: _same_rows(path, first, second))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        yield Finding(str(path), f"does not have the content of an explorer page: {error}")
        return
    yield from (Finding(f"{path}: about: {key}", "differs from the release") for key in keys)
    yield from (Finding(f"{path}: sample: {name}", "does not hold the rows of the release") for name in files)


def _unsealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest without the keys that are added when all documents are written."""
    return {name: value for name, value in manifest.items() if name not in ("files", "seal")}


def _different_keys(stored: dict[str, Any], derived: dict[str, Any], equal: Callable[[Any, Any], bool]) -> list[str]:
    both = stored.keys() & derived.keys()
    return [key for key in {**derived, **stored} if key not in both or not equal(stored[key], derived[key])]


def known_code() -> dict[str, str]:
    """The versions of this program by the SHA-256 of the scripts and the style of their page."""
    return {digest: version for version, digest in read_yaml(data_folder("release") / FOLDER / "known.yaml", "known_code").items()}


def code_of(page: str) -> str:
    """The SHA-256 of the scripts and the style of a page, with the policy that allows them."""
    return digest_bytes("\n".join(match.group() for match in CODE.finditer(page)).encode())


def _embedded(page: str) -> dict[str, Any]:
    """The embedded data of a page; a ValueError if a browser could take something else for it."""
    embedded, rest = EMBEDDED.findall(page), html.unescape(EMBEDDED.sub("", page))
    if sorted(name for name, _ in embedded) != ["about", "sample"] or RESERVED_ID.search(rest):
        raise ValueError('it must have one script "about", one script "sample", and no other element with these ids')
    return {name: json_value(text) for name, text in embedded}


def _same_rows(path: Path, stored: str, derived: str) -> bool:
    """Whether two embedded files hold the same rows; a file with another number of rows is not read."""
    ours, theirs = (pq.ParquetFile(pa.BufferReader(base64.b64decode(text))) for text in (stored, derived))
    if ours.metadata.num_rows != theirs.metadata.num_rows:
        return False
    check_group_sizes(path, ours.metadata)
    # A thread of Arrow that releases bytes of Python while the process ends would abort it.
    return bool(ours.read(use_threads=False).equals(theirs.read(use_threads=False)))


# What a template, or code that it calls, raises for hostile values.
HOSTILE = (TemplateError, TypeError, ValueError, AttributeError, ArithmeticError, LookupError)
QUOTED = 100


@input_errors_as_faults
def paper_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Differences of page, tables and card from those that this version makes of manifest, data and tables, by bytes.

    The numbers of the tables themselves are compared with the data elsewhere.
    """
    try:
        tables = read_tables(folder)
        report = report_from_json(tables)
        documents = release_documents(folder, _unsealed(manifest), report)
        texts = {f"report/{TABLES}": tables_text(tables), "report/index.html": page_text(report), **documents}
    except HOSTILE as error:
        yield Finding(str(folder / "report" / TABLES), f"are not the tables of a report: {error}"[:300])
        return
    for name, text in texts.items():
        yield from _text_difference(folder / name, text)
    if manifest["builder"] != __version__:
        what = f'was made by version "{manifest["builder"]}" and this is version {__version__}, which may write page and card otherwise'
        yield Finding(str(folder / MANIFEST), what, "verify it with the version that made it as well", "unchecked", "builder")


@input_errors_as_faults
def _text_difference(path: Path, derived: str) -> Iterator[Finding]:
    """The first line of a file that differs."""
    stored = read_release_text(path)
    if stored != derived:
        pairs = zip_longest(stored.splitlines(), derived.splitlines())
        ours, theirs = next((pair for pair in pairs if pair[0] != pair[1]), ("other ends of lines", None))
        # Long lines that begin alike are quoted from shortly before they differ.
        alike = len(commonprefix([ours or "", theirs or ""]))
        start = alike - QUOTED // 4 if alike > QUOTED // 2 else 0
        first, second = ("nothing more" if line is None else f'"{shortened(line[start:], QUOTED)}"' for line in (ours, theirs))
        yield Finding(str(path), f"says {first} where the release gives {second}")


FIGURES = "report/figures"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The parts of a picture by matplotlib.
CHUNKS = [b"IHDR", b"pHYs", b"IDAT", b"IEND"]
# Shapes are named by a hash of their form.
SHAPE = re.compile(r"\b[mp][0-9a-f]{10}\b")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
# The texts of a drawing, and its elements and their attributes.
WORDS, MARKS = re.compile(r"<!--.*?-->|>[^<>]*[^<>\s][^<>]*<", re.DOTALL), re.compile(r"<[!?/]?[\w:-]*|[\w:-]+\s*=")
# How far machines may differ: in places by so many points of type, in colours by so many levels, or by more in so many pixels.
NEAR, SHADE, STRAY = 0.02, 48, 60


def figure_faults(folder: Path, manifest: dict[str, Any], report: Report) -> Iterator[Finding]:
    """Figures that are not those of the tables: by bytes, and where these differ by what is drawn.

    Another matplotlib sets things elsewhere: then words and kinds of elements are compared, and places and colours are unchecked.
    """
    version = manifest["software"].get("matplotlib")
    ours = version == matplotlib.__version__
    with tempfile.TemporaryDirectory() as place:
        draw(report, Path(place))
        drawn = {path.name: path.read_bytes() for path in Path(place).iterdir()}
    stored = {path.name: path for path in (folder / FIGURES).glob("*")}
    for name in sorted(stored.keys() ^ drawn.keys()):
        yield Finding(str(folder / FIGURES / name), "is not a figure of this report" if name in stored else "is missing")
    different = 0
    for name in sorted(stored.keys() & drawn.keys()):
        path, derived = stored[name], drawn[name]
        if path.stat().st_size > 2 * len(derived):
            yield Finding(str(path), f"has more than twice the {len(derived):,} bytes that the tables give")
        elif (content := path.read_bytes()) == derived:
            continue
        elif not (_same_drawing if name.endswith(".svg") else _same_picture)(content, derived, ours):
            yield Finding(str(path), "is not the figure that the tables give")
        different += 1
    if different and not ours:
        what = f"figures were drawn by matplotlib {version or 'of an unnamed version'}, but {matplotlib.__version__} is installed"
        what = f"{what}: places and colours in {different} of them are not compared"
        yield Finding(str(folder / MANIFEST), what, "make the report again with `report`, and compare", "unchecked", "figures")


def _same_drawing(stored: bytes, drawn: bytes, ours: bool) -> bool:
    """Whether two SVGs differ by no more than noise in their numbers; by another matplotlib, whether words and kinds of elements agree."""
    first, second = (text.decode(errors="replace") for text in (stored, drawn))
    if not ours:
        return WORDS.findall(first) == WORDS.findall(second) and set(MARKS.findall(first)) <= set(MARKS.findall(second))
    first, second = _numbered_shapes(first), _numbered_shapes(second)
    pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=False)
    return NUMBER.split(first) == NUMBER.split(second) and all(abs(float(left) - float(right)) <= NEAR for left, right in pairs)


def _numbered_shapes(text: str) -> str:
    """A drawing whose shapes are named by their order."""
    names = dict[str, str]()
    return SHAPE.sub(lambda match: names.setdefault(match[0], f"({'i' * len(names)})"), text)


def _same_picture(stored: bytes, drawn: bytes, ours: bool) -> bool:
    """Whether two PNGs have the same parts and nearly the same colours; by another matplotlib, whether the first is a picture."""
    if list(dict.fromkeys(_chunk_names(stored))) != CHUNKS:
        return False
    try:
        first, second = (_colours(picture) for picture in (stored, drawn))
    except (OSError, ValueError, SyntaxError):
        return False
    if not ours:
        return bool(np.ptp(first, axis=(0, 1)).max() > SHADE)
    return first.shape == second.shape and int((np.abs(first - second) > SHADE).any(axis=2).sum()) <= STRAY


def _chunk_names(picture: bytes) -> list[bytes]:
    """The names of the parts of a PNG in their order; none of a file that is no PNG, or has something after it."""
    at, names = len(SIGNATURE), list[bytes]()
    while picture.startswith(SIGNATURE) and at + 8 <= len(picture):
        length, name = struct.unpack(">I4s", picture[at : at + 8])
        names.append(name)
        at += 12 + length
    return names if at == len(picture) else []


def _colours(picture: bytes) -> Any:
    """The colours of a PNG; shape (height, width, 4)."""
    with Image.open(io.BytesIO(picture), formats=("PNG",)) as opened:
        return np.asarray(opened.convert("RGBA"), dtype=np.int16)
