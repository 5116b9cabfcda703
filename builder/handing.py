"""Requests handed out in files: cut to a provider's limits, noted in the ledger, written by hand or submitted as batches."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path

from builder.answers import request_line
from builder.config import Configuration, ModelConfig
from builder.errors import InputError, Problem, input_error
from builder.files import whole_file
from builder.ledger import Ledger
from builder.models.noting import Noted, Notes
from builder.outstanding import note
from builder.pipeline import LEDGER, Run, build
from builder.prompts import Prompts
from builder.scenarios import Catalogue
from builder.summary import Handed


@dataclass(frozen=True)
class RequestFile:
    """A file of requests to one model: where it lies now, the SHA-256 (hex) of its bytes, and the requests without their bodies."""

    path: Path
    digest: str
    endpoint: str
    requests: tuple[Noted, ...]


def request_files(noted: Iterable[Noted], config: Configuration, name: Callable[[int], Path]) -> Iterator[RequestFile]:
    """Writes requests into files, each for one model and within the limits of its endpoint.

    A file has its final name only when the next one is asked for: what must be noted before is noted in between.
    """
    settings = {one.endpoint: one for one in config.models.values()}
    number = 0
    for (endpoint, _), group in groupby(noted, key=lambda one: (one.endpoint, one.model)):
        left = next(group, None)
        while left is not None:
            number += 1
            with whole_file(name(number)) as partial:
                digest, requests, left = _fill(partial, left, group, settings[endpoint])  # noqa: B031  # what is left of it
                yield RequestFile(partial, digest, endpoint, requests)


def _fill(path: Path, first: Noted, others: Iterator[Noted], limits: ModelConfig) -> tuple[str, tuple[Noted, ...], Noted | None]:
    """Writes a file; returns its hash, its requests, and the first request that did not fit."""
    digest, size, requests = hashlib.sha256(), 0, list[Noted]()
    with path.open("wb") as stream:
        for one in chain([first], others):
            line = request_line(one.key, one.body)
            size += len(line)
            if requests and (len(requests) == limits.batch_requests or size > limits.batch_bytes):
                return digest.hexdigest(), tuple(requests), one
            stream.write(line)
            digest.update(line)
            requests.append(replace(one, body=b""))
    return digest.hexdigest(), tuple(requests), None


def hand_out(config: Configuration, out: Path, catalogue: Catalogue, prompts: Prompts, path: Path, run: Run | None = None) -> Handed:
    """Replays, and writes the requests that can be known now and are not answered yet in the providers' batch form.

    More than one file is needed for more than one model and above a provider's limits: ``FILE``, ``FILE-2`` and so on.

    Raises:
        InputError: if there are such files already, for a budget, and for what :func:`builder.pipeline.build` refuses.
        JobError: if the disk is full, or the ledger is damaged.
    """
    run = run or Run()
    if run.budget_dollars is not None or run.budget_tokens is not None:
        raise input_error("--requests-to", "a budget cannot hold what is sent by hand", "leave the budget out")
    there = {path, *path.parent.glob(glob.escape(f"{path.stem}-") + "[0-9]*" + glob.escape(path.suffix))}
    fix = "take its answers in and move it away, or name another file for each round"
    problems = [Problem(str(one), "is there already", fix) for one in sorted(there) if one.exists()]
    if problems:
        raise InputError(problems)
    notes = Notes()
    summary = build(config, out, catalogue, prompts, replace(run, notes=notes))
    written = {}
    with Ledger(run.ledger or out / LEDGER, create=False) as ledger:
        for number, file in enumerate(request_files(notes, config, lambda number: numbered(path, number)), 1):
            note(ledger, file.digest, file.requests)
            written[str(numbered(path, number))] = len(file.requests)
    return Handed(summary, written)


def numbered(path: Path, number: int) -> Path:
    """``requests.jsonl``, ``requests-2.jsonl``, ``requests-3.jsonl`` …"""
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
