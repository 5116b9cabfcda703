"""The contrasts of the design: the two variants of a pair, and the effects of the 2 x 2 of closeness and stance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PAIR_VARIANTS = ("apathetic", "empathetic")
CELLS = ("near_empathetic", "apathetic", "empathetic", "far_apathetic")
STANCE = {"near_empathetic": "apathetic", "apathetic": "near_empathetic", "empathetic": "far_apathetic", "far_apathetic": "empathetic"}
CLOSENESS = {"near_empathetic": "empathetic", "empathetic": "near_empathetic", "apathetic": "far_apathetic", "far_apathetic": "apathetic"}


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of variants' scores, and the exchange of variants that turns its sign.

    If the variants that are exchanged did not differ, the exchange within any dialogue would change nothing but chance: that is
    what a p-value tests. ``forced`` says that the checks force its sign on a metric that reads the reference.
    """

    name: str
    weights: Mapping[str, float]
    mirror: Mapping[str, str]
    forced: bool = False

    @property
    def sides(self) -> tuple[str, str] | None:
        """(higher, lower) where two variants are compared, None for an effect of four."""
        if len(self.weights) != 2:
            return None
        (one,), (other,) = ([name for name, weight in self.weights.items() if weight == sign] for sign in (1, -1))
        return one, other


def _between(name: str, one: str, other: str, *, forced: bool = False) -> Contrast:
    return Contrast(name, {one: 1, other: -1}, {one: other, other: one}, forced)


PAIRS = (_between("empathetic - apathetic", "empathetic", "apathetic", forced=True),)
TWO_BY_TWO = (
    Contrast("stance", {"near_empathetic": 0.5, "apathetic": -0.5, "empathetic": 0.5, "far_apathetic": -0.5}, STANCE),
    _between("stance, near", "near_empathetic", "apathetic"),
    _between("stance, far", "empathetic", "far_apathetic"),
    Contrast("closeness", {"near_empathetic": 0.5, "apathetic": 0.5, "empathetic": -0.5, "far_apathetic": -0.5}, CLOSENESS, forced=True),
    Contrast("interaction", {"near_empathetic": 1, "apathetic": -1, "empathetic": -1, "far_apathetic": 1}, CLOSENESS),
)


# The reasons of this family that a text can be refused for: what they refuse is what closeness is made of.
REASONS = frozenset({"edit_ratio_zero", "edit_ratio_high", "overlap_high"})
