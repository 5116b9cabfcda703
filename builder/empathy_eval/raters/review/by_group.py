"""What raters gave each system, and each variant where a rater saw one alone: means, and differences between systems by context."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.review.human_evaluation import LEVEL, PLACES, mean_of
from empathy_eval.raters.review.record import CRITERIA, Judgement, group_of
from empathy_eval.raters.review.sample import BETWEEN, WITHIN
from empathy_eval.raters.study.clusters import jackknifed

RESAMPLES, SEED = 1000, 0
PARTS = ("mean", "low", "high")
LEAST, MOST = 1, 3


def by_group(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """By design and group how many ratings there are, and the mean of each criterion with its interval; None without any.

    Where raters see all groups it is by contexts (:func:`mean_of`), where each sees one alone by raters (:func:`mean_by_rater`).
    Groups are the systems whose replies were rated, and the variants where raters saw one alone. Under ``differences``, where a rater saw
    replies of all systems, how much more one got than another, over the contexts that were rated of both: each counts once.
    """
    judged: dict[str, dict[str, list[Judgement]]] = {WITHIN: defaultdict(list), BETWEEN: defaultdict(list)}
    for one in record["judgements"]:
        if one["kind"] == "reply" or "block" in one:
            judged[BETWEEN if "block" in one else WITHIN][group_of(one)].append(one)
    groups = [_group(design, name, ones) for design, by_name in judged.items() for name, ones in sorted(by_name.items())]
    if not groups:
        return None
    return {"groups": groups, "differences": list(_differences(judged[WITHIN])), "signature": _signature(judged)}


def _signature(judged: Mapping[str, Mapping[str, Sequence[Judgement]]]) -> str:
    """How the intervals of the designs that are there were reckoned."""
    how = {WITHIN: "percentile-by-context", BETWEEN: "student-by-rater"}
    drawn = {"resamples": RESAMPLES, "seed": SEED} if judged[WITHIN] else {}
    intervals = {design: name for design, name in how.items() if judged[design]}
    return signature_line(mean="ratings", **intervals, level=LEVEL, **drawn, numpy=np.__version__)


def mean_by_rater(ratings: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """The mean of ratings by rater, and its interval by Student's distribution with raters as what chance draws; None for a single rater.

    The ratings of a rater are as severe as the rater, so that contexts tell too little of how far a mean may be off. The variance is the
    jackknife's over raters, and the interval ends with the scale.
    """
    from scipy import stats

    by_rater: dict[str, list[float]] = defaultdict(list)
    for name, rating in ratings:
        by_rater[name].append(rating)
    sums = np.array([[sum(one), len(one)] for _, one in sorted(by_rater.items())], dtype=float)
    total, number = sums.sum(axis=0)
    mean, low, high = total / number, None, None
    if len(sums) > 1:
        error = float(np.sqrt(jackknifed((sums[:, 0] - mean * sums[:, 1]) / (number - sums[:, 1]))))
        reach = float(stats.t.isf((1 - LEVEL) / 2, len(sums) - 1)) * error
        low, high = (round(float(np.clip(end, LEAST, MOST)), PLACES) for end in (mean - reach, mean + reach))
    return {"mean": round(float(mean), PLACES), "low": low, "high": high}


def _group(design: str, name: str, ones: Sequence[Judgement]) -> dict[str, Any]:
    about = {"design": design, "group": name, "ratings": len(ones), "contexts": len({one["pair_id"] for one in ones})}
    rater = [":".join((one["review"], one["rater"])) for one in ones]

    def mean(criterion: str) -> dict[str, Any]:
        given = [one[criterion] for one in ones]
        if design == BETWEEN:
            return mean_by_rater(list(zip(rater, given, strict=True)))
        contexts = [one["pair_id"] for one in ones]
        return mean_of(list(zip(contexts, given, strict=True)), RESAMPLES, (SEED, design, name, criterion))

    means = {criterion: mean(criterion) for criterion in CRITERIA}
    raters = len(set(rater))
    return {**about, "raters": raters, **{criterion: {part: mean[part] for part in PARTS} for criterion, mean in means.items()}}


def _differences(judged: Mapping[str, Sequence[Judgement]]) -> Iterator[dict[str, Any]]:
    """Of each two systems, for each criterion."""
    for group, other in combinations(sorted(judged), 2):
        found: dict[str, Any] = {}
        for criterion in CRITERIA:
            means = _by_context(judged[group], criterion), _by_context(judged[other], criterion)
            both = [(name, mean - means[1][name]) for name, mean in means[0].items() if name in means[1]]
            if both:
                found["contexts"] = len(both)
                mean = mean_of(both, RESAMPLES, (SEED, group, other, criterion))
                found[criterion] = {part: mean[part] for part in PARTS}
        if found:
            yield {"group": group, "other": other, **found}


def _by_context(ones: Sequence[Judgement], criterion: str) -> dict[str, float]:
    given: dict[str, list[int]] = defaultdict(list)
    for one in ones:
        given[one["pair_id"]].append(one[criterion])
    return {name: sum(some) / len(some) for name, some in given.items()}


def group_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The same to read."""
    for one in found["groups"]:
        alone = " alone" if one["design"] == BETWEEN else ""
        yield f"{one['group']}{alone}: {one['ratings']} replies rated in {one['contexts']} contexts by {one['raters']} raters"
        yield f"  mean, 1 to 3:  {_told(one, 'z.2f')}"
    for one in found["differences"]:
        yield f"{one['group']} minus {one['other']}, by context ({one['contexts']}):  {_told(one, '+z.2f')}"
    yield f"  {found['signature']}"


def _told(one: Mapping[str, Any], form: str) -> str:
    def interval(of: Mapping[str, Any]) -> str:
        return "" if of["low"] is None else f" [{of['low']:{form}}, {of['high']:{form}}]"

    return "  ".join(f"{criterion} {one[criterion]['mean']:{form}}{interval(one[criterion])}" for criterion in CRITERIA)
