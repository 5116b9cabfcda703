"""Differences, rankings and their chance: fractions by hand, other programs, and simulated sets with a known answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from empathy_eval.design.contrasts import PAIRS, TWO_BY_TWO
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, diversity_row, metric_rows
from empathy_eval.evaluation.inversion.results import COLUMNS, RANKED, Difference, MetricRow, correct_p_values
from empathy_eval.metrics.lexical import RougeL
from empathy_eval.metrics.ngrams import Bleu, Dist
from empathy_eval.metrics.protocol import MeanMetric, Segments, with_count
from empathy_eval.statistics.estimate import Clusters, area_under_curve, holm, student_quantile, wins
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from tests.doubles.corrections import multipletests as multipletests

CHANCE = ResamplingSettings(resamples=200, exchanges=199, seed=1)


class Number(MeanMetric):
    """A metric whose texts are their own scores."""

    name, signature = "number", "unit:number"

    def score(self, text: str, reference: str) -> float:
        return float(text)


def measured(
    dialogues: Sequence[str], scenarios: Sequence[int], chance: ResamplingSettings = CHANCE, **variants: Sequence[float]
) -> MetricRow:
    statistics = {name: with_count(values) for name, values in variants.items()}
    contrasts = PAIRS if len(variants) == 2 else TWO_BY_TWO
    return metric_rows([Number()], {"number": statistics}.__getitem__, Clusters.of(dialogues, scenarios), contrasts, chance)[0]


def difference(*arguments: object, **variants: Sequence[float]) -> Difference:
    return measured(*arguments, **variants).differences["empathetic - apathetic"]  # type: ignore[arg-type]


def test_means_differences_accuracy_and_area_by_hand() -> None:
    found = measured(["x", "x", "y"], [1, 1, 2], apathetic=[1, 2, 4], empathetic=[3, 2, 1])
    assert found.scores == {"apathetic": pytest.approx(7 / 3, abs=1e-6), "empathetic": 2.0}
    one = found.differences["empathetic - apathetic"]
    assert one.value == pytest.approx(float(Fraction(-1, 3)), abs=1e-6)
    # won, tied, lost
    assert one.accuracy and one.accuracy.value == pytest.approx(float(Fraction(1, 2)), abs=1e-6)
    # 3 beats 1 and 2; 2 beats 1 and ties 2; 1 ties 1: (2 + 3/2 + 1/2) of 9
    assert one.auc and one.auc.value == pytest.approx(float(Fraction(4, 9)), abs=1e-6)
    assert found.pairs == 3 and one.forced


def test_the_two_by_two_by_hand() -> None:
    cells = {"near_empathetic": [8.0, 6], "apathetic": [6.0, 4], "empathetic": [3.0, 3], "far_apathetic": [2.0, 2]}
    found = measured(["x", "y"], [1, 1], **cells).differences  # type: ignore[arg-type]
    assert {name: one.value for name, one in found.items()} == {
        "stance": 1.5,  # (7 - 5 + 3 - 2) / 2
        "stance, near": 2.0,
        "stance, far": 1.0,
        "closeness": 3.5,  # (7 + 5 - 3 - 2) / 2
        "interaction": 1.0,
    }
    assert [name for name, one in found.items() if one.forced] == ["closeness"]
    assert {name for name, one in found.items() if one.accuracy} == {"stance", "stance, near", "stance, far"}
    assert {name for name, one in found.items() if one.auc} == {"stance, near", "stance, far"}


def test_accuracy_effect_and_ties_at_equal_closeness_by_hand() -> None:
    cells = {"near_empathetic": [8.0, 6], "apathetic": [6.0, 6], "empathetic": [3.0, 1], "far_apathetic": [2.0, 2]}
    found = measured(["x", "y"], [1, 1], **cells).differences  # type: ignore[arg-type]
    # Near: won, tied; far: won, lost.
    assert {name: one.accuracy and one.accuracy.value for name, one in found.items() if one.ties is not None} == {
        "stance": float(Fraction(5, 8)), "stance, near": float(Fraction(3, 4)), "stance, far": float(Fraction(1, 2)),
    }  # fmt: skip
    assert {name: one.ties for name, one in found.items()} == {
        "stance": 0.25, "stance, near": 0.5, "stance, far": 0.0, "closeness": None, "interaction": None,
    }  # fmt: skip
    # Variances within the cells: 1, 0, 1, 0; differences of means: 7 - 6 near, 2 - 2 far.
    effects = {name: one.effect.value for name, one in found.items() if one.effect}
    assert effects == pytest.approx({"stance": 0.5 / (1 / 2) ** 0.5, "stance, near": 1 / (1 / 2) ** 0.5, "stance, far": 0.0}, abs=1e-6)


def test_scores_without_spread_have_no_standardised_effect() -> None:
    assert difference(["x", "y"], [1, 1], apathetic=[0, 0], empathetic=[1, 1]).effect is None


def test_where_lower_is_better_the_ranking_is_turned_round() -> None:
    metric = Number()
    metric.higher_is_better = False
    statistics = {"apathetic": with_count([2, 2]), "empathetic": with_count([1, 3])}
    (made,) = metric_rows([metric], {"number": statistics}.__getitem__, Clusters.of(["x", "y"], [1, 1]), PAIRS, CHANCE)
    one = made.differences["empathetic - apathetic"]
    assert one.accuracy and one.accuracy.value == 0.5
    assert Difference(-0.2, -0.3, -0.1, higher_is_better=False).prefers == "empathetic"


def test_an_interval_that_holds_zero_decides_nothing_and_a_length_is_no_preference() -> None:
    assert (Difference(0.1, -0.1, 0.3).prefers, Difference(-0.2, -0.3, -0.1).prefers) == ("neither", "apathetic")
    assert Difference(2.0, 1.0, 3.0, higher_is_better=None).prefers == "more in empathetic"


def test_one_dialogue_has_no_valid_interval() -> None:
    one = difference(["x", "x"], [1, 1], apathetic=[1, 1], empathetic=[2, 2])
    assert (one.value, one.low, one.high) == (1.0, None, None) and one.prefers == "empathetic (no interval)"


def test_the_exact_p_value_of_few_dialogues() -> None:
    # Of the 2^4 exchanges of four dialogues with equal differences two are as extreme: p tends to 1/8.
    one = difference(list("abcd"), [1] * 4, ResamplingSettings(50, 20_000, 1), apathetic=[0] * 4, empathetic=[1] * 4)
    assert one.p == pytest.approx(1 / 8, abs=0.01)


def test_the_same_seed_gives_the_same_interval_whatever_the_order_of_others() -> None:
    def values(seed: int) -> Difference:
        return difference(list("abcd"), [1] * 4, ResamplingSettings(20, 19, seed), apathetic=[0] * 4, empathetic=[1, 2, 3, 5])

    assert values(1) == values(1) != values(2)


def test_resamples_keep_their_strata_and_single_dialogues_are_one() -> None:
    clusters = Clusters.of(list("abcde"), [1, 1, 2, 3, 3])
    drawn = clusters.bootstrap(np.eye(5), 300, 1)
    assert np.allclose(drawn[:, :2].sum(axis=1), 2) and np.allclose(drawn[:, 3:].sum(axis=1), 2)
    assert (drawn[:, 2] == 1).all(), "the only single one is always in"
    pooled = Clusters.of(list("abc"), [1, 2, 3]).bootstrap(np.eye(3), 300, 1)
    assert np.allclose(pooled.sum(axis=1), 3) and pooled.std(axis=0).min() > 0


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 10, 30, 59, 1000])
def test_quantiles_of_students_distribution_are_scipys(freedom: int) -> None:
    assert student_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=2e-3)


def test_degrees_of_freedom_are_dialogues_less_strata_with_single_ones_pooled() -> None:
    assert Clusters.of(list("abcde"), [1, 1, 2, 3, 3]).degrees_of_freedom == 2
    assert Clusters.of(list("abcd"), [1, 2, 3, 3]).degrees_of_freedom == 2 and Clusters.of(["a"], [1]).degrees_of_freedom == 0


def test_resamples_do_not_depend_on_how_many_are_drawn_at_once() -> None:
    clusters = Clusters.of([str(n) for n in range(30)], [1] * 30)
    many = clusters.bootstrap(np.eye(30), 120, 1)
    assert np.array_equal(clusters.bootstrap(np.eye(30), 50, 1), many[:50])


def simulated(seed: int, effect: float) -> Difference:
    """Eight scenarios of five dialogues of four pairs; scores vary by scenario, dialogue, pair."""
    rng = np.random.default_rng(seed)
    scenarios = np.repeat(np.arange(8), 20)
    dialogues = np.repeat(np.arange(40), 4)
    drift = rng.normal(0, 0.3, 40)[dialogues] + np.linspace(-1, 1, 8)[scenarios]
    base = rng.normal(0, 1, 160)
    changed = base + effect + drift + rng.normal(0, 0.5, 160)
    chance = ResamplingSettings(400, 199, seed)
    return difference([str(one) for one in dialogues], scenarios.tolist(), chance, apathetic=base.tolist(), empathetic=changed.tolist())


@pytest.mark.e2e
def test_the_interval_covers_a_known_difference_in_92_to_98_of_100_sets() -> None:
    found = [simulated(seed, 0.25) for seed in range(500)]
    covered = np.mean([one.low <= 0.25 <= one.high for one in found if one.low is not None and one.high is not None])
    assert 0.92 <= covered <= 0.98, covered


def test_p_values_are_uniform_where_there_is_no_difference() -> None:
    def without(seed: int) -> float:
        rng = np.random.default_rng(seed)
        dialogues = np.repeat(np.arange(30), 4)
        one, other = rng.normal(0, 1, (2, 120)) + rng.normal(0, 1, (2, 30))[:, dialogues]
        found = difference(
            [str(name) for name in dialogues],
            [1] * 120,
            ResamplingSettings(10, 199, seed),
            apathetic=one.tolist(),
            empathetic=other.tolist(),
        )
        return found.p or 0.0

    assert stats.kstest([without(seed) for seed in range(500)], "uniform").pvalue > 0.01


def test_the_clustered_error_of_the_area_is_that_of_repeated_sets() -> None:
    def one_set(seed: int) -> tuple[float, float]:
        rng = np.random.default_rng(seed)
        members = np.repeat(np.arange(40), 4)
        shift = rng.normal(0, 1, 40)[members]
        value, error = area_under_curve(shift + rng.normal(0.5, 1, 160), shift + rng.normal(0, 1, 160), members)
        return value, error or 0.0

    values, errors = zip(*(one_set(seed) for seed in range(300)), strict=True)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30))
def test_the_area_is_scikit_learns(scores: list[tuple[int, int]]) -> None:
    one, other = (np.array(side, dtype=np.float64) for side in zip(*scores, strict=True))
    labels = [1] * len(one) + [0] * len(other)
    value, _ = area_under_curve(one, other, np.arange(len(one)))
    assert value == pytest.approx(roc_auc_score(labels, [*one, *other]), abs=1e-12)


def test_ties_count_half() -> None:
    assert wins(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])).tolist() == [0.5, 0, 1]


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_that_of_statsmodels(multipletests: Any, values: list[float]) -> None:
    assert holm(values) == pytest.approx(multipletests(values, method="holm")[1].tolist(), abs=1e-12)


def test_correction_is_over_all_contrasts_that_are_tested_together() -> None:
    rows = [
        measured([str(n) for n in range(20)], [1] * 20, apathetic=[0.0] * 20, empathetic=list(range(shift, shift + 20)))
        for shift in (3, -10)
    ]
    before = [one.differences["empathetic - apathetic"].p or 0.0 for one in rows]
    after = [one.differences["empathetic - apathetic"].p_corrected for one in correct_p_values(rows)]
    assert after == pytest.approx(holm(before), abs=1e-6)


def test_dist_by_hand_on_as_many_words_of_each_variant() -> None:
    texts = {"apathetic": ["a A b", "a b", "a b c"], "empathetic": ["c d e", "f g", "h i j"]}
    one, two, four = (Dist(order).measure(texts, ["x", "x", "x"], 1)[0] for order in (1, 2, 4))
    # a a b | a b | a b c: 3 of 8 words; (a a) (a b) (b c) of 5 pairs; no run of four
    assert (one["apathetic"][0], two["apathetic"][0], four["apathetic"][0]) == (3 / 8, 3 / 5, 0.0)
    assert one["empathetic"][0] == 1.0


def test_dist_measures_as_many_words_of_short_texts_as_of_long_ones() -> None:
    texts = {"apathetic": ["a b", "c d", "e f"], "empathetic": ["a b c d e f g", "h", "i"]}
    values, words = Dist(1).measure(texts, ["x", "x", "x"], 1)
    # Six words of each variant: with ends counted as words, of the first only four would be.
    assert words == 6 and values["apathetic"][0] == values["empathetic"][0] == 1.0
    cut, words = Dist(1, budget=6).measure({"apathetic": ["a b", "a b", "a b", "c d"] * 2}, ["x"] * 4 + ["y"] * 4, 1)
    assert words == 6 and cut["apathetic"].tolist() == [2 / 6] * 3


def test_dist_leaves_each_dialogue_out_and_measures_as_many_words_without_it() -> None:
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(list("abcdefgh"), 12)) for _ in range(30)]
    dialogues = [str(number // 3) for number in range(30)]
    values, words = Dist(2, budget=60).measure({"apathetic": texts}, dialogues, 1)
    # Three texts of 12 words a dialogue: 36; without any one of three dialogues there are 72, of two 36.
    assert words == 60 and len(values["apathetic"]) == 1 + 3
    made = diversity_row(Dist(2, budget=60), {"apathetic": texts, "empathetic": texts[::-1]}, dialogues, PAIRS, 1)
    one = made.differences["empathetic - apathetic"]
    assert one.low is not None and one.low <= one.number <= (one.high or 0) and one.accuracy is None and one.p is None
    assert "words:60" in made.signature


def test_rouge_l_by_hand() -> None:
    # "a x c": longest common subsequence a, c; precision 2/3, recall 2/4
    assert RougeL().statistics(Segments(["a x c"], ["a b c d"]))[0, 0] == pytest.approx(float(Fraction(4, 7)), abs=1e-12)


@given(st.lists(st.tuples(st.text("ab c.", max_size=30), st.text("ab c.", min_size=1, max_size=30)), min_size=1, max_size=5))
def test_summed_statistics_give_sacrebleus_corpus_score(pairs: list[tuple[str, str]]) -> None:
    import sacrebleu

    hypotheses, references = [list(side) for side in zip(*pairs, strict=True)]
    expected = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="13a", smooth_method="exp").score / 100
    bleu = Bleu()
    assert bleu.aggregate(bleu.statistics(Segments(hypotheses, references)).sum(axis=0, keepdims=True))[0] == pytest.approx(
        expected, abs=1e-12
    )


def test_every_figure_of_a_contrast_is_declared_for_csv_terminal_and_pages() -> None:
    assert set(RANKED) == {one.name for one in fields(Difference) if "Estimate" in str(one.type)}
    assert all(f"{name}{end}" in COLUMNS for name in RANKED for end in ("", "_low", "_high"))
