"""Scoring: any metric, or a judge's scores from a file, on the stand of the report."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builder.corpus import Corpus, column
from builder.errors import input_error
from builder.given import Given, read_scores
from builder.inversion import Chance, Difference, Row
from builder.measuring import Measured, Stand
from builder.metrics.guard import MetricFault
from builder.metrics.kept import ScoreCache
from builder.metrics.protocol import Array, Metric
from builder.metrics.registry import Found, find
from builder.metrics.scoring import Pairs, Spread
from builder.reporting import EXCHANGES, read_manifest
from builder.splitting import SPLITS

HEADER = ("table", "group", "metric", "contrast", "pairs", "value", "low", "high", "p", "holm", "accuracy", "auc", "forced", "signature")


def score(
    release_dir: Path, names: Sequence[str] = (), scores: Path | None = None, *, split: str | None = None, lower_is_better: bool = False,
    cache: ScoreCache | None = None, spread: Spread | None = None, progress: Callable[[int], None] = lambda texts: None,
) -> Measured:  # fmt: skip
    """Puts metrics, by name or ``module:name``, or a file of scores on the stand of the report, over all splits or one.

    Raises:
        InputError: if the folder is no release, a metric is unknown, the file of scores is faulty, or nothing is left to score.
    """
    configuration = read_manifest(release_dir)["configuration"]
    chance = Chance(configuration["report"]["bootstrap"], EXCHANGES, configuration["seed"])
    splits = SPLITS if split is None else (split,)
    found = find(names, configuration["report"]) if names else Found((), ())
    stand = Stand(release_dir, found, chance, cache=cache, spread=spread, progress=progress, splits=splits)
    if not len(stand.pairs):
        raise input_error(release_dir, f"holds no pairs in {', '.join(splits)}", "leave --split out, or name another")
    measured = stand.measured() if names else Measured([])
    if scores is None:
        return measured
    known, controls = (column(release_dir, config, "pair_id") for config in ("pairs", "controls"))
    given = _GivenStand(stand, read_scores(scores, known, controls, higher_is_better=not lower_is_better))
    if not len(given.pairs):
        raise input_error(scores, f"holds no score of a pair in {', '.join(splits)}", "leave --split out, or name another")
    return _joined(measured, given.measured())


class _GivenStand(Stand):
    """A stand for scores that are known already, over the pairs that have them."""

    def __init__(self, stand: Stand, given: Given) -> None:
        self.folder, self.found, self.chance = stand.folder, Found((given,), ()), stand.chance
        self.cache, self.spread, self.progress = None, None, stand.progress
        self.given = given
        self.pairs = _only(stand.pairs, given.pair_ids)
        self.controls = _only(stand.controls, {pair for pair in given.pair_ids if given.has_cells(pair)})

    def _scored(self, pairs: Pairs, metrics: Sequence[Metric] | None = None) -> dict[str, dict[str, Array] | MetricFault]:
        return super()._scored(pairs, metrics) if metrics else {self.given.name: self.given.looked_up(pairs)}

    def _candidates(self) -> None:
        return None  # nobody scored them


def _only(corpus: Corpus, pair_ids: set[str]) -> Corpus:
    rows = [row for row, pair_id in enumerate(corpus.pair_ids) if pair_id in pair_ids]

    def some(column: Sequence[Any]) -> list[Any]:
        return [column[row] for row in rows]

    return Corpus(
        some(corpus.pair_ids), some(corpus.dialogues), some(corpus.scenario_ids), some(corpus.references),
        {name: some(texts) for name, texts in corpus.variants.items()}, {name: some(values) for name, values in corpus.groups.items()},
    )  # fmt: skip


def _joined(one: Measured, other: Measured) -> Measured:
    """Both sets of rows. p-values stay corrected among the metrics and for the file by themselves: their pairs may differ."""
    groups = {}
    for name in other.groups:
        first, second = one.groups.get(name, {}), other.groups[name]
        groups[name] = {group: first.get(group, []) + second.get(group, []) for group in sorted(first.keys() | second.keys())}
    return replace(
        other,
        inversion=one.inversion + other.inversion,
        controls=one.controls + other.controls,
        matched={name: one.matched.get(name, []) + other.matched.get(name, []) for name in one.matched | other.matched},
        groups=groups,
        candidates=one.candidates,
        faults=one.faults + other.faults,
    )


def tables(measured: Measured) -> Iterator[tuple[str, str, Row]]:
    """(table, group, row) of everything that was measured."""
    yield from (("pairs", "", row) for row in measured.inversion)
    yield from (("2x2", "", row) for row in measured.controls)
    yield from (("equal length", name, row) for name, rows in measured.matched.items() for row in rows)
    yield from (("before contrast checks", "", row) for row in measured.candidates)
    yield from ((name, group, row) for name, found in measured.groups.items() for group, rows in found.items() for row in rows)


def score_csv(measured: Measured) -> str:
    """Everything that was measured, a line a contrast."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for table, group, row in tables(measured):
        for name, one in row.differences.items():
            ranked = [found.value if found else None for found in (one.accuracy, one.auc)]
            numbers = [row.pairs, one.value, one.low, one.high, one.p, one.holm, *ranked, one.forced]
            writer.writerow([table, group, row.metric, name, *numbers, f"{row.signature}|{row.interval_signature or ''}"])
    return text.getvalue()


def score_table(measured: Measured) -> str:
    """What was measured as lines of text, groups left out; for a terminal."""
    head = f"{'':<24}{'difference':>11}  {'95 % interval':<21}{'p (Holm)':>9}{'accuracy':>10}{'AUC':>7}"
    lines = []
    for table, group, row in tables(measured):
        if table in ("pairs", "2x2", "equal length", "before contrast checks"):
            told = ", ".join(f"{name} {value:.4f}" for name, value in row.scores.items())
            lines += ["", f"{row.metric}, {table}{f', {group}' if group else ''}, {row.pairs} pairs: {told}", head]
            lines += [f"  {name:<22}{_numbers(one)}" for name, one in row.differences.items()]
    return "\n".join(lines).strip()


def _numbers(one: Difference) -> str:
    bounds = "" if one.low is None or one.high is None else f"[{one.low:+.4f}, {one.high:+.4f}]"
    p = "" if one.holm is None else f"{one.holm:.4f}"
    ranked = "".join(f"{found.value:>{width}.3f}" if found else " " * width for found, width in ((one.accuracy, 10), (one.auc, 7)))
    return f"{one.value:>+11.4f}  {bounds:<21}{p:>9}{ranked}{'  forced by the checks' if one.forced else ''}"
