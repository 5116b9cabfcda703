"""Builds in batches, round by round: replay, submit what is unanswered, wait, take the answers in, until nothing is unanswered.

A file of requests is noted in the ledger before it is submitted, under its hash, which its batch carries as metadata. So a
batch whose name could not be noted any more is found again by its hash, and nothing is submitted twice. Where a gateway drops the
metadata, the batch is known by its uploaded file, which has the hash in its name; where that cannot be seen either, the round ends.
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
from empathy_eval.base.stopping import pause
from empathy_eval.completions.asker import PendingRequests
from empathy_eval.completions.batch_files import bounded_lines, numbered, request_files, take
from empathy_eval.completions.budget import make_budget
from empathy_eval.completions.ledger import Batch, Ledger, ended, named, next_round, note, still_counted, taken_ids, under_way
from empathy_eval.completions.models.batch_api import Batches, State
from empathy_eval.design.endpoints import Asks
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.build_folder import LEDGER
from empathy_eval.generation.job import Job, job_of
from empathy_eval.generation.summary import Handed

# Seconds between two looks at batches that take hours.
POLL = 30.0
# Reasons that an error tells one by one.
SHOWN = 10


@dataclass
class Rounds:
    """The rounds of one build. ``brought`` counts the answers, ``reasons`` what came back without one."""

    config: Asks
    ledger: Path
    run: Run
    poll: float = POLL
    watch: Callable[[int, int], None] = lambda done, total: None
    refused: dict[str, str] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    brought: int = 0

    def __post_init__(self) -> None:
        self._desks = {one.endpoint: Batches(one) for one in self.config.asked.values() if one.kind == "openai"}
        self.run.course.desks = tuple(desk.reception for desk in self._desks.values())

    def settle(self, wait: bool) -> dict[str, int]:
        """Takes in the batches that have ended, after waiting for all of them if told; returns those still under way.

        Raises:
            JobError: for files that hold nothing in the form of answers: their batches stay under way, for they were paid for.
        """
        with Ledger(self.ledger) as ledger:
            mine = [batch for batch in under_way(ledger) if batch.build == self.config.identity]
            batches = [name for batch in mine for name in self._named(ledger, batch)]
        # The ledger is free while there is nothing to write. A small batch may be done at once: the first looks are soon.
        for look in count():
            states = {one: self._desks[one.endpoint].state(one.id or "") for one in batches}
            open_ones = {one.id or "": state.total for one, state in states.items() if not state.ended}
            self.watch(sum(one.done for one in states.values()), sum(one.total for one in states.values()))
            if not (wait and open_ones):
                break
            pause(min(self.poll, 2 ** min(look, 10)))
        with Ledger(self.ledger) as ledger:
            broken = [one for batch, state in states.items() if state.ended for one in self._take_in(ledger, batch, state)]
        if broken:
            raise JobError(broken)
        if not open_ones:  # what is told from now on is the round that comes next
            self.watch(0, 0)
        return open_ones

    def _named(self, ledger: Ledger, batch: Batch) -> Iterator[Batch]:
        """The batch with its name, which a killed process could not note; one that was never made is forgotten."""
        name = batch.id or self._desks[batch.endpoint].find(batch.file, taken_ids(ledger))
        if name is None:
            ended(ledger, batch)
        else:
            yield batch if batch.id else named(ledger, batch, name)

    def _take_in(self, ledger: Ledger, batch: Batch, state: State) -> list[Problem]:
        """Takes the answers of a batch that has ended; returns what is wrong with files in which there is not one line of the form."""
        broken = list[Problem]()
        with TemporaryDirectory() as folder:
            for file in state.files:
                path = Path(folder) / "answers.jsonl"
                if not self._desks[batch.endpoint].fetch(file, path):
                    self.reasons[f"{file} of {batch.id} is gone"] += 1
                    still_counted(ledger, batch)
                    continue
                with path.open("rb") as stream:
                    taken = take(ledger, f"{batch.id} {file}", bounded_lines(stream), "batch")
                if taken.problems and not (taken.stored or taken.already or taken.unanswered):
                    first = taken.problems[0]
                    broken.append(Problem(first.where, first.what, "run the same command to fetch it again; nothing was asked for again"))
                    continue
                for key, (model, worst) in taken.paid.items():
                    ledger.reserve(f"{batch.id} {key}", model, worst)
                self.brought += taken.stored + taken.already
                self.refused.update(taken.refused)
                self.reasons.update({self._desks[batch.endpoint].plain(reason): count for reason, count in taken.unanswered.items()})
                self.reasons.update(problem.what for problem in taken.problems)
        if broken:
            return broken
        if state.status != "completed":
            self.reasons[state.reason] += 1
        ended(ledger, batch)
        return broken

    def submit(self, notes: PendingRequests) -> dict[str, int]:
        """Submits a round, as far as the budget reaches; returns the requests by batch.

        Raises:
            JobError: if the budget has no room for a single request, or a batch that was made would not be found again.
        """
        given: dict[str, int] = {}
        with Ledger(self.ledger) as ledger, TemporaryDirectory() as folder:
            if under_way(ledger):  # another process was quicker
                return given
            budget = make_budget(self.config, ledger, self.run.budget_dollars, self.run.budget_tokens)
            build_hash, number = self.config.identity, next_round(ledger, self.config.identity)
            affordable = takewhile(lambda one: budget.take(one.model, one.worst), notes)
            for file in request_files(affordable, self.config, lambda place: Path(folder) / f"{place}.jsonl"):
                batch = Batch(file.digest, file.endpoint, build_hash, number)
                note(ledger, file.digest, file.requests, batch)
                metadata = {"build": build_hash, "round": str(number), "file": file.digest}
                made = self._desks[file.endpoint].submit(file.path, metadata, taken_ids(ledger))
                named(ledger, batch, made.name)
                given[made.name] = len(file.requests)
                if not made.found_again:
                    raise self._desks[file.endpoint].forgetful(made.name)
            if not given:
                raise budget.used_up()
        return given


def build_by_batch(
    what: Recipe | Job,
    out: Path,
    run: Run | None = None,
    *,
    wait: bool = True,
    poll: float = POLL,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Handed:
    """Builds through the batches of the configured endpoints; without waiting it returns while batches are under way.

    ``poll`` is in seconds, and the first looks come sooner; ``watch`` is told how many requests of the batches under way are done, and how
    many there are.

    Raises:
        InputError, JobError: as :func:`empathy_eval.generation.build.build` does; and a JobError for a round that brought no answer.
    """
    run, job = run or Run(), job_of(what).found()
    rounds = Rounds(job.config, run.ledger or out / LEDGER, run, poll, watch)
    before = None
    while True:
        open_ones = rounds.settle(wait) if rounds.ledger.exists() else {}
        if open_ones:
            return Handed(None, open_ones, rounds.reasons)
        notes = PendingRequests()
        summary = build(job, out, replace(run, notes=notes, unasked=rounds.refused))
        if not notes:
            return Handed(summary, {}, rounds.reasons)
        progress = (rounds.brought, len(rounds.refused))
        if progress == before:
            raise _no_progress(rounds.reasons)
        given = rounds.submit(notes)
        if not wait:
            return Handed(summary, given, rounds.reasons)
        before = progress if given else None


def _no_progress(reasons: Counter[str]) -> JobError:
    told = [f"{reason} ({count})" for reason, count in sorted(reasons.items())]
    what = "\n  ".join(["a round of batches brought no answer:", *told[:SHOWN]])
    return job_error("build --batch", what, "fix the cause, then run the same command to continue; every answer is in the ledger")


def hand_out(what: Recipe | Job, out: Path, path: Path, run: Run | None = None) -> Handed:
    """Replays, and writes the requests that can be known now and are not answered yet in the providers' batch form.

    More than one file is needed for more than one model and above a provider's limits: ``FILE``, ``FILE-2`` and so on.

    Raises:
        InputError: if there are such files already, for a budget, and for what :func:`empathy_eval.generation.build.build` refuses.
        JobError: if the disk is full, or the ledger is damaged.
    """
    run, job = run or Run(), job_of(what)
    if run.budget_dollars is not None or run.budget_tokens is not None:
        raise input_error("--requests-to", "a budget cannot hold what is sent by hand", "leave the budget out")
    there = {path, *path.parent.glob(glob.escape(f"{path.stem}-") + "[0-9]*" + glob.escape(path.suffix))}
    fix = "take its answers in and move it away, or name another file for each round"
    refuse(Problem(str(one), "is there already", fix) for one in sorted(there) if one.exists())
    notes = PendingRequests()
    summary = build(job, out, replace(run, notes=notes))
    written = {}
    with Ledger(run.ledger or out / LEDGER, create=False) as ledger:
        for number, file in enumerate(request_files(notes, job.config, lambda number: numbered(path, number)), 1):
            note(ledger, file.digest, file.requests)
            written[str(numbered(path, number))] = len(file.requests)
    return Handed(summary, written)
