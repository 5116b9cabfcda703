"""What ``score`` prints: the stand of a release, texts of one's own, and scores against people."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from empathy_eval.commands.attack_lines import attack_lines
from empathy_eval.commands.fairness_lines import fairness_lines
from empathy_eval.design.contrasts import STANCE, STANCE_FAR, STANCE_NEAR

if TYPE_CHECKING:
    from empathy_eval.evaluation.crossed_rows import Crossed
    from empathy_eval.evaluation.own_means import OwnMeasured
    from empathy_eval.evaluation.resampling import Estimate
    from empathy_eval.evaluation.results import Difference, Measured
    from empathy_eval.raters.people.ensembles import Ensemble
    from empathy_eval.raters.people.on_pairs import OnPairs
    from empathy_eval.raters.people.results import AgainstPeople, Criterion
    from empathy_eval.raters.study.studied import Studied


def score_csv(measured: Measured | OwnMeasured | AgainstPeople | Studied) -> str:
    """Everything that was measured, a line a figure, comparison, shortcut, warning or fault."""
    text = io.StringIO()
    writer = csv.DictWriter(text, measured.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(measured.records())
    return text.getvalue()


def score_table(measured: Measured) -> str:
    """What was measured as lines of text, groups left out; for a terminal. What a file leaves out comes first."""
    head = f"{'':<24}{'difference':>11}  {'95 % interval':<21}{'p (Holm)':>9}{'accuracy':>10}{'AUC':>7}"
    lines = [*measured.notes, *(f"{row.metric}: {row.coverage}" for row in measured.inversion if row.left_out)]
    lines += ["", *_headline(measured), "", *_crossed(measured.crossed), "", *_comparisons(measured)]
    matched = [("equal length, " + name, row) for name, rows in measured.matched.items() for row in rows]
    parts = [("pairs", measured.inversion), ("2x2", measured.controls)], [("before contrast checks", measured.candidates)]
    whole, before = ([(table, row) for table, rows in some for row in rows] for some in parts)
    for table, row in (*whole, *matched, *before):
        told = ", ".join(f"{name} {value:.4f}" for name, value in row.scores.items())
        lines += ["", f"{row.metric}, {table}, {row.coverage}: {told}", head]
        lines += [f"  {name:<22}{_numbers(one)}" for name, one in row.differences.items()]
    lines += ["", *attack_lines(measured.attacks)] if measured.attacks else []
    lines += ["", *fairness_lines(measured.fairness)] if measured.fairness else []
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _headline(measured: Measured) -> Iterator[str]:
    """The number to report of each metric: its accuracy at equal closeness."""
    from empathy_eval.evaluation.claims import line_of

    rows = [row for row in measured.controls if row.metric in measured.equal_closeness]
    line, wide = line_of(measured), max((len(row.metric) for row in rows), default=0)
    wide = max(24, wide + 1)
    if rows:
        ends = f"{'near':>7}{'far':>7}{'ties':>7}{'effect':>9}  {'95 % interval':<16}"
        yield f"{'at equal closeness':<{wide}}{'accuracy':>9}  {'95 % interval':<16}{ends}{'  line' if line else ''}".rstrip()
    for row in rows:
        both, near, far = (row.differences[name] for name in (STANCE, STANCE_NEAR, STANCE_FAR))
        sides = "".join(f"{one.accuracy.value:>7.3f}" if one.accuracy else " " * 7 for one in (near, far))
        beside = line.beside.get(row.metric, "") if line else ""
        yield f"{row.metric:<{wide}}{_estimate(both.accuracy):<27}{sides}{both.ties:>7.3f}{_estimate(both.effect):<27}  {beside}".rstrip()
    if rows and line:
        yield f"{'shortcut line':<{wide}}{_estimate(line.accuracy)}  by {line.shortcut}"


def _crossed(crossed: Crossed | None) -> Iterator[str]:
    """What metrics and shortcuts make of crossed items."""
    if crossed is None:
        return
    rows = (*crossed.metrics, *crossed.shortcuts)
    wide = max([24, *(len(one.metric) + 1 for one in rows)])
    titles = "".join(f"{name:>9}  {'95 % interval':<18}" for name in ("fitting", "both", "own"))
    if any(row.fitting for row in rows):
        yield f"{'crossed items':<{wide}}{'items':>6}{titles}".rstrip()
    for row in rows:
        if row.fitting:
            yield f"{row.metric:<{wide}}{row.items:>6}{''.join(f'{_estimate(one):<29}' for one in row.figures.values())}".rstrip()
    for why, names in groupby(sorted((row.why or "", row.metric) for row in rows if not row.fitting), key=lambda one: one[0]):
        yield f"not here: {', '.join(name for _, name in names)} ({why})"
    sources = ", ".join(f"{count} {name}" for name, count in crossed.sources.items())
    yield f"fitting and own: 0.5 is chance; both: 0 without the context, 0.25 for guesses; {crossed.items} items ({sources})"


def _comparisons(measured: Measured) -> Iterator[str]:
    """Every two metrics, at equal closeness where that was measured, else as released."""
    first = next((one.contrast for one in measured.comparisons), "")
    some = [one for one in measured.comparisons if one.contrast == first]
    wide = max([36, *(len(one.one) + len(one.other) + 4 for one in some)])
    if some:
        ends = "".join(f"{name:>9}  {'95 % interval':<19}{'p (Holm)':>9}" for name in ("accuracy", "effect"))
        yield f"{'first minus second, ' + first:<{wide}}{'pairs':>6}{ends}"
    for one in some:
        found = [(_estimate(gap), "" if gap is None or gap.holm is None else f"{gap.holm:.4f}") for gap in (one.accuracy, one.effect)]
        gaps = "".join(f"{gap:<30}{p:>9}" for gap, p in found)
        yield f"{f'{one.one} - {one.other}':<{wide}}{one.pairs:>6}{gaps}".rstrip()


def _estimate(one: Estimate | None) -> str:
    if one is None:
        return ""
    return f"{one.value:>9.3f}" + ("" if one.low is None or one.high is None else f"  [{one.low:.3f}, {one.high:.3f}]")


def _numbers(one: Difference) -> str:
    bounds = "" if one.low is None or one.high is None else f"[{one.low:+.4f}, {one.high:+.4f}]"
    p = "" if one.holm is None else f"{one.holm:.4f}"
    ranked = "".join(f"{found.value:>{width}.3f}" if found else " " * width for found, width in ((one.accuracy, 10), (one.auc, 7)))
    return f"{one.value:>+11.4f}  {bounds:<21}{p:>9}{ranked}{'  forced by the checks' if one.forced else ''}"


def own_table(measured: OwnMeasured) -> str:
    """Texts of one's own: means, comparisons of systems, and of what texts a metric warns."""
    systems = any(one.system for one in measured.means)
    wide = max([24, *(len(f"{one.metric}, {one.system}") + 1 for one in measured.means)])
    lines = [f"{'mean':<{wide}}{'texts':>6}{'contexts':>10}{'score':>10}  95 % interval"] if measured.means else []
    for mean in measured.means:
        name = f"{mean.metric}, {mean.system}" if systems else mean.metric
        left = f"  {mean.left_out} texts left out" if mean.left_out else ""
        lines.append(f"{name:<{wide}}{mean.texts:>6}{mean.contexts:>10} {_estimate(mean.score):<28}{left}".rstrip())
    if measured.comparisons:
        names = [f"{one.metric}, {one.system} - {one.other}" for one in measured.comparisons]
        wide = max([36, *(len(one) + 1 for one in names)])
        lines += ["", f"{'first minus second':<{wide}}{'contexts':>8}{'left out':>10}{'score':>9}  {'95 % interval':<19}{'p (Holm)':>9}"]
        for name, gap in zip(names, measured.comparisons, strict=True):
            holm = gap.difference.holm if gap.difference else None
            p = "" if holm is None else f"{holm:.4f}"
            lines.append(f"{name:<{wide}}{gap.contexts:>8}{gap.left_out:>10}{_estimate(gap.difference):<30}{p:>9}".rstrip())
    return "\n".join([*lines, *_warned(measured.outside)]).strip()


def _warned(outside: Sequence[object]) -> list[str]:
    return ["", *(f"warning: {one}" for one in outside)] if outside else []


def people_table(found: AgainstPeople) -> str:
    """Scores against people: each form's figures, the differences of rows as they are, and means of systems."""
    lines = [f"{name} has no score of the texts of {count} ratings" for name, count in found.lacking.items()]
    if found.left_out:
        lines.append(
            f"{found.left_out} of {found.left_out + found.ratings} ratings are of texts without a score by every row, and left out"
        )
    lines += found.told
    for ensemble in found.ensembles:
        lines += ["", *_ensemble(ensemble)]
    for one in found.criteria:
        lines += ["", *_criterion(one)]
    lines += ["", *_on_pairs(found.on_pairs)] if found.on_pairs else []
    return "\n".join([*lines, *_warned(found.outside)]).strip()


def _ensemble(one: Ensemble) -> Iterator[str]:
    """How an ensemble was fitted: its rows in their order, the least worth first."""
    yield f"{one.name} on {one.criterion}: fitted on {one.ratings} ratings of {one.texts} texts of validation"
    ways = {True: "", False: ", turned round", None: ", no direction, as it is"}
    names = [f"{member.row}{ways[member.higher_is_better]}" for member in one.members]
    wide = max([24, *(len(name) + 1 for name in names)])
    yield f"{'least worth first':<{wide}}{'r, validation':>14}{'weight':>9}{'0 at':>12}{'1 at':>12}{'beyond, test':>14}"
    for name, member in zip(names, one.members, strict=True):
        yield f"{name:<{wide}}{member.r:>14.3f}{member.weight:>9.4f}{member.low:>12.4f}{member.high:>12.4f}{member.clipped:>14.3f}"


def _on_pairs(rows: Sequence[OnPairs]) -> Iterator[str]:
    """What ensembles and their rows reach on the pairs of test."""
    wide = max([24, *(len(one.row) + 1 for one in rows)])
    for contrast in dict.fromkeys(one.contrast for one in rows):
        yield f"{f'pairs of test, {contrast}':<{wide}} {'pairs':>6} {'accuracy':>8}  95 % interval"
        for one in (one for one in rows if one.contrast == contrast):
            yield f"{one.row:<{wide}} {one.pairs:>6}{_estimate(one.accuracy)}"


def _criterion(one: Criterion) -> Iterator[str]:
    yield f"{one.criterion}: {one.ratings} ratings of {one.texts} texts ({one.units} {one.unit}s) by {one.raters} raters"
    wide = max([24, *(len(row.metric) + 1 for row in one.rows)])
    titles = {"r": "Pearson's r", "rho": "Spearman's rho", "tau_b": "Kendall's tau-b"}
    for form in dict.fromkeys(row.form for row in one.rows):
        yield f"{form:<{wide}}" + "".join(f"{title:<25}" for title in titles.values()).rstrip()
        for row in (row for row in one.rows if row.form == form):
            whys = {measure.why for measure in row.figures.values() if measure.value is None}
            if len(whys) == 1 and all(measure.value is None for measure in row.figures.values()):
                yield f"{row.metric:<{wide}}not defined: {whys.pop()}"
            else:
                yield f"{row.metric:<{wide}}" + "".join(f"{str(row.figures[name]):<24} " for name in titles).rstrip()
    gaps = [gap for gap in one.gaps if gap.form == one.rows[0].form]
    wide = max([36, *(len(gap.one) + len(gap.other) + 4 for gap in gaps)])
    # Three tables of every two rows would hide the figures: the other two are in --json and --csv.
    for name, title in list(titles.items())[:1] if gaps else ():
        yield f"{f'first minus second, {title}':<{wide}}{'value':>9}  {'95 % interval':<19}{'p (Holm)':>9}"
        for gap in (gap for gap in gaps if gap.figure == name):
            p = "" if gap.difference.holm is None else f"{gap.difference.holm:.4f}"
            yield f"{f'{gap.one} - {gap.other}':<{wide}}{_estimate(gap.difference):<30}{p:>9}".rstrip()
    if gaps:
        yield "differences in Spearman's rho and Kendall's tau-b: --json or --csv"
    if one.systems:
        name_wide = max([24, *(len(metric) + 1 for metric in one.systems.figures)])
        yield f"means of {one.systems.told}"
        for metric, figures in one.systems.figures.items():
            said = "; ".join(f"{title} {_short(figures[name].value, figures[name].why)}" for name, title in titles.items())
            yield f"{metric:<{name_wide}}{said}"
    yield one.rows[0].figures["r"].signature.partition("|interval:")[2].join(("interval:", "")) if one.rows else ""


def _short(value: float | None, why: str | None) -> str:
    return f"not defined: {why}" if value is None else f"{value:.3f}"
