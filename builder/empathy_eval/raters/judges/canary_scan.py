"""Contamination check: scans scored outputs for the canary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from empathy_eval.base.tabular import json_rows, schema_of, table_batches
from empathy_eval.design.canary import CANARY, canary_warnings, lines_of
from empathy_eval.design.dataset import JUDGED, files_of, read_manifest
from empathy_eval.evaluation.external.custom_texts import REPLY, SIDES, SUFFIX
from empathy_eval.generation.build_folder import heard_in_folder
from empathy_eval.metrics.protocol import reply_of
from empathy_eval.raters.judges.annotations import ATTACKS


def heard_in_scores(source: Path, files: Sequence[Path], annotations: Sequence[Path], *, judged: bool) -> list[str]:
    """A warning for each of what is put on a stand in which the canary stands.

    These are the replies of a file of texts; lines of files of scores, but for the head of a table; answers in folders of annotations, and
    with ``judged`` the reasons in the annotations of the release.

    Args:
        source: the release, or a ``.jsonl`` file of texts; all are known to be readable.
    """
    own = source.suffix.lower() == SUFFIX
    canary = None if own else read_manifest(source).get(CANARY)
    found = canary_warnings(_replies(source)) if own else []
    for path in files:
        found += canary_warnings(lines_of(path, head=path.suffix.lower() != SUFFIX), canary)
    for folder in annotations:
        found += heard_in_folder(folder) + heard_in_folder(folder / ATTACKS)
    return found + (canary_warnings(_reasons(source), canary) if judged and not own else [])


def _replies(path: Path) -> Iterator[tuple[str, str]]:
    """What was asked for comes from elsewhere: the replies alone."""
    for number, row in json_rows(path):
        if isinstance(row, dict):
            yield f"{path}: line {number}", " ".join(reply_of(row[name]) for name in (REPLY, *SIDES) if name in row)


def _reasons(release_dir: Path) -> Iterator[tuple[str, str]]:
    """The reasons that judges gave, of each config of annotations that the release has."""
    for config in [one for one in JUDGED if one in read_manifest(release_dir)["counts"]]:
        for path in files_of(release_dir, config):
            names = [name for name in schema_of(path).names if name.startswith("reason")]
            rows = (row for batch in (table_batches(path, names) if names else ()) for row in batch.to_pylist())
            yield from ((f"{path}: row {number}", " ".join(filter(None, row.values()))) for number, row in enumerate(rows))
