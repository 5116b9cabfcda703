"""Tables that ``score`` prints: evaluation of a release, custom texts, correlations with people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from empathy_eval.base.table_text import INTERVAL, Column, TableText, aligned, figure, table, table_text
from empathy_eval.design.contrasts import STANCE, STANCE_FAR, STANCE_NEAR

if TYPE_CHECKING:
    from empathy_eval.evaluation.external.custom_means import CustomTextResults
    from empathy_eval.evaluation.inversion.results import DialogueTable, MetricComparison, ReleaseTables
    from empathy_eval.evaluation.inversion.rows import AttackTable, CrossedTable, Failures, FairnessTable
    from empathy_eval.raters.people.correlations import AgainstPeople, CorrelationDifference, CorrelationRow, CriterionCorrelations
    from empathy_eval.raters.people.ensembles import Ensemble, PairAccuracy


def _difference_name(row: MetricComparison | CorrelationDifference) -> str:
    return f"{row.first} - {row.other}"


FAIRNESS = (
    Column("pairs", "pairs", "d"),
    *(
        column
        for name in ("accuracy", "effect")
        for column in (Column(name, f"{name}.first.value", ".3f", "-"), *figure("gap", f"{name}.difference", "+.3f", "-", tested=True))
    ),
    Column("contrast", lambda row: "; ".join(filter(None, [row.contrast, row.why]))),
)


def fairness_lines(table_of: FairnessTable) -> Iterator[str]:
    """Yields both tables as lines of text, one block per scorer; notes on what is left out come last."""
    for title, rows in (
        ("by group of scenarios: the value in the group, and its gap: the group minus all other scenarios", table_of.groups),
        ("other names: the value with other names, and its gap: other names minus names as released", table_of.names),
    ):
        if rows:
            yield from ("", title)
        for metric in dict.fromkeys(row.metric for row in rows):
            yield from table([Column(metric, lambda row: f"  {row.name}"), *FAIRNESS], (row for row in rows if row.metric == metric))
    yield from ("", *table_of.notes)


ATTACKED = (
    Column("", lambda row: f"  {row.attack}"),
    Column("eligible", "whole.eligible", "d"),
    *figure("rises", "whole.rises", ".3f", "-"),
    Column("change", "whole.change.value", "+.4f", "-"),
    *figure("in stance effects", "whole.in_effects", "+.2f", "-"),
)


def attack_lines(table_of: AttackTable) -> Iterator[str]:
    """Yields the table of attacks as lines of text, one block per scorer; notes on what is left out come last."""
    if table_of.rows:
        over = f"{table_of.replies} replies of {table_of.pairs} pairs, {table_of.dialogues} dialogues"
        yield f"under attack: {over}; if rises is 0, the attack never fools the scorer"
    for metric in dict.fromkeys(row.metric for row in table_of.rows):
        rows = [row for row in table_of.rows if row.metric == metric]
        yield f"{metric}, attacked"
        yield from table(ATTACKED, rows)
        effect = rows[0].effect
        if effect.reason:
            ends = Column("", INTERVAL, "+.4f").cell(effect)
            yield f"  change has no unit: {effect.reason}{ends and f': {effect.value:+.4f} {ends}'}"
        else:
            yield f"  stance effect: {effect.value:+.4f}, over {effect.over}"
    yield from table_of.notes


def failure_lines(failures: Failures | None) -> Iterator[str]:
    """Yields failure cases, each as its ranks and its texts, and their counts by group; nothing without any."""
    if failures is None:
        return
    excluded = f"; {failures.left_out} texts lack a score" if failures.left_out else ""
    yield from ("", f"failure cases: {len(failures.cases)} of {failures.texts} texts; ranks from 0 (worst) to 1 (best){excluded}")
    for number, case in enumerate(failures.cases, 1):
        ranks = ", ".join(f"{name} {rank:.2f} ({case.values[name]:.4g})" for name, rank in case.ranks.items())
        yield from ("", f"{number}. {case.pair_id} {case.variant}, spread {case.spread:.2f}: {ranks}")
        yield f"   {', '.join(f'{by} {label}' for by, label in case.groups.items())}; {case.explore}"
        yield from (f"   {who}: {' '.join(text.split())}" for who, text in (("seeker", case.before), ("reply", case.text)) if text)
        reasons: dict[str, list[str]] = {}
        for name, reason in case.reasons.items():
            reasons.setdefault(" ".join(reason.split()), []).append(name)
        yield from (f"   {', '.join(names)}: {reason}" for reason, names in reasons.items())
    for by in dict.fromkeys(group.by for group in failures.groups):
        groups = [group for group in failures.groups if group.by == by]
        rows = sorted(groups, key=lambda group: (-group.cases, -group.mean_spread, group.label))
        cells = [(f"  {row.label}", str(row.cases), str(row.texts), f"{row.mean_spread:.3f}") for row in rows[:MOST_GROUPS]]
        yield from ("", *aligned([(f"failure cases by {by}", "cases", "texts", "mean spread"), *cells]))
        yield from [f"  {len(rows) - MOST_GROUPS} more are in --json"] if len(rows) > MOST_GROUPS else []
    yield f"  {failures.signature}"


MOST_GROUPS = 12


def score_table(measured: ReleaseTables) -> TableText:
    """Returns the results of a release as lines of text, without groups; what score files leave out comes first."""
    from empathy_eval.evaluation.inversion.results import RANKED

    ranked = (Column(title, f"1.{name}.value", form) for name, (title, form) in RANKED.items() if form)
    columns = [*CONTRAST, *ranked, Column("", lambda row: "forced by the checks" if row[1].forced else "")]
    lines = [*measured.notes, *(f"{row.metric}: {row.coverage}" for row in measured.inversion if row.left_out)]
    lines += ["", *_headline(measured), "", *_dialogues(measured.dialogues), *crossed_lines(measured.crossed), "", *_comparisons(measured)]
    matched = [("equal length, " + name, row) for name, rows in measured.matched.items() for row in rows]
    parts = [("pairs", measured.inversion), ("2x2", measured.controls)], [("before contrast checks", measured.candidates)]
    whole, before = ([(name, row) for name, rows in some for row in rows] for some in parts)
    for name, row in (*whole, *matched, *before):
        means = ", ".join(f"{variant} {value:.4f}" for variant, value in row.scores.items())
        lines += ["", f"{row.metric}, {name}, {row.coverage}: {means}", *table(columns, row.differences.items())]
    lines += ["", *attack_lines(measured.attacks)] if measured.attacks else []
    lines += ["", *fairness_lines(measured.fairness)] if measured.fairness else []
    lines += failure_lines(measured.failures)
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
    """Yields the headline of each metric: its accuracy at equal closeness."""
    from empathy_eval.reports.claims import shortcut_line

    line = shortcut_line(measured)
    places = line.places if line else {}
    rows: list[Mapping[str, object]] = [
        {**row.differences, "name": row.metric, "line": places.get(row.metric)}
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


def crossed_lines(crossed: CrossedTable | None) -> Iterator[str]:
    """Yields the results of metrics and shortcuts on crossed items."""
    if crossed is None:
        return
    rows = (*crossed.metrics, *crossed.shortcuts)
    yield from table(CROSSED, (row for row in rows if row.fitting))
    for why, names in groupby(sorted((row.why or "", row.metric) for row in rows if not row.fitting), key=lambda pair: pair[0]):
        yield f"not measured: {', '.join(name for _, name in names)} ({why})"
    sources = ", ".join(f"{count} {name}" for name, count in crossed.sources.items())
    yield f"fitting and own: 0.5 is chance; both: 0 without the context, 0.25 by guessing; {crossed.items} items ({sources})"


COMPARED = (
    Column("pairs", "pairs", "d"), *figure("accuracy", "accuracy", tested=True), *figure("effect", "effect", tested=True),
)  # fmt: skip


def _comparisons(measured: ReleaseTables) -> Iterator[str]:
    """Yields comparisons of every two metrics, at equal closeness if it was measured, else as released."""
    first = next((comparison.contrast for comparison in measured.comparisons), "")
    some = [comparison for comparison in measured.comparisons if comparison.contrast == first]
    yield from table([Column(f"first minus second, {first}", _difference_name), *COMPARED], some)


MEANS = (
    Column("mean", lambda row: f"{row.metric}, {row.system}" if row.system else row.metric), Column("texts", "texts", "d"),
    Column("contexts", "contexts", "d"), *figure("score", "score"),
    Column("", lambda row: f"{row.left_out} texts left out" if row.left_out else ""),
)  # fmt: skip
GAPS = (
    Column("first minus second", lambda row: f"{row.metric}, {row.system} - {row.other}"), Column("contexts", "contexts", "d"),
    Column("left out", "left_out", "d"), *figure("score", "difference", tested=True),
)  # fmt: skip


def custom_text_table(measured: CustomTextResults) -> TableText:
    """Returns the results of custom texts: means, comparisons of systems, warnings of metrics."""
    lines = [*table(MEANS, measured.means), "", *table(GAPS, measured.comparisons), ""]
    return table_text([*lines, *(f"warning: {warning}" for warning in measured.outside)])


# Lines of a screen; further lines are in JSON and CSV.
SCREEN = 40
TITLES = {"r": "Pearson's r", "rho": "Spearman's rho", "tau_b": "Kendall's tau-b"}
# Parts that are shown while the screen has room, in this order.
OPTIONAL_PARTS = ("other forms", "differences", "means of systems")


def human_correlation_table(result: AgainstPeople) -> TableText:
    """Returns the first form of every criterion, then other forms, differences from the first row and means of systems if they fit."""
    before = [f"{name} has no score for the texts of {count} ratings" for name, count in result.lacking.items()]
    if result.left_out:
        of = result.left_out + result.ratings
        before.append(f"{result.left_out} of {of} ratings are left out: not every row has a score for their texts")
    blocks = [[*before, *result.notes], *(list(_ensemble(ensemble)) for ensemble in result.ensembles)]
    after = [list(_on_pairs(result.on_pairs)), [f"warning: {warning}" for warning in result.outside]]
    used = sum(len(block) + 1 for block in (*blocks, *after) if block) + sum(len(_main_rows(row)) + 1 for row in result.criteria)
    shown = list[str]()
    for name in OPTIONAL_PARTS:
        lines = sum(len(_further_rows(criterion, name)) for criterion in result.criteria)
        if used + lines <= SCREEN:
            shown.append(name)
            used += lines
    for criterion in result.criteria:
        blocks.append([*_main_rows(criterion), *(line for name in shown for line in _further_rows(criterion, name))])
    left = [name for name in OPTIONAL_PARTS if name not in shown]
    after.append([f"--json and --csv also have: {', '.join([*left, 'differences of every two rows', 'all settings'])}"])
    after.append(list(failure_lines(result.failures)))
    return table_text(line for block in (*blocks, *after) for line in (*block, ""))


def _main_rows(criterion: CriterionCorrelations) -> list[str]:
    texts = f"{criterion.texts} texts ({criterion.units} {criterion.unit}s)"
    head = f"{criterion.criterion}: {criterion.ratings} ratings of {texts} by {criterion.raters} raters"
    if not criterion.rows:
        return [head]
    interval = criterion.rows[0].figures["r"].signature.partition("|interval:")[2]
    return [head, *_form(criterion, criterion.rows[0].form), *([f"  interval:{interval}"] if interval else [])]


def _further_rows(criterion: CriterionCorrelations, name: str) -> list[str]:
    if name == "other forms":
        return [line for form in list(dict.fromkeys(row.form for row in criterion.rows))[1:] for line in _form(criterion, form)]
    return list(_differences(criterion) if name == "differences" else _systems(criterion))


def _form(criterion: CriterionCorrelations, form: str) -> Iterator[str]:
    rows = [row for row in criterion.rows if row.form == form]
    whys = {row.metric: _undefined_reason(row) for row in rows}
    figures = [(row.metric, [row.figures[name] for name in TITLES]) for row in rows if not whys[row.metric]]
    cells = [(name, *("not defined" if figure.value is None else str(figure) for figure in some)) for name, some in figures]
    yield from aligned([(form, *TITLES.values()), *cells], len(TITLES) + 1) if cells else [form]
    for why, names in groupby(sorted((why, name) for name, why in whys.items() if why), key=lambda known: known[0]):
        yield f"  not defined: {why} ({', '.join(name for _, name in names)})"


def _undefined_reason(row: CorrelationRow) -> str:
    """Returns all reasons why a row has no figure; empty if it has one."""
    if any(measure.value is not None for measure in row.figures.values()):
        return ""
    return "; ".join(dict.fromkeys(measure.reason or "no reason is known" for measure in row.figures.values()))


def _differences(criterion: CriterionCorrelations) -> Iterator[str]:
    """Yields the first row minus each other row, in Pearson's r of the first form."""
    first = criterion.rows[0] if criterion.rows else None
    gaps = [gap for gap in criterion.gaps if first and (gap.form, gap.figure, gap.first) == (first.form, "r", first.metric)]
    columns = [Column(f"first minus second, {TITLES['r']}", _difference_name), *figure("value", "difference", tested=True)]
    yield from table(columns, gaps)


def _systems(criterion: CriterionCorrelations) -> Iterator[str]:
    if criterion.systems:
        yield f"means of {criterion.systems.note}"
        for metric, figures in criterion.systems.figures.items():
            values = {name: f"not defined: {row.reason}" if row.value is None else f"{row.value:.3f}" for name, row in figures.items()}
            same = set(values.values())
            yield f"  {metric}: {same.pop() if len(same) == 1 else '; '.join(f'{title} {values[name]}' for name, title in TITLES.items())}"


def _ensemble(ensemble: Ensemble) -> Iterator[str]:
    """Yields the fit of an ensemble: its rows in ascending order of r."""
    yield f"{ensemble.name} on {ensemble.criterion}: fitted on {ensemble.ratings} ratings of {ensemble.texts} texts of the validation split"
    yield from table(MEMBER, ensemble.members)


DIRECTIONS = {True: "", False: ", reversed", None: ", no direction, used as it is"}
MEMBER = (
    Column("lowest r first", lambda row: f"{row.row}{DIRECTIONS[row.higher_is_better]}"), Column("r, validation", "r", ".3f"),
    Column("weight", "weight", ".4f"), Column("0 at", "low", ".4f"), Column("1 at", "high", ".4f"),
    Column("clipped, test", "clipped", ".3f"),
)  # fmt: skip


def _on_pairs(rows: Sequence[PairAccuracy]) -> Iterator[str]:
    """Yields the accuracies of ensembles and their rows on pairs of the test split."""
    for contrast in dict.fromkeys(row.contrast for row in rows):
        columns = [Column(f"test pairs, {contrast}", "row"), Column("pairs", "pairs", "d"), *figure("accuracy", "accuracy")]
        yield from table(columns, (row for row in rows if row.contrast == contrast))
