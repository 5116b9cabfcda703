"""Contexts of a release: what its column holds, made when asked for, and turns that are empty are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.dataset import COLUMNS, SPLITS, column, file_of
from empathy_eval.evaluation.corpus.pairs import read_contexts


@pytest.mark.parametrize("config", ["pairs", "controls"])
def test_contexts_are_the_rows_of_the_column_in_their_order(config: str, seeds: Path) -> None:
    found, rows = read_contexts(seeds, config), column(seeds, config, "context")
    assert len(found) == len(rows) and list(found) == rows
    assert found[-1] == rows[-1] and found[3:5] == rows[3:5]
    with pytest.raises(IndexError):
        found[len(rows)]


def test_a_pair_without_turns_before_it_has_none_and_an_empty_turn_is_refused(light: Path, tmp_path: Path) -> None:
    shutil.copytree(light, tmp_path / "release")
    path = next(one for one in (file_of(tmp_path / "release", "pairs", split) for split in SPLITS) if pq.read_metadata(one).num_rows)
    first, *rest = pq.read_table(path).to_pylist()
    pq.write_table(pa.Table.from_pylist([{**first, "context": []}, *rest], COLUMNS["pairs"]), path)
    found = read_contexts(tmp_path / "release", "pairs")
    assert [] in found and len(found) == len(column(light, "pairs", "pair_id"))
    pq.write_table(pa.Table.from_pylist([{**first, "context": [{"role": "seeker", "text": None}]}], COLUMNS["pairs"]), path)
    with pytest.raises(InputError, match='a turn of the column "context" of pairs is empty'):
        read_contexts(tmp_path / "release", "pairs")
