"""Finished annotations as what the stand reads: their ratings in columns, with the rubric that says which values are the better ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.design.dataset import read_manifest
from empathy_eval.evaluation.judges import COLUMNS, Annotations
from empathy_eval.raters.judges.folder import Folder, read_annotations


def annotations_in(paths: Sequence[Path], release_dir: Path) -> Annotations:
    """The ratings of folders that ``annotate`` finished for a release.

    Raises:
        InputError: if a folder holds no finished annotations, or those of another release.
    """
    folders, seal = [read_annotations(path) for path in paths], read_manifest(release_dir)["seal"]
    fix = "score the release that was annotated, or annotate this one"
    if stray := [one for one in folders if one.header["configuration"]["release"]["seal"] != seal]:
        raise InputError([Problem(str(one.path), f"holds annotations of another release than {release_dir}", fix) for one in stray])
    rubrics = {one.header["configuration"]["rubric_hash"]: one.header["rubric"] for one in folders}
    return Annotations(paths[0], lambda: (part for one in folders for part in _parts(one)), rubrics)


def _parts(folder: Folder) -> Iterator[pa.RecordBatch]:
    by = {"teacher": folder.teacher, "rubric": folder.rubric, "rubric_hash": folder.header["configuration"]["rubric_hash"]}
    for case in folder.cases:
        of = {**by, "pair_id": case.pair_id}
        rows = [{**of, "variant": one.variant, "criterion": one.criterion, "sample": one.sample, "value": one.value} for one in case.ratings]
        yield pa.RecordBatch.from_pylist(rows, schema=COLUMNS)
