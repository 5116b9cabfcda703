"""What ``score`` prints: the stand of a release, and texts of one's own."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from empathy_eval.base.table_text import lined
from empathy_eval.commands.attack_lines import attack_lines
from empathy_eval.commands.fairness_lines import fairness_lines
from empathy_eval.design.contrasts import STANCE, STANCE_FAR, STANCE_NEAR

if TYPE_CHECKING:
    from empathy_eval.evaluation.crossed_rows import Crossed
    from empathy_eval.evaluation.own_means import OwnMeasured
    from empathy_eval.evaluation.resampling import Estimate, Tested
    from empathy_eval.evaluation.results import Difference, Measured
    from empathy_eval.raters.people.results import AgainstPeople
    from empathy_eval.raters.study.studied import Studied

INTERVAL = "95 % interval"


def score_csv(measured: Measured | OwnMeasured | AgainstPeople | Studied) -> str:
    """Everything that was measured, a line a figure, comparison, shortcut, warning or fault."""
    text = io.StringIO()
    writer = csv.DictWriter(text, measured.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(measured.records())
    return text.getvalue()


def score_table(measured: Measured) -> str:
    """What was measured as lines of text, groups left out; for a terminal. What a file leaves out comes first."""
    lines = [*measured.notes, *(f"{row.metric}: {row.coverage}" for row in measured.inversion if row.left_out)]
    lines += ["", *_headline(measured), "", *_crossed(measured.crossed), "", *_comparisons(measured)]
    matched = [("equal length, " + name, row) for name, rows in measured.matched.items() for row in rows]
    parts = [("pairs", measured.inversion), ("2x2", measured.controls)], [("before contrast checks", measured.candidates)]
    whole, before = ([(table, row) for table, rows in some for row in rows] for some in parts)
    for table, row in (*whole, *matched, *before):
        told = ", ".join(f"{name} {value:.4f}" for name, value in row.scores.items())
        head = ("", "difference", "95 % interval", "p (Holm)", "accuracy", "AUC", "")
        cells = [(f"  {name}", *_numbers(one)) for name, one in row.differences.items()]
        lines += ["", f"{row.metric}, {table}, {row.coverage}: {told}", *lined([head, *cells], right=(1, 3, 4, 5))]
    lines += ["", *attack_lines(measured.attacks)] if measured.attacks else []
    lines += ["", *fairness_lines(measured.fairness)] if measured.fairness else []
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _headline(measured: Measured) -> Iterator[str]:
    """The number to report of each metric: its accuracy at equal closeness."""
    from empathy_eval.evaluation.claims import line_of

    rows, line = [row for row in measured.controls if row.metric in measured.equal_closeness], line_of(measured)
    cells = list[tuple[str, ...]]()
    for row in rows:
        both, near, far = (row.differences[name] for name in (STANCE, STANCE_NEAR, STANCE_FAR))
        sides = [_estimate(one.accuracy)[0] for one in (near, far)]
        beside = line.beside.get(row.metric, "") if line else ""
        cells.append((row.metric, *_estimate(both.accuracy), *sides, f"{both.ties:.3f}", *_estimate(both.effect), beside))
    if rows and line:
        cells.append(("shortcut line", *_estimate(line.accuracy), "", "", "", "", "", f"by {line.shortcut}"))
    head = ("at equal closeness", "accuracy", INTERVAL, "near", "far", "ties", "effect", INTERVAL, "line" if line else "")
    yield from lined([head, *cells], right=(1, 3, 4, 5, 6)) if rows else ()


def _crossed(crossed: Crossed | None) -> Iterator[str]:
    """What metrics and shortcuts make of crossed items."""
    if crossed is None:
        return
    rows = (*crossed.metrics, *crossed.shortcuts)
    titles = [title for name in ("fitting", "both", "own") for title in (name, INTERVAL)]
    cells = [
        (row.metric, str(row.items), *(cell for one in row.figures.values() for cell in _estimate(one))) for row in rows if row.fitting
    ]
    yield from lined([("crossed items", "items", *titles), *cells], right=(1, 2, 4, 6))
    for why, names in groupby(sorted((row.why or "", row.metric) for row in rows if not row.fitting), key=lambda one: one[0]):
        yield f"not measured: {', '.join(name for _, name in names)} ({why})"
    sources = ", ".join(f"{count} {name}" for name, count in crossed.sources.items())
    yield f"fitting and own: 0.5 is chance; both: 0 without the context, 0.25 by guessing; {crossed.items} items ({sources})"


def _comparisons(measured: Measured) -> Iterator[str]:
    """Every two metrics, at equal closeness where that was measured, else as released."""
    first = next((one.contrast for one in measured.comparisons), "")
    some = [one for one in measured.comparisons if one.contrast == first]
    cells = [(f"{one.one} - {one.other}", str(one.pairs), *_gap(one.accuracy), *_gap(one.effect)) for one in some]
    titles = [title for name in ("accuracy", "effect") for title in (name, INTERVAL, "p (Holm)")]
    yield from lined([(f"first minus second, {first}", "pairs", *titles), *cells], right=(1, 2, 4, 5, 7)) if some else ()


def _gap(one: Tested | None) -> tuple[str, str, str]:
    return *_estimate(one), "" if one is None or one.holm is None else f"{one.holm:.4f}"


def _estimate(one: Estimate | None) -> tuple[str, str]:
    """A figure and its interval, empty where there is none."""
    if one is None:
        return "", ""
    return f"{one.value:.3f}", "" if one.low is None or one.high is None else f"[{one.low:.3f}, {one.high:.3f}]"


def _numbers(one: Difference) -> tuple[str, ...]:
    bounds = "" if one.low is None or one.high is None else f"[{one.low:+.4f}, {one.high:+.4f}]"
    p = "" if one.holm is None else f"{one.holm:.4f}"
    return f"{one.value:+.4f}", bounds, p, _estimate(one.accuracy)[0], _estimate(one.auc)[0], "forced by the checks" if one.forced else ""


def own_table(measured: OwnMeasured) -> str:
    """Texts of one's own: means, comparisons of systems, and of what texts a metric warns."""
    systems = any(one.system for one in measured.means)
    rows = [
        (f"{one.metric}, {one.system}" if systems else one.metric, str(one.texts), str(one.contexts), *_estimate(one.score),
         f"{one.left_out} texts left out" if one.left_out else "")
        for one in measured.means
    ]  # fmt: skip
    lines = lined([("mean", "texts", "contexts", "score", INTERVAL, ""), *rows], right=(1, 2, 3))
    if measured.comparisons:
        gaps = [
            (f"{one.metric}, {one.system} - {one.other}", str(one.contexts), str(one.left_out), *_gap(one.difference))
            for one in measured.comparisons
        ]
        lines += ["", *lined([("first minus second", "contexts", "left out", "score", INTERVAL, "p (Holm)"), *gaps], right=(1, 2, 3, 5))]
    return "\n".join([*lines, *(["", *(f"warning: {one}" for one in measured.outside)] if measured.outside else [])])
