"""The documentation site: built without a warning; its reference names whatever there is, and no link in it is dead."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import empathy_eval
import pytest
import yaml
from empathy_eval.cli import make_parser

from tests.journeys.test_docs import blocks, ran

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, without the gallery's pages. Sphinx ends with an error for any warning."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "docs" / "site" / "make.py"), "--out", str(out), "--no-gallery"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "html"


class Page(HTMLParser):
    """The links, the anchors and the text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.anchors, self.text = list[str](), set[str](), ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {one for one in (values.get("id"), values.get("name")) if one}
        self.links += [one for one in (values.get("href"), values.get("src")) if one]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_verb_name_key_and_column_is_in_the_reference(site: Path) -> None:
    text = {name: Page(site / f"{name}.html").text for name in ("reference/cli", "reference/python", "configuration", "reference/columns")}
    verbs = re.findall(r"^    (\w+) ", make_parser().format_help(), re.MULTILINE)
    assert len(verbs) > 15 and all(f"usage: empathy-eval {verb}" in text["reference/cli"] for verb in verbs)
    assert all(name in text["reference/python"] for name in empathy_eval.__all__ if name[0] != "_" and not name.endswith("Error"))
    assert all(column in text["reference/columns"] for column in yaml.safe_load((ROOT / "release" / "columns.yaml").read_text()))
    keys = set(_keys(json.loads((ROOT / "schemas" / "input" / "configuration.schema.json").read_text())))
    assert len(keys) > 60 and [key for key in sorted(keys) if key not in text["configuration"]] == []


def _keys(part: Any) -> Iterator[str]:
    """All keys that a schema has a property for."""
    if isinstance(part, dict):
        yield from part.get("properties", {})
        part = [*part.values()]
    for inner in part if isinstance(part, list) else ():
        yield from _keys(inner)


def test_the_keys_of_what_a_verb_prints_as_json_are_in_the_reference(site: Path) -> None:
    text = Page(site / "reference/json.html").text
    verbs = ("agree", "study", "score", "diff", "show", "train", "list", "build", "release", "ledger merge", "ledger show", "review export")
    assert [verb for verb in verbs if f"{verb} --json" not in text] == []
    assert all(key in text for key in ("kappa", "word_margin", "by_review", "request_key"))


def test_no_link_of_the_site_is_dead(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("data:") or "gallery/" in link:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            found = pages.get(target)
            if not target.exists() or (found and parts.fragment and unquote(parts.fragment) not in found.anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert len(pages) > 30 and not dead, "\n".join(dead)


def test_get_started_runs_as_written(tmp_path: Path) -> None:
    (tmp_path / "shouting.py").write_text(blocks("get_started.md", "py")[0])
    build, score, own = blocks("get_started.md", "sh")
    printed = ran("\n".join([build, f"python - <<'END'\n{blocks('get_started.md', 'python')[0]}END", score, own]), tmp_path)
    assert "at equal closeness" in printed and "shouting" in printed
