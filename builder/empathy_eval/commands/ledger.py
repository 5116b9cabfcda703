"""``ledger``: summary, merge, export and import of ledgers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.base.errors import JobError, Problem, plain
from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.table_text import aligned
from empathy_eval.commands.command import Command, CommandGroup, Option

if TYPE_CHECKING:
    from empathy_eval.completions.batch_files import ImportedAnswers
    from empathy_eval.completions.budget import Spending
    from empathy_eval.completions.merge import Merged

# Printed kinds of lines that do not match; JSON has all.
MOST_MISMATCHES = 10
# Parts of a message that differ from line to line: quoted values and numbers.
VARIABLE_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[0-9]+')


@takes_paths
def ledger_show(ledger: str | Path, config: str | Path | None = None) -> list[Spending]:
    """Counts the answers of a ledger by model, kind, finish reason and delivery; with the prices of a configuration also their cost.

    Raises
    ------
    InputError
        If the ledger or the configuration cannot be read.
    JobError
        If rows are damaged; ``empathy-eval ledger show`` counts the others.
    """
    rows, problems = _spending(ledger, config)
    if problems:
        raise JobError(problems)
    return rows


@takes_paths
def ledger_merge(into: str | Path, sources: Sequence[str | Path]) -> list[Merged]:
    """Adds the answers of other ledgers to one, all or none; creates it if it is missing.

    Raises
    ------
    InputError, JobError
        If a ledger cannot be read, or ``into`` cannot be written.
    """
    from empathy_eval.completions.merge import merge

    return merge(Path(into), [Path(source) for source in sources])


@takes_paths
def ledger_import(ledger: str | Path, files: Sequence[str | Path]) -> dict[str, ImportedAnswers]:
    """Imports files of answers to requests that a build wrote with ``requests_to``; returns counts by file.

    Raises
    ------
    InputError
        If the ledger or a file cannot be read.
    JobError
        If a file cannot be read to its end, or the ledger cannot be written.
    """
    from empathy_eval.completions.batch_files import import_answers

    return import_answers(Path(ledger), [Path(file) for file in files])


@takes_paths
def ledger_export(ledger: str | Path, out: str | Path) -> int:
    """Writes the answers of a ledger into a file that ends in ``.jsonl.gz``; returns their number.

    An export can be used wherever a ledger is read.

    Raises
    ------
    InputError
        If the ledger cannot be opened, or the file has another ending.
    JobError
        If rows are damaged, or the file cannot be written.
    """
    from empathy_eval.completions.merge import export

    return export(Path(ledger), Path(out))


def _spending(ledger: str | Path, config: str | Path | None = None) -> tuple[list[Spending], list[Problem]]:
    from empathy_eval.completions.budget import spending
    from empathy_eval.completions.ledger import Ledger
    from empathy_eval.design.configuration import load_configuration
    from empathy_eval.design.recipe import configuration_file

    prices = load_configuration(configuration_file(config)) if config else None
    with Ledger(Path(ledger), create=False, write=False) as opened:
        return spending(opened, prices), opened.problems()


def _shown(result: tuple[list[Spending], list[Problem]], json: bool = False) -> int:
    rows, problems = result
    print(json_text([asdict(row) for row in rows], ascii_only=True) if json else spending_table(rows))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _merged(merged: list[Merged], json: bool = False) -> int:
    if json:
        print(json_text([asdict(row) for row in merged], ascii_only=True))
        return 0
    for row in merged:
        print(f"{row.ledger}: {row.answers:,} answers, {row.added:,} new, {row.same:,} already there, {row.conflicts:,} in conflict")
        for conflict in row.shown:
            about = f"{conflict.dialogue_id} {conflict.kind}" + ("" if conflict.turn is None else f" turn {conflict.turn}")
            print(f"  {about}: the answer of {conflict.ledger} is kept ({conflict.model}, {conflict.finish}, {conflict.delivery})")
        if row.conflicts > len(row.shown):
            print(f"  and {row.conflicts - len(row.shown):,} more")
    return 0


def _exported(answers: int, out: Path) -> int:
    print(f"{plain(str(out))}: {answers:,} answers")
    return 0


def _imported(report: dict[str, ImportedAnswers], json: bool = False) -> int:
    from empathy_eval.completions.batch_files import import_report

    if json:
        print(json_text({path: import_report(file) for path, file in report.items()}, ascii_only=True))
    for path, file in {} if json else report.items():
        print(f"{path}: {file.stored:,} answers stored, {file.already:,} already there, {file.unanswered.total():,} without an answer")
        for reason, count in sorted(file.unanswered.items()):
            print(f"  {printable(reason)} ({count:,})")
        for line in _mismatches(path, file.problems):
            print(line, file=sys.stderr)
    return 1 if any(file.problems for file in report.values()) else 0


def _mismatches(path: str, problems: Sequence[Problem]) -> Iterator[str]:
    """Yields lines that do not match, similar ones once with their count."""
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        alike.setdefault((VARIABLE_PARTS.sub("", problem.what), problem.fix), []).append(problem)
    for some in list(alike.values())[:MOST_MISMATCHES]:
        first, more = some[0], len(some) - 1
        yield str(replace(first, what=f"{first.what}; and {more:,} more {'lines' if more > 1 else 'line'} like it") if more else first)
    if left := sum(map(len, list(alike.values())[MOST_MISMATCHES:])):
        yield f"{plain(path)}: {left:,} more lines do not match; --json lists them all"


def spending_table(rows: Sequence[Spending]) -> str:
    """Returns the rows as lines of text, with their sum."""
    cells: list[tuple[str, ...]] = [("model", "kind", "finish", "delivery", "answers", "input", "cached", "output", "spent")]
    for row in rows:
        spent = "no prices" if row.dollars is None else f"${row.dollars:,.4f}"
        tokens = (f"{count:,}" for count in (row.usage.input_tokens, row.usage.cached_tokens, row.usage.output_tokens))
        names = (_cell(row.model, 28), _cell(row.kind, 16), _cell(row.finish, 16), _cell(row.delivery, 10))
        cells.append((*names, f"{row.answers:,}", *tokens, spent))
    known = [row.dollars for row in rows if row.dollars is not None]
    total = f"${sum(known):,.4f}" if known else ""
    cells.append(("total", "", "", "", f"{sum(row.answers for row in rows):,}", "", "", "", total))
    return "\n".join(aligned(cells, 4))


def printable(text: str) -> str:
    """Replaces unprintable characters by question marks: texts of models may contain control codes."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _cell(text: str, width: int) -> str:
    return printable(text[: width - 2])


COMMAND = CommandGroup(
    "ledger",
    "inspect, merge, fill and export ledgers",
    "Works on a ledger, the file that holds every answer.",
    (
        Command(
            _spending,
            "show answers, tokens and cost by model, kind and finish reason",
            None,
            {
                "ledger=PATH": "the ledger, such as build/demo/ledger.sqlite",
                "--config CONFIG": Option("a configuration with prices, to show what was spent", type=str),
                "--json": "print the rows as JSON",
            },
            shown=_shown,
            name="show",
        ),
        Command(
            ledger_merge,
            "add the answers of other ledgers to one",
            "Adds the answers of other ledgers to one ledger: all of them or, if anything goes wrong, none. If two ledgers answer a "
            "request differently, the answer with the smaller hash is kept, so the order of merging makes no difference.",
            {
                "INTO": "the ledger that receives the answers; it is created if missing",
                "sources=FROM": "a ledger to read; its answers are not changed",
                "--json": "print the counts and the conflicts as JSON",
            },
            shown=_merged,
            name="merge",
        ),
        Command(
            ledger_export,
            "write the answers of a ledger as text",
            "Writes every answer of a ledger as a line of JSON, in the order of their keys, compressed with gzip. The file can be kept in "
            "a repository. Commands that read a ledger take it in its place: --offline --ledger FILE, ledger merge, verify --ledger.",
            {"LEDGER": "the ledger, such as build/my/ledger.sqlite", "out=FILE": "the file to write; it ends in .jsonl.gz"},
            shown=_exported,
            name="export",
        ),
        Command(
            ledger_import,
            "import answers to requests that `build --requests-to` wrote",
            "Imports files of answers in the output format of batches (one JSON object per line: custom_id, response, error). Every answer "
            "must belong to a request that was written, and is stored once. Errors and lines that do not match are reported.",
            {
                "LEDGER": "the ledger of the build that wrote the requests",
                "files=FILE": "a file of answers",
                "--json": "print the counts and the lines that did not match as JSON",
            },
            shown=_imported,
            name="import",
        ),
    ),
)
