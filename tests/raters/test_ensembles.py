"""Ensembles: by hand, against the published figures of the paper they are from, and what cannot be fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.evaluation.external.custom_texts import REPLY, CustomScores, CustomTexts, MetricColumn
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.metrics.protocol import Array, with_count
from empathy_eval.raters.agreement.table import RatingTable
from empathy_eval.raters.people.ensembles import KINDS, Ensemble, fit_ensembles, huffman_chain, parse_ensembles, plain_mean
from empathy_eval.raters.people.human_correlation import correlate, with_ensemble_columns

Values = Sequence[float]
FIT, TEST = "validation", "test"


def scores_of(columns: Mapping[str, Values], splits: Sequence[str], *, lower: str = "", neither: str = "") -> CustomScores:
    """Texts i0, i1, … of those splits with those scores."""
    items = [f"i{place}" for place in range(len(splits))]
    keys = [(one, REPLY) for one in items]
    said = [[{"role": "seeker", "text": one}] for one in items]
    blank = [""] * len(items)
    texts = CustomTexts("here", items, keys, blank, items, items, said, blank, items, splits=splits)
    made = []
    for name, values in columns.items():
        one = PrecomputedScores(name, f"of:{name}", dict(zip(keys, values, strict=True)), name != lower)
        if name == neither:
            one.higher_is_better = None
        made.append(MetricColumn(one, with_count(values)))
    return CustomScores(texts, tuple(made), (), ())


def rated(ratings: Values, criterion: str = "rating") -> list[tuple[str, str, float, str]]:
    return [(f"i{place}", "ann", rating, criterion) for place, rating in enumerate(ratings)]


def fit(text: str, scores: CustomScores, *ratings: Sequence[tuple[str, str, float, str]]) -> Ensemble:
    asked = parse_ensembles([text], [one.metric.name for one in scores.columns], {})
    return fit_ensembles(asked, scores, RatingTable.of([row for some in ratings for row in some]))[0]


def order_of(one: Ensemble) -> list[str]:
    return [member.row for member in one.members]


def test_the_chain_and_the_mean_of_four_scores_by_hand() -> None:
    # C 2, P 4, ED 3, W 3.5 by their worth: (2 + 4) / 2 = 3, (3 + 3) / 2 = 3, (3 + 3.5) / 2 = 3.25.
    ordered = np.array([[2.0], [4.0], [3.0], [3.5]])
    assert huffman_chain(ordered).tolist() == [3.25] and plain_mean(ordered).tolist() == [3.125]
    assert huffman_chain(np.eye(4)).tolist() == [0.125, 0.125, 0.25, 0.5] and huffman_chain(np.eye(2)).tolist() == [0.5, 0.5]


# "EMPATH: An Ensemble Method for Automatic Fine-Grained Turn-Level Dialogue Empathy Evaluation with a Novel Emotional Distance Metric",
# Pearson's r with people on its two data sets: of four scores alone (Table 2), of chains in an order (Tables 3, 11 and 14), of their mean.
ALONE = {"C": (0.4304, 0.3336), "ED": (0.5262, 0.2696), "P": (0.5034, 0.3066), "W": (0.5864, 0.4246)}
MEAN = (0.5994, 0.4727)
CHAINS = {
    "C ED P W": (0.6070, 0.4860), "C P ED W": (0.6070, 0.4800), "C P W ED": (0.5936, 0.4349), "C ED W P": (0.5903, 0.4393),
    "C W P ED": (0.5896, 0.4145), "C W ED P": (0.5869, 0.4198), "P ED C W": (0.6021, 0.4859), "P ED W C": (0.5657, 0.4588),
    "P W C ED": (0.5837, 0.4255), "P W ED C": (0.5607, 0.4434), "ED W C P": (0.5809, 0.4254), "ED W P C": (0.5606, 0.4378),
    "C ED P": (0.5777, 0.4148), "C ED W": (0.5986, 0.4810), "C P W": (0.5994, 0.4736), "ED P W": (0.6043, 0.4637),
    "C ED": (0.5311, 0.3917), "C P": (0.5316, 0.3820), "C W": (0.5599, 0.4571), "P ED": (0.5705, 0.3556), "P W": (0.5873, 0.4377),
    "W ED": (0.5914, 0.4287),
}  # fmt: skip
# What the paper does not print, fitted to those figures: correlations of the scores with each other (C-ED, C-P, C-W, ED-P, ED-W, P-W) and
# their spreads; how far the figures are from it at most; and the order by Table 2.
SETS = (
    ((0.583, 0.506, 0.610, 0.621, 0.768, 0.727), (1.0, 0.930, 0.904, 0.930), 0.005, ["C", "P", "ED", "W"]),
    ((0.180, 0.390, 0.374, 0.293, 0.303, 0.400), (1.0, 0.996, 0.951, 0.931), 0.010, ["ED", "P", "C", "W"]),
)


def sample(which: int, texts: int = 40) -> tuple[dict[str, Array], Array]:
    """Scores and ratings with exactly the correlations and spreads of a data set of the paper."""
    between, spreads, _, _ = SETS[which]
    wanted_r = np.eye(5)
    for (one, other), r in zip(combinations(range(4), 2), between, strict=True):
        wanted_r[one, other] = wanted_r[other, one] = r
    wanted_r[4, :4] = wanted_r[:4, 4] = [one[which] for one in ALONE.values()]
    drawn = np.random.default_rng(which).normal(size=(texts, 5))
    columns = np.linalg.qr(drawn - drawn.mean(axis=0))[0] @ np.linalg.cholesky(wanted_r).T
    return {name: columns[:, place] * spreads[place] for place, name in enumerate(ALONE)}, columns[:, 4]


@pytest.mark.parametrize("which", [0, 1])
def test_chains_and_means_correlate_with_people_as_the_paper_prints(which: int) -> None:
    scores, people = sample(which)
    errors = {"mean": np.corrcoef(plain_mean(np.stack(list(scores.values()))), people)[0, 1] - MEAN[which]}
    for order, published in CHAINS.items():
        made = huffman_chain(np.stack([scores[name] for name in order.split()]))
        errors[order] = np.corrcoef(made, people)[0, 1] - published[which]
    assert max(map(abs, errors.values())) <= SETS[which][2], errors
    # Other weights would not: half as much for the best score, and as much more for the one before it.
    other = np.array([0.125, 0.125, 0.5, 0.25]) @ np.stack([scores[name] for name in ["C", "ED", "P", "W"]])
    assert abs(np.corrcoef(other, people)[0, 1] - CHAINS["C ED P W"][which]) > SETS[which][2]


@pytest.mark.parametrize("which", [0, 1])
def test_fitted_on_validation_and_measured_on_test_they_reach_the_papers_figures(which: int) -> None:
    scores, people = sample(which)
    # In validation the same texts, and two more that put all scores on one scale without a word on their worth.
    ends = [1.5, -1.5]
    columns = {name: np.concatenate([values, ends, values]).tolist() for name, values in scores.items()}
    ratings = np.concatenate([people, [0.0, 0.0], people]).round(9).tolist()
    texts = scores_of(columns, [FIT] * (len(people) + 2) + [TEST] * len(people))
    table = RatingTable.of(rated(ratings))
    fits = fit_ensembles(parse_ensembles(["huffman:W,P,C,ED", "mean:W,P,C,ED"], list(columns), {}), texts, table)
    assert order_of(fits[0]) == SETS[which][3] and [one.weight for one in fits[0].members] == [0.125, 0.125, 0.25, 0.5]
    (criterion,) = correlate(fits, texts, table, ResamplingSettings(0, 0, 0)).criteria
    found = {row.metric: row.figures["r"].value for row in criterion.rows if row.form == "raw"}
    assert {name: found[name] for name in ALONE} == pytest.approx({name: one[which] for name, one in ALONE.items()}, abs=1e-5)
    by_rule = CHAINS[" ".join(SETS[which][3])] if which == 0 else CHAINS["P ED C W"]
    assert found["huffman:W,P,C,ED"] == pytest.approx(by_rule[which], abs=SETS[which][2])
    assert found["mean:W,P,C,ED"] == pytest.approx(MEAN[which], abs=SETS[which][2])
    assert criterion.texts == len(people)


def test_a_fit_by_hand_with_its_scales_and_what_lies_beyond_them() -> None:
    # Validation: a goes with people at r = 1, b at r = 1/2; test: beyond both ends.
    scores = scores_of({"a": [0, 1, 2, 5, 1], "b": [10, 30, 20, 15, 0]}, [FIT] * 3 + [TEST] * 2)
    one = fit("huffman:a,b", scores, rated([1, 2, 3, 2, 1]))
    assert [(member.row, member.r, member.weight, member.low, member.high, member.clipped) for member in one.members] == [
        ("b", 0.5, 0.5, 10, 30, 0.5), ("a", 1.0, 0.5, 0, 2, 0.5),
    ]  # fmt: skip
    # On [0, 1]: a 0 1/2 1, b 0 1 1/2, their means 0 3/4 3/4; test: a 1 1/2, b 1/4 0, means 5/8 1/4, of which 3/4 is the most.
    assert (one.low, one.high, one.ratings, one.texts) == (0.0, 0.75, 3, 3)
    assert one.column(scores).scores.tolist() == pytest.approx([0, 1, 1, 5 / 6, 1 / 3], abs=1e-6)
    for part in ("huffman-order,chain", "order:b,a", "by:pearson,validation", "texts:3", "members:s1-"):
        assert part in one.signature


def test_nothing_of_test_or_train_moves_a_fit() -> None:
    columns = {"a": [0.0, 1, 2, 5, 1, 9], "b": [10.0, 30, 20, 15, 0, -4]}
    splits = [FIT] * 3 + [TEST] * 2 + ["train"]
    plain = fit("huffman:a,b", scores_of(columns, splits), rated([1, 2, 3, 2, 1, 1]))
    other = {name: [*values[:3], 3.0, -7, 100] for name, values in columns.items()}
    moved = fit("huffman:a,b", scores_of(other, splits), rated([1, 2, 3, 5, 4, 5]))
    assert plain.signature == moved.signature and (plain.low, plain.high) == (moved.low, moved.high)
    found = correlate((plain,), scores_of(columns, splits), RatingTable.of(rated([1, 2, 3, 2, 1, 1])), ResamplingSettings(0, 0, 0))
    assert found.ratings == 2 and found.notes[1] == "ratings of train are left out: 1" and found.notes[0].endswith("fitted on: 3")


def test_of_two_scores_that_go_with_people_alike_the_first_by_name_is_the_first() -> None:
    scores = scores_of({"z": [1, 2, 4, 1], "m": [2, 4, 8, 2], "a": [0.3, 0.6, 1.2, 3]}, [FIT] * 3 + [TEST])
    assert order_of(fit("huffman:z,m,a", scores, rated([1, 3, 2, 1]))) == ["a", "m", "z"]


def test_scores_of_which_lower_is_better_are_turned_round_and_those_of_neither_enter_as_they_are() -> None:
    columns = {"up": [1, 2, 4, 1], "down": [-1, -2, -4, -1], "length": [3, 2, 1, 3]}
    scores = scores_of(columns, [FIT] * 3 + [TEST], lower="down", neither="length")
    one = fit("mean:up,down,length", scores, rated([1, 2, 3, 1]))
    assert {member.row: (member.higher_is_better, member.r > 0) for member in one.members} == {
        "length": (None, False), "down": (False, True), "up": (True, True),
    }  # fmt: skip
    assert order_of(one)[0] == "length" and order_of(one)[1:] == ["down", "up"]
    twice = fit("mean:up,down", scores, rated([1, 2, 3, 1]))
    assert twice.column(scores).scores.tolist() == pytest.approx([0, 1 / 3, 1, 0], abs=1e-6)


def test_each_criterion_has_its_own_fit_and_its_own_row() -> None:
    scores = scores_of({"a": [1, 2, 3, 2, 1], "b": [3, 1, 2, 1, 3]}, [FIT] * 3 + [TEST] * 2)
    table = RatingTable.of([*rated([1, 2, 3, 2, 1], "warm"), *rated([3, 1, 2, 1, 2], "clear")])
    fits = fit_ensembles(parse_ensembles(["huffman:a,b"], ["a", "b"], {}), scores, table)
    assert {one.criterion: order_of(one) for one in fits} == {"clear": ["a", "b"], "warm": ["b", "a"]}
    found = correlate(fits, scores, table, ResamplingSettings(0, 0, 0))
    assert [[row.metric for row in one.rows if row.form == "raw"] for one in found.criteria] == [["a", "b", "huffman:a,b"]] * 2
    signatures = [next(row for row in one.rows if row.metric == "huffman:a,b").figures["r"].signature for one in found.criteria]
    assert "criterion:clear" in signatures[0] and "criterion:warm" in signatures[1]
    named = [one.metric.name for one in with_ensemble_columns(scores, fits).columns]
    assert named == ["a", "b", "huffman:a,b on clear", "huffman:a,b on warm"]


def test_a_text_without_a_score_by_one_row_has_none_by_the_ensemble() -> None:
    nan = float("nan")
    scores = scores_of({"a": [1, 2, 3, nan, 1, nan], "b": [3, 1, 2, 7, nan, 2]}, [FIT] * 4 + [TEST] * 2)
    one = fit("mean:a,b", scores, rated([1, 2, 3, 3, 1, 2]))
    assert one.texts == 3 and np.isnan(one.column(scores).scores).tolist() == [False, False, False, True, True, True]


UNFIT = {
    "validation has ratings of 2 texts that all its rows score, but an order needs 3": ([1, 2, 3, 2], [FIT, FIT, TEST, TEST], [1, 2, 3, 4]),
    "all 3 ratings of validation are alike": ([1, 2, 3, 2], [FIT, FIT, FIT, TEST], [2, 2, 2, 4]),
    '"a" gives all 3 rated texts of validation the same score': ([1, 1, 1, 2], [FIT, FIT, FIT, TEST], [1, 2, 3, 4]),
    'no rated text is of the split "test"': ([1, 2, 3, 4], [FIT] * 4, [1, 2, 3, 4]),
    "1 of 4 rated texts have no split, first i3": ([1, 2, 3, 4], [FIT, FIT, TEST, ""], [1, 2, 3, 4]),
    "its scores are all alike on validation": ([4, 3, 2, 2], [FIT, FIT, FIT, TEST], [1, 2, 3, 4]),
}


@pytest.mark.parametrize("what", UNFIT)
def test_what_cannot_be_fitted_is_reported_in_words(what: str) -> None:
    values, splits, ratings = UNFIT[what]
    scores = scores_of({"a": values, "b": [2, 3, 4, 1]}, splits)
    with pytest.raises(InputError) as caught:
        fit("mean:a,b", scores, rated(ratings))
    assert what in str(caught.value) and "Fix: " in str(caught.value)


def test_all_that_is_wrong_with_ensembles_is_reported_at_once() -> None:
    texts = ["hufman:a,b", "mean:a", "mean:a,,b", "mean:a,c", "huffman:a,b,a", "mean:a,alpha"]
    with pytest.raises(InputError) as caught:
        parse_ensembles(texts, ["a", "b"], {"alpha": "a"})
    assert [one.where for one in caught.value.problems] == [f'ensemble "{text}"' for text in texts]
    assert [one.what for one in caught.value.problems] == ["is not an ensemble"] * 3 + ['there is no row "c"', *['"a" is in it twice'] * 2]
    assert sorted(KINDS) == ["huffman", "mean"] and caught.value.problems[3].fix == "name rows of this call: a, b"
    (one,) = parse_ensembles(["huffman:alpha, b", "huffman:alpha, b"], ["a", "b"], {"alpha": "a"})
    assert (one.name, one.rows) == ("huffman:alpha, b", ("a", "b"))
