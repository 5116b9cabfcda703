"""The figures of a release, drawn again from its tables."""

from __future__ import annotations

import io
import re
import struct
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import zip_longest
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from PIL import Image

from empathy_eval.base.errors import Problem
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.metrics.registry import Told
from empathy_eval.releases.verify.rows import RESTORE
from empathy_eval.reports.report import Report, draw

Colours = npt.NDArray[np.uint8]
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# What a picture of ours has in it.
CHUNKS = (b"IHDR", b"pHYs", b"IDAT", b"IEND")
# A shape is named by what it is made of, to the last digit.
NAMED = re.compile(r"\b[mp][0-9a-f]{10}\b")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
PLACES = ("d", "x", "y", "width", "height", "transform", "viewBox")
HREF, PATH, USE = "{http://www.w3.org/1999/xlink}href", "{http://www.w3.org/2000/svg}path", "{http://www.w3.org/2000/svg}use"
LETTER = "DejaVuSans-"
MOVED = re.compile(r"translate\((-?\d+(?:\.\d+)?) (-?\d+(?:\.\d+)?)\)")
# Several letters that a font may have one outline for.
JOINED = re.compile(r"ffi|ffl|ff|fi|fl|.")
# A letter's outline is made at this size, and drawn at a tenth of it and less.
LETTERS, SHOWN = 10, 120
POINTS = 200 / 72
# A colour is another one from here on; so many points of a picture may be: corners of letters, and less than the smallest mark.
SHADE, STRAY = 48, 60


def drawing_faults(told: bytes, drawn: bytes, reach: float) -> Iterator[str]:
    """Where an SVG does not have the elements, attributes and texts of another, or one in another place by more than ``reach`` points."""
    # What stands before it says in what signs it is written, and may declare and refer.
    if told.partition(b"<svg")[0] != drawn.partition(b"<svg")[0]:
        yield "does not begin like a figure of a report"
        return
    try:
        one, other = _Drawing(told), _Drawing(drawn)
    except (ElementTree.ParseError, ValueError, KeyError) as error:
        yield f"is not an SVG figure: {error}"
        return
    # Of two versions one may write as one letter what the other writes as two.
    both = sorted(one.letters.keys() & other.letters.keys())
    pairs = [*zip_longest(one.shapes, other.shapes), *((one.letters[name], other.letters[name]) for name in both)]
    for its, mine in pairs:
        if its is None or mine is None or its.form != mine.form:
            yield f"has {_shown(its)} where the tables give {_shown(mine)}"
            return
        if far := next((pair for pair in zip(its.at, mine.at, strict=True) if not abs(pair[0] - pair[1]) <= mine.size * reach), None):
            yield f"has an element at {far[0]:g} where the tables give {far[1]:g}"
            return


@dataclass(frozen=True)
class _Shape:
    """An element without its numbers, its numbers, and how large they are beside those of the figure."""

    form: tuple[Any, ...]
    at: tuple[float, ...]
    size: float = 1


def _shown(shape: _Shape | None) -> str:
    return "nothing more" if shape is None else repr(shape.form)[:SHOWN]


class _Drawing:
    """The elements of an SVG in their order, and the letters of its texts by text and place, their outlines by what they stand for."""

    def __init__(self, text: bytes) -> None:
        parser: ElementTree.XMLPullParser[Any] = ElementTree.XMLPullParser(("start", "comment", "pi"))
        parser.feed(text)
        parser.close()
        self._names: dict[str, str] = {}
        self.shapes: list[_Shape] = []
        said: list[tuple[str, list[Any]]] = []
        outlines: dict[str, Any] = {}
        events: Iterable[tuple[str, Any]] = parser.read_events()  # type: ignore[assignment]
        for _, each in events:
            if each.get("id", "").startswith(LETTER) and each.tag == PATH:
                outlines[each.get("id")] = each
            elif each.get(HREF, "").startswith(f"#{LETTER}") and each.tag == USE and said:
                said[-1][1].append(each)
            else:
                self.shapes.append(self._shape(each))
                if each.tag is ElementTree.Comment:
                    said.append((str(each.text).strip(), []))
        self.letters = dict(self._letters(said, outlines))

    def _letters(self, said: list[tuple[str, list[Any]]], outlines: dict[str, Any]) -> Iterator[tuple[tuple[int, int, str], _Shape]]:
        """Where each letter of each text is, and the outline of each letter once: one outline a letter, and none beside."""
        known: dict[str, str] = {}
        for place, (text, uses) in enumerate(said):
            letters = list(text) if len(text) == len(uses) else JOINED.findall(text)
            at = 0
            for letter, use in zip(letters, uses, strict=True):
                if known.setdefault(letter, use.attrib.pop(HREF)[1:]) != known[letter]:
                    raise ValueError("has two outlines for one letter")
                yield (place, at, letter), _letter(use)
                at += len(letter)
        if {*known.values()} != outlines.keys():
            raise ValueError("has outlines that belong to no letter")
        for letter, name in known.items():
            if not {"id", "transform"} <= outlines[name].attrib.keys() <= {"id", "d", "transform"} or any(_words(outlines[name])):
                raise ValueError("has a letter with more than an outline")
            shape = self._shape(outlines[name])
            yield (-1, 0, letter), replace(shape, form=tuple(one for one in shape.form[1] if one[0] != "id"), size=LETTERS)

    def _shape(self, each: Any) -> _Shape:
        numbers = [float(value) for name in PLACES if name in each.attrib for value in NUMBER.findall(each.get(name))]
        named = [(name, self._named(NUMBER.sub("#", value) if name in PLACES else value)) for name, value in sorted(each.attrib.items())]
        return _Shape((each.tag, named, *_words(each)), tuple(numbers))

    def _named(self, value: str) -> str:
        return NAMED.sub(lambda found: self._names.setdefault(found[0], f"({len(self._names)})"), value)


def _letter(use: Any) -> _Shape:
    """Where a letter is: one version moves it, another one says its place."""
    moved = MOVED.fullmatch(use.attrib.pop("transform", "translate(0 0)"))
    place = [float(use.attrib.pop(name, 0)) for name in "xy"]
    if not moved or use.attrib or any(_words(use)):
        raise ValueError("has a letter with more than a position")
    return _Shape((), tuple(one + float(by) for one, by in zip(place, moved.groups(), strict=True)), LETTERS)


def _words(each: Any) -> list[str]:
    return [" ".join((part or "").split()) for part in (each.text, each.tail)]


def picture_faults(told: bytes, drawn: bytes, reach: float) -> Iterator[str]:
    """Where a PNG has other parts than another, a size or a colour that the other does not have within ``reach`` points of type."""
    (one, head), (_, wanted) = _chunks(told), _chunks(drawn)
    # Of what stands before the colours only the size may differ, and what makes sure of it.
    same = _before_colours(told) == _before_colours(drawn)
    if not same or [name for place, name in enumerate(one) if name not in one[:place]] != list(CHUNKS):
        yield "does not have exactly the chunks of a PNG of the report"
        return
    radius = max(1, round(reach * POINTS))
    if max(abs(head[side] - wanted[side]) for side in (0, 1)) > radius:
        yield f"has {head[0]} x {head[1]} pixels, but the tables give {wanted[0]} x {wanted[1]}"
        return
    try:
        its, mine = _colours(told), _colours(drawn)
    except (OSError, ValueError, SyntaxError) as error:
        yield f"is not a picture: {error}"
        return
    height, width = (min(its.shape[side], mine.shape[side]) for side in (0, 1))
    its, mine = its[:height, :width], mine[:height, :width]
    if (stray := max(_stray(its, mine, radius), _stray(mine, its, radius))) > STRAY:
        yield f"differs from the figure that the tables give in {stray:,} pixels"


def _chunks(picture: bytes) -> tuple[list[bytes], tuple[int, ...]]:
    """The names of the parts of a PNG in their order, and its width and height; none of what is no PNG."""
    at, found = len(SIGNATURE), list[bytes]()
    while picture.startswith(SIGNATURE) and at + 8 <= len(picture):
        length, name = struct.unpack(">I4s", picture[at : at + 8])
        found.append(name)
        at += 12 + length
    whole = at == len(picture) and found[:1] == [CHUNKS[0]] and found.count(CHUNKS[0]) == 1
    return (found, struct.unpack(">II", picture[16:24])) if whole else ([], ())


def _before_colours(picture: bytes) -> tuple[bytes, bytes]:
    before = picture.partition(b"IDAT")[0]
    return before[24:29], before[33:-4]


def _colours(picture: bytes) -> Colours:
    with Image.open(io.BytesIO(picture), formats=("PNG",)) as opened:
        return np.asarray(opened.convert("RGBA"), dtype=np.uint8)


def _stray(one: Colours, other: Colours, radius: int) -> int:
    """How many points of one have a colour that no point of the other within so many of it comes near to."""
    low, high = _around(other, radius, np.minimum), _around(other, radius, np.maximum)
    colours = one.astype(np.int16)
    return int(((colours < low - SHADE) | (colours > high + SHADE)).any(axis=2).sum())


def _around(colours: Colours, radius: int, most: Any) -> npt.NDArray[np.int16]:
    """The least or the greatest of each colour within a square around every point."""
    found = colours.astype(np.int16)
    for axis in (0, 1):
        width = [(radius, radius) if side == axis else (0, 0) for side in range(3)]
        wide = np.pad(found, width, mode="edge")
        size = found.shape[axis]
        found = reduce(most, (wide.take(range(start, start + size), axis) for start in range(2 * radius + 1)))
    return found


FIGURES = "report/figures"
# By how many points of type something may be elsewhere: drawn by the same matplotlib on another machine, and by another one. From 3.9 to
# 3.11 it is 1.0 in a drawing, and what counts as a stray point of a picture is nearer than 3.
NEAR, FAR = {".svg": 0.02, ".png": 0.02}, {".svg": 1.5, ".png": 3.0}


def figure_faults(folder: Path, manifest: dict[str, Any], report: Report) -> Iterator[Problem]:
    """Figures that are not those of the tables: by bytes, and where these differ by what is to be seen.

    Another matplotlib sets a few things elsewhere: that it drew them a :class:`~empathy_eval.metrics.registry.Told` says.
    """
    by = manifest["software"].get("matplotlib")
    reach = NEAR if by == matplotlib.__version__ else FAR
    with tempfile.TemporaryDirectory() as place:
        draw(report, Path(place))
        drawn = {path.name: path.read_bytes() for path in Path(place).iterdir()}
    told = {path.name: path for path in (folder / FIGURES).glob("*")}
    for name in sorted(told.keys() ^ drawn.keys()):
        what = "is not a figure of this report" if name in told else "is missing"
        yield Problem(str(folder / FIGURES / name), what, RESTORE)
    others = [name for name in sorted(told.keys() & drawn.keys()) if not _same(told[name], drawn[name])]
    for name in others:
        yield from (Problem(str(told[name]), what, RESTORE) for what in _faults(told[name], drawn[name], reach[told[name].suffix]))
    if others and reach is FAR:
        what = f"the figures were drawn by matplotlib {by or 'of an unnamed version'}, but {matplotlib.__version__} is installed"
        reached = f"in {len(others)} of them, elements may be displaced by up to {FAR['.svg']:g} points"
        yield Told(str(folder / MANIFEST), f"{what}: {reached}", "make the report again with `report`, and compare", "figures")


def _same(path: Path, drawn: bytes) -> bool:
    return path.stat().st_size == len(drawn) and path.read_bytes() == drawn


def _faults(path: Path, drawn: bytes, reach: float) -> Iterator[str]:
    """What a figure shows or holds that the tables do not give."""
    # The same content has nowhere near twice the bytes.
    if (size := path.stat().st_size) > 2 * len(drawn):
        yield f"has {size:,} bytes, but the tables give a figure of {len(drawn):,} bytes"
    else:
        yield from (drawing_faults if path.suffix == ".svg" else picture_faults)(path.read_bytes(), drawn, reach)
