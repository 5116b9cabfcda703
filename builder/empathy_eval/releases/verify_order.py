"""The order of a release: rows of every config stand as the plan has them, so that several files can be gone through side by side."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem
from empathy_eval.base.tabular import TableRow, table_batches
from empathy_eval.design.dataset import JUDGED, SPLITS, configs_of, file_of
from empathy_eval.releases.verify_rows import RESTORE

DIALOGUE = re.compile(r"([0-9]{3})-(seed|[0-9]{5,9})")
PAIR = re.compile(rf"({DIALOGUE.pattern})-t([0-9]{{2,6}})")
ITEM = re.compile(rf"({DIALOGUE.pattern})-x([0-9]{{1,6}})")
# A scenario and an index in it; a seed dialogue has none.
Place = tuple[int, int]


def place_of(dialogue_id: object) -> Place | None:
    """Where a dialogue stands in the plan; None for what is no id of one."""
    found = DIALOGUE.fullmatch(dialogue_id) if isinstance(dialogue_id, str) else None
    return (int(found[1]), -1 if found[2] == "seed" else int(found[2])) if found else None


def turn_of(pair_id: object, dialogue_id: object = None) -> int | None:
    """The place of the turn in the id of a pair; None for what is no id of one, or not one of that dialogue."""
    found = PAIR.fullmatch(pair_id) if isinstance(pair_id, str) else None
    return int(found[4]) if found and dialogue_id in (None, found[1]) else None


def order_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """The first row of each file that stands before one that the plan has earlier; rows of judges are in order by judge and rubric."""
    judges = {(one["teacher"], one["rubric"]): number for number, one in enumerate(manifest.get("annotations", ()))}
    for config, columns in configs_of(manifest["counts"]).items():
        names = [name for name in ("pair_id", "dialogue_id", "crossed_id", "teacher", "rubric") if name in columns.names]
        for path in (file_of(folder, config, split) for split in SPLITS):
            before: tuple[int, ...] = ()
            for number, row in enumerate(_rows(path, names)):
                here = _standing(config, row, judges)
                if here is None or here < before or (here == before and config not in JUDGED):
                    name = row.get("crossed_id") or row.get("pair_id") or row.get("dialogue_id")
                    what = "is no id that a plan has" if here is None else "does not stand where the plan has it"
                    yield Problem(f"{path}: row {number}", f'"{str(name)[:80]}" {what}', RESTORE)
                    break
                before = here


def _standing(config: str, row: TableRow, judges: dict[tuple[str, str], int]) -> tuple[int, ...] | None:
    """What rows of a config are ordered by."""
    if config == "crossed":
        found = ITEM.fullmatch(row["crossed_id"])
        return (*(place_of(found[1]) or ()), int(found[4])) if found else None
    pair = PAIR.fullmatch(row["pair_id"]) if row.get("pair_id") else None
    if row.get("pair_id") and pair is None:
        return None
    place = place_of(pair[1] if pair else row["dialogue_id"])
    if place is None:
        return None
    first = (judges.get((row["teacher"], row["rubric"]), -1),) if config in JUDGED else ()
    return *first, *place, int(pair[4]) if pair else -1


def in_order(folder: Path, config: str, columns: list[str]) -> Iterator[tuple[Place, TableRow]]:
    """The rows of a config over all splits as the plan has them, with their dialogue's place; each file must be in order."""

    def placed(path: Path) -> Iterator[tuple[Place, TableRow]]:
        for row in _rows(path, columns):
            yield place_of(row["dialogue_id"] if "dialogue_id" in row else row["pair_id"].rpartition("-t")[0]) or (-1, -1), row

    yield from heapq.merge(*(placed(file_of(folder, config, split)) for split in SPLITS), key=lambda one: one[0])


def _rows(path: Path, columns: list[str]) -> Iterator[TableRow]:
    for batch in table_batches(path, columns):
        yield from batch.to_pylist()


class Groups:
    """Rows in the order of the plan, taken dialogue by dialogue."""

    def __init__(self, rows: Iterator[tuple[Place, TableRow]]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def at(self, place: Place) -> list[TableRow]:
        """The rows of a dialogue, which stand next, if there are any."""
        found = list[TableRow]()
        while self._next is not None and self._next[0] == place:
            found.append(self._next[1])
            self._next = next(self._rows, None)
        return found

    def before(self, place: Place | None) -> list[TableRow]:
        """Of the rows of no dialogue that stand before one, or before the end, the first; all are passed over."""
        found = list[TableRow]()
        while self._next is not None and (place is None or self._next[0] < place):
            found = found or [self._next[1]]
            self._next = next(self._rows, None)
        return found
