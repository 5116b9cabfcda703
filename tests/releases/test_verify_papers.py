"""What is read of a release: made again from what it holds, and compared by bytes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from empathy_eval.releases.verify.documents import paper_faults

# No such version ever was: a forger may write what he likes.
OTHER = "0.0.9"


@pytest.fixture(scope="module")
def copy(released: tuple[Path, object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(released[0], tmp_path_factory.mktemp("papers") / "release"))


def found(folder: Path, builder: str | None) -> list[str]:
    """What is a fault of a release that says that a version made it."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {"builder": builder} if builder else {}
    return [str(one) for one in paper_faults(folder, manifest) if one.severity == "fault"]


def turned(pattern: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text, count=1, flags=re.DOTALL)


# All are compared by bytes; the whole list of forgeries has many more of each.
FORGED = {
    "report/index.html": turned("</body>", "<script>alert(1)</script></body>"),
    "README.md": turned(r"\nlicense: [^\n]+", "\nlicense: cc0-1.0"),
    "CHANGELOG.md": lambda text: text + "- Reviewed by two psychologists.\n",
    "croissant.json": turned("{", '{"license": "https://a.example", '),
    "LICENSE": turned("\n", " \n"),
}


@pytest.mark.parametrize("builder", [None, OTHER])
def test_what_the_release_gives_is_no_fault_and_all_else_is_found_whoever_is_said_to_have_made_it(
    builder: str | None, copy: Path, tmp_path: Path
) -> None:
    assert found(copy, builder) == []
    forged = Path(shutil.copytree(copy, tmp_path / "forged"))
    for name, change in FORGED.items():
        (forged / name).write_text(change((copy / name).read_text(encoding="utf-8")), encoding="utf-8")
    faults = found(forged, builder)
    assert len(faults) == len(FORGED) and all(any(name in one for one in faults) for name in FORGED)
    assert any('says "license: cc0-1.0" where the release gives "license: ' in one for one in faults)


def test_another_version_is_told_once(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    (note,) = paper_faults(copy, manifest | {"builder": OTHER})
    assert note.severity == "unchecked" and f'made by version "{OTHER}"' in str(note)
