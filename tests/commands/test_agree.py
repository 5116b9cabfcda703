"""What ``agree`` prints, and that the page about it is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import empathy_eval as ee
import pytest
from empathy_eval.cli import main
from empathy_eval.raters.agreement import agree, read_table, read_tables

from tests.evaluation.test_score_judge import Judge, own_rubric

DOCS = Path(__file__).parent.parent.parent / "docs"
EXAMPLE = DOCS / "agreement.csv"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["agree", *arguments]) == 0
    return capsys.readouterr().out


def test_the_page_shows_what_its_command_prints(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "agreement.md").read_text()
    page, _, _ = page.partition("## A page of experts")
    blocks = dict(re.findall(r"^```(csv|sh)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert EXAMPLE.read_text().startswith(blocks["csv"])
    monkeypatch.chdir(DOCS.parent)
    program, verb, *arguments = blocks["sh"].split()
    assert (program, verb) == ("empathy-eval", "agree")
    figures = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    said = re.sub(r"numpy:\S+", "numpy:", printed(capsys, *arguments))
    assert len(figures) == 2 and all(re.sub(r"numpy:\S+", "numpy:", block) in said for block in figures)


def test_json_has_every_figure_with_items_interval_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(
        printed(capsys, str(EXAMPLE), "--judge", "judge-a", "--seed", "3", "--resamples", "100", "--level", "ordinal", "--json")
    )
    assert [one["name"] for one in found.pop("provenance")["files"]] == [EXAMPLE.name]
    assert found == json.loads(json.dumps(agree(read_table(EXAMPLE), ["judge-a"], 100, 3, "ordinal").to_json()))
    empathy = found["criteria"][1]
    assert (found["experts"], found["judges"]) == (["rater-01", "rater-02", "rater-03"], ["judge-a"])
    assert empathy["benchmark"]["weights"] == "linear" and [one["judge"] for one in empathy["benchmark"]["judges"]] == ["judge-a"]
    pair = empathy["benchmark"]["pairs"][0]["kappa"]["plain"]
    assert pair["items"] == 10 and pair["low"] < pair["value"] < pair["high"] and pair["why"] is None
    assert pair["signature"].startswith("kappa:cohen|weights:plain|interval:percentile|level:0.95|resamples:100|seed:3|unit:item|units:12|")


def test_figures_without_an_interval_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, str(EXAMPLE), "--resamples", "0")
    assert "(no interval)" in said and said.splitlines()[-1].startswith("(no interval): ")
    assert "(no interval)" not in printed(capsys, str(EXAMPLE))


def test_very_many_pairs_are_counted_and_left_to_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("item,rater,rating\n" + "".join(f"{item},{rater},{(item * rater) % 3}\n" for item in range(5) for rater in range(11)))
    assert "55 pairs, too many to show" in printed(capsys, str(path), "--resamples", "10")


def test_a_bad_table_or_option_exits_with_2_and_says_how_to_mend_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("item,rater,rating\na,r,good\n")
    assert main(["agree", str(path)]) == 2
    assert f'{path}: line 2: rating "good" is not of type number\n  Fix: ' in capsys.readouterr().err
    assert main(["agree", str(EXAMPLE), "--judge", "nobody"]) == 2
    assert "use one of judge-a, rater-01, rater-02, rater-03" in capsys.readouterr().err


def test_a_folder_of_annotations_appears_beside_what_people_rated(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "judged"
    ee.annotate(light, folder, rubric=own_rubric(tmp_path / "cold.yaml"), model=Judge(), turns=6, samples=2)
    table = read_tables([folder])
    assert table.raters == ("lab/own", "lab/own#2") and table.criteria == ("cold",)
    first = [(item, rating) for item, rater, rating, _ in table.rows() if rater == "lab/own"]
    assert {item.partition(":")[2] for item, _ in first} >= {"reference", "apathetic", "empathetic"}
    people = tmp_path / "people.csv"
    lines = [
        f"{item},{who},cold,{rating if who == 'rater-01' else 6 - rating:g}" for item, rating in first for who in ("rater-01", "rater-02")
    ]
    people.write_text("\n".join(["item,rater,criterion,rating", *lines]) + "\n")
    found = json.loads(
        printed(capsys, str(people), str(folder), "--judge", "lab/own", "--judge", "lab/own#2", "--resamples", "0", "--json")
    )
    (cold,) = found["criteria"]
    kappa = {tuple(one["raters"]): one["kappa"]["quadratic"]["value"] for one in cold["benchmark"]["judges"][0]["pairs"]}
    assert cold["items"] == len(first) and kappa["lab/own", "rater-01"] == 1 > kappa["lab/own", "rater-02"]
    assert main(["agree", str(folder), str(folder)]) == 2
    assert "again" in capsys.readouterr().err
