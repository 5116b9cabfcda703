"""The tables and scores of a report against their recomputation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Set
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from empathy_eval.base.errors import Finding, input_errors_as_faults, shortened
from empathy_eval.base.tabular import check_group_sizes, parquet_errors
from empathy_eval.evaluation.crossed_items import LAST, WHOLE_CONTEXT
from empathy_eval.evaluation.inversion.rows import FIGURES
from empathy_eval.evaluation.measure import NAMED, WORD_MARGIN, TextScores

# How far a number may be from its recomputation. The embeddings of BERTScore vary with the machine. A figure that counts ranks or
# permutations then jumps by a whole text where two scores are nearly equal: by 0.005, and a share of few texts by one of them. A shortcut
# has no other figures.
EXACT = 1e-6
TOLERANCE = dict.fromkeys(("BERTScore F1", "BERTScore F1, last turn"), 1e-4)
# A cosine that decides one of the few crossed items otherwise is a jump by it.
COSINES = dict.fromkeys((LAST, WHOLE_CONTEXT), 2e-2)
SHORTCUTS = {"embedding": 2e-3}
SHARES = ("accuracy", "ties", "own_ties", "rises", "falls", *FIGURES)
COUNTED = ("p", "holm", "auc", "effect", "in_effects", *SHARES)
JUMP, TEXTS = 5e-3, ("eligible", "items", "pairs")
# Keys that depend on all metrics of a table: p-values after Holm, what follows from them, and the smallest effect that can be detected.
OVER_ALL = {"holm", "told", "smallest"}
# The relative rounding of a score in single precision.
ROUNDING = 2e-7


def disagreements(stored: Any, derived: Any, where: str = "", tolerance: float = EXACT, jump: float = JUMP) -> Iterator[tuple[str, str]]:
    """(where, what) of all values of the tables that are not those of the recomputation, are missing or are too many."""
    if isinstance(derived, dict) and isinstance(stored, dict):
        jump = next((max(JUMP, 1 / derived[name]) for name in TEXTS if derived.get(name)), jump)
        within = (TOLERANCE | COSINES).get(derived.get("metric", ""), tolerance)
        if any(derived.get(side) in TOLERANCE for side in ("one", "other")) or where == "smallest":
            within = JUMP
        # A row of the audit has a name, the line of a contrast that of its shortcut.
        loose = SHORTCUTS.get(str(derived.get("shortcut", derived.get("name"))), 0.0) if where.startswith("shortcuts") else 0.0
        loose = jump if loose and jump > JUMP else loose
        for name in {**derived, **stored}:
            place = f"{where}: {name}" if where else name
            if name not in stored or name not in derived:
                yield place, "is missing" if name in derived else "is not in the data"
            else:
                counted = within > EXACT and name in COUNTED and not where.startswith("shortcuts")
                step = jump if name in SHARES else JUMP
                yield from disagreements(stored[name], derived[name], place, max(within, step if counted else loose), jump)
    elif isinstance(derived, list) and isinstance(stored, list):
        if len(stored) != len(derived):
            yield where, f"has {len(stored)} entries, but the data gives {len(derived)}"
        for index, (ours, theirs) in enumerate(zip(stored, derived, strict=False)):
            name = theirs["metric"] if isinstance(theirs, dict) and "metric" in theirs else index
            yield from disagreements(ours, theirs, f"{where}: {name}" if where else str(name), tolerance, jump)
    elif not _equal(stored, derived, tolerance):
        yield where, f"says {shortened(str(stored))}, but the data gives {shortened(str(derived))}"


def _equal(stored: Any, derived: Any, tolerance: float) -> bool:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in (stored, derived)):
        # The rounding of a difference of decimals is no difference.
        return bool(abs(stored - derived) <= tolerance + 1e-12)
    return bool(stored == derived and type(stored) is type(derived))


def select_comparable(
    stored: dict[str, Any], derived: dict[str, Any], measured: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Both tables without what cannot be compared if only the ``measured`` metrics were run, and the names of the other metrics.

    Left out are the rows, comparisons and faults of the other metrics, and what depends on all metrics of a table.
    """
    known = {*measured, *_metrics([stored["balance"], (stored.get("crossed") or {}).get("shortcuts")])}
    skipped = dict.fromkeys(name for name in _metrics(stored) if name not in known)
    prefixes = tuple(f"metric {name}: " for name in measured)
    both = ({**tables, "faults": [fault for fault in tables["faults"] if fault.startswith(prefixes)]} for tables in (stored, derived))
    ours, theirs = (_without(tables, skipped.keys()) for tables in both)
    return ours, theirs, list(skipped)


def _metrics(value: Any) -> Iterator[str]:
    """The metrics of the rows at any depth."""
    if isinstance(value, dict) and isinstance(value.get("metric"), str):
        yield value["metric"]
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _metrics(part)


def _without(value: Any, metrics: Set[str]) -> Any:
    """A value without the rows of some metrics, and without what depends on them."""
    if isinstance(value, dict):
        return {name: _without(part, metrics) for name, part in value.items() if name not in OVER_ALL}
    if isinstance(value, list):
        named = ({part.get(name) for name in ("metric", "one", "other")} if isinstance(part, dict) else set() for part in value)
        return [_without(part, metrics) for part, names in zip(value, named, strict=True) if not metrics & names]
    return value


@input_errors_as_faults
def item_faults(path: Path, scores: TextScores, skipped: Collection[str] = ()) -> Iterator[Finding]:
    """The first value of each metric, and of word margins, that the texts do not give; ``skipped`` are metrics that were not run."""
    with parquet_errors(path), pq.ParquetFile(path) as table:
        check_group_sizes(path, table.metadata)
        columns = pa.schema([column for column in table.schema_arrow if column.name not in skipped])
        if columns.equals(scores.schema):
            yield from _score_differences(path, table, scores)
            return
        names = ", ".join(f'"{name}"' for name in sorted({*columns.names} ^ {*scores.schema.names})) or "their types or order"
        yield Finding(str(path), f"does not have the columns of the metrics: {names}")


def _score_differences(path: Path, table: pq.ParquetFile, scores: TextScores) -> Iterator[Finding]:
    """The first row of another text, or else the first value of each metric that differs."""
    first, counts, before = dict[str, tuple[int, str]](), Counter[str](), 0
    for number, derived in enumerate(scores.groups()):
        # A file with fewer groups has other rows.
        stored = table.read_row_group(number, scores.schema.names) if number < table.num_row_groups else scores.schema.empty_table()
        stored.validate(full=True)
        if (row := _first_other_text(stored, derived)) is not None:
            yield Finding(f"{path}: row {before + row}", "belongs to another text than the data has in this row")
            return
        for name in (WORD_MARGIN, *scores.scores):
            rows = _different_scores(name, stored, derived)
            counts[name] += len(rows)
            for row in rows[:1]:
                (ours,), (theirs,) = (group.slice(row, 1).to_pylist() for group in (stored, derived))
                what = f'"{theirs["pair_id"]}", {theirs["variant"]}: {name} is {ours[name]}, but its texts give {theirs[name]}'
                first.setdefault(name, (before + row, what))
        before += derived.num_rows
    if table.metadata.num_rows != before:
        yield Finding(str(path), f"has {table.metadata.num_rows} rows, but the data gives {before}")
    for name, (row, what) in first.items():
        more = f", and {counts[name] - 1} more values of this column differ" if counts[name] > 1 else ""
        yield Finding(f"{path}: row {row}", what + more)


def _different_scores(name: str, stored: pa.Table, derived: pa.Table) -> list[int]:
    """The rows whose scores by a metric differ by more than machines do; a missing score equals a missing one alone."""
    ours, theirs = (table.column(name).to_numpy().astype(np.float64) for table in (stored, derived))
    near = np.abs(ours - theirs) <= TOLERANCE.get(name, EXACT) + ROUNDING * np.abs(theirs)
    rows: list[int] = np.flatnonzero(~(near | (np.isnan(ours) & np.isnan(theirs)))).tolist()
    return rows


def _first_other_text(stored: pa.Table, derived: pa.Table) -> int | None:
    """The first row of another text."""
    ours, theirs = (table.select([name for name, _ in NAMED]) for table in (stored, derived))
    if ours.equals(theirs):
        return None
    pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=False)
    return next((row for row, (text, other) in enumerate(pairs) if text != other), min(stored.num_rows, derived.num_rows))
