"""The table of scores beside what people rated: a screen of it, in the order of what decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from empathy_eval.base.table_text import lined

if TYPE_CHECKING:
    from empathy_eval.evaluation.resampling import Estimate
    from empathy_eval.raters.agreement.bootstrap import Measure
    from empathy_eval.raters.people.ensembles import Ensemble
    from empathy_eval.raters.people.on_pairs import OnPairs
    from empathy_eval.raters.people.results import AgainstPeople, Criterion, Row

# So many lines are a screen: what is beyond is in JSON and CSV.
SCREEN = 40
TITLES = {"r": "Pearson's r", "rho": "Spearman's rho", "tau_b": "Kendall's tau-b"}
# What is shown where the screen has room for it, the first before the others.
MORE = ("other forms", "differences", "means of systems")


def people_table(found: AgainstPeople) -> str:
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
    return "\n\n".join("\n".join(one) for one in (*blocks, *after) if one)


def _first(one: Criterion) -> list[str]:
    head = f"{one.criterion}: {one.ratings} ratings of {one.texts} texts ({one.units} {one.unit}s) by {one.raters} raters"
    if not one.rows:
        return [head]
    interval = one.rows[0].figures["r"].signature.partition("|interval:")[2]
    return [head, *_form(one, one.rows[0].form), *([f"  interval:{interval}"] if interval else [])]


def _more(one: Criterion, name: str) -> list[str]:
    if name == "other forms":
        return [line for form in list(dict.fromkeys(row.form for row in one.rows))[1:] for line in _form(one, form)]
    return list(_differences(one) if name == "differences" else _systems(one))


def _form(one: Criterion, form: str) -> Iterator[str]:
    rows = [row for row in one.rows if row.form == form]
    whys = {row.metric: _never(row) for row in rows}
    cells = [(row.metric, *(_measure(row.figures[name]) for name in TITLES)) for row in rows if not whys[row.metric]]
    yield from lined([(form, *TITLES.values()), *cells], len(TITLES) + 1) if cells else [form]
    for why, names in groupby(sorted((why, name) for name, why in whys.items() if why), key=lambda known: known[0]):
        yield f"  not defined: {why} ({', '.join(name for _, name in names)})"


def _never(row: Row) -> str:
    """Why a row has no figure at all, if it has none; where the reasons differ, all of them."""
    if any(measure.value is not None for measure in row.figures.values()):
        return ""
    return "; ".join(dict.fromkeys(measure.why or "no reason is known" for measure in row.figures.values()))


def _measure(one: Measure) -> str:
    return str(one) if one.value is not None else "not defined"


def _differences(one: Criterion) -> Iterator[str]:
    """The first row minus each other, in Pearson's r of the first form."""
    first = one.rows[0] if one.rows else None
    gaps = [gap for gap in one.gaps if first and (gap.form, gap.figure, gap.one) == (first.form, "r", first.metric)]
    if gaps:
        cells = [(f"{gap.one} - {gap.other}", *_estimate(gap.difference), _p(gap.difference.holm)) for gap in gaps]
        yield from lined([(f"first minus second, {TITLES['r']}", "value", "95 % interval", "p (Holm)"), *cells], right=(1, 3))


def _systems(one: Criterion) -> Iterator[str]:
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
    yield from lined([("lowest r first", "r, validation", "weight", "0 at", "1 at", "clipped, test"), *cells])


def _on_pairs(rows: Sequence[OnPairs]) -> Iterator[str]:
    """What ensembles and their rows reach on the pairs of test."""
    for contrast in dict.fromkeys(one.contrast for one in rows):
        cells = [(one.row, f"{one.pairs}", *_estimate(one.accuracy)) for one in rows if one.contrast == contrast]
        yield from lined([(f"test pairs, {contrast}", "pairs", "accuracy", "95 % interval"), *cells], right=(1, 2))


def _estimate(one: Estimate) -> tuple[str, str]:
    return f"{one.value:.3f}", "" if one.low is None or one.high is None else f"[{one.low:.3f}, {one.high:.3f}]"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
