"""Scores from elsewhere of crossed items: what a judge gave each reply in each context, read from a file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from empathy_eval.base.errors import Problem
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import DELIMITERS, headed_rows, json_rows
from empathy_eval.evaluation.crossed.crossed import Asked, Items, Verdicts
from empathy_eval.evaluation.external.custom_scores import score_rows
from empathy_eval.evaluation.external.custom_texts import meant, raise_at_most
from empathy_eval.metrics.protocol import Array

COLUMNS = ("crossed_id", "context", "reply", "score")
# A context and a reply, each by its number.
CELLS = tuple(product((1, 2), repeat=2))


@dataclass(frozen=True)
class GivenCrossed:
    """Scores of crossed items by item, context and reply."""

    path: Path
    signature: str
    scores: Mapping[tuple[str, int, int], float]
    higher_is_better: bool

    @property
    def ids(self) -> set[str]:
        """The items that are scored."""
        return {name for name, _, _ in self.scores}

    def asked(self, items: Items, *, strict: bool = False) -> Asked:
        """What these scores decide."""
        sign = 1 if self.higher_is_better else -1

        def of(context: int, reply: int) -> Array:
            return sign * np.array([self.scores.get((name, context, reply), math.nan) for name in items.ids], dtype=np.float64)

        verdicts = Verdicts.of((of(1, 1), of(1, 2)), (of(2, 1), of(2, 2)))
        return Asked(self.path.stem, self.signature, verdicts, strict=strict)


def of_crossed(path: Path) -> bool:
    """Whether a file of scores is of crossed items: its first line names the column ``crossed_id``.

    Raises:
        InputError: if it cannot be read.
    """
    if path.suffix.lower() == ".jsonl":
        _, row = next(json_rows(path), (0, dict[str, object]()))
        return not isinstance(row, Problem) and COLUMNS[0] in row
    return path.suffix.lower() in DELIMITERS and COLUMNS[0] in headed_rows(path)[0]


def read_crossed_scores(path: Path, ids: Sequence[str], *, higher_is_better: bool = True) -> GivenCrossed:
    """The scores of a CSV, TSV or JSONL file by its suffix, with the columns ``crossed_id``, ``context`` and ``reply`` (each 1 or 2) and
    ``score``; other columns are passed over. An item may be left out, but one that is there has both replies in both contexts.

    Raises:
        InputError: for another suffix, unknown items, missing scores, scores given twice and what is no number; all at once.
    """
    known, problems, scores = set(ids), list[Problem](), dict[tuple[str, int, int], float]()
    for where, row in score_rows(path, COLUMNS):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        broken = violations(row, "crossed_scores_row", by_hand=True)
        wrong = [Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in broken]
        key = ("", 0, 0) if wrong else (row["crossed_id"], int(row["context"]), int(row["reply"]))
        if not wrong and key[0] not in known:
            fix = f"use the ids of the named release{meant(key[0], known, problems)}"
            wrong.append(Problem(where, f'"{key[0]}" is not a crossed item of this release', fix))
        elif not wrong and key in scores:
            wrong.append(Problem(where, f'"{key[0]}", reply {key[2]} in context {key[1]} was scored before', "keep one score"))
        problems += wrong
        if not wrong:
            scores[key] = float(row["score"])
    for name in dict.fromkeys(name for name, _, _ in scores):
        if lacking := [f"reply {reply} in context {context}" for context, reply in CELLS if (name, context, reply) not in scores]:
            problems.append(Problem(str(path), f'"{name}" has no score of {" and ".join(lacking)}', "score both replies in both contexts"))
    if not scores and not problems:
        problems.append(Problem(str(path), "holds no scores", "write a line for each reply in each context"))
    raise_at_most(problems, path)
    return GivenCrossed(path, signature_line(file=digest_file(path)[:16], reads="unknown"), scores, higher_is_better)
