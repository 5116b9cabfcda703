"""Custom texts to score: replies from a file, or texts of a release by their names; and their scores."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.hashing import digest
from empathy_eval.base.tabular import json_rows, write_rows
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import SPLITS
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.evaluation.external.score_file import PrecomputedScores, file_signature, raise_at_most, read_scores_by, row_problems
from empathy_eval.evaluation.inversion.inversion import metric_scores
from empathy_eval.metrics.faults import MetricFault, attempt
from empathy_eval.metrics.protocol import Array, Context, Metric, Pairs, RangeAware, Segments, context_of, reply_of, with_count
from empathy_eval.metrics.registry import MetricSelection
from empathy_eval.metrics.scoring import PLAIN, Scoring, consistent_statistics

SUFFIX = ".jsonl"
# What a file of texts calls the text of an item, where a release has variants.
REPLY = "reply"
# The two replies of a line of preferences, which are its systems.
SIDES = ("chosen", "rejected")


@dataclass(frozen=True)
class CustomTexts:
    """Texts column by column, all of one length.

    ``keys`` say what a text is of: an item and ``reply``, or a pair and its variant. Texts of one name in ``contexts_of`` answer the same
    turns; those of one name in ``units`` are drawn together. A text without a system or a split has "", one without a reference None; all
    are of one ``language``. ``splits`` may be left out where nobody asks for them.
    """

    where: str
    items: Sequence[str]
    keys: Sequence[tuple[str, str]]
    systems: Sequence[str]
    contexts_of: Sequence[str]
    units: Sequence[str]
    contexts: Sequence[Context]
    references: Sequence[str | None]
    replies: Sequence[str]
    language: str = ENGLISH
    splits: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.items)

    def take(self, rows: Sequence[int]) -> CustomTexts:
        """The texts of those rows."""
        columns = {name: column for name, column in vars(self).items() if name not in ("where", "language") and column}
        chosen: dict[str, Any] = {name: [column[row] for row in rows] for name, column in columns.items()}
        return replace(self, **chosen)

    @property
    def pairs(self) -> Pairs:
        """All texts as the one variant of so many pairs, for metrics."""
        return Pairs(self.items, [reference or "" for reference in self.references], {REPLY: self.replies}, self.contexts)

    @property
    def segments(self) -> Segments:
        """All texts as segments."""
        return Segments(self.replies, [reference or "" for reference in self.references], self.contexts)


def read_texts(path: Path) -> CustomTexts:
    """Reads a JSONL file under the schema ``own_text``; a text without an item is named by its line, ``line 3``.

    A line of preferences (``prompt``, ``chosen``, ``rejected``) is two texts, of the systems ``chosen`` and ``rejected``.

    Raises:
        InputError: for a file that cannot be read or holds no text, lines that break the schema, items that come twice, and a system in
            some lines only; all at once.
    """
    problems, rows, lines = list[Problem](), list[dict[str, Any]](), dict[str, int]()
    for number, row in json_rows(path):
        where = f"{path}: line {number}"
        if isinstance(row, Problem):
            problems.append(row)
            continue
        form = "own_preference" if row.keys() & {"prompt", *SIDES} else "own_text"
        faults = row_problems(row, form, where)
        for text in [] if faults else _texts_of(row, f"line {number}"):
            if (first := lines.setdefault(text["item"], number)) != number:
                faults.append(Problem(where, f'"{text["item"]}" is also the item of line {first}', "give each text a name of its own"))
            rows.append(text)
        problems += faults
    if not problems and len({"system" in row for row in rows}) > 1:
        without = [lines[row["item"]] for row in rows if "system" not in row]
        what = f"{len(without)} of {len(rows)} lines have no system, first line {without[0]}"
        problems.append(Problem(str(path), what, "write the system into every line, or into none"))
    if not rows and not problems:
        fix = 'write a line {"context": …, "reply": …} for each, or {"prompt": …, "chosen": …, "rejected": …}'
        problems.append(Problem(str(path), "holds no text", fix))
    raise_at_most(problems, path)
    return _texts(path, rows)


def _texts_of(row: dict[str, Any], line: str) -> list[dict[str, Any]]:
    """Returns the texts of a valid line: one, or the chosen reply and the rejected one."""
    if "reply" in row:
        return [{"item": line, **row}]
    name, split = row.get("item", row.get("pair_id", line)), {"split": row["split"]} if "split" in row else {}
    return [{"item": f"{name}:{side}", "system": side, "context": row["prompt"], "reply": reply_of(row[side]), **split} for side in SIDES]


def _texts(path: Path, rows: Sequence[dict[str, Any]]) -> CustomTexts:
    contexts = [context_of(row["context"]) for row in rows]
    names = [digest([[turn["role"], turn["text"]] for turn in context]) for context in contexts]
    items = [row["item"] for row in rows]
    return CustomTexts(
        str(path), items, [(item, REPLY) for item in items], [row.get("system", "") for row in rows], names, names, contexts,
        [row.get("reference") for row in rows], [row["reply"] for row in rows], splits=[row.get("split", "") for row in rows],
    )  # fmt: skip


def texts_of_release(release_dir: Path, names: Collection[str], splits: Sequence[str] = SPLITS) -> CustomTexts:
    """Reads texts of a release by name, ``pair_id:variant``; a variant is a system, and a dialogue is resampled as a whole.

    Raises:
        InputError: if it is no release.
    """
    rows = list[Any]()
    for config, compared in (("pairs", PAIR_VARIANTS), ("controls", CONTROLS)):
        corpus = read_corpus(release_dir, config, PAIR_VARIANTS if config == "pairs" else CELLS, contexts=True, splits=splits)
        for place, pair_id in enumerate(corpus.pair_ids):
            shared = pair_id, corpus.dialogues[place], corpus.contexts[place], corpus.references[place]
            texts = {"reference": corpus.references, **corpus.variants} if config == "pairs" else corpus.variants
            for variant in ("reference", *compared) if config == "pairs" else compared:
                if f"{pair_id}:{variant}" in names:
                    rows.append(((pair_id, variant), *shared, texts[variant][place]))
    if not rows:
        raise input_error(
            release_dir, f"holds none of the texts in {', '.join(splits)}", "leave --split out, or name the release that was rated"
        )
    keys, pairs, dialogues, contexts, references, replies = (list(column) for column in zip(*rows, strict=True))
    items = [f"{pair_id}:{variant}" for pair_id, variant in keys]
    return CustomTexts(str(release_dir), items, keys, [variant for _, variant in keys], pairs, dialogues, contexts, references, replies)


COLUMNS = pa.schema([*((name, pa.string()) for name in ("metric", "item", "system")), ("score", pa.float64()), ("signature", pa.string())])
# Of texts that a metric warns of, so many are named.
SHOWN = 3


@dataclass(frozen=True)
class MetricColumn:
    """The statistics of a metric, with rows of nan for texts without a score."""

    metric: Metric
    statistics: Array

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which texts have a score."""
        return ~np.isnan(self.statistics[:, 0])

    @property
    def scores(self) -> Array:
        """The score of each text; nan where there is none."""
        return metric_scores(self.metric, self.statistics)


@dataclass(frozen=True)
class DomainWarning:
    """Texts outside the domain of a metric, for one reason: how many of all, and the first of them."""

    metric: str
    reason: str
    texts: int
    of: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        outside = f"{self.texts} of {self.of} texts are outside of what it was made for"
        return f"{self.metric}: {outside}: {self.reason}; first {', '.join(self.first)}"


@dataclass(frozen=True)
class CustomScores:
    """All columns in order, with ``faults`` of metrics and warnings on texts ``outside`` their domain."""

    texts: CustomTexts
    columns: tuple[MetricColumn, ...]
    faults: tuple[MetricFault, ...]
    outside: tuple[DomainWarning, ...]


def score_custom_texts(
    texts: CustomTexts, selection: MetricSelection, precomputed: Sequence[PrecomputedScores] = (), scoring: Scoring = PLAIN
) -> CustomScores:
    """Scores all texts by all metrics, and looks up precomputed scores.

    Raises:
        InputError: for a measure of whole sets of texts, and a metric that reads a reference where a text has none; all at once.
    """
    _refuse_unfit(texts, selection)
    (results,) = consistent_statistics(selection.metrics, [texts.pairs], scoring)
    columns = [MetricColumn(metric, results[metric.name].rows[REPLY]) for metric in selection.metrics if results[metric.name].rows]
    faults = [result.fault for result in results.values() if result.fault]
    outside = list[DomainWarning]()
    for metric in selection.metrics:
        warned = attempt(metric.name, lambda metric=metric: list(_outside(metric, texts)))  # type: ignore[misc]
        if isinstance(warned, MetricFault):
            faults.append(warned)
        else:
            outside += warned
    columns += [MetricColumn(metric, with_count(metric.of(texts.keys))) for metric in precomputed]
    return CustomScores(texts, tuple(columns), tuple(faults), tuple(outside))


def _refuse_unfit(texts: CustomTexts, selection: MetricSelection) -> None:
    what, fix = "measures whole sets of texts, and gives no text a score", "score a release with it, or leave it out"
    problems = [Problem(f'metric "{diversity.name}"', what, fix) for diversity in selection.diversities]
    without = [item for item, reference in zip(texts.items, texts.references, strict=True) if reference is None]
    for metric in selection.metrics if without else ():
        if "reference" in metric.reads:
            what = f"reads a reference, and {len(without)} of {len(texts)} texts have none, first {without[0]}"
            problems.append(Problem(f'metric "{metric.name}"', what, "write a reference into every line, or leave the metric out"))
    refuse(problems)


def _outside(metric: Metric, texts: CustomTexts) -> Iterator[DomainWarning]:
    """Yields the warnings of a metric, by reason in the order of first occurrence."""
    if not isinstance(metric, RangeAware):
        return
    rows: dict[str, list[int]] = defaultdict(list)
    for row, reason in metric.outside(texts.segments):
        rows[str(reason)].append(range(len(texts))[row])
    for reason, some in rows.items():
        different = sorted(set(some))
        yield DomainWarning(metric.name, reason, len(different), len(texts), tuple(texts.items[row] for row in different[:SHOWN]))


def read_own_scores(path: Path, items: Sequence[str], *, higher_is_better: bool = True) -> PrecomputedScores:
    """Reads scores of a CSV, TSV or JSONL file with the columns ``item`` and ``score``; other columns are ignored.

    Raises:
        InputError: for another suffix, unknown items, scores given twice and what is no number; all at once.
    """
    scores, problems = read_scores_by(
        path, ("item", "score"), "own_score", set(items), lambda row: ((row["item"], REPLY), ""),
        ("is not an item of the texts", "use the items of the scored file"),
    )  # fmt: skip
    return PrecomputedScores(path.stem, file_signature(path, scores, problems, "write a line for each item"), scores, higher_is_better)


def write_own_items(path: Path, scores: CustomScores) -> None:
    """Writes one row per metric and text, as parquet or CSV; a text without a score has an empty cell."""
    rows = (
        {
            "metric": column.metric.name, "item": item, "system": system, "score": None if math.isnan(value) else value,
            "signature": column.metric.signature,
        }
        for column in scores.columns
        for item, system, value in zip(scores.texts.items, scores.texts.systems, column.scores.tolist(), strict=True)
    )  # fmt: skip
    write_rows(path, COLUMNS, rows)
