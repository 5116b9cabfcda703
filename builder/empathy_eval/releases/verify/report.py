"""The tables of a report against their recomputation, and against the page that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from empathy_eval.base.errors import Finding, InputError, faults_of
from empathy_eval.base.tabular import check_group_sizes, parquet_errors
from empathy_eval.evaluation.crossed.shortcuts import LAST, WHOLE
from empathy_eval.evaluation.inversion.rows import FIGURES
from empathy_eval.evaluation.inversion.text_scores import NAMED, WORD_MARGIN, TextScores

# A number may differ by this much from its recomputation; BERTScore's embeddings vary with the machine, and a figure that counts
# ranks or exchanges jumps by a whole text where two scores are all but equal: by 0.005, and a share of few texts by one of those that the
# row is over. A shortcut has no figures but such.
EXACT = 1e-6
TOLERANCE = dict.fromkeys(("BERTScore F1", "BERTScore F1, last turn"), 1e-4)
# Of crossed items there are few, and a cosine that decides one otherwise is a jump by it.
COSINES = dict.fromkeys((LAST, WHOLE), 2e-2)
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


def comparable(told: dict[str, Any], anew: dict[str, Any], measured: Collection[str]) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Both tables without what cannot be compared where some metrics were not run here; and what the others are called.

    Those are the rows, the comparisons and the faults of the metrics that were not run, and what is made over every metric that stands
    in a table: all p-values after Holm, and what so many pairs could have shown.
    """
    others = [row["metric"] for name, row in rows(told) if name != "balance" and row["metric"] not in measured]
    return _of(told, measured), _of(anew, measured), list(dict.fromkeys(others))


def _of(tables: dict[str, Any], measured: Collection[str]) -> dict[str, Any]:
    """Tables with the rows and faults of some metrics alone, without what depends on the others."""

    def some(found: list[Any]) -> list[Any]:
        return [{**row, "differences": _without_holm(row["differences"])} for row in found if row["metric"] in measured]

    crossed = tables.get("crossed")
    attacked = [row for row in tables.get("attacks", {}).get("rows", ()) if row["metric"] in measured]
    twos = [one for one in tables.get("comparisons", ()) if {one["one"], one["other"]} <= set(measured)]
    return {
        **{name: value for name, value in tables.items() if name != "smallest"},
        "comparisons": [{**one, **_without_holm({name: one[name] for name in ("accuracy", "effect") if one[name]})} for one in twos],
        **{name: some(tables[name]) for name in ("inversion", "controls", "candidates")},
        "matched": {name: kept for name, found in tables["matched"].items() if (kept := some(found))},
        "groups": {name: {group: some(found) for group, found in groups.items()} for name, groups in tables["groups"].items()},
        **({"attacks": {**tables["attacks"], "rows": attacked, "told": []}} if "attacks" in tables else {}),
        **({"fairness": _fairness(tables["fairness"], measured)} if "fairness" in tables else {}),
        "faults": [one for one in tables["faults"] if one.startswith(tuple(f"metric {name}: " for name in measured))],
        **({"crossed": {**crossed, "metrics": [row for row in crossed["metrics"] if row["metric"] in measured]}} if crossed else {}),
    }


def _fairness(tables: dict[str, Any], measured: Collection[str]) -> dict[str, Any]:
    """The tables of fairness of some metrics alone, without what depends on the others."""

    def alone(gap: dict[str, Any] | None) -> dict[str, Any] | None:
        return gap and {**gap, "difference": {name: value for name, value in gap["difference"].items() if name != "holm"}}

    def some(found: list[Any]) -> list[Any]:
        return [{**row, **{name: alone(row[name]) for name in ("accuracy", "effect")}} for row in found if row["metric"] in measured]

    return {**tables, "groups": some(tables["groups"]), "names": some(tables["names"]), "told": []}


def _without_holm(differences: dict[str, Any]) -> dict[str, Any]:
    return {contrast: {name: value for name, value in one.items() if name != "holm"} for contrast, one in differences.items()}


def rows(tables: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(table, row) of all rows of all tables."""
    for name in ("inversion", "controls", "candidates", "balance"):
        yield from ((name, row) for row in tables[name])
    for name, found in tables["matched"].items():
        yield from ((f"matched: {name}", row) for row in found)
    for grouping, groups in tables["groups"].items():
        for name, found in groups.items():
            yield from ((f"{grouping}: {name}", row) for row in found)


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
        if group.num_rows != anew.num_rows or any(not group.column(name).equals(anew.column(name)) for name, _ in NAMED):
            row = before + _other_row(group, anew)
            yield Finding(f"{path}: row {row}", "belongs to another text than the data has in this row")
            return
        for name in (WORD_MARGIN, *scores.scores):
            for row in _differing(name, group, anew).tolist():
                many[name] += 1
                first.setdefault(name, (before + row, _said(name, group.slice(row, 1), anew.slice(row, 1))))
        before += anew.num_rows
    if table.metadata.num_rows != before:
        yield Finding(str(path), f"has {table.metadata.num_rows} rows, but the data gives {before}")
    for name, (row, said) in first.items():
        more = f", and {many[name] - 1} more values of this column differ" if many[name] > 1 else ""
        yield Finding(f"{path}: row {row}", said + more)


def _differing(name: str, told: pa.Table, anew: pa.Table) -> NDArray[np.int64]:
    """The rows whose scores by a metric differ by more than machines do; no score is like no score alone."""
    one, other = (table.column(name).to_numpy().astype(np.float64) for table in (told, anew))
    near = np.abs(one - other) <= TOLERANCE.get(name, EXACT) + DIGITS * np.abs(other)
    return np.flatnonzero(~(near | (np.isnan(one) & np.isnan(other))))


def _other_row(told: pa.Table, anew: pa.Table) -> int:
    """The first row that is of another text."""
    rows = min(told.num_rows, anew.num_rows)
    pairs = zip(*(told.column(name).slice(0, rows).to_pylist() for name, _ in NAMED), strict=True)
    others = zip(*(anew.column(name).slice(0, rows).to_pylist() for name, _ in NAMED), strict=True)
    return next((row for row, (one, other) in enumerate(zip(pairs, others, strict=True)) if one != other), rows)


def _said(name: str, told: pa.Table, anew: pa.Table) -> str:
    one, other = told.to_pylist()[0], anew.to_pylist()[0]
    return f'"{other["pair_id"]}", {other["variant"]}: {name} is {one[name]}, but its texts give {other[name]}'
