"""Scoring: any metrics, and judges' scores from files, side by side on the stand of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.design.contrasts import Contrast
from empathy_eval.design.dataset import GROUPINGS, SPLITS, column, read_manifest
from empathy_eval.evaluation.corpus import Corpus
from empathy_eval.evaluation.inversion import Chance, Statistics, accuracy_of
from empathy_eval.evaluation.report import EXCHANGES
from empathy_eval.evaluation.resampling import Clusters
from empathy_eval.evaluation.results import Measured, MetricRow, StandRow
from empathy_eval.evaluation.score_file import Given, read_scores
from empathy_eval.evaluation.stand import Matched, Stand
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.metrics.registry import Found, find
from empathy_eval.metrics.scoring import PLAIN, Pairs, Scoring


def score(
    release_dir: Path, names: Sequence[str] = (), scores: Sequence[Path] = (), *, split: str | None = None, lower_is_better: bool = False,
    strict: bool = False, scoring: Scoring = PLAIN,
) -> Measured:  # fmt: skip
    """Puts metrics, by name or ``module:name``, and files of scores on the stand of the report, over all splits or one.

    Every row is a :class:`StandRow`. With ``strict`` a pair that a file leaves out counts as wrong in its accuracy.

    Raises:
        InputError: if the folder is no release, a metric is unknown, a file of scores is faulty or has the name of another row, or
            nothing is left to score.
    """
    configuration = read_manifest(release_dir)["configuration"]
    chance = Chance(configuration["report"]["bootstrap"], EXCHANGES, configuration["seed"])
    splits = SPLITS if split is None else (split,)
    found = find(names, configuration["report"]) if names else Found((), ())
    _named_apart([*(one.name for one in found.metrics), *(one.name for one in found.diversities)], scores)
    stand = Stand(release_dir, found, chance, scoring, splits=splits)
    if not len(stand.pairs):
        raise input_error(release_dir, f"holds no pairs in {', '.join(splits)}", "leave --split out, or name another")
    known, controls = (column(release_dir, config, "pair_id") if scores else [] for config in ("pairs", "controls"))
    given = [read_scores(path, known, controls, higher_is_better=not lower_is_better) for path in scores]
    what, fix = f"holds no score of a pair in {', '.join(splits)}", "leave --split out, or name another"
    empty = [path for path, one in zip(scores, given, strict=True) if one.pair_ids.isdisjoint(stand.pairs.pair_ids)]
    if empty:
        raise InputError([Problem(str(path), what, fix) for path in empty])
    return _joined([stand.measured(), *(_GivenStand(stand, one, strict).measured() for one in given)])


def _named_apart(metrics: Iterable[str], scores: Sequence[Path]) -> None:
    """Refuses a file whose row would have the name of another."""
    known, problems = set(metrics), list[Problem]()
    for path in scores:
        if path.stem in known:
            problems.append(Problem(str(path), f'there is another row with the name "{path.stem}"', "give the file a name of its own"))
        known.add(path.stem)
    if problems:
        raise InputError(problems)


class _GivenStand(Stand):
    """A stand for scores that are known already; each row is over those of its pairs that have them."""

    def __init__(self, stand: Stand, given: Given, strict: bool) -> None:
        self.folder, self.found, self.chance = stand.folder, Found((given,), ()), stand.chance
        self.scoring, self.splits = stand.scoring, stand.splits
        self.pairs, self.controls = stand.pairs, stand.controls
        self.given, self.strict = given, strict

    def _scored(self, pairs: Pairs, metrics: Sequence[Metric] | None = None) -> dict[str, dict[str, Array] | MetricFault]:
        return {self.given.name: self.given.looked_up(pairs)}

    def _table(
        self, corpus: Corpus, metrics: Sequence[Metric], statistics: Mapping[str, Statistics], contrasts: Sequence[Contrast],
        chosen: Matched | None = None,
    ) -> list[MetricRow]:  # fmt: skip
        wanted = np.ones(len(corpus), dtype=bool) if chosen is None else chosen
        scores = {name: one[wanted] for name, one in statistics[self.given.name].items()}
        has = wanted.copy()
        has[wanted] = ~np.any([np.isnan(one[:, 0]) for one in scores.values()], axis=0)
        rows = [
            StandRow(**vars(row), of=int(wanted.sum()), strict=self.strict)
            for row in super()._table(corpus, metrics, statistics, contrasts, has)
        ]
        return [self._strictly(row, scores, contrasts, corpus.clusters.take(wanted)) if row.strict else row for row in rows]

    def _strictly(self, row: StandRow, scores: Statistics, contrasts: Sequence[Contrast], clusters: Clusters) -> StandRow:
        """The row with the accuracy over all of its pairs, those without scores wrong."""
        found = {
            one.name: replace(row.differences[one.name], accuracy=accuracy_of(self.given, scores, one, clusters, self.chance))
            for one in contrasts
        }
        return replace(row, differences=found, signature=f"{row.signature}|missing:wrong")

    def _candidates(self) -> None:
        return None  # nobody scored them

    def _balance(self) -> list[MetricRow]:
        return []  # it is the same for all


def _joined(parts: Sequence[Measured]) -> Measured:
    """The rows of all. p-values stay corrected among the metrics, and for each file by itself: their pairs may differ."""

    def listed(rows: Iterable[Sequence[MetricRow]]) -> list[MetricRow]:
        return [StandRow.of_all(row) for some in rows for row in some]

    def merged(tables: Sequence[Mapping[str, Sequence[MetricRow]]]) -> dict[str, list[MetricRow]]:
        return {name: listed(one.get(name, ()) for one in tables) for name in dict.fromkeys(name for one in tables for name in one)}

    return Measured(
        listed(one.inversion for one in parts),
        listed(one.controls for one in parts),
        merged([one.matched for one in parts]),
        {name: merged([one.groups[name] for one in parts]) for name in GROUPINGS},
        listed(one.candidates for one in parts),
        parts[0].balance,
        [fault for one in parts for fault in one.faults],
    )
