"""A judge beside itself, and judges by model and style."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from empathy_eval.raters.agreement.overall import StyleWins, styles
from empathy_eval.raters.agreement.panel import JudgeRater, Panel
from empathy_eval.raters.agreement.reliability import Stability, stability
from empathy_eval.raters.agreement.table import RatingTable
from empathy_eval.statistics.agreement import ItemBootstrap
from empathy_eval.statistics.estimate import Estimate
from krippendorff import alpha
from sklearn.metrics import cohen_kappa_score

NAN = float("nan")


def samples(number: int) -> Panel:
    return Panel(("e",), tuple(JudgeRater(f"j#{place + 1}" if place else "j", "j", sample=place + 1) for place in range(number)))


def beside_itself(given: list[list[float]], resamples: int = 20) -> Stability:
    """A judge by what its samples gave each item, shape (samples, items)."""
    panel = samples(len(given))
    names = [one.rater for one in panel.judges]
    rows = [(f"{item:03}", names[place], value) for place, own in enumerate(given) for item, value in enumerate(own)]
    ratings = RatingTable.of([*rows, ("000", "e", 1.0)]).on("rating")
    (found,) = stability("kind", ratings, panel, "interval", ItemBootstrap.of(ratings.items, resamples, 0))
    return found


def test_stability_by_hand() -> None:
    found = beside_itself([[1, 2, 3, 4], [1, 2, 5, 4], [1, 3, 4, NAN]])
    # Over the three items that all samples rate: one alike, and distances 0, 1 and 2.
    assert (found.judge, found.criterion, found.samples, found.same.n) == ("j", "kind", 3, 3)
    assert found.same.value == pytest.approx(float(Fraction(1, 3))) and found.range.value == 1
    assert found.range.low is not None and found.same.low is not None


def test_alpha_and_kappa_of_samples_are_those_of_other_programs() -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(1, 6, 40)
    given = np.clip(truth + rng.integers(-1, 2, (3, 40)), 1, 5).astype(float)
    found = beside_itself(given.tolist())
    assert found.alpha.value == pytest.approx(alpha(reliability_data=given, level_of_measurement="interval"))
    pairs = [cohen_kappa_score(given[one], given[other], weights="quadratic") for one, other in ((0, 1), (0, 2), (1, 2))]
    assert found.kappa.value == pytest.approx(np.median(pairs))


def test_one_sample_says_that_it_is_alone() -> None:
    found = beside_itself([[1, 2, 3]])
    assert {one.reason for one in (found.same, found.alpha, found.kappa, found.range)} == {"there is only one sample"}
    assert all(one.value is None for one in (found.same, found.alpha, found.kappa, found.range))
    json.dumps(asdict(found), allow_nan=False)


def test_samples_without_an_item_in_common_say_why() -> None:
    found = beside_itself([[1, 2, NAN, NAN], [NAN, NAN, 1, 2]])
    assert (found.same.reason, found.range.reason) == ("there is no item that all samples rate", "no item that all samples rate")
    assert found.kappa.reason == "no pair has a kappa" and found.alpha.reason == "no item with two ratings"


def test_a_judge_that_did_not_rate_a_criterion_is_not_reported() -> None:
    ratings = RatingTable.of([("a", "e", 1.0), ("a", "j", 2.0)]).on("rating")
    other = Panel(("e",), (JudgeRater("j", "j"), JudgeRater("k", "k")))
    assert [one.judge for one in stability("kind", ratings, other, "interval", ItemBootstrap.of(1, 0, 0))] == ["j"]


# --- Styles


def kappas(**values: float | None) -> dict[str, Estimate]:
    return {name: Estimate(value, n=9, reason=None if value else "no item in common", signature="s") for name, value in values.items()}


JUDGES = (
    JudgeRater("a1", "a1", "A", "plain"),
    JudgeRater("a2", "a2", "A", "shots"),
    JudgeRater("b1", "b1", "B", "plain"),
    JudgeRater("b2", "b2", "B", "shots"),
)


def test_each_criterion_has_its_best_column_and_each_style_its_wins() -> None:
    given = {
        "x": kappas(a1=0.5, a2=0.4, b1=0.6, b2=0.7),
        "y": kappas(a1=0.5, a2=0.5, b1=0.2, b2=None),
        "z": kappas(a1=0.1, a2=0.3, b1=0.3, b2=0.1),
    }
    found = styles(JUDGES, given)
    assert found and [(row.criterion, row.best) for row in found.criteria] == [("x", (3,)), ("y", (0, 1)), ("z", (1, 2))]
    assert [(one.model, one.style, one.best, one.kappas.number) for one in found.columns] == [
        ("A", "plain", 1, 3), ("A", "shots", 2, 3), ("B", "plain", 1, 3), ("B", "shots", 1, 2),
    ]  # fmt: skip
    assert found.columns[0].kappas.median == 0.5 and found.columns[3].kappas.mean == pytest.approx(0.4)
    # A: plain, both, shots. B: shots, then no contest for want of a second, plain.
    assert found.wins == (StyleWins("plain", 3, 5), StyleWins("shots", 3, 5))
    json.dumps(asdict(found), allow_nan=False)


def test_one_model_in_one_style_is_no_comparison() -> None:
    assert styles(JUDGES[:1], {"x": kappas(a1=0.5)}) is None
    assert styles((), {}) is None


def test_models_without_styles_are_compared_and_no_style_wins() -> None:
    found = styles((JudgeRater("a", "a"), JudgeRater("b", "b", "B")), {"x": kappas(a=0.5, b=0.4)})
    assert found and (found.wins, [one.model for one in found.columns], found.criteria[0].best) == ((), ["a", "B"], (0,))


def test_a_style_without_a_kappa_is_in_no_contest() -> None:
    judges = tuple(JudgeRater(style, style, "A", style) for style in ("plain", "shots", "reasoned"))
    found = styles(judges, {"x": kappas(plain=0.5, shots=0.4, reasoned=None)})
    assert found and found.wins == (StyleWins("plain", 1, 1), StyleWins("shots", 0, 1), StyleWins("reasoned", 0, 0))


def test_published_kappas_by_model_and_style_have_no_style_that_wins() -> None:
    """The figures of Table 1 of the supplement of "When Large Language Models are Reliable for Judging Empathic Communication"."""
    with (Path(__file__).parent / "published_styles.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    columns = [name for name in rows[0] if name != "criterion"]
    judges = [JudgeRater(name, name, *name.split()) for name in columns]
    found = styles(judges, {row["criterion"]: kappas(**{name: float(row[name]) for name in columns}) for row in rows})
    assert found and len(found.criteria) == 21
    assert [one.kappas.median for one in found.columns] == [0.53, 0.48, 0.4, 0.47, 0.52, 0.57]
    assert [one.best for one in found.columns] == [2, 5, 1, 0, 4, 9]
    assert found.wins == (StyleWins("shots", 31, 63), StyleWins("reasoned", 33, 63))
