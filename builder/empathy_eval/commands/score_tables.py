"""What ``score`` prints: the stand of a release, and texts of one's own."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from empathy_eval.base.table_text import INTERVAL, Column, TableText, aligned, figure, table, table_text
from empathy_eval.design.contrasts import STANCE, STANCE_FAR, STANCE_NEAR

if TYPE_CHECKING:
    from empathy_eval.evaluation.external.custom_means import CustomTextResults
    from empathy_eval.evaluation.inversion.results import DialogueTable, MetricComparison, ReleaseTables
    from empathy_eval.evaluation.inversion.rows import AttackTable, CrossedTable, FairnessRow, FairnessTable
    from empathy_eval.raters.people.correlations import AgainstPeople, CorrelationDifference, CorrelationRow, CriterionCorrelations
    from empathy_eval.raters.people.ensembles import Ensemble, PairAccuracy
    from empathy_eval.raters.study.results import StudyReport
    from empathy_eval.statistics.estimate import Estimate


def _indented(row: FairnessRow) -> str:
    return f"  {row.name}"


def _minus(row: MetricComparison | CorrelationDifference) -> str:
    return f"{row.one} - {row.other}"


FAIRNESS = (
    Column("pairs", "pairs", "d"),
    *(
        column
        for name in ("accuracy", "effect")
        for column in (Column(name, f"{name}.here.value", ".3f", "-"), *figure("gap", f"{name}.difference", "+.3f", "-", tested=True))
    ),
    Column("contrast", lambda row: "; ".join(filter(None, [row.contrast, row.why]))),
)


def fairness_lines(table_of: FairnessTable) -> Iterator[str]:
    """Both tables as lines of text, a block a scorer; what was left out comes last."""
    for title, rows in (
        ("by group of scenarios: the value in the group, and its gap: the group minus all other scenarios", table_of.groups),
        ("other names: the value with other names, and its gap: other names minus names as released", table_of.names),
    ):
        if rows:
            yield from ("", title)
        for metric in dict.fromkeys(row.metric for row in rows):
            yield from table([Column(metric, _indented), *FAIRNESS], (row for row in rows if row.metric == metric))
    yield from ("", *table_of.told)


ATTACKED = (
    Column("", lambda row: f"  {row.attack}"),
    Column("eligible", "whole.eligible", "d"),
    *figure("rises", "whole.rises", ".3f", "-"),
    Column("change", "whole.change.value", "+.4f", "-"),
    *figure("in stance effects", "whole.in_effects", "+.2f", "-"),
)


def attack_lines(table_of: AttackTable) -> Iterator[str]:
    """The table of attacks as lines of text, a block a scorer, and none without one; what was left out comes last."""
    if table_of.rows:
        over = f"{table_of.replies} replies of {table_of.pairs} pairs, {table_of.dialogues} dialogues"
        yield f"under attack: {over}; if rises is 0, the attack never fools the scorer"
    for metric in dict.fromkeys(one.metric for one in table_of.rows):
        rows = [one for one in table_of.rows if one.metric == metric]
        yield f"{metric}, attacked"
        yield from table(ATTACKED, rows)
        effect = rows[0].effect
        if effect.reason:
            ends = Column("", INTERVAL, "+.4f").cell(effect)
            yield f"  change has no unit: {effect.reason}{ends and f': {effect.value:+.4f} {ends}'}"
        else:
            yield f"  stance effect: {effect.value:+.4f}, over {effect.over}"
    yield from table_of.told


def score_csv(measured: ReleaseTables | CustomTextResults | AgainstPeople | StudyReport) -> str:
    """Everything that was measured, a line a figure, comparison, shortcut, warning or fault."""
    text = io.StringIO()
    writer = csv.DictWriter(text, measured.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(measured.records())
    return text.getvalue()


def score_table(measured: ReleaseTables) -> TableText:
    """What was measured as lines of text, groups left out; for a terminal. What a file leaves out comes first."""
    from empathy_eval.evaluation.inversion.results import RANKED

    ranked = (Column(title, f"1.{name}.value", form) for name, (title, form) in RANKED.items() if form)
    columns = [*CONTRAST, *ranked, Column("", lambda row: "forced by the checks" if row[1].forced else "")]
    lines = [*measured.notes, *(f"{row.metric}: {row.coverage}" for row in measured.inversion if row.left_out)]
    lines += ["", *_headline(measured), "", *_dialogues(measured.dialogues), *_crossed(measured.crossed), "", *_comparisons(measured)]
    matched = [("equal length, " + name, row) for name, rows in measured.matched.items() for row in rows]
    parts = [("pairs", measured.inversion), ("2x2", measured.controls)], [("before contrast checks", measured.candidates)]
    whole, before = ([(name, row) for name, rows in some for row in rows] for some in parts)
    for name, row in (*whole, *matched, *before):
        told = ", ".join(f"{variant} {value:.4f}" for variant, value in row.scores.items())
        lines += ["", f"{row.metric}, {name}, {row.coverage}: {told}", *table(columns, row.differences.items())]
    lines += ["", *attack_lines(measured.attacks)] if measured.attacks else []
    lines += ["", *fairness_lines(measured.fairness)] if measured.fairness else []
    rows = measured.inversion
    return table_text(lines, [*(f"{row.metric}: {row.signature}" for row in rows), *(row.interval_signature or "" for row in rows[:1])])


CONTRAST = (
    Column("", lambda row: f"  {row[0]}"), *figure("difference", "1", "+.4f", tested=True),
)  # fmt: skip
HEADLINE = (
    Column("at equal closeness", "name"),
    *figure("accuracy", f"{STANCE}.accuracy"),
    Column("near", f"{STANCE_NEAR}.accuracy.value", ".3f"),
    Column("far", f"{STANCE_FAR}.accuracy.value", ".3f"),
    Column("ties", f"{STANCE}.ties", ".3f"),
    *figure("effect", f"{STANCE}.effect"),
)


def _headline(measured: ReleaseTables) -> Iterator[str]:
    """The number to report of each metric: its accuracy at equal closeness."""
    from empathy_eval.reports.claims import line_of

    line = line_of(measured)
    beside = line.beside if line else {}
    rows: list[Mapping[str, object]] = [
        {**row.differences, "name": row.metric, "line": beside.get(row.metric)}
        for row in measured.controls
        if row.metric in measured.equal_closeness
    ]
    if rows and line:
        rows.append({"name": "shortcut line", STANCE: {"accuracy": line.accuracy}, "line": f"by {line.shortcut}"})
    yield from table([*HEADLINE, Column("line" if line else "", "line")], rows)


CROSSED = (
    Column("crossed items", "metric"),
    Column("items", "items", "d"),
    *(column for title, name in (("fitting", "fitting"), ("both", "both_right"), ("own", "own_context")) for column in figure(title, name)),
)


DIALOGUES = (
    Column("at equal closeness", "name"), Column("dialogues", "dialogues", "d"), *figure("accuracy", f"{STANCE}.accuracy", ".3f"),
    Column("near", f"{STANCE_NEAR}.accuracy.value", ".3f"), Column("far", f"{STANCE_FAR}.accuracy.value", ".3f"),
)  # fmt: skip


def _dialogues(dialogues: DialogueTable | None) -> Iterator[str]:
    """What judges of whole dialogues make of them at equal closeness, beside length; as released closeness decides, so that is in JSON."""
    if dialogues is None:
        return
    yield f"{dialogues.dialogues} whole dialogues, {dialogues.with_controls} with all four cells"
    rows = [
        {**row.differences, "name": row.metric, "dialogues": row.pairs} for row in dialogues.controls if row.differences[STANCE].accuracy
    ]
    yield from table(DIALOGUES, rows) if rows else ("no judge rated all four cells of a dialogue",)
    yield ""


def _crossed(crossed: CrossedTable | None) -> Iterator[str]:
    """What metrics and shortcuts make of crossed items."""
    if crossed is None:
        return
    rows = (*crossed.metrics, *crossed.shortcuts)
    yield from table(CROSSED, (row for row in rows if row.fitting))
    for why, names in groupby(sorted((row.why or "", row.metric) for row in rows if not row.fitting), key=lambda one: one[0]):
        yield f"not measured: {', '.join(name for _, name in names)} ({why})"
    sources = ", ".join(f"{count} {name}" for name, count in crossed.sources.items())
    yield f"fitting and own: 0.5 is chance; both: 0 without the context, 0.25 by guessing; {crossed.items} items ({sources})"


COMPARED = (
    Column("pairs", "pairs", "d"), *figure("accuracy", "accuracy", tested=True), *figure("effect", "effect", tested=True),
)  # fmt: skip


def _comparisons(measured: ReleaseTables) -> Iterator[str]:
    """Every two metrics, at equal closeness where that was measured, else as released."""
    first = next((one.contrast for one in measured.comparisons), "")
    some = [one for one in measured.comparisons if one.contrast == first]
    yield from table([Column(f"first minus second, {first}", _minus), *COMPARED], some)


MEANS = (
    Column("mean", lambda row: f"{row.metric}, {row.system}" if row.system else row.metric), Column("texts", "texts", "d"),
    Column("contexts", "contexts", "d"), *figure("score", "score"),
    Column("", lambda row: f"{row.left_out} texts left out" if row.left_out else ""),
)  # fmt: skip
GAPS = (
    Column("first minus second", lambda row: f"{row.metric}, {row.system} - {row.other}"), Column("contexts", "contexts", "d"),
    Column("left out", "left_out", "d"), *figure("score", "difference", tested=True),
)  # fmt: skip


def own_table(measured: CustomTextResults) -> TableText:
    """Texts of one's own: means, comparisons of systems, and of what texts a metric warns."""
    lines = [*table(MEANS, measured.means), "", *table(GAPS, measured.comparisons), ""]
    return table_text([*lines, *(f"warning: {one}" for one in measured.outside)])


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
    return "; ".join(dict.fromkeys(measure.reason or "no reason is known" for measure in row.figures.values()))


def _measure(one: Estimate) -> str:
    return str(one) if one.value is not None else "not defined"


def _differences(one: CriterionCorrelations) -> Iterator[str]:
    """The first row minus each other, in Pearson's r of the first form."""
    first = one.rows[0] if one.rows else None
    gaps = [gap for gap in one.gaps if first and (gap.form, gap.figure, gap.one) == (first.form, "r", first.metric)]
    columns = [Column(f"first minus second, {TITLES['r']}", _minus), *figure("value", "difference", tested=True)]
    yield from table(columns, gaps)


def _systems(one: CriterionCorrelations) -> Iterator[str]:
    if one.systems:
        yield f"means of {one.systems.told}"
        for metric, figures in one.systems.figures.items():
            told = {name: f"not defined: {one.reason}" if one.value is None else f"{one.value:.3f}" for name, one in figures.items()}
            same = set(told.values())
            yield f"  {metric}: {same.pop() if len(same) == 1 else '; '.join(f'{title} {told[name]}' for name, title in TITLES.items())}"


def _ensemble(one: Ensemble) -> Iterator[str]:
    """How an ensemble was fitted: its rows in their order, the least worth first."""
    yield f"{one.name} on {one.criterion}: fitted on {one.ratings} ratings of {one.texts} texts of the validation split"
    yield from table(MEMBER, one.members)


WAYS = {True: "", False: ", reversed", None: ", no direction, used as it is"}
MEMBER = (
    Column("lowest r first", lambda row: f"{row.row}{WAYS[row.higher_is_better]}"), Column("r, validation", "r", ".3f"),
    Column("weight", "weight", ".4f"), Column("0 at", "low", ".4f"), Column("1 at", "high", ".4f"),
    Column("clipped, test", "clipped", ".3f"),
)  # fmt: skip


def _on_pairs(rows: Sequence[PairAccuracy]) -> Iterator[str]:
    """What ensembles and their rows reach on the pairs of test."""
    for contrast in dict.fromkeys(one.contrast for one in rows):
        columns = [Column(f"test pairs, {contrast}", "row"), Column("pairs", "pairs", "d"), *figure("accuracy", "accuracy")]
        yield from table(columns, (one for one in rows if one.contrast == contrast))
