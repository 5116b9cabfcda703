"""Builds by hand: a replay whose unanswered requests are written into files and noted in the ledger."""

from __future__ import annotations

import glob
from dataclasses import replace
from pathlib import Path

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.completions.batch_files import numbered, request_files
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.recorder import Notes
from empathy_eval.completions.pending import note
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.build_folder import LEDGER
from empathy_eval.generation.job import Job, job_of
from empathy_eval.generation.summary import Handed


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
    problems = [Problem(str(one), "is there already", fix) for one in sorted(there) if one.exists()]
    if problems:
        raise InputError(problems)
    notes = Notes()
    summary = build(job, out, replace(run, notes=notes))
    written = {}
    with Ledger(run.ledger or out / LEDGER, create=False) as ledger:
        for number, file in enumerate(request_files(notes, job.config, lambda number: numbered(path, number)), 1):
            note(ledger, file.digest, file.requests)
            written[str(numbered(path, number))] = len(file.requests)
    return Handed(summary, written)
