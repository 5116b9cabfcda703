"""What people said, for the manifest of the next release: mean ratings beside the paper's, agreement, and the reading of crossed items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import derived_random, digest_file, signature_line
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.raters.agreement import Measure, Table, agree
from empathy_eval.raters.review.record import CRITERIA, Judgement, decisions, group_of, of_releases, raters_of, rating_rows, read_record
from empathy_eval.raters.review.sample import BETWEEN, WITHIN
from empathy_eval.raters.study.by_rater import jackknifed
from empathy_eval.statistics.estimate import CONFIDENCE, TAILS

# What is rated of each sample.
RATED = {"pairs": PAIR_VARIANTS, "cells": CELLS}
PLACES = 4


def review_facts(path: Path, contents: Mapping[str, str], resamples: int, seed: int) -> dict[str, Any]:
    """What a manifest says of a record: decisions, and the human evaluation beside the paper's.

    ``contents`` gives the content hash of the dialogues of the build by id. A dialogue that was to be removed and whose text is another
    now is not removed but named under ``changed_since``. What was said of replies of systems is none of it. Ratings of variants
    by raters who saw one alone are counted under ``alone``, and are in no mean and no kappa.

    Raises:
        InputError: for a faulty record, and one of replies of systems alone.
    """
    record = of_releases(whole := read_record(path))
    if whole["judgements"] and not record["judgements"]:
        what = "holds judgements of replies of systems, but none of texts of a release"
        raise input_error(path, what, "name the record of a review of a release, or leave it out")
    leaving = [one for one in decisions(record) if one.removed and one.dialogue_id in contents]
    paper = read_yaml(data_folder("release") / "paper_ratings.yaml", "paper_ratings")
    return {
        "record": digest_file(path),
        "releases": sorted(
            ({name: one["release"][name] for name in ("name", "version")} for one in record["reviews"].values()),
            key=lambda one: (one["name"], one["version"]),
        ),
        "raters": raters_of(record["judgements"]),
        "judgements": len(record["judgements"]),
        "removed": [one.to_json() for one in leaving if contents[one.dialogue_id] == one.content],
        "changed_since": [one.dialogue_id for one in leaving if contents[one.dialogue_id] != one.content],
        "ratings": list(human_evaluation(record, paper, resamples, seed)),
        "kappa": {
            criterion: {**asdict(one), "paper": paper["kappa"][criterion]}
            for criterion, one in fleiss_kappas(record, resamples, seed).items()
        },
        "signature": signature_line(
            mean="ratings", interval="percentile", level=CONFIDENCE, resamples=resamples, seed=seed, unit="pair", numpy=np.__version__
        ),
        **({"alone": alone} if (alone := _alone(record)) else {}),
        **({"crossed": found} if (found := crossed_reading(record, resamples, seed)) else {}),
    }


def crossed_reading(record: dict[str, Any], resamples: int, seed: int) -> dict[str, Any] | None:
    """How often raters, who see one context of a crossed item at most, take the reply that fits it; None where none were judged.

    ``fitting`` is the share of choices, ``both_right`` that of the items of which most raters of either context were right; the intervals
    are by drawing dialogues.
    """
    judged = [one for one in record["judgements"] if one["kind"] == "crossed"]
    if not judged:
        return None
    # What goes by one id may be another text in another review.
    choices: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for one in judged:
        choices[one["review"], one["crossed_id"]][one["context"]].append(int(one["decision"] == one["fits"]))
    of = {item: item[1].rpartition("-")[0] for item in choices}
    right = [(of[item], vote) for item, contexts in choices.items() for votes in contexts.values() for vote in votes]
    both = [
        (of[item], int(all(2 * sum(votes) > len(votes) for votes in contexts.values())))
        for item, contexts in choices.items()
        if len(contexts) == 2
    ]

    def share(found: list[tuple[str, int]], name: str, counted: str) -> dict[str, Any]:
        mean = mean_of(found, resamples, (seed, "crossed", name))
        return {**{part: mean[part] for part in ("mean", "low", "high")}, counted: mean["ratings"]}

    how = {"interval": "percentile", "level": CONFIDENCE, "resamples": resamples, "seed": seed, "unit": "dialogue", "numpy": np.__version__}
    return {
        "items": len(choices),
        "dialogues": len(set(of.values())),
        "raters": raters_of(judged),
        "fitting": share(right, "fitting", "choices"),
        "both_right": share(both, "both", "items") if both else None,
        "signature": signature_line(right="fits", both="majority-of-each-context", **how),
    }


def human_evaluation(record: dict[str, Any], paper: dict[str, Any], resamples: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each sample, variant and criterion: the mean rating (1 to 3) with its bootstrap interval over pairs.

    The interval is None for a single pair. Rejected candidates are left out: they are no part of a release.
    """
    for sample, variants in RATED.items():
        for variant in variants:
            judged = [one for one in _of_sample(record, sample) if one["variant"] == variant]
            for criterion in CRITERIA if judged else ():
                ours = mean_of([(one["pair_id"], one[criterion]) for one in judged], resamples, (seed, sample, variant, criterion))
                beside = paper[variant][criterion] if sample == "pairs" else None
                yield {"sample": sample, "variant": variant, "criterion": criterion, **ours, "raters": raters_of(judged), "paper": beside}


def _of_sample(record: dict[str, Any], sample: str) -> list[Judgement]:
    """The judgements on the variants of a sample by raters who see all of them, as those of the paper did.

    Rejected texts stand beside them and are none of it, nor is what raters gave who saw one variant alone, in no light of the others.
    """
    judged = [one for one in record["judgements"] if one["kind"] == "variant" and "attempt" not in one and "block" not in one]
    return [one for one in judged if sample in one["samples"]]


def _alone(record: dict[str, Any]) -> dict[str, int] | None:
    """How many judgements are in no mean, as their raters saw one variant alone; None where there are none."""
    judged = [one for one in record["judgements"] if one["kind"] == "variant" and "block" in one]
    return {"raters": raters_of(judged), "judgements": len(judged)} if judged else None


def mean_of(ratings: Sequence[tuple[str, float]], resamples: int, parts: tuple[object, ...]) -> dict[str, Any]:
    """The mean of ratings by pair, and its interval by drawing pairs with all their ratings; None where there is a single pair."""
    sums = _sums(ratings)
    low = high = None
    if len(sums) > 1:
        rng = np.random.default_rng(derived_random(*parts, "ratings").getrandbits(64))
        even = np.full(len(sums), 1 / len(sums))
        drawn = np.array([rng.multinomial(len(sums), even) @ sums for _ in range(resamples)])
        ends = np.quantile(drawn[:, 0] / drawn[:, 1], TAILS)
        low, high = (round(float(value), PLACES) + 0.0 for value in ends)  # no zero is negative
    mean = round(float(sums[:, 0].sum() / sums[:, 1].sum()), PLACES) + 0.0
    return {"mean": mean, "low": low, "high": high, "items": len(sums), "ratings": len(ratings)}


def _sums(ratings: Iterable[tuple[str, float]]) -> NDArray[np.float64]:
    """The sum and the number of ratings, a row a name, in the order of the names."""
    given: dict[str, list[float]] = defaultdict(list)
    for name, rating in ratings:
        given[name].append(rating)
    return np.array([[sum(one), len(one)] for _, one in sorted(given.items())], dtype=float)


def fleiss_kappas(record: dict[str, Any], resamples: int, seed: int) -> dict[str, Measure]:
    """Fleiss' kappa of each criterion over the two variants, as in the paper, with its interval; none where nothing was rated."""
    rated = rating_rows({**record, "judgements": _of_sample(record, "pairs")})
    rows = [(one["item"], one["rater"], one["rating"], one["criterion"]) for one in rated]
    return {one.criterion: one.fleiss for one in agree(Table.of(rows), resamples=resamples, seed=seed).criteria} if rows else {}


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
    how = {WITHIN: "percentile-by-context", BETWEEN: "student-by-rater"}
    intervals = {design: name for design, name in how.items() if judged[design]}
    drawn = {"resamples": RESAMPLES, "seed": SEED} if judged[WITHIN] else {}
    signature = signature_line(mean="ratings", **intervals, level=CONFIDENCE, **drawn, numpy=np.__version__)
    return {"groups": groups, "differences": list(_differences(judged[WITHIN])), "signature": signature}


def mean_by_rater(ratings: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """The mean of ratings by rater, and its interval by Student's distribution with raters as what chance draws; None for a single rater.

    The ratings of a rater are as severe as the rater, so that contexts tell too little of how far a mean may be off. The variance is the
    jackknife's over raters, and the interval ends with the scale.
    """
    from scipy import stats

    sums = _sums(ratings)
    total, number = sums.sum(axis=0)
    mean, low, high = total / number, None, None
    if len(sums) > 1:
        error = float(np.sqrt(jackknifed((sums[:, 0] - mean * sums[:, 1]) / (number - sums[:, 1]))))
        reach = float(stats.t.isf((1 - CONFIDENCE) / 2, len(sums) - 1)) * error
        low, high = (round(float(np.clip(end, LEAST, MOST)), PLACES) for end in (mean - reach, mean + reach))
    return {"mean": round(float(mean), PLACES), "low": low, "high": high}


def _group(design: str, name: str, ones: Sequence[Judgement]) -> dict[str, Any]:
    about = {"design": design, "group": name, "ratings": len(ones), "contexts": len({one["pair_id"] for one in ones})}

    def mean(criterion: str) -> dict[str, Any]:
        if design == BETWEEN:
            return mean_by_rater([(":".join((one["review"], one["rater"])), one[criterion]) for one in ones])
        return mean_of([(one["pair_id"], one[criterion]) for one in ones], RESAMPLES, (SEED, design, name, criterion))

    means = {criterion: mean(criterion) for criterion in CRITERIA}
    return {**about, "raters": raters_of(ones), **{criterion: {part: mean[part] for part in PARTS} for criterion, mean in means.items()}}


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
