"""The column ``difficulty``: filled in once a release is measured, and held against its recomputation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from empathy_eval.base.errors import Problem
from empathy_eval.base.tabular import Writer, table_batches
from empathy_eval.design.dataset import COLUMNS, DIFFICULTY, SPLITS, file_of
from empathy_eval.releases.verify_rows import RESTORE

CONFIGS = ("pairs", "controls")
# A margin may differ by this much from its recomputation.
WITHIN = 1e-6


def fill(folder: Path, difficulty: Mapping[str, float]) -> None:
    """Writes the difficulty of each pair into its rows, a group of rows at a time; null where there is none."""
    for config in CONFIGS:
        place = COLUMNS[config].get_field_index(DIFFICULTY)
        for split in SPLITS:
            path = file_of(folder, config, split)
            partial = path.with_suffix(".partial")
            with pq.ParquetFile(path) as table, Writer(partial, table.schema_arrow) as writer:
                for group in range(table.num_row_groups):
                    rows = table.read_row_group(group)
                    values = pa.array(map(difficulty.get, rows.column("pair_id").to_pylist()), pa.float64())
                    writer.add_table(rows.set_column(place, COLUMNS[config].field(place), values))
            partial.replace(path)


def difficulty_faults(folder: Path, difficulty: Mapping[str, float]) -> Iterator[Problem]:
    """Every row whose difficulty is not the one that the texts of the release give."""
    for config in CONFIGS:
        for split in SPLITS:
            path, row = file_of(folder, config, split), 0
            for batch in table_batches(path, ["pair_id", DIFFICULTY]):
                for name, told in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    found = difficulty.get(name)
                    if not _same(told, found):
                        yield Problem(f"{path}: row {row}", f'"{name}": {DIFFICULTY} is {told}, its texts give {found}', RESTORE)
                    row += 1


def _same(told: float | None, found: float | None) -> bool:
    # What is no number is not within any distance.
    return told is None and found is None if told is None or found is None else abs(told - found) <= WITHIN + 1e-12
