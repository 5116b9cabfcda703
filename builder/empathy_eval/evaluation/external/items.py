"""Scores a text and verdicts a pair, as a file: what every figure of a metric is made of."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import whole_file
from empathy_eval.base.tabular import TableWriter
from empathy_eval.design.contrasts import CELLS, PAIRS, RAW, STANCE_FAR, STANCE_NEAR, TWO_BY_TWO
from empathy_eval.evaluation.corpus.pairs import Corpus
from empathy_eval.evaluation.inversion.inversion import Scores, Statistics, duels_of, scores_of
from empathy_eval.metrics.protocol import Array, Metric

# What the verdict of a contrast is called.
VERDICTS = {RAW: "verdict_released", STANCE_NEAR: "verdict_near", STANCE_FAR: "verdict_far"}
SCORES = {name: f"score_{name}" for name in CELLS}
ABOUT = [(name, pa.string()) for name in ("metric", "pair_id", "dialogue_id", "scenario", "phase", "strategy")]
COLUMNS = pa.schema([*ABOUT, *((name, pa.float64()) for name in (*SCORES.values(), *VERDICTS.values())), ("signature", pa.string())])
SUFFIXES = (".parquet", ".csv")


def check_items(path: Path) -> None:
    """Refuses a file of a form that there is not.

    Raises:
        InputError: for it.
    """
    if path.suffix not in SUFFIXES:
        raise input_error(path, f'"{path.suffix}" is not a format for items', f"use a name that ends in {' or '.join(SUFFIXES)}")


def write_items(path: Path, pairs: Corpus, controls: Corpus, rated: Sequence[Scores]) -> None:
    """Writes a row a metric and pair, as parquet or CSV: the score of each variant, and a verdict a contrast of two.

    A verdict is 1 where the kind text is rated better, 0 where the cold one is, one half for a tie. What a metric gave no score, and
    what a pair has no control for, is null.

    Args:
        rated: each metric with its statistics of the pairs and of those with controls, by variant.
    """
    place = {pair: row for row, pair in enumerate(controls.pair_ids)}
    at = np.array([place.get(pair, -1) for pair in pairs.pair_ids], dtype=np.int64)
    write_rows(path, COLUMNS, _rows(pairs, at, rated))


def write_rows(path: Path, columns: pa.Schema, rows: Iterable[dict[str, Any]]) -> None:
    """Writes rows as parquet or CSV, by the suffix."""
    with whole_file(path) as partial:
        if path.suffix == ".parquet":
            with TableWriter(partial, columns) as table:
                for row in rows:
                    table.add(row)
            return
        with partial.open("w", encoding="utf-8", newline="") as stream:
            lines = csv.DictWriter(stream, columns.names, lineterminator="\n")
            lines.writeheader()
            lines.writerows(rows)


def _rows(pairs: Corpus, at: Any, rated: Sequence[Scores]) -> Iterator[dict[str, Any]]:
    for metric, released, cells in rated:
        columns = _columns(metric, released, cells, at)
        for row, pair_id in enumerate(pairs.pair_ids):
            about = {name: pairs.groups[name][row] for name in ("scenario", "phase", "strategy")}
            yield {
                "metric": metric.name, "pair_id": pair_id, "dialogue_id": pairs.dialogues[row], **about,
                **{name: None if np.isnan(value := column[row]) else float(value) for name, column in columns.items()},
                "signature": metric.signature,
            }  # fmt: skip


def _columns(metric: Metric, released: Statistics, cells: Statistics, at: Any) -> dict[str, Array]:
    """Scores and verdicts by column over all pairs, nan where there is none."""

    def spread(values: Array) -> Array:
        """Values of the pairs with controls, over all pairs."""
        return np.where(at >= 0, np.append(values, np.nan)[at], np.nan)

    known = {name: scores_of(metric, one) for name, one in released.items()}
    known |= {name: spread(scores_of(metric, one)) for name, one in cells.items() if name not in known}
    missing = np.full(len(at), np.nan)
    verdicts = {one.name: duels_of(metric, released, one).won() for one in PAIRS}
    verdicts |= {one.name: spread(duels_of(metric, cells, one).won()) for one in TWO_BY_TWO if one.sides and cells}
    return {column: known.get(name, missing) for name, column in SCORES.items()} | {
        column: verdicts.get(name, missing) for name, column in VERDICTS.items()
    }
