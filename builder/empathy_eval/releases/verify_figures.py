"""The figures of a release, drawn again from its tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

from empathy_eval.base.errors import Problem
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.evaluation.report import Report, draw
from empathy_eval.metrics.trust import Told
from empathy_eval.releases.verify_drawings import drawing_faults, picture_faults
from empathy_eval.releases.verify_rows import RESTORE

FIGURES = "report/figures"
# By how many points of type something may be elsewhere: drawn by the same matplotlib on another machine, and by another one. From 3.9 to
# 3.11 it is 1.0 in a drawing, and what counts as a stray point of a picture is nearer than 3.
NEAR, FAR = {".svg": 0.02, ".png": 0.02}, {".svg": 1.5, ".png": 3.0}


def figure_faults(folder: Path, manifest: dict[str, Any], report: Report) -> Iterator[Problem]:
    """Figures that are not those of the tables: by bytes, and where these differ by what is to be seen.

    Another matplotlib sets a few things elsewhere: that it drew them a :class:`~empathy_eval.metrics.trust.Told` says.
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
