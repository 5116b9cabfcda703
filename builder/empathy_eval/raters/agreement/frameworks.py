"""Which criteria of a table belong together, and what rubrics say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.design.rubrics import Criterion, Rubric
from empathy_eval.raters.agreement.panel import Framework
from empathy_eval.raters.agreement.table import Table

# The title over criteria that are of no framework.
OTHERS = "Other criteria"


def frameworks_of(table: Table, named: Mapping[str, str], rubrics: Sequence[Rubric]) -> tuple[Framework, ...]:
    """The frameworks of the criteria of a table: those of the rubrics in their order, then others that ``named`` has, then the rest.

    ``named`` is the framework of each criterion of which a column says one; it goes before the rubric that has the criterion. A rubric may
    be named there by its title too.

    Raises:
        InputError: for two rubrics that say different things of one criterion.
    """
    known, of = _known(table, rubrics)
    titles = {one.name: one.title for one in rubrics}
    names = {title: name for name, title in titles.items()}
    group = {one: names.get(named.get(one, ""), named.get(one) or of.get(one, "")) for one in table.criteria}
    order = [*titles, *sorted(set(group.values()) - {*titles, ""}), ""]
    ranked = [*known, *(one for one in table.criteria if one not in known)]
    return tuple(
        _framework(name, titles.get(name, name or OTHERS), [one for one in ranked if group[one] == name], known)
        for name in order
        if name in group.values()
    )


def off_scale(table: Table, frameworks: Sequence[Framework], crowd: Sequence[str]) -> list[Problem]:
    """The ratings that are not on the scale that a rubric says; what a crowd gave may lie between two values, for it may be a mean."""
    return [problem for framework in frameworks for name in framework.scales for problem in _off(table, framework, name, crowd)]


def _known(table: Table, rubrics: Sequence[Rubric]) -> tuple[dict[str, Criterion], dict[str, str]]:
    """What is said of each criterion, in the order of the rubrics, and the name of the first rubric that has it."""
    known, of, problems = dict[str, Criterion](), dict[str, str](), list[Problem]()
    for rubric in rubrics:
        for one in rubric.criteria:
            if one.name not in table.criteria:
                continue
            other = known.setdefault(one.name, one)
            if (other.scale, other.better, other.opposite) != (one.scale, one.better, one.opposite):
                what = f'defines "{one.name}" differently from "{of[one.name]}": the scale, better end or opposite'
                problems.append(Problem(f'rubric "{rubric.name}"', what, "leave one of the two out, or rename the criterion"))
            of.setdefault(one.name, rubric.name)
    if problems:
        raise InputError(problems)
    return known, of


def _framework(name: str, title: str, criteria: Sequence[str], known: Mapping[str, Criterion]) -> Framework:
    said = [known[one] for one in criteria if one in known]
    scales = {one.name: one.scale for one in said if one.scale}
    better = {one.name: one.better for one in said if one.better}
    return Framework(name, title, tuple(criteria), scales, better, tuple(_opposites(said)))


def _opposites(criteria: Sequence[Criterion]) -> Iterator[tuple[str, str]]:
    """Each pair once, in the order of the criteria."""
    names, seen = {one.name for one in criteria}, set[frozenset[str]]()
    for one in criteria:
        if one.opposite in names and (pair := frozenset((one.name, str(one.opposite)))) not in seen:
            seen.add(pair)
            yield one.name, str(one.opposite)


def _off(table: Table, framework: Framework, name: str, crowd: Sequence[str]) -> Iterator[Problem]:
    scale, rows = framework.scales[name], table.criterion == table.criteria.index(name)
    members = np.isin(table.rater, [place for place, one in enumerate(table.raters) if one in set(crowd)])
    for value in np.unique(table.rating[rows]):
        given = rows & (table.rating == value)
        inside = scale.low <= value <= scale.high
        wrong = np.flatnonzero(given & ~members if inside else given)
        if (fault := scale.fault(float(value))) and len(wrong):
            who, item = table.raters[table.rater[wrong[0]]], table.items[table.item[wrong[0]]]
            what = f'{value:g} by "{who}" for "{item}" {fault}, as "{framework.name}" defines it'
            yield Problem(f'ratings on "{name}"', what, "correct the rating, or leave the rubric out")
