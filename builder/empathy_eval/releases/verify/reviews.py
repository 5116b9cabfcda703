"""What people said, as a manifest tells it: numbers that can come of ratings, beside the paper's."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Finding
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.raters.review.human_evaluation import PLACES, RATED
from empathy_eval.raters.review.record import CRITERIA
from empathy_eval.statistics.estimate import CONFIDENCE

# Half of what rounding takes from a mean, and a little.
ROUNDED = 0.51 * 10**-PLACES
Said = Iterator[tuple[str, str]]


def review_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Numbers of a review that no record gives."""
    if not (said := manifest["reviews"]):
        return
    for where, what in (*_people(said), *_ratings(said), *_kappas(said), *_crossed(said), *_signed(manifest)):
        yield Finding(f"{folder / MANIFEST}: reviews: {where}", what)


def _people(said: dict[str, Any]) -> Said:
    """Who judged, and what was removed."""
    if said["raters"] > said["judgements"] or bool(said["raters"]) != bool(said["judgements"]):
        yield "raters", f"{said['raters']} raters cannot give {said['judgements']} judgements"
    ids = [one["dialogue_id"] for one in said["removed"]]
    if ids != sorted(ids) or said["changed_since"] != sorted(said["changed_since"]) or len(set(ids)) < len(ids):
        yield "removed", "is not in order"
    if both := sorted(set(ids) & set(said["changed_since"])):
        yield "changed_since", f"{both[0]} is also listed as removed"
    for one in said["removed"]:
        if one["remove"] < max(one["keep"], 1) or len(one["reasons"]) != one["remove"]:
            what = f"has {one['remove']} votes to remove, {one['keep']} to keep, and {len(one['reasons'])} reasons"
            yield f"removed: {one['dialogue_id']}", what
    judged = sum(one["remove"] + one["keep"] for one in said["removed"]) + (alone := said.get("alone", {})).get("judgements", 0)
    judged += (said.get("crossed") or {"fitting": {"choices": 0}})["fitting"]["choices"]
    samples: dict[tuple[str, str], int] = defaultdict(int)
    for row in said["ratings"]:
        samples[row["sample"], row["criterion"]] += row["ratings"]
    if judged + max(samples.values(), default=0) > said["judgements"]:
        yield "judgements", f"says {said['judgements']}, but {judged + max(samples.values(), default=0)} are listed"
    if alone and alone["raters"] > min(said["raters"], alone["judgements"]):
        yield "alone", "has more raters than the review, or than its own judgements"


def _ratings(said: dict[str, Any]) -> Said:
    """The means by sample, variant and criterion."""
    paper = read_yaml(data_folder("release") / "paper_ratings.yaml", "paper_ratings")
    order = [(sample, variant, criterion) for sample, variants in RATED.items() for variant in variants for criterion in CRITERIA]
    keys = [(row["sample"], row["variant"], row["criterion"]) for row in said["ratings"]]
    whole = {key[:2] for key in keys}
    if keys != [key for key in order if key[:2] in whole]:
        yield "ratings", "must have one row for each criterion of each rated variant"
        return
    counts: dict[tuple[str, str], set[tuple[int, ...]]] = defaultdict(set)
    for row in said["ratings"]:
        where = f"ratings: {row['sample']}, {row['variant']}, {row['criterion']}"
        counts[row["sample"], row["variant"]].add(tuple(row[name] for name in ("items", "raters", "ratings")))
        beside = paper[row["variant"]][row["criterion"]] if row["sample"] == "pairs" else None
        if row["paper"] != beside:
            yield where, f"says that the paper has {row['paper']}, but it has {beside}"
        if not 1 <= row["items"] <= row["ratings"] or not 1 <= row["raters"] <= min(row["ratings"], said["raters"]):
            yield where, f"{row['raters']} raters cannot give {row['ratings']} ratings of {row['items']} items"
        elif what := _no_mean(row, row["ratings"], row["items"]):
            yield where, what
    for (sample, variant), found in counts.items():
        if len(found) > 1:
            yield f"ratings: {sample}, {variant}", "the criteria differ in their numbers of items, raters or ratings"


def _no_mean(row: dict[str, Any], count: int, units: int) -> str | None:
    """What keeps a mean from being one of so many whole numbers, with an interval over so many units."""
    if abs(row["mean"] * count - round(row["mean"] * count)) > ROUNDED * count + 1e-9:
        return f"its mean of {row['mean']} is not a mean of {count} whole numbers"
    if (row["low"] is None) != (row["high"] is None) or (row["low"] is None) != (units < 2):
        return "has an interval over one unit, or none over several"
    if row["low"] is not None and row["low"] > row["high"]:
        return f"its interval of {row['low']} to {row['high']} is not valid"
    return None


def _kappas(said: dict[str, Any]) -> Said:
    """Agreement by criterion."""
    paper = read_yaml(data_folder("release") / "paper_ratings.yaml", "paper_ratings")["kappa"]
    rated = any(row["sample"] == "pairs" for row in said["ratings"])
    if set(said["kappa"]) != (set(CRITERIA) if rated else set()):
        yield "kappa", "must be given for each rated criterion, and for no other"
    for criterion, one in said["kappa"].items():
        values = [one[name] for name in ("value", "low", "high") if one[name] is not None]
        if paper.get(criterion) != one["paper"]:
            yield f"kappa: {criterion}", f"says that the paper has {one['paper']}, but it has {paper.get(criterion)}"
        if any(not (math.isfinite(value) and -1 <= value <= 1) for value in values):
            yield f"kappa: {criterion}", f"{values} are not values of agreement"
        if (one["low"] is None) != (one["high"] is None) or (one["low"] is not None and one["low"] > one["high"]):
            yield f"kappa: {criterion}", f"its interval of {one['low']} to {one['high']} is not valid"


def _crossed(said: dict[str, Any]) -> Said:
    """The reading of crossed items."""
    if not (one := said.get("crossed")):
        return
    fitting, both = one["fitting"], one["both_right"]
    if not one["dialogues"] <= one["items"] <= fitting["choices"] or one["raters"] > min(said["raters"], fitting["choices"]):
        yield "crossed", f"{one['raters']} raters cannot make {fitting['choices']} choices of {one['items']} items"
    elif what := _no_mean(fitting, fitting["choices"], one["dialogues"]):
        yield "crossed: fitting", what
    if both and both["items"] > one["items"]:
        yield "crossed: both_right", f"is of {both['items']} items, but only {one['items']} were read"
    elif both and abs(both["mean"] * both["items"] - round(both["mean"] * both["items"])) > ROUNDED * both["items"] + 1e-9:
        yield "crossed: both_right", f"its mean of {both['mean']} is not a mean of {both['items']} whole numbers"


def _signed(manifest: dict[str, Any]) -> Said:
    """How the means were made."""
    configuration, said = manifest["configuration"], manifest["reviews"]
    wanted = signature_line(
        mean="ratings", interval="percentile", level=CONFIDENCE, resamples=configuration["report"]["bootstrap"], seed=configuration["seed"],
        unit="pair", numpy=manifest["software"].get("numpy"),
    )  # fmt: skip
    if said["signature"] != wanted:
        yield "signature", f'is "{said["signature"][:200]}", but the configuration gives "{wanted}"'
