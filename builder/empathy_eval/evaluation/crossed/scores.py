"""Scores from elsewhere of crossed items: what a judge gave each reply in each context, read from a file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import Problem
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.base.tabular import csv_rows, json_rows
from empathy_eval.evaluation.crossed.crossed import CrossedItems, CrossedScorer, CrossedVerdicts
from empathy_eval.evaluation.external.custom_scores import read_scores_by
from empathy_eval.evaluation.external.score_file import DELIMITERS, raise_at_most
from empathy_eval.metrics.protocol import Array

COLUMNS = ("crossed_id", "context", "reply", "score")
# A context and a reply, each by its number.
CELLS = tuple(product((1, 2), repeat=2))


@dataclass(frozen=True)
class PrecomputedCrossedScores:
    """Scores of crossed items by item, context and reply."""

    path: Path
    signature: str
    scores: Mapping[tuple[str, int, int], float]
    higher_is_better: bool

    @property
    def ids(self) -> set[str]:
        """The items that are scored."""
        return {name for name, _, _ in self.scores}

    def asked(self, items: CrossedItems, *, strict: bool = False) -> CrossedScorer:
        """What these scores decide."""
        sign = 1 if self.higher_is_better else -1

        def of(context: int, reply: int) -> Array:
            return sign * np.array([self.scores.get((name, context, reply), math.nan) for name in items.ids], dtype=np.float64)

        verdicts = CrossedVerdicts.of((of(1, 1), of(1, 2)), (of(2, 1), of(2, 2)))
        return CrossedScorer(self.path.stem, self.signature, verdicts, strict=strict)


def of_crossed(path: Path) -> bool:
    """Whether a file of scores is of crossed items: its first line names the column ``crossed_id``.

    Raises:
        InputError: if it cannot be read.
    """
    if path.suffix.lower() == ".jsonl":
        _, row = next(json_rows(path), (0, dict[str, object]()))
        return not isinstance(row, Problem) and COLUMNS[0] in row
    delimiter = DELIMITERS.get(path.suffix.lower())
    return delimiter is not None and COLUMNS[0] in [name.strip() for name in next(csv_rows(path, delimiter), (0, list[str]()))[1]]


def read_crossed_scores(path: Path, ids: Sequence[str], *, higher_is_better: bool = True) -> PrecomputedCrossedScores:
    """The scores of a CSV, TSV or JSONL file by its suffix, with the columns ``crossed_id``, ``context`` and ``reply`` (each 1 or 2) and
    ``score``; other columns are passed over. An item may be left out, but one that is there has both replies in both contexts.

    Raises:
        InputError: for another suffix, unknown items, missing scores, scores given twice and what is no number; all at once.
    """

    def key_of(row: dict[str, Any]) -> tuple[tuple[str, int, int], str]:
        context, reply = int(row["context"]), int(row["reply"])
        return (row["crossed_id"], context, reply), f", reply {reply} in context {context}"

    unknown = "is not a crossed item of this release", "use the ids of the named release"
    scores, problems = read_scores_by(path, COLUMNS, "crossed_scores_row", set(ids), key_of, unknown)
    for name in dict.fromkeys(name for name, _, _ in scores):
        if lacking := [f"reply {reply} in context {context}" for context, reply in CELLS if (name, context, reply) not in scores]:
            problems.append(Problem(str(path), f'"{name}" has no score of {" and ".join(lacking)}', "score both replies in both contexts"))
    if not scores and not problems:
        problems.append(Problem(str(path), "holds no scores", "write a line for each reply in each context"))
    raise_at_most(problems, path)
    return PrecomputedCrossedScores(path, signature_line(file=digest_file(path)[:16], reads="unknown"), scores, higher_is_better)
