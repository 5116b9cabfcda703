"""A study: other programs' figures, fractions by hand, tables with gaps, families of corrections, and what is to be minded."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.provenance import KEYS
from empathy_eval.raters.study import results
from empathy_eval.raters.study.ratings import ReadOptions, StudyTable, read_study
from empathy_eval.raters.study.results import COLUMNS, StudyReport
from empathy_eval.raters.study.study import StudyOptions, pairs, study
from empathy_eval.statistics import chi_square
from empathy_eval.statistics.chi_square import CountTable
from empathy_eval.statistics.estimate import benjamini_hochberg, holm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import Table

from tests.doubles.corrections import multipletests as multipletests

CLOSE = 1e-9
Rows = Iterable[Sequence[object]]


def of(counts: Sequence[Sequence[int]], *, yates: bool = False, permutation: float | None = None) -> chi_square.ChiSquaredTest:
    rows, columns = (tuple(map(str, range(number))) for number in np.shape(counts))
    return chi_square.chi_square_test(CountTable(rows, columns, np.array(counts)), permutation, "permutations:9", yates=yates)


def taken(folder: Path, rows: Rows, columns: str = "item,group,rater,rating", add: Rows = ()) -> StudyTable:
    paths = []
    for name, some in (("ratings", list(rows)), ("added", list(add))):
        if some:
            paths.append(folder / f"{name}.csv")
            with paths[-1].open("w", newline="") as stream:
                csv.writer(stream).writerows([columns.split(","), *some])
    return read_study(paths[:1], ReadOptions("human"), paths[1:])


def simulated(seed: int = 0, blocks: int = 8, groups: Sequence[str] = ("human", "a", "b")) -> list[tuple[object, ...]]:
    """Ratings 1 to 3 of ten items a rater, a rater of each group a block, who is severe or mild; a valence and four strata."""
    rng, rows = np.random.default_rng(seed), list[tuple[object, ...]]()
    for block in range(blocks):
        for place, group in enumerate(groups):
            mild = rng.normal(0.3 * place, 0.5)
            for number in range(10):
                rating = int(np.clip(round(2 + mild + rng.normal()), 1, 3))
                item = block * 10 + number
                rows.append((f"i{item}", group, f"{group}-{block}", rating, f"s{item % 4}", "odd" if item % 2 else "even", block))
    return rows


WIDE = "item,group,rater,rating,stratum,valence,block"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> StudyReport:
    return study(taken(tmp_path_factory.mktemp("study"), simulated(), WIDE), StudyOptions(permutations=200))


def test_chi_squared_yates_and_cramer_v_are_the_fractions_that_a_hand_derives() -> None:
    # 60 (10·10 - 20·20)² / 30⁴, and with a half off each difference 60 (300 - 30)² / 30⁴.
    square, corrected = of([[10, 20], [20, 10]]), of([[10, 20], [20, 10]], yates=True)
    assert square.statistic == pytest.approx(20 / 3, rel=CLOSE) and square.v == pytest.approx(1 / 3, rel=CLOSE)
    assert corrected.statistic == pytest.approx(27 / 5, rel=CLOSE) and corrected.v == square.v
    # Expected counts 7.5, 12.5 and 10 in both rows: 2 · 2.5²/7.5 + 2 · 2.5²/12.5, and V² = that / (60 · 1).
    wide = of([[10, 10, 10], [5, 15, 10]])
    assert wide.statistic == pytest.approx(8 / 3, rel=CLOSE) and (wide.v or 0) ** 2 == pytest.approx(2 / 45, rel=CLOSE)
    assert wide.df == 2 and wide.n == 60 and wide.least_expected == 7.5
    # 8 (8 - 4)² / 4⁴; where a difference is less than a half nothing is left of it.
    assert of([[1, 3], [3, 1]], yates=True).statistic == pytest.approx(1 / 2, rel=CLOSE)
    assert of([[5, 6], [6, 6]], yates=True).statistic == 0


def test_corrections_are_those_that_a_hand_derives() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06]) and benjamini_hochberg([0.01, 0.04, 0.03]) == pytest.approx(
        [0.03, 0.04, 0.04]
    )
    assert benjamini_hochberg([0.5]) == [0.5] and benjamini_hochberg([]) == []


CELL = st.integers(0, 40)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5).flatmap(lambda columns: st.lists(st.lists(CELL, min_size=columns, max_size=columns), min_size=2, max_size=5)))
def test_scipy_and_statsmodels_find_the_same_chi_squared_p_and_v(counts: list[list[int]]) -> None:
    table = np.array(counts)
    inner = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    ours = of(counts)
    if min(inner.shape) < 2:
        assert ours.statistic is None and ours.why and ours.p is None and ours.v is None
        return
    theirs = stats.chi2_contingency(inner, correction=False)
    assert (ours.statistic, ours.p, ours.df) == pytest.approx((theirs.statistic, theirs.pvalue, theirs.dof), rel=1e-9, abs=1e-12)
    assert ours.v == pytest.approx(stats.contingency.association(inner, method="cramer"), rel=1e-9, abs=1e-9)
    assert ours.least_expected == pytest.approx(theirs.expected_freq.min())
    others = Table(inner, shift_zeros=False).test_nominal_association()
    assert (ours.statistic, ours.p) == pytest.approx((others.statistic, others.pvalue), rel=1e-9, abs=1e-12)
    if inner.shape == (2, 2):
        yates = stats.chi2_contingency(inner, correction=True)
        mine = of(inner.tolist(), yates=True)
        assert (mine.statistic, mine.p) == pytest.approx((yates.statistic, yates.pvalue), rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_statsmodels_corrects_p_values_to_the_same(multipletests: Any, values: list[float]) -> None:
    assert holm(values) == pytest.approx(multipletests(values, method="holm")[1], abs=1e-12)
    assert benjamini_hochberg(values) == pytest.approx(multipletests(values, method="fdr_bh")[1], abs=1e-12)


def test_a_small_expected_count_makes_the_p_of_permuted_raters_the_one_that_counts() -> None:
    large, small = of([[10, 20], [20, 10]], permutation=0.2), of([[1, 20], [4, 10]], permutation=0.2)
    assert (large.p_by, large.reported_p, large.why) == ("chi-square", large.p, None)
    assert (small.p_by, small.reported_p) == ("permutation", 0.2) and small.p is not None and "below" not in (small.why or "")
    assert small.why == "an expected count is 2, but chi-squared needs 5: the p-value of the permutation test is used"
    without = of([[1, 20], [4, 10]])
    assert (without.p_by, without.reported_p) == ("chi-square", without.p) and (without.why or "").endswith("no permutation test was run")
    assert "permutations:9" in small.signature and "permutations" not in without.signature


def test_groups_and_categories_without_ratings_are_left_out_and_named() -> None:
    found = chi_square.chi_square_test(
        CountTable(("a", "b", "c"), ('"x"', '"y"', '"z"'), np.array([[9, 0, 7], [0, 0, 0], [8, 0, 20]])), None, ""
    )
    assert found.df == 1 and found.why == '"b" has no rating here; nobody gave "y" here'
    none = chi_square.chi_square_test(CountTable(("a", "b"), ('"x"', 'anything but "x"'), np.array([[9, 0], [8, 0]])), None, "")
    assert (none.statistic, none.n, none.why) == (None, 17, 'nobody gave anything but "x" here')


def test_gains_are_of_shares_and_say_why_there_is_none(tmp_path: Path) -> None:
    # human: 2 of 4 good, none bad; a: 3 of 4 good, 1 bad; b: 6 of 8 okay, none good.
    rows = [(f"i{place}", "human", f"h{place % 2}", rating) for place, rating in enumerate((3, 3, 2, 2))]
    rows += [(f"i{place}", "a", f"a{place % 2}", rating) for place, rating in enumerate((3, 3, 1, 3))]
    rows += [(f"i{place}", "b", f"b{place % 2}", rating) for place, rating in enumerate((2, 2, 2, 2, 2, 2, 1, 1))]
    found = study(taken(tmp_path, rows), StudyOptions(permutations=0))
    gains = {(one.category, one.group): one for one in found.whole.gains}
    assert (gains["3", "a"].value, gains["2", "b"].value, gains["3", "b"].value) == (50, 50, -100)
    assert gains["3", "b"].low is None and gains["3", "b"].reason and gains["3", "b"].reason.startswith("no interval")
    assert (
        gains["1", "a"].value is None and gains["1", "a"].reason == '"human" was never given "1" here, so no gain over it can be computed'
    )
    assert gains["3", "a"].share == 0.75 and gains["3", "a"].of_baseline_share == 0.5 and "yates:yes" in gains["3", "a"].test.signature
    assert found.notes[1:] == (
        "groups have 4 to 8 ratings: gains compare shares, not counts",
        "not every item was rated in every group, so groups may also differ in their items",
    )


def test_the_parts_of_a_column_are_the_studies_of_their_ratings_alone(found: StudyReport, tmp_path: Path) -> None:
    for name in ("odd", "even"):
        alone = study(taken(tmp_path, [row for row in simulated() if row[5] == name], WIDE), StudyOptions((), 200))
        (part,) = (one for one in found.parts["valence"] if one.name == name)
        assert part.counts == alone.whole.counts
        same = [(part.omnibus, alone.whole.omnibus), *((a.test, b.test) for a, b in zip(part.gains, alone.whole.gains, strict=True))]
        assert all((one.statistic, one.p, one.v) == (other.statistic, other.p, other.v) for one, other in same)
        assert [(one.value, one.low, one.high) for one in part.gains] == [(one.value, one.low, one.high) for one in alone.whole.gains]


def test_p_values_are_corrected_over_pairs_over_parts_and_over_the_gains_of_a_category(found: StudyReport) -> None:
    def corrected(values: Sequence[float | None]) -> list[tuple[float, float]]:
        known = [one for one in values if one is not None]
        assert len(known) == len(values)
        return list(zip(holm(known), benjamini_hochberg(known), strict=True))

    for parts in ((found.whole,), found.parts["valence"], found.parts["stratum"]):
        families: list[list[tuple[chi_square.ChiSquaredTest, results.StudyPart | results.Pairwise | results.Gain]]]
        families = [[(one.omnibus, one) for one in parts], [(pair.test, pair) for one in parts for pair in one.pairwise]]
        families += [[(one.test, one) for part in parts for one in part.gains if one.category == label] for label in found.labels]
        for family in families:
            expected = corrected([test.reported_p for test, _ in family])
            by_rater = corrected([test.permutation for test, _ in family])
            assert [(one.corrected.holm, one.corrected.benjamini_hochberg) for _, one in family] == [
                pytest.approx(pair, rel=CLOSE) for pair in expected
            ]
            assert [(one.corrected.holm_by_rater, one.corrected.benjamini_hochberg_by_rater) for _, one in family] == [
                pytest.approx(pair, rel=CLOSE) for pair in by_rater
            ]
            assert {one.corrected.family for _, one in family} == {len(family)}
    sizes = {name: len(parts) for name, parts in found.parts.items()}
    assert sizes == {"valence": 2, "stratum": 4} and found.parts["stratum"][0].gains[0].corrected.family == 8


def test_pairs_come_with_the_baseline_first_and_raters_say_what_could_have_been_seen(found: StudyReport) -> None:
    assert pairs(4) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert [(one.group, one.other) for one in found.whole.pairwise] == [("human", "a"), ("human", "b"), ("a", "b")]
    effects = {(one.group, one.category): one.design_effect for one in found.spreads}
    counts = np.array(found.whole.counts)
    weights = np.outer(1 - counts.sum(axis=1) / counts.sum(), 1 - counts.sum(axis=0) / counts.sum())
    each = np.array([[effects[one.name, label] or 0 for label in found.labels] for one in found.groups])
    power = found.power
    assert weights.sum() == pytest.approx(power.df)
    assert power.design_effect == pytest.approx((weights * each).sum() / power.df, rel=CLOSE)
    assert power.effective_ratings == pytest.approx(240 / (power.design_effect or 0), rel=CLOSE)
    worth = power.effective_ratings or 0
    critical = stats.chi2.isf(0.05, 4)
    assert power.reached == pytest.approx(stats.ncx2.sf(critical, 4, worth * 0.09), rel=1e-6)
    assert stats.ncx2.sf(critical, 4, worth * (power.smallest_w or 0) ** 2) == pytest.approx(0.95, abs=1e-6)
    assert found.null_point_if_independent == pytest.approx(critical) and (found.null_point or 0) > critical


def test_raters_of_one_rating_each_are_counted_as_independent_ones(tmp_path: Path) -> None:
    rows = [(f"i{place}", group, f"{group}{place}", place % 2) for group in ("human", "a") for place in range(6)]
    power = study(taken(tmp_path, rows), StudyOptions(permutations=0)).power
    assert (power.design_effect, power.effective_ratings) == (1, 12)


def of_any_table(found: StudyReport) -> StudyReport:
    """A study without what it says of the files it came from."""
    told: dict[str, Any] = {"settings": {**found.settings, "tables": []}, "provenance": None}
    return replace(found, **told, signature=re.sub(r"\|tables:[\w-]+", "", found.signature))


def test_the_same_ratings_in_any_order_give_the_same_figures(found: StudyReport, tmp_path: Path) -> None:
    again = study(taken(tmp_path, reversed(simulated()), WIDE), StudyOptions(permutations=200))
    assert again.settings["tables"] != found.settings["tables"] and again.signature != found.signature
    assert of_any_table(again) == of_any_table(found)
    assert json.dumps(of_any_table(again).to_json(), allow_nan=False) == json.dumps(of_any_table(found).to_json(), allow_nan=False)
    other = study(taken(tmp_path, simulated(), WIDE), StudyOptions(permutations=200, seed=1))
    assert other.whole.counts == found.whole.counts and other.whole.omnibus.permutation != found.whole.omnibus.permutation


def test_an_added_group_changes_nothing_between_the_stored_ones_and_is_noted(found: StudyReport, tmp_path: Path) -> None:
    rows = simulated(groups=("human", "a", "b"))
    more = [(one[0], "new", f"new-{one[6]}", 4 - int(str(one[3])), *one[4:]) for one in rows if one[1] == "a"]
    later = study(taken(tmp_path, rows, WIDE, more), StudyOptions(permutations=200))
    assert [one.name for one in later.groups if one.added] == ["new"] and later.notes[0].startswith("new: added later; its raters")
    before = {(one.group, one.other): one.test for one in found.whole.pairwise}
    assert {key: test for one in later.whole.pairwise if (key := (one.group, one.other)) in before for test in [one.test]} == before


def test_the_long_form_has_each_figure_once_with_its_settings(found: StudyReport) -> None:
    records = list(found.records())
    assert all(tuple(one) == found.columns == (*KEYS, *COLUMNS) and one["signature"] for one in records)
    keys = [tuple(one[name] for name in COLUMNS[:6]) for one in records if one["figure"] != "note"]
    assert len(set(keys)) == len(keys)
    tests = [one for one in records if one["figure"].endswith("chi-squared")]
    # Of the whole, 2 valences and 4 strata: omnibus, 3 categories, 3 pairs and 6 gains.
    assert len(tests) == 7 * 13 and sum(one["figure"] == "gain" for one in records) == 7 * 6
    frame = found.to_pandas()
    (row,) = frame[(frame.part == "stratum") & (frame.of == "s1") & (frame.figure == "omnibus: chi-squared")].to_dict("records")
    part = found.parts["stratum"][1]
    assert (row["value"], row["p"], row["holm"]) == (part.omnibus.statistic, part.omnibus.p, part.corrected.holm)


def test_too_few_permutations_for_a_correction_are_noted(tmp_path: Path) -> None:
    ratings = taken(tmp_path, simulated(), WIDE)
    # Over 4 strata are 12 pairs, and 8 gains in a category.
    assert study(ratings, StudyOptions(permutations=240)).notes == ()
    said = "200 permutations give no p-value by rater below 0.005, so Holm over 12 tests never falls below 0.05: use 240 or more"
    assert study(ratings, StudyOptions(permutations=200)).notes == (said,) and study(ratings, StudyOptions(("valence",), 200)).notes == ()


def test_odd_options_are_reported_at_once(tmp_path: Path) -> None:
    rows = [row[:4] for row in simulated()]
    with pytest.raises(InputError) as caught:
        study(taken(tmp_path, rows), replace(StudyOptions(("stratum",), -1), effect=0.0, alpha=0.5, power=0.4))
    assert [one.where for one in caught.value.problems] == ["by", "permutations", "effect", "power"]
