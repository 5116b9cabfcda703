"""Sample of a review: seeded draws of dialogues and of turns with their cells, stratified by scenario, flagged items first.

A dialogue has no more items than there are raters for. The context of a later turn shows the reference of an earlier one, so a rater sees
one item of a dialogue at most, and each item of a dialogue needs raters of its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, input_error
from empathy_eval.base.hashing import derived_random
from empathy_eval.base.tabular import table_batches
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import files_of
from empathy_eval.design.quotas import apportion
from empathy_eval.design.word_list import NOT_CHOSEN

CANDIDATES = "candidates.parquet"
# The two contexts of a crossed item, and its two replies.
CONTEXTS, REPLIES = ("context_1", "context_2"), ("reply_1", "reply_2")
ALL_CELLS = (*PAIR_VARIANTS, *CONTROLS)
# Each rater sees texts of all groups (within), or of one (between).
DESIGNS = WITHIN, BETWEEN = ("within", "between")


@dataclass(frozen=True)
class ReviewDesign:
    """Settings of a review: how much is reviewed by how many. A ``pack`` has one turn per dialogue, and documents.

    ``within`` raters, each sees texts of all variants (or of all systems, if ``replies`` has the hash of their file). ``between`` raters,
    each sees ``per_rater`` texts of one of them alone; pairs, or cells if there are any, are then the contexts. Turns with more than
    ``texts_per_turn`` texts (0: no limit) are sampled.

    With ``stratify_by``, the hash of a file of scores, pairs are drawn by their ``strata`` (:func:`strata_of`) and not by scenario.

    ``explicit`` names the counts that were given explicitly. If there are too few raters for one of these, that is an error; a default
    count is an upper limit.
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
    stratify_by: str = ""
    strata: Mapping[str, int] = field(default_factory=dict, compare=False)
    explicit: frozenset[str] = field(default=frozenset(), compare=False)

    def raters_needed(self, texts: int) -> int:
        """Number of raters for a turn of so many texts, because nobody sees two of them."""
        return min(texts, self.texts_per_turn or texts) * self.per_item

    @property
    def between(self) -> bool:
        """Whether each rater sees one variant, or the replies of one system, alone."""
        return self.design == BETWEEN

    @property
    def deciding(self) -> bool:
        """Whether judgements decide what stays in the collection: not for systems' replies, nor between raters."""
        return not (self.between or self.replies)

    @property
    def settings(self) -> dict[str, int | str]:
        """Settings for the key; later additions only if they are used, so that keys of other reviews do not change."""
        without = {"explicit", "strata", *({"per_item"} if self.between else {"design", "per_rater"})}
        later = ("pack", "crossed", "replies", "texts_per_turn", "stratify_by")
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
        """Unique name among the cells of its turn."""
        return self.variant if self.attempt is None else f"{self.variant}:rejected-{self.attempt}"


@dataclass(frozen=True)
class Unit:
    """A dialogue, or a turn or crossed item of whose cells a rater sees at most one.

    The cells of a crossed item are its two contexts, those of a turn with systems' replies (kind ``reply``) the systems.
    """

    name: str
    kind: str
    cells: tuple[Cell, ...] = (Cell("dialogue"),)

    @property
    def dialogue(self) -> str:
        """The dialogue that it is, or belongs to."""
        return self.name if self.kind == "dialogue" else self.name.rpartition("-")[0]


@dataclass(frozen=True)
class ReviewSample:
    """Units of a review, and notes on counts that could not be met."""

    units: tuple[Unit, ...]
    notes: tuple[str, ...]

    def count(self, kind: str) -> int:
        """Number of units of a kind."""
        return sum(unit.kind == kind for unit in self.units)


OF_THE_CELLS, FLAGGED, OTHER = range(3)


@dataclass(frozen=True)
class SamplingEntry:
    """A dialogue or a turn; the lowest rank of a scenario is drawn first."""

    name: str
    scenario: int
    rank: int

    @property
    def dialogue(self) -> str:
        """The dialogue that a turn belongs to."""
        return self.name.rpartition("-")[0]

    def place(self, seed: int, what: str) -> tuple[int, float, str]:
        """Sort key for drawing ``what``: rank, then a random number."""
        return self.rank, derived_random(seed, what, self.name).random(), self.name


# Entries to draw from, and the number of raters that an entry needs.
Entries = Sequence[SamplingEntry]
RatersNeeded = Callable[[SamplingEntry], int]


class RaterCapacity:
    """Number of raters still available for each dialogue; ``notes`` tell which counts could not be met."""

    def __init__(self, design: ReviewDesign) -> None:
        self._design, self.notes = design, list[str]()
        self._ratings_of, self._turns, self._whole = Counter[str](), set[str](), False

    def reserve(self, dialogues: Iterable[str], raters: int, *, turn: bool = False) -> None:
        """Reserve raters of each dialogue: for one of its turns, or for the whole dialogue or a crossed item of it."""
        for name in dialogues:
            self._ratings_of[name] += raters
            if turn:
                self._turns.add(name)
            else:
                self._whole = True

    def draw(self, option: str, entries: Entries, raters: RatersNeeded, excluded: Collection[str] = (), what: str = "") -> set[str]:
        """Draw as many turns as an option says, including those ``taken``; each needs the number of raters that ``raters`` gives.

        ``what`` is the name of the units, by default the option.

        Raises:
            InputError: if the release has enough turns for an explicit count, but there are too few raters who may see them.
        """
        number, what, fitting = getattr(self._design, option), what or option, self._fitting(entries, raters)
        fewer = number > len(fitting) < len(entries)
        if fewer and option in self._design.explicit:
            least = min(self._ratings_of[entry.dialogue] + raters(entry) for entry in entries)
            raise self._too_many(option, entries, len(fitting), least)
        if fewer:
            self.notes.append(f"{len(fitting)} of {len(entries)} {what} are taken: a rater sees one turn of a dialogue at most")
        count = min(number, len(fitting)) if fewer else number
        weights = STRATA if option == "pairs" and self._design.strata else None
        drawn = draw_names(fitting, count, self._design.seed, what, self.notes, excluded, weights)
        for entry in fitting:
            if entry.name in drawn:
                self.reserve([entry.dialogue], raters(entry), turn=True)
        return drawn

    def _fitting(self, entries: Entries, raters: RatersNeeded) -> list[SamplingEntry]:
        """Turns with enough raters, by rank and then at random in each dialogue; in the order of the entries.

        The first turn of a dialogue always fits: the assignment reports how many more raters it needs.
        """
        by_dialogue: dict[str, list[SamplingEntry]] = defaultdict(list)
        for entry in entries:
            by_dialogue[entry.dialogue].append(entry)
        fitting = set[str]()
        for name, turns in by_dialogue.items():
            used, first = self._ratings_of[name], name not in self._turns
            if used + sum(map(raters, turns)) > self._design.raters:
                turns = sorted(turns, key=lambda entry: entry.place(self._design.seed, "turn"))
            for entry in turns:
                needed = raters(entry)
                if first or not needed or used + needed <= self._design.raters:
                    used, first = used + needed, False
                    fitting.add(entry.name)
        return [entry for entry in entries if entry.name in fitting]

    def _too_many(self, option: str, entries: Entries, fitting: int, least: int) -> InputError:
        dialogues = len({entry.dialogue for entry in entries})
        what = f'"{getattr(self._design, option)}" is too many: a rater sees one turn of a dialogue at most, so at most {dialogues} turns'
        what += f" of {dialogues} dialogues; {self._design.raters} raters together can be given {fitting} of the {len(entries)} turns"
        first = f"--{option} {fitting} or less, more --raters" if fitting else f"--raters {least} or more"
        fix = f"give {first}, a smaller --per-item, or --texts-per-turn 1"
        return input_error(f"--{option}", what, fix + (", or leave whole dialogues and crossed items out" if self._whole else ""))


def one_per_dialogue(entries: Iterable[SamplingEntry], of_the_cells: Collection[str], seed: int) -> list[SamplingEntry]:
    """A turn or crossed item of each dialogue, by rank and then at random: another would show its reference or context.

    They come in that order, so that ties of remainders between scenarios are broken at random too.
    """
    ranked = [replace(entry, rank=OF_THE_CELLS) if entry.name in of_the_cells else entry for entry in entries]
    ranked.sort(key=lambda entry: entry.place(seed, "turn"))
    chosen: dict[str, SamplingEntry] = {}
    for entry in ranked:
        chosen.setdefault(entry.dialogue, entry)
    return list(chosen.values())


# The share of a sample that each stratum of scores gets: the lowest quarter, the middle half and the highest quarter.
STRATA = {0: 1.0, 1: 3.0, 2: 1.0}


def strata_of(scores: Mapping[str, float]) -> dict[str, int]:
    """By pair its stratum by score: 0 for the lowest quarter, 2 for the highest, 1 for all between; equal scores go by name.

    A sample has one pair of the lowest and one of the highest for three of the others, as "When Large Language Models are Reliable for
    Judging Empathic Communication" draws its conversations (10, 10 and 30 of 50).
    """
    order = sorted(scores, key=lambda name: (scores[name], name))
    quarter = len(order) // 4
    return {name: 0 if place < quarter else 2 if place >= len(order) - quarter else 1 for place, name in enumerate(order)}


def draw_names(
    entries: Entries, count: int, seed: int, what: str, notes: list[str], excluded: Collection[str] = (),
    weights: Mapping[int, float] | None = None,
) -> set[str]:  # fmt: skip
    """The names drawn for one sample, those that are ``taken`` already among them; strata get shares by their size, or by ``weights``."""
    if count > len(entries):
        notes.append(f"{count} {what} were requested, but there are only {len(entries)}: all are taken")
    strata: dict[int, list[SamplingEntry]] = defaultdict(list)
    for entry in entries:
        if entry.name not in excluded:
            strata[entry.scenario].append(entry)
    total, chosen = min(count, len(entries)) - len(excluded), set(excluded)
    if total <= 0 or not strata:
        return chosen
    sizes = {name: len(stratum) for name, stratum in strata.items()}
    quotas = _capped(total, sizes, weights) if weights else apportion(total, list(sizes.values()))
    for stratum, share in zip(strata.values(), quotas, strict=True):
        order = sorted(stratum, key=lambda entry: entry.place(seed, what))
        chosen.update(entry.name for entry in order[:share])
    return chosen


def _capped(total: int, sizes: Mapping[int, int], weights: Mapping[int, float]) -> list[int]:
    """Quotas by weight, none above the size of its stratum: what one cannot have goes to the others by their weights."""
    quotas = dict.fromkeys(sizes, 0)
    while (left := min(total, sum(sizes.values())) - sum(quotas.values())) > 0:
        room = [name for name in sizes if quotas[name] < sizes[name]]
        for name, share in zip(room, apportion(left, [weights[name] for name in room]), strict=True):
            quotas[name] = min(sizes[name], quotas[name] + share)
    return list(quotas.values())


def draw_sample(release_dir: Path, design: ReviewDesign) -> ReviewSample:
    """Draw the units of a review. If a release has fewer than requested, all are taken, with a note.

    Within the share of a scenario (largest remainder) flagged items come first, then a seeded order that depends on the item's id alone. A
    pack has one turn of each dialogue at most, and the turns of its cells are among its pairs.

    Raises:
        InputError: if rejected candidates or crossed items are requested and the release has none; if it has enough turns, but there are
            too few dialogues or raters for them.
    """
    capacity, of_crossed = RaterCapacity(design), list[str]()
    notes = capacity.notes
    whole = list(entries_of(release_dir, "dialogues"))
    dialogues = draw_names(whole, design.dialogues, design.seed, "dialogues", notes)
    capacity.reserve(dialogues, design.per_item)
    crossed = list(_crossed(release_dir, design, of_crossed)) if design.crossed else []
    capacity.reserve([unit.dialogue for unit in crossed], len(CONTEXTS) * design.per_item)
    all_cells = _all_cells(release_dir, design, capacity)
    pairs = list(entries_of(release_dir, "pairs"))
    if design.strata:
        scored = [replace(pair, scenario=design.strata[pair.name]) for pair in pairs if pair.name in design.strata]
        if len(scored) < len(pairs):
            notes.append(f"{len(pairs) - len(scored)} pairs have no score to stratify by: none of them is taken")
        pairs = scored
    if design.pack:
        pairs = one_per_dialogue(pairs, all_cells, design.seed)
    of_pair = design.raters_needed(len(PAIR_VARIANTS))
    cells: dict[str, dict[str, Cell]] = defaultdict(dict)
    excluded = all_cells if design.pack else ()
    drawn = capacity.draw("pairs", pairs, lambda entry: 0 if entry.name in all_cells else of_pair, excluded)
    _add(cells, drawn, PAIR_VARIANTS, "pairs")
    _add(cells, all_cells, ALL_CELLS, "cells")
    if design.rejected:
        _add_rejected(cells, release_dir, [entry for entry in pairs if entry.name not in all_cells], design, capacity)
    if design.pack and notes:
        notes.append("a pack has one turn of each dialogue at most")
    units = [Unit(entry.name, "variant", tuple(cells[entry.name].values())) for entry in pairs if entry.name in cells]
    units += [Unit(entry.name, "dialogue") for entry in whole if entry.name in dialogues]
    return ReviewSample((*units, *crossed), (*notes, *of_crossed))


def _all_cells(release_dir: Path, design: ReviewDesign, capacity: RaterCapacity) -> set[str]:
    """Turns of which all four cells are rated."""
    if not design.cells:
        return set()
    entries = list(entries_of(release_dir, "controls"))
    if design.pack:
        entries = one_per_dialogue(entries, (), design.seed)
    return capacity.draw("cells", entries, lambda entry: design.raters_needed(len(ALL_CELLS)))


def _crossed(release_dir: Path, design: ReviewDesign, notes: list[str]) -> Iterator[Unit]:
    """Crossed items, each with its two contexts."""
    if not all(path.is_file() for path in files_of(release_dir, "crossed")):
        raise input_error(release_dir, "holds no crossed items", "leave --crossed out, or name a release that has them")
    entries = one_per_dialogue(whole := list(entries_of(release_dir, "crossed")), set(), design.seed)
    if len(entries) < min(design.crossed, len(whole)):
        notes.append("one crossed item per dialogue is taken: another would reveal its other context")
    drawn = draw_names(entries, design.crossed, design.seed, "crossed", notes)
    yield from (Unit(entry.name, "crossed", tuple(map(Cell, CONTEXTS))) for entry in entries if entry.name in drawn)


def batches(release_dir: Path, config: str, columns: list[str]) -> Iterator[Any]:
    """Record batches of a config over all splits, with these columns."""
    return (batch for path in files_of(release_dir, config) for batch in table_batches(path, columns))


def rows_of(release_dir: Path, config: str, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Rows of a config over all splits, with these columns."""
    return (row for batch in batches(release_dir, config, columns) for row in batch.to_pylist())


def entries_of(release_dir: Path, config: str) -> Iterator[SamplingEntry]:
    """Dialogues, turns or crossed items of a config, to be drawn from."""
    name = {"dialogues": "dialogue_id", "crossed": "crossed_id"}.get(config, "pair_id")
    for row in rows_of(release_dir, config, [name, "scenario_id", *(["flags"] if config != "crossed" else [])]):
        yield SamplingEntry(row[name], row["scenario_id"], FLAGGED if row.get("flags") else OTHER)


def _add(cells: dict[str, dict[str, Cell]], names: set[str], variants: tuple[str, ...], what: str) -> None:
    for name in names:
        for variant in variants:
            before = cells[name].get(variant)
            cells[name][variant] = Cell(variant, samples=(*(before.samples if before else ()), what))


def _add_rejected(
    cells: dict[str, dict[str, Cell]], release_dir: Path, pairs: list[SamplingEntry], design: ReviewDesign, capacity: RaterCapacity
) -> None:
    """Add a rejected candidate of a turn beside the accepted variant; one per turn."""
    candidates = _rejected(release_dir, {entry.name for entry in pairs})

    def raters(entry: SamplingEntry) -> int:
        return (1 if entry.name in cells else 2) * design.per_item

    chosen = capacity.draw("rejected", [entry for entry in pairs if entry.name in candidates], raters)
    for name in chosen:
        cell = derived_random(design.seed, "candidate", name).choice(sorted(candidates[name]))
        _add(cells, {name}, (cell.variant,), "rejected")
        cells[name][cell.name] = cell


def _rejected(release_dir: Path, names: set[str]) -> dict[str, list[Cell]]:
    path = release_dir / CANDIDATES
    fix = "release a build whose ledger holds rejected answers, or leave --rejected out"
    if not path.is_file():
        raise input_error(path, "is not there, so no rejected texts can be exported", fix)
    candidates: dict[str, list[Cell]] = defaultdict(list)
    for batch in table_batches(path, ["pair_id", "variant", "attempt", "reasons"]):
        for row in batch.to_pylist():
            if row["reasons"] not in ([], [NOT_CHOSEN]) and row["variant"] in PAIR_VARIANTS and row["pair_id"] in names:
                candidates[row["pair_id"]].append(Cell(row["variant"], row["attempt"], tuple(row["reasons"]), ("rejected",)))
    if not candidates:
        raise input_error(path, "holds no rejected apathetic or empathetic text of a pair of this release", fix)
    return candidates
