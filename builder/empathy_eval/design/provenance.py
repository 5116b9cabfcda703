"""Provenance of a result: the release or files, the program and the settings behind its numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from empathy_eval.base.hashing import canonical_json, digest_file
from empathy_eval.base.json_text import fields_json
from empathy_eval.base.printed import Printable, data_frame
from empathy_eval.base.version import __version__
from empathy_eval.design.dataset import SPLITS, read_manifest

if TYPE_CHECKING:
    import pandas as pd


SOFTWARE = f"empathy-eval {__version__}"
# The first columns of every CSV: on each row, so that rows of several tables can be put together.
KEYS = ("release", "version", "seal", "split", "files", "software", "settings")
# So much of a hash is shown where a person reads it.
SHOWN = 15


@dataclass(frozen=True)
class File:
    """A file by its name without the folder, and its SHA-256 (hex), which is None for a pipe."""

    name: str
    sha256: str | None


def file_of(path: Path, header: str = "") -> File:
    """The name and hash of a file; for a folder the hash of its file ``header``, which holds the hashes of the others."""
    held = path / header if path.is_dir() else path
    return File(path.name, digest_file(held) if held.is_file() else None)


@dataclass(frozen=True)
class Provenance:
    """The data behind numbers, and the settings of the command.

    ``release``, ``version`` and ``seal`` come from the manifest and are the same in every folder. ``split`` names splits as ``datasets``
    does (``train+validation+test``); ``pairs`` and ``controls`` count their rows. All of these are None without a release. ``files`` are
    the files that were read: texts, scores, ratings.
    """

    release: str | None = None
    version: str | None = None
    seal: str | None = None
    split: str | None = None
    pairs: int | None = None
    controls: int | None = None
    files: tuple[File, ...] = ()
    software: str = SOFTWARE
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, release_dir: Path | None = None, splits: Sequence[str] = SPLITS, counts: tuple[int, int] | None = None,
        files: Iterable[File] = (), **settings: Any,
    ) -> Self:  # fmt: skip
        """The provenance of a release, or of files alone; ``counts`` of pairs and controls are those of the manifest by default.

        Raises:
            InputError: if the folder is not a release.
        """
        result = cls(files=tuple(files), settings=settings)
        if release_dir is None:
            return result
        manifest = read_manifest(release_dir)
        known = [sum(manifest["counts"].get(config, {}).get(split, 0) for split in splits) for config in ("pairs", "controls")]
        pairs, controls = counts or known
        named: dict[str, Any] = {name: manifest.get(name) for name in ("version", "seal")}
        return replace(result, release=manifest.get("name"), **named, split="+".join(splits), pairs=pairs, controls=controls)

    def to_json(self) -> dict[str, Any]:
        """The provenance as JSON values."""
        return asdict(self) | {"files": [asdict(file) for file in self.files]}

    def record(self) -> dict[str, str]:
        """The values of ``KEYS``: files as ``name sha256:…`` separated by semicolons, settings as JSON; empty if missing."""
        files = "; ".join(f"{file.name} sha256:{file.sha256 or 'unknown'}" for file in self.files)
        values = {"files": files, "software": self.software, "settings": canonical_json(self.settings).decode()}
        return {name: values.get(name, getattr(self, name, None) or "") for name in KEYS}

    def __str__(self) -> str:
        """One line for a person."""
        parts = []
        if self.version:
            parts.append(f"{self.release or 'release'} {self.version}, seal {(self.seal or 'none')[:SHOWN]}")
            parts.append(f"{self.split}: {self.pairs:,} pairs, {self.controls:,} with controls")
        parts += [f"{file.name}, sha256 {(file.sha256 or 'unknown')[: SHOWN - 3]}" for file in self.files]
        return "; ".join([*parts, self.software])

    @property
    def settings_line(self) -> str:
        """The settings that are set, in one line."""
        settings = {name: value for name, value in self.settings.items() if value not in (None, False, "", (), [])}
        shown = {name: ", ".join(map(str, value)) if isinstance(value, list | tuple) else value for name, value in settings.items()}
        return "; ".join(name if value is True else f"{name} {value}" for name, value in shown.items())


@dataclass(frozen=True, repr=False)
class Result(Printable):
    """A result with its provenance, which is None while a release is being written."""

    provenance: Provenance | None = field(default=None, kw_only=True)

    def head(self) -> Sequence[str]:
        """Provenance and settings."""
        if self.provenance is None:
            return ()
        return [str(self.provenance), *([f"settings: {settings}"] if (settings := self.provenance.settings_line) else [])]

    def of(self, provenance: Provenance) -> Self:
        """The same result with this provenance."""
        return replace(self, provenance=provenance)

    def beside(self, files: Iterable[File]) -> Self:
        """The same result with more files in its provenance."""
        more = tuple(files)
        provenance = self.provenance
        return replace(self, provenance=replace(provenance, files=(*provenance.files, *more))) if provenance and more else self

    def to_json(self) -> dict[str, Any]:
        """Figures as JSON values; undefined values are null, with a reason in ``why``."""
        return self._with_provenance(fields_json(self))

    def _with_provenance(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """JSON values of the result, the provenance first if there is one."""
        rest = {name: value for name, value in values.items() if name != "provenance"}
        return {"provenance": self.provenance.to_json(), **rest} if self.provenance else rest

    def _stamped(self, records: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Records of the long form, each preceded by the columns ``KEYS``."""
        keys = self.provenance.record() if self.provenance else dict.fromkeys(KEYS, "")
        yield from ({**keys, **record} for record in records)


@dataclass(frozen=True, repr=False)
class LongForm(Result):
    """A result with a long form: records of figures with ``columns`` (the first are ``KEYS``), of which ``numbers`` are numeric."""

    columns: ClassVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]]

    def _records(self) -> Iterable[Mapping[str, Any]]:
        """The records without provenance; what is left out is empty, or None for a number; what is no column is left out."""
        raise NotImplementedError

    def records(self) -> Iterator[dict[str, Any]]:
        """The long form: a record for each figure or note, with the columns ``columns``; missing numbers are None."""
        blank = dict.fromkeys(self.columns[len(KEYS) :], "") | dict.fromkeys(self.numbers)
        return self._stamped(blank | {name: value for name, value in row.items() if name in blank} for row in self._records())

    def to_csv(self) -> str:
        """The long form as CSV, one line per figure or note."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records())
        return text.getvalue()

    def to_pandas(self) -> pd.DataFrame:
        """The long form as a data frame with the columns ``columns``; missing numbers are NaN.

        Raises:
            InputError: if pandas is not installed.
        """
        return data_frame(self.records(), self.columns, self.numbers)
