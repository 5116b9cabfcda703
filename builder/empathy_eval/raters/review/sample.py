"""What is reviewed: a seeded sample of dialogues and of turns with their cells, stratified by scenario, flagged items first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random
from empathy_eval.base.tabular import table_batches
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import files_of
from empathy_eval.design.quotas import apportion
from empathy_eval.design.word_list import NOT_CHOSEN

CANDIDATES = "candidates.parquet"
# The two contexts of a crossed item, and its two replies.
CONTEXTS, REPLIES = ("context_1", "context_2"), ("reply_1", "reply_2")
# Who sees what: each rater texts of all groups, or of one.
DESIGNS = WITHIN, BETWEEN = ("within", "between")


@dataclass(frozen=True)
class Design:
    """How much is reviewed by how many: the settings of a review. A ``pack`` draws one turn a dialogue, and papers go with it.

    ``within`` a rater, texts of all variants (or of all systems, where ``replies`` has the hash of their file) come by turns. ``between``
    raters, each sees ``per_rater`` texts of one of them alone. Pairs, or cells where there are any, are then the contexts.
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
        without = {"per_item"} if self.between else {"design", "per_rater"}
        later = ("pack", "crossed", "replies")
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


@dataclass(frozen=True)
class Entry:
    """A dialogue or a turn; the lowest rank of a scenario is drawn first."""

    name: str
    scenario: int
    rank: int

    @property
    def dialogue(self) -> str:
        """The dialogue that a turn is of."""
        return self.name.rpartition("-")[0]


OF_THE_CELLS, FLAGGED, OTHER = range(3)


def sample(release_dir: Path, design: Design) -> Sample:
    """Draws the units of a review. Fewer than asked for: all are taken, and a note says so.

    Within the share of a scenario (largest remainder) flagged items come first, then a seeded order that depends on nothing but the
    item's id. A pack has one turn of each dialogue at most, and the turns of its cells are among its pairs.

    Raises:
        InputError: if rejected candidates or crossed items are asked for and the release has none.
    """
    notes: list[str] = []
    drawn: dict[str, set[str]] = {}
    entries: dict[str, list[Entry]] = {}
    for name, config in (("dialogues", "dialogues"), *([("cells", "controls")] if design.cells else []), ("pairs", "pairs")):
        entries[config] = list(entries_of(release_dir, config))
        if design.pack and name != "dialogues":
            entries[config] = one_a_dialogue(entries[config], drawn.get("cells", set()), design.seed)
        of_cells = drawn.get("cells", set[str]()) if design.pack and name == "pairs" else set[str]()
        drawn[name] = drawn_of(entries[config], getattr(design, name), design.seed, name, notes, of_cells)
    if design.pack and notes:
        notes.append("a pack has one turn of each dialogue at most")
    cells: dict[str, dict[str, Cell]] = defaultdict(dict)
    _add(cells, drawn["pairs"], PAIR_VARIANTS, "pairs")
    _add(cells, drawn.get("cells", set()), (*PAIR_VARIANTS, *CONTROLS), "cells")
    if design.rejected:
        _add_rejected(cells, release_dir, [entry for entry in entries["pairs"] if entry.name not in drawn.get("cells", ())], design, notes)
    units = [Unit(entry.name, "variant", tuple(cells[entry.name].values())) for entry in entries["pairs"] if entry.name in cells]
    units += [Unit(entry.name, "dialogue") for entry in entries["dialogues"] if entry.name in drawn["dialogues"]]
    if design.crossed:
        units += _crossed(release_dir, design, notes)
    return Sample(tuple(units), tuple(notes))


def _crossed(release_dir: Path, design: Design, notes: list[str]) -> Iterator[Unit]:
    """Crossed items, each with its two contexts."""
    if not all(path.is_file() for path in files_of(release_dir, "crossed")):
        raise input_error(release_dir, "holds no crossed items", "leave --crossed out, or name a release that has them")
    entries = one_a_dialogue(whole := list(entries_of(release_dir, "crossed")), set(), design.seed)
    if len(entries) < min(design.crossed, len(whole)):
        notes.append("of the crossed items of a dialogue one is taken: another would show what is said in its other context")
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


def one_a_dialogue(entries: list[Entry], of_the_cells: set[str], seed: int) -> list[Entry]:
    """A turn or crossed item of each dialogue, by rank and then by lot: a later one would show the reference, or the context, of another.

    They come in that order, so that equal remainders of scenarios go by lot too.
    """
    ranked = [replace(entry, rank=OF_THE_CELLS) if entry.name in of_the_cells else entry for entry in entries]
    ranked.sort(key=lambda entry: (entry.rank, derived_random(seed, "turn", entry.name).random(), entry.name))
    chosen: dict[str, Entry] = {}
    for entry in ranked:
        chosen.setdefault(entry.dialogue, entry)
    return list(chosen.values())


def drawn_of(entries: list[Entry], wanted: int, seed: int, what: str, notes: list[str], taken: Collection[str] = ()) -> set[str]:
    """The names drawn for one sample, those that are ``taken`` already among them."""
    if wanted > len(entries):
        notes.append(f"{wanted} {what} were asked for, there are {len(entries)}: all are taken")
    strata: dict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.name not in taken:
            strata[entry.scenario].append(entry)
    total, chosen = min(wanted, len(entries)) - len(taken), set(taken)
    if total <= 0 or not strata:
        return chosen
    for stratum, share in zip(strata.values(), apportion(total, [len(one) for one in strata.values()]), strict=True):
        order = sorted(stratum, key=lambda entry: (entry.rank, derived_random(seed, what, entry.name).random(), entry.name))
        chosen.update(entry.name for entry in order[:share])
    return chosen


def _add(cells: dict[str, dict[str, Cell]], names: set[str], variants: tuple[str, ...], what: str) -> None:
    for name in names:
        for variant in variants:
            before = cells[name].get(variant)
            cells[name][variant] = Cell(variant, samples=(*(before.samples if before else ()), what))


def _add_rejected(cells: dict[str, dict[str, Cell]], release_dir: Path, entries: list[Entry], design: Design, notes: list[str]) -> None:
    """A rejected candidate of a turn beside the variant that was taken in its place; one a turn."""
    found = _rejected(release_dir, {entry.name for entry in entries})
    chosen = drawn_of([entry for entry in entries if entry.name in found], design.rejected, design.seed, "rejected", notes)
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
