"""Directions of plain features and the voice shortcut, with values derived by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from empathy_eval.commands.shortcuts import direction_table, shortcuts
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.rows import FeatureDirection
from empathy_eval.evaluation.shortcuts.texts import count_features, feature_directions, voice_wins
from empathy_eval.metrics.lexical import word_lists
from empathy_eval.statistics.estimate import Clusters

PLAIN, HALF = "stone wall", "lovely wall"


def of_feature(kind: list[str], cold: list[str], dialogues: list[str], name: str = "positive") -> FeatureDirection:
    clusters = Clusters.of(dialogues, [1] * len(dialogues))
    found = feature_directions(count_features(kind), count_features(cold), clusters, ResamplingSettings(200, 0, 7))
    return next(one for one in found if one.feature == name)


def test_a_direction_is_cohens_d_over_the_texts() -> None:
    # Shares of 1/2, 0, 1/2, 0 against 0, 0, 0, 1/2: means 1/4 and 1/8, variances 1/16 and 3/64, so d is 1/8 over the root of 7/128.
    one = of_feature([HALF, PLAIN, HALF, PLAIN], [PLAIN, PLAIN, PLAIN, HALF], ["a", "a", "b", "b"])
    assert one.difference and one.difference.value == pytest.approx(math.sqrt(2 / 7), abs=1e-4)
    assert one.difference.low is not None and one.difference.high is not None and one.difference.low <= one.difference.number


def test_a_feature_without_spread_has_no_direction_and_one_dialogue_no_interval() -> None:
    assert of_feature([PLAIN] * 2, [PLAIN] * 2, ["a", "b"]).difference is None
    alone = of_feature([HALF, PLAIN], [PLAIN, PLAIN], ["a", "a"]).difference
    assert alone and alone.low is None


def test_voices_tell_by_their_odds_in_the_other_folds() -> None:
    folds = np.array([0, 0, 1, 1])
    # In fold 1 the kind texts are in voice a and the cold ones in b, so in fold 0 a wins over b, and equal voices are a tie.
    assert voice_wins(["a", "b", "a", "a"], ["b", "b", "b", "b"], folds).tolist() == [1, 0.5, 1, 1]


def test_the_command_prints_every_feature_in_every_contrast(seeds: Path) -> None:
    found = shortcuts(seeds, without=["embedding"])
    said = direction_table(found)
    assert all(f"\n  {name} " in said for name in word_lists().names)
    assert all(one.contrast in said for one in found.contrasts if one.directions) and "settings: difference:Cohen's d" in said
    assert next(row.accuracy.value for row in found.contrasts[1].shortcuts if row.name == "voice" and row.accuracy) == 0.5
