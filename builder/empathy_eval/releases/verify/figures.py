"""The figures of a release, drawn again from its tables."""

from __future__ import annotations

import io
import re
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from PIL import Image

from empathy_eval.base.errors import Finding
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.reports.report import Report, draw

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
