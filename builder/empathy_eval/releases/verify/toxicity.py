"""Toxicity, scored again where the scorer is at hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Finding, InputError
from empathy_eval.completions.models.toxicity_scorer import Scorer, load_scorer, weights_of
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.dataset import MANIFEST, pair_id
from empathy_eval.generation.outcomes import VARIANTS
from empathy_eval.releases.assemble.read_back import outcome_of, read_back, tables_of
from empathy_eval.releases.verify.texts import TOXIC

# Texts that are scored together.
BATCH = 2000
# A score is rounded to four places: one that lies between two may be rounded otherwise on another machine.
EXACT = 1.0001e-4


@dataclass(frozen=True)
class _ScoredText:
    """A text and where it stands. ``score`` is what is released of it, None where nothing is; ``refused`` whether it is said to be too
    toxic, None where reasons of checks of one's own may say the same."""

    place: str
    name: str
    text: str
    score: float | None = None
    refused: bool | None = False


def toxicity_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Scores that the scorer does not give, and texts that are above the limit and are released, or are below and are refused for it.

    What is not scored again is reported.
    """
    scored = manifest["configuration"]["checks"]["toxicity"]
    if scored == "none":
        return
    config = ToxicityConfig(**scored)
    if reason := _not_at_hand(config, manifest["toxicity_weights"]):
        yield Finding(str(folder / MANIFEST), *reason, severity="unchecked", about="toxicity")
        return
    scorer, texts = load_scorer(config), _texts(folder, manifest)
    # By batch: all of a release's texts are more than memory should hold.
    while batch := list(itertools.islice(texts, BATCH)):
        yield from (Finding(f"{folder}: {name}", what) for name, what in _wrong(batch, scorer, config.at_most))


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


def _wrong(batch: Sequence[_ScoredText], scorer: Scorer, at_most: float) -> Iterator[tuple[str, str]]:
    """(place, what) of what the scorer gives otherwise of some texts, each of which is scored once."""
    texts = list(dict.fromkeys(one.text for one in batch))
    scores = dict(zip(texts, (round(float(score), 4) for score in scorer(texts)), strict=True))
    for one in batch:
        score = scores[one.text]
        if one.score is not None and not abs(one.score - score) <= EXACT:
            yield one.place, f"{one.name} has the toxicity {one.score}, but its text gives {score}"
        elif one.refused is False and score > at_most + EXACT:
            yield one.place, f"{one.name} has a text whose toxicity is {score}, but at most {at_most} is allowed"
        elif one.refused and score <= at_most - EXACT:
            yield one.place, f'{one.name} is refused as "{TOXIC}", but its toxicity is {score}'


def _texts(folder: Path, manifest: dict[str, Any]) -> Iterator[_ScoredText]:
    """Every text that a build scores: helper turns, variants with the scores that are released of them, replies and candidates."""
    own = bool(manifest["configuration"]["checks"].get("own"))
    for stored in read_back(folder, tables_of(manifest)):
        outcome = outcome_of(stored.dialogue_id, stored.by_table(), manifest)
        if outcome is None or outcome.dialogue is None:
            continue
        scored = {pair.turn: pair.reference_toxicity for pair in outcome.pairs}
        for number, turn in enumerate(outcome.dialogue.turns):
            if turn.role == "helper":
                yield _ScoredText(pair_id(outcome.dialogue_id, number), "reference", turn.text, scored.get(number))
        for pair in outcome.pairs:
            for name in VARIANTS:
                if made := getattr(pair, name):
                    yield _ScoredText(pair_id(outcome.dialogue_id, pair.turn), name, made.text, made.toxicity)
        for item in outcome.crossed:
            yield from (_ScoredText(item.crossed_id, name, getattr(item, name)) for name in ("reply_1", "reply_2"))
        for one in outcome.candidates:
            refused, name = TOXIC in one.reasons, f"{one.kind} {one.attempt} in candidates.parquet"
            yield _ScoredText(pair_id(outcome.dialogue_id, one.turn), name, one.text, refused=None if refused and own else refused)
