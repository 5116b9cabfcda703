"""The files of a release against the list in its manifest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import FIX_RESTORE, Finding, input_error
from empathy_eval.base.files import entries, outside_links
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.parsing import read_text
from empathy_eval.base.tabular import TableRow
from empathy_eval.design.bundled_definitions import DESIGN, SCENARIOS, hashes_of, is_known_file
from empathy_eval.design.configuration import candidates_of
from empathy_eval.design.dataset import MANIFEST, SIGNATURE, SPLITS, TABLES, configs_of, file_of
from empathy_eval.design.word_list import WORD_LIST
from empathy_eval.releases.assemble.read_back import numbered_rows
from empathy_eval.reports.documents import has_choices

# The files of every release beside its data.
ALWAYS = {
    "README.md", "LICENSE", "CHANGELOG.md", "croissant.json", "provenance.parquet", "candidates.parquet", "explore/index.html",
    f"report/{TABLES}", "report/index.html", "report/items.parquet",
}  # fmt: skip
# Which figures there are depends on the report, and is checked with it.
FIGURE_NAMES = (
    "accuracies", "course", "course_named", "deltas", "deltas_planned", "depth", "effects", "judges", "judges_of_dialogues", "lengths",
    "ranks", "scenarios",
)  # fmt: skip
FIGURES = {f"report/figures/{name}.{kind}" for name in FIGURE_NAMES for kind in ("png", "svg")}
# Files of a repository of git or the Hub, the signature of the manifest, and notes of the Hub's client.
BESIDE = {MANIFEST, ".gitattributes", SIGNATURE}
NOTES = re.compile(r"\.cache/huggingface/(?:\.gitignore|CACHEDIR\.TAG|download/(?P<of>.+)\.(?:metadata|lock))")
# No name has letters that look like others, invisible signs or ways out of a folder.
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
SCENARIO = re.compile(rf"{DESIGN}/{SCENARIOS}/([0-9]{{3}})-[a-z0-9]+(?:-[a-z0-9]+)*\.yaml")
MOST_BYTES, MOST_BYTES_OF_TEXT = {".parquet": 2**34}, 2**28
FIX_LINK = "replace the link with the file itself, as `cp -rL` or `hf download --local-dir` do"
FIX_REMOVE = "remove it from the release"


def file_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Links that lead out of the release; if there are none, files that differ from the manifest, are missing or are too many."""
    if links := outside_links(folder):
        yield from (Finding(str(link), "is a link that leads out of the release", FIX_LINK) for link in links)
        return
    named, files, empty = manifest["files"], dict[str, Path](), dict[Path, None]()
    for path, kind in entries(folder):
        name = path.relative_to(folder).as_posix()
        empty.pop(path.parent, None)
        if kind == "folder":
            empty[path] = None
        elif kind == "device":
            yield Finding(str(path), "is neither a file nor a folder", FIX_REMOVE)
        elif name in named and path.is_file():
            files[name] = path
        elif not (_is_excused(name, named) and path.is_file()):
            yield Finding(str(path), "is not in the manifest", FIX_REMOVE)
    yield from (Finding(str(path), "is an empty folder, or cannot be read", FIX_REMOVE) for path in sorted(empty))
    yield from _name_faults(folder, manifest)
    for name in sorted(named):
        if what := _content_fault(files[name], named[name]) if name in files else "is missing":
            yield Finding(str(folder / name), what)


def _content_fault(path: Path, digest: str) -> str | None:
    """Why a file is not the one of that hash."""
    most = MOST_BYTES.get(path.suffix, MOST_BYTES_OF_TEXT)
    try:
        if path.stat().st_size > most:
            return f"is larger than {most:,} bytes"
        return None if digest_file(path) == digest else "is not the file that was released (its SHA-256 differs from the manifest)"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def read_release_text(path: Path) -> str:
    """A text file of a release.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        raise input_error(path, f"cannot be read: {error}", FIX_RESTORE) from error


def released_rows(folder: Path, config: str, columns: list[str] | None = None, splits: Sequence[str] = SPLITS) -> Iterator[TableRow]:
    """The rows of a config, with all columns or the named ones; none of a config that the release does not have."""
    paths = [path for split in splits if (path := file_of(folder, config, split)).is_file()]
    return (row for path in paths for _, row in numbered_rows(path, columns))


def _is_excused(name: str, named: Mapping[str, Any]) -> bool:
    """Whether a file belongs to the repository or client around a release."""
    note = NOTES.fullmatch(name)
    return name in BESIDE or bool(note and (note["of"] is None or note["of"] in {*named, *BESIDE}))


def _name_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Names in the manifest that no file of a release has, and names that it lacks."""
    named, needed = manifest["files"].keys(), _needed_files(manifest)
    yield from (Finding(str(folder / name), "is not named by the manifest") for name in sorted(needed - named))
    for name in sorted(named - needed):
        if not all(PART.fullmatch(part) for part in name.split("/")):
            what = f"names {name[:200]!a}, which is not a valid file name of a release"
            yield Finding(f"{folder / MANIFEST}: files", what, FIX_REMOVE)
        elif not _is_optional(name, manifest):
            yield Finding(str(folder / name), "is named by the manifest, but no release has such a file", FIX_REMOVE)
    counts = Counter(name.casefold() for name in named)
    for name in sorted(name for name in named if counts[name.casefold()] > 1):
        yield Finding(str(folder / name), "differs from the name of another file only in upper and lower case", FIX_REMOVE)


def _needed_files(manifest: dict[str, Any]) -> set[str]:
    """The files that the manifest requires."""
    data = {file_of(Path(), config, split).as_posix() for config in configs_of(manifest["counts"]) for split in SPLITS}
    words = {WORD_LIST} if candidates_of(manifest["configuration"]) > 1 else set()
    words |= {"eval.yaml"} if has_choices(manifest) else set()
    return ALWAYS | data | words | {f"{DESIGN}/{path}" for path in hashes_of(manifest) if is_known_file(path)}


def _is_optional(name: str, manifest: dict[str, Any]) -> bool:
    """Whether a release may have a file that it does not need."""
    scenario = SCENARIO.fullmatch(name)
    return name in FIGURES or (scenario is not None and scenario[1] in manifest["scenarios"])
