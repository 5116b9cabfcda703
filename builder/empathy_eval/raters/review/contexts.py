"""What is drawn for a review of any design: units of the release, contexts that systems replied to, contexts of blocks."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random
from empathy_eval.raters.review.between import groups_of
from empathy_eval.raters.review.drawing import Entry, Places, drawn_of, one_a_dialogue
from empathy_eval.raters.review.replies import Replies
from empathy_eval.raters.review.sample import Cell, Design, Sample, Unit, entries_of, sample


def drawn_for(release_dir: Path, design: Design, replies: Replies | None = None) -> Sample:
    """The units of a review. Where systems replied, ``pairs`` of the design counts the contexts of their replies.

    Raises:
        InputError: as :func:`sample` does; if blocks are of more contexts than there are dialogues.
    """
    notes = list(replies.notes) if replies else []
    if design.between:
        return Sample(tuple(_of_blocks(release_dir, design, replies, notes)), tuple(notes))
    of_release = sample(release_dir, replace(design, pairs=0) if replies else design)
    replied = _replied(release_dir, design, replies, notes, of_release) if replies else ()
    units = fewer_texts([*of_release.units, *replied], design)
    return Sample(tuple(units), (*notes, *of_release.notes))


def fewer_texts(units: Sequence[Unit], design: Design) -> list[Unit]:
    """The units, each turn with at most ``texts_per_turn`` of its texts: drawn by lot, each of them about as often as any other."""
    kept: dict[str, tuple[Cell, ...]] = {}
    by_cells: dict[tuple[str, ...], list[Unit]] = defaultdict(list)
    for unit in units if design.texts_per_turn else ():
        if unit.kind in ("variant", "reply") and len(unit.cells) > design.texts_per_turn:
            by_cells[tuple(cell.name for cell in unit.cells)].append(unit)
    for names, some in by_cells.items():
        texts = itertools.cycle(derived_random(design.seed, "texts", *names).sample(range(len(names)), len(names)))
        for unit in sorted(some, key=lambda unit: derived_random(design.seed, "texts", unit.name).random()):
            kept[unit.name] = tuple(unit.cells[place] for place in sorted(itertools.islice(texts, design.texts_per_turn)))
    return [replace(unit, cells=kept.get(unit.name, unit.cells)) for unit in units]


def _replied(release_dir: Path, design: Design, replies: Replies, notes: list[str], of_release: Sample) -> Iterator[Unit]:
    """Contexts that all systems replied to, each with the replies; none of a turn that is already drawn, in a pack one a dialogue."""
    answered = _answered(release_dir, "pairs", replies)
    turns, there = {unit.name for unit in of_release.units}, {unit.dialogue for unit in of_release.units}
    places = Places(design.raters, design.seed)
    for unit in of_release.units:
        turn = unit.kind == "variant"
        places.take([unit.dialogue], design.raters_of(len(unit.cells)) if turn else len(unit.cells) * design.per_item, turn=turn)
    # Nobody sees two texts of a turn: one whose own texts are rated is not rated with replies too.
    entries = [entry for entry in answered if entry.name not in turns]
    if len(entries) < min(design.pairs, len(answered)):
        notes.append(f"{len(answered) - len(entries)} contexts are left out for replies, because their own texts are rated")
    if design.pack:
        entries = one_a_dialogue([entry for entry in entries if entry.dialogue not in there], set(), design.seed)
    drawn = places.draw(design.wanted("pairs", "contexts"), entries, lambda entry: design.raters_of(len(replies.systems)), notes)
    yield from (Unit(entry.name, "reply", tuple(map(Cell, replies.systems))) for entry in entries if entry.name in drawn)


def _answered(release_dir: Path, config: str, replies: Replies | None) -> list[Entry]:
    return [entry for entry in entries_of(release_dir, config) if replies is None or entry.name in replies.texts]


def _of_blocks(release_dir: Path, design: Design, replies: Replies | None, notes: list[str]) -> Iterator[Unit]:
    """Contexts for blocks, no more than these hold, and of as many dialogues as can be: a block has one turn of each."""
    what = "cells" if design.cells else "pairs"
    cells = groups_of(design, replies)
    kind = "reply" if replies else "variant"
    entries = _answered(release_dir, "controls" if design.cells else "pairs", replies)
    wanted = min(design.cells or design.pairs, design.raters // len(cells) * design.per_rater)
    apart = one_a_dialogue(entries, set(), design.seed)
    drawn = drawn_of(apart, min(wanted, len(apart)), design.seed, "contexts", notes)
    if wanted > len(drawn) and not design.pack:
        drawn = drawn_of(entries, wanted, design.seed, "contexts", notes, drawn)
    dialogues = len({entry.dialogue for entry in entries if entry.name in drawn})
    if drawn and dialogues < design.per_rater:
        said = f"a block needs contexts of {design.per_rater} dialogues, but the {len(drawn)} contexts are of {dialogues}"
        raise input_error("--per-rater", said, f"give --per-rater {dialogues} or less, or more contexts")
    samples = () if replies else (what,)
    yield from (Unit(entry.name, kind, tuple(Cell(one, samples=samples) for one in cells)) for entry in entries if entry.name in drawn)
