"""Release folders by path, or by name and version on the Hub; their rows as a ``datasets.Dataset``."""

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
    """Returns the folder of a release, given its path or a version on the Hub (``my-lab/empathy-eval@v1.0.0``).

    A version is downloaded once, completely or not at all, into ``empathy-eval/releases`` of the user's cache folder. Its files are not
    verified.

    Raises:
        InputError: if there is no such folder and the name is not that of a version, the Hub has no such version or does not show it to
            the holder of this token, or it is no release.
        JobError: if the Hub cannot be reached or fails, or the cache cannot be written.
    """
    if Path(release).is_dir():
        return Path(release)
    # Imported here: the Hub's library takes half a second, and most releases are folders.
    from empathy_eval.releases.hub.repository import fetch_release

    return fetch_release(release.as_posix() if isinstance(release, Path) else release)


@takes_paths
def load(release: str | Path, config: str = "pairs", split: str | None = None) -> Dataset | DatasetDict:
    """Loads the rows of a release as a ``datasets.Dataset`` of a split, or as a ``DatasetDict`` of all splits, empty ones too.

    ``release`` is as :func:`release_folder` takes it. The rows are read from the parquet files into memory: not through the library's
    cache, which could hold an earlier release of the same name, and not by the file list in the card.

    Raises
    ------
    InputError
        If there is no such release, config or split, or a file is damaged.
    JobError
        As :func:`release_folder`.
    """
    choices = {"config": (config, [*COLUMNS, *OPTIONAL]), "split": (split, [*SPLITS])}
    refuse(
        Problem(what, f'there is no "{name}"', f"name one of these: {', '.join(names)}{nearest(name, names)}")
        for what, (name, names) in choices.items()
        if name is not None and name not in names
    )
    folder = release_folder(release)
    if config not in (configs := configs_of(read_manifest(folder)["counts"])):
        raise input_error("config", f'this release has no "{config}"', f"name one of these: {', '.join(configs)}")
    # Imported here: it takes seconds.
    from datasets import Dataset, DatasetDict, NamedSplit

    def rows(name: str) -> Dataset:
        path = file_of(folder, config, name)
        return Dataset(pa.Table.from_batches(table_batches(path), schema_of(path)), split=NamedSplit(name))

    return rows(split) if split else DatasetDict({name: rows(name) for name in SPLITS})
