"""The figures of attacks: from scores before and under attack the share that rises, and the change in units of the stance effect.

Whoever scored, a metric or a judge, is the same here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empathy_eval.design.contrasts import PAIRS, TWO_BY_TWO
from empathy_eval.evaluation.attack_rows import Change, StanceEffect
from empathy_eval.evaluation.inversion import Chance, Statistics, duels_of, estimate
from empathy_eval.evaluation.resampling import Clusters, Estimate
from empathy_eval.evaluation.results import PLACES
from empathy_eval.metrics.protocol import Array, Metric

Rows = NDArray[np.bool_]
EQUAL, RELEASED = "pairs with controls, at equal closeness", "pairs, as released"


@dataclass(frozen=True)
class Scores:
    """What a scorer gave replies, row by row: before, and by attack under it. Higher is better; nan where there is no score.

    ``eligible`` says by attack which replies could be attacked.
    """

    before: Array
    under: Mapping[str, Array]
    eligible: Mapping[str, Rows]


@dataclass(frozen=True)
class Changes:
    """What one attack did to the scores of all replies, and of those of each variant."""

    whole: Change
    by_variant: Mapping[str, Change]


def changes(scores: Scores, variants: Sequence[str], clusters: Clusters, effect: StanceEffect, chance: Chance) -> dict[str, Changes]:
    """The figures by attack; ``variants`` are those of the rows, ``clusters`` their dialogues.

    All attacks share the resamples of dialogues, which are drawn once; a single dialogue has no intervals.
    """
    parts = {"": np.ones(len(variants), dtype=bool)} | {name: np.array([one == name for one in variants]) for name in sorted(set(variants))}
    tables, counts = list[Array](), dict[tuple[str, str], tuple[int, int]]()
    has = np.isfinite(scores.before)
    for attack, under in scores.under.items():
        for part, rows in parts.items():
            both = rows & has & scores.eligible[attack] & np.isfinite(under)
            gap = np.where(both, under - np.where(both, scores.before, 0.0), 0.0)
            tables.append(np.column_stack([gap > 0, gap < 0, gap, both]).astype(np.float64))
            counts[attack, part] = int((rows & has).sum()), int(both.sum())
    if not tables:
        return {}
    totals = clusters.totals(np.hstack(tables))
    sums = np.split(totals.sum(axis=0, keepdims=True), len(tables), axis=1)
    drawn = np.split(clusters.bootstrapped(totals, chance.resamples, chance.seed), len(tables), axis=1) if len(clusters) > 1 else None
    found = {key: _change(counts[key], sums[place], drawn and drawn[place], effect) for place, key in enumerate(counts)}
    return {attack: Changes(found[attack, ""], {part: found[attack, part] for part in parts if part}) for attack in scores.under}


def _change(counts: tuple[int, int], sums: Array, drawn: Sequence[Array] | Array | None, effect: StanceEffect) -> Change:
    """The figures from the sums of rows (rises, falls, change, 1), and those of resamples."""
    if not counts[1]:
        return Change(*counts)
    resampled = None if drawn is None else np.asarray(drawn)
    with np.errstate(divide="ignore", invalid="ignore"):  # of a resample without an eligible reply there is no figure
        values, several = sums[:, :3] / sums[:, 3:], None if resampled is None else resampled[:, :3] / resampled[:, 3:]
    rises, falls, change = (estimate(float(values[0, at]), None if several is None else several[:, at]) for at in range(3))
    return Change(*counts, rises, falls, change, change and _in_units(change, effect))


def _in_units(change: Estimate, effect: StanceEffect) -> Estimate | None:
    """A change over the size of the stance effect, which is taken as it is; None where that is no unit."""
    if effect.why is not None:
        return None
    ends = (None if one is None else round(one / abs(effect.value), PLACES) for one in (change.low, change.high))
    return Estimate(round(change.value / abs(effect.value), PLACES), *ends)


def stance_effects(pulls: Mapping[str, Array], clusters: Clusters, over: str, chance: Chance) -> dict[str, StanceEffect]:
    """By scorer its stance effect, from kind minus cold score of each pair, nan where there is none; ``over`` says which pairs."""
    if not pulls:
        return {}
    has = {name: np.isfinite(one) for name, one in pulls.items()}
    totals = clusters.totals(
        np.column_stack([column for name, one in pulls.items() for column in (np.where(has[name], one, 0), has[name])])
    )
    drawn = clusters.bootstrapped(totals, chance.resamples, chance.seed) if len(clusters) > 1 else None
    sums, found = totals.sum(axis=0), dict[str, StanceEffect]()
    for place, name in enumerate(pulls):
        at = slice(2 * place, 2 * place + 2)
        with np.errstate(divide="ignore", invalid="ignore"):  # of a resample without a score there is no effect
            value, several = np.divide(*sums[at]), None if drawn is None else np.divide(*drawn[:, at].T)
        found[name] = _effect(estimate(float(value), several), over)
    return found


def _effect(one: Estimate | None, over: str) -> StanceEffect:
    if one is None:
        return StanceEffect(0.0, None, None, over, "no pair has a score of both stances")
    why = None
    if one.low is not None and one.high is not None and one.low <= 0 <= one.high:
        # Without its numbers: another machine's may differ a little, and a sentence is compared by its letters.
        why = "the stance effect may be nothing, as its interval holds 0"
    elif not one.value:
        why = "the stance effect is nothing"
    return StanceEffect(one.value, one.low, one.high, over, why)


def pull_of(metric: Metric, pairs: Statistics, cells: Statistics) -> tuple[str, Array]:
    """Over which pairs, and by pair kind minus cold score of a metric in its better direction: at equal closeness where it has controls."""
    over, contrast, statistics = (EQUAL, TWO_BY_TWO[0], cells) if cells else (RELEASED, PAIRS[0], pairs)
    return over, duels_of(metric, statistics, contrast).pull
