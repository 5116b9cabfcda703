"""The tables of a report against their recomputation, and against the page that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Set
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from empathy_eval.base.errors import Finding, InputError, faults_of
from empathy_eval.base.tabular import check_group_sizes, parquet_errors
from empathy_eval.evaluation.crossed_items import LAST, WHOLE_CONTEXT
from empathy_eval.evaluation.inversion.rows import FIGURES
from empathy_eval.evaluation.measure import NAMED, WORD_MARGIN, TextScores

# A number may differ by this much from its recomputation; BERTScore's embeddings vary with the machine, and a figure that counts
# ranks or exchanges jumps by a whole text where two scores are all but equal: by 0.005, and a share of few texts by one of those that the
# row is over. A shortcut has no figures but such.
EXACT = 1e-6
TOLERANCE = dict.fromkeys(("BERTScore F1", "BERTScore F1, last turn"), 1e-4)
# Of crossed items there are few, and a cosine that decides one otherwise is a jump by it.
COSINES = dict.fromkeys((LAST, WHOLE_CONTEXT), 2e-2)
SHORTCUTS = {"embedding": 2e-3}
SHARES = ("accuracy", "ties", "own_ties", "rises", "falls", *FIGURES)
COUNTED = ("p", "holm", "auc", "effect", "in_effects", *SHARES)
JUMP, TEXTS = 5e-3, ("eligible", "items", "pairs")


def disagreements(told: Any, found: Any, where: str = "", tolerance: float = EXACT, jump: float = JUMP) -> Iterator[tuple[str, str]]:
    """(where, what) of all that the tables say otherwise than their recomputation does, or not at all."""
    if isinstance(found, dict) and isinstance(told, dict):
        jump = next((max(JUMP, 1 / found[name]) for name in TEXTS if found.get(name)), jump)
        within = (TOLERANCE | COSINES).get(found.get("metric", ""), tolerance)
        if any(found.get(side) in TOLERANCE for side in ("one", "other")) or where == "smallest":
            within = JUMP
        # A row of the audit has a name, the line of a contrast that of its shortcut.
        loose = SHORTCUTS.get(str(found.get("shortcut", found.get("name"))), 0.0) if where.startswith("shortcuts") else 0.0
        loose = jump if loose and jump > JUMP else loose
        for name in [*found, *(name for name in told if name not in found)]:
            if name not in told or name not in found:
                yield _at(where, name), "is missing" if name in found else "is not in the data"
            else:
                counted = within > EXACT and name in COUNTED and not where.startswith("shortcuts")
                step = jump if name in SHARES else JUMP
                yield from disagreements(told[name], found[name], _at(where, name), max(within, step if counted else loose), jump)
    elif isinstance(found, list) and isinstance(told, list):
        if len(told) != len(found):
            yield where, f"has {len(told)} entries, but the data gives {len(found)}"
        for place, (one, other) in enumerate(zip(told, found, strict=False)):
            yield from disagreements(one, other, _at(where, _name(other, place)), tolerance, jump)
    elif not _same(told, found, tolerance):
        yield where, f"says {shown(told)}, but the data gives {shown(found)}"


def _at(where: str, name: str) -> str:
    return f"{where}: {name}" if where else name


def _name(value: Any, place: int) -> str:
    """A row is called by its metric, another entry by its place."""
    return str(value["metric"]) if isinstance(value, dict) and "metric" in value else str(place)


def shown(value: Any) -> str:
    """A value, cut where a stranger's gets long."""
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _same(told: Any, found: Any, tolerance: float) -> bool:
    if isinstance(found, int | float) and isinstance(told, int | float) and not isinstance(found, bool) and not isinstance(told, bool):
        # The rounding of a difference of decimals is no difference.
        return abs(told - found) <= tolerance + 1e-12
    return bool(told == found and type(told) is type(found))


# What is made over all metrics of a table: p-values after Holm and what is told by them, and what so many pairs could have shown.
OVER_ALL = {"holm", "told", "smallest"}


def comparable(told: dict[str, Any], anew: dict[str, Any], measured: Collection[str]) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Both tables without what cannot be compared where some metrics were not run here; and what the others are called.

    Those are the rows, the comparisons and the faults of the metrics that were not run, and what is made over all metrics of a table.
    """
    known = {*measured, *_metrics([told["balance"], (told.get("crossed") or {}).get("shortcuts")])}
    others = dict.fromkeys(name for name in _metrics(told) if name not in known)
    faults = tuple(f"metric {name}: " for name in measured)
    both = ({**some, "faults": [one for one in some["faults"] if one.startswith(faults)]} for some in (told, anew))
    one, other = (_without(some, others.keys()) for some in both)
    return one, other, list(others)


def _metrics(value: Any) -> Iterator[str]:
    """The metrics that rows at any depth are of."""
    if isinstance(value, dict) and isinstance(value.get("metric"), str):
        yield value["metric"]
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _metrics(one)


def _without(value: Any, metrics: Set[str]) -> Any:
    """A value without the rows of some metrics, and without what depends on them."""
    if isinstance(value, dict):
        return {name: _without(one, metrics) for name, one in value.items() if name not in OVER_ALL}
    if isinstance(value, list):
        of = [{one.get(name) for name in ("metric", "one", "other")} if isinstance(one, dict) else set() for one in value]
        return [_without(one, metrics) for one, its in zip(value, of, strict=True) if not metrics & its]
    return value


# By how much of itself a score may differ for being kept in so few digits.
DIGITS = 2e-7


def item_faults(path: Path, scores: TextScores, others: Collection[str] = ()) -> Iterator[Finding]:
    """Of each metric, and of word margins, the first value that is not the one that the texts give; ``others`` are metrics not run."""
    try:
        with parquet_errors(path), pq.ParquetFile(path) as table:
            check_group_sizes(path, table.metadata)
            yield from _unlike(path, table, scores, others)
    except InputError as error:
        yield from faults_of(error.problems)


def _unlike(path: Path, table: pq.ParquetFile, scores: TextScores, others: Collection[str]) -> Iterator[Finding]:
    told = [one for one in table.schema_arrow if one.name not in others]
    if not pa.schema(told).equals(scores.schema):
        differ = ", ".join(f'"{name}"' for name in sorted({one.name for one in told} ^ set(scores.schema.names))) or "their types or order"
        yield Finding(str(path), f"does not have the columns of the metrics: {differ}")
        return
    first, many, before = dict[str, tuple[int, str]](), Counter[str](), 0
    for number, anew in enumerate(scores.groups()):
        # A file with fewer groups is one with other rows.
        group = table.read_row_group(number, scores.schema.names) if number < table.num_row_groups else scores.schema.empty_table()
        group.validate(full=True)
        if (row := _other_row(group, anew)) is not None:
            yield Finding(f"{path}: row {before + row}", "belongs to another text than the data has in this row")
            return
        for name in (WORD_MARGIN, *scores.scores):
            for row in _differing(name, group, anew):
                many[name] += 1
                (one,), (other,) = (some.slice(row, 1).to_pylist() for some in (group, anew))
                what = f'"{other["pair_id"]}", {other["variant"]}: {name} is {one[name]}, but its texts give {other[name]}'
                first.setdefault(name, (before + row, what))
        before += anew.num_rows
    if table.metadata.num_rows != before:
        yield Finding(str(path), f"has {table.metadata.num_rows} rows, but the data gives {before}")
    for name, (row, what) in first.items():
        more = f", and {many[name] - 1} more values of this column differ" if many[name] > 1 else ""
        yield Finding(f"{path}: row {row}", what + more)


def _differing(name: str, told: pa.Table, anew: pa.Table) -> list[int]:
    """The rows whose scores by a metric differ by more than machines do; no score is like no score alone."""
    one, other = (table.column(name).to_numpy().astype(np.float64) for table in (told, anew))
    near = np.abs(one - other) <= TOLERANCE.get(name, EXACT) + DIGITS * np.abs(other)
    found: list[int] = np.flatnonzero(~(near | (np.isnan(one) & np.isnan(other)))).tolist()
    return found


def _other_row(told: pa.Table, anew: pa.Table) -> int | None:
    """The first row that is of another text, if one is."""
    one, other = (table.select([name for name, _ in NAMED]) for table in (told, anew))
    if one.equals(other):
        return None
    pairs = zip(one.to_pylist(), other.to_pylist(), strict=False)
    return next((row for row, (its, wanted) in enumerate(pairs) if its != wanted), min(told.num_rows, anew.num_rows))
