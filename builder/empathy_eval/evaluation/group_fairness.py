"""Fairness by group: the stance effect of each scorer in a group of scenarios beside that in all other scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import signature_line
from empathy_eval.evaluation.comparisons import Rated
from empathy_eval.evaluation.fairness_rows import FairnessRow, Gap
from empathy_eval.evaluation.inversion import Chance, estimate
from empathy_eval.evaluation.ranking import Duels, effects, shares_won
from empathy_eval.evaluation.resampling import Clusters, Tested, student_p, studentised
from empathy_eval.evaluation.results import PLACES
from empathy_eval.evaluation.wording import counted
from empathy_eval.metrics.protocol import Array

# Fewer dialogues on one side carry no interval: resamples of so few leave out most of what there may be.
LEAST_DIALOGUES = 5
# A smaller deviation of resamples is rounding: then all of them are alike.
LEAST_DEVIATION = 1e-9
HERE_AND_THERE = (True, False)
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Grouped:
    """The groups of a set of pairs: by name the numbers of their scenarios, in the order of the file, and the hash of that."""

    scenarios: Mapping[str, frozenset[int]]
    digest: str


def group_rows(contrast: str, rated: Mapping[str, Rated], clusters: Clusters, groups: Grouped, chance: Chance) -> list[FairnessRow]:
    """The row of each scorer and group, over the pairs that the scorer has scores of; a group without such pairs has none.

    The two sides are of different dialogues, which are resampled together. Interval and p-value of a difference are of the deviation of its
    resamples and Student's distribution, with the degrees of freedom of the smaller side. p-values are not corrected here.
    """
    has = {name: ~np.isnan(one.duels.won()) for name, one in rated.items()}
    sets: dict[bytes, list[str]] = {}
    for name, mask in has.items():
        sets.setdefault(mask.tobytes(), []).append(name)
    found: dict[tuple[str, str], FairnessRow] = {}
    for key, names in sets.items():
        rows = np.frombuffer(key, dtype=bool)
        if rows.any():
            over = _Over(contrast, {name: _taken(rated[name], rows) for name in names}, clusters.take(rows), groups, chance)
            found |= {(one.metric, one.name): one for one in over.rows()}
    return [found[name, group] for name in rated for group in groups.scenarios if (name, group) in found]


def _taken(one: Rated, rows: Mask) -> Rated:
    return Rated(Duels([(kind[rows], cold[rows]) for kind, cold in one.duels.sides]), one.signature)


def _strata(clusters: Clusters, inside: Mask) -> NDArray[np.int64]:
    """The scenario of each dialogue; those of one dialogue are together with others of their side, so that a side is never without any."""
    numbers, counts = np.unique(clusters.scenarios, return_counts=True)
    single = np.isin(clusters.scenarios, numbers[counts == 1])
    return np.where(single, np.where(inside, -1, -2), clusters.scenarios)


@dataclass(frozen=True)
class _Over:
    """Scorers over the same pairs: their sums are resampled together."""

    contrast: str
    rated: Mapping[str, Rated]
    clusters: Clusters
    groups: Grouped
    chance: Chance

    def rows(self) -> Iterator[FairnessRow]:
        """The row of each scorer and group."""
        inside = {group: np.isin(self.clusters.scenarios, sorted(numbers)) for group, numbers in self.groups.scenarios.items()}
        inside = {group: one for group, one in inside.items() if one.any()}
        totals = {name: self.clusters.totals(one.duels.sums()) for name, one in self.rated.items()}
        drawn = self._drawn(totals, inside)
        for name, group in ((name, group) for name in self.rated for group in inside):
            sums = {here: totals[name][inside[group] == here].sum(axis=0, keepdims=True) for here in HERE_AND_THERE}
            yield self._row(name, group, inside[group], [(one, drawn[name, group, here]) for here, one in sums.items()])

    def _drawn(self, totals: Mapping[str, Array], inside: Mapping[str, Mask]) -> dict[tuple[str, str, bool], Array]:
        """By scorer, group and side its sums over resampled dialogues; groups that have the same strata share the draws."""
        alike: dict[bytes, list[str]] = {}
        for group, mask in inside.items():
            alike.setdefault(_strata(self.clusters, mask).tobytes(), []).append(group)
        found: dict[tuple[str, str, bool], Array] = {}
        for groups in alike.values():
            clusters = replace(self.clusters, scenarios=_strata(self.clusters, inside[groups[0]]))
            keys = [(name, group, here) for name in totals for group in groups for here in HERE_AND_THERE]
            tables = [totals[name] * (inside[group] == here)[:, None] for name, group, here in keys]
            ends = np.cumsum([one.shape[1] for one in tables])[:-1]
            stacked = clusters.bootstrapped(np.hstack(tables), self.chance.resamples, self.chance.seed)
            found |= zip(keys, np.split(stacked, ends, axis=1), strict=True)
        return found

    def _row(self, name: str, group: str, mask: Mask, sides: Sequence[tuple[Array, Array | None]]) -> FairnessRow:
        of_pairs = mask[self.clusters.members]
        few, freedom = self._few(mask, of_pairs)
        sides = [(sums, None if few else drawn) for sums, drawn in sides]
        accuracy, effect = (_gap(rate, sides, freedom) for rate in (shares_won, effects))
        if effect and effect.difference.low is None and not few:
            few = "some resamples have no spread, and so no effect"
        there = int(of_pairs.sum())
        settings = signature_line(
            groups=self.groups.digest[:16],
            sides="group,all-other-scenarios",
            difference=f"student,freedom:{freedom}",
            least=LEAST_DIALOGUES,
        )
        signature = f"{self.rated[name].signature}|{self.contrast}|{settings}|{self.chance.of_intervals(self.clusters)}"
        return FairnessRow(name, group, self.contrast, there, len(of_pairs), int(mask.sum()), accuracy, effect, signature, few)

    def _few(self, mask: Mask, of_pairs: Mask) -> tuple[str | None, int]:
        """What keeps an interval from being there, and the degrees of freedom of the smaller side."""
        here, there = int(mask.sum()), int((~mask).sum())
        if not there:
            return "there are no other scenarios", 0
        if min(here, there) < LEAST_DIALOGUES:
            side = "here" if here < LEAST_DIALOGUES else "elsewhere"
            return f"{counted(min(here, there), 'dialogue')} {side}, and an interval wants {LEAST_DIALOGUES}", 0
        clusters = replace(self.clusters, scenarios=_strata(self.clusters, mask))
        freedom = min(clusters.take(of_pairs).freedom, clusters.take(~of_pairs).freedom)
        return (None, freedom) if freedom else ("no two dialogues are of one stratum", 0)


def _gap(rate: Callable[[Array], Array], sides: Sequence[tuple[Array, Array | None]], freedom: int) -> Gap | None:
    """A figure on both sides, from their sums and those of resamples, and the difference; None where it is not defined on one."""
    with np.errstate(invalid="ignore"):  # of a side without a pair there is no figure
        (here, drawn_here), (there, drawn_there) = ((rate(sums), None if drawn is None else rate(drawn)) for sums, drawn in sides)
    first, second = estimate(float(here[0]), drawn_here), estimate(float(there[0]), drawn_there)
    if first is None or second is None:
        return None
    drawn = None if drawn_here is None or drawn_there is None else drawn_here - drawn_there
    return Gap(first, second, _tested(float(here[0] - there[0]), drawn, freedom))


def _tested(value: float, drawn: Array | None, freedom: int) -> Tested:
    """A difference with its interval and its p-value, where all resamples have one."""
    if drawn is None or not freedom or not np.isfinite(drawn).all():
        return Tested(round(value, PLACES))
    deviation = float(drawn.std(ddof=1))
    if deviation < LEAST_DEVIATION:
        # Where nothing varies, resamples say nothing of how sure a difference is; that there is none is as sure as can be.
        return Tested(round(value, PLACES)) if abs(value) > LEAST_DEVIATION else Tested(0.0, 0.0, 0.0, 1.0)
    return Tested(round(value, PLACES), *studentised(value, drawn, freedom, PLACES), round(student_p(value / deviation, freedom), PLACES))
