"""Who sees what: every cell is rated by the same number of raters, and nobody sees two items of one dialogue."""

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

    Each cell of a unit gets ``per_item`` raters, all different ones. A rater sees one item of a dialogue at most: the context of a later
    turn, and the whole dialogue, show the reference of an earlier turn. Loads are as even as that allows: those of any two raters differ
    by at most one wherever they can. Each rater's cells are balanced, so that about half of them are apathetic.

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
    """Counts the raters of what nobody may see together: the texts of turns, the contexts of a crossed item, and the whole dialogue."""
    together: dict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        together[unit.dialogue].append(unit)
    most = max(together.values(), key=lambda some: sum(len(unit.cells) for unit in some), default=list[Unit]())
    needed = sum(len(unit.cells) for unit in most) * design.per_item
    if design.raters < needed:
        what, fix = _together(most)
        of_turns = any(unit.kind in ("variant", "reply") and len(unit.cells) > 1 for unit in most)
        fewer = ", --texts-per-turn 1" if of_turns and not design.rejected else ""
        fix = f"give --raters {needed} or more, a smaller --per-item{fewer}, or {fix}"
        raise input_error(
            "--raters", f"{design.raters} are too few: {what}, each rated {design.per_item} times, and no rater sees two of these", fix
        )


def _together(units: Sequence[Unit]) -> tuple[str, str]:
    """What is judged of one dialogue, in words, and which of it could be left out."""
    kinds = {unit.kind: unit for unit in units}
    turns = [unit for unit in units if unit.kind in ("variant", "reply")]
    if "crossed" in kinds:
        what = "a dialogue has the two contexts of a crossed item, and other things to judge"
        return what, "ask for crossed items in a review of their own (--pairs 0 --dialogues 0)"
    parts = [f"a turn of {len(unit.cells)} {'replies' if unit.kind == 'reply' else 'texts'}" for unit in turns]
    what = f"a dialogue has {' and '.join(parts)}" + (", and is reviewed as a whole" if "dialogue" in kinds else "")
    if {"variant", "reply"} <= kinds.keys():
        return what, "rate replies and texts of the release in reviews of their own"
    return what, "--dialogues 0 and the dialogues in a review of their own" if "dialogue" in kinds else "fewer texts"


class _Shares:
    """Which units each rater sees."""

    def __init__(self, raters: Iterable[str]) -> None:
        self.units: dict[str, dict[str, Unit]] = {rater: {} for rater in raters}
        self._dialogues: dict[str, set[str]] = {rater: set() for rater in self.units}

    def may_see(self, rater: str, unit: Unit) -> bool:
        """Only one item of a dialogue: another one would show the reference, the dialogue or the context of this one."""
        return unit.dialogue not in self._dialogues[rater]

    def give(self, rater: str, unit: Unit) -> None:
        self.units[rater][unit.name] = unit
        self._dialogues[rater].add(unit.dialogue)

    def take(self, rater: str, unit: Unit) -> None:
        del self.units[rater][unit.name]
        self._dialogues[rater].remove(unit.dialogue)

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
