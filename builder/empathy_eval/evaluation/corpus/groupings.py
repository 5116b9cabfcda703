"""What comparisons are broken down by: scenario, phase and strategy of the pair, the manner of the apathetic text, the voice of both."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from empathy_eval.design.contrasts import FAR, NEAR, PAIRS, RAW, SIDES, STANCE, STANCE_FAR, STANCE_NEAR, TWO_BY_TWO, Contrast
from empathy_eval.design.dataset import FAR_WAY, GROUPINGS, WAYS
from empathy_eval.design.personas import VOICES
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.evaluation.corpus.pairs import APART, Corpus
from empathy_eval.evaluation.inversion.inversion import Statistics
from empathy_eval.evaluation.inversion.results import MetricRow

# By contrast the name of its breakdown by the voice in which both of its texts are written, and the column of that.
BY_VOICE = {STANCE_NEAR: ("voice, near", VOICES[0]), STANCE_FAR: ("voice, far", VOICES[1])}
# What the name of a breakdown ends with where it is of the released pairs: there the checks force the sign of what reads the reference.
AS_RELEASED = ", as released"
# By contrast with an apathetic cold side the name of its breakdown by the manner of that text.
MANNERS = {STANCE: "manner", STANCE_NEAR: "manner, near", STANCE_FAR: "manner, far", RAW: f"manner{AS_RELEASED}"}


@dataclass(frozen=True)
class Grouping:
    """The comparisons of a contrast, each with its group (``labels``): their dialogues, and their statistics by metric.

    ``mixed`` says that near and far texts stand on one side. Their scores have no spread and no curve in common, so there is neither
    an effect nor an area.
    """

    name: str
    corpus: Corpus
    contrast: Contrast
    statistics: Mapping[str, Statistics]
    labels: Sequence[str]
    known: Sequence[str] = ()
    mixed: bool = False

    @property
    def groups(self) -> list[str]:
        """The groups in their order."""
        return in_order(self.labels, self.known)

    def of(self, metric: str) -> Statistics:
        """The statistics of a metric; where near and far are mixed, by side those of all near, then of all far comparisons."""
        found = self.statistics[metric]
        if not self.mixed:
            return found
        sides = zip(SIDES.duels[0], zip(NEAR, FAR, strict=True), strict=True)
        return {side: np.vstack([found[name] for name in names]) for side, names in sides}

    def told(self, row: MetricRow) -> MetricRow:
        """A row of a group with the figures that this breakdown has."""
        if not self.mixed:
            return row
        return replace(row, differences={name: replace(one, effect=None, auc=None) for name, one in row.differences.items()})


def in_order(labels: Collection[str], known: Sequence[str] = ()) -> list[str]:
    """The different labels: those ``known`` in their order, others by name, and last those of texts without a way."""
    place = {name: number for number, name in enumerate(known)}
    return sorted(set(labels), key=lambda one: (one in APART, place.get(one, len(place)), one))


def groupings(pairs: Corpus, released: Mapping[str, Statistics], controls: Corpus, cells: Mapping[str, Statistics]) -> Iterator[Grouping]:
    """Every breakdown: at equal closeness, or as released for metrics without scores of controls; by manner where one is known."""
    (raw,) = PAIRS
    of = {one.name: one for one in TWO_BY_TWO}
    whole = {name: one for name, one in cells.items() if _any_scored(one)}
    alone = {name: one for name, one in released.items() if name not in whole}
    for name in GROUPINGS:
        if whole:
            yield Grouping(name, controls, of[STANCE], whole, controls.groups[name])
        if alone:
            yield Grouping(name + AS_RELEASED, pairs, raw, alone, pairs.groups[name])
    known = [one.name for one in load_taxonomy().manners]
    near, far = (controls.groups.get(name, []) for name in (WAYS[0], FAR_WAY))
    twice = Corpus(controls.pair_ids * 2, controls.dialogues * 2, controls.scenario_ids * 2, [], {})
    some = (
        Grouping(MANNERS[STANCE], twice, SIDES, cells, [*near, *far], known, mixed=True),
        Grouping(MANNERS[STANCE_NEAR], controls, of[STANCE_NEAR], cells, near, known),
        Grouping(MANNERS[STANCE_FAR], controls, of[STANCE_FAR], cells, far, known),
        Grouping(MANNERS[RAW], pairs, raw, released, pairs.groups.get(WAYS[0], []), known),
    )
    voices = (Grouping(name, controls, of[one], cells, controls.groups.get(column, [])) for one, (name, column) in BY_VOICE.items())
    yield from (one for one in (*some, *voices) if one.statistics and not APART.issuperset(one.labels))


def _any_scored(statistics: Statistics) -> bool:
    """Whether some pair has scores of all its texts."""
    return bool((~np.any([np.isnan(one).any(axis=1) for one in statistics.values()], axis=0)).any())
