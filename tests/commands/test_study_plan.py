"""What ``study --plan`` prints."""

from __future__ import annotations

import json
import re

import empathy_eval as ee
import pytest
from empathy_eval.cli import main

OPTIONS = ("study", "--plan", "--groups", "5", "--categories", "3", "--effect", "0.3", "--per-rater", "10", "--icc", "0.1")


def test_a_plan_says_how_many_raters_and_items_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*OPTIONS, "--share", "0.5"]) == 0
    said = capsys.readouterr().out.splitlines()
    told = {parts[0]: parts[1] for line in said if len(parts := re.split(" {2,}", line)) > 1}
    assert told == {
        "ratings, if independent": "253", "design effect": "1.9", "ratings, with the design effect": "481", "raters per group": "10",
        "items": "100",
    }  # fmt: skip
    assert any("50 in total, who give 500 ratings" in line for line in said) and any("[-33.6, +50.6] %" in line for line in said)
    assert said[-2].startswith("note: ") and said[-1] == ee.study_plan(0.3, groups=5, categories=3, share=0.5).signature


def test_json_is_the_plan_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*OPTIONS, "--alpha", "0.01", "--power", "0.8", "--json"]) == 0
    found = ee.study_plan(groups=5, categories=3, alpha=0.01, power=0.8)
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_json())) and found.low is None


def test_what_a_plan_does_not_take_or_lacks_is_reported_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "ratings.csv", "--plan", "--baseline", "human", "--csv"]) == 2
    said = capsys.readouterr().err
    lacks = ("RATINGS: applies to ratings", "--baseline: applies", "--csv: applies", "--groups: is missing", "--categories: is missing")
    assert all(one in said for one in lacks)
    assert said.count("Fix: ") == 5
    assert main([*OPTIONS[:3], "1", "--categories", "3", "--icc", "2", "--power", "1"]) == 2
    said = capsys.readouterr().err
    assert all(one in said for one in ('groups: "1" is out of range', 'icc: "2.0" is no', 'power: "1.0" is not a probability'))
    assert main(["study", "ratings.csv", "--baseline", "human", "--icc", "0.1", "--groups", "5"]) == 2
    assert capsys.readouterr().err.count("needs --plan") == 2


def test_a_plan_does_not_pass_over_what_only_ratings_take(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*OPTIONS, "--permutations", "0", "--seed", "0"]) == 2
    said = capsys.readouterr().err
    assert "--permutations: applies to ratings" in said and "--seed: applies to ratings" in said
