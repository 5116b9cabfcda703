"""Ensembles: rows made of other rows, in an order and on scales that are fitted to what people rated of validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np

from empathy_eval.base.errors import Problem, collecting, input_error, refuse
from empathy_eval.base.hashing import digest, signature_line
from empathy_eval.base.tabular import WHOLE
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS, PAIRS, TWO_BY_TWO, Contrast
from empathy_eval.design.dataset import SPLITS
from empathy_eval.evaluation.corpus.pairs import Corpus, read_corpus
from empathy_eval.evaluation.external.custom_scores import CustomScores, MetricColumn
from empathy_eval.evaluation.external.custom_texts import CustomTexts
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, accuracies
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Array, Metric, with_count
from empathy_eval.metrics.registry import MetricSelection
from empathy_eval.metrics.scoring import Scoring, statistics_of
from empathy_eval.raters.agreement.table import Table
from empathy_eval.statistics.correlations import of_means
from empathy_eval.statistics.estimate import PLACES, Codes, Estimate
from empathy_eval.statistics.ranking import PairwiseComparisons
from empathy_eval.statistics.resampling import Clusters

_, FITTED_ON, MEASURED_ON = SPLITS
# Of fewer texts there is no order to be had.
FEWEST = 3


def chained(ordered: Array) -> Array:
    """The Huffman order of "EMPATH: An Ensemble Method for Automatic Fine-Grained Turn-Level Dialogue Empathy Evaluation with a Novel
    Emotional Distance Metric" (Rao, Liang and Jiang): scores (scores, texts) in the order of their worth, the least first; the first is
    averaged with the second, what comes of it with the third, and so on.

    The weights are 2^-(n-1), 2^-(n-1), 2^-(n-2), …, 1/2. The rule is that of the paper's text; its Eq. 6 goes through four scores in an
    order that is not that of their correlations with people in its Table 2. It is a chain alone: Huffman's code would put each average
    back among the scores by the average's own worth.
    """
    return reduce(lambda found, one: np.asarray((found + one) / 2), ordered)


def averaged(ordered: Array) -> Array:
    """The plain mean of scores (scores, texts)."""
    return np.asarray(ordered.mean(axis=0))


KINDS: Mapping[str, Callable[[Array], Array]] = {"huffman": chained, "mean": averaged}
FORM = f"write {' or '.join(f'{kind}:NAME,NAME' for kind in KINDS)}, with two names of rows or more"


@dataclass(frozen=True)
class Wanted:
    """An ensemble that is asked for: what it is called, its kind, and the rows that it is made of."""

    name: str
    kind: str
    rows: tuple[str, ...]


def wanted(texts: Sequence[str], rows: Sequence[str], typed: Mapping[str, str]) -> list[Wanted]:
    """The ensembles of what was typed, ``kind:name,name``; a name is that of a row, or as its metric was ``typed``.

    Raises:
        InputError: for another form, another kind, names of no row and rows named twice; all at once.
    """
    problems, found = list[Problem](), list[Wanted]()
    known = {**typed, **{name: name for name in rows}}
    for text in dict.fromkeys(texts):
        where, (kind, _, said) = f'ensemble "{text}"', text.partition(":")
        names = [name.strip() for name in said.split(",")]
        unknown = [name for name in names if name and name not in known]
        of = [known[name] for name in names if name in known]
        if kind not in KINDS or len(names) < 2 or not all(names):
            problems.append(Problem(where, "is not an ensemble", FORM))
        elif unknown:
            fix = f"name rows of this call: {', '.join(dict.fromkeys(rows))}"
            problems += [Problem(where, f'there is no row "{name}"', fix) for name in unknown]
        elif len(set(of)) < len(of):
            twice = next(name for place, name in enumerate(of) if name in of[:place])
            problems.append(Problem(where, f'"{twice}" is in it twice', "name each row once"))
        else:
            found.append(Wanted(text, kind, tuple(of)))
    refuse(problems)
    return found


@dataclass(frozen=True)
class Member:
    """A row in an ensemble: its ``r`` with people on validation, where lower scores were turned round first, and its weight.

    ``low`` and ``high`` become 0 and 1; the share ``clipped`` of the rated texts of test lies beyond them.
    """

    row: str
    r: float
    weight: float
    low: float
    high: float
    clipped: float
    higher_is_better: bool | None


@dataclass(frozen=True)
class Ensemble:
    """An ensemble as it was fitted on so many ratings of so many texts of validation; members in their order, the least worth first.

    What they come to is put on [0, 1] once more, ``low`` and ``high`` being the least and the most of validation.
    """

    name: str
    kind: str
    criterion: str
    ratings: int
    texts: int
    members: tuple[Member, ...]
    low: float
    high: float
    signature: str

    def called(self, several: bool) -> str:
        """Its name; of several criteria it says which it was fitted on."""
        return f"{self.name} on {self.criterion}" if several else self.name

    def of(self, scores: Mapping[str, Array]) -> Array:
        """The scores of texts from those of all its rows, as the rows have them; nan where one of them is."""
        some = [_unit(turned(scores[one.row], one.higher_is_better), one.low, one.high) for one in self.members]
        # Cut like every score, so that what is a tie is one on every machine.
        return np.asarray(np.round(_unit(KINDS[self.kind](np.stack(some)), self.low, self.high), PrecomputedScores.places))

    def column(self, scores: CustomScores, name: str = "") -> MetricColumn:
        """Its row among those of these scores."""
        keys, values = scores.texts.keys, self.of({column.metric.name: column.scores for column in scores.columns}).tolist()
        known = {key: value for key, value in zip(keys, values, strict=True) if math.isfinite(value)}
        one = PrecomputedScores(name or self.name, self.signature, known, higher_is_better=True)
        return MetricColumn(one, with_count(one.of(keys)))


def fitted(ensembles: Sequence[Wanted], scores: CustomScores, table: Table) -> tuple[Ensemble, ...]:
    """Every ensemble on every criterion of the ratings of validation, which are of texts of these scores.

    Raises:
        InputError: if texts have no split, or if validation has too few ratings, or ratings or scores that are all alike; all at once.
    """
    _refuse_without_splits(scores.texts)
    problems, found = list[Problem](), list[Ensemble]()
    for criterion in table.criteria:
        for one in ensembles:
            with collecting(problems):
                found.append(_fitted(one, criterion, scores, table))
    refuse(dict.fromkeys(problems))
    return tuple(found)


def _refuse_without_splits(texts: CustomTexts) -> None:
    splits = texts.splits or [""] * len(texts)
    fix = f"""write "split": "{FITTED_ON}" or "{MEASURED_ON}" into every line: the first fits an ensemble, the second measures it"""
    if without := [item for item, split in zip(texts.items, splits, strict=True) if not split]:
        raise input_error(texts.where, f"{len(without)} of {len(texts)} rated texts have no split, first {without[0]}", fix)
    if MEASURED_ON not in splits:
        raise input_error(texts.where, f'no rated text is of the split "{MEASURED_ON}"', f"rate texts of {FITTED_ON} and of {MEASURED_ON}")


def _fitted(asked: Wanted, criterion: str, scores: CustomScores, table: Table) -> Ensemble:
    columns = {one.metric.name: one for one in scores.columns}
    where = f'ensemble "{asked.name}" on "{criterion}"'
    if lost := [name for name in asked.rows if name not in columns]:
        raise input_error(where, f'"{lost[0]}" gave no text a score', "leave it out of the ensemble")
    values = {name: turned(columns[name].scores, columns[name].metric.higher_is_better) for name in asked.rows}
    ratings, text = _ratings(scores.texts, table, criterion, FITTED_ON, list(values.values()))
    texts = np.unique(text)
    fit = {name: some[texts] for name, some in values.items()}
    _refuse_unfit(where, ratings, fit)
    found = of_means(ratings, [one[text] for one in values.values()])[:, 0]
    worth = {name: round(float(r), PLACES) for name, r in zip(values, found, strict=True)}
    order = sorted(asked.rows, key=lambda name: (worth[name], name))
    tested = np.unique(_ratings(scores.texts, table, criterion, MEASURED_ON, list(values.values()))[1])
    members = list[Member]()
    for name, weight in zip(order, KINDS[asked.kind](np.eye(len(order))).tolist(), strict=True):
        low, high, some = float(fit[name].min()), float(fit[name].max()), values[name][tested]
        clipped = round(float(((some < low) | (some > high)).mean()), PLACES) if len(some) else 0.0
        members.append(Member(name, worth[name], weight, low, high, clipped, columns[name].metric.higher_is_better))
    made = KINDS[asked.kind](np.stack([_unit(fit[one.row], one.low, one.high) for one in members]))
    low, high = float(made.min()), float(made.max())
    if low == high:
        raise input_error(where, f"its scores are all alike on {FITTED_ON}", "name other rows")
    told = [[one.row, columns[one.row].metric.signature, one.low, one.high] for one in members]
    signature = signature_line(
        ensemble={"huffman": "huffman-order,chain", "mean": "mean"}[asked.kind], order=",".join(order), by=f"pearson,{FITTED_ON}",
        criterion=criterion, ratings=len(ratings), texts=len(texts), scale=f"min-max,{FITTED_ON},clipped", members=digest(told)[:16],
    )  # fmt: skip
    return Ensemble(asked.name, asked.kind, criterion, len(ratings), len(texts), tuple(members), low, high, signature)


def text_of(texts: CustomTexts, table: Table) -> Codes:
    """The row of the text of each rating."""
    place = {item: row for row, item in enumerate(texts.items)}
    return np.array([place[item] for item in table.items], dtype=np.int64)[table.item]


def _ratings(texts: CustomTexts, table: Table, criterion: str, split: str, scores: Sequence[Array]) -> tuple[Array, Codes]:
    """The ratings of texts of a split that have all these scores, and the row of the text of each."""
    text = text_of(texts, table)
    there = (np.array(texts.splits) == split) & np.all(np.isfinite(scores), axis=0)
    kept = there[text] & (table.criterion == table.criteria.index(criterion))
    return table.rating[kept], text[kept]


def _refuse_unfit(where: str, ratings: Array, scores: Mapping[str, Array]) -> None:
    """Refuses what nothing can be fitted on."""
    texts = len(next(iter(scores.values())))
    more = f"rate more texts of {FITTED_ON}"
    if texts < FEWEST:
        of = "text" if texts == 1 else "texts"
        raise input_error(where, f"{FITTED_ON} has ratings of {texts} {of} that all its rows score, but an order needs {FEWEST}", more)
    if len(np.unique(ratings)) < 2:
        raise input_error(where, f"all {len(ratings)} ratings of {FITTED_ON} are alike", more)
    if alike := [name for name, values in scores.items() if values.min() == values.max()]:
        what = f'"{alike[0]}" gives all {texts} rated texts of {FITTED_ON} the same score'
        raise input_error(where, what, f"{more}, or leave it out of the ensemble")


def turned(scores: Array, higher_is_better: bool | None) -> Array:
    """Scores of which higher is better, or that have no direction."""
    return -scores if higher_is_better is False else scores


def _unit(values: Array, low: float, high: float) -> Array:
    """Values on [0, 1], those beyond the ends at the ends."""
    return np.asarray(np.clip((values - low) / (high - low), 0.0, 1.0))


CLOSENESS, RELEASED = "at equal closeness", "as released"
# By row and variant the scores of all pairs, nan where there is none.
Scored = Mapping[str, Mapping[str, Array]]


@dataclass(frozen=True)
class OnPairs:
    """How often a row rates the empathetic of two texts higher, ties half: ``at equal closeness`` or ``as released``."""

    row: str
    contrast: str
    pairs: int
    accuracy: Estimate
    signature: str


def on_pairs(
    release_dir: Path, ensembles: Sequence[Ensemble], known: MetricSelection, scoring: Scoring, chance: ResamplingSettings
) -> tuple[tuple[OnPairs, ...], tuple[MetricFault, ...]]:
    """Scores all pairs of the test split by the rows of these ensembles, which are among those ``known``; and what failed in that.

    Rows without a better direction are left out, and so is a row that could not score these texts.

    Raises:
        InputError: if the release is damaged.
    """
    some = [one for one in known.metrics if one.name in {member.row for ensemble in ensembles for member in ensemble.members}]
    both = (("pairs", PAIR_VARIANTS), ("controls", CELLS))
    pairs, controls = (
        read_corpus(release_dir, config, variants, contexts=True, splits=(MEASURED_ON,), language=known.language)
        for config, variants in both
    )
    if stray := set(controls.pair_ids).difference(pairs.pair_ids):
        raise input_error(release_dir, f'the control "{min(stray)}" is not a pair', WHOLE)
    released, faults = _scored(pairs, PAIR_VARIANTS, some, scoring)
    place = {pair: row for row, pair in enumerate(pairs.pair_ids)}
    at = np.array([place[pair] for pair in controls.pair_ids], dtype=np.int64)
    near = {name: {variant: values[at] for variant, values in found.items()} for name, found in released.items()}
    more, others = _scored(controls, CONTROLS, some, scoring) if len(controls) else ({}, [])
    cells = {name: {**near[name], **found} for name, found in more.items() if name in near}
    tables = ((CLOSENESS, TWO_BY_TWO[0], controls, cells), (RELEASED, PAIRS[0], pairs, released))
    found = [
        _reached(row, name, contrast, corpus.clusters, chance)
        for name, contrast, corpus, scores in tables
        for row in _rows(ensembles, some, scores)
    ]
    return tuple(one for one in found if one), (*faults, *others)


def _scored(corpus: Corpus, variants: Sequence[str], metrics: Sequence[Metric], scoring: Scoring) -> tuple[Scored, list[MetricFault]]:
    texts = corpus.pairs(variants)
    made = statistics_of([one for one in metrics if not isinstance(one, PrecomputedScores)], texts, scoring)
    rows = {one.name: one.looked_up(texts) if isinstance(one, PrecomputedScores) else made[one.name].rows for one in metrics}
    scores = {
        one.name: {name: MetricColumn(one, row).scores for name, row in found.items()} for one in metrics if (found := rows[one.name])
    }
    return scores, [one.fault for one in made.values() if one.fault]


def _rows(ensembles: Sequence[Ensemble], metrics: Sequence[Metric], scores: Scored) -> Iterator[tuple[str, str, Mapping[str, Array]]]:
    """Names, signatures and scores by variant: rows of which higher is better, or lower and turned round; then all ensembles."""
    for one in metrics:
        if one.name in scores and one.higher_is_better is not None:
            yield one.name, one.signature, {name: turned(some, one.higher_is_better) for name, some in scores[one.name].items()}
    several = len({one.criterion for one in ensembles}) > 1
    for made in ensembles:
        if all(member.row in scores for member in made.members):
            variants = scores[made.members[0].row]
            found = {variant: made.of({member.row: scores[member.row][variant] for member in made.members}) for variant in variants}
            yield made.called(several), made.signature, found


def _reached(
    row: tuple[str, str, Mapping[str, Array]], name: str, contrast: Contrast, clusters: Clusters, chance: ResamplingSettings
) -> OnPairs | None:
    """The accuracy over the pairs that the row has all scores of; None where there is none."""
    (metric, signature, scores), sides = row, [side for duel in contrast.duels for side in duel]
    has = np.all([np.isfinite(scores[side]) for side in sides], axis=0)
    if not has.any():
        return None
    duels = PairwiseComparisons([(scores[kind][has], scores[cold][has]) for kind, cold in contrast.duels])
    (accuracy,) = accuracies([duels.won()], kept := clusters.take(has), chance)
    how = signature_line(accuracy="ties-half", split=MEASURED_ON) + f"|{chance.of_intervals(kept)}"
    return OnPairs(metric, name, int(has.sum()), accuracy, f"{signature}|{how}")
