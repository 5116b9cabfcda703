"""Evaluation of a release: the scores of every metric, and tables of whether it prefers a cold near-copy to a kind reply.

The tables are over pairs, over the 2 x 2 of stance (empathetic, apathetic) and closeness to the reference (near, far), at equal length, by
group, and over first candidates (texts from before the contrast checks).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.stages import stage
from empathy_eval.base.tabular import WHOLE
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS, PAIRS, TWO_BY_TWO, Contrast
from empathy_eval.design.dataset import SPLITS
from empathy_eval.evaluation.corpus.descriptives import Grouping, groupings
from empathy_eval.evaluation.corpus.pairs import Candidates, Corpus, contexts_at, draw_rows, read_candidates, read_corpus, read_dialogues
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.evaluation.inversion.inversion import (
    ResamplingSettings,
    Rows,
    ScoredPairs,
    Scores,
    Statistics,
    StatisticsOf,
    accuracies,
    compare_metrics,
    compare_pairs,
    detectable_effect,
    diversity_row,
    group_by_rows,
    metric_rows,
)
from empathy_eval.evaluation.inversion.results import DialogueTable, MetricComparison, MetricRow, correct_p_values
from empathy_eval.metrics.faults import MetricFault, MetricResult, attempt
from empathy_eval.metrics.lexical import EditRatio, Length, Vader
from empathy_eval.metrics.protocol import Metric, Pairs
from empathy_eval.metrics.registry import MetricSelection
from empathy_eval.metrics.scoring import PLAIN, Scoring, consistent_statistics, statistics_of
from empathy_eval.statistics.estimate import Clusters


@dataclass(frozen=True)
class AllScores:
    """Statistics of every text by metric: of pairs, of all four cells where there are controls, and of candidates; and faults."""

    metrics: Sequence[Metric]
    pairs: Mapping[str, Statistics]
    cells: Mapping[str, Statistics]
    before: Candidates | None
    candidates: Mapping[str, MetricResult]
    faults: Sequence[MetricFault]

    @property
    def rated(self) -> list[Scores]:
        """Each metric with its statistics."""
        return [(metric, self.pairs[metric.name], self.cells.get(metric.name, {})) for metric in self.metrics]


# A corpus with the metrics that have scores of it, these, and the contrasts that they are measured by.
_Set = tuple[Corpus, Sequence[Metric], StatisticsOf, Sequence[Contrast]]


class Evaluation:
    """The texts of a release with a selection of metrics; each text is scored once."""

    def __init__(
        self, release_dir: Path, selection: MetricSelection, chance: ResamplingSettings, scoring: Scoring = PLAIN, *,
        splits: Sequence[str] = SPLITS, strict: bool = False,
    ) -> None:  # fmt: skip
        self.folder, self.selection, self.chance = release_dir, selection, chance
        self.scoring, self.splits, self.strict = scoring, splits, strict
        # What a shortcut of the audit gave the texts, as far as that is known: by its name and variant.
        self.known: dict[str, Statistics] = {}
        self.pairs = self._read("pairs", PAIR_VARIANTS)
        self.controls = self._read("controls", CELLS)
        if stray := set(self.controls.pair_ids).difference(self.pairs.pair_ids):
            raise input_error(release_dir, f'the control "{min(stray)}" is not a pair', WHOLE)

    def _read(self, config: str, variants: Sequence[str]) -> Corpus:
        """Reads the pairs of a config; with a limit a sample of them, each with its context."""
        most = self.chance.limit
        contexts = most is None and any("context" in metric.reads for metric in self.selection.metrics)
        corpus = read_corpus(self.folder, config, variants, contexts=contexts, splits=self.splits, language=self.selection.language)
        if most is None:
            return corpus
        if config == "pairs":
            rows = draw_rows(corpus.pair_ids, "limit", self.chance.seed, most)
        else:  # controls are those of the pairs that are drawn
            drawn = set(self.pairs.pair_ids)
            rows = [row for row, pair_id in enumerate(corpus.pair_ids) if pair_id in drawn]
        return corpus.take(rows, contexts_at(self.folder, config, rows, self.splits))

    def scores(self) -> AllScores:
        """Returns every score. All scoring is done first: later this process needs more memory, and its workers have ended."""
        before = self._candidates()
        stage("scoring")
        sets = {"pairs": self.pairs.pairs(PAIR_VARIANTS), "controls": self.controls.pairs(CONTROLS)}
        texts = self._checked(sets | ({"candidates": before.corpus.pairs(PAIR_VARIANTS)} if before else {}))
        stage("computing tables")
        vader_rows = [texts[config].get(Vader.name, MetricResult()).rows for config in ("pairs", "controls")]
        self.known = {Vader.name: {**self.known.get(Vader.name, {}), **vader_rows[0], **vader_rows[1]}}
        sound = [metric for metric in self.selection.metrics if texts["pairs"][metric.name].rows]
        pairs = {metric.name: texts["pairs"][metric.name].rows for metric in sound}
        faults = {name: result.fault for results in reversed(texts.values()) for name, result in results.items() if result.fault}
        cells, candidates = self._cells(pairs, texts["controls"]), texts.get("candidates", {})
        return AllScores(sound, pairs, cells, before and before.without_texts(), candidates, list(faults.values()))

    def tables(self, scores: AllScores) -> dict[str, Any]:
        """Returns the tables that are made of the scores alone, and all faults, by their names in :class:`ReleaseTables`."""
        sound, pairs, cells = scores.metrics, scores.pairs, scores.cells
        dist, more = self._diversities(self.pairs, PAIRS)
        dist_of_cells, _ = self._diversities(self.controls, TWO_BY_TWO)
        tables = self._sets(scores)
        controls, inversion = (self._table(*table) for table in tables)
        return {
            "inversion": inversion + dist,
            "controls": controls + dist_of_cells,
            "candidates": self._before(scores.before, scores) if scores.before else [],
            "balance": self._balance(),
            "matched": self._matched(sound, pairs, cells),
            "groups": {grouping.name: self._grouped(grouping, sound) for grouping in groupings(self.pairs, pairs, self.controls, cells)},
            "comparisons": [
                comparison
                for corpus, metrics, statistics, (first, *_) in tables
                for comparison in self._compared(corpus, metrics, statistics, first)
            ],
            "smallest": {
                first.name: detectable_effect(rows, first, len(corpus))
                for (corpus, _, _, (first, *_)), rows in zip(tables, (controls, inversion), strict=True)
                if rows
            },
            "faults": [*scores.faults, *more],
        }

    def _sets(self, scores: AllScores) -> tuple[_Set, _Set]:
        """Returns the corpora of the 2 x 2 and of released pairs, with their metrics, statistics and contrasts."""
        whole = [metric for metric in scores.metrics if metric.name in scores.cells]
        pairs = (self.pairs, scores.metrics, scores.pairs.__getitem__, PAIRS)
        return (self.controls, whole, scores.cells.__getitem__, TWO_BY_TWO), pairs

    def _cells(self, pairs: Mapping[str, Statistics], scored: Mapping[str, MetricResult]) -> dict[str, Statistics]:
        """Returns the statistics of all four cells by metric, for pairs with controls; none without controls."""
        if not len(self.controls):  # of no texts nobody knows how wide a metric's rows are
            return {}
        row_of = {pair: number for number, pair in enumerate(self.pairs.pair_ids)}
        rows = np.array([row_of[pair] for pair in self.controls.pair_ids], dtype=np.int64)
        both = {name: ({key: values[rows] for key, values in by_variant.items()}, scored[name].rows) for name, by_variant in pairs.items()}
        return {name: {**near, **controls} for name, (near, controls) in both.items() if controls}

    def _candidates(self) -> Candidates | None:
        """Returns the candidates that contrast checks refused, where a metric can score them."""
        # A first look at some pairs says nothing of what was refused.
        return read_candidates(self.folder, self.pairs, self.splits) if self._computed and self.chance.limit is None else None

    @property
    def _computed(self) -> list[Metric]:
        """The metrics that compute scores, without those whose scores are precomputed."""
        return [metric for metric in self.selection.metrics if not isinstance(metric, PrecomputedScores)]

    def _checked(self, sets: Mapping[str, Pairs]) -> dict[str, dict[str, MetricResult]]:
        """The results of all metrics for each set; a metric that gave one text two scores has no scores at all."""
        precomputed = [metric for metric in self.selection.metrics if isinstance(metric, PrecomputedScores)]
        computed = consistent_statistics(self._computed, list(sets.values()), self.scoring)
        return {
            name: {metric.name: MetricResult(metric.looked_up(pairs)) for metric in precomputed} | results
            for (name, pairs), results in zip(sets.items(), computed, strict=True)
        }

    def _table(
        self, corpus: Corpus, metrics: Sequence[Metric], statistics: StatisticsOf, contrasts: Sequence[Contrast],
        chosen: Rows | None = None,
    ) -> list[MetricRow]:  # fmt: skip
        """Returns the rows over the pairs of a corpus, or the chosen ones; none without pairs."""
        mask = np.ones(len(corpus), dtype=bool) if chosen is None else chosen
        sides = {name for contrast in contrasts for name in contrast.weights}

        def chosen_statistics(metric: str) -> Statistics:
            return {name: rows[mask] for name, rows in statistics(metric).items() if name in sides}

        return self._rows(metrics, chosen_statistics, corpus.clusters.take(mask), contrasts)

    def _rows(
        self, metrics: Sequence[Metric], statistics: StatisticsOf, clusters: Clusters, contrasts: Sequence[Contrast]
    ) -> list[MetricRow]:
        """Returns the row of each metric over its scored pairs; p-values are corrected among metrics, and within each file.

        Statistics are made when they are asked for, so that those of one metric at a time are in memory.
        """
        named = {metric.name: metric for metric in metrics if len(clusters)}
        has = {name: ~np.any([np.isnan(values).any(axis=1) for values in statistics(name).values()], axis=0) for name in named}
        by_metric: dict[str, MetricRow] = {}
        for rows, names in group_by_rows(has):

            def scored_statistics(name: str, rows: Rows = rows) -> Statistics:
                return {key: values[rows] for key, values in statistics(name).items()}

            over = clusters if rows.all() else clusters.take(rows)
            new_rows = metric_rows([named[name] for name in names], scored_statistics, over, contrasts, self.chance)
            by_metric |= {row.metric: replace(row, left_out=int((~rows).sum())) for row in new_rows}
        return self._corrected(
            self._strictly(by_metric[name], metric, statistics(name), clusters, contrasts)
            for name, metric in named.items()
            if name in by_metric
        )

    def _strictly(
        self, row: MetricRow, metric: Metric, statistics: Statistics, clusters: Clusters, contrasts: Sequence[Contrast]
    ) -> MetricRow:
        """Returns the row with accuracies over all pairs, those without scores wrong, if the evaluation is strict."""
        if not self.strict or not isinstance(metric, PrecomputedScores):
            return row
        duels = {contrast.name: compare_pairs(metric, statistics, contrast) for contrast in contrasts if contrast.duels}
        right = accuracies([duel.won(missing=0.0) for duel in duels.values()], clusters, self.chance) if duels else []
        differences = {name: replace(row.differences[name], accuracy=accuracy) for name, accuracy in zip(duels, right, strict=True)}
        return replace(row, differences={**row.differences, **differences}, signature=f"{row.signature}|missing:wrong", strict=True)

    def _corrected(self, rows: Iterable[MetricRow]) -> list[MetricRow]:
        """Returns the rows with p-values corrected over all metrics, and within each score file or judge, whose pairs may differ."""
        precomputed = (metric for metric in self.selection.metrics if isinstance(metric, PrecomputedScores))
        return correct_p_values(rows, {metric.name: metric.family for metric in precomputed})

    def _compared(self, corpus: Corpus, metrics: Sequence[Metric], statistics: StatisticsOf, contrast: Contrast) -> list[MetricComparison]:
        rated = {
            metric.name: ScoredPairs(compare_pairs(metric, statistics(metric.name), contrast), metric.signature)
            for metric in metrics
            if metric.higher_is_better is not None
        }
        return compare_metrics(contrast.name, rated, corpus.clusters, self.chance) if len(corpus) else []

    def _diversities(self, corpus: Corpus, contrasts: Sequence[Contrast]) -> tuple[list[MetricRow], list[MetricFault]]:
        """Returns the rows of measures of whole sets of texts, and the faults of others."""
        seed = self.chance.seed
        results = [
            attempt(measure.name, lambda measure=measure: diversity_row(measure, corpus.variants, corpus.dialogues, contrasts, seed))  # type: ignore[misc]
            for measure in (self.selection.diversities if len(corpus) else ())
        ]
        drawn = "".join(f"|{name}:{value}" for name, value in self.chance.drawn.items())
        rows = [replace(result, signature=result.signature + drawn) for result in results if isinstance(result, MetricRow)]
        return rows, [result for result in results if isinstance(result, MetricFault)]

    def _matched(
        self, metrics: Sequence[Metric], pairs: Mapping[str, Statistics], cells: Mapping[str, Statistics]
    ) -> dict[str, list[MetricRow]]:
        """Returns by contrast of two variants the rows over pairs with texts of equal length."""
        return {
            contrast.name: self._table(
                corpus,
                [metric for metric in metrics if metric.name in statistics],
                statistics.__getitem__,
                (contrast,),
                corpus.of_equal_length(*contrast.sides),
            )
            for corpus, statistics, contrasts in ((self.pairs, pairs, PAIRS), (self.controls, cells, TWO_BY_TWO))
            for contrast in contrasts
            if metrics and contrast.sides is not None
        }

    def _grouped(self, by: Grouping, metrics: Sequence[Metric]) -> dict[str, list[MetricRow]]:
        """Returns by group the row of each metric; p-values are corrected over groups and metrics."""
        column, scored = np.array(by.labels), [metric for metric in metrics if metric.name in by.statistics]
        rows_by_group = {group: self._table(by.corpus, scored, by.of, (by.contrast,), column == group) for group in by.groups}
        rows = iter(self._corrected(by.restrict(row) for group in rows_by_group.values() for row in group))
        return {group: [next(rows) for _ in group_rows] for group, group_rows in rows_by_group.items()}

    def _before(self, before: Candidates, scores: AllScores) -> list[MetricRow]:
        """Returns the rows over all candidates that only a contrast check could refuse."""
        changed, same, candidates = before.corpus, before.same, scores.candidates
        dialogues = [self.pairs.dialogues[row] for row in same] + changed.dialogues
        clusters = Clusters.of(dialogues, [self.pairs.scenario_ids[row] for row in same] + changed.scenario_ids)
        sound = [metric for metric in scores.metrics if metric in self._computed and candidates[metric.name].rows]

        def both(metric: str) -> Statistics:
            return {name: np.vstack([scores.pairs[metric][name][same], new]) for name, new in candidates[metric].rows.items()}

        # No check had looked at these yet.
        return self._rows(sound, both, clusters, [replace(pair, forced=False) for pair in PAIRS])

    def _balance(self) -> list[MetricRow]:
        """Returns the rows of edit size and length, which the cells of the 2 x 2 should have in common."""
        if not len(self.controls):
            return []
        measures: list[Metric] = [EditRatio(self.selection.language), Length(self.selection.language)]
        scored = statistics_of(measures, self.controls.pairs(CELLS), self.scoring)
        return self._table(self.controls, measures, lambda name: scored[name].rows, TWO_BY_TWO)


class DialogueEvaluation(Evaluation):
    """An evaluation of whole dialogues, each with all helper turns of one variant."""

    def _read(self, config: str, variants: Sequence[str]) -> Corpus:
        return read_dialogues(self.folder, variants, self.splits, self.selection.language)

    def _candidates(self) -> Candidates | None:
        return None

    def table(self) -> DialogueTable:
        """Returns the rows of each metric over released dialogues and over the 2 x 2."""
        controls, inversion = (self._table(*corpus_set) for corpus_set in self._sets(self.scores()))
        return DialogueTable(len(self.pairs), len(self.controls), inversion, controls)


def dialogue_table(evaluation: Evaluation, judges: Sequence[PrecomputedScores]) -> DialogueTable | None:
    """Returns the results of judges of whole dialogues on the splits of an evaluation, beside length; None without a judge."""
    if not judges:
        return None
    selection = replace(evaluation.selection, metrics=(Length(evaluation.selection.language), *judges), diversities=())
    return DialogueEvaluation(
        evaluation.folder, selection, evaluation.chance, evaluation.scoring, splits=evaluation.splits, strict=evaluation.strict
    ).table()
