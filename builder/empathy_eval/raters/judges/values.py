"""What judges said as numbers: by criterion, text and sample."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from empathy_eval.design.rubrics import REWARD
from empathy_eval.raters.judges.annotations import Comparison
from empathy_eval.raters.judges.folder import Folder

# A pair and one of its variants; a whole dialogue has an empty one, two texts that are compared have both, "apathetic - reference".
Text = tuple[str, str]
# Means are equal where they differ by no more than the order of adding up.
PLACES = 9
HUNDREDTHS = 100
# The numbers of a reward model have no scale: they stay as they are, and only their order is read.
BARE: dict[str, Any] = {"name": REWARD, "scale": None, "better": None}


@dataclass(frozen=True)
class Scored:
    """What a judge gave by one criterion, by text and sample, on a scale from ``low`` to ``high``; ``better`` says which end is.

    A preference is on a scale from 0 to 1: the share of both orders that the first by name won. A reward may be any number.
    """

    name: str
    low: float
    high: float
    better: str
    given: Mapping[Text, Mapping[int, float]]

    @cached_property
    def means(self) -> dict[Text, float]:
        """The mean over the samples of each text."""
        return {text: round(math.fsum(some.values()) / len(some), PLACES) for text, some in self.given.items()}

    @cached_property
    def merits(self) -> dict[Text, float]:
        """The same on a scale from 0 (worst) to 1 (best)."""
        shares = {text: (value - self.low) / (self.high - self.low) for text, value in self.means.items()}
        return {text: round(1 - share if self.better == "low" else share, PLACES) for text, share in shares.items()}

    def hundredth(self, value: float) -> int:
        """The hundredth of the scale that is nearest to a value: in such steps alpha is reckoned."""
        return round(round((value - self.low) / (self.high - self.low) * HUNDREDTHS, PLACES))


def scored_of(folder: Folder) -> tuple[Scored, ...]:
    """The numbers of annotations, criterion by criterion in the order of the rubric; none where strategies are named."""
    rubric = folder.header["rubric"]
    criteria = [BARE] if rubric["kind"] == "reward" else rubric["criteria"]
    given: dict[str, dict[Text, dict[int, float]]] = {one["name"]: {} for one in criteria}
    for case in folder.cases:
        name = case.pair_id or case.dialogue_id
        for rating in case.ratings:
            given[rating.criterion].setdefault((name, rating.variant or ""), {})[rating.sample] = rating.value
        for one in case.comparisons:
            compared = given[rubric["criteria"][0]["name"]].setdefault((name, both(one.variant_1, one.variant_2)), {})
            compared[one.sample] = share_of_first(one)
    return tuple(_scored(one, given[one["name"]]) for one in criteria)


def _scored(criterion: dict[str, Any], given: Mapping[Text, Mapping[int, float]]) -> Scored:
    scale = criterion["scale"] or {"low": 0.0, "high": 1.0}
    return Scored(criterion["name"], scale["low"], scale["high"], criterion["better"] or "high", given)


def both(one: str, other: str) -> str:
    """How two variants that are compared are called, whichever comes first."""
    return " - ".join(sorted((one, other)))


def share_of_first(one: Comparison) -> float:
    """The share of both orders that the first by name won: one half where it was the place that won."""
    return ((one.winner_12 == one.variant_1) + (one.winner_21 == one.variant_1)) / 2


def dialogue_of(name: str) -> str:
    """The dialogue of a pair, and of a dialogue itself."""
    return name.partition("-t")[0]
