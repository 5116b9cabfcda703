"""Crossed items: whether a scorer prefers the reply that fits where two contexts differ in what the seeker said last alone.

Each of the two replies fits one context and passes the other by, so what scores a reply without its context is right exactly half of
the time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import Problem, input_error
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.base.tabular import DELIMITERS, WHOLE, headed_rows, json_rows
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.dataset import SPLITS, column, files_of
from empathy_eval.evaluation.corpus.pairs import read_contexts
from empathy_eval.evaluation.external.custom_texts import read_scores_by
from empathy_eval.evaluation.external.score_file import raise_at_most
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, accuracies, by_rows, merits_of
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.evaluation.inversion.rows import CrossedRow, CrossedTable
from empathy_eval.evaluation.wording import counted
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Array, Context, Metric
from empathy_eval.metrics.scoring import PLAIN, Pairs, Scoring, statistics_of
from empathy_eval.statistics.estimate import Clusters, Estimate, wins

CONFIG = "crossed"
CONTEXTS = ("context_1", "context_2")
REPLIES = ("reply_1", "reply_2")
REFERENCE = "not applicable: a reference is read, and crossed items have none"
# What a scorer without a better direction is taken for.
MORE = "right:more-is-fitting"


@dataclass(frozen=True)
class CrossedItems:
    """Crossed items column by column, all of one length: the first context and reply of each, and the second."""

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
        """Both replies in the first context (0) or in the second (1), for a metric."""
        names = [f"{one}, context {side + 1}" for one in self.ids]
        return Pairs(names, [""] * len(self), dict(zip(REPLIES, self.replies, strict=True)), self.contexts[side])


def read_items(release_dir: Path, splits: Sequence[str] = SPLITS, language: str = ENGLISH) -> CrossedItems | None:
    """The crossed items of a release; None where it has none.

    Raises:
        InputError: if a file is missing or damaged, or a context does not end with a turn of the seeker.
    """
    if not any(path.is_file() for path in files_of(release_dir, CONFIG)):
        return None
    names = ("crossed_id", "dialogue_id", "scenario_id", *REPLIES, "source")
    table = {name: column(release_dir, CONFIG, name, splits) for name in names}
    first, second = (read_contexts(release_dir, CONFIG, splits, name) for name in CONTEXTS)
    ends = zip(table["crossed_id"], first.last_roles, second.last_roles, strict=True)
    if odd := [name for name, *roles in ends if roles != ["seeker", "seeker"]]:
        what = f'crossed item "{odd[0]}": a context does not end with a turn of the seeker ({counted(len(odd), "such item")})'
        raise input_error(release_dir, what, WHOLE)
    replies = table[REPLIES[0]], table[REPLIES[1]]
    return CrossedItems(
        table["crossed_id"], table["dialogue_id"], table["scenario_id"], (first, second), replies, table["source"], language
    )


@dataclass(frozen=True)
class CrossedVerdicts:
    """What a scorer decided, by item 1 where it is right, 0 where it is wrong, one half for a tie and nan without scores.

    ``fitting``: the first reply beside the second in the first context, and the second beside the first in the second. ``own``: the first
    reply in the first context beside the second, and the second reply in the second beside the first.
    """

    fitting: tuple[Array, Array]
    own: tuple[Array, Array]

    @classmethod
    def of(cls, first: Sequence[Array] | Array, second: Sequence[Array] | Array) -> CrossedVerdicts:
        """From the scores of both replies in the first context, and in the second; higher is better."""
        (a, b), (c, d) = first, second
        return cls((wins(a, b), wins(d, c)), (wins(a, c), wins(d, b)))

    @property
    def figures(self) -> tuple[Array, Array, Array]:
        """By item how often it preferred the reply that fits, whether it did so twice, and how often the reply's own context."""
        one, other = self.fitting
        both = np.where(np.isnan(one + other), np.nan, (one == 1) & (other == 1))
        return (one + other) / 2, both, (self.own[0] + self.own[1]) / 2

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which items have all scores."""
        return np.asarray(~np.isnan(np.array(self.figures)).any(axis=0))

    @property
    def ties(self) -> tuple[Array, Array]:
        """By item the share of equal scores between replies, and between contexts."""
        (one, other), (first, second) = ((a == 0.5, b == 0.5) for a, b in (self.fitting, self.own))
        return (one + other * 1.0) / 2, (first + second * 1.0) / 2


@dataclass(frozen=True)
class CrossedScorer:
    """A scorer and what it decided; None where it cannot be asked, and ``why`` says why. With ``strict`` items without scores are wrong."""

    name: str
    signature: str
    verdicts: CrossedVerdicts | None
    why: str | None = None
    strict: bool = False


def rows_of(asked: Sequence[CrossedScorer], items: CrossedItems, chance: ResamplingSettings) -> list[CrossedRow]:
    """A row a scorer, with intervals over dialogues; scorers of the same items share their resamples."""
    scored = {number: (one, one.verdicts) for number, one in enumerate(asked) if one.verdicts and one.verdicts.scored.any()}
    made = {
        number: CrossedRow(one.name, 0, len(items), *(None,) * 5, one.why or "it has no score of these items", one.signature)
        for number, one in enumerate(asked)
    }
    for rows, numbers in by_rows({number: verdicts.scored | one.strict for number, (one, verdicts) in scored.items()}):
        clusters = items.clusters if rows.all() else items.clusters.take(rows)
        figures = [np.nan_to_num(figure[rows]) for number in numbers for figure in scored[number][1].figures]
        found = iter(accuracies(figures, clusters, chance))
        for number in numbers:
            made[number] = _row(*scored[number], [next(found) for _ in range(3)], chance.of_intervals(clusters))
    return list(made.values())


def _row(one: CrossedScorer, verdicts: CrossedVerdicts, found: Sequence[Estimate], interval: str) -> CrossedRow:
    scored, (fitting, both, own) = verdicts.scored, found
    ties, own_ties = (round(float(each[scored].mean()), PLACES) for each in verdicts.ties)
    missing = "|missing:wrong" if one.strict and not scored.all() else ""
    count, signature = int(scored.sum()), f"{one.signature}{missing}|{interval}"
    return CrossedRow(one.name, count, len(scored) - count, fitting, both, own, ties, own_ties, None, signature)


def asked_of(metrics: Sequence[Metric], items: CrossedItems, scoring: Scoring = PLAIN) -> tuple[list[CrossedScorer], list[MetricFault]]:
    """What these metrics decide, and what kept some from scoring; each text is scored once by what reads it alone."""
    fit = [one for one in metrics if "reference" not in one.reads]
    alone, both = ([one for one in fit if bool(one.reads) is reads] for reads in (False, True))
    first = statistics_of(fit, items.pairs(0), scoring)
    second = {one.name: first[one.name] for one in alone} | statistics_of(both, items.pairs(1), scoring)
    asked, faults = list[CrossedScorer](), list[MetricFault]()
    for one in metrics:
        signature = one.signature if one.higher_is_better is not None else f"{one.signature}|{MORE}"
        if one not in fit:
            asked.append(CrossedScorer(one.name, signature, None, REFERENCE))
            continue
        sides = first[one.name], second[one.name]
        faults += [side.fault for side in sides if side.fault][:1]
        broken = next((side.fault.what for side in sides if side.fault and not side.rows), None)
        scores = [] if broken else [(merits_of(one, side.rows[REPLIES[0]]), merits_of(one, side.rows[REPLIES[1]])) for side in sides]
        asked.append(CrossedScorer(one.name, signature, None if broken else CrossedVerdicts.of(*scores), broken and f"it failed: {broken}"))
    return asked, faults


def crossed_of(
    items: CrossedItems, asked: Sequence[CrossedScorer], shortcuts: Sequence[CrossedScorer], chance: ResamplingSettings
) -> CrossedTable:
    """The rows of metrics and shortcuts, and what they are over."""
    rows = [tuple(rows_of(some, items, chance)) for some in (asked, shortcuts)]
    return CrossedTable(len(items), len(items.clusters), dict(sorted(Counter(items.sources).items())), *rows)


COLUMNS = ("crossed_id", "context", "reply", "score")
# A context and a reply, each by its number.
CELLS = tuple(product((1, 2), repeat=2))


@dataclass(frozen=True)
class PrecomputedCrossedScores:
    """Scores of crossed items by item, context and reply."""

    path: Path
    signature: str
    scores: Mapping[tuple[str, int, int], float]
    higher_is_better: bool

    @property
    def ids(self) -> set[str]:
        """The items that are scored."""
        return {name for name, _, _ in self.scores}

    def asked(self, items: CrossedItems, *, strict: bool = False) -> CrossedScorer:
        """What these scores decide."""
        sign = 1 if self.higher_is_better else -1

        def of(context: int, reply: int) -> Array:
            return sign * np.array([self.scores.get((name, context, reply), math.nan) for name in items.ids], dtype=np.float64)

        verdicts = CrossedVerdicts.of((of(1, 1), of(1, 2)), (of(2, 1), of(2, 2)))
        return CrossedScorer(self.path.stem, self.signature, verdicts, strict=strict)


def of_crossed(path: Path) -> bool:
    """Whether a file of scores is of crossed items: its first line names the column ``crossed_id``.

    Raises:
        InputError: if it cannot be read.
    """
    if path.suffix.lower() == ".jsonl":
        _, row = next(json_rows(path), (0, dict[str, object]()))
        return not isinstance(row, Problem) and COLUMNS[0] in row
    return path.suffix.lower() in DELIMITERS and COLUMNS[0] in headed_rows(path)[0]


def read_crossed_scores(path: Path, ids: Sequence[str], *, higher_is_better: bool = True) -> PrecomputedCrossedScores:
    """The scores of a CSV, TSV or JSONL file by its suffix, with the columns ``crossed_id``, ``context`` and ``reply`` (each 1 or 2) and
    ``score``; other columns are passed over. An item may be left out, but one that is there has both replies in both contexts.

    Raises:
        InputError: for another suffix, unknown items, missing scores, scores given twice and what is no number; all at once.
    """

    def key_of(row: dict[str, Any]) -> tuple[tuple[str, int, int], str]:
        context, reply = int(row["context"]), int(row["reply"])
        return (row["crossed_id"], context, reply), f", reply {reply} in context {context}"

    unknown = "is not a crossed item of this release", "use the ids of the named release"
    scores, problems = read_scores_by(path, COLUMNS, "crossed_scores_row", set(ids), key_of, unknown)
    for name in dict.fromkeys(name for name, _, _ in scores):
        if lacking := [f"reply {reply} in context {context}" for context, reply in CELLS if (name, context, reply) not in scores]:
            problems.append(Problem(str(path), f'"{name}" has no score of {" and ".join(lacking)}', "score both replies in both contexts"))
    if not scores and not problems:
        problems.append(Problem(str(path), "holds no scores", "write a line for each reply in each context"))
    raise_at_most(problems, path)
    return PrecomputedCrossedScores(path, signature_line(file=digest_file(path)[:16], reads="unknown"), scores, higher_is_better)
