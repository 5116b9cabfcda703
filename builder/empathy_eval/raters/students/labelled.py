"""Labelled data from elsewhere (``--also``): a CSV file with a context, a reply, a label, where it is from, and under which licence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import csv_rows
from empathy_eval.metrics.protocol import Context

COLUMNS = ("context", "reply", "label", "source", "licence")
SPEAKER = re.compile(r"^(seeker|helper):\s*", re.IGNORECASE)


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
    rows, problems = list[Labelled](), list[Problem]()
    for path in paths:
        lines = csv_rows(path)
        _, head = next(lines, (0, []))
        if sorted(head) != sorted(COLUMNS):
            problems.append(Problem(str(path), f"has the columns {', '.join(head) or 'of nothing'}", f"write {', '.join(COLUMNS)}"))
            continue
        before = len(rows) + len(problems)
        for number, cells in lines:
            where = f"{path}: line {number}"
            if len(cells) != len(head):
                problems.append(Problem(where, f"has {len(cells)} cells", f"write one for each of {', '.join(head)}"))
                continue
            row: dict[str, str | float] = dict(zip(head, cells, strict=True))
            row["label"] = _number(str(row["label"]))
            wrong = [Problem(f"{where}: {place}", what, fix) for place, what, fix in violations(row, "labelled")]
            problems += wrong
            if not wrong and isinstance(row["label"], float):
                rows.append(Labelled(turns_of(str(row["context"])), str(row["reply"]), row["label"], str(row["source"]), str(row["licence"])))
        if len(rows) + len(problems) == before:
            problems.append(Problem(str(path), "holds no row", "leave it out, or write rows below its columns"))
    if problems:
        raise InputError(problems)
    return rows


def turns_of(text: str) -> Context:
    """The turns of a context: a line that begins with ``seeker:`` or ``helper:`` begins a turn; what stands before is the seeker's."""
    turns = list[dict[str, str]]()
    for line in text.strip().splitlines():
        if found := SPEAKER.match(line):
            turns.append({"role": found[1].lower(), "text": line[found.end() :]})
        elif turns:
            turns[-1]["text"] += f"\n{line}"
        else:
            turns.append({"role": "seeker", "text": line})
    return turns


def _number(text: str) -> str | float:
    try:
        return float(text) if re.fullmatch(r"\s*[0-9]*\.?[0-9]+(e-?[0-9]+)?\s*", text, re.IGNORECASE) else text
    except ValueError:
        return text


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
