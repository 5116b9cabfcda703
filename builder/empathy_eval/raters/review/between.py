"""Between raters: each sees the texts of one group alone, and in a block one rater of each group sees the same contexts."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from empathy_eval.base.errors import Problem, nearest
from empathy_eval.base.hashing import derived_random, digest
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.raters.review.assignment import Seen, raters_of
from empathy_eval.raters.review.replies import Replies
from empathy_eval.raters.review.sample import DESIGNS, Design, Unit

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
            block_of[rater] = _named(block)
    return seen, block_of


def _named(block: Sequence[Unit]) -> str:
    """Eight signs, the first of which is a letter: a spreadsheet would take ``12345678`` for a number."""
    name = digest(sorted(unit.name for unit in block))[3:11]
    return "abcdef"[int(name[0], 16) % 6] + name[1:]


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
