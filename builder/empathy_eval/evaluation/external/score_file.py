"""Scores from elsewhere: what a judge gave each variant, read from a file and put on the same stand as a metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem, input_error, nearest, nearest_column
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import headed_rows, json_rows
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS
from empathy_eval.metrics.protocol import Array, MeanMetric, with_count
from empathy_eval.metrics.scoring import Pairs

# A row a score, or a row a pair with a column for each of these.
LONG, VARIANTS = ("pair_id", "variant", "score"), (*PAIR_VARIANTS, *CONTROLS, "reference")
FORMS = f"{','.join(LONG)}, or {','.join(LONG[:1] + VARIANTS)} (only the variants that have scores)"
MOST_PROBLEMS = 100


class PrecomputedScores(MeanMetric):
    """A metric whose scores are known already; what it read is not. P-values of one ``family`` are corrected together.

    Where it is ``whole``, its scores are of whole dialogues, under their ids.
    """

    reads = ()

    def __init__(
        self, name: str, signature: str, scores: Mapping[tuple[str, str], float], higher_is_better: bool, family: str | None = None,
        *, whole: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.signature, self.higher_is_better, self.family = name, signature, higher_is_better, family or name
        self.whole = whole
        self._scores = scores

    @property
    def pair_ids(self) -> set[str]:
        """The pairs that are scored."""
        return {pair_id for pair_id, _ in self._scores}

    def looked_up(self, pairs: Pairs) -> dict[str, Array]:
        """The statistics of each variant of these pairs, ``reference`` if it is among them; nan where there is no score."""
        return {name: with_count(self.of([(pair_id, name) for pair_id in pairs.ids])) for name in pairs.variants}

    def of(self, keys: Sequence[tuple[str, str]]) -> list[float]:
        """The scores of these pairs and variants; nan where there is none."""
        return [self._scores.get(key, math.nan) for key in keys]


def read_scores(path: Path, pair_ids: Sequence[str], control_ids: Sequence[str], *, higher_is_better: bool = True) -> PrecomputedScores:
    """The scores of a CSV, TSV or JSONL file, by its suffix: a row a score (``pair_id``, ``variant``, ``score``), or a row a pair
    (``pair_id`` and a column a variant, empty where there is no score). Other columns are passed over.

    A pair may be left out, but one that is there has both its variants, and both controls or none; a score of its reference is its own
    choice.

    Raises:
        InputError: for another suffix, unknown pairs, missing or unknown variants, scores given twice and words for numbers; all at once.
    """
    problems: list[Problem] = []
    scores: dict[tuple[str, str], float] = {}
    known, controls = set(pair_ids), set(control_ids)
    for where, row in _rows(path):
        found = list[Problem]()
        for one in [row] if isinstance(row, Problem) else _scores(row, where):
            if isinstance(one, Problem):
                found.append(one)
            elif one[:2] in scores:
                found.append(Problem(where, f'"{one[0]}", {one[1]} was scored before', "keep one score"))
            elif one[0] not in (controls if one[1] in CONTROLS else known):
                what = f'"{one[0]}" is not a pair of this release' + (f" with the control {one[1]}" if one[1] in CONTROLS else "")
                found.append(Problem(where, what, f"use the ids of the named release{meant(one[0], known, problems)}"))
            else:
                scores[one[:2]] = one[2]
        # What is wrong with a pair is wrong with all its variants.
        problems += dict.fromkeys(found)
    problems += _gaps(path, scores)
    if not scores and not problems:
        problems.append(Problem(str(path), "holds no scores", "write a line for each variant of each pair"))
    raise_at_most(problems, path)
    return PrecomputedScores(path.stem, signature_line(file=digest_file(path)[:16], reads="unknown"), scores, higher_is_better)


def meant(name: str, known: Collection[str], told: Sequence[Problem]) -> str:
    """Which known name is nearest to an unknown one, for the first problems of a file: the others are counted alone."""
    return nearest(name, known) if len(told) < MOST_PROBLEMS else ""


def raise_at_most(problems: Sequence[Problem], path: Path) -> None:
    """Raises an :class:`InputError` with the first problems of a file, and how many more there are."""
    more = len(problems) - MOST_PROBLEMS
    if problems:
        rest = [Problem(str(path), f"has {more} more problems", "fix these first")] if more > 0 else []
        raise InputError([*problems[:MOST_PROBLEMS], *rest])


def row_problems(row: Any, schema: str, where: str) -> list[Problem]:
    """What of a row that a person wrote breaks its schema."""
    return [Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in violations(row, schema, by_hand=True)]


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | Problem]]:
    """(place, columns) of each row, or what is wrong with it."""

    def check(names: Sequence[str]) -> None:
        if odd := _odd_form(names):
            missing = [name for name in (*LONG, *VARIANTS) if name not in names]
            raise input_error(path, odd, f"name the columns in the first line: {FORMS}{nearest_column(names, missing)}")

    yield from table_rows(path, check, _value, "quote cells that hold commas, and write 0.5 with a decimal point")


def table_rows(
    path: Path, check: Callable[[Sequence[str]], None], value: Callable[[str, str], Any], fix: str
) -> Iterator[tuple[str, dict[str, Any] | Problem]]:
    """(place, columns) of each row of a CSV, TSV or JSONL file by its suffix, or what is wrong with it.

    ``check`` refuses a header, ``value`` is what a cell of a column holds, and ``fix`` is for a row with too many cells.

    Raises:
        InputError: for another suffix.
    """
    if path.suffix.lower() == ".jsonl":
        yield from ((f"{path}: line {number}", row) for number, row in json_rows(path))
        return
    names, lines = headed_rows(path, "scores are read from .csv, .tsv and .jsonl: use the suffix of its format")
    check(names)
    for number, cells in lines:
        where = f"{path}: line {number}"
        if any(cells[len(names) :]):
            yield where, Problem(where, f"has {len(cells)} cells, but the header has {len(names)}", fix)
        elif cells:
            both = zip_longest(names, cells[: len(names)], fillvalue="")
            yield where, {name: value(name, cell.strip()) for name, cell in both}


def number_in(text: str) -> float | str:
    """The finite number that a cell holds, or its text, which the schema refuses."""
    try:
        return number if math.isfinite(number := float(text)) else text
    except ValueError:
        return text


def _odd_form(names: Sequence[str]) -> str:
    """Why these columns are none of a file of scores; empty if they are."""
    if twice := [name for name in (*LONG, *VARIANTS) if names.count(name) > 1]:
        return f"has the column {', '.join(twice)} twice"
    missing = [name for name in (LONG[:1] if set(VARIANTS) & set(names) else LONG) if name not in names]
    return f"has no column {', '.join(missing)}" if missing else ""


def _scores(row: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, float] | Problem]:
    """(pair, variant, score) of each that a row holds, or what is wrong with it."""
    if odd := _odd_form(list(row)):
        yield Problem(where, odd, f"write the columns {FORMS}")
        return
    long = row.keys() >= set(LONG)
    there = [(row["variant"], row["score"])] if long else [(name, row[name]) for name in VARIANTS if row.get(name) is not None]
    for variant, score in there:
        wrong = list(violations({"pair_id": row["pair_id"], "variant": variant, "score": score}, "scores_row", by_hand=True))
        yield from (Problem(f"{where}: {place if long or place != 'score' else variant}", what, fix) for place, what, fix in wrong)
        if not wrong:
            yield row["pair_id"], variant, float(score)


def _value(name: str, text: str) -> str | float | None:
    """A cell; a score as the finite number it holds, or as the text that the schema refuses; None where a variant has none."""
    if name not in ("score", *VARIANTS):
        return text
    return number_in(text) if text or name == "score" else None


def _gaps(path: Path, scores: Mapping[tuple[str, str], float]) -> Iterator[Problem]:
    """Pairs that lack a variant, or have one control of two."""
    for pair_id in dict.fromkeys(pair for pair, _ in scores):
        has = [cell for cell in CELLS if (pair_id, cell) in scores]
        wanted = CELLS if set(has) & set(CONTROLS) else PAIR_VARIANTS
        if lacking := [cell for cell in wanted if cell not in has]:
            yield Problem(str(path), f'"{pair_id}" has no score of {" and ".join(lacking)}', "score every variant of a pair")
