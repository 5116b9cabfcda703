"""Who sees what: every cell is rated by the same number of raters, and nobody sees two texts of one turn, or a reply and its dialogue."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random
from empathy_eval.raters.review.sample import Cell, Design, Unit

Seen = dict[str, list[tuple[Unit, Cell]]]


def raters_of(count: int) -> list[str]:
    """``rater-01`` and so on: pseudonyms."""
    width = max(2, len(str(count)))
    return [f"rater-{number:0{width}d}" for number in range(1, count + 1)]


def assign(units: Sequence[Unit], design: Design) -> Seen:
    """What each rater sees, in no order that matters.

    Each cell of a unit gets ``per_item`` raters, all different ones. Who reviews a dialogue as a whole, and so sees the references of its
    turns, rates no reply of it. Loads are as even as that allows: those of any two raters differ by at most one wherever they can. Each
    rater's cells are balanced, so that about half of them are apathetic.

    Raises:
        InputError: if there are too few raters for what belongs together.
    """
    _enough(units, design)
    shares = _shared(units, design)
    seen: Seen = {rater: [] for rater in shares.units}
    cells_of = {rater: Counter[str]() for rater in seen}
    for unit in sorted(units, key=lambda unit: derived_random(design.seed, "deal", unit.name).random()):
        free = [rater for rater, ones in shares.units.items() if unit.name in ones]
        rng = derived_random(design.seed, "cells", unit.name)
        for rater, cell in _dealt(free, unit.cells, cells_of, design.per_item, rng):
            seen[rater].append((unit, cell))
            cells_of[rater][cell.variant] += 1
    return seen


def _enough(units: Iterable[Unit], design: Design) -> None:
    """Counts the raters of what nobody may see together: the texts of a turn, its dialogue, the contexts of a crossed item of that."""
    together: dict[str, dict[str, int]] = defaultdict(dict)
    for unit in units:
        kinds = together[unit.dialogue]
        kinds[unit.kind] = max(kinds.get(unit.kind, 0), len(unit.cells))
    most = max(together.values(), key=lambda kinds: sum(kinds.values()), default={})
    needed = sum(most.values()) * design.per_item
    if design.raters >= needed:
        return
    if design.crossed:
        what = "a dialogue has the two contexts of a crossed item, and what else is judged of it"
        fix = f"give --raters {needed} or more, or ask for crossed items in a review of their own (--pairs 0 --dialogues 0)"
        raise input_error("--raters", f"{design.raters} are too few: {what}, each by {design.per_item}, and nobody sees two of these", fix)
    if design.replies and "variant" in most:
        what = f"a dialogue has a turn of {most['variant']} texts"
        what += f" and one of {most['reply']} replies" if "reply" in most else ""
        what += ", and is reviewed as a whole" if "dialogue" in most else ""
        fix = f"give --raters {needed} or more, a smaller --per-item, or rate replies and texts of the release in reviews of their own"
        raise input_error("--raters", f"{design.raters} are too few: {what}, each by {design.per_item}, and nobody sees two of these", fix)
    texts = max(len(unit.cells) for unit in units)
    each = f"each is rated by {design.per_item}, and nobody sees two"
    if design.raters < texts * design.per_item:
        what, fix = f"a turn has {texts} texts, {each}", f"give --raters {needed} or more, or a smaller --per-item"
    else:
        what = f"a turn has {texts} texts and its dialogue is reviewed as a whole, {each} of these"
        fix = f"give --raters {needed} or more, a smaller --per-item, or --dialogues 0 and the dialogues in a review of their own"
    raise input_error("--raters", f"{design.raters} are too few: {what}", fix)


class _Shares:
    """Which units each rater sees."""

    def __init__(self, raters: Iterable[str]) -> None:
        self.units: dict[str, dict[str, Unit]] = {rater: {} for rater in raters}
        self._kinds = defaultdict[tuple[str, str], Counter[str]](Counter)

    def may_see(self, rater: str, unit: Unit) -> bool:
        """Not twice; and not a dialogue, replies of it, or a crossed item of it beside one another."""
        kinds = self._kinds[rater, unit.dialogue]
        return unit.name not in self.units[rater] and not any(count for kind, count in kinds.items() if kind != unit.kind)

    def give(self, rater: str, unit: Unit) -> None:
        self.units[rater][unit.name] = unit
        self._kinds[rater, unit.dialogue][unit.kind] += 1

    def take(self, rater: str, unit: Unit) -> None:
        del self.units[rater][unit.name]
        self._kinds[rater, unit.dialogue][unit.kind] -= 1

    def even_out(self) -> None:
        """Moves units from raters with more to raters with less, over others if need be, for as long as that makes loads more even."""
        while path := next(filter(None, map(self._way_down, sorted(self.units, key=lambda rater: -len(self.units[rater])))), None):
            for giver, unit, taker in path:
                self.take(giver, unit)
                self.give(taker, unit)

    def _way_down(self, start: str) -> list[tuple[str, Unit, str]]:
        """The shortest way on which units can be handed on, one by each, from a rater to one who has at least two fewer; else nothing."""
        ways: dict[str, list[tuple[str, Unit, str]]] = {start: []}
        queue = deque([start])
        while queue:
            giver = queue.popleft()
            if len(self.units[giver]) <= len(self.units[start]) - 2:
                return ways[giver]
            for taker in self.units:
                if taker not in ways and (unit := next((one for one in self.units[giver].values() if self.may_see(taker, one)), None)):
                    ways[taker] = [*ways[giver], (giver, unit, taker)]
                    queue.append(taker)
        return []


def _shared(units: Sequence[Unit], design: Design) -> _Shares:
    """Every unit with its raters: those with the least to do among those who may see it, then evened out.

    Units come in a seeded order, as neighbours in the release must not meet the same raters; but whole dialogues first, those with many
    replies before others, then crossed items, and last the replies of dialogues that nobody reviews, which go to anybody.
    """
    replies = Counter[str]()
    for unit in units:
        replies[unit.dialogue] += 0 if unit.kind == "dialogue" else len(unit.cells)
    reviewed = {unit.dialogue for unit in units if unit.kind == "dialogue"}

    def turn(unit: Unit) -> tuple[int, int, float]:
        lot = derived_random(design.seed, "assign", unit.name).random()
        return (
            ("dialogue", "crossed", "variant", "reply").index(unit.kind),
            -replies[unit.dialogue] if unit.dialogue in reviewed else 0,
            lot,
        )

    shares, barred = _Shares(raters_of(design.raters)), Counter[str]()
    for unit in sorted(units, key=turn):
        rng = derived_random(design.seed, "raters", unit.name)
        lots = {rater: rng.random() for rater in shares.units}
        free = [rater for rater in shares.units if shares.may_see(rater, unit)]
        # Who reviews a dialogue is barred from its replies: of these, too, all raters are to miss about as many.
        free.sort(key=lambda rater: (len(shares.units[rater]), barred[rater] if unit.kind == "dialogue" else 0, lots[rater]))
        for rater in free[: len(unit.cells) * design.per_item]:
            shares.give(rater, unit)
            if unit.kind == "dialogue":
                barred[rater] += replies[unit.dialogue]
    shares.even_out()
    return shares


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
