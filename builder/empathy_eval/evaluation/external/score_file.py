"""Score files: scores of pairs, items or crossed items from CSV, TSV or JSONL, which stand in for a metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest
from pathlib import Path
from typing import Any, TypeVar

from empathy_eval.base.errors import InputError, Problem, input_error, nearest, nearest_column
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import DELIMITERS, headed_rows, json_rows
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import column, files_of
from empathy_eval.metrics.protocol import Array, MeanMetric, Pairs, with_count

# A row a score, or a row a pair with a column for each of these.
LONG, VARIANTS = ("pair_id", "variant", "score"), (*PAIR_VARIANTS, *CONTROLS, "reference")
FORMS = f"{','.join(LONG)}, or {','.join(LONG[:1] + VARIANTS)} (only the variants that have scores)"
MOST_PROBLEMS = 100


class PrecomputedScores(MeanMetric):
    """A metric with precomputed scores; what it read is not known. p-values of one ``family`` are corrected together.

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
        """Returns the statistics of each variant of these pairs, ``reference`` if it is among them; nan without a score."""
        return {name: with_count(self.of([(pair_id, name) for pair_id in pairs.ids])) for name in pairs.variants}

    def of(self, keys: Sequence[tuple[str, str]]) -> list[float]:
        """The scores of these pairs and variants; nan where there is none."""
        return [self._scores.get(key, math.nan) for key in keys]


def read_scores(path: Path, pair_ids: Sequence[str], control_ids: Sequence[str], *, higher_is_better: bool = True) -> PrecomputedScores:
    """Reads scores of a CSV, TSV or JSONL file: one row per score (``pair_id``, ``variant``, ``score``), or one row per pair (``pair_id``
    and a column per variant, empty without a score). Other columns are ignored.

    A pair may be left out; a scored one has both variants, and both controls or none. A score of its reference is optional.

    Raises:
        InputError: for another suffix, unknown pairs, missing or unknown variants, scores given twice and words for numbers; all at once.
    """
    problems: list[Problem] = []
    scores: dict[tuple[str, str], float] = {}
    known, controls = set(pair_ids), set(control_ids)
    for where, row in _rows(path):
        faults = list[Problem]()
        for score in [row] if isinstance(row, Problem) else _scores(row, where):
            if isinstance(score, Problem):
                faults.append(score)
            elif score[:2] in scores:
                faults.append(Problem(where, f'"{score[0]}", {score[1]} was scored before', "keep one score"))
            elif score[0] not in (controls if score[1] in CONTROLS else known):
                what = f'"{score[0]}" is not a pair of this release' + (f" with the control {score[1]}" if score[1] in CONTROLS else "")
                faults.append(Problem(where, what, f"use the ids of the named release{nearest_known(score[0], known, problems)}"))
            else:
                scores[score[:2]] = score[2]
        # What is wrong with a pair is wrong with all its variants.
        problems += dict.fromkeys(faults)
    problems += _gaps(path, scores)
    signature = file_signature(path, scores, problems, "write a line for each variant of each pair")
    return PrecomputedScores(path.stem, signature, scores, higher_is_better)


def file_signature(path: Path, scores: Collection[object], problems: Sequence[Problem], fix: str) -> str:
    """Returns the signature of a score file, after raising its problems; ``fix`` is for a file without scores."""
    raise_at_most(problems if scores or problems else [Problem(str(path), "holds no scores", fix)], path)
    return signature_line(file=digest_file(path)[:16], reads="unknown")


def nearest_known(name: str, known: Collection[str], problems: Sequence[Problem]) -> str:
    """Returns the nearest known name for the first problems of a file, as text for a fix; later problems are only counted."""
    return nearest(name, known) if len(problems) < MOST_PROBLEMS else ""


def raise_at_most(problems: Sequence[Problem], path: Path) -> None:
    """Raises an :class:`InputError` with the first problems of a file, and how many more there are."""
    more = len(problems) - MOST_PROBLEMS
    if problems:
        rest = [Problem(str(path), f"has {more} more problems", "fix these first")] if more > 0 else []
        raise InputError([*problems[:MOST_PROBLEMS], *rest])


def row_problems(row: Any, schema: str, where: str) -> list[Problem]:
    """Returns the problems of a hand-written row under a schema."""
    return [Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in violations(row, schema, by_hand=True)]


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | Problem]]:
    """Yields (place, columns) of each row, or its problem."""

    def check(names: Sequence[str]) -> None:
        if odd := _odd_form(names):
            missing = [name for name in (*LONG, *VARIANTS) if name not in names]
            raise input_error(path, odd, f"name the columns in the first line: {FORMS}{nearest_column(names, missing)}")

    yield from table_rows(path, check, _value, "quote cells that hold commas, and write 0.5 with a decimal point")


def table_rows(
    path: Path, check: Callable[[Sequence[str]], None], value: Callable[[str, str], Any], fix: str
) -> Iterator[tuple[str, dict[str, Any] | Problem]]:
    """Yields (place, columns) of each row of a CSV, TSV or JSONL file by its suffix, or its problem.

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
    """Returns the finite number in a cell, or its text, which the schema refuses."""
    try:
        return number if math.isfinite(number := float(text)) else text
    except ValueError:
        return text


def _odd_form(names: Sequence[str]) -> str:
    """Returns why these columns are not those of a score file; empty if they are."""
    if twice := [name for name in (*LONG, *VARIANTS) if names.count(name) > 1]:
        return f"has the column {', '.join(twice)} twice"
    missing = [name for name in (LONG[:1] if set(VARIANTS) & set(names) else LONG) if name not in names]
    return f"has no column {', '.join(missing)}" if missing else ""


def _scores(row: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, float] | Problem]:
    """Yields (pair, variant, score) of each score in a row, or its problem."""
    if odd := _odd_form(list(row)):
        yield Problem(where, odd, f"write the columns {FORMS}")
        return
    long = row.keys() >= set(LONG)
    given_scores = [(row["variant"], row["score"])] if long else [(name, row[name]) for name in VARIANTS if row.get(name) is not None]
    for variant, score in given_scores:
        wrong = list(violations({"pair_id": row["pair_id"], "variant": variant, "score": score}, "scores_row", by_hand=True))
        yield from (Problem(f"{where}: {place if long or place != 'score' else variant}", what, fix) for place, what, fix in wrong)
        if not wrong:
            yield row["pair_id"], variant, float(score)


def _value(name: str, text: str) -> str | float | None:
    """Returns the value of a cell: a finite number, or text that the schema refuses; None where a variant has no score."""
    if name not in ("score", *VARIANTS):
        return text
    return number_in(text) if text or name == "score" else None


def _gaps(path: Path, scores: Mapping[tuple[str, str], float]) -> Iterator[Problem]:
    """Yields problems of pairs that lack a variant, or have one control of two."""
    for pair_id in dict.fromkeys(pair for pair, _ in scores):
        has = [cell for cell in CELLS if (pair_id, cell) in scores]
        needed = CELLS if set(has) & set(CONTROLS) else PAIR_VARIANTS
        if lacking := [cell for cell in needed if cell not in has]:
            yield Problem(str(path), f'"{pair_id}" has no score of {" and ".join(lacking)}', "score every variant of a pair")


CROSSED = "crossed"
CROSSED_COLUMNS = ("crossed_id", "context", "reply", "score")
# A context and a reply, each by its number.
CROSSED_CELLS = tuple(product((1, 2), repeat=2))


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


def of_crossed(path: Path) -> bool:
    """Returns whether a score file is of crossed items: its first line names the column ``crossed_id``.

    Raises:
        InputError: if it cannot be read.
    """
    if path.suffix.lower() == ".jsonl":
        _, row = next(json_rows(path), (0, dict[str, object]()))
        return not isinstance(row, Problem) and CROSSED_COLUMNS[0] in row
    return path.suffix.lower() in DELIMITERS and CROSSED_COLUMNS[0] in headed_rows(path)[0]


def read_crossed_scores(path: Path, ids: Sequence[str], *, higher_is_better: bool = True) -> PrecomputedCrossedScores:
    """Reads scores of a CSV, TSV or JSONL file with the columns ``crossed_id``, ``context`` and ``reply`` (each 1 or 2) and ``score``.

    Other columns are ignored. An item may be left out; a scored one has both replies in both contexts.

    Raises:
        InputError: for another suffix, unknown items, missing scores, scores given twice and what is no number; all at once.
    """

    def key_of(row: dict[str, Any]) -> tuple[tuple[str, int, int], str]:
        context, reply = int(row["context"]), int(row["reply"])
        return (row["crossed_id"], context, reply), f", reply {reply} in context {context}"

    unknown = "is not a crossed item of this release", "use the ids of the named release"
    scores, problems = read_scores_by(path, CROSSED_COLUMNS, "crossed_scores_row", set(ids), key_of, unknown)
    for name in dict.fromkeys(name for name, _, _ in scores):
        if lacking := [f"reply {reply} in context {context}" for context, reply in CROSSED_CELLS if (name, context, reply) not in scores]:
            problems.append(Problem(str(path), f'"{name}" has no score of {" and ".join(lacking)}', "score both replies in both contexts"))
    signature = file_signature(path, scores, problems, "write a line for each reply in each context")
    return PrecomputedCrossedScores(path, signature, scores, higher_is_better)


def read_crossed_files(
    release_dir: Path, scores: Sequence[Path], *, higher_is_better: bool = True
) -> tuple[Sequence[Path], list[PrecomputedCrossedScores]]:
    """Returns the score files of pairs, and the scores of the other files, which are of crossed items.

    Raises:
        InputError: if the release has no such items, or as :func:`read_crossed_scores`.
    """
    files = [path for path in scores if of_crossed(path)]
    if not files:
        return scores, []
    if not any(path.is_file() for path in files_of(release_dir, CROSSED)):
        raise input_error(release_dir, f"has no crossed items, but {files[0]} holds scores of them", "score a release that has them")
    known = column(release_dir, CROSSED, "crossed_id")
    crossed = [read_crossed_scores(path, known, higher_is_better=higher_is_better) for path in files]
    return [path for path in scores if path not in files], crossed


Key = TypeVar("Key", bound=Hashable)


def read_scores_by(
    path: Path, columns: Sequence[str], schema: str, known: Collection[str], key_of: Callable[[dict[str, Any]], tuple[Key, str]],
    unknown: tuple[str, str],
) -> tuple[dict[Key, float], list[Problem]]:  # fmt: skip
    """Reads scores by key from a CSV, TSV or JSONL file; returns them with all problems.

    The first of the columns is a name, which is ``known``; the others are numbers, and the last is the score. ``key_of`` gives of a valid
    row what it is of, and how that is called after its name; ``unknown`` says what is wrong with an unknown name, and how to fix it.

    Raises:
        InputError: for another suffix, and a table that has not each column once.
    """
    problems, scores = list[Problem](), dict[Key, float]()
    for where, row in _score_rows(path, columns):
        faults = [row] if isinstance(row, Problem) else row_problems(row, schema, where)
        if not faults and not isinstance(row, Problem):
            name, (key, called) = row[columns[0]], key_of(row)
            if name not in known:
                faults.append(Problem(where, f'"{name}" {unknown[0]}', f"{unknown[1]}{nearest_known(name, known, problems)}"))
            elif key in scores:
                faults.append(Problem(where, f'"{name}"{called} was scored before', "keep one score"))
            else:
                scores[key] = float(row["score"])
        problems += faults
    return scores, problems


def _score_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any] | Problem]]:
    """Yields (place, the named columns) of each row, or its problem."""

    def check(names: Sequence[str]) -> None:
        if odd := [name for name in columns if names.count(name) != 1]:
            near = nearest_column(names, [name for name in odd if name not in names])
            fix = f"name the columns in the first line: {','.join(columns)}{near}"
            raise input_error(path, f"does not have exactly one column {' and '.join(odd)}", fix)

    def value(name: str, text: str) -> float | str:
        return text if name == columns[0] else number_in(text)

    for where, row in table_rows(path, check, value, "quote cells that hold commas"):
        yield where, row if isinstance(row, Problem) else {name: row[name] for name in columns if name in row}
