"""``list``: what is shown is what can be used."""

from __future__ import annotations

import json

import empathy_eval as ee
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.design.rubrics import packaged_rubrics
from empathy_eval.evaluation.attacks.registry import BUILT_IN as ATTACKS
from empathy_eval.metrics.registry import BUILT_IN as METRICS


def test_all_names_of_the_registries_are_listed_each_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    by_kind = {kind: {one["name"] for one in found if one["kind"] == kind} for kind in ("metrics", "rubrics", "attacks")}
    assert by_kind["metrics"] >= set(METRICS) and by_kind["attacks"] >= set(ATTACKS) and by_kind["rubrics"] == set(packaged_rubrics())
    assert all(one["says"] for one in found if one["by"] in ([], ["empathy-eval"]))
    assert {one["name"]: one["extra"] for one in found if one["kind"] == "metrics"}["bertscore"] == "bertscore"


def test_one_kind_is_listed_alone_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "attacks"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("attacks\n  shuffled") and "metrics" not in said.splitlines()
    with pytest.raises(InputError, match=r'did you mean "rubrics"\?'):
        ee.names("rubric")
