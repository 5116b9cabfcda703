"""Inspection of a text or of refused texts, from a release, a build or annotations, with a ledger."""

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
    """Inputs besides the folder: a ledger, a record of reviews, and the user's own scenarios, templates and rules."""

    ledger: Path | None = None
    reviews: Path | None = None
    scenarios: Path | None = None
    templates: Path | None = None
    rules: Path | None = None


def show(folder: Path, name: str, inputs: InspectionInputs | None = None) -> ShownItem:
    """Returns everything that a release, a build or annotations hold of a dialogue, a pair, a turn, a variant or a request.

    No request is sent, nothing is written, and no code is run that the folder names.

    Raises:
        InputError: if the folder is none of these, or holds nothing of that name.
        JobError: if a row of the ledger that is read is damaged.
    """
    inputs = inputs or InspectionInputs()
    if _holds_annotations(folder):
        return show_annotations(folder, name, inputs.ledger)
    with _open_inspector(folder, inputs) as inspector:
        return inspector.describe(inspector.find(name))


def _holds_annotations(folder: Path) -> bool:
    """Whether a folder holds annotations."""
    header = read_json(folder / BUILD, None, "name the folder of a release or a build") if (folder / BUILD).is_file() else None
    return isinstance(header, dict) and "rubric" in header


@contextlib.contextmanager
def _open_inspector(folder: Path, inputs: InspectionInputs) -> Iterator[Inspector]:
    """Opens a release or a build with its ledger, or with an empty ledger."""
    source = open_source(folder)
    path = inputs.ledger or source.ledger
    rebuilt = rebuild_recipe(source.header, inputs.scenarios, inputs.templates, inputs.rules, folder)
    record = read_record(inputs.reviews) if inputs.reviews else None
    with Ledger(path, create=False, write=False) if path else Ledger(Path(":memory:")) as ledger:
        yield Inspector(source, ledger, rebuilt, record, answered=path is not None)


def rejected(folder: Path, reason: str | None = None, inputs: InspectionInputs | None = None) -> Iterator[RefusedText]:
    """Yields texts that were refused for a reason, or for any reason, and items that were left out.

    Raises:
        InputError: if the folder is no release, no build and no annotations, or, at the end, if nothing was refused for that reason.
        JobError: if rows of the ledger are damaged.
    """
    counts = Counter[str]()
    for refused in _all_rejected(folder, inputs or InspectionInputs()):
        counts.update(refused.reasons)
        if reason in (None, *refused.reasons):
            yield refused
    if reason is not None and not counts[reason]:
        known = ", ".join(f"{name} ({count:,})" for name, count in sorted(counts.items()))
        fix = f"name one of these: {known}" if known else "nothing was refused: leave --rejected out"
        raise input_error("--rejected", f'nothing was refused for "{reason}"', fix)


def _all_rejected(folder: Path, inputs: InspectionInputs) -> Iterator[RefusedText]:
    if _holds_annotations(folder):
        yield from refused_by_judge(read_annotations(folder), inputs.ledger)
        return
    with _open_inspector(folder, inputs) as inspector:
        yield from refused_in_source(inspector.source, inspector.ledger, inspector.rebuilt, answered=inspector.answered)
