"""Assignment of texts to raters: every cell gets equally many raters, and nobody sees two items of one dialogue."""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

from empathy_eval.base.errors import Problem, input_error, nearest
from empathy_eval.base.hashing import derived_random, digest
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.raters.review.replies import SystemReplies
from empathy_eval.raters.review.sample import DESIGNS, Cell, ReviewDesign, Unit

Assignment = dict[str, list[tuple[Unit, Cell]]]
# The unit that a rater sees, by rater and dialogue.
UnitsByRater = dict[str, dict[str, Unit]]


def rater_names(count: int) -> list[str]:
    """Pseudonyms: ``rater-01`` and so on."""
    width = max(2, len(str(count)))
    return [f"rater-{number:0{width}d}" for number in range(1, count + 1)]


def assign(units: Sequence[Unit], design: ReviewDesign) -> Assignment:
    """Assign to each rater the units and cells to rate, in arbitrary order.

    Each cell of a unit gets ``per_item`` different raters. A rater sees one item of a dialogue at most: the context of a later turn, and
    the whole dialogue, show the reference of an earlier turn. Loads are as even as that allows: they differ by at most one if possible.
    Each rater's cells are balanced, so that about half of them are apathetic.

    Raises:
        InputError: if there are too few raters for the items of a dialogue.
    """
    _require_enough_raters(units, design)
    shares = _raters_by_unit(units, design)
    assigned: Assignment = {rater: [] for rater in shares}
    cells_of = {rater: Counter[str]() for rater in assigned}
    for unit in sorted(units, key=lambda unit: derived_random(design.seed, "deal", unit.name).random()):
        free = [rater for rater, units_of in shares.items() if units_of.get(unit.dialogue) == unit]
        rng = derived_random(design.seed, "cells", unit.name)
        for rater, cell in _deal_cells(free, unit.cells, cells_of, design.per_item, rng):
            assigned[rater].append((unit, cell))
            cells_of[rater][cell.variant] += 1
    return assigned


def _require_enough_raters(units: Iterable[Unit], design: ReviewDesign) -> None:
    """Refuse designs with too few raters for the items of a dialogue: texts of turns, contexts of a crossed item, the dialogue."""
    together: dict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        together[unit.dialogue].append(unit)
    most = max(together.values(), key=lambda group: sum(len(unit.cells) for unit in group), default=list[Unit]())
    needed = sum(len(unit.cells) for unit in most) * design.per_item
    if design.raters < needed:
        what, fix = _conflict(most)
        of_turns = any(unit.kind in ("variant", "reply") and len(unit.cells) > 1 for unit in most)
        fewer = ", --texts-per-turn 1" if of_turns and not design.rejected else ""
        fix = f"give --raters {needed} or more, a smaller --per-item{fewer}, or {fix}"
        few = f"{design.raters} are too few: {what}, each rated {design.per_item} times, and no rater sees two of these"
        raise input_error("--raters", few, fix)


def _conflict(units: Sequence[Unit]) -> tuple[str, str]:
    """What is judged of one dialogue, in words, and what could be left out."""
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


def _even_out(shares: UnitsByRater) -> None:
    """Move units from raters with more to raters with fewer, through others if need be, as long as that evens out the loads."""
    path: Sequence[tuple[str, Unit, str]] | None = ()
    while path is not None:
        for giver, unit, taker in path:
            shares[taker][unit.dialogue] = shares[giver].pop(unit.dialogue)
        paths = (_handover_path(shares, rater) for rater in sorted(shares, key=lambda rater: -len(shares[rater])))
        path = next(filter(None, paths), None)


def _handover_path(shares: UnitsByRater, start: str) -> list[tuple[str, Unit, str]]:
    """Shortest path of handovers, one unit each, from a rater to one with at least two units fewer; else empty (breadth-first search)."""
    paths: dict[str, list[tuple[str, Unit, str]]] = {start: []}
    queue = deque([start])
    while queue:
        giver = queue.popleft()
        if len(shares[giver]) <= len(shares[start]) - 2:
            return paths[giver]
        for taker, units_of in shares.items():
            if taker not in paths and (unit := next((unit for unit in shares[giver].values() if unit.dialogue not in units_of), None)):
                paths[taker] = [*paths[giver], (giver, unit, taker)]
                queue.append(taker)
    return []


def _raters_by_unit(units: Sequence[Unit], design: ReviewDesign) -> UnitsByRater:
    """Assign raters to every unit: those with the smallest load among those who may see it, then evened out.

    Units come in a seeded order, so that neighbours in the release get different raters; but whole dialogues first, those with many replies
    before others, then crossed items, and last the replies of dialogues that nobody reviews, which anybody may see.
    """
    replies = Counter[str]()
    for unit in units:
        replies[unit.dialogue] += 0 if unit.kind == "dialogue" else len(unit.cells)
    reviewed = {unit.dialogue for unit in units if unit.kind == "dialogue"}

    def turn(unit: Unit) -> tuple[int, int, float]:
        kind = ("dialogue", "crossed", "variant", "reply").index(unit.kind)
        lot = derived_random(design.seed, "assign", unit.name).random()
        return kind, -replies[unit.dialogue] if unit.dialogue in reviewed else 0, lot

    shares: UnitsByRater = {rater: {} for rater in rater_names(design.raters)}
    barred = Counter[str]()
    for unit in sorted(units, key=turn):
        rng = derived_random(design.seed, "raters", unit.name)
        lots = {rater: rng.random() for rater in shares}
        # One item per dialogue: another would reveal the reference, the dialogue or the context of this one.
        free = [rater for rater, units_of in shares.items() if unit.dialogue not in units_of]
        # A reviewer of a dialogue may not rate its replies; all raters should miss about equally many.
        free.sort(key=lambda rater: (len(shares[rater]), barred[rater] if unit.kind == "dialogue" else 0, lots[rater]))
        for rater in free[: len(unit.cells) * design.per_item]:
            shares[rater][unit.dialogue] = unit
            if unit.kind == "dialogue":
                barred[rater] += replies[unit.dialogue]
    _even_out(shares)
    return shares


def _deal_cells(
    free: list[str], cells: Sequence[Cell], cells_of: dict[str, Counter[str]], per_item: int, rng: random.Random
) -> list[tuple[str, Cell]]:
    """Give each cell to those of the free raters who had the fewest of it, relative to the cells still to be dealt."""
    left, dealt = rng.sample(cells, len(cells)), []
    while left:
        cell = left.pop()
        shared = {rater: sum(cells_of[rater][other.variant] for other in left) / max(1, len(left)) for rater in free}
        surplus = {rater: cells_of[rater][cell.variant] - shared[rater] for rater in free}
        chosen = sorted(free, key=lambda rater: (surplus[rater], rng.random()))[:per_item]
        dealt += [(rater, cell) for rater in chosen]
        free = [rater for rater in free if rater not in chosen]
    return dealt


WITHIN_ONLY = ("dialogues", "rejected", "planted", "crossed")


def groups_of(design: ReviewDesign, replies: SystemReplies | None) -> tuple[str, ...]:
    """The groups that raters are divided into: the systems that replied, all four cells, or the two variants."""
    return replies.systems if replies else CELLS if design.cells else PAIR_VARIANTS


def design_problems(design: ReviewDesign, replies: SystemReplies | None) -> Iterator[Problem]:
    """Problems of a design."""
    if design.design not in DESIGNS:
        yield Problem("--design", f'"{design.design}" is not known', f"use {' or '.join(DESIGNS)}{nearest(design.design, DESIGNS)}")
    if design.texts_per_turn and (design.between or design.rejected):
        why = "each rater sees only one group" if design.between else "each rejected text is shown beside the accepted one"
        yield Problem("--texts-per-turn", f'"{design.texts_per_turn}" is not possible: {why}', "leave it out")
    if not design.between:
        return
    for name in WITHIN_ONLY:
        if getattr(design, name):
            what = f'"{getattr(design, name)}" is not possible with --design between, where each rater sees only one group'
            yield Problem(f"--{name}", what, f"leave --{name} out, or ask for it in a review of its own")
    if design.cells and (design.pairs or replies):
        what = "rates the four cells of the release" + (", not replies of systems" if replies else ", and sets the number of contexts")
        yield Problem("--cells", what, "leave it out" if replies else "leave --pairs out, or --cells")
    if design.per_rater < 1:
        yield Problem("--per-rater", f'"{design.per_rater}" is too few', "give 1 or more")
    groups = groups_of(design, replies)
    if over := design.raters % len(groups):
        fits = [count for count in (design.raters - over, design.raters - over + len(groups)) if count]
        what = f"{design.raters} cannot be divided equally among {len(groups)} groups: {', '.join(groups)[:200]}"
        yield Problem("--raters", what, f"give --raters {' or '.join(map(str, fits))}")


def assign_blocks(units: Sequence[Unit], design: ReviewDesign, seal: str) -> tuple[Assignment, dict[str, str]]:
    """Assign units to raters in blocks, and name each rater's block by its contexts.

    Raters of a block are consecutive, and their groups are drawn at random, so sending folders in order keeps the groups balanced at any
    time. The draw depends on the ``seal`` of the release and on the replies, so that a rater's number reveals nothing.
    """
    cells = range(len(units[0].cells))
    raters, assigned, block_of = iter(rater_names(design.raters)), Assignment(), dict[str, str]()
    for number, block in enumerate(_blocks(units, design.raters // len(cells), design)):
        for cell in derived_random(design.seed, "groups", seal, design.replies, number).sample(cells, len(cells)):
            rater = next(raters)
            assigned[rater] = [(unit, unit.cells[cell]) for unit in block]
            block_of[rater] = code_of(sorted(unit.name for unit in block), 8)
    return assigned, block_of


def code_of(value: object, signs: int) -> str:
    """The first characters of the hash of a value, beginning with a letter: a spreadsheet would take ``12345678e012`` for a number."""
    code = digest(value)[3 : 3 + signs]
    return "abcdef"[int(code[0], 16) % 6] + code[1:]


def _blocks(units: Sequence[Unit], count: int, design: ReviewDesign) -> Iterator[list[Unit]]:
    """Blocks of contexts, one per dialogue, filled first from the dialogues with the most blocks still to come."""
    left = _blocks_per_context(units, count, design)
    by_dialogue: dict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        by_dialogue[unit.dialogue].append(unit)
    for number in range(count):
        rng = derived_random(design.seed, "block", number)
        totals = [(sum(left[unit.name] for unit in units_of), rng.random(), name) for name, units_of in by_dialogue.items()]
        chosen = [by_dialogue[name] for _, _, name in heapq.nlargest(design.per_rater, totals)]
        block = [max(contexts, key=lambda unit: (left[unit.name], rng.random())) for contexts in chosen]
        left.subtract(unit.name for unit in block)
        yield block


def _blocks_per_context(units: Sequence[Unit], count: int, design: ReviewDesign) -> Counter[str]:
    """Number of blocks of each context: as even as possible, with each dialogue in a block at most once."""
    shares, of_dialogue = Counter[str](), Counter[str]()
    dialogue_of = {unit.name: unit.dialogue for unit in units}
    queue = [(0, derived_random(design.seed, "blocks", name).random(), name) for name in dialogue_of]
    heapq.heapify(queue)
    while queue and shares.total() < count * design.per_rater:
        share, lot, name = heapq.heappop(queue)
        if of_dialogue[dialogue_of[name]] < count:
            shares[name] += 1
            of_dialogue[dialogue_of[name]] += 1
            heapq.heappush(queue, (share + 1, lot, name))
    return shares
