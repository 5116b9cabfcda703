"""Measuring a release: every metric over pairs, over the 2 x 2, at equal length, by group, and before the contrast checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import input_error
from empathy_eval.base.tabular import WHOLE
from empathy_eval.base.text import words
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS, PAIRS, TWO_BY_TWO, Contrast
from empathy_eval.design.dataset import GROUPINGS, SPLITS
from empathy_eval.evaluation.corpus import Candidates, Corpus, before_contrast, read_corpus
from empathy_eval.evaluation.inversion import Chance, Made, Statistics, corrected, diversity_row, measured_rows
from empathy_eval.evaluation.results import Measured, MetricRow
from empathy_eval.metrics.edit_ratio import EditRatio
from empathy_eval.metrics.faults import MetricFault, attempted
from empathy_eval.metrics.length import Length
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.metrics.registry import Found
from empathy_eval.metrics.scoring import PLAIN, Pairs, Scoring, statistics_of

# Two texts are of equal length if the longer has at most this share of its words more.
LENGTH_WITHIN = 0.1
Matched = NDArray[np.bool_]


class Stand:
    """The texts of a release, and how they are scored; each text is scored once."""

    def __init__(
        self, release_dir: Path, found: Found, chance: Chance, scoring: Scoring = PLAIN, *, splits: Sequence[str] = SPLITS
    ) -> None:
        self.folder, self.found, self.chance, self.scoring, self.splits = release_dir, found, chance, scoring, splits
        contexts = any("context" in metric.reads for metric in found.metrics)
        self.pairs = read_corpus(release_dir, "pairs", PAIR_VARIANTS, contexts=contexts, splits=splits)
        self.controls = read_corpus(release_dir, "controls", CELLS, contexts=contexts, splits=splits)

        if stray := set(self.controls.pair_ids).difference(self.pairs.pair_ids):
            raise input_error(release_dir, f'the control "{min(stray)}" is no pair', WHOLE)

    def measured(self) -> Measured:
        """All tables."""
        before = self._candidates()
        # All scoring comes first: later this process needs more memory, and those that score have ended.
        texts = {name: dict(self._scored(pairs)) for name, pairs in self._texts(before).items()}
        before = before and before.without_texts()
        # The first fault of each metric is told.
        faults = {one.metric: one for found in reversed(texts.values()) for one in found.values() if isinstance(one, MetricFault)}
        sound = [
            one for one in self.found.metrics if not any(isinstance(texts[name][one.name], MetricFault) for name in ("pairs", "controls"))
        ]
        pairs = {metric.name: _rows(texts["pairs"][metric.name]) for metric in sound}
        place = {pair: number for number, pair in enumerate(self.pairs.pair_ids)}
        at = np.array([place[pair] for pair in self.controls.pair_ids], dtype=np.int64)
        cells = {
            metric.name: {**{name: one[at] for name, one in pairs[metric.name].items()}, **_rows(texts["controls"][metric.name])}
            for metric in sound
        }
        dist, more = self._diversities(self.pairs, PAIRS)
        dist_of_cells, _ = self._diversities(self.controls, TWO_BY_TWO)
        return Measured(
            self._table(self.pairs, sound, pairs, PAIRS) + dist,
            self._table(self.controls, sound, cells, TWO_BY_TWO) + dist_of_cells,
            self._matched(sound, pairs, cells),
            {name: self._grouped(name, sound, pairs) for name in GROUPINGS},
            self._before(before, sound, pairs, texts["candidates"]) if before else [],
            self._balance(),
            [*faults.values(), *more],
        )

    def _candidates(self) -> Candidates | None:
        return before_contrast(self.folder, self.pairs, self.splits)

    def _texts(self, before: Candidates | None) -> dict[str, Pairs]:
        return {
            "pairs": self.pairs.pairs(PAIR_VARIANTS),
            "controls": self.controls.pairs(CONTROLS),
            **({"candidates": before.corpus.pairs(PAIR_VARIANTS)} if before else {}),
        }

    def _scored(self, pairs: Pairs, metrics: Sequence[Metric] | None = None) -> dict[str, dict[str, Array] | MetricFault]:
        chosen = self.found.metrics if metrics is None else metrics
        return {name: one.fault or dict(one.rows) for name, one in statistics_of(chosen, pairs, self.scoring).items()}

    def _table(
        self, corpus: Corpus, metrics: Sequence[Metric], statistics: Mapping[str, Statistics], contrasts: Sequence[Contrast],
        chosen: Matched | None = None,
    ) -> list[MetricRow]:  # fmt: skip
        """The rows over the pairs of a corpus, or those chosen of them; none where there are none."""
        if chosen is None or chosen.all():
            return measured_rows(metrics, statistics, corpus.clusters, contrasts, self.chance) if len(corpus) else []
        if not chosen.any():
            return []
        kept = Made([one.name for one in metrics], lambda metric: {name: one[chosen] for name, one in statistics[metric].items()})
        return measured_rows(metrics, kept, corpus.clusters.take(chosen), contrasts, self.chance)

    def _diversities(self, corpus: Corpus, contrasts: Sequence[Contrast]) -> tuple[list[MetricRow], list[MetricFault]]:
        """The rows of the measures of whole sets of texts, and what kept others from having one."""
        seed = self.chance.seed
        found = [
            attempted(one.name, lambda one=one: diversity_row(one, corpus.variants, corpus.dialogues, contrasts, seed))  # type: ignore[misc]
            for one in (self.found.diversities if len(corpus) else ())
        ]
        return [one for one in found if isinstance(one, MetricRow)], [one for one in found if isinstance(one, MetricFault)]

    def _matched(
        self, metrics: Sequence[Metric], pairs: Mapping[str, Statistics], cells: Mapping[str, Statistics]
    ) -> dict[str, list[MetricRow]]:
        """By contrast of two variants the rows over the pairs whose two texts are of equal length."""
        found: dict[str, list[MetricRow]] = {}
        if not metrics:
            return found
        for corpus, statistics, contrasts in ((self.pairs, pairs, PAIRS), (self.controls, cells, TWO_BY_TWO)):
            for contrast in contrasts:
                if contrast.sides is not None:
                    chosen = _equal_length(*(corpus.variants[name] for name in contrast.sides))
                    found[contrast.name] = self._part(corpus, metrics, statistics, contrast, chosen)
        return found

    def _part(
        self, corpus: Corpus, metrics: Sequence[Metric], statistics: Mapping[str, Statistics], contrast: Contrast, chosen: Matched
    ) -> list[MetricRow]:
        sides = Made([one.name for one in metrics], lambda metric: {name: statistics[metric][name] for name in contrast.weights})
        return self._table(corpus, metrics, sides, (contrast,), chosen)

    def _grouped(self, name: str, metrics: Sequence[Metric], statistics: Mapping[str, Statistics]) -> dict[str, list[MetricRow]]:
        """By group the row of each metric; p-values are corrected over groups and metrics."""
        column = np.array(self.pairs.groups[name])
        found: dict[str, list[MetricRow]] = {}
        for group in sorted(set(self.pairs.groups[name])):
            found[group] = self._table(self.pairs, metrics, statistics, PAIRS, column == group)
        rows = iter(corrected([row for group in found.values() for row in group]))
        return {group: [next(rows) for _ in made] for group, made in found.items()}

    def _before(
        self, candidates: Candidates, metrics: Sequence[Metric], statistics: Mapping[str, Statistics],
        scored: Mapping[str, dict[str, Array] | MetricFault],
    ) -> list[MetricRow]:  # fmt: skip
        """The rows over all candidates that only a contrast check could refuse."""
        changed, same = candidates.corpus, candidates.same
        dialogues = [self.pairs.dialogues[one] for one in same] + changed.dialogues
        whole = Corpus([], dialogues, [self.pairs.scenario_ids[one] for one in same] + changed.scenario_ids, [], {})
        sound = [metric for metric in metrics if not isinstance(scored[metric.name], MetricFault)]

        def both(metric: str) -> Statistics:
            return {name: np.vstack([statistics[metric][name][same], new]) for name, new in _rows(scored[metric]).items()}

        # No check had looked at these yet.
        unforced = [replace(one, forced=False) for one in PAIRS]
        return measured_rows(sound, Made([one.name for one in sound], both), whole.clusters, unforced, self.chance)

    def _balance(self) -> list[MetricRow]:
        """What the cells of the 2 x 2 should have in common: edit size and length."""
        if not len(self.controls):
            return []
        measures: list[Metric] = [EditRatio(), Length()]
        scored = {name: _rows(one) for name, one in self._scored(self.controls.pairs(CELLS), measures).items()}
        return self._table(self.controls, measures, scored, TWO_BY_TWO)


def _rows(found: dict[str, Array] | MetricFault) -> dict[str, Array]:
    """The statistics of a metric that is known to have no fault."""
    return {} if isinstance(found, MetricFault) else found


def _equal_length(one: Sequence[str], other: Sequence[str]) -> Matched:
    lengths = [(len(words(first)), len(words(second))) for first, second in zip(one, other, strict=True)]
    return np.array([max(pair) - min(pair) <= LENGTH_WITHIN * max(pair) for pair in lengths], dtype=bool)
