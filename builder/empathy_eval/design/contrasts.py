"""Contrasts of the design: the two variants of a pair, and the effects of the 2 x 2 of closeness and stance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# The stance of a reply. The two variants of a pair are called by theirs alone.
APATHETIC, EMPATHETIC = PAIR_VARIANTS = ("apathetic", "empathetic")
REFERENCE = "reference"
# The other two cells: each as near as the one of a pair, and of the other stance.
CONTROLS = ("near_empathetic", "far_apathetic")
# Near: an edit of the reference. Far: other words.
NEAR, FAR = ("near_empathetic", "apathetic"), ("empathetic", "far_apathetic")
CELLS = (*NEAR, *FAR)
STANCE_OF = {"near_empathetic": EMPATHETIC, "apathetic": APATHETIC, "empathetic": EMPATHETIC, "far_apathetic": APATHETIC}
# Names of contrasts.
RAW, STANCE, STANCE_NEAR, STANCE_FAR = "empathetic - apathetic", "stance", "stance, near", "stance, far"
CLOSENESS, INTERACTION = "closeness", "interaction"


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of variants' scores, and the permutation of variants that changes its sign.

    Under the null hypothesis that these variants do not differ, permuting them within a dialogue changes only chance: the p-value tests
    this. ``forced`` means that the checks force its sign on metrics that read the reference. ``duels`` are the pairwise comparisons
    (empathetic, apathetic) whose mean is its accuracy; those of stance compare within near and within far. ``sides`` are
    (empathetic, apathetic) if two variants are compared, None for an effect of four.
    """

    name: str
    weights: Mapping[str, float]
    mirror: Mapping[str, str]
    forced: bool = False
    duels: tuple[tuple[str, str], ...] = ()
    sides: tuple[str, str] | None = None


def _between(name: str, first: str, other: str, *, forced: bool = False) -> Contrast:
    return Contrast(name, {first: 1, other: -1}, {first: other, other: first}, forced, ((first, other),), (first, other))


# What the other cell is: of the same closeness and the other stance, and of the same stance and the other closeness.
_OTHER_STANCE = {cell: other for side in (NEAR, FAR) for cell, other in (side, side[::-1])}
_OTHER_CLOSENESS = {cell: other for cell in CELLS for other in CELLS if cell != other and STANCE_OF[cell] == STANCE_OF[other]}
_STANCE = {name: 1 if STANCE_OF[name] == EMPATHETIC else -1 for name in CELLS}
_CLOSENESS = {name: 1 if name in NEAR else -1 for name in CELLS}
PAIRS = (_between(RAW, EMPATHETIC, APATHETIC, forced=True),)
TWO_BY_TWO = (
    Contrast(STANCE, {name: sign / 2 for name, sign in _STANCE.items()}, _OTHER_STANCE, duels=(NEAR, FAR)),
    _between(STANCE_NEAR, *NEAR),
    _between(STANCE_FAR, *FAR),
    Contrast(CLOSENESS, {name: sign / 2 for name, sign in _CLOSENESS.items()}, _OTHER_CLOSENESS, forced=True),
    Contrast(INTERACTION, {name: _STANCE[name] * _CLOSENESS[name] for name in CELLS}, _OTHER_CLOSENESS),
)
# The comparisons of stance one by one, near and far ones together: a kind text against a cold one, equally close.
SIDES = _between(STANCE, EMPATHETIC, APATHETIC)
# The reasons of this family that a text can be refused for: what they refuse is what closeness is made of.
REASONS = frozenset({"edit_ratio_zero", "edit_ratio_high", "overlap_high"})
