"""The contrasts of the design: the two variants of a pair, and the effects of the 2 x 2 of closeness and stance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# The stance of a reply. The two variants of a pair are called by theirs alone.
APATHETIC, EMPATHETIC = PAIR_VARIANTS = ("apathetic", "empathetic")
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
    """A weighted sum of variants' scores, and the exchange of variants that turns its sign.

    If the variants that are exchanged did not differ, the exchange within any dialogue would change nothing but chance: that is
    what a p-value tests. ``forced`` says that the checks force its sign on a metric that reads the reference. ``duels`` are the
    comparisons (kind, cold) whose mean is its accuracy: of stance they are those within near and within far, so at equal closeness.
    """

    name: str
    weights: Mapping[str, float]
    mirror: Mapping[str, str]
    forced: bool = False
    duels: tuple[tuple[str, str], ...] = ()

    @property
    def sides(self) -> tuple[str, str] | None:
        """(kind, cold) where two variants are compared, None for an effect of four."""
        return self.duels[0] if len(self.weights) == 2 else None


def _between(name: str, one: str, other: str, *, forced: bool = False) -> Contrast:
    return Contrast(name, {one: 1, other: -1}, {one: other, other: one}, forced, ((one, other),))


# What the other cell is: of the same closeness and the other stance, and of the same stance and the other closeness.
_OTHER_STANCE = {one: other for side in (NEAR, FAR) for one, other in (side, side[::-1])}
_OTHER_CLOSENESS = {one: other for one in CELLS for other in CELLS if one != other and STANCE_OF[one] == STANCE_OF[other]}
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
