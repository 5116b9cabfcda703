"""Fetching: a release by its folder, or by its name and version on the Hub; and its rows as ``datasets`` has them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from empathy_eval.base.errors import Problem, input_error, nearest, refuse
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.tabular import schema_of, table_batches
from empathy_eval.design.dataset import COLUMNS, OPTIONAL, SPLITS, configs_of, file_of, read_manifest

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict


def release_folder(release: str | Path) -> Path:
    """The folder of a release: the one that is named, else that of a version on the Hub (``my-lab/empathy-eval@v1.0.0``).

    A version is fetched once, whole or not at all, into ``empathy-eval/releases`` of the user's cache folder; from then on it needs no
    network. Its files are as they were published, and not verified.

    Raises:
        InputError: if there is no such folder and the name is none of a version, the Hub has no such version or does not show it to the
            holder of this token, or it is no release.
        JobError: if the Hub cannot be reached or fails, or the cache cannot be written.
    """
    if Path(release).is_dir():
        return Path(release)
    # Here, because the Hub's library takes half a second, and most releases are folders.
    from empathy_eval.releases.hub.repository import fetch_release

    return fetch_release(release.as_posix() if isinstance(release, Path) else release)


@takes_paths
def load(release: str | Path, config: str = "pairs", split: str | None = None) -> Dataset | DatasetDict:
    """The rows of a release as a ``datasets.Dataset`` of a split, or as a ``DatasetDict`` of all, those without rows too.

    ``release`` is as :func:`release_folder` takes it. The rows are read from the parquet files themselves into memory, not through the
    library's cache, which could hold those of an earlier release of the same name; and what the card says of files is not followed.

    Raises
    ------
    InputError
        If there is no such release, config or split, or a file is damaged.
    JobError
        As :func:`release_folder`.
    """
    asked = {"config": (config, (*COLUMNS, *OPTIONAL)), "split": (split, (None, *SPLITS))}
    wrong = [
        Problem(what, f'there is no "{one}"', f"name one of these: {', '.join(filter(None, known))}{nearest(one, filter(None, known))}")
        for what, (one, known) in asked.items()
        if one not in known
    ]
    refuse(wrong)
    folder = release_folder(release)
    if config not in (there := configs_of(read_manifest(folder)["counts"])):
        raise input_error("config", f'this release has no "{config}"', f"name one of these: {', '.join(there)}")
    # Here, because it takes seconds.
    from datasets import Dataset, DatasetDict, NamedSplit

    def rows(name: str) -> Dataset:
        path = file_of(folder, config, name)
        return Dataset(pa.Table.from_batches(table_batches(path), schema_of(path)), split=NamedSplit(name))

    return rows(split) if split else DatasetDict({name: rows(name) for name in SPLITS})
