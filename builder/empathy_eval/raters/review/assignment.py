"""Who sees what: every cell is rated by the same number of raters, and nobody sees two cells of one turn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random
from empathy_eval.raters.review.sample import Cell, Design, Unit


def raters_of(count: int) -> list[str]:
    """``rater-01`` and so on: pseudonyms."""
    width = max(2, len(str(count)))
    return [f"rater-{number:0{width}d}" for number in range(1, count + 1)]


def assign(units: Sequence[Unit], design: Design) -> dict[str, list[tuple[Unit, Cell]]]:
    """What each rater sees, in no order that matters.

    Each cell of a unit gets ``per_item`` raters, all different ones. Loads of any two raters differ by at most one; each rater's cells are
    balanced, so that about half of them are apathetic.

    Raises:
        InputError: if there are too few raters for the unit with the most cells.
    """
    needed = max((len(unit.cells) * design.per_item for unit in units), default=0)
    if design.raters < needed:
        texts = needed // design.per_item
        what = f"{design.raters} are too few: a turn has {texts} texts, each is rated by {design.per_item}, and nobody sees two"
        raise input_error("--raters", what, f"give --raters {needed} or more, or a smaller --per-item")
    seen: dict[str, list[tuple[Unit, Cell]]] = {rater: [] for rater in raters_of(design.raters)}
    cells_of = {rater: Counter[str]() for rater in seen}
    # Turns before dialogues, each in a seeded order: neighbours in the release must not meet the same raters.
    for unit in sorted(units, key=lambda unit: (unit.kind == "dialogue", derived_random(design.seed, "assign", unit.name).random())):
        rng = derived_random(design.seed, "raters", unit.name)
        free = sorted(seen, key=lambda rater: (len(seen[rater]), rng.random()))[: len(unit.cells) * design.per_item]
        for rater, cell in _dealt(free, unit.cells, cells_of, design.per_item, rng):
            seen[rater].append((unit, cell))
            cells_of[rater][cell.variant] += 1
    return seen


def _dealt(
    free: list[str], cells: Sequence[Cell], cells_of: dict[str, Counter[str]], per_item: int, rng: random.Random
) -> list[tuple[str, Cell]]:
    """Each cell with those of the free raters who had the fewest of it, counted against the cells still to be dealt."""
    left, dealt = rng.sample(cells, len(cells)), []
    while left:
        cell = left.pop()
        surplus = {
            rater: cells_of[rater][cell.variant] - sum(cells_of[rater][other.variant] for other in left) / max(1, len(left))
            for rater in free
        }
        chosen = sorted(free, key=lambda rater: (surplus[rater], rng.random()))[:per_item]
        dealt += [(rater, cell) for rater in chosen]
        free = [rater for rater in free if rater not in chosen]
    return dealt
