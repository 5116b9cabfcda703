"""The figures of a release, drawn again from its tables."""

from __future__ import annotations

import re
import struct
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

from empathy_eval.base.errors import Problem
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.evaluation.report import Report, draw
from empathy_eval.metrics.trust import NotRecomputed
from empathy_eval.releases.verify_rows import RESTORE

FIGURES = "report/figures"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# What a picture of ours has in it.
CHUNKS = (b"IHDR", b"pHYs", b"IDAT", b"IEND")
MOST = 2**24


def figure_faults(folder: Path, manifest: dict[str, Any], report: Report) -> Iterator[Problem]:
    """Figures that are not those of the tables, by bytes where the same matplotlib draws them.

    Drawn by another one, or nobody knows by which, a figure holds what ours holds and nothing more, and a
    :class:`~empathy_eval.metrics.trust.NotRecomputed` says that where its marks are was not compared.
    """
    by = manifest["software"].get("matplotlib")
    with tempfile.TemporaryDirectory() as place:
        draw(report, Path(place))
        drawn = {path.name: path.read_bytes() for path in Path(place).iterdir()}
    told = {path.name: path for path in (folder / FIGURES).glob("*")}
    for name in sorted(told.keys() ^ drawn.keys()):
        what = "is no figure of this report" if name in told else "is missing"
        yield Problem(str(folder / FIGURES / name), what, RESTORE)
    others = [name for name in sorted(told.keys() & drawn.keys()) if not _same(told[name], drawn[name])]
    if by == matplotlib.__version__:
        yield from (Problem(str(told[name]), "is not the figure that the tables give", RESTORE) for name in others)
        return
    for name in others:
        yield from (Problem(str(told[name]), what, RESTORE) for what in _strange(told[name], drawn[name]))
    if others:
        what = f"figures were drawn by matplotlib {by or 'of a version that is not named'}, here is {matplotlib.__version__}"
        fix = "make the report again with `report`, and compare"
        yield NotRecomputed(str(folder / MANIFEST), f"{what}: the marks of {len(others)} figures are not compared", fix, "figures")


def _same(path: Path, drawn: bytes) -> bool:
    return path.stat().st_size == len(drawn) and path.read_bytes() == drawn


def _strange(path: Path, drawn: bytes) -> Iterator[str]:
    """What a figure holds that no figure of ours does."""
    if path.stat().st_size > MOST:
        yield f"has {path.stat().st_size:,} bytes"
    elif path.suffix == ".png":
        yield from _strange_in_picture(path.read_bytes(), drawn)
    else:
        yield from _strange_in_drawing(path.read_bytes(), drawn)


def _strange_in_picture(told: bytes, drawn: bytes) -> Iterator[str]:
    (one, size), (_, wanted) = _chunks(told), _chunks(drawn)
    if [name for place, name in enumerate(one) if name not in one[:place]] != list(CHUNKS):
        yield "is not a picture of the parts that ours have, and nothing after its end"
    elif size != wanted:
        yield f"is a picture of {size[0]} x {size[1]} points, and the tables give one of {wanted[0]} x {wanted[1]}"


def _chunks(picture: bytes) -> tuple[list[bytes], tuple[int, ...]]:
    """The names of the parts of a PNG in their order, and its width and height; none of what is no PNG."""
    at, found = len(SIGNATURE), list[bytes]()
    while picture.startswith(SIGNATURE) and at + 8 <= len(picture):
        length, name = struct.unpack(">I4s", picture[at : at + 8])
        found.append(name)
        at += 12 + length
    whole = at == len(picture) and found[:1] == [CHUNKS[0]]
    return (found, struct.unpack(">II", picture[16:24])) if whole else ([], ())


def _strange_in_drawing(told: bytes, drawn: bytes) -> Iterator[str]:
    """A drawing has the elements and attributes of ours alone, and refers to nothing but itself."""
    if b"<!ENTITY" in told:
        yield "declares entities"
        return
    try:
        one, other = (list(ElementTree.fromstring(text).iter()) for text in (told, drawn))  # noqa: S314
    except ElementTree.ParseError as error:
        yield f"is no SVG: {error}"
        return
    known = {(each.tag, name) for each in other for name in (None, *each.attrib)}
    if strange := sorted({str((each.tag, name)) for each in one for name in (None, *each.attrib) if (each.tag, name) not in known}):
        yield f"has what no figure of this report has: {strange[0]}"
    texts = {(each.text or "").strip() for each in other}
    if any((each.text or "").strip() not in texts for each in one):
        yield "has a text or a style that no figure of this report has"
    said = [value for each in one for name, value in each.attrib.items() if "href" in name or re.search(r"url\(\s*[^#\s]", value)]
    if any(not value.startswith("#") for value in said):
        yield "refers to something outside of itself"
