"""Manifests of releases: their facts, their seal, and the previous releases that they list."""

from __future__ import annotations

import contextlib
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import read_json
from empathy_eval.design.bundled_definitions import DESIGN
from empathy_eval.design.canary import release_identity
from empathy_eval.design.dataset import FORMAT, MANIFEST, read_manifest
from empathy_eval.releases.assemble.selection import Selection

VERSION = re.compile(r"\d+\.\d+\.\d+")
SOFTWARE = (
    "datasets", "pyarrow", "sacrebleu", "rapidfuzz", "spacy", "alt-profanity-check", "bert-score", "torch", "transformers", "numpy",
    "matplotlib",
)  # fmt: skip


def seal_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest with the hash of everything else in it, so that a change of the manifest itself is seen."""
    rest = {name: value for name, value in manifest.items() if name != "seal"}
    return {**rest, "seal": digest(rest)}


def manifest_text(manifest: dict[str, Any]) -> str:
    """The one text form of a manifest."""
    return json_text(manifest) + "\n"


def manifest_facts(
    header: dict[str, Any], version: str, date: str | None, selection: Selection, counts: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """The manifest without the hashes of files."""
    return {
        **release_identity(header["configuration"]),
        "format": FORMAT,
        "version": version,
        "date": date,
        "counts": counts,
        "duplicates": selection.duplicates,
        "withdrawn": header["configuration"].get("withdrawn", []),
        "spares_left_out": selection.spares,
        **({"below_quota": selection.below_quota} if selection.below_quota else {}),
        **{name: value for name, value in header.items() if name not in ("outcomes", DESIGN)},
        "software": software_versions(),
    }


def software_versions() -> dict[str, str]:
    """The versions of what numbers may hang on, as far as it is installed."""
    found = {"python": platform.python_version()}
    for name in SOFTWARE:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def file_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 by relative path of every file of the release but the manifest itself."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in files}


def format_mismatch(manifest: Mapping[str, Any]) -> tuple[str, str] | None:
    """(what, fix) of a release whose format is not that of this program."""
    if (told := manifest.get("format")) == FORMAT:
        return None
    what = f'is a release of format "{str(told)[:20]}", but this program verifies format {FORMAT}'
    return what, "verify it with the version of the program that made it, or release its build again"


# How many a manifest names.
MOST_PREDECESSORS = 1000
COUNTED = ("dialogues", "pairs")
UNREADABLE = "restore it, name another folder with --out, or overwrite it with --replace"


def read_predecessors(folder: Path, name: str, version: str) -> list[dict[str, Any]]:
    """What a manifest of that name and version says of the release in ``folder`` and of those before it, the latest first: version, date,
    seal and counts.

    Raises:
        InputError: if it is no release, was changed, has another name, or is not of an earlier version.
    """
    manifest = read_manifest(folder)
    told, where = release_title(manifest), "--previous"
    if seal_manifest(manifest) != manifest:
        raise input_error(folder / MANIFEST, "was changed after the release (its seal does not match)", "name the unchanged release")
    if manifest["name"] != name:
        raise input_error(
            where, f'"{folder}" is {told}, but the new release is {name}', "name a release with the same name, or leave out --previous"
        )
    if _version_key(manifest["version"]) >= _version_key(version):
        raise input_error(
            where, f'"{folder}" is {told}, but the new version is {version}', "name an earlier version, or give a higher --version"
        )
    counts = {config: sum(manifest["counts"][config].values()) for config in COUNTED}
    one = {**{key: manifest[key] for key in ("version", "date", "seal")}, **counts}
    return [one, *manifest.get("previous", ())][:MOST_PREDECESSORS]


def unordered_predecessors(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(where, what) of predecessors that are not each of an earlier version than the one before."""
    versions: Sequence[str] = [manifest["version"], *(one["version"] for one in manifest.get("previous", ()))]
    for place, (later, earlier) in enumerate(zip(versions, versions[1:], strict=False)):
        if _version_key(earlier) >= _version_key(later):
            yield f"previous[{place}]", f"says that {earlier} came before {later}"


def refuse_other_release(out: Path, name: str, version: str, *, replace: bool) -> None:
    """Nothing, where ``out`` holds no release, one of this name and version, or one that is to be replaced.

    Raises:
        InputError: if it holds another release, or one whose manifest cannot be read.
    """
    path = out / MANIFEST
    if replace or not path.is_file():
        return
    try:
        held = release_title(read_json(path, None, UNREADABLE))
    except (KeyError, TypeError) as error:
        raise input_error(path, f"does not name a release: {error}", UNREADABLE) from error
    if held != (new := f"{name} {version}"):
        fix = "name another folder with --out, or overwrite that release with --replace; --previous records it as the previous release"
        raise input_error(out, f"holds {held}, but the new release is {new}", fix)


def release_title(manifest: Mapping[str, Any]) -> str:
    """The name and version of a release, in one line."""
    return f"{manifest['name']} {manifest['version']}"


def _version_key(version: str) -> list[tuple[int, str]]:
    """What versions are in order by; as texts, since those of a stranger may have digits without end."""
    parts = (part.lstrip("0") for part in version.split("."))
    return [(len(part), part) for part in parts]
