"""What people said in a review of the texts of a release, where these are still the ones they read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.tabular import table_batches
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import column, files_of
from empathy_eval.evaluation.inversion.inversion import Chance
from empathy_eval.raters.agreement import Measure
from empathy_eval.raters.judges.folder import PLACES, Folder, Scored, Text, scored_of
from empathy_eval.raters.judges.reckoning import Reckoning, reckoning_of
from empathy_eval.raters.review.record import CRITERIA, content_hash
from empathy_eval.raters.review.sheets import text_hash

# The scale that people rate on.
LOWEST, STEPS = 1, 3


def rated_by_people(reviews: Mapping[str, Any] | None, release_dir: Path) -> dict[str, dict[Text, float]]:
    """By criterion and text the mean rating of people; nothing without a record."""
    if reviews is None:
        return {}
    hashes: dict[Text, str] = {}
    for config, variants in (("pairs", PAIR_VARIANTS), ("controls", CONTROLS)):
        names = column(release_dir, config, "pair_id")
        for variant in variants:
            texts = column(release_dir, config, variant)
            hashes |= {(name, variant): text_hash(text) for name, text in zip(names, texts, strict=True)}
    given: dict[str, dict[Text, list[int]]] = {name: defaultdict(list) for name in CRITERIA}
    for one in reviews["judgements"]:
        if one["kind"] == "variant" and "attempt" not in one and hashes.get((one["pair_id"], one["variant"])) == one["text"]:
            for name in CRITERIA:
                given[name][one["pair_id"], one["variant"]].append(one[name])
    return {name: {text: round(sum(some) / len(some), PLACES) for text, some in found.items()} for name, found in given.items()}


def contents_in(release_dir: Path) -> dict[str, str]:
    """The hash of the text of each dialogue, as raters' judgements of dialogues have it."""
    batches = (batch for path in files_of(release_dir, "dialogues") for batch in table_batches(path, ["dialogue_id", "turns"]))
    return {row["dialogue_id"]: content_hash(row["turns"]) for batch in batches for row in batch.to_pylist()}


def with_people(folder: Folder, chance: Chance, record: Mapping[str, Any], release_dir: Path) -> dict[str, dict[str, Any]]:
    """How far a judge agrees with the people of a record, by criterion and figure, as JSON values; of criteria that they rated by."""
    people, reckoning = rated_by_people(record, release_dir), reckoning_of(folder, chance)
    rated = [one for one in scored_of(folder) if one.name in people] if folder.header["rubric"]["kind"] == "rating" else []
    found = {one.name: beside_people(one, people[one.name], reckoning) for one in rated}
    return {name: {figure: asdict(one) for figure, one in some.items()} for name, some in found.items()}


def beside_people(scored: Scored, people: Mapping[Text, float], reckoning: Reckoning) -> dict[str, Measure]:
    """Kappa of the two ratings rounded, halves up, the judge's on the people's scale; and the correlation of ranks."""
    merits = scored.merits
    texts = [text for text in merits if text in people]
    names = [pair for pair, _ in texts]
    judged = np.array([round(LOWEST + (STEPS - 1) * merits[text], PLACES) for text in texts])
    rated = np.array([people[text] for text in texts])
    rounded = tuple(np.floor(one + 0.5).astype(np.int64) - LOWEST for one in (judged, rated))
    scale, of = range(LOWEST, LOWEST + STEPS), "judge,mean-of-people"
    return {
        "kappa": reckoning.kappa((rounded[0], rounded[1]), scale, names, "quadratic", of=of, rounded="halves-up"),
        "spearman": reckoning.correlation(judged, rated, names, ranks=True, of=of),
    }
