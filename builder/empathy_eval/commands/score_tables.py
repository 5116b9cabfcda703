"""What ``score`` prints: the stand of a release, and texts of one's own."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from empathy_eval.base.table_text import TableText, aligned, table_text
from empathy_eval.design.contrasts import STANCE, STANCE_FAR, STANCE_NEAR

if TYPE_CHECKING:
    from empathy_eval.evaluation.external.custom_means import CustomTextResults
    from empathy_eval.evaluation.inversion.results import Difference, ReleaseTables
    from empathy_eval.evaluation.inversion.rows import AttackTable, CrossedTable, FairnessRow, FairnessTable, Gap, ScoreChange
    from empathy_eval.raters.people.correlations import AgainstPeople, CorrelationRow, CriterionCorrelations
    from empathy_eval.raters.people.ensembles import Ensemble, PairAccuracy
    from empathy_eval.raters.study.results import StudyReport
    from empathy_eval.statistics.estimate import Estimate, Measure, Tested


def fairness_lines(table: FairnessTable) -> Iterator[str]:
    """Both tables as lines of text, a block a scorer; what was left out comes last."""
    for title, here, rows in (
        ("by group of scenarios: the value in the group, and its gap: the group minus all other scenarios", "group", table.groups),
        ("other names: the value with other names, and its gap: other names minus names as released", "names", table.names),
    ):
        if rows:
            yield from ("", title)
        for metric in dict.fromkeys(row.metric for row in rows):
            yield from _block(metric, here, [row for row in rows if row.metric == metric])
    yield from ("", *table.told)


def _block(metric: str, here: str, rows: Sequence[FairnessRow]) -> Iterator[str]:
    figures = [title for name in ("accuracy", "effect") for title in (name, "gap", "95 % interval", "p (Holm)")]
    cells = [
        (
            f"  {row.name}",
            str(row.pairs),
            *_gap_cells(row.accuracy),
            *_gap_cells(row.effect),
            "; ".join(filter(None, [row.contrast, row.why])),
        )
        for row in rows
    ]
    yield from aligned([(metric, "pairs", *figures, "contrast"), *cells], right=(1, 2, 3, 5, 6, 7, 9))


def _gap_cells(gap: Gap | None) -> tuple[str, ...]:
    if gap is None:
        return "-", "-", "", ""
    one = gap.difference
    ends = "" if one.low is None or one.high is None else f"[{one.low:+.3f}, {one.high:+.3f}]"
    return f"{gap.here.value:.3f}", f"{one.value:+.3f}", ends, "" if one.holm is None else f"{one.holm:.4f}"


def attack_lines(table: AttackTable) -> Iterator[str]:
    """The table of attacks as lines of text, a block a scorer, and none without one; what was left out comes last."""
    if table.rows:
        over = f"{table.replies} replies of {table.pairs} pairs, {table.dialogues} dialogues"
        yield f"under attack: {over}; if rises is 0, the attack never fools the scorer"
    titles = ("", "eligible", "rises", "95 % interval", "change", "in stance effects", "95 % interval")
    for metric in dict.fromkeys(one.metric for one in table.rows):
        rows = [one for one in table.rows if one.metric == metric]
        yield f"{metric}, attacked"
        cells = [(f"  {row.attack}", *_figures(row.whole)) for row in rows]
        yield from aligned([titles, *cells], right=(1, 2, 4, 5))
        if rows[0].effect.why:
            ends = _ends(rows[0].effect, "+.4f")
            yield f"  change has no unit: {rows[0].effect.why}{ends and f': {rows[0].effect.value:+.4f} {ends}'}"
        else:
            yield f"  stance effect: {rows[0].effect.value:+.4f}, over {rows[0].effect.over}"
    yield from table.told


def _figures(whole: ScoreChange) -> tuple[str, ...]:
    rises, units = whole.rises, whole.in_effects
    change = _value(whole.change, "+.4f")
    return str(whole.eligible), _value(rises, ".3f"), _ends(rises, ".3f"), change, _value(units, "+.2f"), _ends(units, "+.2f")


def _value(one: Estimate | None, form: str) -> str:
    return "-" if one is None else format(one.value, form)


def _ends(one: Estimate | None, form: str) -> str:
    return "" if one is None or one.low is None or one.high is None else f"[{one.low:{form}}, {one.high:{form}}]"


INTERVAL = "95 % interval"


def score_csv(measured: ReleaseTables | CustomTextResults | AgainstPeople | StudyReport) -> str:
    """Everything that was measured, a line a figure, comparison, shortcut, warning or fault."""
    text = io.StringIO()
    writer = csv.DictWriter(text, measured.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(measured.records())
    return text.getvalue()


def score_table(measured: ReleaseTables) -> TableText:
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
        lines += ["", f"{row.metric}, {table}, {row.coverage}: {told}", *aligned([head, *cells], right=(1, 3, 4, 5))]
    lines += ["", *attack_lines(measured.attacks)] if measured.attacks else []
    lines += ["", *fairness_lines(measured.fairness)] if measured.fairness else []
    rows = measured.inversion
    return table_text(lines, [*(f"{row.metric}: {row.signature}" for row in rows), *(row.interval_signature or "" for row in rows[:1])])


def _headline(measured: ReleaseTables) -> Iterator[str]:
    """The number to report of each metric: its accuracy at equal closeness."""
    from empathy_eval.reports.claims import line_of

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
    yield from aligned([head, *cells], right=(1, 3, 4, 5, 6)) if rows else ()


def _crossed(crossed: CrossedTable | None) -> Iterator[str]:
    """What metrics and shortcuts make of crossed items."""
    if crossed is None:
        return
    rows = (*crossed.metrics, *crossed.shortcuts)
    titles = [title for name in ("fitting", "both", "own") for title in (name, INTERVAL)]
    cells = [
        (row.metric, str(row.items), *(cell for one in row.figures.values() for cell in _estimate(one))) for row in rows if row.fitting
    ]
    yield from aligned([("crossed items", "items", *titles), *cells], right=(1, 2, 4, 6))
    for why, names in groupby(sorted((row.why or "", row.metric) for row in rows if not row.fitting), key=lambda one: one[0]):
        yield f"not measured: {', '.join(name for _, name in names)} ({why})"
    sources = ", ".join(f"{count} {name}" for name, count in crossed.sources.items())
    yield f"fitting and own: 0.5 is chance; both: 0 without the context, 0.25 by guessing; {crossed.items} items ({sources})"


def _comparisons(measured: ReleaseTables) -> Iterator[str]:
    """Every two metrics, at equal closeness where that was measured, else as released."""
    first = next((one.contrast for one in measured.comparisons), "")
    some = [one for one in measured.comparisons if one.contrast == first]
    cells = [(f"{one.one} - {one.other}", str(one.pairs), *_gap(one.accuracy), *_gap(one.effect)) for one in some]
    titles = [title for name in ("accuracy", "effect") for title in (name, INTERVAL, "p (Holm)")]
    yield from aligned([(f"first minus second, {first}", "pairs", *titles), *cells], right=(1, 2, 4, 5, 7)) if some else ()


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


def own_table(measured: CustomTextResults) -> TableText:
    """Texts of one's own: means, comparisons of systems, and of what texts a metric warns."""
    systems = any(one.system for one in measured.means)
    rows = [
        (f"{one.metric}, {one.system}" if systems else one.metric, str(one.texts), str(one.contexts), *_estimate(one.score),
         f"{one.left_out} texts left out" if one.left_out else "")
        for one in measured.means
    ]  # fmt: skip
    lines: list[str] = [*aligned([("mean", "texts", "contexts", "score", INTERVAL, ""), *rows], right=(1, 2, 3))]
    if measured.comparisons:
        gaps = [
            (f"{one.metric}, {one.system} - {one.other}", str(one.contexts), str(one.left_out), *_gap(one.difference))
            for one in measured.comparisons
        ]
        lines += ["", *aligned([("first minus second", "contexts", "left out", "score", INTERVAL, "p (Holm)"), *gaps], right=(1, 2, 3, 5))]
    return table_text([*lines, "", *(f"warning: {one}" for one in measured.outside)])


# So many lines are a screen: what is beyond is in JSON and CSV.
SCREEN = 40
TITLES = {"r": "Pearson's r", "rho": "Spearman's rho", "tau_b": "Kendall's tau-b"}
# What is shown where the screen has room for it, the first before the others.
MORE = ("other forms", "differences", "means of systems")


def people_table(found: AgainstPeople) -> TableText:
    """The first form of every criterion; the other forms, differences from the first row and means of systems where they fit."""
    before = [f"{name} has no score for the texts of {count} ratings" for name, count in found.lacking.items()]
    if found.left_out:
        of = found.left_out + found.ratings
        before.append(f"{found.left_out} of {of} ratings are left out: not every row has a score for their texts")
    blocks = [[*before, *found.told], *(list(_ensemble(one)) for one in found.ensembles)]
    after = [list(_on_pairs(found.on_pairs)), [f"warning: {one}" for one in found.outside]]
    used = sum(len(one) + 1 for one in (*blocks, *after) if one) + sum(len(_first(one)) + 1 for one in found.criteria)
    shown = list[str]()
    for name in MORE:
        lines = sum(len(_more(one, name)) for one in found.criteria)
        if used + lines <= SCREEN:
            shown.append(name)
            used += lines
    for one in found.criteria:
        blocks.append([*_first(one), *(line for name in shown for line in _more(one, name))])
    left = [name for name in MORE if name not in shown]
    after.append([f"--json and --csv also have: {', '.join([*left, 'differences of every two rows', 'all settings'])}"])
    return table_text(line for one in (*blocks, *after) for line in (*one, ""))


def _first(one: CriterionCorrelations) -> list[str]:
    head = f"{one.criterion}: {one.ratings} ratings of {one.texts} texts ({one.units} {one.unit}s) by {one.raters} raters"
    if not one.rows:
        return [head]
    interval = one.rows[0].figures["r"].signature.partition("|interval:")[2]
    return [head, *_form(one, one.rows[0].form), *([f"  interval:{interval}"] if interval else [])]


def _more(one: CriterionCorrelations, name: str) -> list[str]:
    if name == "other forms":
        return [line for form in list(dict.fromkeys(row.form for row in one.rows))[1:] for line in _form(one, form)]
    return list(_differences(one) if name == "differences" else _systems(one))


def _form(one: CriterionCorrelations, form: str) -> Iterator[str]:
    rows = [row for row in one.rows if row.form == form]
    whys = {row.metric: _never(row) for row in rows}
    cells = [(row.metric, *(_measure(row.figures[name]) for name in TITLES)) for row in rows if not whys[row.metric]]
    yield from aligned([(form, *TITLES.values()), *cells], len(TITLES) + 1) if cells else [form]
    for why, names in groupby(sorted((why, name) for name, why in whys.items() if why), key=lambda known: known[0]):
        yield f"  not defined: {why} ({', '.join(name for _, name in names)})"


def _never(row: CorrelationRow) -> str:
    """Why a row has no figure at all, if it has none; where the reasons differ, all of them."""
    if any(measure.value is not None for measure in row.figures.values()):
        return ""
    return "; ".join(dict.fromkeys(measure.why or "no reason is known" for measure in row.figures.values()))


def _measure(one: Measure) -> str:
    return str(one) if one.value is not None else "not defined"


def _differences(one: CriterionCorrelations) -> Iterator[str]:
    """The first row minus each other, in Pearson's r of the first form."""
    first = one.rows[0] if one.rows else None
    gaps = [gap for gap in one.gaps if first and (gap.form, gap.figure, gap.one) == (first.form, "r", first.metric)]
    if gaps:
        cells = [(f"{gap.one} - {gap.other}", *_cell(gap.difference), _p(gap.difference.holm)) for gap in gaps]
        yield from aligned([(f"first minus second, {TITLES['r']}", "value", "95 % interval", "p (Holm)"), *cells], right=(1, 3))


def _systems(one: CriterionCorrelations) -> Iterator[str]:
    if one.systems:
        yield f"means of {one.systems.told}"
        for metric, figures in one.systems.figures.items():
            told = {name: f"not defined: {one.why}" if one.value is None else f"{one.value:.3f}" for name, one in figures.items()}
            same = set(told.values())
            yield f"  {metric}: {same.pop() if len(same) == 1 else '; '.join(f'{title} {told[name]}' for name, title in TITLES.items())}"


def _ensemble(one: Ensemble) -> Iterator[str]:
    """How an ensemble was fitted: its rows in their order, the least worth first."""
    yield f"{one.name} on {one.criterion}: fitted on {one.ratings} ratings of {one.texts} texts of the validation split"
    ways = {True: "", False: ", reversed", None: ", no direction, used as it is"}
    cells = [
        (f"{member.row}{ways[member.higher_is_better]}", f"{member.r:.3f}", f"{member.weight:.4f}", f"{member.low:.4f}",
         f"{member.high:.4f}", f"{member.clipped:.3f}")
        for member in one.members
    ]  # fmt: skip
    yield from aligned([("lowest r first", "r, validation", "weight", "0 at", "1 at", "clipped, test"), *cells])


def _on_pairs(rows: Sequence[PairAccuracy]) -> Iterator[str]:
    """What ensembles and their rows reach on the pairs of test."""
    for contrast in dict.fromkeys(one.contrast for one in rows):
        cells = [(one.row, f"{one.pairs}", *_cell(one.accuracy)) for one in rows if one.contrast == contrast]
        yield from aligned([(f"test pairs, {contrast}", "pairs", "accuracy", "95 % interval"), *cells], right=(1, 2))


def _cell(one: Estimate) -> tuple[str, str]:
    return f"{one.value:.3f}", "" if one.low is None or one.high is None else f"[{one.low:.3f}, {one.high:.3f}]"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
