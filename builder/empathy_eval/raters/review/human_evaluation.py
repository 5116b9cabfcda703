"""Human evaluation for the manifest of the next release: mean ratings beside the paper's, agreement, and crossed items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import derived_random, digest_file, signature_line
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.contrasts import CELLS, PAIR_VARIANTS
from empathy_eval.raters.agreement import Estimate, RatingTable, agree
from empathy_eval.raters.review import record as records
from empathy_eval.raters.review.record import CRITERIA, Judgement, rater_count
from empathy_eval.raters.review.sample import BETWEEN, WITHIN
from empathy_eval.raters.study.by_rater import jackknife_variance
from empathy_eval.statistics.estimate import CONFIDENCE, TAILS, student_quantile

# Rated variants of each sample.
RATED = {"pairs": PAIR_VARIANTS, "cells": CELLS}
PLACES = 4


def review_facts(path: Path, contents: Mapping[str, str], resamples: int, seed: int) -> dict[str, Any]:
    """The part of a manifest about a record: decisions, and the human evaluation beside the paper's.

    ``contents`` gives the content hash of the dialogues of the build by id. A dialogue to be removed whose text has changed is not removed
    but listed under ``changed_since``. Judgements of systems' replies are ignored. Ratings of variants by raters who saw one alone are
    counted under ``alone``, and are in no mean and no kappa.

    Raises:
        InputError: for a faulty record, and one of systems' replies alone.
    """
    record = records.without_replies(whole := records.read_record(path))
    if whole["judgements"] and not record["judgements"]:
        what = "holds judgements of replies of systems, but none of texts of a release"
        raise input_error(path, what, "name the record of a review of a release, or leave it out")
    leaving = [decision for decision in records.decisions(record) if decision.removed and decision.dialogue_id in contents]
    releases = [{name: review["release"][name] for name in ("name", "version")} for review in record["reviews"].values()]
    paper = read_yaml(data_folder("release") / "paper_ratings.yaml", "paper_ratings")
    return {
        "record": digest_file(path),
        "releases": sorted(releases, key=itemgetter("name", "version")),
        "raters": rater_count(record["judgements"]),
        "judgements": len(record["judgements"]),
        "removed": [decision.to_json() for decision in leaving if contents[decision.dialogue_id] == decision.content],
        "changed_since": [decision.dialogue_id for decision in leaving if contents[decision.dialogue_id] != decision.content],
        "ratings": list(human_evaluation(record, paper, resamples, seed)),
        "kappa": {name: {**row.to_json(), "paper": paper["kappa"][name]} for name, row in fleiss_kappas(record, resamples, seed).items()},
        "signature": signature_line(mean="ratings", **_percentile("pair", resamples, seed)),
        **({"alone": {"raters": rater_count(alone), "judgements": len(alone)}} if (alone := _variants(record, alone=True)) else {}),
        **({"crossed": crossed} if (crossed := crossed_reading(record, resamples, seed)) else {}),
    }


def _percentile(unit: str, resamples: int, seed: int, numpy: str | None = np.__version__) -> dict[str, object]:
    """Settings of a percentile interval, for its signature."""
    how = {"interval": "percentile", "level": CONFIDENCE, "resamples": resamples, "seed": seed}
    return {**how, "unit": unit, "numpy": numpy}


def crossed_reading(record: dict[str, Any], resamples: int, seed: int) -> dict[str, Any] | None:
    """How often raters, who see one context of a crossed item at most, choose the fitting reply; None without such judgements.

    ``fitting`` is the share of choices, ``both_right`` that of the items for which most raters of either context were right; intervals are
    from resampled dialogues.
    """
    judged = [judgement for judgement in record["judgements"] if judgement["kind"] == "crossed"]
    if not judged:
        return None
    # An id may have another text in another review.
    choices: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for judgement in judged:
        choices[judgement["review"], judgement["crossed_id"]][judgement["context"]].append(int(judgement["decision"] == judgement["fits"]))
    by_item = [(crossed_id.rpartition("-")[0], [*contexts.values()]) for (_, crossed_id), contexts in choices.items()]
    right = [(dialogue, vote) for dialogue, contexts in by_item for votes in contexts for vote in votes]
    both = [(dialogue, all(2 * sum(votes) > len(votes) for votes in contexts)) for dialogue, contexts in by_item if len(contexts) == 2]
    return {
        "items": len(choices),
        "dialogues": len({dialogue for dialogue, _ in by_item}),
        "raters": rater_count(judged),
        "fitting": {**mean_of(right, resamples, (seed, "crossed", "fitting")), "choices": len(right)},
        "both_right": {**mean_of(both, resamples, (seed, "crossed", "both")), "items": len(both)} if both else None,
        "signature": signature_line(right="fits", both="majority-of-each-context", **_percentile("dialogue", resamples, seed)),
    }


def human_evaluation(record: dict[str, Any], paper: dict[str, Any], resamples: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each sample, variant and criterion: the mean rating (1 to 3) with its bootstrap interval over pairs.

    The interval is None for a single pair. Rejected candidates are left out: they are no part of a release.
    """
    for sample, variants in RATED.items():
        for variant in variants:
            judged = [judgement for judgement in _variants(record) if sample in judgement["samples"] and judgement["variant"] == variant]
            pairs, about = [judgement["pair_id"] for judgement in judged], {"sample": sample, "variant": variant}
            for criterion in CRITERIA if judged else ():
                ratings = [judgement[criterion] for judgement in judged]
                ours = mean_of(list(zip(pairs, ratings, strict=True)), resamples, (seed, sample, variant, criterion))
                counts = {"items": len(set(pairs)), "ratings": len(ratings), "raters": rater_count(judged)}
                published = paper[variant][criterion] if sample == "pairs" else None
                yield {**about, "criterion": criterion, **ours, **counts, "paper": published}


def _variants(record: dict[str, Any], *, alone: bool = False) -> list[Judgement]:
    """Judgements on variants of the release by raters who saw all of them, as those of the paper did, or one ``alone``.

    Rejected texts are excluded.
    """
    judged = [judgement for judgement in record["judgements"] if judgement["kind"] == "variant" and "attempt" not in judgement]
    return [judgement for judgement in judged if ("block" in judgement) == alone]


def mean_of(ratings: Sequence[tuple[str, float]], resamples: int, parts: tuple[object, ...]) -> dict[str, Any]:
    """Mean of (pair, rating), and its interval from resampled pairs with all their ratings; None for a single pair."""
    _, sums = _sums(ratings)
    low = high = None
    if len(sums) > 1:
        rng = np.random.default_rng(derived_random(*parts, "ratings").getrandbits(64))
        even = np.full(len(sums), 1 / len(sums))
        drawn = np.array([rng.multinomial(len(sums), even) @ sums for _ in range(resamples)])
        ends = np.quantile(drawn[:, 0] / drawn[:, 1], TAILS)
        low, high = (round(float(value), PLACES) + 0.0 for value in ends)  # no zero is negative
    mean = round(float(sums[:, 0].sum() / sums[:, 1].sum()), PLACES) + 0.0
    return {"mean": mean, "low": low, "high": high}


def _sums(ratings: Sequence[tuple[str, float]]) -> tuple[list[str], NDArray[np.float64]]:
    """Names in order, and the sum and number of the ratings of each, shape (names, 2)."""
    names, index = np.unique([name for name, _ in ratings], return_inverse=True)
    return names.tolist(), np.stack([np.bincount(index, [rating for _, rating in ratings]), np.bincount(index)], axis=1)


def fleiss_kappas(record: dict[str, Any], resamples: int, seed: int) -> dict[str, Estimate]:
    """Fleiss' kappa of each criterion over the two variants, as in the paper, with its interval; empty without ratings."""
    judged = [judgement for judgement in _variants(record) if "pairs" in judgement["samples"]]
    rows = list(map(records.TABLE_ROW, records.rating_rows({**record, "judgements": judged})))
    criteria = agree(RatingTable.of(rows), resamples=resamples, seed=seed).criteria if rows else ()
    return {criterion.criterion: criterion.fleiss for criterion in criteria}


RESAMPLES, SEED = 1000, 0
LEAST, MOST = 1, 3


def by_group(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """By design and group the number of ratings, and the mean of each criterion with its interval; None without any.

    If raters see all groups, intervals are by contexts (:func:`mean_of`), else by raters (:func:`mean_by_rater`). Groups are the systems
    whose replies were rated, and the variants that raters saw alone. ``differences`` compares systems whose replies the same raters saw,
    over the contexts rated for both: each counts once.
    """
    judged: dict[str, dict[str, list[Judgement]]] = {WITHIN: defaultdict(list), BETWEEN: defaultdict(list)}
    for judgement in record["judgements"]:
        if judgement["kind"] == "reply" or "block" in judgement:
            judged[BETWEEN if "block" in judgement else WITHIN][records.group_of(judgement)].append(judgement)
    groups = [_group(design, name, judgements) for design, by_name in judged.items() for name, judgements in sorted(by_name.items())]
    if not groups:
        return None
    how = {WITHIN: "percentile-by-context", BETWEEN: "student-by-rater"}
    intervals = {design: name for design, name in how.items() if judged[design]}
    drawn = {"resamples": RESAMPLES, "seed": SEED} if judged[WITHIN] else {}
    signature = signature_line(mean="ratings", **intervals, level=CONFIDENCE, **drawn, numpy=np.__version__)
    return {"groups": groups, "differences": list(_differences(judged[WITHIN])), "signature": signature}


def mean_by_rater(ratings: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """Mean of ratings by rater, and its Student interval with raters as the unit; None for a single rater.

    Ratings of a rater share the rater's severity, so an interval by contexts would be too narrow. The variance is the jackknife's over
    raters, and the interval is clipped to the scale.
    """
    _, sums = _sums(ratings)
    total, number = sums.sum(axis=0)
    mean, low, high = total / number, None, None
    if len(sums) > 1:
        error = float(np.sqrt(jackknife_variance((sums[:, 0] - mean * sums[:, 1]) / (number - sums[:, 1]))))
        reach = student_quantile(len(sums) - 1) * error
        low, high = (round(float(np.clip(end, LEAST, MOST)), PLACES) for end in (mean - reach, mean + reach))
    return {"mean": round(float(mean), PLACES), "low": low, "high": high}


def _group(design: str, name: str, judgements: Sequence[Judgement]) -> dict[str, Any]:
    contexts = [judgement["pair_id"] for judgement in judgements]
    raters = [f"{judgement['review']}:{judgement['rater']}" for judgement in judgements]
    means = dict[str, Any]()
    for criterion in CRITERIA:
        rated = list(zip(raters if design == BETWEEN else contexts, (judgement[criterion] for judgement in judgements), strict=True))
        means[criterion] = mean_by_rater(rated) if design == BETWEEN else mean_of(rated, RESAMPLES, (SEED, design, name, criterion))
    counts = {"ratings": len(judgements), "contexts": len(set(contexts)), "raters": len(set(raters))}
    return {"design": design, "group": name, **counts, **means}


def _differences(judged: Mapping[str, Sequence[Judgement]]) -> Iterator[dict[str, Any]]:
    """Differences of every two systems, for each criterion."""
    for group, other in combinations(sorted(judged), 2):
        row: dict[str, Any] = {}
        for criterion in CRITERIA:
            first, second = (_by_context(judged[name], criterion) for name in (group, other))
            if both := [(name, mean - second[name]) for name, mean in first.items() if name in second]:
                row["contexts"] = len(both)
                row[criterion] = mean_of(both, RESAMPLES, (SEED, group, other, criterion))
        if row:
            yield {"group": group, "other": other, **row}


def _by_context(judgements: Sequence[Judgement], criterion: str) -> dict[str, float]:
    names, sums = _sums([(judgement["pair_id"], judgement[criterion]) for judgement in judgements])
    return dict(zip(names, (sums[:, 0] / sums[:, 1]).tolist(), strict=True))


def group_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """The figures of :func:`by_group` as lines."""
    for row in figures["groups"]:
        alone = " alone" if row["design"] == BETWEEN else ""
        yield f"{row['group']}{alone}: {row['ratings']} replies rated in {row['contexts']} contexts by {row['raters']} raters"
        yield f"  mean, 1 to 3:  {_means_text(row, 'z.2f')}"
    for row in figures["differences"]:
        yield f"{row['group']} minus {row['other']}, by context ({row['contexts']}):  {_means_text(row, '+z.2f')}"
    yield f"  {figures['signature']}"


def _means_text(row: Mapping[str, Any], form: str) -> str:
    def interval(figure: Mapping[str, Any]) -> str:
        return "" if figure["low"] is None else f" [{figure['low']:{form}}, {figure['high']:{form}}]"

    return "  ".join(f"{criterion} {row[criterion]['mean']:{form}}{interval(row[criterion])}" for criterion in CRITERIA)


# A key, whether it is wrong, and what is wrong then.
Rules = Iterator[tuple[str, object, str]]
# Half a unit of the last decimal place of a rounded mean, and a little.
ROUNDING = 0.51 * 10**-PLACES


def impossible_figures(facts: Mapping[str, Any], resamples: int, seed: int, numpy: str | None) -> Iterator[tuple[str, str]]:
    """(key, what) of the figures of :func:`review_facts` that no record gives; ``numpy`` is the version by which they were made."""
    paper = read_yaml(data_folder("release") / "paper_ratings.yaml", "paper_ratings")
    rules = (*_review_rules(facts), *_rating_rules(facts, paper), *_kappa_rules(facts, paper), *_crossed_rules(facts))
    yield from ((key, what) for key, wrong, what in rules if wrong)
    if facts["signature"] != (signature := signature_line(mean="ratings", **_percentile("pair", resamples, seed, numpy))):
        yield "signature", f'is "{facts["signature"][:200]}", but the configuration gives "{signature}"'


def _review_rules(facts: Mapping[str, Any]) -> Rules:
    """Numbers of raters and judgements, and removed dialogues."""
    raters, judgements, removed, alone = facts["raters"], facts["judgements"], facts["removed"], facts.get("alone", {})
    ids, changed = [removal["dialogue_id"] for removal in removed], facts["changed_since"]
    twice = sorted(set(ids) & set(changed))
    samples = Counter[tuple[str, str]]()
    for row in facts["ratings"]:
        samples[row["sample"], row["criterion"]] += row["ratings"]
    listed = sum(removal["remove"] + removal["keep"] for removal in removed) + alone.get("judgements", 0) + max(samples.values(), default=0)
    listed += facts["crossed"]["fitting"]["choices"] if facts.get("crossed") else 0
    few = alone and alone["raters"] > min(raters, alone["judgements"])
    yield "raters", raters > judgements or bool(raters) != bool(judgements), f"{raters} raters cannot give {judgements} judgements"
    yield "removed", ids != sorted(set(ids)) or changed != sorted(changed), "is not in order"
    yield "changed_since", twice, f"{', '.join(twice)} is also listed as removed"
    for removal in removed:
        remove, keep, reasons = removal["remove"], removal["keep"], len(removal["reasons"])
        what = f"has {remove} votes to remove, {keep} to keep, and {reasons} reasons"
        yield f"removed: {removal['dialogue_id']}", remove < max(keep, 1) or reasons != remove, what
    yield "judgements", listed > judgements, f"says {judgements}, but {listed} are listed"
    yield "alone", few, "has more raters than the review, or than its own judgements"


def _rating_rules(facts: Mapping[str, Any], paper: Mapping[str, Any]) -> Rules:
    """Means by sample, variant and criterion."""
    stated = {(row["sample"], row["variant"]): row for row in facts["ratings"]}
    rated = [(sample, variant) for sample, variants in RATED.items() for variant in variants if (sample, variant) in stated]
    rows = [(row["sample"], row["variant"], row["criterion"]) for row in facts["ratings"]]
    if rows != [(*key, criterion) for key in rated for criterion in CRITERIA]:
        yield "ratings", True, "must have one row for each criterion of each rated variant"
        return
    counts: dict[tuple[str, str], set[tuple[int, ...]]] = defaultdict(set)
    for row in facts["ratings"]:
        key = f"ratings: {row['sample']}, {row['variant']}, {row['criterion']}"
        items, raters, ratings = (row[name] for name in ("items", "raters", "ratings"))
        counts[row["sample"], row["variant"]].add((items, raters, ratings))
        figure = paper[row["variant"]][row["criterion"]] if row["sample"] == "pairs" else None
        possible = 1 <= items <= ratings and 1 <= raters <= min(ratings, facts["raters"])
        yield key, row["paper"] != figure, f"says that the paper has {row['paper']}, but it has {figure}"
        yield key, not possible, f"{raters} raters cannot give {ratings} ratings of {items} items"
        yield from _mean_rules(key, row, ratings, items)
    for (sample, variant), numbers in counts.items():
        yield f"ratings: {sample}, {variant}", len(numbers) > 1, "the criteria differ in their numbers of items, raters or ratings"


def _mean_rules(key: str, row: Mapping[str, Any], count: int, units: int | None = None) -> Rules:
    """A mean of ``count`` whole numbers, with an interval if there are several ``units``."""
    wrong = abs(row["mean"] * count - round(row["mean"] * count)) > ROUNDING * count + 1e-9
    yield key, wrong, f"its mean of {row['mean']} is not a mean of {count} whole numbers"
    if units is not None:
        yield key, (row["low"] is None) != (units < 2), "has an interval over one unit, or none over several"
        yield from _interval_rules(key, row)


def _interval_rules(key: str, row: Mapping[str, Any]) -> Rules:
    low, high = row["low"], row["high"]
    wrong = (low is None) != (high is None) or (low is not None and low > high)
    yield key, wrong, f"its interval of {low} to {high} is not valid"


def _kappa_rules(facts: Mapping[str, Any], paper: Mapping[str, Any]) -> Rules:
    """Agreement by criterion."""
    criteria = set(CRITERIA) if any(row["sample"] == "pairs" for row in facts["ratings"]) else set()
    yield "kappa", set(facts["kappa"]) != criteria, "must be given for each rated criterion, and for no other"
    for criterion, kappa in facts["kappa"].items():
        key, values = f"kappa: {criterion}", [kappa[name] for name in ("value", "low", "high") if kappa[name] is not None]
        figure = paper["kappa"].get(criterion)
        yield key, figure != kappa["paper"], f"says that the paper has {kappa['paper']}, but it has {figure}"
        yield key, not all(-1 <= value <= 1 for value in values), f"{values} are not values of agreement"
        yield from _interval_rules(key, kappa)


def _crossed_rules(facts: Mapping[str, Any]) -> Rules:
    """The reading of crossed items."""
    if not (crossed := facts.get("crossed")):
        return
    items, raters, choices, both = crossed["items"], crossed["raters"], crossed["fitting"]["choices"], crossed["both_right"]
    wrong = not crossed["dialogues"] <= items <= choices or raters > min(facts["raters"], choices)
    yield "crossed", wrong, f"{raters} raters cannot make {choices} choices of {items} items"
    yield from _mean_rules("crossed: fitting", crossed["fitting"], choices, crossed["dialogues"])
    if both:
        yield "crossed: both_right", both["items"] > items, f"is of {both['items']} items, but only {items} were read"
        yield from _mean_rules("crossed: both_right", both, both["items"])
