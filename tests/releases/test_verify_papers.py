"""What is read of a release: made again from what it holds, and compared by bytes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.design.dataset import read_tables
from empathy_eval.releases.verify import documents as verify_papers
from empathy_eval.releases.verify.documents import paper_faults
from empathy_eval.reports.report import report_from_json

PAGE, CARD = "report/index.html", "README.md"
# No such version ever was: a forger may write what he likes.
OTHER = "0.0.9"


@pytest.fixture(scope="module")
def copy(released: tuple[Path, object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(released[0], tmp_path_factory.mktemp("papers") / "release"))


@pytest.fixture(scope="module", autouse=True)
def made_once_here(copy: Path) -> Iterator[None]:
    """What is made again is the same for each forgery of what is compared with it."""
    made: dict[str, dict[str, str]] = {}
    report = report_from_json(read_tables(copy))

    def kept(folder: Path, manifest: dict[str, Any], told: object) -> dict[str, str]:
        if (by := manifest["builder"]) not in made:
            made[by] = again(folder, manifest, told)
        return made[by]

    again: Callable[..., dict[str, str]] = verify_papers._made_again  # noqa: SLF001
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify_papers, "_made_again", kept)
        patch.setattr(verify_papers, "report_from_json", lambda tables: report)
        yield


def found(folder: Path, builder: str | None, name: str = PAGE, change: Callable[[str], str] | None = None) -> list[str]:
    """What is a fault of a release, with one file changed, that says that a version made it."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {"builder": builder} if builder else {}
    before = (folder / name).read_text(encoding="utf-8")
    after = change(before) if change else before
    assert not change or after != before, "nothing is changed"
    try:
        (folder / name).write_text(after, encoding="utf-8")
        return [str(one) for one in paper_faults(folder, manifest) if one.severity == "fault"]
    finally:
        (folder / name).write_text(before, encoding="utf-8")


def put(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


def turned(pattern: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text, count=1, flags=re.DOTALL)


FORGED = {
    "the headline turned": (PAGE, turned(r"(<p class=\"?\w*\"?>|<p>)[^<]+", r"\1All metrics reward empathy.")),
    "a number": (PAGE, turned(r"(<td[^>]*>)[−-]?\d\.\d+", r"\g<1>0.999")),
    "a row less": (PAGE, turned(r"<tr>\s*<th scope=\"row\".*?</tr>", "")),
    "a script": (PAGE, put("</body>", "<script>alert(1)</script></body>")),
    "a handler": (PAGE, put("<body", '<body onload="alert(1)"')),
    "an image from elsewhere": (PAGE, put("</body>", '<img src="https://a.example/b.png"></body>')),
    "a style from elsewhere": (PAGE, put("</style>", '@import "https://a.example/b";</style>')),
    "another base": (PAGE, put("<head>", '<head><base href="https://a.example/">')),
    "a comment": (PAGE, put("</body>", "<!-- --!><script>alert(1)</script> --></body>")),
    "claims of the card": (CARD, turned(r"\| `pairs` \| [^|]+ \|", "| `pairs` | pairs that psychologists wrote |")),
    "the licence of the card": (CARD, turned(r"\nlicense: [^\n]+", "\nlicense: cc0-1.0")),
    "a licence that is part of something else": (CARD, put("\nlicense:", "\n  license:")),
    "a list that becomes code": (CARD, turned(r"\n- (?=[A-Z`*])", "\n      - ")),
    "a line of the changelog": ("CHANGELOG.md", lambda text: text + "- Reviewed by two psychologists.\n"),
    "the address for machines": ("croissant.json", turned(r'"license": "[^"]+"', '"license": "https://a.example"')),
    "a name twice": ("croissant.json", put("{", '{"license": "https://a.example", ')),
    "another licence": ("LICENSE", put("\n", "\nAll rights reserved.\n")),
}


@pytest.mark.parametrize("builder", [None, OTHER])
@pytest.mark.parametrize(("name", "change"), FORGED.values(), ids=FORGED)
def test_a_forgery_is_found_whoever_is_said_to_have_made_it(
    name: str, change: Callable[[str], str], builder: str | None, copy: Path
) -> None:
    assert any(name in one for one in found(copy, builder, name, change))


@pytest.mark.parametrize("builder", [None, OTHER])
def test_what_the_release_gives_is_no_fault(builder: str | None, copy: Path) -> None:
    assert found(copy, builder) == []


def test_white_space_of_a_page_counts(copy: Path) -> None:
    assert found(copy, None, PAGE, put("</p>", " \n </p>"))


def test_another_version_is_told_once(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    assert list(paper_faults(copy, manifest)) == []
    (note,) = paper_faults(copy, manifest | {"builder": OTHER})
    assert note.severity != "fault" and f'made by version "{OTHER}"' in str(note)


def test_the_first_line_that_differs_is_quoted_both_ways(copy: Path) -> None:
    (fault,) = found(copy, None, CARD, turned(r"\nlicense: [^\n]+", "\nlicense: cc0-1.0"))
    assert 'says "license: cc0-1.0" where the release gives "license: ' in fault
