"""The page's figures of a criterion: fractions by hand, other programs' figures, and reasons where there is none."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence

import krippendorff
import numpy as np
import pytest
from empathy_eval.design.rubrics import Scale, load_rubric
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.agreement import Estimate, RatingTable, agree
from empathy_eval.raters.agreement.panel import Framework, JudgeRater, Panel, frameworks_of
from empathy_eval.raters.agreement.reliability import Reliability, ReliabilityRow, band, reliability
from sklearn.metrics import cohen_kappa_score

from tests.raters.test_agreement import NAN, Grid, grid, measures, rows, same

NONE = ResamplingSettings(0, 0, 0)
Lines = dict[str, list[tuple[str, str, float, str]]]


def found(
    given: RatingTable, judges: Sequence[str] = (), crowd: Sequence[str] = (), chance: ResamplingSettings = NONE, crowd_as: str = "mean",
    frameworks: tuple[Framework, ...] = (),
) -> Reliability:  # fmt: skip
    experts = tuple(name for name in given.raters if name not in (*judges, *crowd))
    panel = Panel(experts, tuple(JudgeRater(name, name) for name in judges), tuple(crowd), crowd_as)
    agreement = agree(given.without(crowd), judges, chance.resamples, chance.seed)
    return reliability(given, panel, frameworks or frameworks_of(given.without(crowd), {}, ()), agreement, chance)


def row(made: Reliability) -> ReliabilityRow:
    ((one,),) = (framework.rows for framework in made.frameworks)
    return one


def table(ratings: Sequence[Sequence[float]] | Grid, names: Sequence[str]) -> RatingTable:
    return RatingTable.of(rows(np.array(ratings), names=names))


# Experts whose medians are 1, 2.5, 3 and 2; the crowd gives the first item 1 and 2, the second 2 and 3, the third 1, 1 and 2, the last 2.
EXPERTS = [[1.0, 2, 3, 2], [1.0, 3, 3, 2]]
JUDGE = [2.0, 3, 3, 1]
PEOPLE = [[1.0, 2, 1, 2], [2, 3, 1, NAN], [NAN, NAN, 2, NAN]]
NAMES = ("e1", "e2", "j", "p1", "p2", "p3")
SMALL = table([*EXPERTS, JUDGE, *PEOPLE], NAMES)


def test_inflation_by_hand_is_in_points_above_the_median_and_a_crowd_counts_as_it_is() -> None:
    made = row(found(SMALL, ["j"], NAMES[3:]))
    # 2 - 1, 3 - 5/2, 3 - 3 and 1 - 2; of the crowd 3/2 - 1, 5/2 - 5/2, 4/3 - 3 and 2 - 2
    assert same(made.inflation["j"], (1 + 1 / 2 + 0 - 1) / 4)
    assert same(made.inflation["crowd"], (1 / 2 + 0 - 5 / 3 + 0) / 4)


def test_the_mean_of_a_crowd_is_rounded_to_the_scale_halves_up() -> None:
    made = row(found(SMALL, ["j"], NAMES[3:]))
    # 3/2 is 2, 5/2 is 3, 4/3 is 1 and 2 is 2
    assert made.scale == (1.0, 2.0, 3.0) and made.histogram["crowd"] == (1.0, 2.0, 1.0)
    assert made.histogram["experts"] == (2.0, 3.0, 3.0) and made.histogram["median expert"] == (1.0, 1.5, 1.5)
    assert made.crowd and "crowd:mean|rounded:halves-up|onto:whole-numbers|" in made.crowd.kappa.signature


def test_a_judge_against_the_crowd_by_hand() -> None:
    made = row(found(SMALL, ["j"], NAMES[3:]))
    # 2 3 3 1 beside 2 3 1 2: squares apart 0 + 0 + 4 + 1 over 4. The judge gives 1, 2, 3 once, once, twice, the crowd once, twice, once:
    # (1 (0 + 2 + 4) + 1 (1 + 0 + 1) + 2 (4 + 2 + 0)) / 16 by chance
    assert same(made.crowd_with_judge["j"], 1 - (5 / 4) / (20 / 16))


def test_the_median_of_a_crowd_is_taken_where_it_is_asked_for() -> None:
    made = row(found(SMALL, ["j"], NAMES[3:], crowd_as="median"))
    # Medians 3/2, 5/2, 1 and 2
    assert made.histogram["crowd"] == (1.0, 2.0, 1.0) and same(made.inflation["crowd"], (1 / 2 + 0 - 2 + 0) / 4)


def test_a_crowd_is_rounded_to_values_that_occur_where_these_are_not_whole_numbers() -> None:
    people = [[0.1, 0.2], [0.2, 0.5]]
    made = row(found(table([[0.1, 0.5], [0.2, 0.5], *people], ("e1", "e2", "p1", "p2")), [], ["p1", "p2"]))
    # Of 0.1, 0.2 and 0.5: 0.15 is half-way, so 0.2; 0.35 is half-way too, so 0.5
    assert made.scale == (0.1, 0.2, 0.5) and made.histogram["crowd"] == (0.0, 1.0, 1.0)


def test_a_scale_of_a_rubric_has_its_values_that_nobody_gave() -> None:
    framework = Framework("own", "Own", ("empathy",), {"empathy": Scale(0, 5, True)}, {"empathy": "low"})
    made = row(found(SMALL, ["j"], NAMES[3:], frameworks=(framework,)))
    assert made.scale == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0) and made.histogram["j"] == (0.0, 1.0, 1.0, 2.0, 0.0, 0.0) and made.better == "low"


def people(seed: int, missing: float) -> tuple[RatingTable, Grid, Grid]:
    """Three experts, two judges and a crowd of twelve, with the values of the judges and the mean of the crowd."""
    ratings = grid(seed, items=40, raters=5, steps=5, missing=0)
    crowd = np.where(np.arange(12)[:, None] % 3 == seed % 3, 3, grid(seed + 50, items=40, raters=12, steps=5, missing=missing))
    names = ["e1", "e2", "e3", "j1", "j2", *(f"p{place:02}" for place in range(12))]
    return table(np.vstack([ratings, crowd]), names), ratings, np.nanmean(crowd, axis=0)


@pytest.mark.parametrize("seed", range(6))
def test_kappas_of_crowd_judges_and_median_are_those_of_scikit_learn_and_alphas_those_of_krippendorff(seed: int) -> None:
    given, ratings, mean = people(seed, 0.4)
    made = row(found(given, ["j1", "j2"], [name for name in given.raters if name.startswith("p")]))
    median, rounded = np.median(ratings[:3], axis=0), np.floor(mean + 0.5)
    of = {"weights": "quadratic", "labels": [1, 2, 3, 4, 5]}
    assert made.crowd and same(made.crowd.kappa, cohen_kappa_score(rounded, median, **of))
    for place, name in ((3, "j1"), (4, "j2")):
        assert same(made.judges[name].kappa, cohen_kappa_score(ratings[place], median, **of))
        assert same(made.crowd_with_judge[name], cohen_kappa_score(ratings[place], rounded, **of))
        assert same(made.inflation[name], float(np.mean(ratings[place] - median)))
    assert same(made.inflation["crowd"], float(np.mean(mean - median)))
    assert same(made.alpha["experts"], krippendorff.alpha(ratings[:3], level_of_measurement="interval"))
    assert same(made.alpha["judges"], krippendorff.alpha(ratings[3:], level_of_measurement="interval"))
    # In thousandths of a point, so that it is equal to three places or more.
    beside = krippendorff.alpha(np.vstack([median, mean]), level_of_measurement="interval")
    assert made.crowd_alpha and made.crowd_alpha.value == pytest.approx(beside, abs=1e-3)


def test_a_judge_at_the_benchmark_or_above_is_marked_and_the_difference_has_an_interval() -> None:
    given, _, _ = people(1, 0.4)
    made = row(found(given, ["j1", "j2"], chance=ResamplingSettings(200, 0, 0)))
    best = made.experts.value or 0
    for placed in made.judges.values():
        assert placed.kappa.value is not None and same(placed.minus_benchmark, placed.kappa.value - best)
        assert placed.at_benchmark is (placed.kappa.value >= best)
        assert (placed.minus_benchmark.low or 0) < (placed.minus_benchmark.value or 0) < (placed.minus_benchmark.high or 0)
    alike = row(found(table([[1.0, 2, 3], [1, 2, 3], [1, 2, 3]], ("e1", "e2", "j")), ["j"]))
    assert alike.judges["j"].at_benchmark is True and same(alike.judges["j"].minus_benchmark, 0)


def test_figures_of_experts_are_those_of_agree_and_a_crowd_changes_none() -> None:
    given, _, _ = people(2, 0.4)
    crowd = [name for name in given.raters if name.startswith("p")]
    plain = agree(given.without(crowd), ["j1", "j2"], 100, 0).criteria[0]
    made = row(found(given, ["j1", "j2"], crowd, ResamplingSettings(100, 0, 0)))
    assert made.experts == plain.benchmark.median and made.alpha["experts"] == plain.alpha["interval"]
    assert [one.kappa for one in made.pairs] == [one.kappa["quadratic"] for one in plain.benchmark.pairs]
    beside = {one.rater: one.kappa["quadratic"] for one in plain.against_median}
    assert {name: one.kappa for name, one in made.judges.items()} == {name: beside[name] for name in ("j1", "j2")}


def test_variance_inflation_is_among_the_criteria_of_a_framework() -> None:
    one: Lines = {name: rows(grid(seed, missing=0), name) for seed, name in enumerate(("a", "b"))}
    # Other items: no item has all four criteria.
    other: Lines = {
        name: [(f"other-{item}", rater, value, of) for item, rater, value, of in rows(grid(seed, missing=0), name)]
        for seed, name in ((7, "c"), (8, "d"))
    }
    given = RatingTable.of(line for part in (one, other) for some in part.values() for line in some)
    frameworks = frameworks_of(given, dict.fromkeys("ab", "first") | dict.fromkeys("cd", "second"), ())
    made = found(given, frameworks=frameworks)
    assert agree(given, resamples=0).inflation["a"].value is None
    for framework, part in zip(made.frameworks, (one, other), strict=True):
        alone = agree(RatingTable.of(line for some in part.values() for line in some), resamples=0).inflation
        assert {some.criterion: some.vif.value for some in framework.rows} == {name: one.value for name, one in alone.items()}
        assert {some.band for some in framework.rows} == {"low"}


@pytest.mark.parametrize(("value", "word"), [(1.0, "low"), (4.0, "low"), (4.001, "moderate"), (9.999, "moderate"), (10.0, "high")])
def test_bands_of_variance_inflation_are_those_of_the_studies(value: float, word: str) -> None:
    assert band(Estimate(value, n=9, signature="vif")) == word
    assert band(Estimate.undefined("there is only one criterion", "vif")) is None


BARE: dict[str, tuple[RatingTable, Sequence[str], Sequence[str], set[str]]] = {
    "one expert": (
        table([[1.0, 2, 3], [1.0, 3, 3]], ("e1", "j")), ["j"], [],
        {"there are fewer than two experts", "the experts have no benchmark: there are fewer than two experts", "there is only one judge"},
    ),
    "no judge": (table(EXPERTS, ("e1", "e2")), [], [], {"there is no judge", "there is only one criterion"}),
    "experts that are a crowd": (
        table(grid(1, raters=32, missing=0), [f"r{place:02}" for place in range(32)]), ["r00"], [],
        {"there are 31 raters: pairs are compared for at most 30",
         "the experts have no benchmark: there are 31 raters: pairs are compared for at most 30"},
    ),
    "nothing in common": (
        table([[1.0, 2, NAN, NAN], [1, 3, NAN, NAN], [NAN, NAN, 1, 2], [NAN, NAN, 2, 1]], ("e1", "e2", "j", "p")), ["j"], ["p"],
        {"no item in common", "no item that experts have rated", "no item with two ratings"},
    ),
    "one item": (
        table([[1.0], [2.0], [1.0], [1.0]], ("e1", "e2", "j", "p")), ["j"], ["p"],
        {"only one item in common", "only one item with two ratings"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BARE)
def test_what_is_not_defined_says_why(name: str) -> None:
    given, judges, crowd, reasons = BARE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = found(given, judges, crowd, ResamplingSettings(20, 0, 0))
    said = measures(json.loads(json.dumps(made.to_json(), allow_nan=False)))
    seen = [one for one in said if "value" in one]
    assert all((one["median"] is None) == bool(one["why"]) for one in said if "value" not in one)
    assert all((one["value"] is None) <= bool(one["why"]) and (one["low"] is None) == bool(one["why"]) and one["signature"] for one in seen)
    assert reasons <= {one["why"] for one in seen}
    assert all(one.at_benchmark is None for one in row(made).judges.values())


def test_a_crowd_that_rates_nothing_that_the_panel_does_has_no_figure_and_says_so() -> None:
    apart = [[1.0, 2, NAN], [2, 2, NAN], [1, 2, NAN], [NAN, NAN, 3]]
    made = row(found(table(apart, ("e1", "e2", "j", "p")), ["j"], ["p"]))
    assert made.crowd and made.crowd_alpha and made.items == 2 and "crowd" not in made.histogram
    seen = (made.crowd.kappa, made.crowd_alpha, made.inflation["crowd"], made.crowd_with_judge["j"])
    assert {one.reason for one in seen} == {"on this criterion the crowd rated no item that experts or judges rated"}
    alone = row(found(table(apart[:3], ("e1", "e2", "j")), ["j"]))
    assert alone.crowd is None and alone.crowd_alpha is None and alone.crowd_with_judge == {} and list(alone.inflation) == ["j"]


def test_the_order_of_rows_changes_no_figure() -> None:
    given, _, _ = people(3, 0.3)
    crowd, lines = [name for name in given.raters if name.startswith("p")], list(given.rows())
    shuffled = RatingTable.of([lines[place] for place in np.random.default_rng(1).permutation(len(lines))])
    one, other = (json.dumps(found(some, ["j1"], crowd, ResamplingSettings(50, 0, 0)).to_json()) for some in (given, shuffled))
    assert one == other


def test_frameworks_are_those_of_columns_then_of_rubrics_and_the_rest_is_reported_to_be_of_none() -> None:
    names = ("fluency", "dismissing_emotions", "validating_emotions", "own", "odd")
    given = RatingTable.of((f"i{item}", rater, 1 + item % 3, name) for item in range(4) for rater in ("a", "b") for name in names)
    rubrics = [load_rubric("lend-an-ear"), load_rubric("empathetic-dialogues")]
    made = frameworks_of(given, {"own": "mine", "fluency": "Lend an Ear"}, rubrics)
    assert [(one.name, one.title, one.criteria) for one in made] == [
        ("lend-an-ear", "Lend an Ear", ("validating_emotions", "dismissing_emotions", "fluency")),
        ("mine", "mine", ("own",)),
        ("", "Other criteria", ("odd",)),
    ]
    assert made[0].opposites == (("validating_emotions", "dismissing_emotions"),)
    assert made[0].better == {"validating_emotions": "high", "dismissing_emotions": "low", "fluency": "high"}
    assert made[1].scales == {}
