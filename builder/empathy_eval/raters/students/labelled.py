"""Labelled data from elsewhere (``--also``): a CSV file with a context, a reply, a label, where it is from, and under which licence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem, input_error, nearest_column
from empathy_eval.base.parsing import Refused, json_value
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import csv_rows
from empathy_eval.metrics.conversation import ROLES, context_of
from empathy_eval.metrics.protocol import Context

COLUMNS = ("context", "reply", "label", "source", "licence")
SPEAKER = re.compile(rf"^({'|'.join(ROLES)}):\s*", re.IGNORECASE)
NUMBER = re.compile(r"-?[0-9]*\.?[0-9]+(e-?[0-9]{1,3})?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Labelled:
    """A reply in its conversation with a label from 0 to 1, more being better, its source and the licence of that."""

    context: Context
    reply: str
    label: float
    source: str
    licence: str


def read_labelled(paths: Sequence[Path]) -> list[Labelled]:
    """The rows of such files.

    Raises:
        InputError: if a file cannot be read, lacks a column, or holds a row that breaks the schema; all problems at once.
    """
    found = [one for path in paths for one in _of_file(path)]
    if problems := [one for one in found if isinstance(one, Problem)]:
        raise InputError(problems)
    return [one for one in found if isinstance(one, Labelled)]


def _of_file(path: Path) -> Iterator[Labelled | Problem]:
    lines, any_row = csv_rows(path), False
    _, head = next(lines, (0, []))
    if sorted(head) != sorted(COLUMNS):
        near = nearest_column(head, [name for name in COLUMNS if name not in head])
        yield Problem(str(path), f"has {'the columns ' + ', '.join(head) if head else 'no columns'}", f"write {', '.join(COLUMNS)}{near}")
        return
    for number, cells in lines:
        any_row, where = True, f"{path}: line {number}"
        if len(cells) != len(head):
            yield Problem(where, f"has {len(cells)} cells", f"write one for each of {', '.join(head)}")
            continue
        texts = dict(zip(head, cells, strict=True))
        said, label = _messages(texts["context"]), label_of(texts["label"])
        row = {**texts, "context": said, "label": label}
        wrong = [Problem(f"{where}: {place}", what, fix) for place, what, fix in violations(row, "labelled", by_hand=True)]
        yield from wrong
        if not wrong:
            context = turns_of(said) if isinstance(said, str) else context_of(said)
            yield Labelled(context, texts["reply"], float(label), texts["source"], texts["licence"])
    if not any_row:
        yield Problem(str(path), "holds no row", "leave it out, or write rows below its columns")


def _messages(cell: str) -> str | list[Any]:
    """The list that a cell holds as JSON, or the cell itself."""
    if not cell.lstrip().startswith("[{"):
        return cell
    try:
        value = json_value(cell)
    except Refused:
        return cell
    return value if isinstance(value, list) else cell


def turns_of(text: str) -> Context:
    """The turns of a context: a line that begins with ``seeker:`` or ``helper:`` begins a turn; what stands before is the seeker's.

    ``user:`` and ``assistant:`` stand for the two as well.
    """
    turns = list[dict[str, str]]()
    for line in text.strip().splitlines():
        if found := SPEAKER.match(line):
            turns.append({"role": ROLES[found[1].lower()], "text": line[found.end() :]})
        elif turns:
            turns[-1]["text"] += f"\n{line}"
        else:
            turns.append({"role": "seeker", "text": line})
    return turns


def label_of(text: str) -> str | float:
    """The number that a cell holds, or what it holds instead."""
    return float(text) if NUMBER.fullmatch(text.strip()) else text


def sources_of(rows: Sequence[Labelled]) -> tuple[dict[str, str], ...]:
    """The sources of rows with their licences, each once.

    Raises:
        InputError: if a source is under two licences.
    """
    found = sorted({(row.source, row.licence) for row in rows})
    for (one, licence), (other, another) in zip(found, found[1:], strict=False):
        if one == other:
            raise input_error("--also", f'"{one}" is under "{licence}" and "{another}"', "name a source apart for each licence")
    return tuple({"name": source, "licence": licence} for source, licence in found)
