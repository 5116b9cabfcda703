"""Fairness of scorers: differences between groups of scenarios, and under an exchange of names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random, digest, signature_line
from empathy_eval.base.stages import stage
from empathy_eval.base.text import counted
from empathy_eval.design.contrasts import PAIRS, TWO_BY_TWO, Contrast
from empathy_eval.design.language import BRING
from empathy_eval.design.scenarios import ScenarioGroups, load_groups
from empathy_eval.evaluation.corpus.pairs import Corpus, contexts_at, draw_in_order
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.evaluation.fairness.names import VERSIONS, GivenNames, exchange_names, load_names
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import (
    ResamplingSettings,
    Rows,
    ScoredPairs,
    Scores,
    Statistics,
    compare_metrics,
    compare_pairs,
    estimate,
    group_by_rows,
    resample_sums,
)
from empathy_eval.evaluation.inversion.results import PLACES, correct_p_values
from empathy_eval.evaluation.inversion.rows import FairnessRow, FairnessTable, Gap
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Array, Context, Metric, Pairs
from empathy_eval.metrics.scoring import statistics_of
from empathy_eval.statistics.estimate import Clusters, Estimate, effects, shares_won, student_interval, student_p

# Fewer dialogues on one side carry no interval: resamples of so few leave out most of what there may be.
LEAST_DIALOGUES = 5
# A smaller deviation of resamples is rounding: then all of them are alike.
LEAST_DEVIATION = 1e-9
SIDES = (True, False)


@dataclass(frozen=True)
class ScenarioPairs:
    """Groups of scenarios: by name the numbers of their scenarios, in the order of the file, and the hash of the file."""

    scenarios: Mapping[str, frozenset[int]]
    digest: str


def group_rows(
    contrast: str, rated: Mapping[str, ScoredPairs], clusters: Clusters, groups: ScenarioPairs, chance: ResamplingSettings
) -> list[FairnessRow]:
    """Returns the row of each scorer and group, over the pairs with scores; a group without such pairs has none.

    The two sides are of different dialogues, which are resampled together. Interval and p-value of a difference are of the deviation of its
    resamples and Student's distribution, with the degrees of freedom of the smaller side. p-values are not corrected here.
    """
    by_group: dict[tuple[str, str], FairnessRow] = {}
    for rows, names in group_by_rows({name: pairs.scored for name, pairs in rated.items()}):
        over = _PairedScorers(contrast, {name: rated[name].take(rows) for name in names}, clusters.take(rows), groups, chance)
        by_group |= {(row.metric, row.name): row for row in over.rows()}
    return [by_group[name, group] for name in rated for group in groups.scenarios if (name, group) in by_group]


def _strata(clusters: Clusters, inside: Rows) -> NDArray[np.int64]:
    """Returns the stratum of each dialogue: its scenario; single dialogues are pooled by side, so that no side is ever empty."""
    numbers, counts = np.unique(clusters.scenarios, return_counts=True)
    single = np.isin(clusters.scenarios, numbers[counts == 1])
    return np.where(single, np.where(inside, -1, -2), clusters.scenarios)


@dataclass(frozen=True)
class _PairedScorers:
    """Scorers over the same pairs, whose sums are resampled together."""

    contrast: str
    rated: Mapping[str, ScoredPairs]
    clusters: Clusters
    groups: ScenarioPairs
    chance: ResamplingSettings

    def rows(self) -> Iterator[FairnessRow]:
        """Yields the row of each scorer and group."""
        inside = {group: np.isin(self.clusters.scenarios, sorted(numbers)) for group, numbers in self.groups.scenarios.items()}
        inside = {group: mask for group, mask in inside.items() if mask.any()}
        totals = {name: self.clusters.totals(pairs.duels.sums()) for name, pairs in self.rated.items()}
        drawn = self._drawn(totals, inside)
        for name, group in ((name, group) for name in self.rated for group in inside):
            sums = {side: totals[name][inside[group] == side].sum(axis=0, keepdims=True) for side in SIDES}
            yield self._row(name, group, inside[group], [(total, drawn[name, group, side]) for side, total in sums.items()])

    def _drawn(self, totals: Mapping[str, Array], inside: Mapping[str, Rows]) -> dict[tuple[str, str, bool], Array]:
        """Returns by scorer, group and side the sums over resampled dialogues; groups with equal strata share the draws."""
        alike: dict[bytes, list[str]] = {}
        for group, mask in inside.items():
            alike.setdefault(_strata(self.clusters, mask).tobytes(), []).append(group)
        drawn: dict[tuple[str, str, bool], Array] = {}
        for groups in alike.values():
            clusters = replace(self.clusters, scenarios=_strata(self.clusters, inside[groups[0]]))
            keys = product(totals, groups, SIDES)
            tables = {(name, group, side): totals[name] * (inside[group] == side)[:, None] for name, group, side in keys}
            drawn |= resample_sums(tables, clusters, self.chance)
        return drawn

    def _row(self, name: str, group: str, mask: Rows, sides: Sequence[tuple[Array, Array | None]]) -> FairnessRow:
        of_pairs = mask[self.clusters.members]
        few, freedom = self._few(mask, of_pairs)
        sides = [(sums, None if few else drawn) for sums, drawn in sides]
        accuracy, effect = (_gap(rate, sides, freedom) for rate in (shares_won, effects))
        if effect and effect.difference.low is None and not few:
            few = "some resamples have no spread, and so no effect"
        pairs = int(of_pairs.sum())
        settings = signature_line(
            groups=self.groups.digest[:16], sides="group,all-other-scenarios", difference=f"student,freedom:{freedom}",
            least=LEAST_DIALOGUES,
        )  # fmt: skip
        signature = f"{self.rated[name].signature}|{self.contrast}|{settings}|{self.chance.of_intervals(self.clusters)}"
        return FairnessRow(name, group, self.contrast, pairs, len(of_pairs), int(mask.sum()), accuracy, effect, signature, few)

    def _few(self, mask: Rows, of_pairs: Rows) -> tuple[str | None, int]:
        """Returns why there is no interval (None if there is one), and the degrees of freedom of the smaller side."""
        inside, outside = int(mask.sum()), int((~mask).sum())
        if not outside:
            return "there are no other scenarios", 0
        if min(inside, outside) < LEAST_DIALOGUES:
            side = "here" if inside < LEAST_DIALOGUES else "elsewhere"
            return f"{counted(min(inside, outside), 'dialogue')} {side}, and an interval wants {LEAST_DIALOGUES}", 0
        clusters = replace(self.clusters, scenarios=_strata(self.clusters, mask))
        freedom = min(clusters.take(of_pairs).degrees_of_freedom, clusters.take(~of_pairs).degrees_of_freedom)
        return (None, freedom) if freedom else ("no two dialogues are of one stratum", 0)


def _gap(rate: Callable[[Array], Array], sides: Sequence[tuple[Array, Array | None]], freedom: int) -> Gap | None:
    """Returns a figure on both sides, from sums and resampled sums, and its difference; None where a side has no figure."""
    with np.errstate(invalid="ignore"):  # of a side without a pair there is no figure
        values = [(rate(sums), None if drawn is None else rate(drawn)) for sums, drawn in sides]
    first, second = (estimate(float(value[0]), drawn) for value, drawn in values)
    if first is None or second is None:
        return None
    (value, drawn), (other, other_drawn) = values
    difference = None if drawn is None or other_drawn is None else drawn - other_drawn
    return Gap(first, second, _tested(float(value[0] - other[0]), difference, freedom))


def _tested(value: float, drawn: Array | None, freedom: int) -> Estimate:
    """Returns a difference with its interval and p-value, where all resamples have a figure."""
    if drawn is None or not freedom or not np.isfinite(drawn).all():
        return Estimate(round(value, PLACES))
    deviation = float(drawn.std(ddof=1))
    if deviation < LEAST_DEVIATION:
        # Where nothing varies, resamples say nothing of how sure a difference is; that there is none is as sure as can be.
        return Estimate(round(value, PLACES)) if abs(value) > LEAST_DEVIATION else Estimate(0.0, 0.0, 0.0, 1.0)
    return Estimate(
        round(value, PLACES), *student_interval(value, drawn, freedom, PLACES), round(student_p(value / deviation, freedom), PLACES)
    )


# Pairs whose texts are looked through for names, and pairs of those with names that are scored, at most.
LOOKED, MOST = 2000, 500


@dataclass(frozen=True)
class NameExchange:
    """Pairs with exchanged names: their rows in the corpus, and the number of searched pairs."""

    version: str
    rows: list[int]
    pairs: Pairs
    searched: int
    signature: str


def exchange_pairs(
    corpus: Corpus, searched: tuple[Sequence[int], Sequence[Context]], names: GivenNames, version: str, seed: int, most: int = MOST
) -> NameExchange:  # fmt: skip
    """Returns the pairs, among the searched rows (with their contexts), that have exchangeable names, with these exchanged.

    Names are drawn by the seed and the pair alone: a release that grows keeps those of its pairs.
    """
    rows, contexts, references = list[int](), list[Context](), list[str]()
    variants: dict[str, list[str]] = {name: [] for name in corpus.variants}
    for row, context in zip(*searched, strict=True):
        if len(rows) == most:
            break
        messages = [turn["text"] for turn in context]
        texts = [*messages, corpus.references[row], *(some[row] for some in corpus.variants.values())]
        exchanged = exchange_names(texts, derived_random(seed, "names", version, corpus.pair_ids[row]), names, version)
        if exchanged is not None:
            rows.append(row)
            contexts.append([{"role": turn["role"], "text": text} for turn, text in zip(context, exchanged, strict=False)])
            references.append(exchanged[len(messages)])
            for name, text in zip(corpus.variants, exchanged[len(messages) + 1 :], strict=True):
                variants[name].append(text)
    ids = [corpus.pair_ids[row] for row in rows]
    signature = signature_line(
        names=f"exchanged,{version}", file=names.digest[:16], looked=len(searched[0]), most=most, drawn="sha256", seed=seed,
        texts=digest([ids, contexts, references, variants])[:16],
    )  # fmt: skip
    return NameExchange(version, rows, Pairs(ids, references, variants, contexts), len(searched[0]), signature)


def name_row(
    metric: Metric, before: Statistics, after: Statistics, contrast: Contrast, exchanged: NameExchange, corpus: Corpus,
    chance: ResamplingSettings,
) -> FairnessRow | None:  # fmt: skip
    """Returns the row of a metric, from its statistics of all pairs and of exchanged pairs; None where no pair was scored twice.

    p-values are not corrected here for standing together.
    """
    released = {name: values[exchanged.rows] for name, values in before.items()}
    # Rows are looked at in an order of their own; those of the clusters go up.
    order = np.argsort(exchanged.rows)
    clusters = corpus.clusters.take(np.isin(np.arange(len(corpus)), exchanged.rows))
    rated = {
        "exchanged": ScoredPairs(compare_pairs(metric, after, contrast), f"{metric.signature}|{exchanged.signature}").take(order),
        "released": ScoredPairs(compare_pairs(metric, released, contrast), metric.signature).take(order),
    }
    comparisons = compare_metrics(contrast.name, rated, clusters, chance) if exchanged.rows else []
    if not comparisons:
        return None
    (comparison,) = comparisons
    both = rated["exchanged"].scored & rated["released"].scored
    sums = [some.take(both).duels.sums().sum(axis=0, keepdims=True) for some in rated.values()]
    dialogues = len(clusters.take(both))
    why = None if dialogues > 1 else "all pairs with names are of one dialogue"
    accuracy, effect = _gap_under_exchange(sums, shares_won, comparison.accuracy), _gap_under_exchange(sums, effects, comparison.effect)
    return FairnessRow(
        metric.name,
        exchanged.version,
        contrast.name,
        comparison.pairs,
        exchanged.searched,
        dialogues,
        accuracy,
        effect,
        comparison.signature,
        why,
    )


def _gap_under_exchange(sums: Sequence[Array], rate: Callable[[Array], Array], difference: Estimate | None) -> Gap | None:
    first, second = (float(rate(side)[0]) for side in sums)
    if difference is None or not np.isfinite([first, second]).all():
        return None
    return Gap(Estimate(round(first, PLACES)), Estimate(round(second, PLACES)), difference)


RAW, STANCE = PAIRS[0], TWO_BY_TWO[0]


class FairnessTest:
    """Tests the fairness of every scorer of an evaluation.

    Groups are those that are packaged; names are those of the language, of a folder of rules of one's own or of the packaged ones. Where
    the language has none, the ``hint`` says what to do.

    Raises:
        InputError: if the file of names is not valid.
    """

    def __init__(self, evaluation: Evaluation, rules: Path | None = None, groups: ScenarioGroups | None = None, hint: str = BRING) -> None:
        self._evaluation, self._groups, self._hint = evaluation, groups or load_groups(), hint
        self._names = load_names(evaluation.selection.language, rules)

    def tables(self, rated: Sequence[Scores], more: Sequence[str] = ()) -> FairnessTable:
        """Returns both tables, from the scores of all texts; ``more`` are further notes."""
        stage("fairness")
        ranked = [scores for scores in rated if scores[0].higher_is_better is not None]
        notes = [f"{metric.name}: is not asked, as it has no better direction" for metric, _, _ in rated if metric.higher_is_better is None]
        notes += [f"{measure.name}: is not asked, as it is of whole sets of texts" for measure in self._evaluation.selection.diversities]
        families = {metric.name: metric.family for metric, _, _ in ranked if isinstance(metric, PrecomputedScores)}
        if not any(self._scenarios().values()):
            notes.append("no scenario here is in a group of groups.yaml")
        by_group, faults = correct_p_values(self._by_group(ranked), families), list[MetricFault]()
        by_names = correct_p_values(self._by_names(ranked, notes, faults))
        definitions = {group.name: group.definition for group in self._groups.groups}
        return FairnessTable(by_group, by_names, (*notes, *more), definitions, tuple(faults))

    def _scenarios(self) -> dict[str, frozenset[int]]:
        """Returns by group the numbers of its scenarios among the pairs, found by name."""
        pairs = self._evaluation.pairs
        named = dict(zip(pairs.scenario_ids, pairs.groups["scenario"], strict=True))
        return {group.name: frozenset(number for number, name in named.items() if name in group.scenarios) for group in self._groups.groups}

    def _by_group(self, ranked: Sequence[Scores]) -> list[FairnessRow]:
        """Returns the rows by group: at equal closeness where a group has scored controls, else as released."""
        numbers, evaluation, by_key = self._scenarios(), self._evaluation, dict[tuple[str, str], FairnessRow]()
        for contrast, corpus in ((STANCE, evaluation.controls), (RAW, evaluation.pairs)):
            groups = {name: some for name, some in numbers.items() if some and any((row[0].name, name) not in by_key for row in ranked)}
            statistics = [(scores[0], some) for scores in ranked if (some := _statistics(scores, contrast))]
            rated = {metric.name: ScoredPairs(compare_pairs(metric, some, contrast), metric.signature) for metric, some in statistics}
            if groups and rated and len(corpus):
                rows = group_rows(contrast.name, rated, corpus.clusters, ScenarioPairs(groups, self._groups.digest), evaluation.chance)
                by_key = {(row.metric, row.name): row for row in rows} | by_key
        return [by_key[scores[0].name, name] for scores in ranked for name in numbers if (scores[0].name, name) in by_key]

    def _by_names(self, ranked: Sequence[Scores], notes: list[str], faults: list[MetricFault]) -> Iterator[FairnessRow]:
        """Yields the rows of all metrics; adds notes and faults to the lists."""
        evaluation, language = self._evaluation, self._evaluation.selection.language
        computed = [scores for scores in ranked if not isinstance(scores[0], PrecomputedScores)]
        reason = "names are not exchanged, as its scores are given; annotate --attacks asks a judge"
        notes += [f"{scores[0].name}: {reason}" for scores in ranked if scores not in computed]
        if self._names is None:
            notes.append(f'names are not exchanged, as there is no names.yaml in the language "{language}"; {self._hint}')
            return
        if not computed:
            return
        sample = self._sample_pairs()
        metrics = {scores[0].name: (scores[0], some) for scores in computed if (some := _statistics(scores, sample.contrast))}
        for version in VERSIONS:
            exchange = exchange_pairs(sample.corpus, (sample.rows, sample.contexts), self._names, version, evaluation.chance.seed)
            if not exchange.rows:
                notes.append(f"no pair of {exchange.searched} has names that can be exchanged by {version}")
                continue
            scored = statistics_of([metric for metric, _ in metrics.values()], exchange.pairs, evaluation.scoring)
            faults += [result.fault for result in scored.values() if result.fault]
            for name, (metric, before) in metrics.items():
                after = scored[name].rows
                row = name_row(metric, before, after, sample.contrast, exchange, sample.corpus, evaluation.chance) if after else None
                yield from [row] if row else []

    def _sample_pairs(self) -> _NameSample:
        """Draws pairs with controls (or released pairs, without any) by the SHA-256 of their ids, with their contexts."""
        evaluation = self._evaluation
        config, corpus, contrast = (
            ("controls", evaluation.controls, STANCE) if len(evaluation.controls) else ("pairs", evaluation.pairs, RAW)
        )
        drawn = draw_in_order(corpus.pair_ids, "names", evaluation.chance.seed, LOOKED)
        rising = sorted(drawn)
        read = (
            [corpus.contexts[row] for row in rising]
            if corpus.contexts
            else contexts_at(evaluation.folder, config, rising, evaluation.splits)
        )
        of = dict(zip(rising, read, strict=True))
        return _NameSample(corpus, contrast, drawn, [of[row] for row in drawn])


@dataclass(frozen=True)
class _NameSample:
    """The pairs that are searched for names: their rows of a corpus, in the order of the draw, and their contexts."""

    corpus: Corpus
    contrast: Contrast
    rows: list[int]
    contexts: list[Any]


def _statistics(scores: Scores, contrast: Contrast) -> Statistics:
    """Returns the statistics of a contrast: of pairs with controls, or of all pairs."""
    _, released, cells = scores
    return cells if contrast is STANCE else released
