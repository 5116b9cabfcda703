"""Scores from elsewhere: what a judge gave each variant, read from a file and put on the same stand as a metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import csv_rows
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS
from empathy_eval.metrics.protocol import Array, MeanMetric, with_count
from empathy_eval.metrics.scoring import Pairs

SCORE_COLUMNS = ("pair_id", "variant", "score")
MOST_PROBLEMS = 100


class Given(MeanMetric):
    """A metric whose scores are known already; what it read is not."""

    reads = ()

    def __init__(self, name: str, signature: str, scores: Mapping[tuple[str, str], float], higher_is_better: bool) -> None:
        self.name, self.signature, self.higher_is_better = name, signature, higher_is_better
        self._scores = scores

    @property
    def pair_ids(self) -> set[str]:
        """The pairs that are scored."""
        return {pair_id for pair_id, _ in self._scores}

    def looked_up(self, pairs: Pairs) -> dict[str, Array]:
        """The statistics of each variant of these pairs; nan where there is no score."""
        return {name: with_count([self._scores.get((pair_id, name), math.nan) for pair_id in pairs.ids]) for name in pairs.variants}


@dataclass(frozen=True)
class _Line:
    """A row of the file with its place."""

    where: str
    row: dict[str, Any]


def read_scores(path: Path, pair_ids: Sequence[str], control_ids: Sequence[str], *, higher_is_better: bool = True) -> Given:
    """The scores of a CSV file with the columns ``pair_id``, ``variant``, ``score``; other columns are passed over.

    A pair may be left out, but one that is there has both its variants, and both controls or none.

    Raises:
        InputError: for unknown pairs, missing or unknown variants, scores given twice and words for numbers; all at once.
    """
    problems: list[Problem] = []
    scores: dict[tuple[str, str], float] = {}
    known, controls = set(pair_ids), set(control_ids)
    for line in _lines(path):
        found = [Problem(f"{line.where}: {place}", what, fix) for place, what, fix in violations(line.row, "scores_row")]
        pair_id, variant = line.row["pair_id"], line.row["variant"]
        if not found and pair_id not in (known if variant in PAIR_VARIANTS else controls):
            what = f'"{pair_id}" is no pair of this release' + ("" if variant in PAIR_VARIANTS else f" with the control {variant}")
            found.append(Problem(line.where, what, "score the release that is named"))
        elif not found and (pair_id, variant) in scores:
            found.append(Problem(line.where, f'"{pair_id}", {variant} was scored before', "leave one score"))
        elif not found:
            scores[pair_id, variant] = line.row["score"]
        problems += found
    problems += _gaps(path, scores)
    if not scores and not problems:
        problems.append(Problem(str(path), "holds no score", "write a line for each variant of each pair"))
    if problems:
        more = len(problems) - MOST_PROBLEMS
        rest = [Problem(str(path), f"has {more} more problems", "mend these first")] if more > 0 else []
        raise InputError(problems[:MOST_PROBLEMS] + rest)
    return Given(path.stem, signature_line(file=digest_file(path)[:16], reads="unknown"), scores, higher_is_better)


def _lines(path: Path) -> Iterator[_Line]:
    lines = csv_rows(path)
    _, names = next(lines, (0, list[str]()))
    if missing := [name for name in SCORE_COLUMNS if name not in names]:
        raise input_error(path, f"has no column {', '.join(missing)}", f"the first line names the columns: {','.join(SCORE_COLUMNS)}")
    for number, cells in lines:
        if cells:
            row = dict(zip_longest(names, cells[: len(names)], fillvalue=""))
            yield _Line(f"{path}: line {number}", {name: _value(name, row[name]) for name in SCORE_COLUMNS})


def _value(name: str, cell: str) -> str | float:
    """A cell; a score as the finite number it holds, or as the text that the schema refuses."""
    text = cell.strip()
    if name != "score":
        return text
    try:
        return number if math.isfinite(number := float(text)) else text
    except ValueError:
        return text


def _gaps(path: Path, scores: Mapping[tuple[str, str], float]) -> Iterator[Problem]:
    """Pairs that lack a variant, or have one control of two."""
    for pair_id in dict.fromkeys(pair for pair, _ in scores):
        has = [cell for cell in CELLS if (pair_id, cell) in scores]
        wanted = CELLS if set(has) & set(CONTROLS) else PAIR_VARIANTS
        if lacking := [cell for cell in wanted if cell not in has]:
            yield Problem(str(path), f'"{pair_id}" has no score of {" and ".join(lacking)}', "score every variant of a pair")
