"""The README: its item is one of the data, and the papers are named alike wherever they are."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml

ROOT = Path(__file__).parent.parent.parent


def test_the_item_of_the_readme_is_one_of_the_seeds_word_for_word() -> None:
    section = (ROOT / "README.md").read_text().split("## One item")[1].split("## One figure")[0]
    cells = [
        cell.strip()
        for line in section.splitlines()
        if re.match(r"\| (reference|apathetic|empathetic)", line)
        for cell in line.split("|")[2:4]
    ]
    texts = [text.replace("*", "") for text in cells if text]
    seed = (ROOT / "scenarios" / "019-parenting-challenges-and-parental-guilt.yaml").read_text()
    said = " ".join(seed.split()).replace("''", "'")
    assert len(texts) == 5
    for text in [*texts, section.split("> ")[1].split("\n")[0]]:
        assert text in said, text


def test_the_readme_and_the_citation_file_name_the_papers_as_the_card_does() -> None:
    papers = read_yaml(data_folder("release") / "papers.yaml", "papers")
    readme, cited = (ROOT / "README.md").read_text(), yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    for paper, one in zip(papers, cited, strict=True):
        people = [f"{author['given-names']} {author['family-names']}" for author in one["authors"] if "family-names" in author]
        assert (one["title"], people, one.get("year")) == (paper["title"], paper["authors"], paper.get("year"))
        assert paper.get("link", "").endswith(one.get("doi") or one.get("repository-code") or "")
        said = [", ".join(paper["authors"]), paper.get("said"), paper.get("year"), f"<{paper['link']}>" if "link" in paper else None]
        assert f"- *{paper['title']}*: {', '.join(str(part) for part in said if part)} ({paper['what']})" in readme
