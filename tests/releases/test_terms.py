"""The terms that the pages of a release define are those of the glossary."""

from __future__ import annotations

import re
from pathlib import Path

from empathy_eval.base.files import data_folder
from empathy_eval.releases.assemble.write import Released
from empathy_eval.reports.page import glossary_terms

GLOSSARY = data_folder("release").parent / "docs" / "glossary.md"


def test_every_term_is_in_the_glossary() -> None:
    rows = [
        re.sub("<.*>", "", line.split("|")[1]).strip()
        for line in GLOSSARY.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    assert len(glossary_terms()) == 8 and not set(glossary_terms()) - set(rows)


def test_the_report_the_card_and_the_explorer_define_them(released: tuple[Path, Released]) -> None:
    for name in ("README.md", "report/index.html", "explore/index.html"):
        page = (released[0] / name).read_text(encoding="utf-8")
        assert all(term in page and meaning in page for term, meaning in glossary_terms().items()), name
