"""Kappas of all criteria as one: a published table of 21 criteria, and what scipy and fractions by hand say of the same numbers."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from empathy_eval.raters.agreement.overall import CriterionKappas, Overall, band, overall, pearson
from scipy.stats import pearsonr

# The figures of Table 2 of "When Large Language Models are Reliable for Judging Empathic Communication", as printed.
PUBLISHED = Path(__file__).parent / "published_kappas.csv"


def published() -> list[CriterionKappas]:
    with PUBLISHED.open() as stream:
        return [
            CriterionKappas(
                one["framework"], one["criterion"],
                tuple(float(one[f"expert{pair}"]) for pair in ("1_expert2", "1_expert3", "2_expert3")),
                {"llm": float(one["experts_llm"])}, float(one["experts_crowd"]),
            )
            for one in csv.DictReader(stream)
        ]  # fmt: skip


@pytest.fixture(scope="module")
def found() -> Overall:
    return overall(published())


def test_the_published_benchmark_is_the_median_of_63_pairs(found: Overall) -> None:
    pairs = found.pairs
    assert (found.criteria, pairs.number) == (21, 63)
    assert (pairs.lowest, pairs.highest, pairs.median, found.benchmark) == (0.11, 0.84, 0.58, 0.58)
    # The paper prints .49 to .69; no definition of quartiles that numpy knows gives .69 of the numbers of its own table.
    assert (pairs.first_quartile, pairs.third_quartile) == (0.49, 0.655)
    values = [value for one in published() for value in one.pairs if value is not None]
    methods = ("lower", "higher", "nearest", "midpoint", "linear", "hazen", "weibull", "median_unbiased", "normal_unbiased")
    assert max(np.quantile(values, 0.75, method=one) for one in methods) < 0.67  # type: ignore[call-overload]
    assert (found.experts.first_quartile, found.experts.median, found.experts.third_quartile) == (0.49, 0.57, 0.66)


def test_the_published_medians_are_in_bands_whose_lower_end_is_in(found: Overall) -> None:
    assert {name: number for name, number in found.bands.items() if number} == {"fair": 3, "moderate": 9, "substantial": 9}
    # Understood and Affirmed have a median of .60, which Landis and Koch's own .61-.80 would leave out: then it is 7, 11 and 3.
    on_the_border = [one.criterion for one in published() if one.experts == 0.6]
    assert on_the_border == ["Understood", "Affirmed"] and band(0.6) == "substantial"


def test_the_published_model_is_at_the_benchmark_on_15_of_21(found: Overall) -> None:
    llm = found.judges["llm"]
    assert (llm.kappas.lowest, llm.kappas.highest, llm.kappas.median) == (0.17, 0.86, 0.6)
    assert (llm.kappas.first_quartile, llm.kappas.third_quartile) == (0.53, 0.69)
    assert (len(llm.at_benchmark.so), llm.at_benchmark.of) == (15, 21)
    # The paper says it is there wherever experts are.
    assert llm.where_experts_are.not_so == ("Understood",) and llm.where_experts_are.of == 10
    assert llm.above_crowd and (len(llm.above_crowd.so), llm.above_crowd.not_so) == (18, ("Fluency", "Relevance", "Emotional Reactions"))


def test_the_published_crowd_is_at_the_benchmark_on_one_criterion(found: Overall) -> None:
    crowd = found.crowd
    assert crowd and (crowd.kappas.lowest, crowd.kappas.highest, crowd.kappas.median) == (0.12, 0.7, 0.33)
    assert crowd.at_benchmark.so == ("Emotional Reactions",) and crowd.where_experts_are.so == () and crowd.above_crowd is None


def test_the_published_means_by_framework_are_those_of_one_pair_alone(found: Overall) -> None:
    means = {one.framework: round(one.pairs.mean or 0, 2) for one in found.frameworks}
    assert means == {"Empathetic Dialogues": 0.44, "EPITOME": 0.55, "Perceived Empathy": 0.61, "Lend an Ear": 0.55}
    assert [one.criteria for one in found.frameworks] == [3, 3, 9, 6]
    first = overall([CriterionKappas(one.framework, one.criterion, one.pairs[:1]) for one in published()])
    assert [round(one.pairs.mean or 0, 2) for one in first.frameworks] == [0.41, 0.46, 0.6, 0.55], "what the paper prints"


@pytest.mark.parametrize(("who", "r", "low", "high"), [("llm", 0.57, 0.18, 0.80), ("crowd", 0.10, -0.35, 0.51)])
def test_correlations_are_those_of_scipy(found: Overall, who: str, r: float, low: float, high: float) -> None:
    stance = found.judges.get(who) or found.crowd
    assert stance
    theirs = [one.experts or 0 for one in published()]
    own = [(one.judges["llm"] if who == "llm" else one.crowd) or 0 for one in published()]
    other = pearsonr(theirs, own)
    interval = other.confidence_interval(0.95)
    measure = stance.with_experts
    assert measure.value == pytest.approx(other.statistic) and measure.n == 21
    assert measure.low == pytest.approx(interval.low) and measure.high == pytest.approx(interval.high)
    assert (round(measure.value or 0, 2), round(measure.low or 0, 2), round(measure.high or 0, 2)) == (r, low, high)


def test_a_correlation_by_hand_and_where_there_is_none() -> None:
    # deviations -1 0 1 and -1 1 0: 1 / sqrt(2 * 2)
    assert pearson([1, 2, 3], [1, 3, 2], "").value == 0.5
    assert pearson([1, 2, 3], [1, 3, 2], "").reason == "no interval: Fisher's z needs more than 3 criteria"
    assert pearson([1, 2, 3, 4], [2, 4, 6, 8], "").reason == "no interval: all criteria are on one line"
    assert pearson([1, 2, 3, 4], [2, 2, 2, 2], "").reason == "one of the two is the same for all criteria"
    assert pearson([], [], "").reason == "no criterion has both kappas; a correlation needs 3"
    assert pearson([1, 2], [2, 1], "").value is None


def test_a_kappa_that_is_at_the_benchmark_but_for_rounding_counts() -> None:
    # 0.7 - 0.4 is a little less than 0.3; the benchmark of these three is their median.
    kappas = [
        CriterionKappas("", "a", (0.2, 0.4), {"j": 0.7 - 0.4, "k": 0.3 - 1e-9}, 0.3),
        CriterionKappas("", "b", (0.3,), {"j": None, "k": None}, 0.1),
    ]
    found = overall(kappas)
    assert found.benchmark == 0.3 > 0.7 - 0.4
    j, k = found.judges["j"], found.judges["k"]
    assert (j.at_benchmark.so, k.at_benchmark.not_so) == (("a",), ("a",))
    # And one that is equal to the crowd's but for rounding is not above it.
    other = overall([CriterionKappas("", "a", (0.3,), {"j": 0.1 + 0.2}, 0.3)]).judges["j"].above_crowd
    assert other and other.not_so == ("a",)


def test_what_is_not_defined_says_why_and_counts_nowhere() -> None:
    found = overall([CriterionKappas("", "a", (None, None), {"j": 0.5}), CriterionKappas("", "b", (), {"j": None})])
    assert (found.benchmark, found.pairs.why, sum(found.bands.values()), found.crowd) == (None, "no kappa is defined", 0, None)
    assert found.judges["j"].at_benchmark.of == 0 and found.judges["j"].with_experts.reason
    assert found.frameworks[0].crowd is None and found.judges["j"].above_crowd is None
    json.dumps(asdict(found), allow_nan=False)
    assert overall([]).benchmark is None
