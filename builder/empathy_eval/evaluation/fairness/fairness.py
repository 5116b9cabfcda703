"""Fairness of what is on a stand: by group of scenarios, and under an exchange of names."""

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
from empathy_eval.evaluation.corpus.pairs import Corpus, contexts_at, drawn_in_order
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.evaluation.fairness.names import VERSIONS, GivenNames, exchanged_names, load_names
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import (
    ResamplingSettings,
    Rows,
    ScoredPairs,
    Scores,
    Statistics,
    by_rows,
    compared,
    duels_of,
    estimate,
    resampled,
)
from empathy_eval.evaluation.inversion.results import PLACES, corrected
from empathy_eval.evaluation.inversion.rows import FairnessRow, FairnessTable, Gap
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Array, Context, Metric, Pairs
from empathy_eval.metrics.scoring import statistics_of
from empathy_eval.statistics.estimate import Clusters, Estimate, effects, shares_won, student_interval, student_p

# Fewer dialogues on one side carry no interval: resamples of so few leave out most of what there may be.
LEAST_DIALOGUES = 5
# A smaller deviation of resamples is rounding: then all of them are alike.
LEAST_DEVIATION = 1e-9
HERE_AND_THERE = (True, False)


@dataclass(frozen=True)
class ScenarioPairs:
    """The groups of a set of pairs: by name the numbers of their scenarios, in the order of the file, and the hash of that."""

    scenarios: Mapping[str, frozenset[int]]
    digest: str


def group_rows(
    contrast: str, rated: Mapping[str, ScoredPairs], clusters: Clusters, groups: ScenarioPairs, chance: ResamplingSettings
) -> list[FairnessRow]:
    """The row of each scorer and group, over the pairs that the scorer has scores of; a group without such pairs has none.

    The two sides are of different dialogues, which are resampled together. Interval and p-value of a difference are of the deviation of its
    resamples and Student's distribution, with the degrees of freedom of the smaller side. p-values are not corrected here.
    """
    found: dict[tuple[str, str], FairnessRow] = {}
    for rows, names in by_rows({name: one.scored for name, one in rated.items()}):
        over = _PairedScorers(contrast, {name: rated[name].take(rows) for name in names}, clusters.take(rows), groups, chance)
        found |= {(row.metric, row.name): row for row in over.rows()}
    return [found[name, group] for name in rated for group in groups.scenarios if (name, group) in found]


def _strata(clusters: Clusters, inside: Rows) -> NDArray[np.int64]:
    """The scenario of each dialogue; those of one dialogue are together with others of their side, so that a side is never without any."""
    numbers, counts = np.unique(clusters.scenarios, return_counts=True)
    single = np.isin(clusters.scenarios, numbers[counts == 1])
    return np.where(single, np.where(inside, -1, -2), clusters.scenarios)


@dataclass(frozen=True)
class _PairedScorers:
    """Scorers over the same pairs: their sums are resampled together."""

    contrast: str
    rated: Mapping[str, ScoredPairs]
    clusters: Clusters
    groups: ScenarioPairs
    chance: ResamplingSettings

    def rows(self) -> Iterator[FairnessRow]:
        """The row of each scorer and group."""
        inside = {group: np.isin(self.clusters.scenarios, sorted(numbers)) for group, numbers in self.groups.scenarios.items()}
        inside = {group: one for group, one in inside.items() if one.any()}
        totals = {name: self.clusters.totals(one.duels.sums()) for name, one in self.rated.items()}
        drawn = self._drawn(totals, inside)
        for name, group in ((name, group) for name in self.rated for group in inside):
            sums = {here: totals[name][inside[group] == here].sum(axis=0, keepdims=True) for here in HERE_AND_THERE}
            yield self._row(name, group, inside[group], [(one, drawn[name, group, here]) for here, one in sums.items()])

    def _drawn(self, totals: Mapping[str, Array], inside: Mapping[str, Rows]) -> dict[tuple[str, str, bool], Array]:
        """By scorer, group and side its sums over resampled dialogues; groups that have the same strata share the draws."""
        alike: dict[bytes, list[str]] = {}
        for group, mask in inside.items():
            alike.setdefault(_strata(self.clusters, mask).tobytes(), []).append(group)
        found: dict[tuple[str, str, bool], Array] = {}
        for groups in alike.values():
            clusters = replace(self.clusters, scenarios=_strata(self.clusters, inside[groups[0]]))
            keys = product(totals, groups, HERE_AND_THERE)
            tables = {(name, group, here): totals[name] * (inside[group] == here)[:, None] for name, group, here in keys}
            found |= resampled(tables, clusters, self.chance)
        return found

    def _row(self, name: str, group: str, mask: Rows, sides: Sequence[tuple[Array, Array | None]]) -> FairnessRow:
        of_pairs = mask[self.clusters.members]
        few, freedom = self._few(mask, of_pairs)
        sides = [(sums, None if few else drawn) for sums, drawn in sides]
        accuracy, effect = (_gap(rate, sides, freedom) for rate in (shares_won, effects))
        if effect and effect.difference.low is None and not few:
            few = "some resamples have no spread, and so no effect"
        there = int(of_pairs.sum())
        settings = signature_line(
            groups=self.groups.digest[:16], sides="group,all-other-scenarios", difference=f"student,freedom:{freedom}",
            least=LEAST_DIALOGUES,
        )  # fmt: skip
        signature = f"{self.rated[name].signature}|{self.contrast}|{settings}|{self.chance.of_intervals(self.clusters)}"
        return FairnessRow(name, group, self.contrast, there, len(of_pairs), int(mask.sum()), accuracy, effect, signature, few)

    def _few(self, mask: Rows, of_pairs: Rows) -> tuple[str | None, int]:
        """What keeps an interval from being there, and the degrees of freedom of the smaller side."""
        here, there = int(mask.sum()), int((~mask).sum())
        if not there:
            return "there are no other scenarios", 0
        if min(here, there) < LEAST_DIALOGUES:
            side = "here" if here < LEAST_DIALOGUES else "elsewhere"
            return f"{counted(min(here, there), 'dialogue')} {side}, and an interval wants {LEAST_DIALOGUES}", 0
        clusters = replace(self.clusters, scenarios=_strata(self.clusters, mask))
        freedom = min(clusters.take(of_pairs).degrees_of_freedom, clusters.take(~of_pairs).degrees_of_freedom)
        return (None, freedom) if freedom else ("no two dialogues are of one stratum", 0)


def _gap(rate: Callable[[Array], Array], sides: Sequence[tuple[Array, Array | None]], freedom: int) -> Gap | None:
    """A figure on both sides, from their sums and those of resamples, and the difference; None where it is not defined on one."""
    with np.errstate(invalid="ignore"):  # of a side without a pair there is no figure
        (here, drawn_here), (there, drawn_there) = ((rate(sums), None if drawn is None else rate(drawn)) for sums, drawn in sides)
    first, second = estimate(float(here[0]), drawn_here), estimate(float(there[0]), drawn_there)
    if first is None or second is None:
        return None
    drawn = None if drawn_here is None or drawn_there is None else drawn_here - drawn_there
    return Gap(first, second, _tested(float(here[0] - there[0]), drawn, freedom))


def _tested(value: float, drawn: Array | None, freedom: int) -> Estimate:
    """A difference with its interval and its p-value, where all resamples have one."""
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
    """Pairs with other names in all that is read of them: which rows of the corpus they are, and over how many was looked."""

    version: str
    rows: list[int]
    pairs: Pairs
    looked: int
    signature: str


def exchanged_pairs(
    corpus: Corpus, looked: tuple[Sequence[int], Sequence[Context]], names: GivenNames, version: str, seed: int, most: int = MOST
) -> NameExchange:  # fmt: skip
    """The pairs of a corpus, of the rows that are looked at (with their contexts), that have names which can be exchanged.

    Names are drawn by the seed and the pair alone: a release that grows keeps those of its pairs.
    """
    rows, contexts, references = list[int](), list[Context](), list[str]()
    variants: dict[str, list[str]] = {name: [] for name in corpus.variants}
    for row, context in zip(*looked, strict=True):
        if len(rows) == most:
            break
        said = [turn["text"] for turn in context]
        texts = [*said, corpus.references[row], *(some[row] for some in corpus.variants.values())]
        made = exchanged_names(texts, derived_random(seed, "names", version, corpus.pair_ids[row]), names, version)
        if made is not None:
            rows.append(row)
            contexts.append([{"role": turn["role"], "text": text} for turn, text in zip(context, made, strict=False)])
            references.append(made[len(said)])
            for name, text in zip(corpus.variants, made[len(said) + 1 :], strict=True):
                variants[name].append(text)
    ids = [corpus.pair_ids[row] for row in rows]
    signature = signature_line(
        names=f"exchanged,{version}", file=names.digest[:16], looked=len(looked[0]), most=most, drawn="sha256", seed=seed,
        texts=digest([ids, contexts, references, variants])[:16],
    )  # fmt: skip
    return NameExchange(version, rows, Pairs(ids, references, variants, contexts), len(looked[0]), signature)


def name_row(
    metric: Metric, before: Statistics, after: Statistics, contrast: Contrast, exchanged: NameExchange, corpus: Corpus,
    chance: ResamplingSettings,
) -> FairnessRow | None:  # fmt: skip
    """The row of a metric, from its statistics of all pairs of the corpus and of those with other names; None where none was scored twice.

    p-values are not corrected here for standing together.
    """
    released = {name: one[exchanged.rows] for name, one in before.items()}
    # Rows are looked at in an order of their own; those of the clusters go up.
    order = np.argsort(exchanged.rows)
    clusters = corpus.clusters.take(np.isin(np.arange(len(corpus)), exchanged.rows))
    rated = {
        "exchanged": ScoredPairs(duels_of(metric, after, contrast), f"{metric.signature}|{exchanged.signature}").take(order),
        "released": ScoredPairs(duels_of(metric, released, contrast), metric.signature).take(order),
    }
    found = compared(contrast.name, rated, clusters, chance) if exchanged.rows else []
    if not found:
        return None
    (one,) = found
    both = rated["exchanged"].scored & rated["released"].scored
    sums = [some.take(both).duels.sums().sum(axis=0, keepdims=True) for some in rated.values()]
    dialogues = len(clusters.take(both))
    why = None if dialogues > 1 else "all pairs with names are of one dialogue"
    accuracy, effect = _gap_under_exchange(sums, shares_won, one.accuracy), _gap_under_exchange(sums, effects, one.effect)
    return FairnessRow(
        metric.name, exchanged.version, contrast.name, one.pairs, exchanged.looked, dialogues, accuracy, effect, one.signature, why
    )


def _gap_under_exchange(sums: Sequence[Array], rate: Callable[[Array], Array], difference: Estimate | None) -> Gap | None:
    here, there = (float(rate(one)[0]) for one in sums)
    if difference is None or not np.isfinite([here, there]).all():
        return None
    return Gap(Estimate(round(here, PLACES)), Estimate(round(there, PLACES)), difference)


RAW, STANCE = PAIRS[0], TWO_BY_TWO[0]


class FairnessTest:
    """Asks of every scorer on a stand whether it is fair.

    Groups are those that are packaged; names are those of the language, of a folder of rules of one's own or of the packaged ones. Where
    the language has none, the ``hint`` says what to do.

    Raises:
        InputError: if the file of names is not valid.
    """

    def __init__(self, stand: Evaluation, rules: Path | None = None, groups: ScenarioGroups | None = None, hint: str = BRING) -> None:
        self._stand, self._groups, self._hint = stand, groups or load_groups(), hint
        self._names = load_names(stand.found.language, rules)

    def tables(self, rated: Sequence[Scores], more: Sequence[str] = ()) -> FairnessTable:
        """Both tables, from the scores of all texts; ``more`` is told too."""
        stage("fairness")
        ranked = [one for one in rated if one[0].higher_is_better is not None]
        told = [f"{metric.name}: is not asked, as it has no better direction" for metric, _, _ in rated if metric.higher_is_better is None]
        told += [f"{diversity.name}: is not asked, as it is of whole sets of texts" for diversity in self._stand.found.diversities]
        families = {metric.name: metric.family for metric, _, _ in ranked if isinstance(metric, PrecomputedScores)}
        if not any(self._scenarios().values()):
            told.append("no scenario here is in a group of groups.yaml")
        by_group, faults = corrected(self._by_group(ranked), families), list[MetricFault]()
        by_names = corrected(self._by_names(ranked, told, faults))
        definitions = {group.name: group.definition for group in self._groups.groups}
        return FairnessTable(by_group, by_names, (*told, *more), definitions, tuple(faults))

    def _scenarios(self) -> dict[str, frozenset[int]]:
        """By group the numbers of its scenarios that the pairs are of, found by name."""
        pairs = self._stand.pairs
        named = dict(zip(pairs.scenario_ids, pairs.groups["scenario"], strict=True))
        return {group.name: frozenset(number for number, name in named.items() if name in group.scenarios) for group in self._groups.groups}

    def _by_group(self, ranked: Sequence[Scores]) -> list[FairnessRow]:
        """At equal closeness where a group has scored controls, as released where it has none."""
        numbers, stand, found = self._scenarios(), self._stand, dict[tuple[str, str], FairnessRow]()
        for contrast, corpus in ((STANCE, stand.controls), (RAW, stand.pairs)):
            wanted = {name: some for name, some in numbers.items() if some and any((one[0].name, name) not in found for one in ranked)}
            statistics = [(one[0], some) for one in ranked if (some := _statistics(one, contrast))]
            rated = {one.name: ScoredPairs(duels_of(one, some, contrast), one.signature) for one, some in statistics}
            if wanted and rated and len(corpus):
                rows = group_rows(contrast.name, rated, corpus.clusters, ScenarioPairs(wanted, self._groups.digest), stand.chance)
                found = {(row.metric, row.name): row for row in rows} | found
        return [found[one[0].name, name] for one in ranked for name in numbers if (one[0].name, name) in found]

    def _by_names(self, ranked: Sequence[Scores], told: list[str], faults: list[MetricFault]) -> Iterator[FairnessRow]:
        """The rows of all metrics; what is told of others, and faults, are added to the lists."""
        stand, language = self._stand, self._stand.found.language
        asked = [one for one in ranked if not isinstance(one[0], PrecomputedScores)]
        given = "names are not exchanged, as its scores are given; annotate --attacks asks a judge"
        told += [f"{one[0].name}: {given}" for one in ranked if one not in asked]
        if self._names is None:
            told.append(f'names are not exchanged, as there is no names.yaml in the language "{language}"; {self._hint}')
            return
        if not asked:
            return
        looked = self._looked()
        metrics = {one[0].name: (one[0], some) for one in asked if (some := _statistics(one, looked.contrast))}
        for version in VERSIONS:
            found = exchanged_pairs(looked.corpus, (looked.rows, looked.contexts), self._names, version, stand.chance.seed)
            if not found.rows:
                told.append(f"no pair of {found.looked} has names that can be exchanged by {version}")
                continue
            scored = statistics_of([metric for metric, _ in metrics.values()], found.pairs, stand.scoring)
            faults += [one.fault for one in scored.values() if one.fault]
            for name, (metric, before) in metrics.items():
                after = scored[name].rows
                row = name_row(metric, before, after, looked.contrast, found, looked.corpus, stand.chance) if after else None
                yield from [row] if row else []

    def _looked(self) -> _NameSample:
        """A sample of the pairs with controls, or of all where there are none, drawn by the SHA-256 of their ids, with their contexts."""
        stand = self._stand
        config, corpus, contrast = ("controls", stand.controls, STANCE) if len(stand.controls) else ("pairs", stand.pairs, RAW)
        drawn = drawn_in_order(corpus.pair_ids, "names", stand.chance.seed, LOOKED)
        rising = sorted(drawn)
        read = [corpus.contexts[row] for row in rising] if corpus.contexts else contexts_at(stand.folder, config, rising, stand.splits)
        of = dict(zip(rising, read, strict=True))
        return _NameSample(corpus, contrast, drawn, [of[row] for row in drawn])


@dataclass(frozen=True)
class _NameSample:
    """The pairs that are looked through for names: their rows of a corpus, in the order of the sample, and their contexts."""

    corpus: Corpus
    contrast: Contrast
    rows: list[int]
    contexts: list[Any]


def _statistics(one: Scores, contrast: Contrast) -> Statistics:
    """The statistics that a contrast is made of: of pairs with controls, or of all pairs."""
    _, released, cells = one
    return cells if contrast is STANCE else released
