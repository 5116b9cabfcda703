"""Data sets of dialogues beside each other, as in Table 1 of "EmpathyScore": size, turns, words, strategies, scenarios.

By role there are distinct n-grams and sentiment too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.stages import advance, stage
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.design.dataset import MANIFEST
from empathy_eval.design.provenance import KEYS, LongForm, Provenance, file_of
from empathy_eval.evaluation.corpus.dialogues import ROLES, Source, source_of
from empathy_eval.metrics.lexical import Vader

# Distinct n-grams fall as texts grow: all roles of all data sets are measured on as many words, at most so many.
MOST_WORDS = 20_000
ORDERS = (1, 2)
PLACES = 6


@dataclass(frozen=True)
class RoleFigures:
    """The turns of a role, its mean words a turn, distinct n-grams over all n-grams by n, and VADER's mean compound score (English)."""

    turns: int
    words: float | None
    distinct: dict[int, float | None]
    sentiment: float | None


@dataclass(frozen=True)
class DataSet:
    """A data set: its dialogues and utterances, mean utterances a dialogue (``turns``) and words an utterance, how many strategies and
    scenarios are named, and figures by role; None where nothing is known."""

    name: str
    dialogues: int
    utterances: int
    turns: float
    words: float
    strategies: int | None
    scenarios: int | None
    roles: dict[str, RoleFigures] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Described(LongForm):
    """Data sets beside each other, and those of the paper; ``budget`` is the number of words that distinct n-grams are of."""

    columns: ClassVar[tuple[str, ...]] = (*KEYS, "data", "role", "figure", "value", "signature")
    numbers: ClassVar[tuple[str, ...]] = ("value",)
    sets: tuple[DataSet, ...]
    paper: tuple[DataSet, ...]
    budget: int
    signature: str

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON values."""
        return self._with_provenance(asdict(self))

    def _records(self) -> Iterator[dict[str, Any]]:
        for data_set in (*self.sets, *self.paper):
            about = {"data": data_set.name, "signature": self.signature if data_set in self.sets else ""}
            for name in ("dialogues", "utterances", "turns", "words", "strategies", "scenarios"):
                yield {**about, "role": "", "figure": name, "value": getattr(data_set, name)}
            for role, figures in data_set.roles.items():
                values = {"turns": figures.turns, "words": figures.words, "sentiment": figures.sentiment}
                values |= {f"distinct-{order}": value for order, value in figures.distinct.items()}
                yield from ({**about, "role": role, "figure": name, "value": value} for name, value in values.items())


class _Counts:
    """What is counted of a data set, dialogue by dialogue."""

    def __init__(self, source: Source) -> None:
        vader = Vader() if source.language == ENGLISH else None
        self.name, self.dialogues = source.name, 0
        self.turns, self.words = dict.fromkeys(ROLES, 0), dict.fromkeys(ROLES, 0)
        self.sentiment: dict[str, list[float]] = {role: [] for role in ROLES}
        # The first words of each role, turn by turn: no n-gram crosses turns.
        self.first: dict[str, list[Sequence[str]]] = {role: [] for role in ROLES}
        self._kept = dict.fromkeys(ROLES, 0)
        strategies, scenarios = set[str](), set[str]()
        stage(f"reading {source.name}", things="dialogues")
        for dialogue in source.dialogues():
            self.dialogues += 1
            scenarios |= {dialogue.scenario} if dialogue.scenario else set()
            for role, text, strategy in dialogue.turns:
                strategies |= {strategy} if strategy else set()
                self._take(role, words(text, source.language))
                if vader:
                    self.sentiment[role].append(vader.score(text))
            advance(1)
        if not self.dialogues:
            raise input_error(source.path, "holds no dialogue", "name another release or file")
        self.strategies, self.scenarios = len(strategies) or None, len(scenarios) or None

    def _take(self, role: str, turn_words: Sequence[str]) -> None:
        self.turns[role] += 1
        self.words[role] += len(turn_words)
        if self._kept[role] < MOST_WORDS:
            self.first[role].append(turn_words)
            self._kept[role] += len(turn_words)

    def data_set(self, budget: int) -> DataSet:
        """The figures, distinct n-grams over so many words."""
        utterances = sum(self.turns.values())
        turns, length = utterances / self.dialogues, sum(self.words.values()) / utterances
        roles = {role: self._role(role, budget) for role in ROLES if self.turns[role]}
        return DataSet(
            self.name, self.dialogues, utterances, round(turns, PLACES), round(length, PLACES), self.strategies, self.scenarios, roles
        )

    def _role(self, role: str, budget: int) -> RoleFigures:
        scores, turns = self.sentiment[role], self.turns[role]
        distinct = {order: _distinct(self.first[role], order, budget) for order in ORDERS}
        return RoleFigures(
            turns, round(self.words[role] / turns, PLACES), distinct, round(math.fsum(scores) / len(scores), PLACES) if scores else None
        )


def _distinct(turns: Sequence[Sequence[str]], order: int, budget: int) -> float | None:
    """Different n-grams over all n-grams within turns, of the first so many words; None without an n-gram."""
    grams, count, left = set[tuple[str, ...]](), 0, budget
    for turn in turns:
        cut = turn[:left]
        left -= len(cut)
        for start in range(len(cut) - order + 1):
            grams.add(tuple(cut[start : start + order]))
            count += 1
    return round(len(grams) / count, PLACES) if count else None


def describe(paths: Sequence[Path]) -> Described:
    """The data sets of releases and files beside each other, and those of the paper.

    Raises:
        InputError: for what is neither, a faulty file, and two of one name.
    """
    sources = [source_of(path) for path in paths]
    names = [source.name for source in sources]
    if twice := [name for name in names if names.count(name) > 1]:
        raise input_error("describe", f'"{twice[0]}" is the name of two data sets', "name each once, or rename a file")
    counted = [_Counts(source) for source in sources]
    budget = min([MOST_WORDS, *(counts.words[role] for counts in counted for role in ROLES if counts.words[role])])
    paper = tuple(DataSet(**row) for row in read_yaml(data_folder("release") / "paper_datasets.yaml", "paper_datasets"))
    line = signature_line(
        words="empathy-eval,casefolded", distinct=f"within-turns,first-{budget}-words-a-role", sentiment=Vader.signature, scenarios="named"
    )
    provenance = Provenance.of(files=[file_of(source.path, MANIFEST) for source in sources])
    return Described(tuple(counts.data_set(budget) for counts in counted), paper, budget, line, provenance=provenance)


def figures_of(row: DataSet) -> Mapping[str, float | int | None]:
    """The figures of a data set by their names in a table."""
    table: dict[str, float | int | None] = {
        "dialogues": row.dialogues, "utterances": row.utterances, "utterances a dialogue": row.turns, "words an utterance": row.words,
        "strategies": row.strategies, "scenarios": row.scenarios,
    }  # fmt: skip
    for role in ROLES:
        figures = row.roles.get(role) or RoleFigures(0, None, dict.fromkeys(ORDERS), None)
        table[f"{role}: turns"] = figures.turns or None
        table[f"{role}: words a turn"] = figures.words
        table |= {f"{role}: distinct-{order}": figures.distinct[order] for order in ORDERS}
        table[f"{role}: sentiment (VADER)"] = figures.sentiment
    return table
