"""Fairness of what is on a stand: by group of scenarios, and under an exchange of names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.stages import stage
from empathy_eval.design.contrasts import PAIRS, TWO_BY_TWO, Contrast
from empathy_eval.design.language import BRING
from empathy_eval.design.scenarios import ScenarioGroups, load_groups
from empathy_eval.evaluation.corpus.contexts import contexts_at
from empathy_eval.evaluation.corpus.pairs import Corpus
from empathy_eval.evaluation.external.score_file import Given
from empathy_eval.evaluation.fairness.groups import LOOKED, Grouped, exchanged_pairs, group_rows, name_row
from empathy_eval.evaluation.fairness.names import VERSIONS, Names, load_names
from empathy_eval.evaluation.inversion.comparisons import Rated
from empathy_eval.evaluation.inversion.inversion import Statistics, duels_of
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.evaluation.inversion.rows import FairnessRow, FairnessTable
from empathy_eval.evaluation.inversion.stand import Stand
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Metric
from empathy_eval.metrics.scoring import statistics_of
from empathy_eval.statistics.ranking import holm_corrected

RAW, STANCE = PAIRS[0], TWO_BY_TWO[0]
Scores = tuple[Metric, Statistics, Statistics]


class Fairness:
    """Asks of every scorer on a stand whether it is fair: it takes the scores of all texts, and has the tables then.

    Groups are those that are packaged; names are those of the language, of a folder of rules of one's own or of the packaged ones. Where
    the language has none, the ``hint`` says what to do.

    Raises:
        InputError: if the file of names is not valid.
    """

    def __init__(self, stand: Stand, rules: Path | None = None, groups: ScenarioGroups | None = None, hint: str = BRING) -> None:
        self._stand, self._groups, self._hint = stand, groups or load_groups(), hint
        self._names = load_names(stand.found.language, rules)
        self.table: FairnessTable | None = None

    def __call__(self, pairs: Corpus, controls: Corpus, rated: Sequence[Scores]) -> None:
        """Makes both tables."""
        stage("fairness")
        ranked = [one for one in rated if one[0].higher_is_better is not None]
        told = [f"{metric.name}: is not asked, as it has no better direction" for metric, _, _ in rated if metric.higher_is_better is None]
        told += [f"{one.name}: is not asked, as it is of whole sets of texts" for one in self._stand.found.diversities]
        families = {metric.name: metric.family for metric, _, _ in ranked if isinstance(metric, Given)}
        if not any(self._scenarios(pairs).values()):
            told.append("no scenario here is in a group of groups.yaml")
        by_group = corrected(self._by_group(pairs, controls, ranked), families)
        by_names, more, faults = self._by_names(pairs, controls, ranked)
        definitions = [(one.name, one.definition) for one in self._groups.groups]
        self.table = FairnessTable(by_group, corrected(by_names, {}), (*told, *more), definitions, tuple(faults))

    def _scenarios(self, pairs: Corpus) -> dict[str, frozenset[int]]:
        """By group the numbers of its scenarios that the pairs are of, found by name."""
        named = dict(zip(pairs.scenario_ids, pairs.groups["scenario"], strict=True))
        return {one.name: frozenset(number for number, name in named.items() if name in one.scenarios) for one in self._groups.groups}

    def _by_group(self, pairs: Corpus, controls: Corpus, ranked: Sequence[Scores]) -> list[FairnessRow]:
        """At equal closeness where a group has scored controls, as released where it has none."""
        numbers = self._scenarios(pairs)
        chance, found = self._stand.chance, dict[tuple[str, str], FairnessRow]()
        for contrast, corpus in ((STANCE, controls), (RAW, pairs)):
            wanted = {name: some for name, some in numbers.items() if some and any((one[0].name, name) not in found for one in ranked)}
            rated = {one[0].name: _rated(one, contrast) for one in ranked if _statistics(one, contrast)}
            if wanted and rated and len(corpus):
                rows = group_rows(contrast.name, rated, corpus.clusters, Grouped(wanted, self._groups.digest), chance)
                found = {(row.metric, row.name): row for row in rows} | found
        return [found[one[0].name, name] for one in ranked for name in numbers if (one[0].name, name) in found]

    def _by_names(
        self, pairs: Corpus, controls: Corpus, ranked: Sequence[Scores]
    ) -> tuple[list[FairnessRow], list[str], list[MetricFault]]:
        """The rows of all metrics, what is told of others, and faults."""
        asked = [one for one in ranked if not isinstance(one[0], Given)]
        told = [
            f"{one[0].name}: names are not exchanged, as its scores are given; annotate --attacks asks a judge"
            for one in ranked
            if one not in asked
        ]
        if self._names is None:
            language = self._stand.found.language
            return [], [*told, f'names are not exchanged, as there is no names.yaml in the language "{language}"; {self._hint}'], []
        if not asked:
            return [], told, []
        looked = self._looked(controls if len(controls) else pairs, "controls" if len(controls) else "pairs")
        rows, faults = list[FairnessRow](), list[MetricFault]()
        for version in VERSIONS:
            made, more, wrong = self._exchanged(version, looked, self._names, asked)
            rows, told, faults = rows + made, told + more, faults + wrong
        return rows, told, faults

    def _looked(self, corpus: Corpus, config: str) -> _Looked:
        """A sample of the pairs, drawn by the SHA-256 of their ids, with their contexts."""
        stand = self._stand
        drawn = sorted(range(len(corpus)), key=lambda row: digest_bytes(f"{stand.chance.seed}:names:{corpus.pair_ids[row]}".encode()))[
            :LOOKED
        ]
        rising = sorted(drawn)
        read = [corpus.contexts[row] for row in rising] if corpus.contexts else contexts_at(stand.folder, config, rising, stand.splits)
        of = dict(zip(rising, read, strict=True))
        return _Looked(corpus, STANCE if config == "controls" else RAW, drawn, [of[row] for row in drawn])

    def _exchanged(
        self, version: str, looked: _Looked, names: Names, asked: Sequence[Scores]
    ) -> tuple[list[FairnessRow], list[str], list[MetricFault]]:
        """The rows of one way to exchange names."""
        stand = self._stand
        found = exchanged_pairs(looked.corpus, (looked.rows, looked.contexts), names, version, stand.chance.seed)
        if not found.rows:
            return [], [f"no pair of {found.looked} has names that can be exchanged by {version}"], []
        metrics = [one[0] for one in asked if _statistics(one, looked.contrast)]
        scored = statistics_of(metrics, found.pairs, stand.scoring)
        rows = [
            name_row(
                one[0], _statistics(one, looked.contrast), scored[one[0].name].rows, looked.contrast, found, looked.corpus, stand.chance
            )
            for one in asked
            if one[0] in metrics and scored[one[0].name].rows
        ]
        return [one for one in rows if one], [], [one.fault for one in scored.values() if one.fault]


@dataclass(frozen=True)
class _Looked:
    """The pairs that are looked through for names: their rows of a corpus, in the order of the sample, and their contexts."""

    corpus: Corpus
    contrast: Contrast
    rows: list[int]
    contexts: list[Any]


def _statistics(one: Scores, contrast: Contrast) -> Statistics:
    """The statistics that a contrast is made of: of pairs with controls, or of all pairs."""
    _, released, cells = one
    return cells if contrast is STANCE else released


def _rated(one: Scores, contrast: Contrast) -> Rated:
    return Rated(duels_of(one[0], _statistics(one, contrast), contrast), one[0].signature)


def corrected(rows: Iterable[FairnessRow], families: Mapping[str, str]) -> list[FairnessRow]:
    """The rows with all their p-values corrected for standing together; those of a family of scorers, by name, among themselves."""
    made = list(rows)
    for family in dict.fromkeys(families.get(row.metric, "") for row in made):
        places = [number for number, row in enumerate(made) if families.get(row.metric, "") == family]
        gaps = [gap for number in places for gap in (made[number].accuracy, made[number].effect) if gap]
        tested = iter(holm_corrected((one.difference for one in gaps), PLACES))
        for number in places:
            accuracy, effect = (gap and replace(gap, difference=next(tested)) for gap in (made[number].accuracy, made[number].effect))
            made[number] = replace(made[number], accuracy=accuracy, effect=effect)
    return made
