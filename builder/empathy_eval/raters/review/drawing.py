"""Drawing items for a review: a seeded sample by scenario, with no more items of a dialogue than there are raters for.

The context of a later turn shows the reference of an earlier one. So a rater sees one item of a dialogue at most, and each item of a
dialogue takes raters of its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from empathy_eval.base.errors import InputError, input_error
from empathy_eval.base.hashing import derived_random
from empathy_eval.design.quotas import apportion

OF_THE_CELLS, FLAGGED, OTHER = range(3)


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


@dataclass(frozen=True)
class Wanted:
    """How many turns of a kind are wanted: by an option that was given explicitly (``asked``), or at most so many by default."""

    what: str
    option: str
    count: int
    asked: bool


class Places:
    """How many of the raters have seen nothing of a dialogue yet."""

    def __init__(self, raters: int, seed: int) -> None:
        self._raters, self._seed = raters, seed
        self._taken, self._turns, self._whole = Counter[str](), set[str](), False

    def take(self, dialogues: Iterable[str], raters: int, *, turn: bool = False) -> None:
        """Each of the dialogues takes so many raters: for one of its turns, or to be reviewed whole, or for a crossed item of it."""
        for name in dialogues:
            self._taken[name] += raters
            if turn:
                self._turns.add(name)
            else:
                self._whole = True

    def draw(
        self, wanted: Wanted, entries: Sequence[Entry], raters: Callable[[Entry], int], notes: list[str], taken: Collection[str] = ()
    ) -> set[str]:
        """Draws turns, those that are ``taken`` already among them, of which each takes the ``raters`` of its own.

        Raises:
            InputError: if the release has as many turns as were asked for, and there are too few raters who may see them.
        """
        fitting = self._fitting(entries, raters)
        fewer = wanted.count > len(fitting) < len(entries)
        if fewer and wanted.asked:
            least = min(self._taken[entry.dialogue] + raters(entry) for entry in entries)
            raise self._too_many(wanted, entries, len(fitting), least)
        if fewer:
            notes.append(f"{len(fitting)} of {len(entries)} {wanted.what} are taken: a rater sees one turn of a dialogue at most")
        count = min(wanted.count, len(fitting)) if fewer else wanted.count
        drawn = drawn_of(fitting, count, self._seed, wanted.what, notes, taken)
        for entry in fitting:
            if entry.name in drawn:
                self.take([entry.dialogue], raters(entry), turn=True)
        return drawn

    def _fitting(self, entries: Sequence[Entry], raters: Callable[[Entry], int]) -> list[Entry]:
        """The turns for which there are raters, by rank and then by lot in each dialogue; in the order of the entries.

        The first turn of a dialogue always fits: who assigns raters says how many more it takes.
        """
        by_dialogue: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            by_dialogue[entry.dialogue].append(entry)
        kept = set[str]()
        for name, some in by_dialogue.items():
            taken, first = self._taken[name], name not in self._turns
            if taken + sum(map(raters, some)) > self._raters:
                some = sorted(some, key=lambda entry: (entry.rank, derived_random(self._seed, "turn", entry.name).random(), entry.name))
            for entry in some:
                needed = raters(entry)
                if first or not needed or taken + needed <= self._raters:
                    taken, first = taken + needed, False
                    kept.add(entry.name)
        return [entry for entry in entries if entry.name in kept]

    def _too_many(self, wanted: Wanted, entries: Sequence[Entry], fitting: int, least: int) -> InputError:
        dialogues = len({entry.dialogue for entry in entries})
        what = f'"{wanted.count}" is too many: a rater sees one turn of a dialogue at most, so at most {dialogues} turns of {dialogues} '
        what += f"dialogues; {self._raters} raters together can be given {fitting} of the {len(entries)} turns"
        first = f"--{wanted.option} {fitting} or less, more --raters" if fitting else f"--raters {least} or more"
        fix = f"give {first}, a smaller --per-item, or --texts-per-turn 1"
        return input_error(f"--{wanted.option}", what, fix + (", or leave whole dialogues and crossed items out" if self._whole else ""))


def one_a_dialogue(entries: Iterable[Entry], of_the_cells: Collection[str], seed: int) -> list[Entry]:
    """A turn or crossed item of each dialogue, by rank and then by lot: a later one would show the reference, or the context, of another.

    They come in that order, so that equal remainders of scenarios go by lot too.
    """
    ranked = [replace(entry, rank=OF_THE_CELLS) if entry.name in of_the_cells else entry for entry in entries]
    ranked.sort(key=lambda entry: (entry.rank, derived_random(seed, "turn", entry.name).random(), entry.name))
    chosen: dict[str, Entry] = {}
    for entry in ranked:
        chosen.setdefault(entry.dialogue, entry)
    return list(chosen.values())


def drawn_of(entries: Sequence[Entry], wanted: int, seed: int, what: str, notes: list[str], taken: Collection[str] = ()) -> set[str]:
    """The names drawn for one sample, those that are ``taken`` already among them."""
    if wanted > len(entries):
        notes.append(f"{wanted} {what} were requested, but there are only {len(entries)}: all are taken")
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
