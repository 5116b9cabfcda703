"""The releases before one: what its manifest says of them, and the release whose folder it would take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.schemas import read_json
from empathy_eval.design.dataset import MANIFEST, read_manifest
from empathy_eval.releases.assemble.manifest import sealed

# How many a manifest names.
MOST = 1000
COUNTED = ("dialogues", "pairs")
UNREADABLE = "restore it, name another folder with --out, or overwrite it with --replace"


def predecessors(folder: Path, name: str, version: str) -> list[dict[str, Any]]:
    """What a manifest of that name and version says of the release in ``folder`` and of those before it, the latest first: version, date,
    seal and counts.

    Raises:
        InputError: if it is no release, was changed, has another name, or is not of an earlier version.
    """
    manifest = read_manifest(folder)
    told, where = _called(manifest), "--previous"
    if sealed(manifest) != manifest:
        raise input_error(folder / MANIFEST, "was changed after the release (its seal does not match)", "name the unchanged release")
    if manifest["name"] != name:
        raise input_error(
            where, f'"{folder}" is {told}, but the new release is {name}', "name a release with the same name, or leave out --previous"
        )
    if _order(manifest["version"]) >= _order(version):
        raise input_error(
            where, f'"{folder}" is {told}, but the new version is {version}', "name an earlier version, or give a higher --version"
        )
    counts = {config: sum(manifest["counts"][config].values()) for config in COUNTED}
    one = {**{key: manifest[key] for key in ("version", "date", "seal")}, **counts}
    return [one, *manifest.get("previous", ())][:MOST]


def disorder(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(where, what) of predecessors that are not each of an earlier version than the one before."""
    versions: Sequence[str] = [manifest["version"], *(one["version"] for one in manifest.get("previous", ()))]
    for place, (later, earlier) in enumerate(zip(versions, versions[1:], strict=False)):
        if _order(earlier) >= _order(later):
            yield f"previous[{place}]", f"says that {earlier} came before {later}"


def refuse_another(out: Path, name: str, version: str, *, replace: bool) -> None:
    """Nothing, where ``out`` holds no release, one of this name and version, or one that is to be replaced.

    Raises:
        InputError: if it holds another release, or one whose manifest cannot be read.
    """
    path = out / MANIFEST
    if replace or not path.is_file():
        return
    try:
        held = _called(read_json(path, None, UNREADABLE))
    except (KeyError, TypeError) as error:
        raise input_error(path, f"does not name a release: {error}", UNREADABLE) from error
    if held != (new := f"{name} {version}"):
        fix = "name another folder with --out, or overwrite that release with --replace; --previous records it as the previous release"
        raise input_error(out, f"holds {held}, but the new release is {new}", fix)


def _called(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['name']} {manifest['version']}"


def _order(version: str) -> list[tuple[int, str]]:
    """What versions are in order by; as texts, since those of a stranger may have digits without end."""
    parts = (part.lstrip("0") for part in version.split("."))
    return [(len(part), part) for part in parts]
