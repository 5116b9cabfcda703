"""Notes on permutation tests of few raters, and groups without ratings in a stratum."""

from __future__ import annotations

import numpy as np
from empathy_eval.raters.study.study import Stratum, StudyOptions, permutation_notes, study

from tests.doubles.made_studies import study_of


def test_few_arrangements_few_shared_blocks_and_none_are_reported() -> None:
    counts, group = [[1, 2], [2, 1], [1, 1], [0, 3], [1, 1], [2, 2]], [0, 0, 0, 1, 1, 1]
    assert list(permutation_notes(study_of(counts, group), 0.01)) == [
        'raters of "b" and "a" allow only 20 permutations, so no p-value by rater is below 0.05'
    ]
    assert not list(permutation_notes(study_of(counts, group), 0.06))
    shared = list(permutation_notes(study_of(counts, group, [0, 1, 2, 0, 3, 4]), 0.05))
    assert shared[0].startswith('only 1 of 3 raters of "b" share a block with "a"') and "only 2 permutations" in shared[1]
    apart = study_of(counts, group, [0, 0, 1, 2, 3, 3])
    assert list(permutation_notes(apart, 0.05)) == ['"b" and "a" have no block in common, so their p-value by rater is not reported']
    found = study(apart, StudyOptions(permutations=10))
    assert found.to_json()["no_null_point"] == "no two groups have raters that can be permuted"
    assert any("no block in common" in note for note in found.notes)


def test_a_group_without_ratings_in_a_part_permutations_with_nobody_there() -> None:
    ratings = study_of([[1, 2], [2, 1], [1, 1], [0, 3], [1, 1], [2, 2]], [0, 0, 1, 1, 2, 2])
    where = ratings.group_of[ratings.rater] < 2
    assert [one.groups for one in Stratum("some", where, ratings.subset(where)).selections()][0] == (0, 1)
    assert [one.groups for one in Stratum(None, None, ratings).selections()][0] == "all"


def test_power_has_the_degrees_of_freedom_of_the_test_where_nobody_gave_a_category() -> None:
    counts = np.array([[1, 2, 0], [2, 1, 0], [1, 1, 0], [0, 3, 0]])
    found = study(study_of(counts, [0, 0, 1, 1]), StudyOptions(permutations=0))
    assert found.power.df == found.whole.omnibus.df == 1
    assert [one["why"] for one in found.records() if one["figure"] == "omnibus: null point"] == ["no permutation test was run"]
