"""Finished annotations as what others read: the stand, with the rubric that says which values are the better ones, and ``agree``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.design.dataset import read_manifest
from empathy_eval.evaluation.external.judges import COLUMNS, Annotations
from empathy_eval.raters.judges.folder import Folder, read_annotations

# As many ratings are a part: with few, what is done a part takes the time.
TOGETHER = 50_000


def annotations_in(paths: Sequence[Path], release_dir: Path) -> Annotations:
    """The ratings of folders that ``annotate`` finished for a release.

    Raises:
        InputError: if a folder holds no finished annotations, or those of another release.
    """
    folders, seal = [read_annotations(path) for path in paths], read_manifest(release_dir)["seal"]
    fix = "score the release that was annotated, or annotate this one; release --annotations takes annotations of a build"
    if stray := [one for one in folders if one.header["configuration"]["release"].get("seal") != seal]:
        raise InputError([Problem(str(one.path), f"holds annotations of another release than {release_dir}", fix) for one in stray])
    rubrics = {one.header["configuration"]["rubric_hash"]: one.header["rubric"] for one in folders}
    parts = [part for one in folders for part in _parts(one)]
    return Annotations(paths[0], lambda: parts, rubrics)


def _parts(folder: Folder) -> Iterator[pa.RecordBatch]:
    by = {"teacher": folder.teacher, "rubric": folder.rubric, "rubric_hash": folder.header["configuration"]["rubric_hash"]}
    rated = ((case.pair_id, one) for case in folder.cases for one in case.ratings)
    while some := list(itertools.islice(rated, TOGETHER)):
        of = {name: [value] * len(some) for name, value in by.items()}
        said = {name: [getattr(one, name) for _, one in some] for name in ("variant", "criterion", "sample", "value")}
        columns = {**of, **said, "pair_id": [pair for pair, _ in some]}
        yield pa.RecordBatch.from_arrays([pa.array(columns[one.name], one.type) for one in COLUMNS], schema=COLUMNS)


def ratings_in(path: Path) -> Iterator[tuple[str, str, float, str]]:
    """(item, rater, rating, criterion) of a folder of finished annotations, in the form of the table of a review.

    Each further sample of a judge is a rater of its own.

    Raises:
        InputError: if there are no finished annotations.
    """
    folder = read_annotations(path)
    return ratings_of(folder, folder.teacher)


def ratings_of(folder: Folder, judge: str) -> Iterator[tuple[str, str, float, str]]:
    """The same of annotations that were read, by a judge of that name."""
    for case in folder.cases:
        for one in case.ratings:
            item = f"{case.pair_id}:{one.variant}" if one.variant else case.dialogue_id
            yield item, sampled(judge, one.sample + 1), one.value, one.criterion


def sampled(judge: str, sample: int) -> str:
    """What a sample of a judge is called as a rater, by its number."""
    return f"{judge}#{sample}" if sample > 1 else judge
