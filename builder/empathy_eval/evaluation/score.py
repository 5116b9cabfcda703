"""Scoring: any metrics, and judges' scores from files, side by side on the stand of the report."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.design.contrasts import Contrast
from empathy_eval.design.dataset import GROUPINGS, SPLITS, column, read_manifest
from empathy_eval.evaluation.corpus import Corpus
from empathy_eval.evaluation.inversion import Chance, Statistics, accuracy_of
from empathy_eval.evaluation.report import EXCHANGES
from empathy_eval.evaluation.resampling import Clusters
from empathy_eval.evaluation.results import Difference, Measured, Row
from empathy_eval.evaluation.score_file import Given, read_scores
from empathy_eval.evaluation.stand import Matched, Stand
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.metrics.registry import Found, find
from empathy_eval.metrics.scoring import PLAIN, Pairs, Scoring

HEADER = (
    "table", "group", "metric", "contrast", "pairs", "value", "low", "high", "p", "holm", "accuracy", "auc", "forced", "signature",
    "of", "left_out",
)  # fmt: skip


@dataclass(frozen=True)
class StandRow(Row):
    """A row beside the number of pairs it could have been measured over; ``strict`` if its accuracy is over all of them."""

    of: int = 0
    strict: bool = False

    @property
    def left_out(self) -> int:
        """The pairs without a score."""
        return self.of - self.pairs

    @property
    def coverage(self) -> str:
        """How many pairs it is measured over, in words."""
        if not self.left_out:
            return f"{self.pairs} pairs"
        return f"{self.pairs} of {self.of} pairs; {self.left_out} left out{', wrong in accuracy' if self.strict else ''}"

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        plain = {name: value for name, value in super().to_json().items() if name not in ("of", "strict")}
        return plain | {"coverage": {"pairs": self.pairs, "of": self.of, "left_out": self.left_out}}


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
    ) -> list[Row]:  # fmt: skip
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

    def _balance(self) -> list[Row]:
        return []  # it is the same for all


def _joined(parts: Sequence[Measured]) -> Measured:
    """The rows of all. p-values stay corrected among the metrics, and for each file by itself: their pairs may differ."""

    def listed(rows: Iterable[Sequence[Row]]) -> list[Row]:
        return [_on_stand(row) for some in rows for row in some]

    def merged(tables: Sequence[Mapping[str, Sequence[Row]]]) -> dict[str, list[Row]]:
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


def _on_stand(row: Row) -> StandRow:
    """The row; one of a metric is measured over all of its pairs."""
    return row if isinstance(row, StandRow) else StandRow(**vars(row), of=row.pairs)


def tables(measured: Measured) -> Iterator[tuple[str, str, StandRow]]:
    """(table, group, row) of everything that was measured."""
    whole = {"pairs": measured.inversion, "2x2": measured.controls}
    matched = [("equal length", name, rows) for name, rows in measured.matched.items()]
    groups = [(name, group, rows) for name, found in measured.groups.items() for group, rows in found.items()]
    found = [*((name, "", rows) for name, rows in whole.items()), *matched, ("before contrast checks", "", measured.candidates), *groups]
    yield from ((table, group, _on_stand(row)) for table, group, rows in found for row in rows)


def score_csv(measured: Measured) -> str:
    """Everything that was measured, a line a contrast."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for table, group, row in tables(measured):
        for name, one in row.differences.items():
            ranked = [found.value if found else None for found in (one.accuracy, one.auc)]
            numbers = [row.pairs, one.value, one.low, one.high, one.p, one.holm, *ranked, one.forced]
            signature = f"{row.signature}|{row.interval_signature or ''}"
            writer.writerow([table, group, row.metric, name, *numbers, signature, row.of, row.left_out])
    return text.getvalue()


def score_table(measured: Measured) -> str:
    """What was measured as lines of text, groups left out; for a terminal. What a file leaves out comes first."""
    head = f"{'':<24}{'difference':>11}  {'95 % interval':<21}{'p (Holm)':>9}{'accuracy':>10}{'AUC':>7}"
    lines = [f"{row.metric}: {row.coverage}" for row in map(_on_stand, measured.inversion) if row.left_out]
    for table, group, row in tables(measured):
        if table in ("pairs", "2x2", "equal length", "before contrast checks"):
            told = ", ".join(f"{name} {value:.4f}" for name, value in row.scores.items())
            lines += ["", f"{row.metric}, {table}{f', {group}' if group else ''}, {row.coverage}: {told}", head]
            lines += [f"  {name:<22}{_numbers(one)}" for name, one in row.differences.items()]
    return "\n".join(lines).strip()


def _numbers(one: Difference) -> str:
    bounds = "" if one.low is None or one.high is None else f"[{one.low:+.4f}, {one.high:+.4f}]"
    p = "" if one.holm is None else f"{one.holm:.4f}"
    ranked = "".join(f"{found.value:>{width}.3f}" if found else " " * width for found, width in ((one.accuracy, 10), (one.auc, 7)))
    return f"{one.value:>+11.4f}  {bounds:<21}{p:>9}{ranked}{'  forced by the checks' if one.forced else ''}"
