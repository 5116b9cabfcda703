"""The document on studies between raters: its commands run as written, and print what it shows."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import empathy_eval as ee

from tests.journeys.test_docs import ROOT, blocks, commands, ran

PAGE = (ROOT / "docs" / "studies.md").read_text()


def test_the_commands_of_studies_run_as_written_and_print_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("study.csv", "study_raters.csv"):
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs")
    said = ran(commands("studies.md"), tmp_path)
    assert json.loads((tmp_path / "study.json").read_text())["labels"] == ["Bad", "Okay", "Good"] and (tmp_path / "study.html").is_file()
    with (ROOT / "docs" / "study.csv").open() as stream:
        raters = {row["rater"] for row in csv.DictReader(stream)}
    for text in (said, *((tmp_path / f"study.{end}").read_text() for end in ("json", "html"))):
        assert not any(name in text for name in raters)
    shown = blocks("studies.md", "text")
    assert len(shown) == 2 and all(block in said for block in shown)
    assert "40 in total, who give 400 ratings" in said and "these 180 are worth 103" in said
    assert (ROOT / "docs" / "study.csv").read_text().startswith(blocks("studies.md", "csv")[0])


def test_the_table_of_raters_that_an_effect_takes_is_what_study_plan_says() -> None:
    rows = [[cell.strip().replace(",", "") for cell in row.split("|")[1:-1]] for row in re.findall(r"^\| 0\.\d \|.*$", PAGE, re.MULTILINE)]
    assert [(row[0], row[1]) for row in rows] == [(w, icc) for w in ("0.1", "0.2", "0.3") for icc in ("0", "0.05", "0.2")]
    for row in rows:
        plan = ee.study_plan(float(row[0]), groups=5, categories=3, icc=float(row[1]))
        told = (plan.independent, plan.design_effect, plan.clustered, plan.raters_a_group, plan.raters, plan.items)
        assert row[2:] == [f"{number:.12g}" for number in told], row
    assert ee.study_plan(0.3, groups=5, categories=3, icc=0).df == 8


def test_what_the_page_says_in_figures_of_its_example_is_so() -> None:
    found = ee.study(ROOT / "docs" / "study.csv", "human", labels=["Bad", "Okay", "Good"])
    test = found.whole.omnibus
    assert test.p is not None and test.permutation is not None
    assert f"χ² says p = {test.p:.4f}" in PAGE and round(test.permutation, 1) == 0.1 and "in one of ten draws" in PAGE
    assert "11.86 € an hour" in PAGE and round(2.25 / (11 * 60 + 23) * 3600, 2) == 11.86


def test_the_made_up_ratings_and_raters_go_together() -> None:
    with (ROOT / "docs" / "study.csv").open() as ratings, (ROOT / "docs" / "study_raters.csv").open() as raters:
        rows, people = list(csv.DictReader(ratings)), list(csv.DictReader(raters))
    assert {(row["rater"], row["group"]) for row in rows} == {(row["rater"], row["group"]) for row in people}
    seen = [{(row["block"], row["item"]) for row in rows if row["group"] == group} for group in ("human", "model-a", "model-b")]
    assert seen[0] == seen[1] == seen[2] and len(seen[0]) == 60
