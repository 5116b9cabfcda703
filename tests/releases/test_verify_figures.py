"""Figures of a release: drawn again, and where another matplotlib drew them compared by what they say."""

from __future__ import annotations

import io
import json
import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.design.dataset import read_tables
from empathy_eval.releases.verify.documents import figure_faults
from empathy_eval.reports.report import Report, draw, report_from_json
from PIL import Image, ImageDraw

Change = Callable[[Path], object]
MANIFEST_OF_OTHERS = {"software": {"matplotlib": "3.9.0"}}


@pytest.fixture(scope="module")
def drawn(released: tuple[Path, object], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    folder = tmp_path_factory.mktemp("drawn")
    report = report_from_json(read_tables(released[0]))
    draw(report, folder / "report" / "figures")
    return folder, report


def found(drawn: tuple[Path, Report], tmp_path: Path, change: Change, manifest: dict[str, Any]) -> list[str]:
    """What is found of changed figures: what another matplotlib drew is not compared point by point, which is told."""
    folder = Path(shutil.copytree(drawn[0], tmp_path / "changed"))
    change(folder / "report" / "figures")
    return [f"{one.severity}: {one}" for one in figure_faults(folder, manifest, drawn[1])]


def in_drawing(change: Callable[[str], str]) -> Change:
    def changed(figures: Path) -> None:
        path = figures / "accuracies.svg"
        before = path.read_text(encoding="utf-8")
        after = change(before)
        assert after != before, "nothing is changed"
        path.write_text(after, encoding="utf-8")

    return changed


def in_picture(change: Callable[[Image.Image], object]) -> Change:
    def changed(figures: Path) -> None:
        path = figures / "accuracies.png"
        with Image.open(path) as opened:
            picture, dpi = opened.convert("RGBA"), opened.info["dpi"]
        change(picture)
        picture.save(path, dpi=dpi)

    return changed


def moved(by: float) -> Change:
    """The marks at another place, by so many points of type."""
    return in_drawing(lambda text: re.sub(r'(<use [^>]*?x=")([\d.]+)', lambda one: f"{one[1]}{float(one[2]) + by:.6f}", text))


def chunk(name: bytes, content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + name + content + zlib.crc32(name + content).to_bytes(4, "big")


def with_chunk(figures: Path) -> None:
    path = figures / "accuracies.png"
    path.write_bytes(path.read_bytes().replace(chunk(b"IEND", b""), chunk(b"tEXt", b"Comment\0look at this") + chunk(b"IEND", b"")))


def exchanged(suffix: str) -> Change:
    return lambda figures: shutil.copy(figures / f"ranks{suffix}", figures / f"accuracies{suffix}")


FORGED: dict[str, Change] = {
    "marks moved": moved(4),
    "another drawing": exchanged(".svg"),
    "another picture": exchanged(".png"),
    "a script": in_drawing(lambda text: text.replace("</svg>", "<script>alert(1)</script></svg>")),
    "a script that is called a letter": in_drawing(
        lambda text: text.replace("</svg>", '<script id="DejaVuSans-30">alert(1)</script></svg>')
    ),
    "a handler": in_drawing(lambda text: text.replace("<svg ", '<svg onload="alert(1)" ')),
    "a handler at a letter": in_drawing(lambda text: re.sub(r"(<use xlink:href=\"#DejaVuSans-\w+\")", r'\1 onclick="alert(1)"', text)),
    "a style sheet from elsewhere": in_drawing(lambda text: text.replace("<svg ", '<?xml-stylesheet href="https://a.example/b"?><svg ', 1)),
    "a style sheet at the end": in_drawing(lambda text: text + '<?xml-stylesheet href="https://a.example/b"?>'),
    "an image from elsewhere": in_drawing(lambda text: text.replace('style="', "style=\"background: image-set('https://a.example/b');", 1)),
    "a picture from elsewhere": in_drawing(lambda text: text.replace("</svg>", '<image xlink:href="https://a.example/b"/></svg>')),
    "entities": in_drawing(lambda text: re.sub(r'(svg11.dtd")>', r'\1 [<!ENTITY a "b">]>', text)),
    "another text": in_drawing(lambda text: re.sub(r"<!-- (\w+) -->", "<!-- other -->", text, count=1)),
    "other digits": in_drawing(lambda text: re.sub(r'(id="DejaVuSans-\w+" d=")[^"]+', r"\1M 0 0 z", text, count=1)),
    "another element": in_drawing(lambda text: text.replace("</svg>", '<path d="M 0 0 L 500 100"/></svg>')),
    "an element less": in_drawing(lambda text: re.sub(r"<use [^>]*x=[^>]*/>", "", text, count=1)),
    "another colour": in_drawing(lambda text: text.replace("#d55e00", "#0072b2")),
    "no drawing at all": lambda figures: (figures / "accuracies.svg").write_text("none"),
    "ink more": in_picture(lambda picture: ImageDraw.Draw(picture).rectangle((700, 120, 740, 160), fill="#d55e00")),
    "all of one colour": in_picture(lambda picture: picture.paste("#d55e00", (0, 0, *picture.size))),
    "a part more": with_chunk,
    "text after the end": lambda figures: (figures / "accuracies.png").write_bytes((figures / "accuracies.png").read_bytes() + b"PK"),
    "half a picture": lambda figures: (figures / "accuracies.png").write_bytes((figures / "accuracies.png").read_bytes()[:900]),
    "much more": lambda figures: (figures / "accuracies.png").write_bytes((figures / "accuracies.png").read_bytes() * 3),
    "one missing": lambda figures: (figures / "accuracies.png").unlink(),
    "one more": lambda figures: shutil.copy(figures / "accuracies.svg", figures / "proof.svg"),
}


@pytest.fixture(params=["ours", "others"])
def manifest(released: tuple[Path, object], request: pytest.FixtureRequest) -> dict[str, Any]:
    """A forger may say that another matplotlib drew the figures."""
    ours: dict[str, Any] = json.loads((released[0] / "manifest.json").read_text(encoding="utf-8"))
    return ours if request.param == "ours" else MANIFEST_OF_OTHERS


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_forged_figure_is_found_whatever_is_said_to_have_drawn_it(
    change: Change, manifest: dict[str, Any], drawn: tuple[Path, Report], tmp_path: Path
) -> None:
    assert found(drawn, tmp_path, change, manifest)


def test_figures_of_the_tables_are_no_fault(manifest: dict[str, Any], drawn: tuple[Path, Report], tmp_path: Path) -> None:
    assert list(figure_faults(drawn[0], manifest, drawn[1])) == []
    assert found(drawn, tmp_path, lambda _: None, manifest) == []


def recompressed(figures: Path) -> None:
    path = figures / "accuracies.png"
    with Image.open(io.BytesIO(path.read_bytes())) as opened:
        opened.save(path, dpi=opened.info["dpi"], compress_level=3)


@pytest.mark.parametrize("change", [moved(0.001), recompressed], ids=["float noise", "another compression"])
def test_figures_of_another_machine_are_no_fault(
    change: Change, manifest: dict[str, Any], drawn: tuple[Path, Report], tmp_path: Path
) -> None:
    assert not any(one.startswith("fault") for one in found(drawn, tmp_path, change, manifest))


def test_another_matplotlib_may_set_things_a_little_elsewhere_and_is_told(drawn: tuple[Path, Report], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(drawn[0], tmp_path / "changed"))
    moved(0.6)(folder / "report" / "figures")
    (note,) = figure_faults(folder, MANIFEST_OF_OTHERS, drawn[1])
    assert note.severity != "fault" and "drawn by matplotlib 3.9.0" in str(note)
