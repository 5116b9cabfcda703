"""Answers of a ledger as text: JSON lines under gzip, in the order of their keys, so that a repository can keep them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.json_text import json_text
from empathy_eval.base.parsing import Refused, json_value
from empathy_eval.base.schemas import violations
from empathy_eval.completions.ledger_rows import LARGEST, NAMES

EXPORT = ".jsonl.gz"
COLUMNS = NAMES["completions"][:-2]
# Lines that cannot be read and are told one by one.
SHOWN = 10
FIX = "write it again with empathy-eval ledger export, or restore it from a copy"


def is_export(path: Path) -> bool:
    """Whether a path names an export, by its ending."""
    return path.name.endswith(EXPORT)


def export_line(row: tuple[Any, ...], text: str) -> bytes:
    """The line of a row of answers: its columns and its text."""
    return json_text({**dict(zip(COLUMNS, row, strict=False)), "text": text}, indent=None).encode() + b"\n"


def exported_rows(path: Path) -> Iterator[tuple[Any, ...]]:
    """The rows of an export, as a ledger stores them.

    Raises:
        InputError: if it cannot be read, a line is not an answer, or one request has two; the first such lines at once.
    """
    problems, seen = list[Problem](), set[str]()
    for number, line in enumerate(_lines(path), 1):
        where = f"{path}: line {number}"
        try:
            if len(line) > LARGEST:
                raise Refused(f"is longer than {LARGEST:,} bytes")
            value = json_value(line.decode())
        except (ValueError, RecursionError) as error:
            problems.append(Problem(where, str(error), FIX))
            continue
        problems += [
            Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in violations(value, "ledger_export_row")
        ]
        if not problems and value["key"] in seen:
            problems.append(Problem(where, f'answers the request "{value["key"]}" again', FIX))
        if len(problems) >= SHOWN:
            break
        if not problems:
            seen.add(value["key"])
            yield (*(value[name] for name in COLUMNS), zlib.compress(value["text"].encode(), 6))
    if problems:
        raise InputError(problems[:SHOWN])


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) as stream:
            while line := stream.readline(LARGEST + 1):
                yield line
    except (EOFError, zlib.error, OSError) as error:
        raise input_error(path, f"cannot be read as an exported ledger: {error}", FIX) from error
