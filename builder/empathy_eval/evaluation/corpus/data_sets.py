"""Comparison of data sets of dialogues, as in Table 1 of "EmpathyScore": size, turns, words, strategies, scenarios.

By role there are distinct n-grams and sentiment too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from empathy_eval.base.errors import Problem, input_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.parsing import ParseError, json_value
from empathy_eval.base.schemas import read_yaml, violations
from empathy_eval.base.stages import advance, stage
from empathy_eval.base.tabular import csv_rows, json_rows, table_batches
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import MANIFEST, files_of, read_manifest
from empathy_eval.design.provenance import KEYS, LongForm, Provenance, file_of
from empathy_eval.evaluation.external.score_file import raise_at_most
from empathy_eval.metrics.lexical import Vader

# (role, text, strategy), the last None where nobody says one.
Turn = tuple[str, str, str | None]
SEEKER, HELPER = ROLES = ("seeker", "helper")
ROLE_OF = {"seeker": SEEKER, "user": SEEKER, "usr": SEEKER, "helper": HELPER, "assistant": HELPER, "sys": HELPER, "supporter": HELPER}
TURNS = ("turns", "dialog", "messages")
# The columns of EmpatheticDialogues that are read; in its texts a comma stands so.
COLUMNS = ("conv_id", "utterance_idx", "context", "utterance")
COMMA = "_comma_"
FIX = "name a release, a .jsonl or .json file of dialogues, or EmpatheticDialogues' .csv"


@dataclass(frozen=True)
class DialogueTurns:
    """The turns of a dialogue, and its scenario, None where it is unknown."""

    turns: Sequence[Turn]
    scenario: str | None


@dataclass(frozen=True)
class Source:
    """A named source of dialogues, which can be read repeatedly, and the ``language`` of the texts."""

    name: str
    path: Path
    dialogues: Callable[[], Iterator[DialogueTurns]]
    language: str = ENGLISH


def source_of(path: Path) -> Source:
    """Returns the dialogues of a release, or of a file by its suffix.

    Raises:
        InputError: if it is neither; what is wrong with a file is raised as its dialogues are read, all at once.
    """
    if path.is_dir():
        manifest = read_manifest(path)
        name, language = f"{manifest['name']} {manifest['version']}", language_of(manifest["configuration"])
        return Source(name, path, lambda: _of_release(path), language)
    readers = {".jsonl": _of_lines, ".json": _of_list, ".csv": _of_table}
    if path.suffix.lower() not in readers:
        raise input_error(path, "is neither a release nor a file of dialogues", FIX)
    reader = readers[path.suffix.lower()]
    return Source(path.name, path, lambda: _valid(path, reader(path)))


def _valid(path: Path, rows: Iterator[DialogueTurns | Problem]) -> Iterator[DialogueTurns]:
    """Yields the dialogues of a file up to the first problem; all problems are raised at the end."""
    problems, empty = list[Problem](), True
    for row in rows:
        if isinstance(row, Problem):
            problems.append(row)
        elif not problems:
            empty = False
            yield row
    if empty and not problems:
        problems.append(Problem(str(path), "holds no dialogue", FIX))
    raise_at_most(problems, path)


def _of_release(path: Path) -> Iterator[DialogueTurns]:
    for file in files_of(path, "dialogues"):
        for batch in table_batches(file, ["scenario", "turns"]):
            for row in batch.to_pylist():
                yield DialogueTurns([(turn["role"], turn["text"], turn["strategy"]) for turn in row["turns"]], row["scenario"])


def _of_lines(path: Path) -> Iterator[DialogueTurns | Problem]:
    for number, row in json_rows(path):
        yield from [row] if isinstance(row, Problem) else _of_object(row, f"{path}: line {number}")


def _of_list(path: Path) -> Iterator[DialogueTurns | Problem]:
    fix = "write a list of dialogues, as ESConv.json is, or one a line into a .jsonl file"
    try:
        value = json_value(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise input_error(path, f"cannot be read: {error.strerror}", "check the path") from error
    except (ParseError, UnicodeDecodeError) as error:
        raise input_error(path, f"is not JSON: {error}", fix) from error
    if not isinstance(value, list):
        raise input_error(path, "is not a list", fix)
    for number, row in enumerate(value, 1):
        yield from _of_object(row, f"{path}: dialogue {number}")


def _of_object(row: Any, where: str) -> Iterator[DialogueTurns | Problem]:
    if wrong := [Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in violations(row, "dialogue_file")]:
        yield from wrong
        return
    messages = next(row[name] for name in TURNS if name in row)
    yield DialogueTurns([_turn(turn) for turn in messages], row.get("scenario") or row.get("problem_type"))


def _turn(turn: Mapping[str, Any]) -> Turn:
    strategy = turn.get("strategy") or turn.get("annotation", {}).get("strategy")
    return ROLE_OF[turn.get("role") or turn["speaker"]], turn.get("text", turn.get("content", "")), strategy


def _of_table(path: Path) -> Iterator[DialogueTurns | Problem]:
    """Yields dialogues of EmpatheticDialogues: one row per utterance; the first speaker is the seeker, with the emotion ``context``."""
    lines = csv_rows(path)
    _, head = next(lines, (0, list[str]()))
    if missing := [name for name in COLUMNS if name not in head]:
        yield Problem(str(path), f"has no column {', '.join(missing)}", f"write {', '.join(COLUMNS)}, as EmpatheticDialogues does")
        return
    place = {name: head.index(name) for name in COLUMNS}

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for number, cells in lines:
            # Some texts of the published file hold a quote of their own, and with it more or fewer cells.
            row = tuple(cells[at] if at < len(cells) else "" for at in place.values())
            yield (*row[:1], row[1] if row[1].isdecimal() else f"line {number}", *row[2:])  # type: ignore[misc]

    finished = set[str]()
    for name, some in groupby(rows(), key=lambda row: row[0]):
        own = list(some)
        if name in finished:
            yield Problem(f"{path}: {name}", "is a conversation whose rows are not together", "sort the rows by conv_id")
        finished.add(name)
        if odd := [index for _, index, *_ in own if not index.isdecimal()]:
            yield Problem(f"{path}: {odd[0]}", "has no whole number as its utterance_idx", "number the utterances from 1")
            continue
        turns = [(SEEKER if int(index) % 2 else HELPER, text.replace(COMMA, ","), None) for _, index, _, text in own]
        yield DialogueTurns(turns, own[0][2] or None)


# Distinct n-grams fall as texts grow: all roles of all data sets are measured on as many words, at most so many.
MOST_WORDS = 20_000
ORDERS = (1, 2)
PLACES = 6


@dataclass(frozen=True)
class RoleFigures:
    """Figures of a role: turns, mean words per turn, distinct n-grams over all n-grams by n, mean VADER compound score (English)."""

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
    """Figures of data sets, and those of the paper; ``budget`` is the number of words behind distinct n-grams."""

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
    """Counts of a data set, dialogue by dialogue."""

    def __init__(self, source: Source) -> None:
        vader = Vader() if source.language == ENGLISH else None
        self.name, self.dialogues = source.name, 0
        self.turns, self.words = dict.fromkeys(ROLES, 0), dict.fromkeys(ROLES, 0)
        self.sentiment: dict[str, list[float]] = {role: [] for role in ROLES}
        # The first words of each role, turn by turn: no n-gram crosses turns.
        self.first: dict[str, list[Sequence[str]]] = {role: [] for role in ROLES}
        self._word_counts = dict.fromkeys(ROLES, 0)
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
        if self._word_counts[role] < MOST_WORDS:
            self.first[role].append(turn_words)
            self._word_counts[role] += len(turn_words)

    def data_set(self, budget: int) -> DataSet:
        """Returns the figures, with distinct n-grams over the first ``budget`` words."""
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
    """Returns distinct n-grams over all n-grams within turns, over the first ``budget`` words; None without an n-gram."""
    grams, count, left = set[tuple[str, ...]](), 0, budget
    for turn in turns:
        cut = turn[:left]
        left -= len(cut)
        for start in range(len(cut) - order + 1):
            grams.add(tuple(cut[start : start + order]))
            count += 1
    return round(len(grams) / count, PLACES) if count else None


def describe(paths: Sequence[Path]) -> Described:
    """Returns the figures of releases and files of dialogues, and those of the paper.

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
    """Returns the figures of a data set by their names in a table."""
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
