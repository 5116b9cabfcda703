"""Failure cases: texts on which a metric, a judge and people (or the stance) disagree most, and their counts by group."""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.tabular import table_batches
from empathy_eval.design.contrasts import CELLS, CONTROLS, EMPATHETIC, NEAR, PAIR_VARIANTS, STANCE_OF
from empathy_eval.design.dataset import FAR_WAY, SPLITS, WAYS, column
from empathy_eval.design.personas import VOICES
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.evaluation.inversion.rows import FailureCase, FailureGroup, Failures
from empathy_eval.evaluation.measure import SCORES
from empathy_eval.metrics.protocol import last_turns
from empathy_eval.statistics.correlations import midranks

# A pair and one of its four variants.
Text = tuple[str, str]


@dataclass(frozen=True)
class Truth:
    """Mean human ratings of texts by a criterion."""

    criterion: str
    scores: Mapping[Text, float]


STANCE, PEOPLE = "stance", "people"
# The link of a pair, from the folder of the release.
EXPLORE = "explore/index.html#id={}"
NO_MANNER = "empathetic text"
FLAG = "crisis"


def read_item_scores(items: Path, better: Mapping[str, bool | None]) -> dict[str, dict[Text, float]]:
    """Reads scores of the four variants from the file of ``score``; ``better`` is by scorer whether higher is better.

    Scorers that it does not name, or without a better end, are passed over.
    """
    by_scorer: dict[str, dict[Text, float]] = {name: {} for name, way in better.items() if way is not None}
    for row in _rows(items):
        name = row["metric"]
        if name not in by_scorer:
            continue
        cells = [((row["pair_id"], cell), row[SCORES[cell]]) for cell in CELLS] if "item" not in row else []
        for (pair, variant), value in cells or [(row["item"].split(":")[:2], row["score"])]:
            if variant in CELLS and value not in (None, ""):
                by_scorer[name][pair, variant] = float(value)
    return {name: some for name, some in by_scorer.items() if some}


def _rows(items: Path) -> Iterator[dict[str, Any]]:
    if items.suffix == ".csv":
        with items.open(encoding="utf-8", newline="") as stream:
            yield from csv.DictReader(stream)
        return
    for batch in table_batches(items):
        yield from batch.to_pylist()


@dataclass(frozen=True)
class _About:
    """Facts on a text beside its scores."""

    dialogue: str
    groups: Mapping[str, str]
    before: str
    text: str


def find_failures(
    release_dir: Path, scores: Mapping[str, Mapping[Text, float]], better: Mapping[str, bool | None], most: int, people: Truth | None = None
) -> Failures:
    """Returns at most ``most`` failure cases, the largest spread first, equal ones by name.

    Each scorer's scores become ranks among the texts that all have, from 0 (worst) to 1 (best), equal scores sharing a rank:
    (midrank - 1/2) / texts. So does what ``people`` gave or, without them, the stance. The spread of a text is its highest rank minus its
    lowest one. ``better`` is by scorer whether higher is better.
    """
    texts = set[Text]().union(*scores.values())
    truth = people.scores if people else {text: float(STANCE_OF[text[1]] == EMPATHETIC) for text in texts}
    columns = {**scores, PEOPLE if people else STANCE: truth}
    shared = sorted(texts.intersection(*columns.values()))
    signs = {name: -1 if better.get(name) is False else 1 for name in columns}
    ranks = {
        name: (midranks(np.array([signs[name] * values[text] for text in shared])) - 0.5) / max(len(shared), 1)
        for name, values in columns.items()
    }
    spread = np.round(np.ptp(np.array(list(ranks.values())), axis=0), PLACES) if shared else np.zeros(0)
    order = sorted(range(len(shared)), key=lambda row: (-spread[row], shared[row]))[:most]
    about = _about(release_dir, shared)
    cases = []
    for row in order:
        own_ranks, of = {name: round(float(values[row]), PLACES) for name, values in ranks.items()}, about[shared[row]]
        # Of equal ranks the first name is told.
        high, low = max(own_ranks, key=lambda name: own_ranks[name]), min(own_ranks, key=lambda name: own_ranks[name])
        values = {name: round(values[shared[row]], PLACES) for name, values in columns.items()}
        cases.append(FailureCase(
            *shared[row], of.dialogue, dict(of.groups), float(spread[row]), high, low, own_ranks, values, {}, of.before, of.text,
            EXPLORE.format(shared[row][0]),
        ))  # fmt: skip
    line = signature_line(
        spread="highest-minus-lowest-rank", ranks="midrank-1/2,of-shared-texts", truth=f"people,{people.criterion}" if people else STANCE
    )
    return Failures(tuple(cases), tuple(_groups(shared, about, spread, set(order))), len(shared), len(texts) - len(shared), line)


def _groups(shared: Sequence[Text], about: Mapping[Text, _About], spread: Any, chosen: set[int]) -> Iterator[FailureGroup]:
    """Yields by group the number of texts and of cases, and the mean spread."""
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, text in enumerate(shared):
        for by, label in about[text].groups.items():
            rows[by, label].append(row)
    order = Counter(by for by, _ in rows)
    for by in order:
        for (_, label), own in sorted((item for item in rows.items() if item[0][0] == by), key=lambda item: item[0]):
            cases = sum(row in chosen for row in own)
            yield FailureGroup(by, label, len(own), cases, round(math.fsum(spread[row] for row in own) / len(own), PLACES))


def _about(release_dir: Path, shared: Sequence[Text]) -> dict[Text, _About]:
    """Returns facts on texts: dialogue, groups, the seeker's turns just before, and the text."""
    about_text, texts = dict[Text, _About](), set(shared)
    for config, variants in (("pairs", PAIR_VARIANTS), ("controls", CONTROLS)):
        corpus = read_corpus(release_dir, config, PAIR_VARIANTS if config == "pairs" else CELLS, contexts=True)
        flags = column(release_dir, config, "flags", SPLITS)
        for row, pair in enumerate(corpus.pair_ids):
            for variant in [variant for variant in variants if (pair, variant) in texts]:
                near = variant in NEAR
                manners = corpus.groups.get(WAYS[0] if near else FAR_WAY)
                voices = corpus.groups.get(VOICES[0 if near else 1])
                groups = {
                    "manner": NO_MANNER if STANCE_OF[variant] == EMPATHETIC else manners[row] if manners else "unknown",
                    "voice": voices[row] if voices else "unknown",
                    "scenario": corpus.groups["scenario"][row],
                    FLAG: "yes" if FLAG in flags[row] else "no",
                }
                before = " / ".join(last_turns(corpus.contexts[row]))
                about_text[pair, variant] = _About(corpus.dialogues[row], groups, before, corpus.variants[variant][row])
    return about_text
