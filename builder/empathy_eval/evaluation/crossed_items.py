"""Crossed items: whether a scorer prefers the fitting reply where two contexts differ only in the seeker's last words.

Each of the two replies fits one context and passes the other by, so what scores a reply without its context is right exactly half of
the time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.stages import stage
from empathy_eval.base.tabular import WHOLE
from empathy_eval.base.text import ENGLISH, counted, words
from empathy_eval.design.dataset import SPLITS, column, files_of
from empathy_eval.evaluation.corpus.pairs import read_contexts
from empathy_eval.evaluation.external.score_file import CROSSED, PrecomputedCrossedScores, PrecomputedScores
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, accuracies, directed_scores, group_by_rows
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.evaluation.inversion.rows import CrossedRow, CrossedTable
from empathy_eval.evaluation.shortcuts.linear_classifiers import (
    BITS,
    FORMS,
    MULTIPLIER,
    Bag,
    Counts,
    FeatureClassifier,
    Features,
    Lexicon,
    PairSides,
    TokenizedTexts,
    WordFeatures,
    hashes_of,
)
from empathy_eval.evaluation.shortcuts.shortcuts import assign_folds
from empathy_eval.evaluation.shortcuts.texts import Embedding, sample_pairs
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.lexical import Echo, Length
from empathy_eval.metrics.protocol import Array, Context, Metric, Pairs
from empathy_eval.metrics.scoring import PLAIN, Scoring, statistics_of
from empathy_eval.statistics.estimate import Clusters, Estimate, wins

CONTEXTS = ("context_1", "context_2")
REPLIES = ("reply_1", "reply_2")
NEEDS_REFERENCE = "not applicable: a reference is read, and crossed items have none"
# What a scorer without a better direction is taken for.
MORE = "right:more-is-fitting"


@dataclass(frozen=True)
class CrossedItems:
    """Crossed items as columns of equal length: the first context and reply of each, and the second."""

    ids: Sequence[str]
    dialogues: Sequence[str]
    scenario_ids: Sequence[int]
    contexts: tuple[Sequence[Context], Sequence[Context]]
    replies: tuple[Sequence[str], Sequence[str]]
    sources: Sequence[str]
    language: str = ENGLISH

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def clusters(self) -> Clusters:
        """The dialogues of the items."""
        return Clusters.of(self.dialogues, self.scenario_ids)

    def pairs(self, side: int) -> Pairs:
        """Returns both replies in the first context (0) or in the second (1), for a metric."""
        names = [f"{name}, context {side + 1}" for name in self.ids]
        return Pairs(names, [""] * len(self), dict(zip(REPLIES, self.replies, strict=True)), self.contexts[side])


def read_items(release_dir: Path, splits: Sequence[str] = SPLITS, language: str = ENGLISH) -> CrossedItems | None:
    """Reads the crossed items of a release; None where it has none.

    Raises:
        InputError: if a file is missing or damaged, or a context does not end with a turn of the seeker.
    """
    if not any(path.is_file() for path in files_of(release_dir, CROSSED)):
        return None
    names = ("crossed_id", "dialogue_id", "scenario_id", *REPLIES, "source")
    ids, dialogues, scenario_ids, reply_1, reply_2, sources = (column(release_dir, CROSSED, name, splits) for name in names)
    first, second = (read_contexts(release_dir, CROSSED, splits, name) for name in CONTEXTS)
    ends = zip(ids, first.last_roles, second.last_roles, strict=True)
    if odd := [name for name, *roles in ends if roles != ["seeker", "seeker"]]:
        what = f'crossed item "{odd[0]}": a context does not end with a turn of the seeker ({counted(len(odd), "such item")})'
        raise input_error(release_dir, what, WHOLE)
    return CrossedItems(ids, dialogues, scenario_ids, (first, second), (reply_1, reply_2), sources, language)


@dataclass(frozen=True)
class CrossedVerdicts:
    """Verdicts of a scorer by item: 1 where it is right, 0 where it is wrong, one half for a tie, nan without scores.

    ``fitting``: the first reply beside the second in the first context, and the second beside the first in the second. ``own``: the first
    reply in the first context beside the second, and the second reply in the second beside the first.
    """

    fitting: tuple[Array, Array]
    own: tuple[Array, Array]

    @classmethod
    def of(cls, first: Sequence[Array] | Array, second: Sequence[Array] | Array) -> CrossedVerdicts:
        """Returns the verdicts from the scores of both replies in the first context, and in the second; higher is better."""
        (a, b), (c, d) = first, second
        return cls((wins(a, b), wins(d, c)), (wins(a, c), wins(d, b)))

    @property
    def figures(self) -> tuple[Array, Array, Array]:
        """By item the share of fitting replies preferred, whether both were, and the share of own contexts preferred."""
        first, second = self.fitting
        both = np.where(np.isnan(first + second), np.nan, (first == 1) & (second == 1))
        return (first + second) / 2, both, (self.own[0] + self.own[1]) / 2

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which items have all scores."""
        return np.asarray(~np.isnan(np.array(self.figures)).any(axis=0))

    @property
    def ties(self) -> tuple[Array, Array]:
        """By item the share of equal scores between replies, and between contexts."""
        (first, second), (own_first, own_second) = ((a == 0.5, b == 0.5) for a, b in (self.fitting, self.own))
        return (first + second * 1.0) / 2, (own_first + own_second * 1.0) / 2


@dataclass(frozen=True)
class CrossedScorer:
    """A scorer and its verdicts; None where it cannot score items, for the reason ``why``. ``strict``: items without scores are wrong."""

    name: str
    signature: str
    verdicts: CrossedVerdicts | None
    why: str | None = None
    strict: bool = False


def crossed_rows(scorers: Sequence[CrossedScorer], items: CrossedItems, chance: ResamplingSettings) -> list[CrossedRow]:
    """Returns one row per scorer, with intervals over dialogues; scorers of the same items share their resamples."""
    scored = {number: (scorer, own) for number, scorer in enumerate(scorers) if (own := scorer.verdicts) and own.scored.any()}
    rows_by_number = {
        number: CrossedRow(scorer.name, 0, len(items), *(None,) * 5, scorer.why or "it has no score of these items", scorer.signature)
        for number, scorer in enumerate(scorers)
    }
    for rows, numbers in group_by_rows({number: verdicts.scored | scorer.strict for number, (scorer, verdicts) in scored.items()}):
        clusters = items.clusters if rows.all() else items.clusters.take(rows)
        figures = [np.nan_to_num(figure[rows]) for number in numbers for figure in scored[number][1].figures]
        estimates = iter(accuracies(figures, clusters, chance))
        for number in numbers:
            rows_by_number[number] = _row(*scored[number], [next(estimates) for _ in range(3)], chance.of_intervals(clusters))
    return list(rows_by_number.values())


def _row(scorer: CrossedScorer, verdicts: CrossedVerdicts, estimates: Sequence[Estimate], interval: str) -> CrossedRow:
    scored, (fitting, both, own) = verdicts.scored, estimates
    ties, own_ties = (round(float(ties_of[scored].mean()), PLACES) for ties_of in verdicts.ties)
    missing = "|missing:wrong" if scorer.strict and not scored.all() else ""
    count, signature = int(scored.sum()), f"{scorer.signature}{missing}|{interval}"
    return CrossedRow(scorer.name, count, len(scored) - count, fitting, both, own, ties, own_ties, None, signature)


def crossed_scorers(
    metrics: Sequence[Metric], items: CrossedItems, scoring: Scoring = PLAIN
) -> tuple[list[CrossedScorer], list[MetricFault]]:
    """Returns the verdicts of metrics, and faults; metrics that read the reply alone score each reply once."""
    fit = [metric for metric in metrics if "reference" not in metric.reads]
    text_only, contextual = ([metric for metric in fit if bool(metric.reads) is reads] for reads in (False, True))
    first = statistics_of(fit, items.pairs(0), scoring)
    second = {metric.name: first[metric.name] for metric in text_only} | statistics_of(contextual, items.pairs(1), scoring)
    scorers, faults = list[CrossedScorer](), list[MetricFault]()
    for metric in metrics:
        signature = metric.signature if metric.higher_is_better is not None else f"{metric.signature}|{MORE}"
        if metric not in fit:
            scorers.append(CrossedScorer(metric.name, signature, None, NEEDS_REFERENCE))
            continue
        sides = first[metric.name], second[metric.name]
        faults += [side.fault for side in sides if side.fault][:1]
        broken = next((side.fault.what for side in sides if side.fault and not side.rows), None)
        scores = (
            []
            if broken
            else [(directed_scores(metric, side.rows[REPLIES[0]]), directed_scores(metric, side.rows[REPLIES[1]])) for side in sides]
        )
        verdicts = None if broken else CrossedVerdicts.of(*scores)
        scorers.append(CrossedScorer(metric.name, signature, verdicts, broken and f"it failed: {broken}"))
    return scorers, faults


def scorer_of_file(crossed: PrecomputedCrossedScores, items: CrossedItems, *, strict: bool = False) -> CrossedScorer:
    """Returns what the scores of a file decide; with ``strict`` items without scores count as wrong."""
    sign = 1 if crossed.higher_is_better else -1

    def scores(context: int, reply: int) -> Array:
        return sign * np.array([crossed.scores.get((name, context, reply), math.nan) for name in items.ids], dtype=np.float64)

    verdicts = CrossedVerdicts.of((scores(1, 1), scores(1, 2)), (scores(2, 1), scores(2, 2)))
    return CrossedScorer(crossed.path.stem, crossed.signature, verdicts, strict=strict)


OF_REPLY, OF_BOTH = "words of the reply", "words of the last turn with words of the reply"
ECHO_OF_CHANGE, LAST, WHOLE_CONTEXT = "echo of what differs", "cosine, last turn", "cosine, whole context"
FORM = "log-odds"
# Cosines are cut to so many places, which most machines agree on.
COSINE_PLACES = 4
ONE_SCENARIO = "all items are of one scenario: there is no other to learn from"


def shortcut_scorers(items: CrossedItems, seed: int, embedding: Embedding | None = None) -> list[CrossedScorer]:
    """Returns the verdicts of shortcuts; learned ones are out of fold by scenario, cosines need an embedding and use a sample."""
    scorers = [*_learned(items, seed), *_counted(items)]
    return [*scorers, *_alike(items, seed, embedding)] if embedding else scorers


@dataclass(frozen=True)
class ReplyInContext(TokenizedTexts):
    """Replies, each with the last turn before it."""

    before: TokenizedTexts

    @classmethod
    def of(cls, replies: TokenizedTexts, before: TokenizedTexts) -> ReplyInContext:
        """Returns replies with the turns before them."""
        return cls(replies.texts, replies.codes, replies.starts, before)

    def take(self, rows: Counts) -> ReplyInContext:
        """The replies of those rows, each with its turn."""
        return self.of(super().take(rows), self.before.take(rows))


class ContextWordPairs(Features):
    """Pairs of a word of the last turn and a word of the reply, each once, hashed."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.signature = f"words-of-the-last-turn-by-words-of-the-reply,{lexicon.tokens},casefolded,hash=crc32-multiply-shift,{BITS}-bits"
        self._hashes = hashes_of(lexicon)

    def bag(self, texts: TokenizedTexts) -> Bag:
        """One count two words."""
        if not isinstance(texts, ReplyInContext):
            raise TypeError("replies without the turns before them")
        hashed, rows = list[Counts](), list[int]()
        for row in range(len(texts.texts)):
            turn, reply = (self._hashes[codes] for codes in (_own(texts.before, row), _own(texts, row)))
            value = (turn * MULTIPLIER)[:, None] ^ reply[None, :]
            value *= MULTIPLIER
            hashed.append(((value >> np.uint64(64 - BITS)).ravel()).astype(np.int64))
            rows.append(value.size)
        places = np.concatenate(hashed) if hashed else np.zeros(0, dtype=np.int64)
        return Bag(np.repeat(np.arange(len(rows)), rows), places, np.ones(len(places), dtype=np.int64))


def _own(texts: TokenizedTexts, row: int) -> NDArray[np.int32]:
    """Returns the distinct words of a text."""
    return np.unique(texts.codes[texts.starts[row] : texts.starts[row + 1]])


def _learned(items: CrossedItems, seed: int) -> list[CrossedScorer]:
    lexicon, count = Lexicon(items.language), len(items)
    replies = lexicon.read([*items.replies[0], *items.replies[1]])
    turns = lexicon.read([context[-1]["text"] for side in items.contexts for context in side])
    other = np.roll(np.arange(2 * count), count)
    fits, passes = ReplyInContext.of(replies, turns), ReplyInContext.of(replies.take(other), turns)
    away = ReplyInContext.of(replies, turns.take(other))
    folds = assign_folds([str(number) for number in items.scenario_ids], seed)
    how = signature_line(scored="out-of-fold", folds=int(folds.max(initial=-1)) + 1, by="scenario", dealt="sha256")
    scorers = list[CrossedScorer]()
    kinds: dict[str, Features] = {OF_REPLY: WordFeatures(lexicon), OF_BOTH: ContextWordPairs(lexicon)}
    for name, features in kinds.items():
        learner = FeatureClassifier(features, (FORM,))
        signature = f"{signature_line(counts=features.signature, form=FORMS[FORM].signature)}|{how}"
        if folds.max(initial=0) == 0:
            scorers.append(CrossedScorer(name, signature, None, ONE_SCENARIO))
            continue
        won = [learner.learn(PairSides(fits, cold, np.tile(folds, 2))).won for cold in (passes, away)]
        (first, second), (third, fourth) = (np.split(each, 2) for each in won)
        scorers.append(CrossedScorer(name, signature, CrossedVerdicts((first, second), (third, fourth))))
    return scorers


def _counted(items: CrossedItems) -> list[CrossedScorer]:
    """Returns length and two echoes: the share of a reply's words said by the seeker, and the share only in this last turn."""
    language, count = items.language, len(items)
    length, echo = Length(language), Echo(language)
    lengths, echoes, changes = (np.zeros((2, 2, count)) for _ in range(3))
    for row in range(count):
        both = [items.contexts[side][row] for side in (0, 1)]
        last = [{*words(context[-1]["text"], language)} for context in both]
        own = [words(replies[row], language) for replies in items.replies]
        lengths[:, :, row] = [len(reply) for reply in own]
        for side, context in enumerate(both):
            seeker_words = {word for turn in context if turn["role"] == "seeker" for word in words(turn["text"], language)}
            echoes[side, :, row] = [_share(reply, seeker_words) for reply in own]
            changes[side, :, row] = [_share(reply, last[side] - last[1 - side]) for reply in own]
    of_change = signature_line(share="words-of-the-reply-in-this-last-turn-and-not-in-the-other", tok=Lexicon(language).tokens)
    named = (("length", length.signature, lengths), ("echo", echo.signature, echoes), (ECHO_OF_CHANGE, of_change, changes))
    return [CrossedScorer(name, f"{signature}|{MORE}", CrossedVerdicts.of(*np.round(scores, PLACES))) for name, signature, scores in named]


def _share(own: Sequence[str], known: set[str]) -> float:
    return sum(word in known for word in own) / len(own) if own else 0.0


def _alike(items: CrossedItems, seed: int, embedding: Embedding) -> list[CrossedScorer]:
    """Returns the cosine of a reply with the last turn, and with the mean of all turns."""
    rows = sample_pairs(items.ids, seed).tolist()
    texts = dict.fromkeys(text for some in items.replies for text in (some[row] for row in rows))
    contexts = [[[turn["text"] for turn in items.contexts[side][row]] for row in rows] for side in (0, 1)]
    texts |= dict.fromkeys(text for side in contexts for turns in side for text in turns)
    vectors = dict(zip(texts, embedding.embedded(list(texts)), strict=True))
    last, whole = (np.full((2, 2, len(items)), np.nan) for _ in range(2))
    for side, each in enumerate(contexts):
        for row, turns in zip(rows, each, strict=True):
            for place, replies in enumerate(items.replies):
                last[side, place, row] = vectors[turns[-1]] @ vectors[replies[row]]
                mean = np.mean([vectors[text] for text in turns], axis=0)
                whole[side, place, row] = mean @ vectors[replies[row]] / np.linalg.norm(mean)
    return [
        CrossedScorer(
            name,
            f"{embedding.of_cosines}|cosine:{compared},{COSINE_PLACES}-places|{MORE}",
            CrossedVerdicts.of(*np.round(cosines, COSINE_PLACES)),
        )
        for name, compared, cosines in ((LAST, "last-turn", last), (WHOLE_CONTEXT, "mean-of-turns", whole))
    ]


WHOLE_SETS = "not applicable: whole sets of texts are measured"


def crossed_tables(
    evaluation: Evaluation, known: Sequence[MetricFault], files: Sequence[PrecomputedCrossedScores] = (), *, shortcuts: bool = True,
    embedding: Embedding | None = None,
) -> tuple[CrossedTable | None, list[MetricFault]]:  # fmt: skip
    """The table of crossed items, where the release has some in the measured splits; and new faults. ``known`` are those over pairs.

    Raises:
        InputError: if a file holds no score of these splits.
    """
    items = read_items(evaluation.folder, evaluation.splits, evaluation.selection.language)
    present = set(items.ids) if items else set[str]()
    if stray := [scores for scores in files if scores.ids.isdisjoint(present)]:
        what, fix = f"holds no score of a crossed item in {', '.join(evaluation.splits)}", "leave --split out, or name another"
        raise InputError([Problem(str(scores.path), what, fix) for scores in stray])
    if not items:
        return None, []
    stage("crossed items")
    # Scores that are given of pairs are of no crossed item.
    metrics = [metric for metric in evaluation.selection.metrics if not isinstance(metric, PrecomputedScores)]
    # No score of a metric is believed that failed as a whole over pairs.
    broken = {fault.metric: fault.what for fault in known if not fault.texts}
    scorers, faults = crossed_scorers([metric for metric in metrics if metric.name not in broken], items, evaluation.scoring)
    failed = [metric for metric in metrics if metric.name in broken]
    scorers += [CrossedScorer(metric.name, metric.signature, None, f"it failed: {broken[metric.name]}") for metric in failed]
    scorers += [CrossedScorer(diversity.name, diversity.signature, None, WHOLE_SETS) for diversity in evaluation.selection.diversities]
    scorers += [scorer_of_file(scores, items, strict=evaluation.strict) for scores in files]
    simple = shortcut_scorers(items, evaluation.chance.seed, embedding) if shortcuts else []
    return crossed_table(items, scorers, simple, evaluation.chance), faults


def crossed_table(
    items: CrossedItems, scorers: Sequence[CrossedScorer], shortcuts: Sequence[CrossedScorer], chance: ResamplingSettings
) -> CrossedTable:
    """The rows of metrics, judges and shortcuts, and what they are over."""
    rows = [tuple(crossed_rows(group, items, chance)) for group in (scorers, shortcuts)]
    return CrossedTable(len(items), len(items.clusters), dict(sorted(Counter(items.sources).items())), *rows)
