"""Tables are written in groups of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from empathy_eval.base.tabular import TableWriter, table_batches


def test_rows_lie_in_groups_of_two_thousand_and_are_read_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "numbers.parquet"
    with TableWriter(path, pa.schema([("number", pa.int64())])) as writer:
        for number in range(4001):
            writer.add({"number": number})
    found = pq.read_metadata(path)
    assert [found.row_group(place).num_rows for place in range(found.num_row_groups)] == [2000, 2000, 1]
    assert [one for batch in table_batches(path) for one in batch.column(0).to_pylist()] == list(range(4001))
