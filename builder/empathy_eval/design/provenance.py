"""Provenance of a result: the release or the files, the program and the settings that its numbers are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from empathy_eval.base.hashing import canonical_json, digest_file
from empathy_eval.base.printed import Printed, data_frame
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
    """A file by its name, without its folder, and its SHA-256 (hex), which is None of a pipe."""

    name: str
    sha256: str | None


def file_of(path: Path, header: str = "") -> File:
    """The name and hash of a file; of a folder the hash of the file ``header`` in it, which holds the hashes of the others."""
    held = path / header if path.is_dir() else path
    return File(path.name, digest_file(held) if held.is_file() else None)


@dataclass(frozen=True)
class Provenance:
    """What numbers are of, and by which settings of the command they came.

    A release goes by the ``release``, ``version`` and ``seal`` of its manifest, which are the same in every folder; ``split`` names its
    splits as ``datasets`` does (``train+validation+test``), ``pairs`` and ``controls`` say how many there are in them. All of that is None
    where there is no release. ``files`` are those that were read: texts of one's own, scores, ratings.
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
        """That of a release, or of files alone; ``counts`` of pairs and controls are those of the manifest where none are given.

        Raises:
            InputError: if the folder is no release.
        """
        made = cls(files=tuple(files), settings=settings)
        if release_dir is None:
            return made
        manifest = read_manifest(release_dir)
        known = [sum(manifest["counts"].get(config, {}).get(split, 0) for split in splits) for config in ("pairs", "controls")]
        pairs, controls = counts or known
        named: dict[str, Any] = {name: manifest.get(name) for name in ("version", "seal")}
        return replace(made, release=manifest.get("name"), **named, split="+".join(splits), pairs=pairs, controls=controls)

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self) | {"files": [asdict(one) for one in self.files]}

    def record(self) -> dict[str, str]:
        """The values of ``KEYS``: files as ``name sha256:…`` with semicolons between them, settings as JSON; empty what there is not."""
        files = "; ".join(f"{one.name} sha256:{one.sha256 or 'unknown'}" for one in self.files)
        told = {"files": files, "software": self.software, "settings": canonical_json(self.settings).decode()}
        return {name: told.get(name, getattr(self, name, None) or "") for name in KEYS}

    def __str__(self) -> str:
        """One line for a person."""
        parts = []
        if self.version:
            parts.append(f"{self.release or 'release'} {self.version}, seal {(self.seal or 'none')[:SHOWN]}")
            parts.append(f"{self.split}: {self.pairs:,} pairs, {self.controls:,} with controls")
        parts += [f"{one.name}, sha256 {(one.sha256 or 'unknown')[: SHOWN - 3]}" for one in self.files]
        return "; ".join([*parts, self.software])

    @property
    def told_settings(self) -> str:
        """The settings that say something, in one line."""
        said = {
            name: ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
            for name, value in self.settings.items()
            if value not in (None, False, "", (), [])
        }
        return "; ".join(name if value is True else f"{name} {value}" for name, value in said.items())


@dataclass(frozen=True, repr=False)
class Result(Printed):
    """A result that says what it is of; where that is not said yet, as in a release that is being written, ``provenance`` is None."""

    provenance: Provenance | None = field(default=None, kw_only=True)

    def head(self) -> Sequence[str]:
        """What it is of, and the settings."""
        if self.provenance is None:
            return ()
        return [str(self.provenance), *([f"settings: {told}"] if (told := self.provenance.told_settings) else [])]

    def of(self, provenance: Provenance) -> Self:
        """The same result, which says what it is of."""
        return replace(self, provenance=provenance)

    def beside(self, files: Iterable[File]) -> Self:
        """The same result, of these files too."""
        more = tuple(files)
        made = self.provenance
        return replace(self, provenance=replace(made, files=(*made.files, *more))) if made and more else self

    def _with_provenance(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """JSON values of the result, the provenance first; without one nothing is said of it."""
        rest = {name: value for name, value in values.items() if name != "provenance"}
        return {"provenance": self.provenance.to_json(), **rest} if self.provenance else rest

    def _stamped(self, records: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Records of the long form, each with the columns ``KEYS`` before its own."""
        keys = self.provenance.record() if self.provenance else dict.fromkeys(KEYS, "")
        yield from ({**keys, **one} for one in records)


@dataclass(frozen=True, repr=False)
class LongForm(Result):
    """A result that has a long form: records of figures, with ``columns``, of which ``numbers`` are numbers."""

    columns: ClassVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]]

    def _records(self) -> Iterable[Mapping[str, Any]]:
        """The records without what they are of."""
        raise NotImplementedError

    def records(self) -> Iterator[dict[str, Any]]:
        """The long form: a record a figure or note, with the columns ``columns``; a number that there is not is None."""
        return self._stamped(self._records())

    def to_pandas(self) -> pd.DataFrame:
        """The long form as a data frame, with the columns ``columns``; a number that there is not is NaN.

        Raises:
            InputError: if pandas is not installed.
        """
        return data_frame(self.records(), self.columns, self.numbers)
