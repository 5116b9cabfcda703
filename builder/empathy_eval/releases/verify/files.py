"""The files of a release: those that the manifest names, as it names them, and nothing more."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Finding
from empathy_eval.base.files import entries, outside_links
from empathy_eval.base.hashing import digest_file
from empathy_eval.design.bundled_definitions import DESIGN, SCENARIOS, hashes_of, is_known_file
from empathy_eval.design.configuration import candidates_of
from empathy_eval.design.dataset import MANIFEST, SIGNATURE, SPLITS, TABLES, configs_of, file_of
from empathy_eval.design.word_list import WORD_LIST
from empathy_eval.reports.documents import has_choices

# What every release holds beside its data.
ALWAYS = {
    "README.md", "LICENSE", "CHANGELOG.md", "croissant.json", "provenance.parquet", "candidates.parquet", "explore/index.html",
    f"report/{TABLES}", "report/index.html", "report/items.parquet",
}  # fmt: skip
# Figures hang on the report: which are there is looked at beside it.
FIGURE_NAMES = (
    "accuracies", "course", "course_named", "deltas", "deltas_planned", "depth", "effects", "judges", "judges_of_dialogues", "lengths",
    "ranks", "scenarios",
)  # fmt: skip
FIGURES = {f"report/figures/{name}.{kind}" for name in FIGURE_NAMES for kind in ("png", "svg")}
# What a repository of git or the Hub, and what a fetched one, has of its own; and what signs a manifest.
BESIDE = {MANIFEST, ".gitattributes", SIGNATURE}
NOTES = re.compile(r"\.cache/huggingface/(?:\.gitignore|CACHEDIR\.TAG|download/(?P<of>.+)\.(?:metadata|lock))")
# Letters that look like others, signs that nobody sees and ways out of a folder are in no name.
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
SCENARIO = re.compile(rf"{DESIGN}/{SCENARIOS}/([0-9]{{3}})-[a-z0-9]+(?:-[a-z0-9]+)*\.yaml")
MOST_BYTES = {".parquet": 2**34}
MOST_OF_TEXT = 2**28
LINK = "replace the link with the file itself, as `cp -rL` or `hf download --local-dir` do"
OUT = "remove it from the release"


def file_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """No link leads out; else every file is the one the manifest names, and none is there that it does not name."""
    if links := outside_links(folder):
        yield from (Finding(str(link), "is a link that leads out of the release", LINK) for link in links)
        return
    named = manifest["files"]
    there, empty = dict[str, Path](), dict[Path, None]()
    for path, kind in entries(folder):
        name = path.relative_to(folder).as_posix()
        empty.pop(path.parent, None)
        if kind == "folder":
            empty[path] = None
        elif kind == "device":
            yield Finding(str(path), "is neither a file nor a folder", OUT)
        elif name in named and path.is_file():
            there[name] = path
        elif not (_excused(name, named) and path.is_file()):
            yield Finding(str(path), "is not in the manifest", OUT)
    yield from (Finding(str(path), "is an empty folder, or cannot be read", OUT) for path in sorted(empty))
    yield from _misnamed(folder, manifest)
    for name in sorted(named):
        if name not in there:
            yield Finding(str(folder / name), "is missing")
        else:
            yield from _changed(there[name], named[name])


def _changed(path: Path, value: str) -> Iterator[Finding]:
    """A file that is not the one of that hash, or too large to be one."""
    most = MOST_BYTES.get(path.suffix, MOST_OF_TEXT)
    try:
        if path.stat().st_size > most:
            yield Finding(str(path), f"is larger than {most:,} bytes")
        elif digest_file(path) != value:
            yield Finding(str(path), "is not the file that was released (its SHA-256 differs from the manifest)")
    except OSError as error:
        yield Finding(str(path), f"cannot be read: {error.strerror}")


def _excused(name: str, named: Mapping[str, Any]) -> bool:
    """Whether a file belongs to what a release lies in, and not to the release."""
    note = NOTES.fullmatch(name)
    return name in BESIDE or bool(note and (note["of"] is None or note["of"] in {*named, *BESIDE}))


def _misnamed(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Names of the manifest that no file of a release has, and those that it lacks."""
    named, needed = manifest["files"].keys(), _needed(manifest)
    for name in sorted(needed - named):
        yield Finding(str(folder / name), "is not named by the manifest")
    for name in sorted(named - needed):
        if not all(PART.fullmatch(part) for part in name.split("/")):
            yield Finding(f"{folder / MANIFEST}: files", f"names {name[:200]!a}, which is not a valid file name of a release", OUT)
        elif not _possible(name, manifest):
            yield Finding(str(folder / name), "is named by the manifest, but no release has such a file", OUT)
    alike = Counter(name.casefold() for name in named)
    for name in sorted(named):
        if alike[name.casefold()] > 1:
            yield Finding(str(folder / name), "differs from the name of another file only in upper and lower case", OUT)


def _needed(manifest: dict[str, Any]) -> set[str]:
    """The files that must be there, by the facts of the manifest."""
    data = {file_of(Path(), config, split).as_posix() for config in configs_of(manifest["counts"]) for split in SPLITS}
    words = {WORD_LIST} if candidates_of(manifest["configuration"]) > 1 else set()
    words |= {"eval.yaml"} if has_choices(manifest) else set()
    return ALWAYS | data | words | {f"{DESIGN}/{path}" for path in hashes_of(manifest) if is_known_file(path)}


def _possible(name: str, manifest: dict[str, Any]) -> bool:
    """Whether a file may be there that need not."""
    if name in FIGURES:
        return True
    if scenario := SCENARIO.fullmatch(name):
        return scenario[1] in manifest["scenarios"]
    path = name.removeprefix(f"{DESIGN}/")
    return name.startswith(f"{DESIGN}/") and path in hashes_of(manifest) and is_known_file(path)
