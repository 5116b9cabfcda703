"""Answers that come in files: lines in the providers' output form of batches, checked one by one and stored in the ledger."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from builder.errors import InputError, Problem
from builder.ledger import INSERT, Entry, Ledger, row_of
from builder.models.chat_completion import NoCompletion, completion_of, said
from builder.models.openai_endpoint import BATCH_URL
from builder.outstanding import ANSWERED, wanted
from builder.schemas import violations
from builder.signature import SCHEME

# Lines that are stored in one commit.
TOGETHER = 500


@dataclass
class Taken:
    """What became of the lines: answers stored, answers that were there, requests refused for good or without an answer, the rest."""

    stored: int = 0
    already: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    unanswered: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)


def custom_id(key: str) -> str:
    """The hash in a key: some providers take no id of more than 64 characters."""
    return key.removeprefix(f"{SCHEME}-")


def request_line(key: str, body: bytes) -> bytes:
    """A request in the providers' input form; ``body`` is its canonical JSON."""
    return b'{"custom_id":"%b","method":"POST","url":"%b","body":%b}\n' % (custom_id(key).encode(), BATCH_URL.encode(), body)


def take(ledger: Ledger, source: str, lines: Iterable[bytes], delivery: str) -> Taken:
    """Stores the answers among the lines; bad ones too, for an answer is an answer. An error is none, and nothing is taken twice.

    Raises:
        JobError: if the ledger cannot be written.
    """
    taken, numbered = Taken(), enumerate(lines, 1)
    while together := list(islice(numbered, TOGETHER)):
        entries: dict[str, Entry] = {}
        for number, line in together:
            if line.strip():
                _take(ledger, f"{source}: line {number}", line, delivery, entries, taken)
        ledger.write((INSERT, map(row_of, entries.values())), (ANSWERED, ((key,) for key in entries)))
        taken.stored += len(entries)
    return taken


def _take(ledger: Ledger, where: str, line: bytes, delivery: str, entries: dict[str, Entry], taken: Taken) -> None:
    """Adds one line to the entries, or says what is with it."""
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except ValueError as error:
        taken.problems.append(Problem(where, f"is not JSON: {error}", "take the file as the provider gave it"))
        return
    broken = [Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in violations(value, "batch_answer")]
    if broken:
        taken.problems += broken
        return
    key = f"{SCHEME}-{custom_id(value['custom_id'])}"
    request = wanted(ledger, key)
    if key in entries or ledger.get(key) is not None:
        taken.already += 1
    elif request is None:
        what = f'"{value["custom_id"]}" is no request that was given out of {ledger.path}'
        taken.problems.append(Problem(where, what, "name the ledger of the build that wrote the requests"))
    elif value.get("error") or not value["response"]:
        taken.unanswered[said(value.get("error")) or "no response"] += 1
    elif (status := value["response"]["status_code"]) != 200:
        reason = f"refused with {status}: {said(value['response']['body'])}".removesuffix(": ")
        if 400 <= status < 500 and status not in (408, 409, 429):
            taken.refused[key] = reason
        taken.unanswered[reason] += 1
    else:
        about, model, worst = request
        try:
            entries[key] = Entry(key, about, completion_of(value["response"]["body"], model, worst), delivery)
        except NoCompletion as error:
            taken.problems.append(Problem(where, str(error), "have the request answered again"))


def import_answers(ledger_path: Path, files: Sequence[Path]) -> dict[str, Taken]:
    """Takes in files of answers to requests that ``build --requests-to`` wrote.

    Raises:
        InputError: if the ledger cannot be opened, or a file cannot be read; nothing is taken from any file then.
    """
    problems = list[Problem]()
    for path in files:
        try:
            path.open("rb").close()
        except FileNotFoundError:
            problems.append(Problem(str(path), "there is no such file", "name the files of answers"))
        except OSError as error:
            problems.append(Problem(str(path), f"cannot be read: {error.strerror}", "name files that may be read"))
    if problems:
        raise InputError(problems)
    with Ledger(ledger_path, create=False) as ledger:
        report = {}
        for path in files:
            with path.open("rb") as stream:
                report[str(path)] = take(ledger, str(path), stream, "by hand")
        return report


def as_json(taken: Taken) -> dict[str, Any]:
    """The counts and the problems as JSON values."""
    return {
        "stored": taken.stored,
        "already_there": taken.already,
        "unanswered": dict(sorted(taken.unanswered.items())),
        "problems": [f"{problem.where}: {problem.what}" for problem in taken.problems],
    }
