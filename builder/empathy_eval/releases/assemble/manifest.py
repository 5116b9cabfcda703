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

VERSION = re.compile(r"\d+\.\d+\.\d+", re.ASCII)
SOFTWARE = (
    "datasets", "pyarrow", "sacrebleu", "rapidfuzz", "spacy", "alt-profanity-check", "bert-score", "torch", "transformers", "numpy",
    "matplotlib",
)  # fmt: skip


def seal_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    """Returns a manifest with its ``seal``, the hash of everything else in it, which reveals a change of the manifest."""
    rest = {name: value for name, value in manifest.items() if name != "seal"}
    return {**rest, "seal": digest(rest)}


def manifest_text(manifest: dict[str, Any]) -> str:
    """Returns the canonical text of a manifest."""
    return json_text(manifest) + "\n"


def manifest_facts(
    header: dict[str, Any], version: str, date: str | None, selection: Selection, counts: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """Returns the manifest without the hashes of files."""
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
    """Returns the versions of Python and of installed packages that may change figures."""
    versions = {"python": platform.python_version()}
    for name in SOFTWARE:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def file_hashes(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of every file of a release by its relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in files}


def format_mismatch(manifest: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns (what, fix) for a release of another format than this program reads; None for one of this format."""
    if (form := manifest.get("format")) == FORMAT:
        return None
    what = f'is a release of format "{str(form)[:20]}", but this program verifies format {FORMAT}'
    return what, "verify it with the version of the program that made it, or release its build again"


# Previous releases that a manifest lists, and their configs whose rows are counted.
MOST_PREDECESSORS = 1000
COUNTED = ("dialogues", "pairs")
FIX_UNREADABLE = "restore it, name another folder with --out, or overwrite it with --replace"


def read_predecessors(folder: Path, name: str, version: str) -> list[dict[str, Any]]:
    """Returns version, date, seal and counts of the release in ``folder`` and of its predecessors, the latest first.

    Raises:
        InputError: if it is no release, was changed, has another name, or is not of an earlier version.
    """
    manifest = read_manifest(folder)
    if seal_manifest(manifest) != manifest:
        raise input_error(folder / MANIFEST, "was changed after the release (its seal does not match)", "name the unchanged release")
    what = f'"{folder}" is {release_title(manifest)}, but the new '
    if manifest["name"] != name:
        raise input_error("--previous", f"{what}release is {name}", "name a release with the same name, or leave out --previous")
    if _version_key(manifest["version"]) >= _version_key(version):
        raise input_error("--previous", f"{what}version is {version}", "name an earlier version, or give a higher --version")
    counts = {config: sum(manifest["counts"][config].values()) for config in COUNTED}
    latest = {**{key: manifest[key] for key in ("version", "date", "seal")}, **counts}
    return [latest, *manifest.get("previous", ())][:MOST_PREDECESSORS]


def unordered_predecessors(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields (where, what) of predecessors whose version is not below that of the release after them."""
    versions: Sequence[str] = [manifest["version"], *(previous["version"] for previous in manifest.get("previous", ()))]
    for index, (later, earlier) in enumerate(zip(versions, versions[1:], strict=False)):
        if _version_key(earlier) >= _version_key(later):
            yield f"previous[{index}]", f"says that {earlier} came before {later}"


def refuse_other_release(out: Path, name: str, version: str, *, replace: bool) -> None:
    """Checks that ``out`` holds no release, one of this name and version, or one to be replaced.

    Raises:
        InputError: if it holds another release, or one whose manifest cannot be read.
    """
    path = out / MANIFEST
    if replace or not path.is_file():
        return
    try:
        present = release_title(read_json(path, None, FIX_UNREADABLE))
    except (KeyError, TypeError) as error:
        raise input_error(path, f"does not name a release: {error}", FIX_UNREADABLE) from error
    if present != (new := f"{name} {version}"):
        fix = "name another folder with --out, or overwrite that release with --replace; --previous records it as the previous release"
        raise input_error(out, f"holds {present}, but the new release is {new}", fix)


def release_title(manifest: Mapping[str, Any]) -> str:
    """Returns the name and version of a release."""
    return f"{manifest['name']} {manifest['version']}"


def _version_key(version: str) -> list[tuple[int, str]]:
    """Returns the sort key of a version; of texts, because the numbers of an untrusted manifest may have any length."""
    parts = (part.lstrip("0") for part in version.split("."))
    return [(len(part), part) for part in parts]
