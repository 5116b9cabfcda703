"""Failure cases: which texts scorers place furthest apart, by hand, and how they are shown."""

from __future__ import annotations

import json
from pathlib import Path

import empathy_eval as ee
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.design.contrasts import CELLS, STANCE_OF
from empathy_eval.design.dataset import column
from empathy_eval.evaluation.external.failures import Truth, find_failures
from empathy_eval.evaluation.inversion.results import ReleaseTables
from empathy_eval.raters.people.correlations import AgainstPeople

# Scores of the four cells of one pair by two scorers: of the second, lower is better.
WARM = dict(zip(CELLS, (4.0, 1.0, 2.0, 3.0), strict=True))
COLD = dict(zip(CELLS, (1.0, 2.0, 2.0, 3.0), strict=True))
# Midranks of four texts, less one half, over four. Stance has 0.25 and 0.75.
BY_HAND = {"warm": (0.875, 0.125, 0.375, 0.625), "cold": (0.875, 0.5, 0.5, 0.125), "stance": (0.75, 0.25, 0.75, 0.25)}


def pair_of(light: Path) -> str:
    return str(column(light, "controls", "pair_id")[0])


def test_the_spread_is_that_of_ranks_by_hand(light: Path) -> None:
    pair = pair_of(light)
    given = {"warm": {(pair, one): value for one, value in WARM.items()}, "cold": {(pair, one): value for one, value in COLD.items()}}
    found = find_failures(light, given, {"warm": True, "cold": False}, 3)
    ranks = {one: {name: some[place] for name, some in BY_HAND.items()} for place, one in enumerate(CELLS)}
    spread = {one: max(some.values()) - min(some.values()) for one, some in ranks.items()}
    assert spread == {"near_empathetic": 0.125, "apathetic": 0.375, "empathetic": 0.375, "far_apathetic": 0.5}
    assert [(one.variant, one.spread) for one in found.cases] == [("far_apathetic", 0.5), ("apathetic", 0.375), ("empathetic", 0.375)]
    first = found.cases[0]
    assert first.ranks == ranks["far_apathetic"] and (first.high, first.low) == ("warm", "cold")
    assert first.values == {"warm": 3.0, "cold": 3.0, "stance": 0.0} and first.explore.endswith(f"#id={pair}")
    by = {(one.by, one.label): one for one in found.groups}
    assert (by["crisis", "no"].texts, by["crisis", "no"].cases, by["crisis", "no"].mean_spread) == (4, 3, 0.34375)
    assert (by["manner", "empathetic text"].texts, by["manner", "empathetic text"].cases) == (2, 1)
    assert (found.texts, found.left_out) == (4, 0)


def test_people_replace_the_stance_and_texts_without_a_score_are_counted(light: Path) -> None:
    pair = pair_of(light)
    given = {"warm": {(pair, one): value for one, value in WARM.items()}}
    people = Truth("empathy", {(pair, "apathetic"): 3.0, (pair, "empathetic"): 1.0})
    found = find_failures(light, given, {"warm": True}, 9, people)
    # Of two texts: 0.25 and 0.75, the other way round.
    assert [(one.variant, one.ranks) for one in found.cases] == [
        ("apathetic", {"warm": 0.25, "people": 0.75}), ("empathetic", {"warm": 0.75, "people": 0.25})
    ]  # fmt: skip
    assert (found.texts, found.left_out) == (2, 2) and "people,empathy" in found.signature
    assert find_failures(light, {}, {}, 9).cases == ()


@pytest.mark.e2e
def test_the_command_shows_them_and_the_explorer_lists_them(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["score", str(light), "--metric", "vader", "--no-shortcuts", "--no-cache", "--failures", "2"]
    assert main([*asked, "--json"]) == 0
    printed = capsys.readouterr().out
    told = json.loads(printed)["failures"]
    assert len(told["cases"]) == 2 and told["texts"] == sum(len(column(light, name, "pair_id")) * 2 for name in ("pairs", "controls"))
    assert {one["ranks"]["stance"] > 0.5 for one in told["cases"] if STANCE_OF[one["variant"]] == "empathetic"} <= {True}
    assert main(asked) == 0 and "failure cases: 2 of" in capsys.readouterr().out
    (tmp_path / "found.json").write_text(printed)
    assert main(["explore", str(light), "--out", str(tmp_path / "page.html"), "--failures", str(tmp_path / "found.json")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert all(f'href="#id={one["pair_id"]}"' in page for one in told["cases"]) and "Failure cases: 2 of" in page


@pytest.mark.e2e
def test_beside_people_shortcuts_that_nobody_asked_for_make_no_case(light: Path, tmp_path: Path) -> None:
    ratings, pair = tmp_path / "ratings.csv", pair_of(light)
    ratings.write_text(
        "item,rater,rating\n" + "".join(f"{pair}:{one},r{who},{1 + place % 3}\n" for place, one in enumerate(CELLS) for who in "ab")
    )
    measured = ee.score(light, ["rouge-l"], ratings=ratings, failures=1, cache=False)
    assert isinstance(measured, AgainstPeople) and measured.failures
    assert set(measured.failures.cases[0].ranks) == {"ROUGE-L", "people"}
    assert "failures" not in ee.score(light, ["rouge-l"], ratings=ratings, cache=False).to_json()
    plain = ee.score(light, ["rouge-l"], items=tmp_path / "items.csv", failures=1, shortcuts=False, cache=False)
    assert isinstance(plain, ReleaseTables) and plain.failures and (tmp_path / "items.csv").is_file()


def test_what_cannot_be_is_refused(light: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text('{"context": "So.", "reply": "Yes."}\n')
    with pytest.raises(InputError, match="need texts of a release"):
        ee.score(own, ["vader"], failures=1)
    with pytest.raises(InputError, match="out of range"):
        ee.score(light, ["vader"], failures=0)
    for text, what in (("{}", "failures"), ('{"failures": 1}', "failures"), ("no", "not JSON|JSON")):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InputError, match=what):
            ee.explore(light, tmp_path / "page.html", failures=tmp_path / "bad.json")
    empty = {"groups": [], "texts": 1, "signature": "s"}
    case = {"pair_id": "999-00000-t01", "variant": "apathetic", "spread": 1.0, "text": "x", "ranks": {}, "reasons": {}}
    (tmp_path / "bad.json").write_text(json.dumps({"failures": {"cases": [case], **empty}}))
    with pytest.raises(InputError, match="is not a pair of this release"):
        ee.explore(light, tmp_path / "page.html", failures=tmp_path / "bad.json")
