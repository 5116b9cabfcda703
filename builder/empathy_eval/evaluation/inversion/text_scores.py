"""The score of every text of a release, and the word margin of every pair: what ``explore`` filters by, and what ``verify`` makes again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from empathy_eval.base.files import whole_file
from empathy_eval.base.tabular import TableWriter
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.evaluation.corpus.pairs import Corpus
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import Scores, scores_of
from empathy_eval.evaluation.shortcuts.texts import REFERENCE
from empathy_eval.metrics.protocol import Array
from empathy_eval.metrics.scoring import Pairs, statistics_of
from empathy_eval.metrics.vader import Vader

ITEMS = "items.parquet"
TEXTS = (REFERENCE, *PAIR_VARIANTS, *CONTROLS)
NAMED = [("pair_id", pa.string()), ("variant", pa.string())]
WORD_MARGIN = "word_margin"
# Columns that are no metric's.
BESIDE = (*(name for name, _ in NAMED), WORD_MARGIN)
# Seven digits are what a score says, and half of the bytes.
SCORE = pa.float32()
# Pairs of a group of rows. Who reads this file reads all of it, so groups are as large as memory likes: 50,000 rows at most.
GROUP = 10_000


@dataclass(frozen=True)
class TextScores:
    """The score of every text by metric, shape (pairs, texts), nan where there is none; ``there`` says which texts a pair has.

    The texts of a pair are those of ``TEXTS``, in that order. A metric that reads a reference gives references none.
    ``word_margins`` are by pair, as :class:`empathy_eval.evaluation.inversion.rows.ShortcutAudit` has them.
    """

    pair_ids: Sequence[str]
    there: NDArray[np.bool_]
    scores: Mapping[str, NDArray[np.float32]]
    word_margins: Mapping[str, float] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return pa.schema([*NAMED, (WORD_MARGIN, pa.float64()), *((name, SCORE) for name in self.scores)])

    def groups(self) -> Iterator[pa.Table]:
        """The groups of rows of the file: pair after pair the texts that it has."""
        for start in range(0, len(self.pair_ids), GROUP):
            rows = slice(start, start + GROUP)
            pairs, texts = np.nonzero(self.there[rows])
            names = [pa.array(some, pa.string()).take(pa.array(at)) for some, at in ((self.pair_ids[rows], pairs), (TEXTS, texts))]
            names.append(pa.array(map(self.word_margins.get, names[0].to_pylist()), pa.float64()))
            scores = [pa.array(one[rows][pairs, texts], SCORE, from_pandas=True) for one in self.scores.values()]
            yield pa.table([*names, *scores], self.schema)


def of_references(stand: Evaluation) -> dict[str, Array]:
    """What the metrics that read no reference give references; what the audit needs of it is kept for it.

    A reference that a metric fails on has no score, which is no fault of the report: none of its tables is made of it.
    """
    alone = [one for one in stand.found.metrics if REFERENCE not in one.reads]
    pairs = Pairs(stand.pairs.pair_ids, stand.pairs.references, {REFERENCE: stand.pairs.references}, stand.pairs.contexts)
    made = {name: one.rows for name, one in statistics_of(alone, pairs, stand.scoring).items() if one.rows}
    if Vader.name in made:
        stand.known[Vader.name] = made[Vader.name]
    return {one.name: scores_of(one, made[one.name][REFERENCE]) for one in alone if one.name in made}


def text_scores(
    references: Mapping[str, Array], pairs: Corpus, controls: Corpus,
    rated: Sequence[Scores],
) -> TextScores:  # fmt: skip
    """The scores of all texts, from those of references and the statistics that the tables are made of."""
    place = {pair: row for row, pair in enumerate(pairs.pair_ids)}
    some = np.array([place[pair] for pair in controls.pair_ids], dtype=np.int64)
    there = np.ones((len(pairs), len(TEXTS)), dtype=bool)
    there[:, -len(CONTROLS) :] = np.isin(np.arange(len(pairs)), some)[:, None]
    found = {}
    for metric, released, cells in rated:
        made = found[metric.name] = np.full(there.shape, np.nan, dtype=np.float32)
        made[:, 0] = references.get(metric.name, np.nan)
        for name, statistics in released.items():
            made[:, TEXTS.index(name)] = scores_of(metric, statistics)
        for name in CONTROLS if cells else ():
            made[some, TEXTS.index(name)] = scores_of(metric, cells[name])
    return TextScores(pairs.pair_ids, there, found)


def write_text_scores(path: Path, scores: TextScores, about: Mapping[str, str] | None = None) -> None:
    """Writes a row a text, as parquet, with what is told ``about`` the file in its metadata."""
    with whole_file(path) as partial, TableWriter(partial, scores.schema, about) as table:
        for group in scores.groups():
            table.add_table(group)
