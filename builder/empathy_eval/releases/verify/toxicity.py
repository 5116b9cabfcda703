"""Toxicity, scored again where the scorer is at hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.completions.models.toxicity_scorer import Scorer, load_scorer, weights_of
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import MANIFEST, SPLITS, pair_id
from empathy_eval.evaluation.corpus.pairs import candidate_rows
from empathy_eval.metrics.registry import NotRecomputed
from empathy_eval.releases.verify.rows import RESTORE, read_rows

# Texts that are scored together.
BATCH = 2000
# A score is rounded to four places: one that lies between two may be rounded otherwise on another machine.
EXACT = 1.0001e-4
TOXIC = "toxic"


@dataclass(frozen=True)
class _Text:
    """A text and where it stands. ``score`` is what is released of it, None where nothing is; ``refused`` whether it is said to be too
    toxic, None where reasons of checks of one's own may say the same."""

    place: str
    name: str
    text: str
    score: float | None = None
    refused: bool | None = False


def toxicity_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Scores that the scorer does not give, and texts that are above the limit and are released, or are below and are refused for it.

    What is not scored again is reported.
    """
    scored = manifest["configuration"]["checks"]["toxicity"]
    if scored == "none":
        return
    config = ToxicityConfig(**scored)
    if reason := _not_at_hand(config, manifest["toxicity_weights"]):
        yield _told(folder, *reason)
        return
    scorer, texts = load_scorer(config), _texts(folder, manifest)
    # By batch: all of a release's texts are more than memory should hold.
    while batch := list(itertools.islice(texts, BATCH)):
        yield from _wrong(batch, scorer, config.at_most)


def _not_at_hand(config: ToxicityConfig, weights: str) -> tuple[str, str] | None:
    """(what, fix) where the scorer with those weights is not to be had; nothing is loaded by a path that a manifest names."""
    what = f'toxicity is not scored again: "{config.scorer}" '
    if config.scorer == "detoxify":
        return (
            f"{what}has its own weights, at a path on the publisher's machine",
            "ask the publisher for the weights, and build the release again",
        )
    try:
        here = weights_of(config)
    except InputError as error:
        return f"{what}is not installed", error.problems[0].fix
    if here != weights:
        return f"{what}has other weights here ({here[:12]}, not {weights[:12]})", "install the version that the manifest names"
    return None


def _told(folder: Path, what: str, fix: str) -> NotRecomputed:
    return NotRecomputed(str(folder / MANIFEST), what, fix, "toxicity")


def _wrong(batch: Sequence[_Text], scorer: Scorer, at_most: float) -> Iterator[Problem]:
    """What the scorer gives otherwise of some texts, each of which is scored once."""
    texts = list(dict.fromkeys(one.text for one in batch))
    scores = dict(zip(texts, (round(float(score), 4) for score in scorer(texts)), strict=True))
    for one in batch:
        score = scores[one.text]
        if one.score is not None and not abs(one.score - score) <= EXACT:
            yield Problem(one.place, f"{one.name} has the toxicity {one.score}, but its text gives {score}", RESTORE)
        elif one.refused is False and score > at_most + EXACT:
            yield Problem(one.place, f"{one.name} has a text whose toxicity is {score}, but at most {at_most} is allowed", RESTORE)
        elif one.refused and score <= at_most - EXACT:
            yield Problem(one.place, f'{one.name} is refused as "{TOXIC}", but its toxicity is {score}', RESTORE)


def _texts(folder: Path, manifest: dict[str, Any]) -> Iterator[_Text]:
    """Every text that a build scores; a reference with its pair, the other helper turns with their dialogue."""
    for split in SPLITS:
        known = set[str]()
        for place, row in read_rows(folder, "pairs", split, ["pair_id", "reference", *PAIR_VARIANTS, "toxicity"]):
            known.add(row["pair_id"])
            for name in ("reference", *PAIR_VARIANTS):
                yield _Text(place, f'"{row["pair_id"]}": {name}', row[name], row["toxicity"][name])
        scores = [f"{name}_toxicity" for name in CONTROLS]
        for place, row in read_rows(folder, "controls", split, ["pair_id", *CONTROLS, *scores]):
            for name in CONTROLS:
                yield _Text(place, f'"{row["pair_id"]}": {name}', row[name], row[f"{name}_toxicity"])
        for place, row in read_rows(folder, "dialogues", split, ["dialogue_id", "turns"]):
            for number, turn in enumerate(row["turns"]):
                if turn["role"] == "helper" and pair_id(row["dialogue_id"], number) not in known:
                    yield _Text(place, f'"{row["dialogue_id"]}": turn {number}', turn["text"])
        for place, row in read_rows(folder, "crossed", split) if "crossed" in manifest["counts"] else ():
            for name in ("reply_1", "reply_2"):
                yield _Text(place, f'"{row["crossed_id"]}": {name}', row[name])
    path, own = folder / "candidates.parquet", bool(manifest["configuration"]["checks"].get("own"))
    for row in candidate_rows(folder):
        place, refused = f"{path}: {row['pair_id']}", TOXIC in row["reasons"]
        yield _Text(place, f"text {row['attempt']} of {row['variant']}", row["text"], refused=None if refused and own else refused)
