"""Batch builds, in rounds: replay, submit unanswered requests, wait, import the answers, until nothing is unanswered.

A file of requests is recorded in the ledger by its hash before it is submitted, and its batch carries the hash as metadata. So a batch
whose name was not recorded is found again, and nothing is submitted twice. If a gateway drops metadata, the batch is found by its uploaded
file, whose name has the hash; if that is not visible either, the round ends.
"""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

from empathy_eval.base.errors import JobError, Problem, input_error, job_error, refuse
from empathy_eval.base.stopping import interruptible_sleep
from empathy_eval.completions.asker import PendingRequests
from empathy_eval.completions.batch_files import bounded_lines, numbered_path, request_files, store_answers
from empathy_eval.completions.budget import make_budget
from empathy_eval.completions.ledger import Batch, Ledger
from empathy_eval.completions.models.batch_api import Batches, BatchState
from empathy_eval.design.endpoints import JobConfig
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.job import Job, job_of
from empathy_eval.generation.outcomes import LEDGER
from empathy_eval.generation.summary import HandedOut

# Seconds between two looks at batches that take hours.
POLL = 30.0
# Reasons that an error tells one by one.
SHOWN = 10


@dataclass
class Rounds:
    """The rounds of one build. ``answers_received`` counts answers, ``reasons`` requests that came back without one."""

    config: JobConfig
    ledger: Path
    run: Run
    poll: float = POLL
    watch: Callable[[int, int], None] = lambda done, total: None
    refused: dict[str, str] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    answers_received: int = 0

    def __post_init__(self) -> None:
        self._endpoints = {model.endpoint: Batches(model) for model in self.config.active_models.values() if model.kind == "openai"}
        self.run.course.endpoints = tuple(desk.reception for desk in self._endpoints.values())

    def settle(self, wait: bool) -> dict[str, int]:
        """Imports finished batches, optionally after waiting for all; returns those still open.

        Raises:
            JobError: for files without a valid line: their batches stay open, since they were paid for.
        """
        with Ledger(self.ledger) as ledger:
            mine = [batch for batch in ledger.open_batches() if batch.build == self.config.identity]
            batches = [name for batch in mine for name in self._named(ledger, batch)]
        # The ledger is free while there is nothing to write. A small batch may be done at once: the first looks are soon.
        for look in count():
            states = {batch: self._endpoints[batch.endpoint].state(batch.id or "") for batch in batches}
            open_ones = {batch.id or "": state.total for batch, state in states.items() if not state.ended}
            self.watch(sum(state.done for state in states.values()), sum(state.total for state in states.values()))
            if not (wait and open_ones):
                break
            interruptible_sleep(min(self.poll, 2 ** min(look, 10)))
        with Ledger(self.ledger) as ledger:
            broken = [problem for batch, state in states.items() if state.ended for problem in self._take_in(ledger, batch, state)]
        if broken:
            raise JobError(broken)
        if not open_ones:  # what is told from now on is the round that comes next
            self.watch(0, 0)
        return open_ones

    def _named(self, ledger: Ledger, batch: Batch) -> Iterator[Batch]:
        """The batch with its name, which a killed process could not record; one that was never created is forgotten."""
        name = batch.id or self._endpoints[batch.endpoint].find(batch.file, ledger.batch_ids())
        if name is None:
            ledger.end_batch(batch)
        else:
            yield batch if batch.id else ledger.set_batch_id(batch, name)

    def _take_in(self, ledger: Ledger, batch: Batch, state: BatchState) -> list[Problem]:
        """Imports the answers of a finished batch; returns problems of files without a valid line."""
        broken = list[Problem]()
        with TemporaryDirectory() as folder:
            for file in state.files:
                path = Path(folder) / "answers.jsonl"
                if not self._endpoints[batch.endpoint].fetch(file, path):
                    self.reasons[f"{file} of {batch.id} is gone"] += 1
                    ledger.keep_reservations(batch)
                    continue
                with path.open("rb") as stream:
                    taken = store_answers(ledger, f"{batch.id} {file}", bounded_lines(stream), "batch")
                if taken.problems and not (taken.stored or taken.already or taken.unanswered):
                    first = taken.problems[0]
                    broken.append(Problem(first.where, first.what, "run the same command to fetch it again; nothing was asked for again"))
                    continue
                for key, (model, worst) in taken.paid.items():
                    ledger.reserve(f"{batch.id} {key}", model, worst)
                self.answers_received += taken.stored + taken.already
                self.refused.update(taken.refused)
                self.reasons.update({self._endpoints[batch.endpoint].masked(reason): count for reason, count in taken.unanswered.items()})
                self.reasons.update(problem.what for problem in taken.problems)
        if broken:
            return broken
        if state.status != "completed":
            self.reasons[state.reason] += 1
        ledger.end_batch(batch)
        return broken

    def submit(self, notes: PendingRequests) -> dict[str, int]:
        """Submits a round as far as the budget allows; returns the requests by batch.

        Raises:
            JobError: if the budget has no room for a single request, or a batch could not be found again.
        """
        given: dict[str, int] = {}
        with Ledger(self.ledger) as ledger, TemporaryDirectory() as folder:
            if ledger.open_batches():  # another process was quicker
                return given
            budget = make_budget(self.config, ledger, self.run.budget_dollars, self.run.budget_tokens)
            build_hash, number = self.config.identity, ledger.next_round(self.config.identity)
            affordable = takewhile(lambda request: budget.reserve_batch(request.model, request.worst), notes)
            for file in request_files(affordable, self.config, lambda index: Path(folder) / f"{index}.jsonl"):
                batch = Batch(file.digest, file.endpoint, build_hash, number)
                ledger.note_requests(file.digest, file.requests, batch)
                metadata = {"build": build_hash, "round": str(number), "file": file.digest}
                submitted = self._endpoints[file.endpoint].submit(file.path, metadata, ledger.batch_ids())
                ledger.set_batch_id(batch, submitted.name)
                given[submitted.name] = len(file.requests)
                if not submitted.recoverable:
                    raise self._endpoints[file.endpoint].lost_metadata_error(submitted.name)
            if not given:
                raise budget.exhausted_error()
        return given


def build_by_batch(
    what: Recipe | Job,
    out: Path,
    run: Run | None = None,
    *,
    wait: bool = True,
    poll: float = POLL,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> HandedOut:
    """Builds through batches of the configured endpoints; without ``wait`` it returns while batches are open.

    ``poll`` is in seconds, with shorter intervals at first; ``watch`` gets the finished requests and the total of open batches.

    Raises:
        InputError, JobError: as :func:`empathy_eval.generation.build.build`; and a JobError for a round without an answer.
    """
    run, job = run or Run(), job_of(what).resolved()
    rounds = Rounds(job.config, run.ledger or out / LEDGER, run, poll, watch)
    before = None
    while True:
        open_ones = rounds.settle(wait) if rounds.ledger.exists() else {}
        if open_ones:
            return HandedOut(None, open_ones, rounds.reasons)
        notes = PendingRequests()
        summary = build(job, out, replace(run, notes=notes, skip_reasons=rounds.refused))
        if not notes:
            return HandedOut(summary, {}, rounds.reasons)
        progress = (rounds.answers_received, len(rounds.refused))
        if progress == before:
            reasons = [f"{reason} ({count})" for reason, count in sorted(rounds.reasons.items())]
            message = "\n  ".join(["a round of batches brought no answer:", *reasons[:SHOWN]])
            raise job_error("build --batch", message, "fix the cause, then run the same command to continue; every answer is in the ledger")
        given = rounds.submit(notes)
        if not wait:
            return HandedOut(summary, given, rounds.reasons)
        before = progress if given else None


def hand_out(what: Recipe | Job, out: Path, path: Path, run: Run | None = None) -> HandedOut:
    """Replays, and writes all unanswered requests that are known now into files in the providers' batch format.

    More models, or a provider's limits, need more files: ``FILE``, ``FILE-2`` and so on.

    Raises:
        InputError: if such files exist, for a budget, and as :func:`empathy_eval.generation.build.build`.
        JobError: if the disk is full, or the ledger is damaged.
    """
    run, job = run or Run(), job_of(what)
    if run.budget_dollars is not None or run.budget_tokens is not None:
        raise input_error("--requests-to", "a budget cannot hold what is sent by hand", "leave the budget out")
    candidates = {path, *path.parent.glob(glob.escape(f"{path.stem}-") + "[0-9]*" + glob.escape(path.suffix))}
    fix = "take its answers in and move it away, or name another file for each round"
    refuse(Problem(str(candidate), "is there already", fix) for candidate in sorted(candidates) if candidate.exists())
    notes = PendingRequests()
    summary = build(job, out, replace(run, notes=notes))
    written = {}
    with Ledger(run.ledger or out / LEDGER, create=False) as ledger:
        for number, file in enumerate(request_files(notes, job.config, lambda number: numbered_path(path, number)), 1):
            ledger.note_requests(file.digest, file.requests)
            written[str(numbered_path(path, number))] = len(file.requests)
    return HandedOut(summary, written)
