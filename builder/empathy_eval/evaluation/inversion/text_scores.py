"""The score of every text and the verdict on every pair, as files that ``explore`` filters by and ``verify`` makes again."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import whole_file
from empathy_eval.base.tabular import TableWriter
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS, PAIRS, RAW, STANCE_FAR, STANCE_NEAR, TWO_BY_TWO
from empathy_eval.evaluation.corpus.pairs import Corpus
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import Scores, Statistics, duels_of, scores_of
from empathy_eval.evaluation.shortcuts.texts import REFERENCE
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.metrics.scoring import Pairs, statistics_of
from empathy_eval.metrics.vader import Vader

ITEMS = "items.parquet"
TEXTS = (REFERENCE, *PAIR_VARIANTS, *CONTROLS)
NAMED = [("pair_id", pa.string()), ("variant", pa.string())]
WORD_MARGIN = "word_margin"
# Columns that are no metric's.
BESIDE = (*(name for name, _ in NAMED), WORD_MARGIN)
# Seven digits are what a score says, and half of the bytes.
SCORE = pa.float32()
# Pairs of a group of rows. Who reads this file reads all of it, so groups are as large as memory likes: 50,000 rows at most.
GROUP = 10_000


@dataclass(frozen=True)
class TextScores:
    """The score of every text by metric, shape (pairs, texts), nan where there is none; ``there`` says which texts a pair has.

    The texts of a pair are those of ``TEXTS``, in that order. A metric that reads a reference gives references none.
    ``word_margins`` are by pair, as :class:`empathy_eval.evaluation.inversion.rows.ShortcutAudit` has them.
    """

    pair_ids: Sequence[str]
    there: NDArray[np.bool_]
    scores: Mapping[str, NDArray[np.float32]]
    word_margins: Mapping[str, float] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return pa.schema([*NAMED, (WORD_MARGIN, pa.float64()), *((name, SCORE) for name in self.scores)])

    def groups(self) -> Iterator[pa.Table]:
        """The groups of rows of the file: pair after pair the texts that it has."""
        for start in range(0, len(self.pair_ids), GROUP):
            rows = slice(start, start + GROUP)
            pairs, texts = np.nonzero(self.there[rows])
            names = [pa.array(some, pa.string()).take(pa.array(at)) for some, at in ((self.pair_ids[rows], pairs), (TEXTS, texts))]
            names.append(pa.array(map(self.word_margins.get, names[0].to_pylist()), pa.float64()))
            scores = [pa.array(one[rows][pairs, texts], SCORE, from_pandas=True) for one in self.scores.values()]
            yield pa.table([*names, *scores], self.schema)


def of_references(stand: Evaluation) -> dict[str, Array]:
    """What the metrics that read no reference give references; what the audit needs of it is kept for it.

    A reference that a metric fails on has no score, which is no fault of the report: none of its tables is made of it.
    """
    alone = [one for one in stand.found.metrics if REFERENCE not in one.reads]
    pairs = Pairs(stand.pairs.pair_ids, stand.pairs.references, {REFERENCE: stand.pairs.references}, stand.pairs.contexts)
    made = {name: one.rows for name, one in statistics_of(alone, pairs, stand.scoring).items() if one.rows}
    if Vader.name in made:
        stand.known[Vader.name] = made[Vader.name]
    return {one.name: scores_of(one, made[one.name][REFERENCE]) for one in alone if one.name in made}


def text_scores(
    references: Mapping[str, Array], pairs: Corpus, controls: Corpus,
    rated: Sequence[Scores],
) -> TextScores:  # fmt: skip
    """The scores of all texts, from those of references and the statistics that the tables are made of."""
    place = {pair: row for row, pair in enumerate(pairs.pair_ids)}
    some = np.array([place[pair] for pair in controls.pair_ids], dtype=np.int64)
    there = np.ones((len(pairs), len(TEXTS)), dtype=bool)
    there[:, -len(CONTROLS) :] = np.isin(np.arange(len(pairs)), some)[:, None]
    found = {}
    for metric, released, cells in rated:
        made = found[metric.name] = np.full(there.shape, np.nan, dtype=np.float32)
        made[:, 0] = references.get(metric.name, np.nan)
        for name, statistics in released.items():
            made[:, TEXTS.index(name)] = scores_of(metric, statistics)
        for name in CONTROLS if cells else ():
            made[some, TEXTS.index(name)] = scores_of(metric, cells[name])
    return TextScores(pairs.pair_ids, there, found)


def write_text_scores(path: Path, scores: TextScores, about: Mapping[str, str] | None = None) -> None:
    """Writes a row a text, as parquet, with what is told ``about`` the file in its metadata."""
    with whole_file(path) as partial, TableWriter(partial, scores.schema, about) as table:
        for group in scores.groups():
            table.add_table(group)


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
