"""Contamination check: scans scored outputs for the canary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from empathy_eval.base.tabular import json_rows, schema_of, table_batches
from empathy_eval.design.canary import CANARY, canary_warnings, numbered_lines
from empathy_eval.design.dataset import JUDGED, files_of, read_manifest
from empathy_eval.evaluation.external.custom_texts import REPLY, SIDES, SUFFIX
from empathy_eval.generation.build_folder import folder_canary_warnings
from empathy_eval.metrics.protocol import reply_of
from empathy_eval.raters.judges.annotations import ATTACKS


def canary_scan(source: Path, files: Sequence[Path], annotations: Sequence[Path], *, judged: bool) -> list[str]:
    """A warning for each scored output that contains the canary.

    Scanned are the replies of a file of texts; lines of score files, but for the header of a table; answers in folders of annotations; and,
    if ``judged``, the reasons in the annotations of the release.

    Args:
        source: the release, or a ``.jsonl`` file of texts; all are known to be readable.
    """
    own = source.suffix.lower() == SUFFIX
    canary = None if own else read_manifest(source).get(CANARY)
    warnings = canary_warnings(_replies(source)) if own else []
    for path in files:
        warnings += canary_warnings(numbered_lines(path, head=path.suffix.lower() != SUFFIX), canary)
    for folder in annotations:
        warnings += folder_canary_warnings(folder) + folder_canary_warnings(folder / ATTACKS)
    return warnings + (canary_warnings(_reasons(source), canary) if judged and not own else [])


def _replies(path: Path) -> Iterator[tuple[str, str]]:
    """The replies alone: prompts come from elsewhere."""
    for number, row in json_rows(path):
        if isinstance(row, dict):
            yield f"{path}: line {number}", " ".join(reply_of(row[name]) for name in (REPLY, *SIDES) if name in row)


def _reasons(release_dir: Path) -> Iterator[tuple[str, str]]:
    """Reasons given by judges, from each config of annotations in the release."""
    for config in [config for config in JUDGED if config in read_manifest(release_dir)["counts"]]:
        for path in files_of(release_dir, config):
            names = [name for name in schema_of(path).names if name.startswith("reason")]
            rows = (row for batch in (table_batches(path, names) if names else ()) for row in batch.to_pylist())
            yield from ((f"{path}: row {number}", " ".join(filter(None, row.values()))) for number, row in enumerate(rows))
