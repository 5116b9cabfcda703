"""Fairness of what is on a stand: by group of scenarios, and under an exchange of names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.stages import stage
from empathy_eval.design.contrasts import PAIRS, TWO_BY_TWO, Contrast
from empathy_eval.design.language import BRING
from empathy_eval.design.scenarios import ScenarioGroups, load_groups
from empathy_eval.evaluation.corpus.contexts import contexts_at
from empathy_eval.evaluation.corpus.pairs import Corpus, drawn_in_order
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.evaluation.fairness.groups import LOOKED, ScenarioPairs, exchanged_pairs, group_rows, name_row
from empathy_eval.evaluation.fairness.names import VERSIONS, load_names
from empathy_eval.evaluation.inversion.comparisons import ScoredPairs
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import Scores, Statistics, duels_of
from empathy_eval.evaluation.inversion.results import corrected
from empathy_eval.evaluation.inversion.rows import FairnessRow, FairnessTable
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.scoring import statistics_of

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
        told += [f"{one.name}: is not asked, as it is of whole sets of texts" for one in self._stand.found.diversities]
        families = {metric.name: metric.family for metric, _, _ in ranked if isinstance(metric, PrecomputedScores)}
        if not any(self._scenarios().values()):
            told.append("no scenario here is in a group of groups.yaml")
        by_group, faults = corrected(self._by_group(ranked), families), list[MetricFault]()
        by_names = corrected(self._by_names(ranked, told, faults))
        definitions = {one.name: one.definition for one in self._groups.groups}
        return FairnessTable(by_group, by_names, (*told, *more), definitions, tuple(faults))

    def _scenarios(self) -> dict[str, frozenset[int]]:
        """By group the numbers of its scenarios that the pairs are of, found by name."""
        pairs = self._stand.pairs
        named = dict(zip(pairs.scenario_ids, pairs.groups["scenario"], strict=True))
        return {one.name: frozenset(number for number, name in named.items() if name in one.scenarios) for one in self._groups.groups}

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
