"""Who sees what: every cell is rated by the same number of raters, and nobody sees two items of one dialogue."""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

from empathy_eval.base.errors import Problem, input_error, nearest
from empathy_eval.base.hashing import derived_random, digest
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.raters.review.replies import Replies
from empathy_eval.raters.review.sample import DESIGNS, Cell, Design, Unit

Seen = dict[str, list[tuple[Unit, Cell]]]
# By rater and dialogue the unit that the rater sees of it.
Shares = dict[str, dict[str, Unit]]


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
    seen: Seen = {rater: [] for rater in shares}
    cells_of = {rater: Counter[str]() for rater in seen}
    for unit in sorted(units, key=lambda unit: derived_random(design.seed, "deal", unit.name).random()):
        free = [rater for rater, ones in shares.items() if ones.get(unit.dialogue) == unit]
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


def _even_out(shares: Shares) -> None:
    """Moves units from raters with more to raters with less, over others if need be, for as long as that makes loads more even."""
    while path := next(filter(None, (_way_down(shares, one) for one in sorted(shares, key=lambda rater: -len(shares[rater])))), None):
        for giver, unit, taker in path:
            shares[taker][unit.dialogue] = shares[giver].pop(unit.dialogue)


def _way_down(shares: Shares, start: str) -> list[tuple[str, Unit, str]]:
    """The shortest way on which units can be handed on, one by each, from a rater to one who has at least two fewer; else nothing."""
    ways: dict[str, list[tuple[str, Unit, str]]] = {start: []}
    queue = deque([start])
    while queue:
        giver = queue.popleft()
        if len(shares[giver]) <= len(shares[start]) - 2:
            return ways[giver]
        for taker, ones in shares.items():
            if taker not in ways and (unit := next((one for one in shares[giver].values() if one.dialogue not in ones), None)):
                ways[taker] = [*ways[giver], (giver, unit, taker)]
                queue.append(taker)
    return []


def _shared(units: Sequence[Unit], design: Design) -> Shares:
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

    shares: Shares = {rater: {} for rater in raters_of(design.raters)}
    barred = Counter[str]()
    for unit in sorted(units, key=turn):
        rng = derived_random(design.seed, "raters", unit.name)
        lots = {rater: rng.random() for rater in shares}
        # Only one item of a dialogue: another one would show the reference, the dialogue or the context of this one.
        free = [rater for rater, ones in shares.items() if unit.dialogue not in ones]
        # Who reviews a dialogue is barred from its replies: of these, too, all raters are to miss about as many.
        free.sort(key=lambda rater: (len(shares[rater]), barred[rater] if unit.kind == "dialogue" else 0, lots[rater]))
        for rater in free[: len(unit.cells) * design.per_item]:
            shares[rater][unit.dialogue] = unit
            if unit.kind == "dialogue":
                barred[rater] += replies[unit.dialogue]
    _even_out(shares)
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


WITHIN_ONLY = ("dialogues", "rejected", "planted", "crossed")


def groups_of(design: Design, replies: Replies | None) -> tuple[str, ...]:
    """What raters are divided by: the systems that replied, all four cells, or the two variants."""
    return replies.systems if replies else CELLS if design.cells else PAIR_VARIANTS


def misfits(design: Design, replies: Replies | None) -> Iterator[Problem]:
    """What cannot be had of a design."""
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


def assign_blocks(units: Sequence[Unit], design: Design, seal: str) -> tuple[Seen, dict[str, str]]:
    """What each rater sees, and the block of each, which has the same name wherever it has the same contexts.

    Raters of a block follow on one another, and which of them has which group is drawn by lot: who sends folders out in their order keeps
    the groups even at any time. The lot hangs on the ``seal`` of the release and on the replies, so that a number tells nothing.
    """
    cells = range(len(units[0].cells))
    raters, seen, block_of = iter(raters_of(design.raters)), Seen(), dict[str, str]()
    for number, block in enumerate(_blocks(units, design.raters // len(cells), design)):
        for place in derived_random(design.seed, "groups", seal, design.replies, number).sample(cells, len(cells)):
            rater = next(raters)
            seen[rater] = [(unit, unit.cells[place]) for unit in block]
            block_of[rater] = code_of(sorted(unit.name for unit in block), 8)
    return seen, block_of


def code_of(value: object, signs: int) -> str:
    """So many signs of the hash of a value, the first of which is a letter: a spreadsheet would take ``12345678e012`` for a number."""
    code = digest(value)[3 : 3 + signs]
    return "abcdef"[int(code[0], 16) % 6] + code[1:]


def _blocks(units: Sequence[Unit], count: int, design: Design) -> Iterator[list[Unit]]:
    """Blocks of so many contexts, one a dialogue: always of the dialogues that are to be in most of the blocks to come."""
    left = _shares(units, count, design)
    by_dialogue: dict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        by_dialogue[unit.dialogue].append(unit)
    for number in range(count):
        rng = derived_random(design.seed, "block", number)
        totals = [(sum(left[unit.name] for unit in some), rng.random(), name) for name, some in by_dialogue.items()]
        some = [by_dialogue[name] for _, _, name in heapq.nlargest(design.per_rater, totals)]
        block = [max(ones, key=lambda unit: (left[unit.name], rng.random())) for ones in some]
        left.subtract(unit.name for unit in block)
        yield block


def _shares(units: Sequence[Unit], count: int, design: Design) -> Counter[str]:
    """In how many blocks each context is: as even as can be, where a dialogue is in each block once at most."""
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
