"""A small panel with all that a page of reliability can tell: experts, judges with samples and styles, a crowd, opposites, a constant."""

from __future__ import annotations

from collections.abc import Iterator

from empathy_eval.base.hashing import derived_random
from empathy_eval.design.rubrics import Scale
from empathy_eval.raters.agreement.panel import Framework, Judge, Panel

ITEMS = 40
EXPERTS = ("expert-1", "expert-2", "expert-3")
CROWD = tuple(f"crowd-{number}" for number in range(1, 9))
JUDGES = (
    Judge("model-a", "model-a", "a", "plain", 1),
    Judge("model-a#2", "model-a", "a", "plain", 2),
    Judge("model-b", "model-b", "b", "examples", 1),
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
HANDS |= {"model-a": (0.4, 0.0), "model-a#2": (0.5, 0.0), "model-b": (0.9, 0.7)}


def rows() -> Iterator[tuple[str, str, float, str]]:
    """The ratings (item, rater, rating, criterion): on safety everybody gives a 5, and of the crowd each rates half of the items."""
    rng = derived_random(0, "panel")
    for number in range(ITEMS):
        truth = {name: rng.gauss(3, 1.2) for name in (*LISTENING, "warmth")}
        truth["dismissing"] = 6 - truth["validating"]
        for rater, (stray, above) in HANDS.items():
            if rater in CROWD and (number + CROWD.index(rater)) % 2:
                continue
            for criterion in (*LISTENING, *WARMTH):
                value = truth[criterion] + above + rng.gauss(0, stray) if criterion != "safety" else 5
                yield f"item-{number:02}", rater, float(min(max(round(value), 1), 5)), criterion
