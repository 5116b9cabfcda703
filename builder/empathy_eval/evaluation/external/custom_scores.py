"""What metrics and files of scores give texts that are no pairs, and of which texts a metric warns."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from empathy_eval.base.errors import InputError, Problem, input_error, nearest_column
from empathy_eval.base.files import whole_file
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import Writer, headed_rows, json_rows
from empathy_eval.evaluation.external.custom_texts import REPLY, Texts, meant, raise_at_most
from empathy_eval.evaluation.external.score_file import SUFFIXES, Given
from empathy_eval.metrics.consistency import consistent
from empathy_eval.metrics.faults import MetricFault, attempted
from empathy_eval.metrics.protocol import Array, Metric, Ranged, with_count
from empathy_eval.metrics.registry import Found
from empathy_eval.metrics.scoring import PLAIN, Scoring, statistics_of

COLUMNS = pa.schema([*((name, pa.string()) for name in ("metric", "item", "system")), ("score", pa.float64()), ("signature", pa.string())])
# Of texts that a metric warns of, so many are named.
SHOWN = 3


@dataclass(frozen=True)
class Column:
    """What a metric gave the texts: their statistics, rows of nan for texts without a score."""

    metric: Metric
    statistics: Array

    @property
    def there(self) -> NDArray[np.bool_]:
        """Which texts have a score."""
        return ~np.isnan(self.statistics[:, 0])

    @property
    def scores(self) -> Array:
        """The score of each text, cut to the places that are the same in every process; nan where there is none."""
        found = np.full(len(self.statistics), np.nan)
        found[self.there] = np.round(self.metric.scores(self.statistics[self.there]), self.metric.places)
        return found


@dataclass(frozen=True)
class Outside:
    """Texts that a metric was not made for, by one reason: how many of all, and the first of them."""

    metric: str
    reason: str
    texts: int
    of: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        outside = f"{self.texts} of {self.of} texts are outside of what it was made for"
        return f"{self.metric}: {outside}: {self.reason}; first {', '.join(self.first)}"


@dataclass(frozen=True)
class Scores:
    """All columns, in the order asked for; ``faults`` say what failed, ``outside`` what a metric warns of."""

    texts: Texts
    columns: tuple[Column, ...]
    faults: tuple[MetricFault, ...]
    outside: tuple[Outside, ...]

    def told(self) -> dict[str, Any]:
        """Warnings and faults as JSON values."""
        return {"outside": [asdict(one) for one in self.outside], "faults": [str(one) for one in self.faults]}


def scored(texts: Texts, found: Found, given: Sequence[Given] = (), scoring: Scoring = PLAIN) -> Scores:
    """Scores all texts by all metrics, and looks up what is given.

    Raises:
        InputError: for a measure of whole sets of texts, and a metric that reads a reference where a text has none; all at once.
    """
    _refuse_unfit(texts, found)
    (made,) = consistent(found.metrics, [(texts.pairs, statistics_of(found.metrics, texts.pairs, scoring))], scoring)
    columns = [Column(one, made[one.name].rows[REPLY]) for one in found.metrics if made[one.name].rows]
    faults = [one.fault for one in made.values() if one.fault]
    outside = list[Outside]()
    for metric in found.metrics:
        warned = attempted(metric.name, lambda metric=metric: list(_outside(metric, texts)))  # type: ignore[misc]
        if isinstance(warned, MetricFault):
            faults.append(warned)
        else:
            outside += warned
    columns += [Column(one, with_count(one.of(texts.keys))) for one in given]
    return Scores(texts, tuple(columns), tuple(faults), tuple(outside))


def _refuse_unfit(texts: Texts, found: Found) -> None:
    what, fix = "measures whole sets of texts, and gives no text a score", "score a release with it, or leave it out"
    problems = [Problem(f'metric "{one.name}"', what, fix) for one in found.diversities]
    without = [item for item, reference in zip(texts.items, texts.references, strict=True) if reference is None]
    for metric in found.metrics if without else ():
        if "reference" in metric.reads:
            what = f"reads a reference, and {len(without)} of {len(texts)} texts have none, first {without[0]}"
            problems.append(Problem(f'metric "{metric.name}"', what, "write a reference into every line, or leave the metric out"))
    if problems:
        raise InputError(problems)


def _outside(metric: Metric, texts: Texts) -> Iterator[Outside]:
    """What a metric warns of, by reason in the order in which they come first."""
    if not isinstance(metric, Ranged):
        return
    rows: dict[str, list[int]] = defaultdict(list)
    for row, reason in metric.outside(texts.segments):
        rows[str(reason)].append(range(len(texts))[row])
    for reason, some in rows.items():
        different = sorted(set(some))
        yield Outside(metric.name, reason, len(different), len(texts), tuple(texts.items[row] for row in different[:SHOWN]))


def read_own_scores(path: Path, items: Sequence[str], *, higher_is_better: bool = True) -> Given:
    """The scores of a CSV, TSV or JSONL file by its suffix, with the columns ``item`` and ``score``; other columns are passed over.

    Raises:
        InputError: for another suffix, unknown items, scores given twice and what is no number; all at once.
    """
    known, problems, scores = set(items), list[Problem](), dict[tuple[str, str], float]()
    for where, one in score_rows(path, ("item", "score")):
        if isinstance(one, Problem):
            problems.append(one)
            continue
        broken = violations(one, "own_score", by_hand=True)
        found = [Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in broken]
        if not found and one["item"] not in known:
            fix = f"use the items of the scored file{meant(one['item'], known, problems)}"
            found.append(Problem(where, f'"{one["item"]}" is not an item of the texts', fix))
        elif not found and (one["item"], REPLY) in scores:
            found.append(Problem(where, f'"{one["item"]}" was scored before', "keep one score"))
        problems += found
        if not found:
            scores[one["item"], REPLY] = float(one["score"])
    if not scores and not problems:
        problems.append(Problem(str(path), "holds no scores", "write a line for each item"))
    raise_at_most(problems, path)
    return Given(path.stem, signature_line(file=digest_file(path)[:16], reads="unknown"), scores, higher_is_better)


def score_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any] | Problem]]:
    """(place, the named columns) of each row of a CSV, TSV or JSONL file by its suffix, or what is wrong with the row.

    The first column is a name, the others are numbers.

    Raises:
        InputError: for another suffix, and a table that has not each column once.
    """
    if path.suffix.lower() == ".jsonl":
        for number, row in json_rows(path):
            yield f"{path}: line {number}", row if isinstance(row, Problem) else {name: row[name] for name in columns if name in row}
        return
    names, lines = headed_rows(path, SUFFIXES)
    if odd := [name for name in columns if names.count(name) != 1]:
        fix = f"name the columns in the first line: {','.join(columns)}{nearest_column(names, [one for one in odd if one not in names])}"
        raise input_error(path, f"does not have exactly one column {' and '.join(odd)}", fix)
    for number, cells in lines:
        where = f"{path}: line {number}"
        if any(cells[len(names) :]):
            yield where, Problem(where, f"has {len(cells)} cells, but the header has {len(names)}", "quote cells that hold commas")
        elif cells:
            row = dict(zip_longest(names, (cell.strip() for cell in cells[: len(names)]), fillvalue=""))
            yield where, {name: _number(row[name]) if place else row[name] for place, name in enumerate(columns)}


def _number(text: str) -> float | str:
    """The finite number that a cell holds, or its text, which the schema refuses."""
    try:
        return number if math.isfinite(number := float(text)) else text
    except ValueError:
        return text


def write_own_items(path: Path, scores: Scores) -> None:
    """Writes a row a metric and text, as parquet or CSV; a text without a score has an empty one."""
    rows = (
        {
            "metric": column.metric.name, "item": item, "system": system, "score": None if math.isnan(value) else value,
            "signature": column.metric.signature,
        }
        for column in scores.columns
        for item, system, value in zip(scores.texts.items, scores.texts.systems, column.scores.tolist(), strict=True)
    )  # fmt: skip
    with whole_file(path) as partial:
        if path.suffix == ".parquet":
            with Writer(partial, COLUMNS) as table:
                for row in rows:
                    table.add(row)
            return
        with partial.open("w", encoding="utf-8", newline="") as stream:
            lines = csv.DictWriter(stream, COLUMNS.names, lineterminator="\n")
            lines.writeheader()
            lines.writerows(rows)
