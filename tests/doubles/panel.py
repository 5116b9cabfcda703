"""A small panel with all that a page of reliability can tell: experts, judges with samples and styles, a crowd, opposites, a constant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from empathy_eval.base.hashing import derived_random
from empathy_eval.design.rubrics import Scale
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.agreement import RatingTable, agree
from empathy_eval.raters.agreement.panel import Framework, JudgeRater, Panel
from empathy_eval.raters.agreement.reliability import Reliability, reliability

ITEMS = 40
EXPERTS = ("expert-1", "expert-2", "expert-3")
CROWD = tuple(f"crowd-{number}" for number in range(1, 9))
JUDGES = (
    JudgeRater("m1-plain", "m1-plain", "m1", "plain", 1),
    JudgeRater("m1-plain#2", "m1-plain", "m1", "plain", 2),
    JudgeRater("m1-examples", "m1-examples", "m1", "examples", 1),
)
PANEL = Panel(EXPERTS, JUDGES, CROWD)
FIVE, LISTENING, WARMTH = Scale(1, 5, True), ("validating", "dismissing", "elaborating"), ("warmth", "safety")
FRAMEWORKS = (
    Framework(
        "listening", "Listening", LISTENING, dict.fromkeys(LISTENING, FIVE),
        {"validating": "high", "dismissing": "low", "elaborating": "high"}, (("validating", "dismissing"),),
    ),
    Framework("manner", "Manner", WARMTH),
)  # fmt: skip
# How far a rater strays from the truth, and by how much it is above it.
HANDS = dict.fromkeys(EXPERTS, (0.5, 0.0)) | dict.fromkeys(CROWD, (1.3, 0.6))
HANDS |= {"m1-plain": (0.6, 0.1), "m1-plain#2": (0.7, 0.1), "m1-examples": (0.9, 0.7)}
# Experts stray twice as far here: their benchmark is lower.
HARD = "elaborating"


def rows() -> Iterator[tuple[str, str, float, str]]:
    """The ratings (item, rater, rating, criterion): on safety everybody gives a 5, and of the crowd each rates half of the items."""
    rng = derived_random(0, "panel")
    for number in range(ITEMS):
        truth = {name: rng.gauss(3, 1.2) for name in (*LISTENING, "warmth")}
        truth |= {"dismissing": 6 - truth["validating"], "safety": 5}
        for rater, (stray, above) in HANDS.items():
            if rater in CROWD and (number + CROWD.index(rater)) % 2:
                continue
            for criterion in (*LISTENING, *WARMTH):
                apart = rng.gauss(above, stray * (2 if criterion == HARD and rater in EXPERTS else 1))
                value = truth[criterion] + (0 if criterion == "safety" else apart)
                yield f"item-{number:02}", rater, float(min(max(round(value), 1), 5)), criterion


def figures(panel: Panel = PANEL, called: Mapping[str, str] | None = None, resamples: int = 100) -> Reliability:
    """All figures of a panel of these raters; ``called`` gives items, raters, criteria, frameworks, models and styles other names."""
    names = called or {}

    def name(one: str) -> str:
        return names.get(one, one)

    raters = {*panel.experts, *panel.crowd, *(one.rater for one in panel.judges)}
    table = RatingTable.of((name(item), name(rater), value, name(criterion)) for item, rater, value, criterion in rows() if rater in raters)
    judges = tuple(
        JudgeRater(name(one.rater), name(one.judge), one.model and name(one.model), one.style and name(one.style), one.sample)
        for one in panel.judges
    )
    found = Panel(tuple(map(name, panel.experts)), judges, tuple(map(name, panel.crowd)), panel.crowd_as)
    frameworks = tuple(
        Framework(
            one.name, name(one.title), tuple(map(name, one.criteria)), {name(key): scale for key, scale in one.scales.items()},
            {name(key): better for key, better in one.better.items()}, tuple((name(x), name(y)) for x, y in one.opposites),
        )
        for one in FRAMEWORKS
    )  # fmt: skip
    agreement = agree(table.without(found.crowd), [one.rater for one in judges], resamples, 0)
    return reliability(table, found, frameworks, agreement, ResamplingSettings(resamples, 0, 0))
