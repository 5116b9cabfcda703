"""Analysis of a between-subjects study: tests, gains, intraclass correlations and power as one report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, combinations, groupby, product
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from empathy_eval.base.errors import Problem, nearest, refuse
from empathy_eval.base.hashing import digest, signature_line
from empathy_eval.design.provenance import File, Provenance
from empathy_eval.raters.study import by_rater
from empathy_eval.raters.study.by_rater import Permutation, TableSelection
from empathy_eval.raters.study.power import aim_problems, power_reached, ratings_needed, smallest_effect
from empathy_eval.raters.study.ratings import Mask, StudyTable
from empathy_eval.raters.study.results import (
    Corrected,
    Gain,
    IntraclassCorrelation,
    Pairwise,
    PowerAnalysis,
    StudyGroup,
    StudyPart,
    StudyReport,
)
from empathy_eval.statistics.chi_square import ChiSquaredTest, CountTable, chi_square_test, round_figure
from empathy_eval.statistics.estimate import CONFIDENCE, Codes, Floats, benjamini_hochberg, holm

# The category of a test over all categories.
ALL = -1
Kind = Literal["omnibus", "category", "pair", "gain"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class PlannedTest(NamedTuple):
    """A test of some groups, by all categories or by one against the others; a gain compares two groups, the first the baseline."""

    kind: Kind
    category: int
    groups: tuple[int, ...]


def planned_tests(study: StudyTable) -> Iterator[PlannedTest]:
    """All tests of a study."""
    categories, groups = range(len(study.labels)), tuple(range(len(study.groups)))
    yield PlannedTest("omnibus", ALL, groups)
    yield from (PlannedTest("category", category, groups) for category in categories)
    yield from (PlannedTest("pair", ALL, pair) for pair in pairs(len(groups)))
    yield from (PlannedTest("gain", category, (0, other)) for category in categories for other in groups[1:])


def pairs(groups: int) -> list[tuple[int, int]]:
    """All pairs of groups, those with the baseline first."""
    return sorted(combinations(range(groups), 2), key=lambda pair: pair[0] > 0)


@dataclass(frozen=True)
class Stratum:
    """Ratings that are tested together: those ``where`` (None: all) of a study; ``study`` holds them alone."""

    name: str | None
    where: Mask | None
    study: StudyTable

    @classmethod
    def of(cls, study: StudyTable, by: str) -> list[Stratum]:
        """A stratum for each value of a column."""
        names, codes = study.strata[by]
        return [cls(name, where := codes == number, study.subset(where)) for number, name in enumerate(names)]

    def selections(self) -> Iterator[TableSelection]:
        """The count tables whose p by rater is needed, one for each planned test."""
        # Raters of a group without a rating here are not permuted.
        present = tuple(np.flatnonzero(self.study.counts().sum(axis=1)).tolist())
        everybody: Literal["all"] | tuple[int, ...] = present if 1 < len(present) < len(self.study.groups) else "all"
        for test in planned_tests(self.study):
            groups = test.groups if test.kind in ("pair", "gain") else everybody
            yield TableSelection(self.where, "all" if test.category == ALL else test.category, groups)

    def counted(self, test: PlannedTest) -> CountTable:
        """Counts of a planned test."""
        names, counts = tuple(self.study.groups[group] for group in test.groups), self.study.counts()[list(test.groups)]
        if test.category == ALL:
            return CountTable(names, tuple(f'"{label}"' for label in self.study.labels), counts)
        return CountTable.of_category(names, self.study.labels[test.category], test.category, counts)


def parts(strata: Sequence[Stratum], by_raters: Iterator[float], settings: str) -> tuple[StudyPart, ...]:
    """The parts of one column: all tests of its strata, with their p by rater (NaN: none).

    p-values are corrected over all parts: the omnibus ones, those of pairs, and by category the gains.
    """
    plan = list(planned_tests(strata[0].study))
    results = [
        {
            planned: chi_square_test(stratum.counted(planned), _defined(next(by_raters)), settings, yates=planned.kind == "gain")
            for planned in plan
        }
        for stratum in strata
    ]
    corrected = [dict[PlannedTest, Corrected]() for _ in strata]
    for _, family in groupby(plan, key=lambda planned: (planned.kind, planned.kind == "gain" and planned.category)):
        members = [(index, planned) for planned in family for index in range(len(strata))]
        for (index, planned), values in zip(members, _corrected_family([results[k][test] for k, test in members]), strict=True):
            corrected[index][planned] = values
    return tuple(map(_part, strata, results, corrected))


def _part(stratum: Stratum, tests: Mapping[PlannedTest, ChiSquaredTest], corrected: Mapping[PlannedTest, Corrected]) -> StudyPart:
    study, names, counts = stratum.study, stratum.study.groups, stratum.study.counts()
    shares = tuple(tuple(map(_defined, row)) for row in shares_of(counts).tolist())
    (omnibus,), by_category, pairs, gains = ([planned for planned in tests if planned.kind == kind] for kind in KINDS)
    return StudyPart(
        stratum.name, tuple(map(tuple, counts.tolist())), shares, tests[omnibus], corrected[omnibus],
        by_category=tuple(tests[planned] for planned in by_category),
        pairwise=tuple(Pairwise(names[pair.groups[0]], names[pair.groups[1]], tests[pair], corrected[pair]) for pair in pairs),
        gains=tuple(gain(study, planned.groups[1], planned.category, tests[planned], corrected[planned]) for planned in gains),
    )  # fmt: skip


def gain(study: StudyTable, group: int, category: int, test: ChiSquaredTest, corrected: Corrected) -> Gain:
    """Gain of a group over the baseline in a category, in percent of the baseline's share, with its interval by rater.

    Gains are of shares: if groups have equally many ratings, those of counts are the same. Undefined if the baseline never got the
    category.
    """
    counts = study.counts()[[0, group]]
    names, label = (study.groups[0], study.groups[group]), study.labels[category]
    unit = "block" if by_rater.clustered_by_block(study) else "rater"
    signature = signature_line(gain="percent-of-baseline-share", interval="log-ratio,linearised,t", level=CONFIDENCE, unit=unit)
    before, share = shares_of(counts)[:, category].tolist()
    low, high, value = None, None, None
    why = next((f'"{name}" has no rating here' for name, row in zip(names, counts, strict=True) if not row.sum()), None)
    if why is None and not counts[0, category]:
        why = f'"{names[0]}" was never given "{label}" here, so no gain over it can be computed'
    if why is None:
        value = round_figure(100 * (share / before - 1))
        interval = by_rater.gain_interval(study, group, category)
        if isinstance(interval, str):
            why = interval
        else:
            low, high = interval
    return Gain(
        value=value, low=low, high=high, reason=why, signature=signature, group=names[1], category=label, test=test, corrected=corrected,
        of_baseline_share=_defined(before), share=_defined(share),
    )  # fmt: skip


def shares_of(counts: Codes) -> Floats:
    """Share of each category in each row; NaN in a row without ratings."""
    totals = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    return shares


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else round_figure(value)


def _corrected_family(tests: Sequence[ChiSquaredTest]) -> list[Corrected]:
    """By test its corrected p-values, the reported one and that by rater, and the size of the family."""
    corrected: list[dict[str, Any]] = [{"family": sum(test.reported_p is not None for test in tests)} for _ in tests]
    for values, end in (([test.reported_p for test in tests], ""), ([test.permutation for test in tests], "_by_rater")):
        known = [value for value in values if value is not None]
        for name, corrected_by in (("holm", holm), ("benjamini_hochberg", benjamini_hochberg)):
            corrected_values = iter(corrected_by(known))
            for row, value in zip(corrected, values, strict=True):
                row[name + end] = None if value is None else round_figure(next(corrected_values))
    return [Corrected(**row) for row in corrected]


MOST_PERMUTATIONS = 100_000


@dataclass(frozen=True)
class StudyOptions:
    """Options of the analysis: strata columns (None: all), permutations of raters, and the effect to be detected."""

    by: tuple[str, ...] | None = None
    permutations: int = 2000
    seed: int = 0
    effect: float = 0.3
    alpha: float = 0.05
    power: float = 0.95

    def problems(self, ratings: StudyTable) -> list[Problem]:
        """Problems of the options for these ratings."""
        columns = tuple(ratings.strata)
        known = f"use one of {', '.join(columns)}" if columns else "give the ratings a column stratum or valence"
        unknown = [column for column in self.by or () if column not in columns]
        problems = [Problem("by", f'the ratings have no column "{column}"', known + nearest(column, columns)) for column in unknown]
        if not _whole(self.permutations) or not 0 <= self.permutations <= MOST_PERMUTATIONS:
            fix = f"use 0 (no p-value by rater) to {MOST_PERMUTATIONS:,}"
            problems.append(Problem("permutations", f'"{self.permutations}" is out of range', fix))
        if not _whole(self.seed):
            problems.append(Problem("seed", f'"{self.seed}" is not a whole number', "use a whole number, such as 0"))
        return [*problems, *aim_problems(self.effect, self.alpha, self.power, (len(ratings.groups), len(ratings.labels)))]


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def study(ratings: StudyTable, options: StudyOptions) -> StudyReport:
    """Analyse a study.

    Raises:
        InputError: for unknown columns and numbers out of range.
    """
    from scipy.special import chdtri

    refuse(options.problems(ratings))
    by = tuple(ratings.strata) if options.by is None else tuple(dict.fromkeys(options.by))
    strata = {None: [Stratum(None, None, ratings)]} | {name: Stratum.of(ratings, name) for name in by}
    selections = [table for stratum in chain(*strata.values()) for table in stratum.selections()]
    drawn = iter(by_rater.permutation_p_values(ratings, selections, options.permutations, options.seed))
    within = "study" if ratings.block_of is None else "block"
    chance = signature_line(permutations=options.permutations, unit="rater", within=within, seed=options.seed, numpy=np.__version__)
    parts_of = {name: parts(strata_of, drawn, chance) for name, strata_of in strata.items()}
    (whole,) = parts_of.pop(None)
    cells = product(range(len(ratings.groups)), range(len(ratings.labels)))
    spreads = tuple(by_rater.intraclass_correlation(ratings, group, category) for group, category in cells)
    # The 1 - alpha quantile of the omnibus statistic if groups do not differ and ratings are independent.
    if_independent = None if whole.omnibus.df is None else round_figure(float(chdtri(whole.omnibus.df, options.alpha)))
    groups, baseline, how = _groups(ratings), ratings.groups[0], {**asdict(options), "by": by}
    notes = [*_notes(ratings, groups), *_too_few_permutations([whole, *chain(*parts_of.values())], options)]
    return StudyReport(
        {"baseline": baseline, **how, "within": within, "criterion": ratings.criterion, "tables": [*map(asdict, ratings.tables)]},
        groups, ratings.labels, whole, {str(name): strata for name, strata in parts_of.items()}, spreads,
        _defined(by_rater.null_point(ratings, options.permutations, options.seed, 1 - options.alpha)), if_independent,
        _power_analysis(ratings, spreads, options), None, None,
        (*notes, *(permutation_notes(ratings, options.alpha) if options.permutations else ())), f"{_signature(ratings, by)}|{chance}",
        provenance=Provenance.of(
            files=[File(table.name, table.sha256) for table in ratings.tables], baseline=baseline, criterion=ratings.criterion,
            labels=list(ratings.labels), **how | {"by": list(by)},
        ),
    )  # fmt: skip


def _signature(ratings: StudyTable, by: Sequence[str]) -> str:
    """Settings of a study; its files are represented by a digest of their content, in order."""
    known = bool(ratings.tables) and all(table.sha256 for table in ratings.tables)
    seal = digest([[table.sha256, table.added] for table in ratings.tables])[:19] if known else "unknown"
    criterion = "none" if ratings.criterion is None else ratings.criterion
    return signature_line(
        study="between-subjects", baseline=ratings.groups[0], by=",".join(by) or "none", criterion=criterion, tables=seal
    )  # fmt: skip


def _groups(ratings: StudyTable) -> tuple[StudyGroup, ...]:
    group = ratings.group_of[ratings.rater]
    pairs = np.unique(group * len(ratings.items) + ratings.item) // len(ratings.items)
    raters, counts, items = (np.bincount(codes, minlength=len(ratings.groups)).tolist() for codes in (ratings.group_of, group, pairs))
    rows = zip(ratings.groups, raters, counts, items, strict=True)
    return tuple(StudyGroup(name, count, total, rated, name in ratings.added) for name, count, total, rated in rows)


def _power_analysis(ratings: StudyTable, spreads: Sequence[IntraclassCorrelation], options: StudyOptions) -> PowerAnalysis:
    """Power of these ratings. Their design effect is the mean over groups and categories of Rao and Scott (1981).

    Weights are one minus the group's share of the ratings, times one minus that of the category.
    """
    counts = ratings.counts()
    # As in the test, categories and groups without ratings are left out.
    df = max(((counts.sum(axis=1) > 0).sum().item() - 1) * ((counts.sum(axis=0) > 0).sum().item() - 1), 1)
    weights = np.outer(1 - counts.sum(axis=1) / counts.sum(), 1 - counts.sum(axis=0) / counts.sum()).ravel()
    # The only rating of a rater is independent.
    effects = np.array([1.0 if spread.ratings_a_rater == 1 else spread.design_effect for spread in spreads], dtype=np.float64)
    known = ~np.isnan(effects)
    mean = max(1.0, float((weights * effects)[known].sum() / weights[known].sum())) if known.any() else None
    aim = {"effect": options.effect, "alpha": options.alpha, "wanted": options.power}
    signature = signature_line(power="noncentral-chi-square", **aim, df=df, design_effect="Rao-Scott,mean")
    needed, total = ratings_needed(options.effect, df, options.alpha, options.power), len(ratings.rater)
    settings = (options.effect, options.alpha, options.power, df, needed, total)
    if mean is None:
        why = "no design effect is known: " + (next((spread.why for spread in spreads if spread.why), None) or "no ratings")
        return PowerAnalysis(*settings, None, None, None, None, signature, why)
    reached = round_figure(power_reached(total / mean, options.effect, df, options.alpha))
    smallest = round_figure(smallest_effect(total / mean, df, options.alpha, options.power))
    return PowerAnalysis(*settings, round_figure(total / mean), reached, smallest, round_figure(mean), signature)


def _too_few_permutations(parts: Sequence[StudyPart], options: StudyOptions) -> list[str]:
    """Note that more permutations are needed for a p by rater to fall below alpha after correction, if so."""
    family = max(max(row.corrected.family for row in rows) for part in parts for rows in ([part], part.pairwise, part.gains))
    if not options.permutations or family <= options.alpha * (options.permutations + 1):
        return []
    least = f"{options.permutations:,} permutations give no p-value by rater below {1 / (options.permutations + 1):.2g}"
    return [f"{least}, so Holm over {family} tests never falls below {options.alpha:g}: use {math.ceil(family / options.alpha):,} or more"]


def permutation_notes(ratings: StudyTable, alpha: float) -> Iterator[str]:
    """Notes on groups whose p by rater rests on few raters or arrangements, which more permutations do not change."""
    for group, name in enumerate(ratings.groups[1:], 1):
        both = f'"{name}" and "{ratings.groups[0]}"'
        permutation = Permutation.of(ratings, (0, group))
        if permutation is None:
            yield f"{both} have no block in common, so their p-value by rater is not reported"
            continue
        permutable, total = permutation.of_label(1), int((ratings.group_of == group).sum())
        if permutable < total:
            shared = f'only {permutable:,} of {total:,} raters of "{name}" share a block with "{ratings.groups[0]}"'
            yield f"{shared}: their p-value by rater is based on those raters alone"
        if (least := math.exp(-permutation.log_arrangements())) > alpha * (1 - 1e-9):
            yield f"raters of {both} allow only {1 / least:.0f} permutations, so no p-value by rater is below {least:.2g}"


def _notes(ratings: StudyTable, groups: Sequence[StudyGroup]) -> list[str]:
    """Caveats of these ratings."""
    notes = list(ratings.notes)
    if ratings.added:
        whose = ", ".join(ratings.added)
        notes.append(f"{whose}: added later; its raters were not drawn together with the others and may differ from them in other ways too")
    sizes = [group.ratings for group in groups]
    if len(set(sizes)) > 1:
        notes.append(f"groups have {min(sizes):,} to {max(sizes):,} ratings: gains compare shares, not counts")
    if any(group.items < len(ratings.items) for group in groups):
        notes.append("not every item was rated in every group, so groups may also differ in their items")
    return notes
