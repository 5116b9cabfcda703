"""Batch files in the providers' format: requests written within limits, answers checked line by line and stored."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path
from typing import IO, Any

from empathy_eval.base.errors import JobError, Problem, job_error, refuse
from empathy_eval.base.files import whole_file
from empathy_eval.base.hashing import SCHEME
from empathy_eval.base.parsing import ParseError
from empathy_eval.base.schemas import violations
from empathy_eval.completions.ledger import ANSWERED, Ledger, LedgerEntry, PendingRequest, row_of
from empathy_eval.completions.ledger_rows import INSERT
from empathy_eval.completions.models.openai_endpoint import BATCH_URL, PATHS, rewards_of, sent_body
from empathy_eval.completions.models.transport import NoCompletion, completion_of, error_text
from empathy_eval.completions.requests import Usage
from empathy_eval.design.endpoints import JobConfig, ModelConfig
from empathy_eval.design.kinds import REWARD

# What is stored in one commit: answers, and the bytes of the lines they came in.
MAX_ENTRIES, MAX_BYTES = 500, 64 * 2**20
# The most bytes of a line.
LONGEST = 16 * 2**20


@dataclass
class ImportedAnswers:
    """Counts of imported lines: answers stored or already there, requests refused for good or unanswered, and problems."""

    stored: int = 0
    already: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    unanswered: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    # The worst cases of requests that came back with nothing that is an answer: they may have been paid for.
    paid: dict[str, tuple[str, Usage]] = field(default_factory=dict)


def custom_id(key: str) -> str:
    """The hash in a key: some providers accept at most 64 characters."""
    return key.removeprefix(f"{SCHEME}-")


def request_line(key: str, body: bytes, form: str | None = None) -> bytes:
    """A request in the providers' input format, that of a reward model in its ``form``; ``body`` is canonical JSON."""
    url = BATCH_URL if form in (None, "chat") else PATHS[form]
    content = sent_body(json.loads(body)) if form else body
    return b'{"custom_id":"%b","method":"POST","url":"%b","body":%b}\n' % (custom_id(key).encode(), url.encode(), content)


def store_answers(ledger: Ledger, source: str, lines: Iterable[bytes], delivery: str) -> ImportedAnswers:
    """Stores the answers among the lines, bad ones too. Errors are not answers, and known answers are skipped.

    Raises:
        JobError: if the ledger cannot be written.
    """
    taken, entries, weight = ImportedAnswers(), dict[str, LedgerEntry](), 0

    def store() -> None:
        ledger.write((INSERT, map(row_of, entries.values())), (ANSWERED, ((key,) for key in entries)))
        taken.stored += len(entries)
        entries.clear()

    for number, line in enumerate(lines, 1):
        if line.strip():
            _store_line(ledger, f"{source}: line {number}", line, delivery, entries, taken)
        weight += len(line)
        if len(entries) == MAX_ENTRIES or weight > MAX_BYTES:
            store()
            weight = 0
    store()
    return taken


def bounded_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file; a line that is too long is cut."""
    while line := stream.readline(LONGEST + 1):
        yield line
        while len(line) > LONGEST and not line.endswith(b"\n"):
            line = stream.readline(LONGEST + 1)


def _store_line(ledger: Ledger, where: str, line: bytes, delivery: str, entries: dict[str, LedgerEntry], taken: ImportedAnswers) -> None:
    """Adds one line to the entries, or records its problem."""
    try:
        if len(line) > LONGEST:
            raise ParseError(f"is longer than {LONGEST:,} bytes")
        # As the body of a live endpoint: what was paid for is not refused for a number beyond 64 bits beside it.
        value = json.loads(line.decode("utf-8-sig"))
        broken = [Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in violations(value, "batch_answer")]
    except ParseError as error:
        broken = [Problem(where, str(error), "use the file exactly as the provider gave it")]
    except (ValueError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else error
        broken = [Problem(where, f"is not JSON: {what}", "use the file exactly as the provider gave it")]
    try:
        if not broken:
            _store_answer(ledger, where, value, delivery, entries, taken)
    except JobError as error:  # a damaged row of the ledger keeps nothing from the other lines
        broken = [Problem(where, f"{problem.where}: {problem.what}", problem.fix) for problem in error.problems]
    taken.problems += broken


def _store_answer(ledger: Ledger, where: str, value: Any, delivery: str, entries: dict[str, LedgerEntry], taken: ImportedAnswers) -> None:
    """Adds the answer of one line to the entries, or records why there is none."""
    key = f"{SCHEME}-{custom_id(value['custom_id'])}"
    known = key.isascii()  # what else a text may hold, no database may
    request = ledger.noted_request(key) if known else None
    if known and (key in entries or ledger.get(key) is not None):
        taken.already += 1
    elif request is None:
        what = f"{json.dumps(value['custom_id'])[:80]} is not a request of {ledger.path}"
        taken.problems.append(Problem(where, what, "name the ledger of the build that wrote the requests"))
    elif value.get("error") or not value["response"]:
        taken.unanswered[error_text(value.get("error")) or "no response"] += 1
    elif (status := value["response"]["status_code"]) != 200:
        reason = f"refused with {status}: {error_text(value['response']['body'])}".removesuffix(": ")
        if 400 <= status < 500 and status not in (408, 409, 429):
            taken.refused[key] = reason
        taken.unanswered[reason] += 1
    else:
        about, model, worst = request
        read = rewards_of if about.kind == REWARD.name else completion_of
        try:
            entries[key] = LedgerEntry(key, about, read(value["response"]["body"], model, worst), delivery)
        except NoCompletion as error:
            taken.paid[key] = (model, worst)
            taken.problems.append(Problem(where, str(error), "have the request answered again"))


def import_answers(ledger_path: Path, files: Sequence[Path]) -> dict[str, ImportedAnswers]:
    """Imports files of answers to requests that ``build --requests-to`` wrote.

    Raises:
        InputError: if the ledger cannot be opened, or a file cannot be read; nothing is imported then.
        JobError: if a file cannot be read to its end, or the ledger cannot be written; what was imported is kept.
    """
    refuse(problem for path in files if (problem := _unreadable(path)))
    with Ledger(ledger_path, create=False) as ledger:
        report = {}
        for path in files:
            try:
                with path.open("rb") as stream:
                    report[str(path)] = store_answers(ledger, str(path), bounded_lines(stream), "by hand")
            except OSError as error:
                raise job_error(path, f"cannot be read to its end: {error.strerror}", "fix it, then run the same command") from error
        return report


def _unreadable(path: Path) -> Problem | None:
    """The problem of a file that has no readable lines; None if it can be read."""
    try:
        if path.exists() and not path.is_dir() and not path.is_file():
            return Problem(str(path), "is not a file", "save the answers in a file, and name it")
        with path.open("rb") as stream:
            if stream.read(2) == b"\x1f\x8b":
                return Problem(str(path), "is compressed with gzip", "decompress it with gunzip, and name the result")
    except FileNotFoundError:
        return Problem(str(path), "there is no such file", "name the files of answers")
    except OSError as error:
        return Problem(str(path), f"cannot be read: {error.strerror}", "name files that you may read")
    return None


def import_report(taken: ImportedAnswers) -> dict[str, Any]:
    """Counts and problems as JSON values."""
    return {
        "stored": taken.stored,
        "already_there": taken.already,
        "unanswered": dict(sorted(taken.unanswered.items())),
        "problems": [f"{problem.where}: {problem.what}" for problem in taken.problems],
    }


@dataclass(frozen=True)
class RequestFile:
    """A file of requests to one model: its path, the SHA-256 (hex) of its bytes, and the requests without bodies."""

    path: Path
    digest: str
    endpoint: str
    requests: tuple[PendingRequest, ...]


def request_files(noted: Iterable[PendingRequest], config: JobConfig, name: Callable[[int], Path]) -> Iterator[RequestFile]:
    """Writes requests into files, each for one model and within its endpoint's limits.

    A file gets its final name only when the next one is requested, so that the caller can record it before.
    """
    settings = {model.endpoint: model for model in config.models.values()}
    number = 0
    for (endpoint, _), group in groupby(noted, key=lambda request: (request.endpoint, request.model)):
        left = next(group, None)
        while left is not None:
            number += 1
            with whole_file(name(number)) as partial:
                digest, requests, left = _fill(partial, left, group, settings[endpoint])  # noqa: B031  # what is left of it
                yield RequestFile(partial, digest, endpoint, requests)


def _fill(
    path: Path, first: PendingRequest, others: Iterator[PendingRequest], limits: ModelConfig
) -> tuple[str, tuple[PendingRequest, ...], PendingRequest | None]:
    """Writes a file; returns its hash, its requests, and the first request that did not fit."""
    digest, size, requests = hashlib.sha256(), 0, list[PendingRequest]()
    with path.open("wb") as stream:
        for request in chain([first], others):
            line = request_line(request.key, request.body, limits.form)
            size += len(line)
            if requests and (len(requests) == limits.batch_requests or size > limits.batch_bytes):
                return digest.hexdigest(), tuple(requests), request
            stream.write(line)
            digest.update(line)
            requests.append(replace(request, body=b""))
    return digest.hexdigest(), tuple(requests), None


def numbered_path(path: Path, number: int) -> Path:
    """``requests.jsonl``, ``requests-2.jsonl``, ``requests-3.jsonl`` …"""
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
