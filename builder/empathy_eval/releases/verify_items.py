"""The score of every text as a release tells it, against its recomputation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.tabular import readable, refuse_absurd
from empathy_eval.evaluation.text_scores import NAMED, WORD_MARGIN, TextScores
from empathy_eval.releases.verify_report import EXACT, TOLERANCE
from empathy_eval.releases.verify_rows import RESTORE

# By how much of itself a score may differ for being kept in so few digits.
DIGITS = 2e-7


def item_faults(path: Path, scores: TextScores, others: Collection[str] = ()) -> Iterator[Problem]:
    """Of each metric, and of word margins, the first value that is not the one that the texts give; ``others`` are metrics not run."""
    try:
        with readable(path), pq.ParquetFile(path) as table:
            refuse_absurd(path, table.metadata)
            yield from _unlike(path, table, scores, others)
    except InputError as error:
        yield from error.problems


def _unlike(path: Path, table: pq.ParquetFile, scores: TextScores, others: Collection[str]) -> Iterator[Problem]:
    told = [one for one in table.schema_arrow if one.name not in others]
    if not pa.schema(told).equals(scores.schema):
        differ = ", ".join(f'"{name}"' for name in sorted({one.name for one in told} ^ set(scores.schema.names))) or "their types or order"
        yield Problem(str(path), f"does not have the columns of the metrics: {differ}", RESTORE)
        return
    first, many, before = dict[str, tuple[int, str]](), Counter[str](), 0
    for number, anew in enumerate(scores.groups()):
        # A file with fewer groups is one with other rows.
        group = table.read_row_group(number, scores.schema.names) if number < table.num_row_groups else scores.schema.empty_table()
        group.validate(full=True)
        if group.num_rows != anew.num_rows or any(not group.column(name).equals(anew.column(name)) for name, _ in NAMED):
            row = before + _other_row(group, anew)
            yield Problem(f"{path}: row {row}", "belongs to another text than the data has in this row", RESTORE)
            return
        for name in (WORD_MARGIN, *scores.scores):
            for row in _differing(name, group, anew).tolist():
                many[name] += 1
                first.setdefault(name, (before + row, _said(name, group.slice(row, 1), anew.slice(row, 1))))
        before += anew.num_rows
    if table.metadata.num_rows != before:
        yield Problem(str(path), f"has {table.metadata.num_rows} rows, but the data gives {before}", RESTORE)
    for name, (row, said) in first.items():
        more = f", and {many[name] - 1} more values of this column differ" if many[name] > 1 else ""
        yield Problem(f"{path}: row {row}", said + more, RESTORE)


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
