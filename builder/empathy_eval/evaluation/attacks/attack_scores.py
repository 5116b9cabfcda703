"""Scores of replies under attack: a seeded sample of replies, their attacked texts, and how the scores change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from empathy_eval.base.hashing import digest, signature_line
from empathy_eval.base.stages import stage
from empathy_eval.design.contrasts import PAIR_VARIANTS, PAIRS, TWO_BY_TWO
from empathy_eval.evaluation.attacks.registry import Attack, Attacks, Reply, apply_attack, assign_other_replies
from empathy_eval.evaluation.corpus.pairs import Corpus, contexts_at, draw_rows
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import (
    ResamplingSettings,
    Rows,
    Statistics,
    compare_pairs,
    directed_scores,
    estimate,
    resample_sums,
)
from empathy_eval.evaluation.inversion.inversion import Scores as MetricScores
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.evaluation.inversion.rows import AttackRow, AttackTable, ScoreChange, StanceEffect
from empathy_eval.metrics.faults import MetricResult
from empathy_eval.metrics.protocol import Array, Context, Metric, Pairs
from empathy_eval.metrics.scoring import statistics_of
from empathy_eval.statistics.estimate import Clusters, Estimate

Key = tuple[str, str]
EQUAL, RELEASED = "pairs with controls, at equal closeness", "pairs, as released"


@dataclass(frozen=True)
class AttackScores:
    """Scores of replies, row by row: before, and by attack under it. Higher is better; nan where there is no score.

    ``eligible`` says by attack which replies could be attacked.
    """

    before: Array
    under: Mapping[str, Array]
    eligible: Mapping[str, Rows]


@dataclass(frozen=True)
class ScoreChanges:
    """Changes of scores under one attack, over all replies and by variant."""

    whole: ScoreChange
    by_variant: Mapping[str, ScoreChange]


def score_changes(
    scores: AttackScores, variants: Sequence[str], clusters: Clusters, effect: StanceEffect, chance: ResamplingSettings
) -> dict[str, ScoreChanges]:
    """Returns the changes of scores by attack; ``variants`` are those of the rows, ``clusters`` their dialogues.

    All attacks share the resamples of dialogues, which are drawn once; a single dialogue has no intervals.
    """
    parts = {"": np.ones(len(variants), dtype=bool)} | {name: np.array([own == name for own in variants]) for name in sorted(set(variants))}
    totals, counts = dict[Key, Array](), dict[Key, tuple[int, int]]()
    has = np.isfinite(scores.before)
    for attack, under in scores.under.items():
        for part, rows in parts.items():
            both = rows & has & scores.eligible[attack] & np.isfinite(under)
            gap = np.where(both, under - np.where(both, scores.before, 0.0), 0.0)
            totals[attack, part] = clusters.totals(np.column_stack([gap > 0, gap < 0, gap, both]).astype(np.float64))
            counts[attack, part] = int((rows & has).sum()), int(both.sum())
    drawn = resample_sums(totals, clusters, chance) if totals and len(clusters) > 1 else {}
    figures = {key: _change(counts[key], total.sum(axis=0, keepdims=True), drawn.get(key), effect) for key, total in totals.items()}
    return {attack: ScoreChanges(figures[attack, ""], {part: figures[attack, part] for part in parts if part}) for attack in scores.under}


def _change(counts: tuple[int, int], sums: Array, drawn: Array | None, effect: StanceEffect) -> ScoreChange:
    """Returns the figures from sums of rows (rises, falls, change, 1), and from those of resamples."""
    if not counts[1]:
        return ScoreChange(*counts)
    with np.errstate(divide="ignore", invalid="ignore"):  # of a resample without an eligible reply there is no figure
        values, several = sums[:, :3] / sums[:, 3:], None if drawn is None else drawn[:, :3] / drawn[:, 3:]
    rises, falls, change = (estimate(float(values[0, at]), None if several is None else several[:, at]) for at in range(3))
    return ScoreChange(*counts, rises, falls, change, change and _in_units(change, effect))


def _in_units(change: Estimate, effect: StanceEffect) -> Estimate | None:
    """Returns a change over the size of the stance effect, which counts as exact; None where that is no unit."""
    if effect.reason is not None:
        return None
    low, high = (None if end is None else round(end / abs(effect.number), PLACES) for end in (change.low, change.high))
    return Estimate(round(change.number / abs(effect.number), PLACES), low, high)


def stance_effects(pulls: Mapping[str, Array], clusters: Clusters, over: str, chance: ResamplingSettings) -> dict[str, StanceEffect]:
    """Returns the stance effect by scorer, from the empathetic minus the apathetic score of each pair (nan: none), ``over`` these pairs."""
    sides = {name: (np.isfinite(pull), pull) for name, pull in pulls.items()}
    totals = {name: clusters.totals(np.column_stack([np.where(has, pull, 0), has])) for name, (has, pull) in sides.items()}
    drawn = resample_sums(totals, clusters, chance) if pulls and len(clusters) > 1 else {}
    with np.errstate(divide="ignore", invalid="ignore"):  # of a resample without a score there is no effect
        rates = {name: (float(np.divide(*sums.sum(axis=0))), np.divide(*drawn[name].T) if drawn else None) for name, sums in totals.items()}
    return {name: _effect(estimate(*value), over) for name, value in rates.items()}


def _effect(difference: Estimate | None, over: str) -> StanceEffect:
    if difference is None:
        return StanceEffect(0.0, over=over, reason="no pair has a score of both stances")
    why = None
    if difference.interval and not difference.decided:
        # Without its numbers: another machine's may differ a little, and a sentence is compared by its letters.
        why = "the stance effect may be nothing, as its interval holds 0"
    elif not difference.value:
        why = "the stance effect is nothing"
    return StanceEffect(difference.value, difference.low, difference.high, over=over, reason=why)


# So many pairs at most are attacked, each in both variants.
MOST = 250
# A report, which is not to be much slower, has so many of its pairs attacked: one in so many, and at least so many.
ONE_IN, LEAST = 40, 50


@dataclass(frozen=True)
class ReplySample:
    """Replies to attack, row by row with (pair, variant), and their dialogues."""

    keys: Sequence[Key]
    replies: Sequence[Reply]
    clusters: Clusters
    references: Sequence[str] = ()

    @property
    def variants(self) -> list[str]:
        """The variant of each row."""
        return [variant for _, variant in self.keys]


@dataclass(frozen=True)
class AttackedTexts:
    """Texts of replies under attack: by attack the texts (None where a reply is not eligible), and the signature."""

    replies: ReplySample
    texts: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, attacks: Sequence[Attack], replies: ReplySample, seed: int) -> AttackedTexts:
        """Applies all attacks to all replies.

        Raises:
            JobError: if an attack fails, or gives what is no text.
        """
        texts, signatures = dict[str, list[str | None]](), dict[str, str]()
        for attack in attacks:
            attacked_texts = [apply_attack(attack, reply, key, seed) for key, reply in zip(replies.keys, replies.replies, strict=True)]
            texts[attack.name] = attacked_texts
            share = sum(text is not None for text in attacked_texts) / len(attacked_texts) if attacked_texts else 0.0
            signatures[attack.name] = signature_line(
                attack=attack.name, version=attack.version, replies=len(attacked_texts), drawn="sha256", seed=seed, eligible=f"{share:.4f}",
                texts=digest([[*key, text] for key, text in zip(replies.keys, attacked_texts, strict=True)])[:16],
            )  # fmt: skip
        return cls(replies, texts, signatures)

    @property
    def places(self) -> list[tuple[str, int]]:
        """The attack and the row of each text, reply after reply, so that work on a context or a reference serves all of them."""
        rows = range(len(self.replies.keys))
        return [(attack, row) for row in rows for attack, texts in self.texts.items() if texts[row] is not None]

    def rows(self, metric: tuple[str, str], scores: AttackScores, effect: StanceEffect, chance: ResamplingSettings) -> list[AttackRow]:
        """Returns the row of each attack, for a scorer with this name and signature."""
        name, signature = metric
        clusters = self.replies.clusters
        unit = signature_line(rises="strictly", effect=f"size,taken-as-it-is,{effect.over.replace(', ', ',').replace(' ', '-')}")
        by_attack = score_changes(scores, self.replies.variants, clusters, effect, chance)
        return [
            AttackRow(
                name, attack, figures.whole, effect, figures.by_variant,
                f"{signature}|{self.signatures[attack]}|{unit}|{chance.of_intervals(clusters)}",
            )
            for attack, figures in by_attack.items()
        ]  # fmt: skip

    def table(self, rows: Sequence[AttackRow], notes: Sequence[str], results: Sequence[MetricResult] = ()) -> AttackTable:
        """Returns the table of all rows."""
        pairs, faulty = {pair for pair, _ in self.replies.keys}, tuple(result.fault for result in results if result.fault)
        return AttackTable(len(self.replies.keys), len(pairs), len(self.replies.clusters), tuple(rows), tuple(notes), faulty)


def sample_replies(corpus: Corpus, rows: Sequence[int], contexts: Sequence[Context], seed: int) -> ReplySample:
    """Returns both variants of the pairs in those rows, each with the same variant of another dialogue."""
    pair_ids, dialogues = ([column[row] for row in rows] for column in (corpus.pair_ids, corpus.dialogues))
    replies, keys = list[Reply](), list[Key]()
    for place, other in enumerate(assign_other_replies(dialogues, pair_ids, seed)):
        for variant in PAIR_VARIANTS:
            texts = corpus.variants[variant]
            replies.append(Reply(texts[rows[place]], contexts[place], None if other is None else texts[rows[other]], corpus.language))
            keys.append((pair_ids[place], variant))
    twice = [row for row in rows for _ in PAIR_VARIANTS]
    clusters = Clusters.of([corpus.dialogues[row] for row in twice], [corpus.scenario_ids[row] for row in twice])
    return ReplySample(keys, replies, clusters, [corpus.references[row] for row in twice])


def sample_rows(pair_ids: Sequence[str], seed: int, most: int = MOST) -> list[int]:
    """Returns the rows of at most ``most`` pairs, in their order, drawn by the SHA-256 of their ids."""
    return draw_rows(pair_ids, "attacks", seed, most)


def report_sample_size(pairs: int) -> int:
    """Returns how many of so many pairs a report attacks."""
    return min(MOST, max(LEAST, pairs // ONE_IN))


def attack_table(
    evaluation: Evaluation, rated: Sequence[MetricScores], attacks: Attacks, most: int = MOST, more: Sequence[str] = ()
) -> AttackTable:
    """Returns the table of attacks on a sample of the pairs, for every metric that can score new texts; ``more`` are further notes."""
    stage("attacks")
    pairs, seed = evaluation.pairs, evaluation.chance.seed
    rows = sample_rows(pairs.pair_ids, seed, most)
    contexts = [pairs.contexts[row] for row in rows] if pairs.contexts else contexts_at(evaluation.folder, "pairs", rows, evaluation.splits)
    texts = AttackedTexts.of(attacks.some, sample_replies(pairs, rows, contexts, seed), seed)
    attackable = [scores for scores in rated if _why_not(scores[0]) is None]
    scored = _scored([metric for metric, _, _ in attackable], texts, evaluation)
    effects, table_rows = _effects(attackable, evaluation), list[AttackRow]()
    for metric, released, _ in attackable:
        if scored[metric.name].rows:
            scores = _reply_scores(metric, {variant: released[variant][rows] for variant in PAIR_VARIANTS}, scored[metric.name], texts)
            table_rows += texts.rows((metric.name, metric.signature), scores, effects[metric.name], evaluation.chance)
    metrics: list[Any] = [*(metric for metric, _, _ in rated), *evaluation.selection.diversities]
    notes = [f"{metric.name}: not attacked, as {reason}" for metric in metrics if (reason := _why_not(metric)) is not None]
    return texts.table(table_rows, [*notes, *attacks.notes, *more], list(scored.values()))


def _effects(scores: Sequence[MetricScores], evaluation: Evaluation) -> dict[str, StanceEffect]:
    """Returns the stance effect of each metric: at equal closeness where it has scores of controls, else over released pairs."""
    equal = {metric.name: compare_pairs(metric, cells, TWO_BY_TWO[0]).pull for metric, _, cells in scores if cells}
    released = {metric.name: compare_pairs(metric, pairs, PAIRS[0]).pull for metric, pairs, cells in scores if not cells}
    effects = stance_effects(equal, evaluation.controls.clusters, EQUAL, evaluation.chance)
    return effects | stance_effects(released, evaluation.pairs.clusters, RELEASED, evaluation.chance)


def _why_not(metric: object) -> str | None:
    """Returns the reason why a metric is not attacked; None if it is."""
    if not hasattr(metric, "statistics"):
        return "it is of whole sets of texts"
    if isinstance(metric, PrecomputedScores):
        return "its scores are given, and it is not asked here: a judge is by annotate --attacks"
    return "it has no better direction" if getattr(metric, "higher_is_better", None) is None else None


def _scored(metrics: Sequence[Metric], attacked: AttackedTexts, evaluation: Evaluation) -> dict[str, MetricResult]:
    """Returns the results of metrics for attacked texts, reply after reply; references and contexts are unchanged."""
    replies, places = attacked.replies, attacked.places
    ids = [f"{', '.join(replies.keys[row])}, {attack}" for attack, row in places]
    texts = [attacked.texts[attack][row] or "" for attack, row in places]
    contexts = [replies.replies[row].context for _, row in places]
    pairs = Pairs(ids, [replies.references[row] for _, row in places], {"attacked": texts}, contexts)
    return statistics_of(metrics, pairs, evaluation.scoring)


def _reply_scores(metric: Metric, before: Statistics, scored: MetricResult, attacked: AttackedTexts) -> AttackScores:
    """Returns the scores of replies before and under attack, negated where lower is better."""
    whole = np.column_stack([directed_scores(metric, before[name]) for name in PAIR_VARIANTS]).ravel()
    under = {attack: np.full(len(whole), np.nan) for attack in attacked.texts}
    for (attack, row), value in zip(attacked.places, directed_scores(metric, scored.rows["attacked"]), strict=True):
        under[attack][row] = value
    eligible = {attack: np.array([text is not None for text in texts], dtype=bool) for attack, texts in attacked.texts.items()}
    return AttackScores(whole, under, eligible)
