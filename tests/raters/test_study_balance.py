"""What is told of a study's raters: how alike groups are in them, how they did on checks, and of fewer than five nothing."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from empathy_eval.raters.study.balance import (
    BOTH,
    COPIED,
    MINIMUM_CELL,
    NO_NUMBERS,
    NO_VALUES,
    NOT_TOLD,
    OTHERS,
    RaterClasses,
    SmallCellSuppression,
    attention_checks,
    balance,
    disclosed_columns,
    quartile,
    without_raters,
)
from empathy_eval.raters.study.by_rater import TableSelection, permutation_p_values
from empathy_eval.raters.study.raters_table import RatersTable, read_raters
from empathy_eval.raters.study.ratings import StudyTable
from empathy_eval.raters.study.results import ColumnBalance
from empathy_eval.statistics import chi_square
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

GROUPS = ("human", "gpt", "llama")
NO_TEST = chi_square.ChiSquaredTest(None, None, None, None, 0, None, None, "chi-square", None, "")


def study_of(sizes: Sequence[int], ratings: int = 1, seed: int = 3) -> StudyTable:
    """A study of so many raters a group, each of whom rates so many items 1 to 3."""
    group_of = np.repeat(np.arange(len(sizes)), sizes)
    raters = tuple(f"person-{number:04}" for number in range(len(group_of)))
    rater, item = np.repeat(np.arange(len(raters)), ratings), np.tile(np.arange(ratings), len(raters))
    category = np.random.default_rng(seed).integers(0, 3, len(rater))
    return StudyTable(GROUPS[: len(sizes)], raters, tuple(map(str, range(ratings))), ("1", "2", "3"), group_of, None, rater, item, category)


def table_of(study: StudyTable, columns: Mapping[str, Sequence[str | None]], untold: int = 0) -> RatersTable:
    return RatersTable(study, columns, untold, 0)


def spread(*counts: Mapping[str | None, int]) -> list[str | None]:
    """A column in which each group has so many raters of each value."""
    return [value for group in counts for value, number in group.items() for _ in range(number)]


def column(values: Sequence[str | None], sizes: Sequence[int], untold: int = 0) -> ColumnBalance:
    study = study_of(sizes)
    (found,) = balance(table_of(study, {"of": values}, untold), study, permutations=50).columns
    return found


def test_the_groups_of_a_column_are_tested_as_scipy_does_and_as_a_fraction_by_hand() -> None:
    found = column(spread({"female": 12, "male": 8}, {"female": 9, "male": 11}), (20, 20))
    assert (found.values, found.cells) == (("female", "male"), ((12, 8), (9, 11)))
    assert found.test is not None and found.test.statistic is not None
    # 40 (12·11 - 8·9)² / (20·20·21·19)
    assert found.test.statistic == pytest.approx(float(Fraction(40 * (12 * 11 - 8 * 9) ** 2, 20 * 20 * 21 * 19)))
    scipys = stats.chi2_contingency(found.cells, correction=False)
    assert (found.test.statistic, found.test.p, found.test.df) == pytest.approx((scipys.statistic, scipys.pvalue, 1))
    assert found.test.v == pytest.approx(stats.contingency.association(found.cells)) and found.test.p_by == "chi-square"
    assert found.test.permutation is not None and found.test.permutation > 0.05


def test_numbers_are_tested_by_kruskal_and_wallis_to_three_digits_with_medians_that_are_nobodys() -> None:
    ages = [*range(20, 50), *range(25, 55), *range(15, 45)]
    found = column([str(age) for age in ages], (30, 30, 30))
    scipys = stats.kruskal(ages[:30], ages[30:60], ages[60:])
    assert found.kind == "numbers" and found.cells == () and found.test is not None
    assert (found.test.statistic, found.test.p) == (float(f"{scipys.statistic:.3g}"), float(f"{scipys.pvalue:.3g}"))
    assert found.test.df == 2 and found.test.p_by == "kruskal-wallis"
    # Of thirty, counted from 0, the lower quartile is at 7.25: 5 to 9 are around it; the middle six are 12 to 17.
    lower, median, upper = found.quartiles[0]
    assert (lower, median, upper) == (27, 34.5, 42) and median == np.median(ages[:30])
    # 0 to 4 against 5 to 10: ranks 1 to 5 and 6 to 11, by hand 12 / (11·12) (15² / 5 + 51² / 6) - 3·12.
    by_hand = Fraction(12, 11 * 12) * (Fraction(15**2, 5) + Fraction(51**2, 6)) - 36
    small = column([str(number) for number in range(11)], (5, 6))
    assert small.test is not None and small.test.statistic == float(f"{float(by_hand):.3g}") == 7.5


def test_a_median_is_the_mean_of_five_and_a_quartile_has_five_values_beyond_these_on_either_side() -> None:
    assert quartile(np.arange(4.0), 0.5) is None
    assert quartile(np.array([1.0, 2, 3, 4, 100]), 0.5) == 22
    assert quartile(np.array([0, 1.0, 2, 3, 4, 200]), 0.5) == 35
    assert quartile(np.arange(27.0), 0.25) is None and quartile(np.arange(27.0), 0.75) is None
    assert quartile(np.arange(28.0), 0.25) == 7 and quartile(np.arange(28.0), 0.75) == 20
    column_of_few = column([str(number) for number in range(18)], (14, 4))
    assert column_of_few.test is None and column_of_few.why == NO_NUMBERS
    assert column_of_few.quartiles == ((None, 6.5, None), (None, None, None))


def numbers_of(columns: Mapping[str, Sequence[float | None]], sizes: Sequence[int]) -> list[ColumnBalance]:
    study = study_of(sizes)
    told = {name: [None if one is None else f"{one:.4f}" for one in cells] for name, cells in columns.items()}
    return list(balance(table_of(study, told), study, 0).columns)


def test_a_column_of_numbers_that_is_nearly_another_gives_no_second_median_to_work_a_rater_out_of() -> None:
    rng = np.random.default_rng(2)
    seconds = rng.normal(600, 90, 36).round(2).tolist()
    first = sorted(range(12), key=lambda one: seconds[one])
    kept = [None if place == first[5] else one for place, one in enumerate(seconds)]
    # The means of six and of five values around the middle: what is left is the number of one rater.
    six, five = (quartile(np.sort([one for one in some[:12] if one is not None]), 0.5) for some in (seconds, kept))
    assert six is not None and five is not None and 6 * six - 5 * five == pytest.approx(seconds[first[5]], abs=0.6)
    alone = [None if place < 12 else one for place, one in enumerate(rng.permutation(seconds).tolist())]
    columns = {
        "all": seconds, "kept": kept, "minutes": [None if one is None else one / 60 for one in kept],
        "left": [None if one is None else 900 - one for one in kept], "age": rng.normal(40, 9, 36).tolist(),
        "ours": [one if place < 12 else rng.normal() for place, one in enumerate(seconds)], "else": alone,
    }  # fmt: skip
    found = numbers_of(columns, (12, 12, 12))
    untold = [one.column for one in found if one.why == COPIED and not one.quartiles and one.test is None]
    assert untold == ["kept", "minutes", "left", "ours"]
    assert [one.column for one in found if one.test is not None and one.quartiles] == ["all", "age", "else"]
    assert {one.family for one in found if one.test is not None} == {3}
    # No order matters, nor do zeros in the place of cells that are empty, nor numbers that are mostly one.
    zeros = [0 if place in first[:4] else one for place, one in enumerate(seconds)]
    assert [one.why for one in numbers_of({"kept": kept, "all": seconds, "zeros": zeros}, (12, 12, 12))] == [None, COPIED, COPIED]


def test_numbers_of_which_few_differ_are_values_in_the_order_of_their_size() -> None:
    found = column(spread({"10": 6, "9": 7, "9.0": 1}, {"9": 6, "10": 8}), (14, 14))
    assert (found.kind, found.values, found.cells) == ("values", ("9", "10"), ((8, 6), (6, 8)))


def test_rare_values_are_pooled_with_the_next_rarest_until_every_group_has_five() -> None:
    found = column(spread({"a": 20, "b": 7, "c": 3}, {"a": 18, "b": 9, "c": 3}), (30, 30))
    assert (found.values, found.cells) == (("a", OTHERS), ((20, 10), (18, 12)))
    found = column(spread({"a": 20, "b": 7, "c": 3, "d": 2}, {"a": 18, "b": 9, "c": 4, "d": 1}), (32, 32))
    assert (found.values, found.cells) == (("a", "b", OTHERS), ((20, 7, 5), (18, 9, 5)))


@pytest.mark.parametrize(
    "values",
    [
        spread({"female": 27, "male": 3}, {"female": 15, "male": 15}),
        spread({"female": 30}, {"female": 30}),
        [f"name {number}" for number in range(60)],
        spread({"female": 27, None: 3}, {"female": 15, None: 15}),
    ],
)
def test_a_column_that_cannot_be_pooled_has_no_counts_and_no_test_and_says_why_in_the_same_words(values: list[str | None]) -> None:
    found = column(values, (30, 30))
    assert (found.values, found.cells, found.test, found.holm, found.why) == ((), (), None, None, NO_VALUES)


def test_raters_without_data_are_a_value_that_is_pooled_too() -> None:
    assert column(spread({"a": 10, None: 8}, {"a": 9, None: 9}), (18, 18)).values == ("a", NOT_TOLD)
    found = column(spread({"a": 10, "b": 5, None: 1}, {"a": 10, "b": 5, None: 1}), (16, 16))
    assert (found.values, found.cells) == (("a", BOTH), ((10, 6), (10, 6)))
    # Twelve are not told, and ten of them are not in the table, which is said: two left the cell empty, and go where more are.
    rest = spread({"a": 10, "b": 5, None: 6}, {"a": 10, "b": 5, None: 6})
    assert column(rest, (21, 21), untold=12).values == ("a", "b", NOT_TOLD)
    assert column(rest, (21, 21), untold=10).values == ("a", BOTH)


def test_two_columns_do_not_give_away_as_their_difference_what_neither_tells() -> None:
    study = study_of((30, 30))
    country = spread({"UK": 12, "France": 10, "Peru": 8}, {"UK": 12, "France": 10, "Peru": 8})
    continent = ["Europe" if one != "Peru" else "America" for one in country]
    first, second = balance(table_of(study, {"country": country, "continent": continent}), study, 0).columns
    assert first.values == ("France", "Peru", "UK") and second.values == ("America", "Europe")
    # One of each group is of a rare country: Europe less the UK and France would be that rater.
    for place in (29, 59):
        country[place], continent[place] = "Malta", "Europe"
    first, second = balance(table_of(study, {"country": country, "continent": continent}), study, 0).columns
    assert first.values == ("France", "UK", OTHERS) and second.why == NO_VALUES
    assert balance(table_of(study, {"continent": continent}), study, 0).columns[0].cells == ((7, 23), (7, 23))


@pytest.mark.parametrize("seed", range(60))
def test_no_adding_and_subtracting_of_two_columns_gives_fewer_than_five_of_whom_they_tell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(3, 9))
    # Raters of some kinds, of which each column is a function: what kinds are like is known to whoever adds and subtracts.
    counts = rng.choice([1, 2, 3, 5, 6, 8, 9, 12], size=(2, kinds))
    kind = np.concatenate([np.repeat(np.arange(kinds), row) for row in counts])
    study = study_of(counts.sum(axis=1).tolist())
    columns = {f"c{one}": [f"v{value}" for value in rng.integers(0, 4, kinds)[kind]] for one in range(2)}
    told = [found[0] for found in disclosed_columns(table_of(study, columns), study).values() if found is not None]
    first = [int(np.flatnonzero(kind == one)[0]) for one in range(kinds)]
    known = np.array([np.ones(kinds), *(one.class_of[first] == at for one in told for at in range(len(one.names)))])
    rank = np.linalg.matrix_rank(known)
    for some in product((0, 1), repeat=kinds):
        if 0 < sum(some) < kinds and (counts @ some).min() < MINIMUM_CELL:
            assert np.linalg.matrix_rank(np.vstack([known, some])) > rank, (counts, columns, some)


def test_three_columns_do_not_give_away_what_no_two_of_them_do() -> None:
    study = study_of((40, 40))
    # The west of Europe is shown in one column, Poland in another, Europe in a third: two Czechs of each group would be what is left.
    land = spread({"France": 10, "Poland": 8, "Czechia": 2, "Peru": 10, "Cuba": 10}) * 2
    part = ["West" if one == "France" else "East" if one in ("Poland", "Czechia") else "South" for one in land]
    some_land = ["Poland" if one == "Poland" else "elsewhere" for one in land]
    some_part = ["West" if one == "West" else "elsewhere" for one in part]
    continent = ["Europe" if one in ("East", "West") else "America" for one in part]
    columns = {"land": some_land, "part": some_part, "continent": continent}
    for left_out in columns:
        two = {name: values for name, values in columns.items() if name != left_out}
        assert all(one.cells for one in balance(table_of(study, two), study, 0).columns)
    assert [bool(one.cells) for one in balance(table_of(study, columns), study, 0).columns] == [True, True, False]


@pytest.mark.parametrize(
    ("pairs", "few"),
    [
        # Europe is the UK, France and one more.
        (
            {("UK", "Europe"): 9, ("France", "Europe"): 9, ("rest", "Europe"): 1, ("Peru", "America"): 9, ("rest", "America"): 5,
             ("Iran", "Asia"): 9, ("rest", "Asia"): 5},
            1,
        ),
        # Oceania is in two classes, which hold one more of another.
        (
            {("north", "Oceania"): 9, ("south", "Oceania"): 9, ("south", "B"): 1, ("x", "B"): 9, ("x", "C"): 9, ("y", "B"): 9,
             ("y", "C"): 9},
            1,
        ),
        # As before, and no class lies in one of the other column.
        (
            {("north", "A"): 9, ("south", "A"): 9, ("south", "B"): 2, ("north", "B"): 2, ("x", "B"): 9, ("x", "C"): 9, ("y", "B"): 9,
             ("y", "C"): 9},
            4,
        ),
        ({("UK", "Europe"): 9, ("rest", "Europe"): 6, ("Peru", "America"): 9}, 6),
        ({("UK", "Europe"): 9, ("rest", "America"): 9}, 0),
    ],
)  # fmt: skip
def test_what_classes_of_one_column_leave_of_a_class_of_another_is_no_few(pairs: Mapping[tuple[str, str], int], few: int) -> None:
    rows = [pair for _ in range(2) for pair, number in pairs.items() for _ in range(number)]
    for order in ((0, 1), (1, 0)):
        telling = SmallCellSuppression(np.repeat([0, 1], len(rows) // 2), 2)
        told = []
        for column in order:
            names = sorted({pair[column] for pair in rows})
            told.append(telling.first_allowed([RaterClasses(tuple(names), np.array([names.index(pair[column]) for pair in rows]))]))
        assert told[0] is not None and (told[1] is None) == (0 < few < MINIMUM_CELL)


def test_p_values_of_columns_are_corrected_by_holm_over_those_that_have_one() -> None:
    study = study_of((40, 40))
    sex = spread({"f": 30, "m": 10}, {"f": 15, "m": 25})
    band = spread({"young": 20, "old": 20}, {"young": 18, "old": 22})
    found = balance(table_of(study, {"sex": sex, "band": band, "name": [f"{n} x" for n in range(80)]}), study, 0).columns
    p = [one.test.p for one in found if one.test is not None]
    assert [one.family for one in found] == [2, 2, 0] and p[0] is not None and found[0].holm == pytest.approx(2 * p[0])


def test_where_an_expected_count_is_small_the_p_of_drawn_tables_is_reported() -> None:
    study = study_of((10, 200))
    found = balance(table_of(study, {"of": spread({"a": 5, "b": 5}, {"a": 5, "b": 195})}), study, 500).columns[0]
    assert found.test is not None and found.test.p_by == "permutation" and found.test.why and "expected count" in found.test.why
    exact = stats.fisher_exact([[5, 5], [5, 195]]).pvalue
    assert found.test.reported_p == found.test.permutation and found.test.permutation is not None
    assert exact < found.test.permutation < 0.01


CELLS = st.lists(st.lists(st.integers(0, 14), min_size=1, max_size=5), min_size=2, max_size=3)


@settings(max_examples=150, deadline=None)
@given(CELLS, st.integers(0, 6), st.integers(0, 2**32))
def test_no_cell_below_five_is_shown_or_is_the_difference_of_what_is_shown(cells: list[list[int]], absent: int, seed: int) -> None:
    width = max(map(len, cells))
    counts = np.array([[*row, *[0] * (width - len(row))] for row in cells])
    sizes = np.maximum(counts.sum(axis=1), 1).tolist()
    rows = [[str(value) for value, number in enumerate(row) for _ in range(number)] or ["0"] for row in counts.tolist()]
    values: list[str | None] = [f"v{one}" for row in rows for one in row]
    rng = np.random.default_rng(seed)
    # Some are not in the table, and some say nothing; a second column is a coarser one of the first.
    for place in rng.integers(0, len(values), absent):
        values[place] = None
    untold = int(rng.integers(0, values.count(None) + 1))
    coarse = [None if one is None else str(int(one[1:]) // 2) for one in values]
    study = study_of(sizes)
    told = json.loads(json.dumps(dataclasses.asdict(balance(table_of(study, {"of": values, "coarse": coarse}, untold), study, 20))))
    assert [size for _, size in told["groups"]] == sizes and told["untold"] == untold
    for one in told["columns"]:
        assert one["quartiles"] == [] and (one["cells"] == []) == (one["test"] is None) == (one["values"] == [])
        for row, size in zip(one["cells"], sizes, strict=bool(one["cells"])):
            # Any class or union of classes, and what is left of the group: all that can be worked out by subtraction in one column.
            assert sum(row) == size and min(row) >= MINIMUM_CELL
        if one["cells"] and NOT_TOLD in one["values"][-1]:
            rest = sum(row[-1] for row in one["cells"]) - untold
            assert rest == 0 or rest >= MINIMUM_CELL
    fine, coarser = told["columns"]
    if fine["cells"] and coarser["cells"]:
        assert_unions_leave_none(fine, coarser, values)


def assert_unions_leave_none(fine: Mapping[str, Any], coarse: Mapping[str, Any], values: list[str | None]) -> None:
    """No class of the coarse column less the classes of the fine one that are known to lie in it is one to four raters of a group."""
    for place, name in enumerate(coarse["values"]):
        inside = [at for at, one in enumerate(fine["values"]) if one.startswith("v") and str(int(one[1:]) // 2) == name]
        for row, finer in zip(coarse["cells"], fine["cells"], strict=True):
            rest = row[place] - sum(finer[at] for at in inside)
            everywhere = [r[place] - sum(f[at] for at in inside) for r, f in zip(coarse["cells"], fine["cells"], strict=True)]
            assert not inside or rest >= MINIMUM_CELL or not any(everywhere), (name, values)


def checks_of(study: StudyTable, failed: Sequence[int | None], shown: int = 4) -> RatersTable:
    told = [None if one is None else str(one) for one in failed]
    return RatersTable(study, {"checks": [None if one is None else str(shown) for one in failed], "checks_failed": told}, 0, 0)


def omnibus(study: StudyTable, permutations: int) -> chi_square.ChiSquaredTest:
    from empathy_eval.statistics.chi_square import CountTable, chi_square_test

    (p,) = permutation_p_values(study, [TableSelection()], permutations, 0)
    return chi_square_test(CountTable(study.groups, study.labels, study.counts()), p, f"permutations:{permutations}|unit:rater")


def test_failed_checks_are_reported_by_group_and_the_test_is_made_again_without_those_who_failed_most() -> None:
    study = study_of((30, 30), ratings=4)
    failed = [*[0] * 18, *[1] * 3, *[2] * 3, *[3] * 6, *[0] * 15, *[2] * 8, *[3] * 4, *[4] * 3]
    whole = omnibus(study, 200)
    found = attention_checks(checks_of(study, failed), study, whole, (200, 0))
    assert found is not None and found.values == ("none", "up to half", "more than half") and found.cells == ((18, 6, 6), (15, 8, 7))
    left_out = np.array(failed) > 2
    fewer = without_raters(study, left_out)
    scipys = stats.chi2_contingency([np.bincount(fewer.category[fewer.group_of[fewer.rater] == one]) for one in (0, 1)])
    assert (len(fewer.raters), len(fewer.rater)) == (47, 188) and found.without is not None
    assert (found.without.statistic, found.without.p) == (float(f"{scipys.statistic:.3g}"), float(f"{scipys.pvalue:.3g}"))
    assert found.without.permutation == permutation_p_values(fewer, [TableSelection()], 200, 0)[0]
    assert found.holds is True and "not below 0.05 with all raters, and not below it without" in found.notes[-1]


def test_of_fewer_than_five_who_failed_most_no_figure_without_them_is_reported_but_whether_the_result_holds() -> None:
    study = study_of((30, 30), ratings=4)
    found = attention_checks(checks_of(study, [*[0] * 20, *[1] * 8, 3, 4, *[0] * 22, *[1] * 7, 3]), study, omnibus(study, 100), (100, 0))
    assert found is not None and found.values == ("none", "some") and found.cells == ((20, 10), (22, 8))
    assert found.without is None and found.holds is True and "fewer than 5" in found.notes[0]
    nobody = attention_checks(checks_of(study, [0] * 60), study, omnibus(study, 100), (100, 0))
    assert nobody is not None and (nobody.values, nobody.cells, nobody.why) == ((), (), NO_VALUES)
    assert attention_checks(table_of(study, {"sex": ["f"] * 60}), study, NO_TEST, (0, 0)) is None


def test_without_its_raters_a_group_is_not_reported() -> None:
    study = study_of((10, 10), ratings=4)
    found = attention_checks(checks_of(study, [*[4] * 10, *[0] * 10]), study, omnibus(study, 50), (50, 0))
    assert found is not None and found.without is None and found.holds is None and "human" not in "".join(found.notes)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_raters_never_appear_in_the_output(tmp_path: Path) -> None:
    study = study_of((12, 12), ratings=3)
    lines = [f"{name},{name},{'f' if n % 2 else 'm'},{30 + n},4,{n % 3}" for n, name in enumerate(study.raters)]
    table = read_raters(written(tmp_path / "raters.csv", "rater,alias,sex,age,checks,checks_failed\n" + "\n".join(lines)), study)
    told = [balance(table, study, 50), attention_checks(table, study, omnibus(study, 50), (50, 0))]
    for one, name in product(told, study.raters):
        assert one is not None and name not in json.dumps(dataclasses.asdict(one))
