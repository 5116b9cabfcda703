"""Dialogues of any file: a release, dialogues as JSON or JSONL (ESConv's published form among them), and EmpatheticDialogues' CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error
from empathy_eval.base.parsing import ParseError, json_value
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import csv_rows, json_rows, table_batches
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import files_of, read_manifest
from empathy_eval.evaluation.external.score_file import raise_at_most

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
    """The turns of a dialogue, and its scenario, None where nothing says one."""

    turns: Sequence[Turn]
    scenario: str | None


@dataclass(frozen=True)
class Source:
    """Dialogues by their ``name``, in their order, as often as they are asked for, and the ``language`` of the texts."""

    name: str
    path: Path
    dialogues: Callable[[], Iterator[DialogueTurns]]
    language: str = ENGLISH


def source_of(path: Path) -> Source:
    """The dialogues of a release, or of a file by its suffix.

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
    """The dialogues of a file, until there is a problem: then all problems are told at the end."""
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
    """EmpatheticDialogues: a row an utterance, those of a conversation together; the first speaker tells of the emotion ``context``."""
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
