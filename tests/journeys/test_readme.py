"""The README: its item is one of the data, and the papers are named alike wherever they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml
from empathy_eval.commands.build import build
from empathy_eval.commands.release import release

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


@pytest.mark.long
def test_the_readme_shows_the_figure_and_the_numbers_of_the_demos_report(tmp_path: Path) -> None:
    build("demo", tmp_path / "demo")
    made = release(tmp_path / "demo", tmp_path / "release", version="0.1.0")
    drawn = tmp_path / "release" / "report" / "figures" / "accuracies.svg"
    assert drawn.read_bytes() == (ROOT / "docs" / "figures" / "demo_accuracies.svg").read_bytes()
    measured = made.report.measured
    shares = {metric: round(100 * one.accuracy.number) for metric, one in measured.equal_closeness.items() if one.accuracy}
    against = {metric: shares[metric] for metric in ("BLEU-4", "ROUGE-L", "METEOR", "chrF", "BERTScore F1")}
    readme = (ROOT / "README.md").read_text()
    assert (
        f"of seven metrics on the curated seeds, from {min(shares.values())} % (BLEU-4) to {max(shares.values())} % (BERTScore)" in readme
    )
    assert len(shares) == 7 and f"in {min(against.values())} to {max(against.values())} % of the comparisons" in readme
