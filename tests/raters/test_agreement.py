"""Agreement: other programs' figures, fractions by hand, degenerate tables, and intervals that can be made again."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.commands.agree import agreement_table
from empathy_eval.design.provenance import KEYS
from empathy_eval.raters.agreement import Agreement, Estimate, RatingTable, agree
from empathy_eval.raters.agreement.agree import FIGURE_COLUMNS, CriterionAgreement, inflation_factors
from empathy_eval.statistics import agreement as bootstrap
from empathy_eval.statistics.agreement import ItemBootstrap, interval_alpha, krippendorff_alpha
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score, f1_score
from statsmodels.stats.inter_rater import fleiss_kappa
from statsmodels.stats.outliers_influence import variance_inflation_factor

CLOSE = 1e-9
NAN = float("nan")
Grid = NDArray[np.float64]


def grid(seed: int, items: int = 30, raters: int = 5, steps: int = 4, missing: float = 0.2) -> Grid:
    """Raters who see the same truth with noise, shape (raters, items); NaN where missing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, steps + 1, items)
    ratings = np.clip(truth + rng.integers(-1, 2, (raters, items)), 1, steps).astype(float)
    return np.where(rng.random((raters, items)) < missing, np.nan, ratings)


def table(ratings: Grid, criterion: str = "empathy", names: Sequence[str] | None = None) -> RatingTable:
    return RatingTable.of(rows(ratings, criterion, names))


def rows(ratings: Grid, criterion: str = "empathy", names: Sequence[str] | None = None) -> list[tuple[str, str, float, str]]:
    names = names or [f"rater-{place:02}" for place in range(len(ratings))]
    return [
        (f"item-{item:04}", names[rater], float(value), criterion) for rater, own in enumerate(ratings) for item, value in enumerate(own)
    ]


def only(agreement: Agreement) -> CriterionAgreement:
    (criterion,) = agreement.criteria
    return criterion


def same(measure: Estimate, expected: float) -> bool:
    """Equal, or both not defined."""
    return measure.value is None if np.isnan(expected) else measure.value == pytest.approx(expected, abs=CLOSE)


@pytest.mark.filterwarnings("ignore:.*only one label in common")
@pytest.mark.parametrize("seed", range(20))
def test_kappa_is_that_of_scikit_learn(seed: int) -> None:
    ratings = grid(seed, steps=2 + seed % 5, missing=0.1 * (seed % 8))
    pairs = {pair.raters: pair.kappa for pair in only(agree(table(ratings), resamples=0)).benchmark.pairs}
    scale = np.arange(1, np.nanmax(ratings) + 1)
    for one, other in combinations(range(len(ratings)), 2):
        common = np.isfinite(ratings[one]) & np.isfinite(ratings[other])
        for name, weights in (("plain", None), ("linear", "linear"), ("quadratic", "quadratic")):
            measure = pairs[f"rater-{one:02}", f"rater-{other:02}"][name]
            assert measure.n == common.sum()
            if common.sum() > 1:
                assert same(measure, cohen_kappa_score(ratings[one][common], ratings[other][common], weights=weights, labels=scale))


@pytest.mark.parametrize("seed", range(20))
def test_alpha_is_that_of_krippendorff(seed: int) -> None:
    ratings = grid(seed, steps=2 + seed % 5, missing=0.1 * (seed % 9))
    # Steps that are not alike: only their order counts for ordinal, their differences for interval.
    ratings = np.where(np.isnan(ratings), np.nan, ratings**1.5) if seed % 2 else ratings
    found = only(agree(table(ratings), resamples=0)).alpha
    assert same(found["nominal"], krippendorff.alpha(ratings, level_of_measurement="nominal"))
    assert same(found["ordinal"], krippendorff.alpha(ratings, level_of_measurement="ordinal"))
    assert same(found["interval"], krippendorff.alpha(ratings, level_of_measurement="interval"))


@pytest.mark.parametrize("seed", range(20))
def test_alpha_from_sums_is_alpha_at_the_interval_level(seed: int) -> None:
    ratings = table(grid(seed, steps=1 + seed % 5, missing=0.1 * (seed % 9))).on("empathy")
    sample = ItemBootstrap.of(ratings.items, 20, seed)
    expected = krippendorff_alpha(ratings.counts(range(len(ratings.raters))), ratings.scale, sample)["interval"]
    found = interval_alpha(ratings.item, ratings.scale[ratings.step].astype(np.int64), sample)
    assert asdict(found) == pytest.approx(asdict(expected), abs=CLOSE)


@pytest.mark.parametrize("seed", range(20))
def test_fleiss_kappa_is_that_of_statsmodels_over_the_most_frequent_number_of_ratings(seed: int) -> None:
    ratings = grid(seed, items=60, missing=0.05 * (seed % 6))
    number = np.isfinite(ratings).sum(axis=0)
    frequent = max(range(2, 6), key=lambda one: ((number == one).sum(), one))
    kept = ratings[:, number == frequent]
    counts = np.array([[np.sum(item == value) for value in (1, 2, 3, 4)] for item in kept.T])
    measure = only(agree(table(ratings), resamples=0)).fleiss
    assert measure.n == kept.shape[1] and f"ratings_an_item:{frequent}|" in measure.signature
    assert same(measure, fleiss_kappa(counts))


@pytest.mark.parametrize("seed", range(10))
def test_inflation_is_that_of_statsmodels_over_complete_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = grid(seed, missing=0.1)
    criteria = {"a": first, "b": np.where(rng.random(first.shape) < 0.5, first, grid(seed + 99)), "c": grid(seed + 999, missing=0.1)}
    found = agree(RatingTable.of(row for name, ratings in criteria.items() for row in rows(ratings, name)), resamples=0).inflation
    design = np.stack([ratings.ravel() for ratings in criteria.values()], axis=1)
    design = np.column_stack([np.ones(len(design)), design])[np.isfinite(design).all(axis=1)]
    for place, name in enumerate(criteria, start=1):
        assert same(found[name], variance_inflation_factor(design, place, standardize=False)), name


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("judge", [False, True])
def test_figures_against_the_median_are_those_of_scikit_learn(seed: int, judge: bool) -> None:
    ratings = grid(seed, raters=3 + seed % 3, missing=0.1 * (seed % 4))
    found = only(agree(table(ratings), judges=["rater-00"] if judge else [], resamples=0)).against_median
    row = next(row for row in found if row.rater == "rater-00")
    own, others = ratings[0], ratings[1:]
    shared = np.isfinite(own) & np.isfinite(others).any(axis=0)
    low, high = (np.nanquantile(others[:, shared], 0.5, axis=0, method=method) for method in ("inverted_cdf", "higher"))
    given, median = np.tile(own[shared], 2), np.concatenate([low, high])
    halves = np.full(len(given), 0.5)
    assert same(row.macro_f1, f1_score(median, given, average="macro", sample_weight=halves))
    for threshold, measure in row.binary_f1:
        assert same(measure, f1_score(median >= threshold, given >= threshold, sample_weight=halves, zero_division=np.nan))
    quadratic = cohen_kappa_score(given, median, weights="quadratic", sample_weight=halves, labels=[1, 2, 3, 4])
    assert same(row.kappa["quadratic"], quadratic)


def test_kappa_by_hand() -> None:
    # Agree on 1, 3; differ by 1 once and by 2 once. First gives 1: 2, 2: 1, 3: 1; second gives 1: 1, 2: 1, 3: 2.
    (pair,) = only(agree(table(np.array([[1.0, 3, 1, 2], [1, 3, 2, 3]])), resamples=0)).benchmark.pairs
    # plain: observed 2/4, expected 1 - (2*1 + 1*1 + 1*2) / 16 = 11/16
    assert same(pair.kappa["plain"], float(1 - Fraction(1, 2) / Fraction(11, 16)))
    # linear: observed 2/4; expected (2*(0+1+2*2) + 1*(1+0+2) + 1*(2+1+0)) / 16 = 16/16
    assert same(pair.kappa["linear"], float(1 - Fraction(1, 2) / 1))
    # quadratic: observed 2/4; expected (2*(0+1+4*2) + 1*(1+0+2) + 1*(4+1+0)) / 16 = 26/16
    assert same(pair.kappa["quadratic"], float(1 - Fraction(1, 2) / Fraction(26, 16)))


def test_a_value_that_nobody_gave_is_still_a_step_of_the_scale() -> None:
    near = only(agree(table(np.array([[1.0, 2, 2, 3], [1, 2, 3, 3]])), resamples=0)).benchmark.pairs[0].kappa["linear"]
    far = only(agree(table(np.array([[1.0, 2, 2, 9], [1, 2, 9, 9]])), resamples=0)).benchmark.pairs[0].kappa["linear"]
    # observed 1/4, expected (1*(1+2*2) + 2*(1+0+2) + 1*(2+1)) / 16 = 14/16; with 9: 7/4 and (1*(1+8*2) + 2*(1+7*2) + 1*(8+7)) / 16 = 62/16
    assert same(near, float(1 - Fraction(1, 4) / Fraction(14, 16))) and same(far, float(1 - Fraction(7, 4) / Fraction(62, 16)))


def test_alpha_and_fleiss_by_hand() -> None:
    found = only(agree(table(np.array([[1.0, 1, 2], [1, 2, 2]])), resamples=0))
    # Three items of two ratings: coincidences (1,1) 2, (1,2) 1, (2,1) 1, (2,2) 2; observed 2/6, expected 2*3*3 / (6*5)
    assert same(found.alpha["nominal"], float(1 - Fraction(2, 6) / Fraction(18, 30)))
    # Fleiss: observed agreement 2/3, expected 1/2
    assert same(found.fleiss, float((Fraction(2, 3) - Fraction(1, 2)) / Fraction(1, 2)))


def test_inflation_by_hand() -> None:
    # a: 1 2 3, b: 1 3 2, correlation 1/2, so 1 / (1 - 1/4)
    found = agree(RatingTable.of([*rows(np.array([[1.0, 2, 3]]), "a"), *rows(np.array([[1.0, 3, 2]]), "b")]), resamples=0).inflation
    assert same(found["a"], 4 / 3) and same(found["b"], 4 / 3)


def test_the_median_of_an_even_number_counts_half_for_each_middle_rating() -> None:
    # The others give (1, 3) and (2, 2): rater-00 gives 1 and 2, so of two items 1.5 agree. 1: 2 * 0.5 / 1.5; 2: 2 * 1 / 2; 3: 0.
    row = only(agree(table(np.array([[1.0, 2], [1, 2], [3, 2]])), resamples=0)).against_median[0]
    assert same(row.macro_f1, float((Fraction(2, 3) + 1 + 0) / 3))


def test_a_judge_moves_no_figure_of_the_experts_and_is_compared_with_all_of_them() -> None:
    ratings = grid(1, raters=4, missing=0.05)
    alone, judged = agree(table(ratings[:3])), agree(table(ratings), ["rater-03"])
    assert judged.experts == alone.experts == ("rater-00", "rater-01", "rater-02")
    assert (only(judged).benchmark.pairs, only(judged).benchmark.median) == (only(alone).benchmark.pairs, only(alone).benchmark.median)
    assert (only(judged).alpha, only(judged).fleiss) == (only(alone).alpha, only(alone).fleiss)
    assert only(judged).against_median[:3] == only(alone).against_median
    assert only(judged).against_median[3].rater == "rater-03"


def test_inflation_is_that_of_the_experts_alone() -> None:
    one, other = grid(1, raters=4), grid(2, raters=4)
    alone = agree(RatingTable.of([*rows(one[:3], "a"), *rows(other[:3], "b")]), resamples=0)
    assert agree(RatingTable.of([*rows(one, "a"), *rows(other, "b")]), ["rater-03"], resamples=0).inflation == alone.inflation


def test_a_pair_with_one_item_in_common_has_no_part_in_the_benchmark() -> None:
    found = only(agree(table(np.array([[1.0, 2, 3, NAN], [1, 2, 3, 1], [NAN, NAN, 1, 1]])), resamples=0)).benchmark
    # The first two agree fully; the first and third have one item in common; the second gives the third's two items 3, 1 for 1, 1: 0.
    assert [pair.kappa["quadratic"].value for pair in found.pairs] == [1.0, None, 0.0]
    assert found.median.value == 0.5


def test_a_judge_is_placed_by_its_kappas() -> None:
    ratings = grid(3, items=200, missing=0.0)
    random = np.random.default_rng(1).integers(1, 5, 200).astype(float)
    both = table(np.vstack([ratings, ratings[0], random]), names=["e0", "e1", "e2", "e3", "e4", "copy", "noise"])
    found = only(agree(both, ["copy", "noise"])).benchmark
    copy, noise = found.judges
    values = [pair.kappa["quadratic"].value for pair in found.pairs]
    assert found.median.value == pytest.approx(np.median([value for value in values if value is not None]))
    assert copy.pairs[0].kappa["quadratic"].value == 1.0 and copy.of == 10
    assert noise.reached == 0 and noise.difference.high is not None and noise.difference.high < 0
    assert noise.median.value == pytest.approx((noise.difference.value or 0) + (found.median.value or 0))


@pytest.mark.parametrize(("level", "weights"), [("nominal", "plain"), ("ordinal", "linear"), ("interval", "quadratic")])
def test_the_level_chooses_the_kappa_of_the_benchmark(level: str, weights: str) -> None:
    found = only(agree(table(grid(1)), level=level, resamples=0)).benchmark
    assert found.weights == weights
    assert found.median.value == pytest.approx(np.median([pair.kappa[weights].value or 0 for pair in found.pairs]))


def measures(value: Any) -> list[dict[str, Any]]:
    """All measures in JSON values."""
    if isinstance(value, dict):
        return [value] if "why" in value else [found for part in value.values() for found in measures(part)]
    return [found for part in value for found in measures(part)] if isinstance(value, list | tuple) else []


DEGENERATE = {
    "one rater": ([[1.0, 2, 3]], {"no item with two ratings", "there are fewer than two experts", "no item that other experts have rated"}),
    "constant": ([[2.0, 2, 2], [2, 2, 2]], {"both give one and the same rating to all items in common", "no pair has a kappa"}),
    "nothing in common": ([[1.0, 2, NAN, NAN], [NAN, NAN, 1, 2]], {"no item in common", "no item with two ratings"}),
    "one item": ([[1.0], [2.0]], {"only one item in common", "only one item rated", "only one item with two ratings"}),
    "one item in common": ([[1.0, 2, NAN], [NAN, 2, 1]], {"only one item in common", "only one item with two ratings"}),
    "one rating": ([[1.0]], {"no item with two ratings", "only one item rated"}),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("judges", [[], ["rater-00"]])
def test_degenerate_tables_are_not_defined_with_the_reason(name: str, judges: list[str]) -> None:
    ratings, reasons = DEGENERATE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = agree(table(np.array(ratings)), judges, resamples=50)
    seen = measures(json.loads(json.dumps(found.to_json(), allow_nan=False)))
    criterion = only(found)
    chance_corrected = [*criterion.alpha.values(), criterion.fleiss, criterion.benchmark.median, found.inflation["empathy"]]
    assert all(measure.value is None and measure.reason for measure in chance_corrected)
    assert all((one["value"] is None) <= bool(one["why"]) and (one["low"] is None) == bool(one["why"]) for one in seen)
    assert "not defined: " in agreement_table(found) and "nan" not in agreement_table(found).lower()
    if not judges:
        assert reasons <= {one["why"] for one in seen}


EXACTLY = "all its ratings are the same, or it follows exactly from the other criteria"


def test_inflation_says_why_it_is_not_defined() -> None:
    ratings = grid(1)
    doubled = agree(RatingTable.of([*rows(ratings, "a"), *rows(2 * ratings, "b"), *rows(grid(2), "c")]), resamples=50).inflation
    assert [doubled[name].reason for name in "ab"] == [EXACTLY] * 2
    assert doubled["c"].value is not None and doubled["c"].low is not None
    flat = agree(RatingTable.of([*rows(ratings, "a"), *rows(np.ones_like(ratings), "b")]), resamples=50).inflation
    assert flat["b"].reason == EXACTLY and flat["a"].value == pytest.approx(1)
    apart = RatingTable.of([("x", "r", 1, "a"), ("y", "r", 2, "b")])
    assert {measure.reason for measure in agree(apart, resamples=50).inflation.values()} == {"no item with all criteria"}


def test_a_criterion_that_is_constant_in_a_resample_has_no_inflation_there_however_sums_are_rounded() -> None:
    rng = np.random.default_rng(0)
    for number in range(5, 100):
        # A resample in which the second criterion has one value, not 0 because the mean of the whole table was taken off.
        drawn = np.column_stack([rng.random(number), np.full(number, rng.random()), rng.random(number)])
        one, flat, other = inflation_factors(np.hstack([number, drawn.sum(axis=0), (drawn.T @ drawn).ravel()])[None], 3)[0]
        assert np.isnan(flat) and one == pytest.approx(other), number


def test_intervals_are_the_same_by_seed_whatever_the_order_of_rows() -> None:
    given = rows(grid(5))
    one, other = agree(RatingTable.of(given), seed=7), agree(RatingTable.of(given[::-1]), seed=7)
    assert one == other and str(one) == str(other)
    assert only(agree(RatingTable.of(given), seed=8)).alpha["nominal"].low != only(one).alpha["nominal"].low


def test_a_resample_is_the_table_with_its_items_drawn_again() -> None:
    """The sums of a resample give what the table gives whose items are repeated as often as they were drawn."""
    values = {"a": grid(14, items=12, missing=0.05), "b": grid(12, items=12, missing=0.05)}
    whole = RatingTable.of(row for name, ratings in values.items() for row in rows(ratings, name))
    weights = bootstrap.ItemBootstrap.of(12, 1, 3).weights[1].astype(int)
    assert weights.sum() == 12 and 0 in weights
    drawn = RatingTable.of(row for name, ratings in values.items() for row in rows(np.repeat(ratings, weights, axis=1), name))
    resampled, repeated = (measures(agree(*given).to_json()) for given in ((whole, ["rater-04"], 1, 3), (drawn, ["rater-04"], 0)))
    for one, other in zip(resampled, repeated, strict=True):
        # With one resample both ends of the interval are its value.
        if one["low"] is not None:
            assert one["low"] == one["high"] == pytest.approx(other["value"], abs=CLOSE), one["signature"]
    assert sum(one["low"] is not None for one in resampled) > 50


def test_intervals_of_many_items_come_from_groups_and_are_as_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    many = table(grid(2, items=1500, missing=0.1))
    single = only(agree(many)).alpha["interval"]
    monkeypatch.setattr(bootstrap, "UNITS", 500)
    grouped = only(agree(many)).alpha["interval"]
    assert "unit:item|units:1500" in single.signature and "unit:group-of-items|units:500" in grouped.signature
    assert grouped.value == single.value
    width, other = ((one.high or 0) - (one.low or 0) for one in (single, grouped))
    assert other == pytest.approx(width, rel=0.15)


@pytest.mark.e2e
def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Two raters who agree by chance have a kappa of 0: of 100 tables about 95 intervals hold it."""
    held = 0
    for seed in range(100):
        ratings = np.random.default_rng(seed).integers(1, 4, (2, 100)).astype(float)
        kappa = only(agree(table(ratings), resamples=100)).benchmark.pairs[0].kappa["plain"]
        held += (kappa.low or 0) <= 0 <= (kappa.high or 0)
    assert 88 <= held <= 99


def test_a_crowd_has_alpha_and_a_judge_but_no_pairs() -> None:
    ratings = grid(4, items=40, raters=60, missing=0.9)
    ratings[0] = grid(5, items=40, raters=1, missing=0)[0]
    found = only(agree(table(ratings), ["rater-00"], resamples=50))
    assert found.benchmark.pairs == () and found.benchmark.median.reason == "there are 59 raters: pairs are compared for at most 30"
    assert found.alpha["interval"].low is not None
    assert [row.rater for row in found.against_median] == ["rater-00"] and found.against_median[0].macro_f1.low is not None


def test_a_data_frame_has_every_figure_that_json_has() -> None:
    rng = np.random.default_rng(1)
    rows = [(item, rater, int(rng.integers(1, 4)), criterion) for item in range(9) for rater in "abcj" for criterion in ("kind", "clear")]
    found = agree(RatingTable.of((str(item), *rest) for item, *rest in rows), ["j"], resamples=20)
    frame = found.to_pandas()
    assert tuple(frame.columns) == (*KEYS, *FIGURE_COLUMNS) and not frame.duplicated(["criterion", "figure", "by", "rater", "other"]).any()
    names = ("value", "low", "high", "items", "why", "signature")
    seen = [tuple(None if pd.isna(one) else one for one in row) for row in frame[list(names)].itertuples(index=False)]
    assert Counter(seen) == Counter(tuple(one[name] for name in names) for one in measures(found.to_json()))
    kind = frame[frame.criterion == "kind"].set_index(["figure", "by", "rater", "other"]).sort_index()
    (criterion,) = (one for one in found.criteria if one.criterion == "kind")
    assert kind.loc[("kappa", "linear", "a", "b"), "value"] == criterion.benchmark.pairs[0].kappa["linear"].value
    assert kind.loc[("kappa", "linear", "j", "c"), "value"] == criterion.benchmark.judges[0].pairs[2].kappa["linear"].value
    assert kind.loc["median kappa minus benchmark"]["value"].tolist() == [criterion.benchmark.judges[0].difference.value]


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("uvwxyz"), st.sampled_from(["c", "d"])), st.integers(-3, 3), min_size=1
    ),
    st.lists(st.sampled_from("uvwxyz")),
)
def test_any_table_gives_figures_in_range_or_reasons(ratings: dict[tuple[str, str, str], int], judges: list[str]) -> None:
    given = RatingTable.of((item, rater, value, criterion) for (item, rater, criterion), value in ratings.items())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = agree(given, [judge for judge in judges if judge in given.raters], resamples=5)
    for one in measures(found.to_json()):
        assert (one["value"] is not None or one["why"]) and one["signature"]
        if one["value"] is not None and not one["signature"].startswith(("vif", "kappa:cohen|weights:quadratic|median")):
            assert one["value"] <= 1 + CLOSE
    assert agreement_table(found)


def test_what_cannot_be_done_is_reported_at_once() -> None:
    with pytest.raises(InputError) as caught:
        agree(table(grid(1)), ["nobody"], resamples=-1, level="ratio")
    said = str(caught.value)
    assert 'judge: "nobody" is not a rater' in said and 'resamples: "-1" is out of range' in said and 'level: "ratio" is not known' in said
