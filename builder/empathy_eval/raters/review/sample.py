"""What is reviewed: a seeded sample of dialogues and of turns with their cells, stratified by scenario, flagged items first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random
from empathy_eval.base.tabular import table_batches
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import files_of
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.raters.review.drawing import FLAGGED, OTHER, Entry, Places, Wanted, drawn_of, one_a_dialogue

CANDIDATES = "candidates.parquet"
# The two contexts of a crossed item, and its two replies.
CONTEXTS, REPLIES = ("context_1", "context_2"), ("reply_1", "reply_2")
ALL_CELLS = (*PAIR_VARIANTS, *CONTROLS)
# Who sees what: each rater texts of all groups, or of one.
DESIGNS = WITHIN, BETWEEN = ("within", "between")


@dataclass(frozen=True)
class Design:
    """How much is reviewed by how many: the settings of a review. A ``pack`` draws one turn a dialogue, and papers go with it.

    ``within`` a rater, texts of all variants (or of all systems, where ``replies`` has the hash of their file) come by turns. ``between``
    raters, each sees ``per_rater`` texts of one of them alone. Pairs, or cells where there are any, are then the contexts.
    Of a turn with more than ``texts_per_turn`` texts (0: all are rated) that many are drawn.

    ``asked`` names the counts that were given explicitly. If the raters cannot be given as many, that is an error; a count by default is
    an upper limit.
    """

    pairs: int = 500
    dialogues: int = 100
    raters: int = 10
    per_item: int = 3
    cells: int = 0
    rejected: int = 0
    planted: int = 0
    seed: int = 0
    pack: bool = False
    crossed: int = 0
    design: str = WITHIN
    per_rater: int = 10
    replies: str = ""
    texts_per_turn: int = 0
    asked: frozenset[str] = field(default=frozenset(), compare=False)

    def raters_of(self, texts: int) -> int:
        """How many raters a turn of so many texts takes, as nobody sees two of them."""
        return min(texts, self.texts_per_turn or texts) * self.per_item

    def wanted(self, option: str, what: str = "") -> Wanted:
        """How many turns are wanted by an option."""
        return Wanted(what or option, option, getattr(self, option), option in self.asked)

    @property
    def between(self) -> bool:
        """Whether each rater sees one variant, or the replies of one system, alone."""
        return self.design == BETWEEN

    @property
    def deciding(self) -> bool:
        """Whether raters are told that they decide what stays: not of replies of systems, nor where each sees one variant alone."""
        return not (self.between or self.replies)

    @property
    def settings(self) -> dict[str, int | str]:
        """What a key says of it; of what came later only where there is any: every other review has the key of before."""
        without = {"asked", *({"per_item"} if self.between else {"design", "per_rater"})}
        later = ("pack", "crossed", "replies", "texts_per_turn")
        return {name: value for name, value in asdict(self).items() if name not in without and (name not in later or value)}


@dataclass(frozen=True, order=True)
class Cell:
    """One text of a turn: a variant of the release or, with an ``attempt``, a rejected candidate of that variant."""

    variant: str
    attempt: int | None = None
    reasons: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What tells it from the other cells of its turn."""
        return self.variant if self.attempt is None else f"{self.variant}:rejected-{self.attempt}"


@dataclass(frozen=True)
class Unit:
    """A dialogue, or a turn or a crossed item with the cells of which a rater sees at most one.

    The cells of a crossed item are its two contexts, those of a turn that systems replied to (the kind ``reply``) the systems.
    """

    name: str
    kind: str
    cells: tuple[Cell, ...] = (Cell("dialogue"),)

    @property
    def dialogue(self) -> str:
        """The dialogue that it is, or that it is of."""
        return self.name if self.whole else self.name.rpartition("-")[0]

    @property
    def whole(self) -> bool:
        """Whether it is a whole dialogue."""
        return self.kind == "dialogue"


@dataclass(frozen=True)
class Sample:
    """The units of a review, and what could not be had as asked, in words."""

    units: tuple[Unit, ...]
    notes: tuple[str, ...]

    def count(self, kind: str) -> int:
        """How many units are of a kind."""
        return sum(unit.kind == kind for unit in self.units)


def sample(release_dir: Path, design: Design) -> Sample:
    """Draws the units of a review. Where a release has fewer than asked for, all are taken, and a note says so.

    Within the share of a scenario (largest remainder) flagged items come first, then a seeded order that depends on nothing but the
    item's id. A pack has one turn of each dialogue at most, and the turns of its cells are among its pairs.

    Raises:
        InputError: if rejected candidates or crossed items are asked for and the release has none; if the release has as many turns as
            were asked for, and there are too few dialogues or raters for them.
    """
    notes, of_crossed, places = list[str](), list[str](), Places(design.raters, design.seed)
    whole = list(entries_of(release_dir, "dialogues"))
    dialogues = drawn_of(whole, design.dialogues, design.seed, "dialogues", notes)
    places.take(dialogues, design.per_item)
    crossed = list(_crossed(release_dir, design, of_crossed)) if design.crossed else []
    places.take([unit.dialogue for unit in crossed], len(CONTEXTS) * design.per_item)
    all_cells = _all_cells(release_dir, design, places, notes)
    pairs = list(entries_of(release_dir, "pairs"))
    if design.pack:
        pairs = one_a_dialogue(pairs, all_cells, design.seed)
    of_pair = design.raters_of(len(PAIR_VARIANTS))
    cells: dict[str, dict[str, Cell]] = defaultdict(dict)
    taken = all_cells if design.pack else ()
    drawn = places.draw(design.wanted("pairs"), pairs, lambda entry: 0 if entry.name in all_cells else of_pair, notes, taken)
    _add(cells, drawn, PAIR_VARIANTS, "pairs")
    _add(cells, all_cells, ALL_CELLS, "cells")
    if design.rejected:
        _add_rejected(cells, release_dir, [entry for entry in pairs if entry.name not in all_cells], design, places, notes)
    if design.pack and notes:
        notes.append("a pack has one turn of each dialogue at most")
    units = [Unit(entry.name, "variant", tuple(cells[entry.name].values())) for entry in pairs if entry.name in cells]
    units += [Unit(entry.name, "dialogue") for entry in whole if entry.name in dialogues]
    return Sample((*units, *crossed), (*notes, *of_crossed))


def _all_cells(release_dir: Path, design: Design, places: Places, notes: list[str]) -> set[str]:
    """The turns of which all four cells are rated."""
    if not design.cells:
        return set()
    entries = list(entries_of(release_dir, "controls"))
    if design.pack:
        entries = one_a_dialogue(entries, (), design.seed)
    return places.draw(design.wanted("cells"), entries, lambda entry: design.raters_of(len(ALL_CELLS)), notes)


def _crossed(release_dir: Path, design: Design, notes: list[str]) -> Iterator[Unit]:
    """Crossed items, each with its two contexts."""
    if not all(path.is_file() for path in files_of(release_dir, "crossed")):
        raise input_error(release_dir, "holds no crossed items", "leave --crossed out, or name a release that has them")
    entries = one_a_dialogue(whole := list(entries_of(release_dir, "crossed")), set(), design.seed)
    if len(entries) < min(design.crossed, len(whole)):
        notes.append("one crossed item per dialogue is taken: another would reveal its other context")
    drawn = drawn_of(entries, design.crossed, design.seed, "crossed", notes)
    yield from (Unit(entry.name, "crossed", tuple(map(Cell, CONTEXTS))) for entry in entries if entry.name in drawn)


def batches(release_dir: Path, config: str, columns: list[str]) -> Iterator[Any]:
    """The record batches of a config over all splits, the named columns only."""
    for path in files_of(release_dir, config):
        yield from table_batches(path, columns)


def entries_of(release_dir: Path, config: str) -> Iterator[Entry]:
    """The dialogues, turns or crossed items of a config, as they are drawn."""
    name = {"dialogues": "dialogue_id", "crossed": "crossed_id"}.get(config, "pair_id")
    for batch in batches(release_dir, config, [name, "scenario_id", *(["flags"] if config != "crossed" else [])]):
        for row in batch.to_pylist():
            yield Entry(row[name], row["scenario_id"], FLAGGED if row.get("flags") else OTHER)


def _add(cells: dict[str, dict[str, Cell]], names: set[str], variants: tuple[str, ...], what: str) -> None:
    for name in names:
        for variant in variants:
            before = cells[name].get(variant)
            cells[name][variant] = Cell(variant, samples=(*(before.samples if before else ()), what))


def _add_rejected(
    cells: dict[str, dict[str, Cell]], release_dir: Path, pairs: list[Entry], design: Design, places: Places, notes: list[str]
) -> None:
    """A rejected candidate of a turn beside the variant that was taken in its place; one a turn."""
    found = _rejected(release_dir, {entry.name for entry in pairs})

    def raters(entry: Entry) -> int:
        return (1 if entry.name in cells else 2) * design.per_item

    chosen = places.draw(design.wanted("rejected"), [entry for entry in pairs if entry.name in found], raters, notes)
    for name in chosen:
        cell = derived_random(design.seed, "candidate", name).choice(sorted(found[name]))
        _add(cells, {name}, (cell.variant,), "rejected")
        cells[name][cell.name] = cell


def _rejected(release_dir: Path, names: set[str]) -> dict[str, list[Cell]]:
    path = release_dir / CANDIDATES
    fix = "release a build whose ledger holds rejected answers, or leave --rejected out"
    if not path.is_file():
        raise input_error(path, "is not there, so no rejected texts can be exported", fix)
    found: dict[str, list[Cell]] = defaultdict(list)
    for batch in table_batches(path, ["pair_id", "variant", "attempt", "reasons"]):
        for row in batch.to_pylist():
            if row["reasons"] not in ([], [NOT_CHOSEN]) and row["variant"] in PAIR_VARIANTS and row["pair_id"] in names:
                found[row["pair_id"]].append(Cell(row["variant"], row["attempt"], tuple(row["reasons"]), ("rejected",)))
    if not found:
        raise input_error(path, "holds no rejected apathetic or empathetic text of a pair of this release", fix)
    return found
