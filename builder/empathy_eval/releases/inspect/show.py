"""Showing: why a text is so, from a release or a build, and from the ledger behind it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from empathy_eval.base.errors import input_error
from empathy_eval.base.schemas import read_json
from empathy_eval.completions.ledger import Ledger
from empathy_eval.generation.outcomes import BUILD
from empathy_eval.raters.judges.annotations import read_annotations
from empathy_eval.raters.review.record import read_record
from empathy_eval.releases.inspect.inspector import Inspector
from empathy_eval.releases.inspect.recipe_from_manifest import rebuild_recipe
from empathy_eval.releases.inspect.rejected import refused_by_judge, refused_in_source, show_annotations
from empathy_eval.releases.inspect.shown import RefusedText, ShownItem
from empathy_eval.releases.inspect.sources import open_source


@dataclass(frozen=True)
class InspectionInputs:
    """What is looked into beside the folder: a ledger, a record of reviews, and one's own scenarios, templates and rules."""

    ledger: Path | None = None
    reviews: Path | None = None
    scenarios: Path | None = None
    templates: Path | None = None
    rules: Path | None = None


def show(folder: Path, name: str, beside: InspectionInputs | None = None) -> ShownItem:
    """All that a release, a build or annotations hold of a dialogue, a pair, a turn, a variant or a request.

    Nothing is asked, nothing is written, and no code is run that the folder names.

    Raises:
        InputError: if the folder is none of these, or the name is none that is there.
        JobError: if a row of the ledger that is looked at is damaged.
    """
    beside = beside or InspectionInputs()
    if _holds_annotations(folder):
        return show_annotations(folder, name, beside.ledger)
    with _open_inspector(folder, beside) as look:
        return look.shown(look.place(name))


def _holds_annotations(folder: Path) -> bool:
    """Whether a folder holds annotations."""
    header = read_json(folder / BUILD, None, "name the folder of a release or a build") if (folder / BUILD).is_file() else None
    return isinstance(header, dict) and "rubric" in header


@contextlib.contextmanager
def _open_inspector(folder: Path, beside: InspectionInputs) -> Iterator[Inspector]:
    """A look into a release or a build, with its ledger open, or an empty one in its place."""
    source = open_source(folder)
    path = beside.ledger or source.ledger
    again = rebuild_recipe(source.header, beside.scenarios, beside.templates, beside.rules, folder)
    record = read_record(beside.reviews) if beside.reviews else None
    with Ledger(path, create=False, write=False) if path else Ledger(Path(":memory:")) as ledger:
        yield Inspector(source, ledger, again, record, answered=path is not None)


def rejected(folder: Path, reason: str | None = None, beside: InspectionInputs | None = None) -> Iterator[RefusedText]:
    """What was refused for a reason, or for any, and what was left out; each as it is come to.

    Raises:
        InputError: if the folder is no release, no build and no annotations, or, at the end, if nothing was refused for that reason.
        JobError: if rows of the ledger are damaged.
    """
    counts = Counter[str]()
    for one in _all_rejected(folder, beside or InspectionInputs()):
        counts.update(one.reasons)
        if reason in (None, *one.reasons):
            yield one
    if reason is not None and not counts[reason]:
        known = ", ".join(f"{name} ({count:,})" for name, count in sorted(counts.items()))
        fix = f"name one of these: {known}" if known else "nothing was refused: leave --rejected out"
        raise input_error("--rejected", f'nothing was refused for "{reason}"', fix)


def _all_rejected(folder: Path, beside: InspectionInputs) -> Iterator[RefusedText]:
    if _holds_annotations(folder):
        yield from refused_by_judge(read_annotations(folder), beside.ledger)
        return
    with _open_inspector(folder, beside) as look:
        yield from refused_in_source(look.source, look.ledger, look.again, answered=look.answered)
