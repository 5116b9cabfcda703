"""Fairness: gaps by hand, few dialogues told, judges by group alike, and metrics that go by a name caught."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.design.contrasts import CELLS, NEAR, PAIR_VARIANTS, RAW, STANCE
from empathy_eval.design.dataset import column
from empathy_eval.design.scenarios import ScenarioGroup, ScenarioGroups, load_catalogue, load_groups
from empathy_eval.evaluation.corpus.pairs import read_contexts, read_corpus
from empathy_eval.evaluation.fairness.fairness import FairnessTest, ScenarioPairs, exchange_pairs, group_rows
from empathy_eval.evaluation.fairness.names import OTHER_GROUP, load_names
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, ScoredPairs
from empathy_eval.evaluation.inversion.results import correct_p_values
from empathy_eval.evaluation.inversion.rows import FairnessRow, FairnessTable, Gap
from empathy_eval.evaluation.measure import score
from empathy_eval.metrics.protocol import MeanMetric
from empathy_eval.statistics.estimate import Clusters, Estimate, PairwiseComparisons, holm
from empathy_eval.statistics.estimate import Estimate as WithP

from tests.doubles.papers_anew import report_faults, told_anew

CHANCE = ResamplingSettings(200, 99, 7)
LONG = "LONG" in os.environ
GROUPS = ScenarioGroups(
    (
        ScenarioGroup("pets", "Those of animals.", ("Dealing with the Loss of a Pet",)),
        ScenarioGroup("elsewhere", "Nobody is here.", ("No such scenario",)),
    ),
    "s1-groups",
)


def rows_of(kind: Sequence[float], cold: Sequence[float], scenarios: Sequence[int], group: set[int]) -> FairnessRow:
    """The row of a scorer of one pair a dialogue."""
    clusters = Clusters.of([f"d{number}" for number in range(len(kind))], scenarios)
    rated = {"m": ScoredPairs(PairwiseComparisons([(np.array(kind, dtype=float), np.array(cold, dtype=float))]), "sig")}
    (row,) = group_rows("stance", rated, clusters, ScenarioPairs({"g": frozenset(group)}, "s1-x"), CHANCE)
    return row


def test_a_group_is_held_against_all_other_scenarios_by_hand() -> None:
    # In the group 5 of 6 are won, in the others 2 of 6 and two tied.
    kind, cold = [2, 2, 2, 2, 2, 0, 1, 1, 2, 2, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    row = rows_of(kind, cold, [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4], {1, 2})
    assert row.accuracy and row.effect and (row.pairs, row.of, row.dialogues) == (6, 12, 6)
    assert row.accuracy.first.value == pytest.approx(5 / 6, abs=1e-6) and row.accuracy.second.value == 0.5
    one = row.accuracy.difference
    assert one.number == pytest.approx(1 / 3, abs=1e-6) and one.low is not None and one.high is not None and one.low < one.number < one.high
    # Mean 5/3 - 1 over the root of the mean of the variances 5/9 and 0; elsewhere nothing over a spread.
    assert row.effect.first.value == pytest.approx((2 / 3) / (5 / 18) ** 0.5, abs=1e-6) and row.effect.second.value == 0
    assert one.p is not None and 0.05 < one.p < 0.5 and "freedom:4" in row.signature


def test_few_dialogues_carry_no_interval_and_say_so_and_so_does_a_group_of_everything() -> None:
    row = rows_of([2, 2, 0, 2, 2, 2, 2, 0], [1] * 8, list(range(1, 9)), {1, 2, 3})
    assert row.accuracy and row.accuracy.first == Estimate(0.666667)
    assert row.accuracy.difference.p is None and row.accuracy.difference.low is None
    assert row.why == "3 dialogues here, and an interval wants 5"
    every = rows_of([2, 0, 2, 0, 1], [1] * 5, [1] * 5, {1})
    assert every.accuracy is None and every.why == "there are no other scenarios"


def test_scenarios_of_one_dialogue_never_leave_a_side_without_any() -> None:
    row = rows_of([2, 3, 4, 0, 5] + [2, 0] * 20, [1, 2, 3, 4, 0] * 9, list(range(1, 46)), set(range(1, 6)))
    assert row.accuracy and row.accuracy.difference.p is not None
    # Four times the same dialogue of a single pair is a resample too, and its scores have no spread.
    assert row.effect and row.effect.difference.low is None and row.why == "some resamples have no spread, and so no effect"


def shares_below(inside: int, times: int) -> list[float]:
    """How often p is below 0.05 though nothing differs: 60 dialogues of seven pairs and of 60 scenarios, so many of them in the group."""
    draw, pairs = np.random.default_rng(7), np.repeat(np.arange(60), 7)
    pulls = [0.5 + 1.5 * draw.normal(size=60)[pairs] + draw.normal(size=len(pairs)) for _ in range(times)]
    rated = {str(number): ScoredPairs(PairwiseComparisons([(pull, np.zeros_like(pull))]), "sig") for number, pull in enumerate(pulls)}
    clusters = Clusters.of([f"d{number}" for number in pairs], pairs.tolist())
    rows = group_rows("stance", rated, clusters, ScenarioPairs({"g": frozenset(range(inside))}, "s1-x"), ResamplingSettings(999, 0, 7))
    both = [(row.accuracy.difference.p, row.effect.difference.p) for row in rows if row.accuracy and row.effect]
    assert len(both) == times
    return [round(100 * float(np.mean([p is not None and p < 0.05 for p in some])), 1) for some in zip(*both, strict=True)]


@pytest.mark.sampled
def test_of_simulated_groups_without_a_difference_p_is_seldom_small() -> None:
    if not LONG:
        assert all(1 <= share <= 11 for share in shares_below(5, 200))
        return
    (few, effect), (more, other) = shares_below(5, 2000), shares_below(8, 2000)
    told = f"{few} % (accuracy) and {effect} % (effect) with five of them in the group, and in {more} and {other} % with eight"
    assert told in " ".join((Path(__file__).parent.parent.parent / "docs" / "scoring.md").read_text(encoding="utf-8").split())


def test_pairs_without_a_score_are_left_out_of_both_sides() -> None:
    kind = [2, 2, 2, 2, 2, float("nan"), 0, 0, 0, 0, 0, 0]
    row = rows_of(kind, [1] * 12, [1] * 6 + [2] * 6, {1})
    assert (row.pairs, row.of) == (5, 11) and row.accuracy and row.accuracy.difference.value == 1


def test_p_values_are_corrected_over_groups_and_metrics_and_those_of_a_judge_by_themselves() -> None:
    def row(metric: str, p: float, q: float) -> FairnessRow:
        one, other = (Gap(Estimate(0.5), Estimate(0.5), WithP(0.1, 0, 1, value)) for value in (p, q))
        return FairnessRow(metric, "g", "stance", 1, 2, 3, one, other, "s")

    made = correct_p_values(
        [row("a", 0.01, 0.02), row("j:x", 0.03, 0.01), row("b", 0.5, 0.001), row("j:y", 0.04, 0.2)], {"j:x": "j", "j:y": "j"}
    )
    found = [(one.accuracy.difference.p_corrected, one.effect.difference.p_corrected) for one in made if one.accuracy and one.effect]
    ours, theirs = holm([0.01, 0.02, 0.5, 0.001]), holm([0.03, 0.01, 0.04, 0.2])
    assert [found[0], found[2]] == [pytest.approx(tuple(ours[:2])), pytest.approx(tuple(ours[2:]))]
    assert [found[1], found[3]] == [pytest.approx(tuple(theirs[:2])), pytest.approx(tuple(theirs[2:]))]


def test_each_group_names_scenarios_that_there_are_and_a_name_twice_is_refused(tmp_path: Path) -> None:
    names = {one.name for one in load_catalogue().scenarios}
    groups = load_groups().groups
    assert all(set(one.scenarios) <= names for one in groups)
    path = tmp_path / "groups.yaml"
    path.write_text("- {name: a, definition: b, scenarios: [c]}\n- {name: a, definition: b, scenarios: [d]}\n")
    with pytest.raises(InputError, match="occurs twice"):
        load_groups(path)


# In one of the seeds of the small world somebody speaks of a Friday, which is the only name of these rules.
NAMES = """
groups:
  - {name: here, told: of here, women: [], men: [Friday], either: []}
  - {name: there, told: of there, women: [], men: [Bello], either: []}
"""


class ByName(MeanMetric):
    """Prefers the kind text, but where somebody is called Bello."""

    name, signature, reads = "by-name", "v1", ("context",)

    def __init__(self, kind: set[str], fair: bool = False) -> None:
        self._kind, self._fair = kind, fair
        self.name = "fair" if fair else "by-name"

    def score(self, text: str, *read: Any) -> float:
        """1 for a kind text, unless a name that it knows is there."""
        told = " ".join([text, *(turn["text"] for turn in read[0])]).casefold()
        return float(text.replace("Bello", "Friday") in self._kind and (self._fair or "bello" not in told))


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of rules with a single name to exchange."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "names.yaml").write_text(NAMES)
    return folder


@pytest.fixture(scope="module")
def table(light: Path, rules: Path) -> FairnessTable:
    corpus = read_corpus(light, "controls", CELLS)
    kind = {*corpus.variants["empathetic"], *corpus.variants[NEAR[0]], *column(light, "pairs", "empathetic")}
    metrics: Any = [ByName(kind), ByName(kind, fair=True), "length"]
    measured = score(light, metrics, shortcuts=False, fairness=partial(FairnessTest, rules=rules, groups=GROUPS))
    assert measured.fairness
    return measured.fairness


def test_a_metric_that_goes_by_a_name_is_caught_and_a_fair_one_is_not(table: FairnessTable) -> None:
    unfair, fair = table.names
    assert unfair.accuracy and fair.accuracy and (unfair.name, unfair.contrast) == (OTHER_GROUP, STANCE)
    # With the name nothing is preferred any more: each comparison is tied, and without a spread there is no effect.
    assert unfair.effect is None
    assert (unfair.accuracy.first.value, unfair.accuracy.second.value, unfair.accuracy.difference.value) == (0.5, 1, -0.5)
    assert fair.accuracy.difference == WithP(0.0, None, None, None, None) and unfair.pairs < unfair.of
    assert unfair.why == "all pairs with names are of one dialogue" and "names:exchanged,group" in unfair.signature
    assert any("length: is not asked" in one for one in table.notes) and any("by gender" in one for one in table.notes)


def test_a_group_without_scenarios_of_the_release_has_no_row(table: FairnessTable) -> None:
    assert {row.name for row in table.groups} == {"pets"} and {row.why for row in table.groups} == {
        "1 dialogue here, and an interval wants 5"
    }
    row = next(one for one in table.groups if one.metric == "by-name")
    assert row.accuracy and row.accuracy.first.value == row.accuracy.second.value == 1 and row.accuracy.difference.value == 0


def test_scenarios_that_are_in_no_group_are_said_to_be_so(light: Path, table: FairnessTable) -> None:
    measured = score(light, ["bleu"], shortcuts=False, fairness=partial(FairnessTest, groups=replace(GROUPS, groups=GROUPS.groups[1:])))
    assert measured.fairness and measured.fairness.groups == []
    assert "no scenario here is in a group of groups.yaml" in measured.fairness.notes
    assert not any("no scenario" in one for one in table.notes)


def test_names_of_a_pair_are_drawn_alike_however_many_others_there_are(light: Path) -> None:
    names = load_names()
    assert names
    corpus = replace(read_corpus(light, "pairs", PAIR_VARIANTS), contexts=())
    texts = {**corpus.variants, "empathetic": ["I miss Susan."] * len(corpus)}
    corpus, contexts = replace(corpus, variants=texts), list(read_contexts(light, "pairs"))
    every = exchange_pairs(corpus, (range(len(corpus)), contexts), names, OTHER_GROUP, 7)
    some = exchange_pairs(corpus, ([3, 1], [contexts[3], contexts[1]]), names, OTHER_GROUP, 7)
    assert some.pairs.variants["empathetic"] == [every.pairs.variants["empathetic"][row] for row in (3, 1)]
    assert len(set(every.pairs.variants["empathetic"])) > 1 and some.signature != every.signature


def test_a_judge_by_its_scores_has_rows_by_group_as_released_where_it_scored_no_control(light: Path, tmp_path: Path) -> None:
    ids = column(light, "pairs", "pair_id")
    lines = [f"{pair},{name},{value}" for pair in ids for name, value in zip(PAIR_VARIANTS, (0, 1), strict=True)]
    (tmp_path / "judge.csv").write_text("\n".join(["pair_id,variant,score", *lines]) + "\n")
    measured = score(light, (), [tmp_path / "judge.csv"], shortcuts=False, fairness=partial(FairnessTest, groups=GROUPS))
    assert measured.fairness
    (row,) = measured.fairness.groups
    assert (row.metric, row.contrast, row.of) == ("judge", RAW, len(ids)) and row.accuracy and row.accuracy.first.value == 1
    assert "annotate --attacks asks a judge" in measured.fairness.notes[0]


@pytest.mark.e2e
def test_every_form_says_the_same(light: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["score", str(light), "--metric", "bleu", "--fairness", "--no-shortcuts"]
    assert main([*given, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["fairness"]
    assert main([*given, "--csv"]) == 0
    lines = [one for one in csv.DictReader(io.StringIO(capsys.readouterr().out)) if one["table"] == "fairness by group"]
    assert [(one["group"], float(one["value"])) for one in lines if one["other"] == "accuracy"] == [
        (row["name"], row["accuracy"]["difference"]["value"]) for row in told["groups"]
    ]
    assert main(given) == 0
    out = capsys.readouterr().out
    assert "by group of scenarios" in out and "grief" in out and "1 dialogue here, and an interval wants 5" in out


@pytest.mark.e2e
def test_the_report_has_the_tables_and_verify_misses_them(light: Path, tmp_path: Path) -> None:
    old = shutil.copytree(light, tmp_path / "old")
    path = old / "report" / "tables.json"
    tables = json.loads(path.read_text())
    assert (
        tables["fairness"]["groups"]
        and "The first rows compare the accuracy of each metric in a group of scenarios" in (old / "report" / "index.html").read_text()
    )
    wrong = json.loads(path.read_text())
    wrong["fairness"]["groups"][0]["accuracy"]["here"]["value"] += 0.25
    told_anew(old, wrong)
    assert any("fairness" in str(one) for one in report_faults(old))
    del tables["fairness"]
    told_anew(old, tables)
    assert any("fairness" in str(one) for one in report_faults(old))
